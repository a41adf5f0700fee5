#pragma once

// Small files, read and written whole. Streams are silent about why they fail, and take a lack of
// memory for the end of a file.

#include <filesystem>
#include <string>
#include <string_view>

namespace ridgeline {

// Bad_input naming the file when it cannot be read.
[[nodiscard]] std::string read_text(const std::filesystem::path& path);

// The first line of a file of the kernel, without blanks at its end; empty where it cannot be read.
[[nodiscard]] std::string first_line(const std::filesystem::path& path);

// Writes in place, for files of a folder that is not seen before it is whole; others are written
// with write_durably(). A failure naming the file.
void write_text(const std::filesystem::path& path, std::string_view text);

}  // namespace ridgeline
