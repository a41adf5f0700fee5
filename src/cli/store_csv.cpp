// The store as CSV. Every row carries what identifies its run, so that one file serves alone.

#include <algorithm>
#include <cmath>
#include <map>

#include "base/durable_file.h"
#include "cli/output.h"
#include "cli/store_output.h"
#include "lab/store/columns.h"
#include "lab/store/rows.h"

namespace ridgeline::cli {
namespace {

namespace fs = std::filesystem;

using Cells = std::vector<std::string>;

std::string cell(const std::string& text) { return csv_cell(text); }
std::string cell(double number) { return std::isnan(number) ? "" : fmt::format("{}", number); }
std::string cell(std::int64_t number) { return fmt::format("{}", number); }
std::string cell(int number) { return fmt::format("{}", number); }
std::string cell(const std::optional<double>& number) { return number ? cell(*number) : ""; }
std::string cell(RunStatus status) { return std::string(name_of(status)); }
std::string cell(SampleKind kind) { return std::string(name_of(kind)); }
std::string cell(ItemStatus status) { return std::string(name_of(status)); }

// Names and cells of a record's fields.
struct Line {
  std::vector<std::string> names, cells;

  void add(std::string_view name, std::string text) {
    names.emplace_back(name);
    cells.push_back(std::move(text));
  }
  template <typename Record>
  void add_fields(const Record& record) {
    visit_fields(record, [&](std::string_view name, const auto& field) { add(name, cell(field)); });
  }
};

std::string csv_line(const std::vector<std::string>& first,
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
  line.add("run", cell(run.id));
  line.add("uuid", run.uuid);
  const auto found = environments.find(run.environment);
  const EnvironmentRecord environment =
      found == environments.end() ? EnvironmentRecord{} : found->second;
  line.add("environment", run.environment);
  line.add("environment_label", cell(environment.label));
  line.add("host", cell(environment.host));
  line.add("command", cell(run.command));
  line.add("group", run.group);
  line.add("label", cell(run.label));
  line.add("started", run.started);
  line.add("status", cell(run.status));
  line.add("seed", cell(run.seed));
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

// A table whose rows `lines` gives for one run; `names` are its columns.
template <typename Lines>
std::int64_t write_table(const fs::path& path, const std::vector<std::string>& names,
                         const Store& store, std::span<const RunRecord> runs, Lines&& lines) {
  const auto environments = environments_by_key(store);
  DurableFile file(path);
  std::vector<std::string> run_names = identity({}, environments).names;
  for (std::string& name : run_names) {
    if (std::find(names.begin(), names.end(), name) != names.end()) name = "run_" + name;
  }
  file.write(csv_line(run_names, names));
  std::int64_t rows = 0;
  for (const RunRecord& run : runs) {
    const Line own = identity(run, environments);
    std::string text;
    lines(run, [&](const std::vector<std::string>& cells) {
      text += csv_line(own.cells, cells);
      ++rows;
    });
    file.write(text);
  }
  file.commit();
  return rows;
}

template <typename Row>
void write_rows(const fs::path& folder, const Store& store, std::span<const RunRecord> runs,
                std::vector<Row> (Store::*read)(RunId) const) {
  const auto fields = field_names<Row>();
  std::vector<std::string> names(fields.begin(), fields.end());
  if constexpr (std::same_as<Row, Reading>) names.emplace_back("unit");
  (void)write_table(folder / fmt::format("{}.csv", table_of<Row>), names, store, runs,
                    [&](const RunRecord& run, auto&& add) {
                      for (const Row& row : (store.*read)(run.id)) {
                        Line line;
                        line.add_fields(row);
                        if constexpr (std::same_as<Row, Reading>) {
                          const RegisteredName* name = find_name(sensor_names(), row.sensor);
                          line.add("unit", name == nullptr ? "" : std::string(name->unit));
                        }
                        add(line.cells);
                      }
                    });
}

// Tables that belong to no run.
template <typename Record>
std::string plain_table(const std::vector<Record>& records, const char* first_name,
                        const std::vector<std::string>& first) {
  Line header;
  if (first_name != nullptr) header.add(first_name, "");
  header.add_fields(Record{});
  std::string text = csv_line(header.names, {});
  for (std::size_t i = 0; i < records.size(); ++i) {
    Line line;
    if (first_name != nullptr) line.add(first_name, first[i]);
    line.add_fields(records[i]);
    text += csv_line(line.cells, {});
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
  const auto fields = field_names<Sample>();
  std::vector<std::string> names(fields.begin(), fields.end());
  names.emplace_back("samples_per_second");
  return write_table(file, names, store, runs, [&](const RunRecord& run, auto&& add) {
    for (const Sample& sample : store.samples(run.id)) {
      Line line;
      line.add_fields(sample);
      const double rate = static_cast<double>(run.work.batch) / sample.wall_seconds;
      line.add("samples_per_second", sample.wall_seconds > 0.0 ? cell(rate) : "");
      add(line.cells);
    }
  });
}

void write_tables_csv(const Store& store, std::span<const RunRecord> runs, const fs::path& folder) {
  std::error_code error;
  fs::create_directories(folder, error);
  if (error) fail("{}: the folder cannot be made: {}", folder.string(), error.message());
  write_environments(store, folder);
  write_studies(store, folder);
  (void)write_table(folder / "runs.csv", {"arguments", "finished", "error"}, store, runs,
                    [](const RunRecord& run, auto&& add) {
                      add(Cells{cell(run.arguments), run.finished, cell(run.error)});
                    });
  (void)write_table(
      folder / "run_numbers.csv", {"name", "value", "unit"}, store, runs,
      [](const RunRecord& run, auto&& add) {
        for (const auto& [name, value] : run.numbers) {
          const RegisteredName* known = find_name(number_names(), name);
          add(Cells{cell(name), cell(value), known == nullptr ? "" : std::string(known->unit)});
        }
      });
  (void)write_table(folder / "run_notes.csv", {"name", "value"}, store, runs,
                    [](const RunRecord& run, auto&& add) {
                      for (const auto& [name, value] : run.notes) {
                        add(Cells{cell(name), cell(value)});
                      }
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
