// Opening and writing.

#include "lab/store/store.h"

#include <array>
#include <chrono>
#include <ctime>
#include <fstream>
#include <random>

#include "lab/store/database.h"
#include "lab/store/schema.h"

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
  bad_input("{}: is no store: not an SQLite database{}", path.string(),
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
    bad_input("{}: there is no such store; measuring commands make one, --store names another",
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
  static const std::string sql = fmt::format(
      "INSERT INTO \"environments\" ({}) VALUES ({}) ON CONFLICT DO NOTHING",
      quoted_fields<EnvironmentRecord>(), placeholders(field_names<EnvironmentRecord>().size()));
  sqlite::Statement& statement = connection->prepared(sql);
  (void)bind_row(statement, 1, environment);
  statement.run();
}

void Store::Database::insert_network(const NetworkRecord& network) {
  static const std::string sql = fmt::format(
      "INSERT INTO \"networks\" ({}) VALUES ({}) ON CONFLICT DO NOTHING",
      quoted_fields<NetworkRecord>(), placeholders(field_names<NetworkRecord>().size()));
  sqlite::Statement& statement = connection->prepared(sql);
  (void)bind_row(statement, 1, network);
  statement.run();
}

RunId Store::Database::insert_run(const RunRecord& run) {
  static const std::string sql =
      fmt::format("INSERT INTO \"runs\" ({}) VALUES ({})", quoted_fields<RunRecord>(),
                  placeholders(field_names<RunRecord>().size()));
  if (!run.environment.empty()) {
    sqlite::Statement& known =
        connection->prepared("SELECT 1 FROM \"environments\" WHERE \"key\" = ?");
    known.bind(1, std::string_view(run.environment));
    const bool found = known.step();
    known.reset();
    ensure(found, "{}: a run names the environment '{}', which the store does not have",
           connection->name(), run.environment);
  }
  sqlite::Statement& statement = connection->prepared(sql);
  (void)bind_row(statement, 1, run);
  statement.run();
  const RunId id = connection->last_row();
  set_numbers(id, run.numbers);
  set_notes(id, run.notes);
  return id;
}

void Store::Database::set_numbers(RunId run, const std::map<std::string, double>& numbers) {
  sqlite::Statement& statement = connection->prepared(
      "INSERT OR REPLACE INTO \"run_numbers\" (\"run\", \"name\", \"value\") VALUES (?, ?, ?)");
  for (const auto& [name, value] : numbers) {
    statement.bind(1, run);
    statement.bind(2, std::string_view(name));
    statement.bind(3, value);
    statement.run();
  }
}

void Store::Database::set_notes(RunId run, const std::map<std::string, std::string>& notes) {
  sqlite::Statement& statement = connection->prepared(
      "INSERT OR REPLACE INTO \"run_notes\" (\"run\", \"name\", \"value\") VALUES (?, ?, ?)");
  for (const auto& [name, value] : notes) {
    statement.bind(1, run);
    statement.bind(2, std::string_view(name));
    statement.bind(3, std::string_view(value));
    statement.run();
  }
}

void Store::Database::put_study(const StudyRecord& study) {
  ensure(!study.uuid.empty(), "a study needs a uuid");
  // Replacing the row would take its items with it.
  static const std::string sql = fmt::format(
      "INSERT INTO \"studies\" ({}) VALUES ({}) ON CONFLICT (\"uuid\") DO UPDATE SET "
      "\"options\" = excluded.\"options\", \"definition\" = excluded.\"definition\", "
      "\"finished\" = excluded.\"finished\"",
      quoted_fields<StudyRecord>(), placeholders(field_names<StudyRecord>().size()));
  sqlite::Statement& statement = connection->prepared(sql);
  (void)bind_row(statement, 1, study);
  statement.run();
}

void Store::Database::put_items(std::span<const StudyItemRecord> items) {
  static const std::string sql = fmt::format(
      "INSERT OR REPLACE INTO \"study_items\" ({}) VALUES ({})", quoted_fields<StudyItemRecord>(),
      placeholders(field_names<StudyItemRecord>().size()));
  sqlite::Statement& statement = connection->prepared(sql);
  for (const StudyItemRecord& item : items) {
    (void)bind_row(statement, 1, item);
    statement.run();
  }
}

void Store::Database::replace_ceilings(const std::string& environment, const std::string& device,
                                       std::span<const Ceiling> ceilings) {
  static const std::string sql =
      fmt::format("INSERT INTO \"ceilings\" (\"environment\", \"number\", {}) VALUES ({})",
                  quoted_fields<Ceiling>(), placeholders(field_names<Ceiling>().size() + 2));
  sqlite::Statement& remove =
      connection->prepared("DELETE FROM \"ceilings\" WHERE \"environment\" = ? AND \"device\" = ?");
  remove.bind(1, std::string_view(environment));
  remove.bind(2, std::string_view(device));
  remove.run();
  sqlite::Statement& insert = connection->prepared(sql);
  const std::string now = utc_now();
  std::int64_t number = 0;
  for (Ceiling ceiling : ceilings) {
    ensure(ceiling.device == device, "a ceiling of {} among those of {}", ceiling.device, device);
    if (ceiling.measured.empty()) ceiling.measured = now;
    insert.bind(1, std::string_view(environment));
    insert.bind(2, number++);
    (void)bind_row(insert, 3, ceiling);
    insert.run();
  }
}

void Store::add(const EnvironmentRecord& environment) {
  sqlite::Transaction transaction(*database_->connection);
  database_->insert_environment(environment);
  transaction.commit();
}

void Store::add(const NetworkRecord& network) {
  sqlite::Transaction transaction(*database_->connection);
  database_->insert_network(network);
  transaction.commit();
}

RunId Store::begin(const RunRecord& run) {
  RunRecord row = run;
  if (row.uuid.empty()) row.uuid = new_uuid();
  if (row.started.empty()) row.started = utc_now();
  sqlite::Transaction transaction(*database_->connection);
  const RunId id = database_->insert_run(row);
  transaction.commit();
  return id;
}

template <typename Row>
void Store::append(RunId run, std::span<const Row> rows) {
  if (rows.empty()) return;
  sqlite::Transaction transaction(*database_->connection);
  database_->append_rows(run, rows);
  transaction.commit();
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
  sqlite::Transaction transaction(*database_->connection);
  database_->put_study(study);
  transaction.commit();
}

void Store::put(std::span<const StudyItemRecord> items) {
  sqlite::Transaction transaction(*database_->connection);
  database_->put_items(items);
  transaction.commit();
}

void Store::remove_items(const std::string& study, std::span<const std::string> keys) {
  sqlite::Connection& connection = *database_->connection;
  sqlite::Transaction transaction(connection);
  sqlite::Statement& statement =
      connection.prepared("DELETE FROM \"study_items\" WHERE \"study\" = ? AND \"key\" = ?");
  for (const std::string& key : keys) {
    statement.bind(1, std::string_view(study));
    statement.bind(2, std::string_view(key));
    statement.run();
  }
  transaction.commit();
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
  sqlite::Transaction transaction(*database_->connection);
  if (!network.key.empty()) {
    database_->insert_network(network);
    sqlite::Statement& statement =
        database_->connection->prepared("UPDATE \"runs\" SET \"network\" = ? WHERE \"id\" = ?");
    statement.bind(1, std::string_view(network.key));
    statement.bind(2, run);
    statement.run();
  }
  database_->set_numbers(run, numbers);
  database_->set_notes(run, notes);
  transaction.commit();
}

void Store::finish(RunId run, RunStatus status, const std::string& error,
                   const std::map<std::string, double>& numbers,
                   const std::map<std::string, std::string>& notes) {
  const std::string now = utc_now();
  sqlite::Connection& connection = *database_->connection;
  sqlite::Transaction transaction(connection);
  sqlite::Statement& statement = connection.prepared(
      "UPDATE \"runs\" SET \"status\" = ?, \"error\" = ?, \"finished\" = ? WHERE \"id\" = ?");
  statement.bind(1, name_of(status));
  statement.bind(2, std::string_view(error));
  statement.bind(3, std::string_view(now));
  statement.bind(4, run);
  statement.run();
  ensure(connection.changes() == 1, "{}: there is no run {} to finish", connection.name(), run);
  database_->set_numbers(run, numbers);
  database_->set_notes(run, notes);
  transaction.commit();
}

void Store::replace_ceilings(const std::string& environment, const std::string& device,
                             std::span<const Ceiling> ceilings) {
  sqlite::Transaction transaction(*database_->connection);
  database_->replace_ceilings(environment, device, ceilings);
  transaction.commit();
}

void Store::remove(std::span<const RunId> runs) {
  sqlite::Connection& connection = *database_->connection;
  sqlite::Transaction transaction(connection);
  sqlite::Statement& statement = connection.prepared("DELETE FROM \"runs\" WHERE \"id\" = ?");
  for (const RunId run : runs) {
    statement.bind(1, run);
    statement.run();
  }
  transaction.commit();
}

}  // namespace ridgeline
