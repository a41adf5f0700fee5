#pragma once

// What the store holds: its tables, whose columns are the fields of fields.h, and the names under
// which numbers, notes and sensors are written. Schema, docs/store.md and help come from it.

#include <span>
#include <string>
#include <string_view>
#include <vector>

namespace ridgeline {

enum class ColumnType { integer, real, text };

struct Column {
  std::string_view name;
  ColumnType type;
  std::string_view unit;  // empty: a word, or a number without one
  std::string_view meaning;
  std::string_view constraint = {};  // SQL
};

struct Table {
  std::string_view name;
  std::string_view meaning;
  std::vector<Column> columns;
  std::string_view key = {};  // columns of the primary key where it is not a column's own
};

[[nodiscard]] std::span<const Table> tables();  // those that others refer to come first
[[nodiscard]] const Table& table(std::string_view name);
[[nodiscard]] std::string_view sql_name(ColumnType type);  // "INTEGER"
// The statement that makes the table.
[[nodiscard]] std::string create_sql(const Table& table);

// What a name in run_numbers, run_notes or readings means.
struct RegisteredName {
  std::string_view name, unit, meaning;
};
[[nodiscard]] std::span<const RegisteredName> number_names();
[[nodiscard]] std::span<const RegisteredName> note_names();
[[nodiscard]] std::span<const RegisteredName> sensor_names();
// Nothing for a name that is not registered.
[[nodiscard]] const RegisteredName* find_name(std::span<const RegisteredName> names,
                                              std::string_view name);

// All of it for docs/store.md.
[[nodiscard]] std::string registry_markdown();

}  // namespace ridgeline
