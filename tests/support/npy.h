#pragma once

// Reads NumPy's .npy files: little-endian f32, row-major.

#include <cstring>
#include <filesystem>
#include <stdexcept>
#include <string>
#include <vector>

#include "base/text_file.h"

namespace ridgeline::testing {

inline std::vector<float> read_npy(const std::filesystem::path& path) {
  const std::string bytes = read_text(path);
  if (bytes.size() < 10 || bytes.compare(0, 8, "\x93NUMPY\x01\x00", 8) != 0) {
    throw std::runtime_error(path.string() + ": is no .npy file of version 1");
  }
  const std::size_t header =
      10 + static_cast<unsigned char>(bytes[8]) + 256U * static_cast<unsigned char>(bytes[9]);
  const std::string text = bytes.substr(10, header - 10);
  if (text.find("'<f4'") == std::string::npos || text.find("False") == std::string::npos) {
    throw std::runtime_error(path.string() + ": is not row-major f32");
  }
  std::vector<float> numbers((bytes.size() - header) / sizeof(float));
  std::memcpy(numbers.data(), bytes.data() + header, numbers.size() * sizeof(float));
  return numbers;
}

}  // namespace ridgeline::testing
