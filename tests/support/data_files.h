#pragma once

// Files for the tests of src/data, and the messages of what refuses them.

#include <gtest/gtest.h>

#include <cstdint>
#include <filesystem>
#include <string>
#include <utility>
#include <vector>

#include "base/error.h"

namespace ridgeline::testing {

using Bytes = std::vector<std::uint8_t>;

// All of a file.
[[nodiscard]] Bytes file_bytes(const std::filesystem::path& path);

// A test with a folder of its own, which goes away with it.
class FileTest : public ::testing::Test {
 protected:
  void SetUp() override;
  void TearDown() override { std::filesystem::remove_all(folder_); }

  [[nodiscard]] std::filesystem::path write(const std::string& name, const Bytes& bytes) const;
  [[nodiscard]] std::filesystem::path write(const std::string& name,
                                            const std::string& text) const {
    return write(name, Bytes(text.begin(), text.end()));
  }

  std::filesystem::path folder_;
};

[[nodiscard]] Bytes gzip(const Bytes& plain);
[[nodiscard]] Bytes idx(const std::vector<std::uint32_t>& dims, const Bytes& data,
                        std::uint8_t type = 8);
// Bytes of all values that do not repeat with a short period.
[[nodiscard]] Bytes ramp(std::size_t count);

// Kaggle's digits: square images of which pixel i of row r is (97 r + 31 i) % 256.
[[nodiscard]] std::string csv_text(std::int64_t side, const std::vector<int>& labels,
                                   bool header = true);

// Runs body, which must throw a bad_input Error, and gives its message.
template <typename Body>
std::string refusal(Body&& body) {
  try {
    body();
  } catch (const Error& error) {
    EXPECT_EQ(error.kind(), ErrorKind::bad_input);
    return error.what();
  }
  ADD_FAILURE() << "nothing was thrown";
  return {};
}

void expect_contains(const std::string& text, const std::vector<std::string>& parts);

}  // namespace ridgeline::testing
