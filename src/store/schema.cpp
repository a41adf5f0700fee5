#include "store/schema.h"

#include <array>
#include <set>

#include "store/columns.h"
#include "store/identity_v4.h"
#include "store/rows.h"

namespace ridgeline {
namespace {

// What leads from version i + 1 to i + 2. Written out and never changed: the registry tells only of
// the present version.
constexpr std::array kMigrations = {
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
    // 5: what runs were as typed values, which move_identity fills in; networks.
    R"(CREATE TABLE "networks" ("key" TEXT NOT NULL PRIMARY KEY, "description" TEXT);
       ALTER TABLE "runs" ADD COLUMN "network" TEXT REFERENCES "networks" ("key");
       ALTER TABLE "ceilings" ADD COLUMN "lower_bound" INTEGER;
       ALTER TABLE "runs" ADD COLUMN "turns" INTEGER;
       ALTER TABLE "runs" ADD COLUMN "init" TEXT;
       ALTER TABLE "runs" ADD COLUMN "weights" TEXT;
       ALTER TABLE "runs" ADD COLUMN "freeze" TEXT;
       ALTER TABLE "runs" ADD COLUMN "full_batch" INTEGER;
       ALTER TABLE "runs" ADD COLUMN "learning_rate" REAL;
       ALTER TABLE "runs" ADD COLUMN "momentum" REAL;
       ALTER TABLE "runs" ADD COLUMN "nesterov" INTEGER;
       ALTER TABLE "runs" ADD COLUMN "weight_decay" REAL;
       ALTER TABLE "runs" ADD COLUMN "label_smoothing" REAL;
       ALTER TABLE "runs" ADD COLUMN "loss_scale" REAL;
       ALTER TABLE "runs" ADD COLUMN "test_samples" INTEGER;
       ALTER TABLE "runs" ADD COLUMN "augment" TEXT;
       ALTER TABLE "runs" ADD COLUMN "loader" INTEGER;
       ALTER TABLE "runs" ADD COLUMN "last_batch" TEXT;
       ALTER TABLE "runs" ADD COLUMN "epochs" INTEGER;
       ALTER TABLE "runs" ADD COLUMN "first_epoch" INTEGER;
       ALTER TABLE "runs" ADD COLUMN "target_accuracy" REAL;
       ALTER TABLE "runs" ADD COLUMN "schedule" TEXT;
       ALTER TABLE "runs" ADD COLUMN "schedule_step" INTEGER;
       ALTER TABLE "runs" ADD COLUMN "schedule_gamma" REAL;
       ALTER TABLE "runs" ADD COLUMN "warmup_epochs" INTEGER;
       ALTER TABLE "runs" ADD COLUMN "workers" INTEGER;
       ALTER TABLE "runs" ADD COLUMN "ranks" INTEGER;
       ALTER TABLE "runs" ADD COLUMN "deterministic" INTEGER;
       ALTER TABLE "runs" ADD COLUMN "recompute" INTEGER;
       ALTER TABLE "runs" ADD COLUMN "disabled_passes" TEXT;
       ALTER TABLE "runs" ADD COLUMN "modes" TEXT;)",
    // 6: networks that come from a file.
    R"(ALTER TABLE "runs" ADD COLUMN "model_hash" TEXT;)",
    // 7: several ranks, and what large batches need.
    R"(ALTER TABLE "runs" ADD COLUMN "micro_batch" INTEGER;
       ALTER TABLE "runs" ADD COLUMN "clip_norm" REAL;
       ALTER TABLE "runs" ADD COLUMN "synchronised_norms" INTEGER;
       ALTER TABLE "runs" ADD COLUMN "nodes" INTEGER;
       ALTER TABLE "runs" ADD COLUMN "transport" TEXT;
       ALTER TABLE "runs" ADD COLUMN "bucket_bytes" INTEGER;
       UPDATE "runs" SET "nodes" = 1, "micro_batch" = 0, "clip_norm" = 0, "synchronised_norms" = 0,
       "bucket_bytes" = 0;)",
    // 8: what ranks exchange, and how.
    R"(ALTER TABLE "samples" ADD COLUMN "exchange_seconds" REAL;
       ALTER TABLE "samples" ADD COLUMN "exposed_seconds" REAL;
       ALTER TABLE "runs" ADD COLUMN "reduce" TEXT;)",
    // 9: who decodes images.
    R"(ALTER TABLE "runs" ADD COLUMN "decoder" TEXT;)",
};
static_assert(kMigrations.size() == kSchemaVersion - 1);

std::set<std::string> columns_of(sqlite::Connection& connection) {
  std::set<std::string> names;
  sqlite::Statement list(connection,
                         "SELECT m.name || '.' || c.name FROM sqlite_master m, "
                         "pragma_table_info(m.name) c WHERE m.type = 'table'");
  while (list.step()) names.insert(list.text(0));
  return names;
}

