// Opening and writing.

#include "store/store.h"

#include <array>
#include <chrono>
#include <ctime>
#include <fstream>
#include <random>

#include "store/database.h"
#include "store/schema.h"

namespace ridgeline {
namespace {

namespace fs = std::filesystem;

// SQLite takes any file whose header it can read for its own, and would make one of an unreadable
// name: what the user can mend is told before.
void check_file(const fs::path& path) {
  std::error_code ignored;
  if (fs::is_directory(path, ignored)) bad_input("{}: is a folder, not a store", path.string());
  const fs::path folder = path.has_parent_path() ? path.parent_path() : fs::path(".");
  if (!fs::is_directory(folder, ignored)) {
    bad_input("{}: there is no folder {}", path.string(), folder.string());
  }
  if (!fs::exists(path, ignored)) return;
  std::ifstream file(path, std::ios::binary);
  std::array<char, 16> head{};
  file.read(head.data(), head.size());
  const std::string_view read(head.data(), static_cast<std::size_t>(file.gcount()));
  static constexpr std::string_view kMagic("SQLite format 3\0", 16);
  if (read.empty() || read == kMagic) return;
  bad_input("{}: is not a store (not an SQLite database){}", path.string(),
            read.front() == '{' ? "; 'ridgeline store import' takes results in JSON" : "");
}

void set_up(sqlite::Connection& connection) {
  connection.execute("PRAGMA foreign_keys = ON; PRAGMA synchronous = NORMAL");
}

}  // namespace

std::string utc_now() {
  const auto now = std::chrono::system_clock::now().time_since_epoch();
  const auto ms = std::chrono::duration_cast<std::chrono::milliseconds>(now).count();
  const std::time_t seconds = static_cast<std::time_t>(ms / 1000);
  std::tm utc{};
  gmtime_r(&seconds, &utc);
  return fmt::format("{:04}-{:02}-{:02}T{:02}:{:02}:{:02}.{:03}Z", utc.tm_year + 1900,
                     utc.tm_mon + 1, utc.tm_mday, utc.tm_hour, utc.tm_min, utc.tm_sec, ms % 1000);
}

std::string new_uuid() {
  std::random_device device;
  std::array<std::uint32_t, 4> bits{};
  for (std::uint32_t& word : bits) word = device();
  // Version 4, variant 1: made of random bits.
  return fmt::format("{:08x}-{:04x}-4{:03x}-{:x}{:03x}-{:04x}{:08x}", bits[0], bits[1] >> 16,
                     bits[1] & 0xfff, 8 + (bits[2] >> 30), (bits[2] >> 16) & 0xfff,
                     bits[2] & 0xffff, bits[3]);
}

Store::Store(const fs::path& path) : database_(std::make_unique<Database>()) {
  check_file(path);
  database_->connection =
      std::make_unique<sqlite::Connection>(path, sqlite::Access::write_or_create);
  sqlite::Connection& connection = *database_->connection;
  (void)schema_version(connection);  // refuses before anything is changed
  connection.use_write_ahead_log();
  set_up(connection);
  bring_up_to_date(connection);
  check_schema(connection);
  database_->writable = true;
}

Store Store::open_existing(const fs::path& path) {
  std::error_code error;
  if (!fs::exists(path, error)) {
    if (error) bad_input("{}: cannot be read: {}", path.string(), error.message());
    bad_input(
        "{}: the store does not exist; bench, train and study create one, and --store names "
        "another",
        path.string());
  }
  check_file(path);
  auto database = std::make_unique<Database>();
  database->connection = std::make_unique<sqlite::Connection>(path, sqlite::Access::read);
  // One of an older version is brought up to date in memory: the file stays as it is.
  if (schema_version(*database->connection) != kSchemaVersion) {
    database->connection = sqlite::Connection::in_memory_copy(*database->connection);
    database->writable = true;
    bring_up_to_date(*database->connection);
  }
  check_schema(*database->connection);
  return Store(std::move(database));
}

Store::Store(std::unique_ptr<Database> database) : database_(std::move(database)) {}
Store::Store(Store&&) noexcept = default;
Store& Store::operator=(Store&&) noexcept = default;
Store::~Store() = default;

void Store::Database::insert_environment(const EnvironmentRecord& environment) {
  ensure(!environment.key.empty(), "an environment needs a key");
  insert("INSERT INTO \"environments\"", environment, "ON CONFLICT DO NOTHING");
}

void Store::Database::insert_network(const NetworkRecord& network) {
  insert("INSERT INTO \"networks\"", network, "ON CONFLICT DO NOTHING");
}

RunId Store::Database::insert_run(const RunRecord& run) {
  ensure(run.environment.empty() ||
             number("SELECT 1 FROM \"environments\" WHERE \"key\" = ?", run.environment) == 1,
         "{}: a run names the environment '{}', which the store does not have", connection->name(),
         run.environment);
  insert("INSERT INTO \"runs\"", run);
  const RunId id = connection->last_row();
  set_values(id, run.numbers, run.notes);
  return id;
}

void Store::Database::set_values(RunId run, const std::map<std::string, double>& numbers,
                                 const std::map<std::string, std::string>& notes) {
  const auto set = [&](const char* table, const auto& values) {
    sqlite::Statement& statement = connection->prepared(fmt::format(
        "INSERT OR REPLACE INTO \"{}\" (\"run\", \"name\", \"value\") VALUES (?, ?, ?)", table));
    for (const auto& [name, value] : values) statement.with(run, name, value).run();
  };
  set("run_numbers", numbers);
  set("run_notes", notes);
}

bool Store::Database::set_end(RunId run, RunStatus status, const std::string& error,
                              const std::string& finished) {
  connection
      ->prepared(
          "UPDATE \"runs\" SET \"status\" = ?, \"error\" = ?, \"finished\" = ? WHERE \"id\" = ?")
      .with(name_of(status), error, finished, run)
      .run();
  return connection->changes() == 1;
}

void Store::Database::put_study(const StudyRecord& study) {
  ensure(!study.uuid.empty(), "a study needs a uuid");
  // Replacing the row would take its items with it.
  insert("INSERT INTO \"studies\"", study,
         "ON CONFLICT (\"uuid\") DO UPDATE SET \"options\" = excluded.\"options\", "
         "\"definition\" = excluded.\"definition\", \"finished\" = excluded.\"finished\"");
}

void Store::Database::put_items(std::span<const StudyItemRecord> items) {
  for (const StudyItemRecord& item : items) {
    insert("INSERT OR REPLACE INTO \"study_items\"", item);
  }
}

void Store::Database::replace_ceilings(const std::string& environment, const std::string& device,
                                       std::span<const Ceiling> ceilings) {
  static const std::string sql =
      fmt::format("INSERT INTO \"ceilings\" (\"environment\", \"number\", {}) VALUES ({})",
                  quoted_fields<Ceiling>(), placeholders(field_names<Ceiling>().size() + 2));
  connection->prepared("DELETE FROM \"ceilings\" WHERE \"environment\" = ? AND \"device\" = ?")
      .with(environment, device)
      .run();
  sqlite::Statement& insert = connection->prepared(sql);
  const std::string now = utc_now();
  std::int64_t number = 0;
  for (Ceiling ceiling : ceilings) {
    ensure(ceiling.device == device, "a ceiling of {} among those of {}", ceiling.device, device);
    if (ceiling.measured.empty()) ceiling.measured = now;
    (void)bind_row(insert.with(environment, number++), 3, ceiling);
    insert.run();
  }
}

void Store::add(const EnvironmentRecord& environment) {
  database_->change([&] { database_->insert_environment(environment); });
}

void Store::add(const NetworkRecord& network) {
  database_->change([&] { database_->insert_network(network); });
}

RunId Store::begin(const RunRecord& run) {
  RunRecord row = run;
  if (row.uuid.empty()) row.uuid = new_uuid();
  if (row.started.empty()) row.started = utc_now();
  RunId id = 0;
  database_->change([&] { id = database_->insert_run(row); });
  return id;
}

template <typename Row>
void Store::append(RunId run, std::span<const Row> rows) {
  if (rows.empty()) return;
  database_->change([&] { database_->append_rows(run, rows); });
}

void Store::add(RunId run, std::span<const Sample> samples) { append(run, samples); }
void Store::add(RunId run, std::span<const StepTime> steps) { append(run, steps); }
void Store::add(RunId run, std::span<const Reading> readings) { append(run, readings); }
void Store::add(RunId run, std::span<const MemoryEntry> memory) { append(run, memory); }
void Store::add(RunId run, std::span<const Finding> findings) { append(run, findings); }
void Store::add(RunId run, std::span<const EpochRecord> epochs) { append(run, epochs); }

void Store::add(RunId run, std::span<const LiveEntry> live) { append(run, live); }
void Store::add(RunId run, std::span<const TimelineEntry> timeline) { append(run, timeline); }

void Store::put(const StudyRecord& study) {
  database_->change([&] { database_->put_study(study); });
}

void Store::put(std::span<const StudyItemRecord> items) {
  database_->change([&] { database_->put_items(items); });
}

void Store::remove_items(const std::string& study, std::span<const std::string> keys) {
  database_->change([&] {
    sqlite::Statement& statement = database_->connection->prepared(
        "DELETE FROM \"study_items\" WHERE \"study\" = ? AND \"key\" = ?");
    for (const std::string& key : keys) statement.with(study, key).run();
  });
}

bool Store::wants_completion() const {
  return database_->writable &&
         database_->connection->number(
             "SELECT EXISTS (SELECT 1 FROM \"run_notes\" a WHERE \"name\" = 'migrated' AND NOT "
             "EXISTS (SELECT 1 FROM \"run_notes\" b WHERE b.\"run\" = a.\"run\" AND b.\"name\" = "
             "'complexity'))") != 0;
}

void Store::complete(RunId run, const NetworkRecord& network,
                     const std::map<std::string, double>& numbers,
                     const std::map<std::string, std::string>& notes) {
  database_->change([&] {
    if (!network.key.empty()) {
      database_->insert_network(network);
      database_->connection->prepared("UPDATE \"runs\" SET \"network\" = ? WHERE \"id\" = ?")
          .with(network.key, run)
          .run();
    }
    database_->set_values(run, numbers, notes);
  });
}

void Store::finish(RunId run, RunStatus status, const std::string& error,
                   const std::map<std::string, double>& numbers,
                   const std::map<std::string, std::string>& notes) {
  const std::string now = utc_now();
  database_->change([&] {
    ensure(database_->set_end(run, status, error, now), "{}: there is no run {} to finish",
           database_->connection->name(), run);
    database_->set_values(run, numbers, notes);
  });
}

void Store::replace_ceilings(const std::string& environment, const std::string& device,
                             std::span<const Ceiling> ceilings) {
  database_->change([&] { database_->replace_ceilings(environment, device, ceilings); });
}

void Store::remove(std::span<const RunId> runs) {
  database_->change([&] {
    sqlite::Statement& statement =
        database_->connection->prepared("DELETE FROM \"runs\" WHERE \"id\" = ?");
    for (const RunId run : runs) statement.with(run).run();
  });
}

}  // namespace ridgeline
