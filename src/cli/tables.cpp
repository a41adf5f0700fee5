#include "cli/tables.h"

#include <fmt/core.h>

#include "base/parse.h"
#include "base/wrap.h"
#include "cli/output.h"
#include "cli/parser.h"
#include "lab/options.h"

namespace ridgeline::cli {
namespace {

// There is one standard output, and one command a call.
struct TableOptions {
  bool wide = false;
  std::string columns;  // "a,b"
};
TableOptions& table_options() {
  static TableOptions options;
  return options;
}

std::vector<std::string> chosen_columns() {
  std::vector<std::string> names;
  for (const std::string_view name : pieces_of(table_options().columns, ",")) {
    if (!name.empty()) names.emplace_back(name);
  }
  return names;
}

}  // namespace

void add_table_options(Parser& command, const std::vector<std::string>& columns) {
  TableOptions& options = table_options();
  command.add_flag("--wide", options.wide, "Show whole tables, even if wider than the terminal");
  if (columns.empty()) return;
  const auto trouble = [columns](const std::string& list) {
    const std::vector<std::string_view> known(columns.begin(), columns.end());
    for (const std::string_view name : pieces_of(list, ",")) {
      if (column_named(columns, name)) continue;
      return fmt::format("unknown column '{}'{}", name, known_names(name, known));
    }
    return std::string();
  };
  command
      .add_option("--columns NAME,...", options.columns,
                  fmt::format("Show only these columns: {}", joined(columns, ", ")))
      ->check(trouble);
}

std::size_t table_width() { return table_options().wide ? 0 : output_width().value_or(0); }

std::string fitted(const std::string& text) { return folded(text, table_width()); }

std::string shown(const TextTable& table) {
  return table.text({.width = table_width(), .hint = "--wide shows all"});
}

std::string shown_main(const TextTable& table) {
  return table.text({.width = table_width(),
                     .columns = chosen_columns(),
                     .hint = "--wide shows all, --columns chooses"});
}

}  // namespace ridgeline::cli
