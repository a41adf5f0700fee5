#pragma once

#include <cstdint>
#include <cstdio>
#include <filesystem>
#include <span>
#include <string>
#include <vector>

namespace ridgeline {

// The contents of a file, decompressed when they are gzip (told by the contents, not by the name).
// A file that cannot be read, is truncated or corrupt is a bad_input Error that names it.
[[nodiscard]] std::vector<std::uint8_t> read_file(const std::filesystem::path& path);

// Whether something is there; what cannot be asked for is not.
[[nodiscard]] bool is_there(const std::filesystem::path& path);

struct CloseFile {
  void operator()(std::FILE* file) const { std::fclose(file); }
};

}  // namespace ridgeline
