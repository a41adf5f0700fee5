#include "lab/store/schema.h"

#include <array>
#include <set>

#include "base/error.h"
#include "lab/store/columns.h"

namespace ridgeline {
namespace {

// What leads from version i + 1 to i + 2. Written out and never changed: the registry tells only of
// the present version.
constexpr std::array<const char*, kSchemaVersion - 1> kMigrations = {
    // 2: epochs of a training; when ceilings were measured.
    R"(CREATE TABLE "epochs" (
         "run" INTEGER NOT NULL REFERENCES "runs" ("id") ON DELETE CASCADE,
         "number" INTEGER NOT NULL,
         "epoch" INTEGER, "train_loss" REAL, "train_accuracy" REAL,
         "test_loss" REAL, "test_accuracy" REAL, "samples" INTEGER,
         "seconds" REAL, "data_wait_seconds" REAL, "evaluation_seconds" REAL,
         "energy_joules" REAL,
         PRIMARY KEY ("run", "number")) WITHOUT ROWID;
       ALTER TABLE "ceilings" ADD COLUMN "measured" TEXT;)",
    // 3: all ops of a step, by which steps of different plans are matched.
    R"(ALTER TABLE "steps" ADD COLUMN "covers" TEXT;)",
    // 4: studies; what lives in memory and what happens during an iteration.
    R"(ALTER TABLE "runs" ADD COLUMN "study" TEXT;
       ALTER TABLE "runs" ADD COLUMN "item" TEXT;
       CREATE TABLE "live_bytes" (
         "run" INTEGER NOT NULL REFERENCES "runs" ("id") ON DELETE CASCADE,
         "number" INTEGER NOT NULL,
         "step" INTEGER, "category" TEXT, "bytes" INTEGER,
         PRIMARY KEY ("run", "number")) WITHOUT ROWID;
       CREATE TABLE "timeline" (
         "run" INTEGER NOT NULL REFERENCES "runs" ("id") ON DELETE CASCADE,
         "number" INTEGER NOT NULL,
         "activity" TEXT, "name" TEXT, "track" TEXT,
         "begin_seconds" REAL, "end_seconds" REAL, "step" INTEGER,
         PRIMARY KEY ("run", "number")) WITHOUT ROWID;
       CREATE TABLE "studies" (
         "uuid" TEXT NOT NULL PRIMARY KEY, "name" TEXT, "scale" TEXT,
         "environment" TEXT REFERENCES "environments" ("key"),
         "options" TEXT, "definition" TEXT, "started" TEXT, "finished" TEXT);
       CREATE TABLE "study_items" (
         "study" TEXT NOT NULL REFERENCES "studies" ("uuid") ON DELETE CASCADE,
         "number" INTEGER NOT NULL, "key" TEXT NOT NULL, "title" TEXT, "command" TEXT,
         "status" TEXT, "reason" TEXT, "substitute" TEXT,
         "estimated_seconds" REAL, "seconds" REAL,
         PRIMARY KEY ("study", "key")) WITHOUT ROWID;)",
};

void create_all(sqlite::Connection& connection) {
  for (const Table& each : tables()) connection.execute(create_sql(each));
  connection.execute(fmt::format("PRAGMA application_id = {}", kApplicationId));
}

}  // namespace

std::int64_t schema_version(sqlite::Connection& connection) {
  // One statement sees one state of the file: another program may be creating it just now.
  sqlite::Statement header(connection,
                           "SELECT application_id, user_version, (SELECT count(*) FROM "
                           "sqlite_master) FROM pragma_application_id, pragma_user_version");
  ensure(header.step(), "a database without a header");
  const std::int64_t application = header.integer(0), version = header.integer(1),
                     objects = header.integer(2);
  if (application == 0 && version == 0 && objects == 0) return 0;
  if (application != kApplicationId || version < 1) {
    bad_input("{}: is an SQLite database of another program, no store of Ridgeline",
              connection.name());
  }
  if (version > kSchemaVersion) {
    bad_input(
        "{}: was written by a newer Ridgeline (schema version {}; this program knows up to {}). "
        "Use a newer program, or another file with --store",
        connection.name(), version, kSchemaVersion);
  }
  return version;
}

void bring_up_to_date(sqlite::Connection& connection) {
  if (schema_version(connection) == kSchemaVersion) return;
  sqlite::Transaction transaction(connection);
  // Another program may have been here in between.
  const std::int64_t version = schema_version(connection);
  if (version == 0) create_all(connection);
  for (std::int64_t from = version == 0 ? kSchemaVersion : version; from < kSchemaVersion; ++from) {
    connection.execute(kMigrations[static_cast<std::size_t>(from - 1)]);
  }
  connection.execute(fmt::format("PRAGMA user_version = {}", kSchemaVersion));
  transaction.commit();
}

void check_schema(sqlite::Connection& connection) {
  std::set<std::string> present;
  sqlite::Statement list(connection,
                         "SELECT m.name || '.' || c.name FROM sqlite_master m, "
                         "pragma_table_info(m.name) c WHERE m.type = 'table'");
  while (list.step()) present.insert(list.text(0));
  for (const Table& each : tables()) {
    for (const Column& column : each.columns) {
      const std::string name = fmt::format("{}.{}", each.name, column.name);
      if (!present.contains(name)) {
        bad_input("{}: the store is damaged: it lacks '{}'", connection.name(), name);
      }
    }
  }
}

}  // namespace ridgeline
