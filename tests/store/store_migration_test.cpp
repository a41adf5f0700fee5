// Stores of older programs keep all that they hold.

#include <gtest/gtest.h>

#include <map>

#include "base/text_file.h"
#include "store/schema.h"
#include "store/sqlite.h"
#include "store/store.h"
#include "support/source_dir.h"
#include "support/store_rows.h"
#include "support/store_test_folder.h"

namespace ridgeline {
namespace {

namespace fs = std::filesystem;
using namespace ridgeline::testing;

// A store that an older program made, kept as text.
fs::path older_store(const fs::path& file, int version) {
  const std::string text =
      read_text(source_dir() / fmt::format("tests/data/store_v{}.sql", version));
  sqlite::Connection connection(file, sqlite::Access::write_or_create);
  connection.execute(text);
  EXPECT_EQ(connection.number("PRAGMA user_version"), version);
  return file;
}

// Everything that a store has of its runs.
std::string contents_of(const Store& store) {
  std::string text;
  for (const RunRecord& run : store.runs()) {
    text += words(run) + nlohmann::ordered_json(run.numbers).dump() +
            nlohmann::ordered_json(run.notes).dump() + '\n';
    const auto add = [&](const auto& rows) {
      for (const auto& row : rows) text += words(row) + '\n';
    };
    add(store.samples(run.id));
    add(store.steps(run.id));
    add(store.readings(run.id));
    add(store.memory(run.id));
    add(store.findings(run.id));
    add(store.epochs(run.id));
    add(store.live_bytes(run.id));
    add(store.timeline(run.id));
  }
  for (const EnvironmentRecord& environment : store.environments()) {
    text += words(environment) + '\n';
    for (Ceiling ceiling : store.ceilings(environment.key)) {
      ceiling.measured = "";  // version 1 did not know; who writes it again fills it in
      text += words(ceiling) + '\n';
    }
  }
  for (const StudyRecord& study : store.studies()) {
    text += words(study) + '\n';
    for (const StudyItemRecord& item : store.study_items(study.uuid)) text += words(item) + '\n';
  }
  return text;
}

class StoreMigration : public StoreTest {};

TEST_F(StoreMigration, EveryOlderVersionIsReadWrittenAndImportedWithAllItsRows) {
  for (int version = 1; version < kSchemaVersion; ++version) {
    SCOPED_TRACE(version);
    const fs::path file = older_store(path(fmt::format("v{}.db", version)), version);
    const std::string before = read_text(file);
    const std::string read = contents_of(Store::open_existing(file));
    EXPECT_EQ(contents_of(Store::open_existing(file)), read);
    EXPECT_EQ(read_text(file), before) << "reading leaves the file as it is";
    const fs::path fresh = path(fmt::format("fresh{}.db", version));
    {
      Store target(fresh);
      EXPECT_EQ(target.import(file), Store::open_existing(file).run_count());
      EXPECT_EQ(target.import(file), 0);
      EXPECT_EQ(contents_of(target), read) << "imported";
      EXPECT_EQ(target.ceilings("desk-key").size(), 2U);
      if (version > 1) {
        EXPECT_EQ(target.ceilings("desk-key")[0].measured, "2026-11-01T09:00:00.000Z");
      }
    }
    {
      Store store(file);
      EXPECT_EQ(contents_of(store), read) << "migrated";
      const RunId last = store.runs().back().id;
      EXPECT_GT(write_example(store), last);
    }
    // A migrated file has the columns of a new one.
    const auto columns = [](const fs::path& of) {
      sqlite::Connection connection(of, sqlite::Access::read);
      EXPECT_EQ(connection.number("PRAGMA user_version"), kSchemaVersion);
      EXPECT_EQ(connection.word("PRAGMA integrity_check"), "ok");
      return connection.word(
          "SELECT group_concat(n, ' ') FROM (SELECT m.name || '.' || c.name || ' ' || c.type || "
          "c.\"notnull\" || c.pk AS n FROM sqlite_master m, pragma_table_info(m.name) c "
          "WHERE m.type = 'table' ORDER BY n)");
    };
    EXPECT_EQ(columns(file), columns(fresh));
  }
}

// What every run of a kind has in the stores under tests/data.
RunRecord usual(const std::string& model) {
  RunRecord run;
  run.work.model = model;
  if (model == "mlp") {
    run.work.settings = {{"activation", "relu"}, {"depth", "1"}, {"hidden", "10"}};
  } else {
    run.work.settings = {{"activation", "relu"},
                         {"blocks", "0"},
                         {"filters", "8,16"},
                         {"hidden", "128"},
                         {"kernel", "3"}};
  }
  run.work.image = {1, 28, 28};
  run.work.classes = 10;
  run.work.optimizer = "sgd";
  run.work.learning_rate = 0.01;
  run.executor.backend = "native";
  run.executor.device = "cpu";
  run.executor.threads = 2;
  return run;
}
RunRecord usual_bench(const std::string& model, std::int64_t batch) {
  RunRecord run = usual(model);
  run.work.batch = batch;
  run.work.momentum = 0.9;
  return run;
}
// Loaders had one thread for each of the machine's four processors.
RunRecord usual_training(const std::string& model, std::int64_t batch) {
  RunRecord run = usual(model);
  run.work.batch = batch;
  run.work.data_samples = 48;
  run.work.test_samples = 16;
  run.work.loader = true;
  run.work.epochs = 1;
  run.executor.workers = 4;
  return run;
}
RunRecord usual_full_batch() {
  RunRecord run = usual_training("mlp", 48);
  run.work.full_batch = true;
  run.work.loader = false;
  run.work.optimizer = "adam";
  run.work.learning_rate = 0.001;
  run.executor.workers = 0;
  return run;
}

TEST_F(StoreMigration, WordsOfVersion4BecomeTypedValues) {
  std::map<RunId, RunRecord> wanted;
  RunRecord* run = &(wanted[1] = usual_bench("mlp", 32));
  run->work.settings["hidden"] = "16,8";
  run->work.init = "he";
  run->work.learning_rate = 0.05;
  run->work.momentum = 0.8;
  run->work.nesterov = true;
  run->work.weight_decay = 0.0001;
  run->executor.deterministic = true;
  run->executor.disabled_passes = {"fusion", "inplace"};

  run = &(wanted[3] = usual_bench("mnist_cnn", 16));
  run->work.settings["filters"] = "4,8";
  run->work.freeze = {"conv1.*", "conv2.*"};
  run->work.label_smoothing = 0.1;
  run->work.optimizer = "adamw";
  run->work.learning_rate = 0.001;
  run->work.momentum = 0.0;
  run->work.weight_decay = 0.01;
  run->work.normalisation = {0.1307, 0.3081};
  run->work.loader = true;
  run->work.data_samples = 64;
  run->executor.recompute = true;
  run->executor.workers = 2;

  wanted[4] = usual_bench("mlp", 8);  // --batch 8,full --samples 24
  run = &(wanted[5] = usual_bench("mlp", 24));
  run->work.full_batch = true;
  run->work.data_samples = 24;

  run = &(wanted[6] = usual_bench("mlp", 1));
  run->work.kind = "inference";
  run->work.optimizer = "";
  run->work.learning_rate = std::nullopt;
  run->work.momentum = 0.0;

  run = &(wanted[8] = usual_training("mnist_cnn", 20));
  run->work.init = "he";
  run->work.learning_rate = 0.02;
  run->work.momentum = 0.9;
  run->work.augment = "flip";
  run->work.last_batch = "drop";
  run->work.epochs = 2;
  run->work.target_accuracy = 0.995;
  run->work.schedule = "step";
  run->work.schedule_step = 1;
  run->work.schedule_gamma = 0.5;
  run->executor.workers = 3;
  run->executor.recompute = true;
  run->executor.disabled_passes = {"fusion"};

  run = &(wanted[9] = usual_full_batch());
  run->work.epochs = 4;
  run = &(wanted[10] = usual_full_batch());  // resumed after iteration 4
  run->work.epochs = 7;
  run->work.first_epoch = 4;

  wanted[11] = usual_training("mlp", 16);
  run = &(wanted[12] = usual_training("mlp", 16));  // resumed after epoch 1
  run->work.epochs = 2;
  run->work.first_epoch = 1;

  run = &(wanted[13] = usual_training("mnist_cnn", 8));  // photographs
  run->work.image = {3, 16, 16};
  run->work.classes = 2;
  run->work.data = "photos";
  run->work.data_samples = 22;
  run->work.test_samples = 2;
  run->work.normalisation = {0.485, 0.456, 0.406, 0.229, 0.224, 0.225};
  run->work.augment = "crop";

  run = &(wanted[14] = usual_bench("mlp", 16));  // profile
  run->work.learning_rate = 0.3;

  run = &(wanted[15] = usual_bench("mlp", 16));
  run->executor.backend = "torch-cpu";
  run->executor.modes = {"amp", "channels_last"};

  run = &(wanted[18] = usual_bench("mlp", 8));  // of a worker that measured alone
  run->work.settings["hidden"] = "12";
  run->work.learning_rate = 0.04;
  run->executor.backend = "numpy";
  run->executor.threads = 1;

  wanted[19] = usual_bench("mlp", 16);  // of a study

  run = &(wanted[20] = usual_training("mlp", 16));
  run->work.weights = "start.safetensors";
  run->work.epochs = 3;
  run->work.schedule = "cosine";
  run->work.warmup_epochs = 1;
  run->executor.deterministic = true;

  const Store store = Store::open_existing(older_store(path(), 4));
  std::map<RunId, RunRecord> read;
  for (const RunRecord& each : store.runs()) read[each.id] = each;
  ASSERT_EQ(read.size(), wanted.size());
  for (const auto& [id, each] : wanted) {
    SCOPED_TRACE(read.at(id).arguments);
    EXPECT_EQ(words(read.at(id).work), words(each.work));
    EXPECT_EQ(words(read.at(id).executor), words(each.executor));
    EXPECT_EQ(read.at(id).network, "");
    for (const char* name : {"learning_rate", "test_samples", "target_accuracy"}) {
      EXPECT_FALSE(read.at(id).numbers.contains(name)) << name;
    }
    expect_contains(read.at(id).notes.at("migrated"), {"from schema 4"});
  }
  expect_contains(read.at(1).notes.at("migrated"), {"read from the command line"});
  EXPECT_EQ(read.at(18).notes.at("migrated"), "from schema 4");
  EXPECT_EQ(read.at(19).item, "speed/mlp/batch=16");
  EXPECT_EQ(store.study_items(read.at(19).study).size(), 2U);
}

TEST_F(StoreMigration, WordsThatAreNotUnderstoodKeepRunsApart) {
  (void)older_store(path(), 4);
  {
    sqlite::Connection connection(path(), sqlite::Access::write);
    connection.execute(
        "UPDATE runs SET settings = 'wide,deep', optimizer = 'lion beta 0.9', image = '28x28', "
        "normalisation = 'whitened', variant = 'dropout=0.5,loader', arguments = NULL "
        "WHERE id = 4");
  }
  const RunRecord run = Store::open_existing(path()).run("4");
  EXPECT_EQ(run.work.optimizer, "lion beta 0.9");
  EXPECT_EQ(run.work.learning_rate, std::nullopt);
  EXPECT_EQ(run.work.image, ImageShape{});
  EXPECT_TRUE(run.work.loader);
  EXPECT_EQ(run.work.settings, (Settings{{"activation", "relu"},
                                         {"depth", "1"},
                                         {"hidden", "10"},
                                         {"image", "28x28"},
                                         {"normalisation", "whitened"},
                                         {"settings", "wide,deep"},
                                         {"variant", "dropout=0.5"}}));
}

}  // namespace
}  // namespace ridgeline
