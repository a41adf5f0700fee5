#pragma once

// Tables on the terminal: what fits, and the rest with --wide or --columns.

#include <string>
#include <vector>

#include "base/text.h"

namespace ridgeline::cli {

class Parser;

// --wide; and --columns, where the command's main table has `columns` to choose from.
void add_table_options(Parser& command, const std::vector<std::string>& columns = {});

// As much of a table as standard output has room for.
[[nodiscard]] std::string shown(const TextTable& table);
// The same of a command's main table, of which --columns chooses.
[[nodiscard]] std::string shown_main(const TextTable& table);
// Text around tables: long lines are wrapped where standard output is a terminal.
[[nodiscard]] std::string fitted(const std::string& text);
// Columns for text; 0: no limit.
[[nodiscard]] std::size_t table_width();

}  // namespace ridgeline::cli
