#pragma once

// Files that the program carries within itself: the table of known hardware, the Python worker, the
// studies and the report's page.

#include <optional>
#include <span>
#include <string_view>

namespace ridgeline {

struct EmbeddedFile {
  std::string_view name;  // its path in the repository
  std::string_view text;
};

[[nodiscard]] std::span<const EmbeddedFile> embedded_files();

[[nodiscard]] inline std::optional<std::string_view> embedded_file(std::string_view name) {
  for (const EmbeddedFile& file : embedded_files()) {
    if (file.name == name) return file.text;
  }
  return std::nullopt;
}

}  // namespace ridgeline
