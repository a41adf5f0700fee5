// Reading.

#include <algorithm>

#include "base/parse.h"
#include "store/database.h"
#include "store/store.h"

namespace ridgeline {
namespace {

bool is_number(const std::string& text) {
  return !text.empty() &&
         std::all_of(text.begin(), text.end(), [](char c) { return c >= '0' && c <= '9'; });
}

// How many before the last; nothing when the name does not speak of the last.
std::optional<std::int64_t> steps_back(const std::string& name) {
  if (name == "last") return 0;
  if (!name.starts_with("last~") || !is_number(name.substr(5))) return std::nullopt;
  return number_in<std::int64_t>(name.substr(5));
}

}  // namespace

std::vector<EnvironmentRecord> Store::environments() const {
  return database_->select<EnvironmentRecord>("\"environments\" ORDER BY \"key\"");
}

std::optional<NetworkRecord> Store::network(const std::string& key) const {
  std::vector<NetworkRecord> found =
      database_->select<NetworkRecord>("\"networks\" WHERE \"key\" = ?", key);
  if (found.empty()) return std::nullopt;
  return std::move(found.front());
}

std::vector<RunRecord> Store::runs(const RunFilter& filter) const {
  static const std::string sql = fmt::format(
      "SELECT \"id\", {} FROM \"runs\" ORDER BY \"started\", \"id\"", quoted_fields<RunRecord>());
  sqlite::Statement statement(*database_->connection, sql);
  std::vector<RunRecord> all;
  while (statement.step()) {
    RunRecord run;
    run.id = statement.integer(0);
    read_row(statement, 1, run);
    if (fits(run, filter)) all.push_back(std::move(run));
  }
  sqlite::Statement& numbers = database_->connection->prepared(
      "SELECT \"name\", \"value\" FROM \"run_numbers\" WHERE \"run\" = ?");
  sqlite::Statement& notes = database_->connection->prepared(
      "SELECT \"name\", \"value\" FROM \"run_notes\" WHERE \"run\" = ?");
  for (RunRecord& run : all) {
    numbers.with(run.id);
    while (numbers.step()) run.numbers[numbers.text(0)] = numbers.real(1);
    notes.with(run.id);
    while (notes.step()) run.notes[notes.text(0)] = notes.text(1);
  }
  return all;
}

std::int64_t Store::run_count() const {
  return database_->connection->number("SELECT count(*) FROM \"runs\"");
}

RunRecord Store::run(const std::string& name) const {
  const std::vector<RunRecord> all = runs();
  const std::string& file = database_->connection->name();
  if (all.empty()) bad_input("{}: has no runs yet, so there is no run '{}'", file, name);
  if (const std::optional<std::int64_t> back = steps_back(name)) {
    const auto count = static_cast<std::int64_t>(all.size());
    if (*back < count) return all[static_cast<std::size_t>(count - 1 - *back)];
    bad_input("{}: has only {} runs, so there is no '{}'", file, count, name);
  }
  if (is_number(name)) {
    for (const RunRecord& run : all) {
      if (fmt::format("{}", run.id) == name) return run;
    }
  }
  const RunRecord* found = nullptr;
  // Who asks for run 9 does not mean one whose uuid happens to begin so. As much of a uuid as
  // tables show may consist of digits.
  const bool letters = !name.empty() && (!is_number(name) || name.size() >= 8);
  for (const RunRecord& run : all) {
    if (!letters || !run.uuid.starts_with(name)) continue;
    if (found != nullptr) {
      bad_input("{}: '{}' begins the uuid of more than one run: {} ({}) and {} ({})", file, name,
                found->id, found->uuid, run.id, run.uuid);
    }
    found = &run;
  }
  if (found != nullptr) return *found;
  bad_input(
      "{}: there is no run '{}'. A run is named by its number, the first letters of its uuid, "
      "'last' or 'last~1'; 'ridgeline store list' shows them",
      file, name);
}

std::vector<Sample> Store::samples(RunId run) const { return database_->rows<Sample>(run); }
std::vector<StepTime> Store::steps(RunId run) const { return database_->rows<StepTime>(run); }
std::vector<Reading> Store::readings(RunId run) const { return database_->rows<Reading>(run); }
std::vector<MemoryEntry> Store::memory(RunId run) const {
  return database_->rows<MemoryEntry>(run);
}
std::vector<Finding> Store::findings(RunId run) const { return database_->rows<Finding>(run); }
std::vector<EpochRecord> Store::epochs(RunId run) const {
  return database_->rows<EpochRecord>(run);
}

std::vector<LiveEntry> Store::live_bytes(RunId run) const {
  return database_->rows<LiveEntry>(run);
}
std::vector<TimelineEntry> Store::timeline(RunId run) const {
  return database_->rows<TimelineEntry>(run);
}

std::vector<StudyRecord> Store::studies() const {
  return database_->select<StudyRecord>("\"studies\" ORDER BY \"started\", \"uuid\"");
}

std::vector<StudyItemRecord> Store::study_items(const std::string& study) const {
  return database_->select<StudyItemRecord>(
      "\"study_items\" WHERE \"study\" = ? ORDER BY \"number\", \"key\"", study);
}

std::int64_t Store::sample_count(RunId run, SampleKind kind) const {
  return database_->number("SELECT count(*) FROM \"samples\" WHERE \"run\" = ? AND \"kind\" = ?",
                           run, name_of(kind));
}

std::vector<Ceiling> Store::ceilings(const std::string& environment) const {
  return database_->select<Ceiling>(
      "\"ceilings\" WHERE \"environment\" = ? ORDER BY \"device\", \"number\"", environment);
}

}  // namespace ridgeline
