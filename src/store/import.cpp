// What another store, or a file of results, has more than this one.

#include <algorithm>
#include <set>

#include "store/database.h"
#include "store/import_file.h"

namespace ridgeline {
namespace {

namespace fs = std::filesystem;

}  // namespace

// Brings in one run; true when it is new.
bool Store::merge(const RunContents& contents) {
  Database& database = *database_;
  const RunRecord& run = contents.run;
  sqlite::Statement& find =
      database.connection->prepared("SELECT \"id\", \"status\" FROM \"runs\" WHERE \"uuid\" = ?")
          .with(run.uuid);
  const bool known = find.step();
  RunId id = known ? find.integer(0) : 0;
  const bool unfinished = known && find.text(1) == name_of(RunStatus::running);
  find.reset();
  if (!known) {
    id = database.insert_run(run);
  } else if (unfinished && run.status != RunStatus::running) {
    (void)database.set_end(id, run.status, run.error, run.finished);
    database.set_values(id, run.numbers, run.notes);
  }
  // Rows are only ever written behind others: what this store has of a run is the beginning of what
  // the other has, or all of it.
  visit_tables(contents, [&]<typename Row>(const std::vector<Row>& rows) {
    const auto known_rows = static_cast<std::size_t>(database.row_count<Row>(id));
    database.append_rows(id, std::span(rows).subspan(std::min(known_rows, rows.size())));
  });
  return !known;
}

// Of a study that both know, the one that came further stays.
void Store::merge_study(const StudyRecord& theirs, const std::vector<StudyItemRecord>& items) {
  const auto done = [](const std::vector<StudyItemRecord>& list) {
    return std::count_if(list.begin(), list.end(), [](const StudyItemRecord& item) {
      return item.status != ItemStatus::waiting;
    });
  };
  const std::vector<StudyRecord> ours = studies();
  const auto known = std::find_if(ours.begin(), ours.end(), [&](const StudyRecord& study) {
    return study.uuid == theirs.uuid;
  });
  if (known != ours.end() &&
      (!known->finished.empty() || done(study_items(theirs.uuid)) >= done(items))) {
    return;
  }
  database_->put_study(theirs);
  database_->put_items(items);
}

// Ceilings of a device come together: the newer measurement stays.
void Store::merge_ceilings(const std::string& environment, const std::vector<Ceiling>& theirs) {
  const auto newest = [](const std::vector<Ceiling>& list, const std::string& device) {
    std::string time;
    for (const Ceiling& ceiling : list) {
      if (ceiling.device == device) time = std::max(time, ceiling.measured);
    }
    return time;
  };
  const std::vector<Ceiling> ours = ceilings(environment);
  std::set<std::string> devices, measured_here;
  for (const Ceiling& ceiling : theirs) devices.insert(ceiling.device);
  for (const Ceiling& ceiling : ours) measured_here.insert(ceiling.device);
  for (const std::string& device : devices) {
    if (measured_here.contains(device) && newest(theirs, device) <= newest(ours, device)) continue;
    std::vector<Ceiling> of_device;
    for (const Ceiling& ceiling : theirs) {
      if (ceiling.device == device) of_device.push_back(ceiling);
    }
    database_->replace_ceilings(environment, device, of_device);
  }
}

std::int64_t Store::import_results(const fs::path& path) {
  const ImportFile file = read_import_file(path);
  std::int64_t added = 0;
  database_->change([&] {
    database_->insert_environment(file.environment);
    for (const RunContents& contents : file.runs) added += merge(contents) ? 1 : 0;
  });
  return added;
}

void check_importable(const fs::path& path) {
  std::error_code error;
  if (!fs::exists(path, error)) {
    bad_input("{}: {}", path.string(), error ? error.message() : "there is no such file");
  }
  if (fs::is_directory(path, error)) {
    bad_input("{}: is a folder, not a file to import", path.string());
  }
  if (looks_like_json(path)) {
    (void)read_import_file(path);
    return;
  }
  if (!looks_like_store(path)) {
    bad_input(
        "{}: cannot be imported: it is neither a store (SQLite, such as ridgeline.db) nor results "
        "in JSON (docs/store.md)",
        path.string());
  }
  (void)Store::open_existing(path);
}

std::int64_t Store::import(const fs::path& other) {
  check_importable(other);
  std::error_code ignored;
  if (fs::is_regular_file(other, ignored) && looks_like_json(other)) return import_results(other);
  const Store source = open_existing(other);
  // One moment of the other store, though it may be written meanwhile.
  const sqlite::Transaction view(*source.database_->connection, sqlite::Transaction::Kind::reading);
  sqlite::Transaction transaction(*database_->connection);
  for (const EnvironmentRecord& environment : source.environments()) {
    database_->insert_environment(environment);
    merge_ceilings(environment.key, source.ceilings(environment.key));
  }
  for (const StudyRecord& study : source.studies()) {
    merge_study(study, source.study_items(study.uuid));
  }
  std::int64_t added = 0;
  std::set<std::string> networks;
  for (const RunRecord& run : source.runs()) {
    if (networks.insert(run.network).second) {
      if (const auto network = source.network(run.network)) database_->insert_network(*network);
    }
    RunContents contents{run, {}};
    visit_tables(contents, [&]<typename Row>(std::vector<Row>& rows) {
      rows = source.database_->rows<Row>(run.id);
    });
    added += merge(contents) ? 1 : 0;
  }
  transaction.commit();
  return added;
}

}  // namespace ridgeline
