#pragma once

// The readers of files from outside, each as a function of bytes. libFuzzer runs them
// (tests/fuzz), and a test runs them over seeds and mutations of these. To add a reader, add its
// line to fuzz_targets().

#include <cstdint>
#include <filesystem>
#include <span>
#include <vector>

namespace ridgeline::testing {

struct FuzzTarget {
  const char* name;
  // Reads a file that holds the bytes; may throw an Error and nothing else.
  void (*read)(const std::filesystem::path& path);
  std::vector<std::vector<std::uint8_t>> (*seeds)();
  // Bytes that may be allocated for one byte of the file, beside some megabytes.
  std::int64_t bytes_per_byte;
};

[[nodiscard]] std::span<const FuzzTarget> fuzz_targets();

// Runs a target; swallows its Error.
void run_target(const FuzzTarget& target, std::span<const std::uint8_t> bytes);

}  // namespace ridgeline::testing