struct StoredV4 {
  RunId id = 0;
  RunV4 run;
};

std::vector<StoredV4> runs_of_version_4(sqlite::Connection& connection) {
  const auto number = [](const char* name) {
    return fmt::format(
        R"((SELECT "value" FROM "run_numbers" WHERE "run" = r."id" AND "name" = '{}'))", name);
  };
  const auto first_epoch = [](const char* column) {
    return fmt::format(
        R"((SELECT "{}" FROM "epochs" WHERE "run" = r."id" ORDER BY "number" LIMIT 1))", column);
  };
  sqlite::Statement list(
      connection,
      fmt::format(R"(SELECT "id", "command", "arguments", {}, {}, {}, {}, {},
                       (SELECT json_extract("fingerprint", '$.cpu.usable_processors')
                        FROM "environments"
                        WHERE "key" = r."environment" AND json_valid("fingerprint")),
                       {}, {} FROM "runs" r)",
                  number("learning_rate"), number("test_samples"), number("target_accuracy"),
                  first_epoch("epoch"), first_epoch("samples"), quoted_fields<WorkV4>(),
                  quoted_fields<ExecutorV4>()));
  std::vector<StoredV4> all;
  while (list.step()) {
    RunV4 run;
    read_field(list, 1, run.command);
    read_field(list, 2, run.arguments);
    read_field(list, 3, run.learning_rate);
    read_field(list, 4, run.test_samples);
    read_field(list, 5, run.target_accuracy);
    read_field(list, 6, run.first_epoch);
    read_field(list, 7, run.first_epoch_samples);
    read_field(list, 8, run.processors);
    read_row(list, 9, run.work);
    read_row(list, 9 + static_cast<int>(field_names<WorkV4>().size()), run.executor);
    all.push_back({list.integer(0), std::move(run)});
  }
  return all;
}

void move_identity(sqlite::Connection& connection) {
  const std::set<std::string> columns = columns_of(connection);
  // Fields of later versions have no column yet.
  const auto visit = [&](const Identity& identity, auto&& body) {
    const auto of_this_version = [&](std::string_view name, const auto& value) {
      if (columns.contains(fmt::format("runs.{}", name))) body(name, value);
    };
    visit_fields(identity.work, of_this_version);
    visit_fields(identity.executor, of_this_version);
  };
  std::string names;
  visit({}, [&](std::string_view name, const auto&) {
    names += fmt::format("{}\"{}\" = ?", names.empty() ? "" : ", ", name);
  });
  sqlite::Statement update(connection,
                           fmt::format("UPDATE \"runs\" SET {} WHERE \"id\" = ?", names));
  sqlite::Statement note(connection,
                         "INSERT OR REPLACE INTO \"run_notes\" (\"run\", \"name\", \"value\") "
                         "VALUES (?, 'migrated', ?)");
  for (const StoredV4& stored : runs_of_version_4(connection)) {
    const Identity identity = typed_identity(stored.run);
    int parameter = 1;
    visit(identity,
          [&](std::string_view, const auto& value) { bind_field(update, parameter++, value); });
    update.bind(parameter, stored.id);
    update.run();
    note.bind(1, stored.id);
    note.bind(2,
              has_command_line(stored.run)
                  ? std::string_view("from schema 4; options that it did not keep were read from "
                                     "the command line")
                  : std::string_view("from schema 4"));
    note.run();
  }
}

void migrate(sqlite::Connection& connection, std::int64_t from) {
  connection.execute(kMigrations[static_cast<std::size_t>(from - 1)]);
  if (from != 4) return;
  move_identity(connection);
  connection.execute(
      R"(ALTER TABLE "runs" DROP COLUMN "variant"; ALTER TABLE "runs" DROP COLUMN "options";
         DELETE FROM "run_numbers"
         WHERE "name" IN ('learning_rate', 'test_samples', 'target_accuracy');)");
}

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
    bad_input("{}: is an SQLite database of another program, not a store", connection.name());
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
    migrate(connection, from);
  }
  connection.execute(fmt::format("PRAGMA user_version = {}", kSchemaVersion));
  transaction.commit();
}

void check_schema(sqlite::Connection& connection) {
  const std::set<std::string> present = columns_of(connection);
  for (const Table& each : tables()) {
    for (const Column& column : each.columns) {
      const std::string name = fmt::format("{}.{}", each.name, column.name);
      if (!present.contains(name)) {
        bad_input("{}: the store is damaged: '{}' is missing", connection.name(), name);
      }
    }
  }
}

}  // namespace ridgeline
