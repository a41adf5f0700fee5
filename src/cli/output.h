#pragma once

// Where results go: files that appear whole or not at all, and standard output.

#include <string>

#include "base/writable.h"

namespace ridgeline::cli {

// Writes beside and renames, so that no reader ever sees half a file. Throws a failure.
void write_file_atomically(const std::string& path, const std::string& contents);

// To standard output, at once. Throws a failure when it cannot be written.
void print(const std::string& text);

// To standard error, whether or not anybody can read it there.
void message(const std::string& text);

// A cell of a CSV file, quoted where it must be.
[[nodiscard]] std::string csv_cell(const std::string& text);

// "98.12%"
[[nodiscard]] std::string percent_text(double share);

}  // namespace ridgeline::cli
