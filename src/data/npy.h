#pragma once

// NumPy's .npy files.

#include <cstdint>
#include <filesystem>
#include <vector>

namespace ridgeline {

struct NpyArray {
  std::vector<std::int64_t> dims;
  std::vector<float> values;  // row-major
};

// Little-endian float32 or float64, row-major. Anything else is a bad_input Error that names the
// file.
[[nodiscard]] NpyArray read_npy(const std::filesystem::path& path);

}  // namespace ridgeline
