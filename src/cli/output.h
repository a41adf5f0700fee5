#pragma once

// Where results go: files that appear whole or not at all, and standard output.

#include <fmt/core.h>

#include <optional>
#include <string>

#include "base/writable.h"

namespace ridgeline::cli {

// Writes beside and renames, so that no reader ever sees half a file. Throws a failure.
void write_file_atomically(const std::string& path, const std::string& contents);

// To standard output, at once. Throws a failure when it cannot be written.
void print(const std::string& text);

// To standard error, whether or not anybody can read it there.
void message(const std::string& text);

// Columns for text on standard output: $COLUMNS, or those of the terminal. Nothing where it goes to
// a file or a program.
[[nodiscard]] std::optional<std::size_t> output_width();

// A cell of a CSV file, quoted where it must be.
[[nodiscard]] std::string csv_cell(const std::string& text);

// A line of a CSV file: texts are quoted where they must be, what is not known leaves its cell
// empty.
template <typename... Cells>
[[nodiscard]] std::string csv_line(const Cells&... cells) {
  const auto text = []<typename Cell>(const Cell& cell) {
    if constexpr (std::is_convertible_v<Cell, std::string_view>) {
      return csv_cell(std::string(cell));
    } else if constexpr (requires { cell.has_value(); }) {
      return cell ? fmt::format("{}", *cell) : std::string();
    } else {
      return fmt::format("{}", cell);
    }
  };
  std::string line;
  ((line += text(cells) + ','), ...);
  line.back() = '\n';
  return line;
}

// "98.12%"
[[nodiscard]] std::string percent_text(double share);
// "98.1%", "n/a"
[[nodiscard]] std::string share_or_na(const std::optional<double>& share);
// "340.2" for 3.402e11, "n/a"
[[nodiscard]] std::string giga(const std::optional<double>& number);

}  // namespace ridgeline::cli
