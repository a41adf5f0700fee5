#include "store/columns.h"

#include <algorithm>

#include "base/error.h"
#include "store/fields.h"

namespace ridgeline {
namespace {

using enum ColumnType;

constexpr std::string_view kOfRun = R"(NOT NULL REFERENCES "runs" ("id") ON DELETE CASCADE)";
constexpr Column kRun = {"run", integer, "", "Number of the run", kOfRun};
constexpr Column kNumber = {"number", integer, "", "Order of writing within the run, from 0",
                            "NOT NULL"};
constexpr std::string_view kInRun = "run, number";

template <typename Type>
constexpr ColumnType type_of() {
  if constexpr (std::integral<Type>) return integer;
  if constexpr (std::same_as<Type, double> || std::same_as<Type, std::optional<double>>) {
    return real;
  }
  return text;
}

template <typename Record>
void add_fields(std::vector<Column>& columns) {
  visit_list<Record>([&]<typename Type>(const Field<Record, Type>& field) {
    columns.push_back({field.name, type_of<Type>(), field.unit, field.meaning, field.constraint});
  });
}

template <typename... Records>
std::vector<Column> columns_of(std::vector<Column> before = {}) {
  (add_fields<Records>(before), ...);
  return before;
}

// Rows that belong to a run.
template <typename Record>
Table rows_of_run(std::string_view meaning) {
  return {row_table<Record>, meaning, columns_of<Record>({kRun, kNumber}), kInRun};
}

const std::vector<Table>& all_tables() {
  static const std::vector<Table> tables = {
      {"environments", "A machine with a build, as found when runs began.",
       columns_of<EnvironmentRecord>()},
      {"networks", "The networks that runs computed, as they are built.",
       columns_of<NetworkRecord>()},
      {"runs", "One configuration measured once: what was computed, by whom, when, how it ended.",
       columns_of<RunRecord, Work, Executor>(
           {{"id", integer, "", "Number of the run in this store; never used twice",
             "PRIMARY KEY AUTOINCREMENT"}})},
      {"run_numbers",
       "Numbers of a whole run.",
       {kRun,
        {"name", text, "", "A registered name, see below", "NOT NULL"},
        {"value", real, "", "In the unit that the name ends with"}},
       "run, name"},
      {"run_notes",
       "Words about a whole run.",
       {kRun,
        {"name", text, "", "A registered name, see below", "NOT NULL"},
        {"value", text, "", "Words"}},
       "run, name"},
      rows_of_run<Sample>("One iteration a row. Nothing is left out, outliers neither."),
      rows_of_run<StepTime>("Time and cost of every step of the plan."),
      rows_of_run<Reading>("One value of one sensor, read while the run went on."),
      rows_of_run<MemoryEntry>("Bytes by owner."),
      rows_of_run<Finding>("What the reader of a run must know."),
      rows_of_run<EpochRecord>("One epoch of a training a row."),
      rows_of_run<LiveEntry>("What lives in memory at each step of a profiled plan."),
      rows_of_run<TimelineEntry>("What happens during one iteration of a profile."),
      {"studies", "A study that was carried out on one machine.", columns_of<StudyRecord>()},
      {"study_items", "The pieces of work of a study, those that were left out among them.",
       columns_of<StudyItemRecord>(), "study, key"},
      {"ceilings", "What the hardware was measured to do at most.",
       columns_of<Ceiling>(
           {{"environment", text, "", "Key of the environment",
             R"(NOT NULL REFERENCES "environments" ("key") ON DELETE CASCADE)"},
            {"number", integer, "", "Order of writing for the device, from 0", "NOT NULL"}}),
       "environment, device, number"},
  };
  return tables;
}

// "run, number" with every name quoted.
std::string quoted(std::string_view names) {
  std::string text = "\"";
  for (const char c : names) {
    if (c == ',') text += "\", \"";
    if (c != ',' && c != ' ') text += c;
  }
  return text + '"';
}

std::string names_markdown(std::string_view title, std::span<const RegisteredName> names) {
  std::string text = fmt::format("\n### {}\n\n| name | unit | meaning |\n|---|---|---|\n", title);
  for (const RegisteredName& name : names) {
    text += fmt::format("| `{}` | {} | {} |\n", name.name, name.unit, name.meaning);
  }
  return text;
}

}  // namespace

std::span<const Table> tables() { return all_tables(); }

const Table& table(std::string_view name) {
  const std::vector<Table>& all = all_tables();
  const auto found =
      std::find_if(all.begin(), all.end(), [&](const Table& each) { return each.name == name; });
  ensure(found != all.end(), "no table '{}' is registered", name);
  return *found;
}

std::string_view sql_name(ColumnType type) {
  switch (type) {
    case integer:
      return "INTEGER";
    case real:
      return "REAL";
    case text:
      return "TEXT";
  }
  return {};
}

std::string create_sql(const Table& table) {
  std::string lines;
  for (const Column& column : table.columns) {
    lines +=
        fmt::format("{}  \"{}\" {}{}{}", lines.empty() ? "" : ",\n", column.name,
                    sql_name(column.type), column.constraint.empty() ? "" : " ", column.constraint);
  }
  if (table.key.empty()) return fmt::format("CREATE TABLE \"{}\" (\n{}\n)", table.name, lines);
  // Rows lie in the order of their key: those of one run together, without a second index.
  return fmt::format("CREATE TABLE \"{}\" (\n{},\n  PRIMARY KEY ({})\n) WITHOUT ROWID", table.name,
                     lines, quoted(table.key));
}

const RegisteredName* find_name(std::span<const RegisteredName> names, std::string_view name) {
  const auto found = std::find_if(names.begin(), names.end(),
                                  [&](const RegisteredName& each) { return each.name == name; });
  return found == names.end() ? nullptr : &*found;
}

std::string registry_markdown() {
  std::string text;
  for (const Table& each : all_tables()) {
    text += fmt::format("### {}\n{}\n\n| column | type | unit | meaning |\n|---|---|---|---|\n",
                        each.name, each.meaning);
    for (const Column& column : each.columns) {
      text += fmt::format("| `{}` | {} | {} | {} |\n", column.name, sql_name(column.type),
                          column.unit, column.meaning);
    }
    text += '\n';
  }
  text.pop_back();
  return text + names_markdown("Numbers of a run", number_names()) +
         names_markdown("Notes of a run", note_names()) + names_markdown("Sensors", sensor_names());
}

}  // namespace ridgeline
