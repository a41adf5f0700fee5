// The store as CSV. Every row carries what identifies its run, so that one file serves alone.

#include <algorithm>
#include <cmath>
#include <map>

#include "base/durable_file.h"
#include "cli/output.h"
#include "cli/store_output.h"
#include "store/columns.h"
#include "store/rows.h"

namespace ridgeline::cli {
namespace {

namespace fs = std::filesystem;

template <typename Type>
std::string text_of(const Type& value) {
  if constexpr (is_composite<Type>) {
    return composite_text(value);
  } else if constexpr (std::same_as<Type, ImageShape>) {
    return value.text();
  } else if constexpr (std::is_enum_v<Type>) {
    return std::string(name_of(value));
  } else if constexpr (std::same_as<Type, std::optional<double>>) {
    return value ? text_of(*value) : std::string();
  } else if constexpr (std::same_as<Type, double>) {
    return std::isnan(value) ? std::string() : fmt::format("{}", value);
  } else if constexpr (std::same_as<Type, bool>) {
    return value ? "1" : "0";
  } else {
    return fmt::format("{}", value);
  }
}

// Names and cells of a row; every cell is quoted where it must be.
struct Line {
  std::vector<std::string> names, cells;

  template <typename Type>
  void add(std::string_view name, const Type& value) {
    names.emplace_back(name);
    cells.push_back(csv_cell(text_of(value)));
  }
  template <typename Record>
  void add_fields(const Record& record) {
    visit_fields(record, [&](std::string_view name, const auto& field) { add(name, field); });
  }
};

std::string joined_line(const std::vector<std::string>& first,
                        const std::vector<std::string>& second) {
  std::string text;
  for (const auto* part : {&first, &second}) {
    for (const std::string& each : *part) text += each + ',';
  }
  if (!text.empty()) text.pop_back();
  return text + '\n';
}

// What tells one run from another. A name that the table has itself gets "run_" before it.
Line identity(const RunRecord& run, const std::map<std::string, EnvironmentRecord>& environments) {
  Line line;
  line.add("run", run.id);
  line.add("uuid", run.uuid);
  const auto found = environments.find(run.environment);
  const EnvironmentRecord environment =
      found == environments.end() ? EnvironmentRecord{} : found->second;
  line.add("environment", run.environment);
  line.add("environment_label", environment.label);
  line.add("host", environment.host);
  line.add("command", run.command);
  line.add("group", run.group);
  line.add("label", run.label);
  line.add("started", run.started);
  line.add("status", run.status);
  line.add("seed", run.seed);
  line.add_fields(run.work);
  line.add_fields(run.executor);
  return line;
}

std::map<std::string, EnvironmentRecord> environments_by_key(const Store& store) {
  std::map<std::string, EnvironmentRecord> map;
  for (EnvironmentRecord& environment : store.environments()) {
    map[environment.key] = std::move(environment);
  }
  return map;
}

// A table whose rows `lines` gives for one run; any line of it serves as `header`, for the names.
template <typename Lines>
std::int64_t write_table(const fs::path& path, const Store& store, std::span<const RunRecord> runs,
                         const Line& header, Lines&& lines) {
  const auto environments = environments_by_key(store);
  DurableFile file(path);
  std::vector<std::string> run_names = identity({}, environments).names;
  for (std::string& name : run_names) {
    if (std::find(header.names.begin(), header.names.end(), name) != header.names.end()) {
      name = "run_" + name;
    }
  }
  file.write(joined_line(run_names, header.names));
  std::int64_t rows = 0;
  for (const RunRecord& run : runs) {
    const Line own = identity(run, environments);
    std::string text;
    lines(run, [&](const Line& line) {
      text += joined_line(own.cells, line.cells);
      ++rows;
    });
    file.write(text);
  }
  file.commit();
  return rows;
}

std::string_view unit_of(std::span<const RegisteredName> names, std::string_view name) {
  const RegisteredName* known = find_name(names, name);
  return known == nullptr ? std::string_view() : known->unit;
}

template <typename Row>
Line line_of(const Row& row) {
  Line line;
  line.add_fields(row);
  if constexpr (std::same_as<Row, Reading>) line.add("unit", unit_of(sensor_names(), row.sensor));
  return line;
}

template <typename Row>
void write_rows(const fs::path& folder, const Store& store, std::span<const RunRecord> runs,
                std::vector<Row> (Store::*read)(RunId) const) {
  (void)write_table(folder / fmt::format("{}.csv", row_table<Row>), store, runs, line_of(Row{}),
                    [&](const RunRecord& run, auto&& add) {
                      for (const Row& row : (store.*read)(run.id)) add(line_of(row));
                    });
}

Line sample_line(const Sample& sample, const RunRecord& run) {
  Line line = line_of(sample);
  const double rate = static_cast<double>(run.work.batch) / sample.wall_seconds;
  line.add("samples_per_second",
           sample.wall_seconds > 0.0 ? std::optional(rate) : std::optional<double>());
  return line;
}

// A number, with its unit, or a note.
template <typename Value>
Line value_line(const std::string& name, const Value& value) {
  Line line;
  line.add("name", name);
  line.add("value", value);
  if constexpr (std::same_as<Value, double>) line.add("unit", unit_of(number_names(), name));
  return line;
}

// What a run has beside its identity.
Line run_line(const RunRecord& run) {
  static const std::vector<std::string> named = identity({}, {}).names;
  Line line;
  visit_own_fields(run, [&](std::string_view name, const auto& value) {
    if (std::find(named.begin(), named.end(), name) == named.end()) line.add(name, value);
  });
  return line;
}

// Tables that belong to no run.
template <typename Record>
std::string plain_table(const std::vector<Record>& records, const char* first_name,
                        const std::vector<std::string>& first) {
  Line header;
  if (first_name != nullptr) header.add(first_name, "");
  header.add_fields(Record{});
  std::string text = joined_line(header.names, {});
  for (std::size_t i = 0; i < records.size(); ++i) {
    Line line;
    if (first_name != nullptr) line.add(first_name, first[i]);
    line.add_fields(records[i]);
    text += joined_line(line.cells, {});
  }
  return text;
}

void write_environments(const Store& store, const fs::path& folder) {
  const std::vector<EnvironmentRecord> environments = store.environments();
  write_file_atomically((folder / "environments.csv").string(),
                        plain_table(environments, nullptr, {}));
  std::vector<Ceiling> ceilings;
  std::vector<std::string> keys;
  for (const EnvironmentRecord& environment : environments) {
    for (Ceiling& ceiling : store.ceilings(environment.key)) {
      ceilings.push_back(std::move(ceiling));
      keys.push_back(environment.key);
    }
  }
  write_file_atomically((folder / "ceilings.csv").string(),
                        plain_table(ceilings, "environment", keys));
}

void write_studies(const Store& store, const fs::path& folder) {
  const std::vector<StudyRecord> studies = store.studies();
  write_file_atomically((folder / "studies.csv").string(), plain_table(studies, nullptr, {}));
  std::vector<StudyItemRecord> items;
  for (const StudyRecord& study : studies) {
    for (StudyItemRecord& item : store.study_items(study.uuid)) items.push_back(std::move(item));
  }
  write_file_atomically((folder / "study_items.csv").string(), plain_table(items, nullptr, {}));
}

}  // namespace

std::int64_t write_samples_csv(const Store& store, std::span<const RunRecord> runs,
                               const fs::path& file) {
  return write_table(file, store, runs, sample_line({}, {}), [&](const RunRecord& run, auto&& add) {
    for (const Sample& sample : store.samples(run.id)) add(sample_line(sample, run));
  });
}

void write_tables_csv(const Store& store, std::span<const RunRecord> runs, const fs::path& folder) {
  std::error_code error;
  fs::create_directories(folder, error);
  if (error) fail("{}: the folder cannot be made: {}", folder.string(), error.message());
  write_environments(store, folder);
  write_studies(store, folder);
  (void)write_table(folder / "runs.csv", store, runs, run_line({}),
                    [](const RunRecord& run, auto&& add) { add(run_line(run)); });
  (void)write_table(folder / "run_numbers.csv", store, runs, value_line("", 0.0),
                    [](const RunRecord& run, auto&& add) {
                      for (const auto& [name, value] : run.numbers) add(value_line(name, value));
                    });
  (void)write_table(folder / "run_notes.csv", store, runs, value_line("", std::string()),
                    [](const RunRecord& run, auto&& add) {
                      for (const auto& [name, value] : run.notes) add(value_line(name, value));
                    });
  (void)write_samples_csv(store, runs, folder / "samples.csv");
  write_rows<StepTime>(folder, store, runs, &Store::steps);
  write_rows<Reading>(folder, store, runs, &Store::readings);
  write_rows<MemoryEntry>(folder, store, runs, &Store::memory);
  write_rows<Finding>(folder, store, runs, &Store::findings);
  write_rows<EpochRecord>(folder, store, runs, &Store::epochs);
  write_rows<LiveEntry>(folder, store, runs, &Store::live_bytes);
  write_rows<TimelineEntry>(folder, store, runs, &Store::timeline);
}

}  // namespace ridgeline::cli
