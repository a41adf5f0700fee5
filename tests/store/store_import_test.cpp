// Merging stores and files of results.

#include <gtest/gtest.h>

#include <cmath>

#include "store/columns.h"
#include "store/sqlite.h"
#include "store/store.h"
#include "support/store_rows.h"
#include "support/store_test_folder.h"

namespace ridgeline {
namespace {

namespace fs = std::filesystem;
using namespace ridgeline::testing;

class StoreImport : public StoreTest {
 protected:
  // Everything in a store as text: equal text, equal contents.
  [[nodiscard]] static std::string contents(const fs::path& file) {
    sqlite::Connection connection(file, sqlite::Access::read);
    std::string text;
    for (const Table& each : tables()) {
      sqlite::Statement rows(connection, fmt::format("SELECT * FROM \"{}\"", each.name));
      while (rows.step()) {
        text += each.name;
        for (std::size_t i = 0; i < each.columns.size(); ++i) {
          const int column = static_cast<int>(i);
          text += '|' + (rows.is_null(column) ? std::string("NULL") : rows.text(column));
        }
        text += '\n';
      }
    }
    return text;
  }
};

TEST_F(StoreImport, ImportBringsWhatIsNewAndTwiceChangesNothing) {
  {
    Store other(path("other.db"));
    (void)write_example(other);
    (void)write_example(other);
  }
  {
    Store store(path());
    (void)write_example(store);
    EXPECT_EQ(store.import(path("other.db")), 2);
    EXPECT_EQ(store.run_count(), 3);
    EXPECT_EQ(store.samples(3).size(), 12U);
    EXPECT_EQ(store.epochs(3).size(), 1U);
    EXPECT_EQ(store.run("3").numbers.at("training_flops"), 1e9);
  }
  const std::string before = contents(path());
  Store store(path());
  EXPECT_EQ(store.import(path("other.db")), 0);
  EXPECT_EQ(store.import(path()), 0);  // itself
  EXPECT_EQ(contents(path()), before);
}

TEST_F(StoreImport, ImportBringsTheNetworksOfItsRuns) {
  {
    Store other(path("other.db"));
    (void)write_example(other);
  }
  Store store(path());
  EXPECT_EQ(store.import(path("other.db")), 1);
  EXPECT_EQ(store.run("last").network, example_network().key);
  EXPECT_EQ(store.network(example_network().key).value().description,
            example_network().description);
}

TEST_F(StoreImport, OfAStudyInBothStoresTheOneThatCameFurtherStays) {
  std::vector<StudyItemRecord> further = example_items();
  further[1].status = ItemStatus::done;
  {
    Store other(path("other.db"));
    other.add(example_environment());
    other.put(example_study());
    other.put(further);
  }
  Store store(path());
  store.add(example_environment());
  store.put(example_study());
  store.put(example_items());
  EXPECT_EQ(store.import(path("other.db")), 0);
  ASSERT_EQ(store.studies().size(), 1U);
  EXPECT_EQ(store.study_items(example_study().uuid).at(1).status, ItemStatus::done);
  Store behind(path("behind.db"));
  behind.add(example_environment());
  behind.put(example_study());
  behind.put(example_items());
  EXPECT_EQ(store.import(path("behind.db")), 0);
  EXPECT_EQ(store.study_items(example_study().uuid).at(1).status, ItemStatus::done);
}

TEST_F(StoreImport, ImportGoesOnWithARunThatWasUnfinished) {
  Store other(path("other.db"));
  other.add(example_environment());
  const RunId id = other.begin(example_run());
  other.add(id, example_samples(5));
  Store store(path());
  EXPECT_EQ(store.import(path("other.db")), 1);
  EXPECT_EQ(store.run("last").status, RunStatus::running);
  other.add(id, example_samples(3, 5));
  other.finish(id, RunStatus::interrupted, "by the user", {{"median_seconds", 1.0}}, {});
  EXPECT_EQ(store.import(path("other.db")), 0);
  const RunRecord run = store.run("last");
  EXPECT_EQ(run.status, RunStatus::interrupted);
  EXPECT_EQ(run.error, "by the user");
  EXPECT_EQ(run.numbers.at("median_seconds"), 1.0);
  EXPECT_EQ(store.samples(run.id).size(), 8U);
  EXPECT_EQ(store.samples(run.id).back().iteration, 7);
}

TEST_F(StoreImport, ImportKeepsTheNewerCeilings) {
  Ceiling ceiling;
  ceiling.device = "cpu";
  ceiling.measured = "2026-01-02T00:00:00.000Z";
  ceiling.value = 2.0;
  Store store(path()), other(path("other.db"));
  for (Store* each : {&store, &other}) each->add(example_environment());
  store.replace_ceilings("feed", "cpu", std::vector<Ceiling>{ceiling});
  ceiling.measured = "2026-01-01T00:00:00.000Z";
  ceiling.value = 1.0;
  other.replace_ceilings("feed", "cpu", std::vector<Ceiling>{ceiling});
  (void)store.import(path("other.db"));
  EXPECT_EQ(store.ceilings("feed").at(0).value, 2.0);
  ceiling.measured = "2026-01-03T00:00:00.000Z";
  ceiling.value = 3.0;
  other.replace_ceilings("feed", "cpu", std::vector<Ceiling>{ceiling});
  (void)store.import(path("other.db"));
  ASSERT_EQ(store.ceilings("feed").size(), 1U);
  EXPECT_EQ(store.ceilings("feed").at(0).value, 3.0);
}

const std::string kResults = R"({
  "ridgeline_import": 2,
  "environment": {"label": "a Mac", "host": "mac", "cpu": "M2", "gpus": "M2 GPU",
                  "fingerprint": {"os": "macOS 14", "libraries": {"torch": "2.4"}}},
  "runs": [{
    "started": "2026-11-01T10:00:00.000Z", "finished": "2026-11-01T10:01:00.000Z",
    "command": "bench", "label": "study 5", "seed": 3,
    "work": {"kind": "training", "model": "mnist_cnn", "settings": {"filters": "4,8"}, "batch": 512,
             "image": "1x28x28", "classes": 10, "precision": "fp32", "optimizer": "sgd",
             "learning_rate": 0.01, "momentum": 0.9, "nesterov": true,
             "freeze": ["fc*", "conv*", "fc*"], "normalisation": [0.1307, 0.3081]},
    "executor": {"backend": "torch-mps", "device": "mps", "threads": 8, "modes": ["compile"]},
    "numbers": {"setup_seconds": 1.5}, "notes": {"peer_version": "torch 2.4"},
    "samples": [{"iteration": 0, "kind": "warmup", "wall_seconds": 0.5},
                {"iteration": 1, "wall_seconds": 0.01, "device_seconds": null}],
    "memory": [{"device": "mps", "category": "framework", "source": "measured", "bytes": 1000}],
    "epochs": [{"epoch": 1, "samples": 60000, "seconds": 2.0, "train_loss": null}]
  }]})";

// The same run as former programs told it.
const std::string kOldWork = R"("work": {"kind": "training", "model": "mnist_cnn",
             "settings": "filters=4,8", "batch": 512, "image": "1x28x28", "classes": 10,
             "precision": "fp32", "optimizer": "sgd lr 0.01 momentum 0.9 nesterov",
             "data": "synthetic", "data_samples": 512,
             "normalisation": "(pixels / 255 - 0.1307) / 0.3081", "variant": "freeze=fc*,freeze=conv*"},
    "executor": {"backend": "torch-mps", "device": "mps", "threads": 8, "options": "compile"},)";

std::string replaced(std::string text, const std::string& from, const std::string& to) {
  const std::size_t at = text.find(from);
  EXPECT_NE(at, std::string::npos) << from;
  return text.replace(at, from.size(), to);
}

TEST_F(StoreImport, ResultsInJsonAreImportedOnce) {
  const fs::path file = write("mac.json", "\n " + kResults);
  Store store(path());
  EXPECT_EQ(store.import(file), 1);
  const RunRecord run = store.run("last");
  EXPECT_EQ(run.executor.backend, "torch-mps");
  EXPECT_EQ(run.executor.modes, NameList{"compile"});
  EXPECT_EQ(run.work.batch, 512);
  EXPECT_EQ(run.work.image, (ImageShape{1, 28, 28}));
  EXPECT_EQ(run.work.data, "synthetic");
  EXPECT_EQ(run.work.freeze, (NameList{"conv*", "fc*"}));
  EXPECT_EQ(run.work.normalisation, (NumberList{0.1307, 0.3081}));
  EXPECT_TRUE(run.work.nesterov);
  // Options that the file does not name are those of the model.
  EXPECT_EQ(run.work.settings, (Settings{{"activation", "relu"},
                                         {"blocks", "0"},
                                         {"filters", "4,8"},
                                         {"hidden", "128"},
                                         {"kernel", "3"}}));
  EXPECT_EQ(run.status, RunStatus::complete);
  EXPECT_EQ(run.started, "2026-11-01T10:00:00.000Z");
  EXPECT_EQ(run.numbers.at("setup_seconds"), 1.5);
  EXPECT_EQ(run.uuid.size(), 36U);
  ASSERT_EQ(store.samples(run.id).size(), 2U);
  EXPECT_EQ(store.samples(run.id)[0].kind, SampleKind::warmup);
  EXPECT_FALSE(store.samples(run.id)[1].device_seconds.has_value());
  EXPECT_TRUE(std::isnan(store.epochs(run.id).at(0).train_loss));
  const EnvironmentRecord environment = store.environments().at(0);
  EXPECT_EQ(environment.key, run.environment);
  EXPECT_EQ(environment.label, "a Mac");
  expect_contains(environment.fingerprint, {"macOS 14"});
  const std::string before = contents(path());
  EXPECT_EQ(store.import(file), 0);
  EXPECT_EQ(contents(path()), before);
}

TEST_F(StoreImport, ResultsOfTheFormerFormatSayTheSame) {
  Store store(path());
  EXPECT_EQ(store.import(write("new.json", kResults)), 1);
  const std::size_t begin = kResults.find("\"work\""), end = kResults.find("\"numbers\"");
  std::string old = kResults.substr(0, begin) + kOldWork + kResults.substr(end);
  old = replaced(old, "\"ridgeline_import\": 2", "\"ridgeline_import\": 1");
  EXPECT_EQ(store.import(write("old.json", old)), 1);
  EXPECT_EQ(store.run("last").work, store.run("last~1").work);
  EXPECT_EQ(store.run("last").executor, store.run("last~1").executor);
  // Some of the work stood among the numbers.
  old = replaced(old, "lr 0.01 ", "");
  old = replaced(old, "\"setup_seconds\": 1.5", "\"learning_rate\": 0.25, \"test_samples\": 40");
  EXPECT_EQ(store.import(write("older.json", old)), 1);
  EXPECT_EQ(store.run("3").work.learning_rate, 0.25);
  EXPECT_EQ(store.run("3").work.test_samples, 40);
  EXPECT_TRUE(store.run("3").numbers.empty());
}

TEST_F(StoreImport, WrongResultsAreRefusedWithTheirPlace) {
  Store store(path());
  const auto refuse = [&](const std::string& from, const std::string& to,
                          const std::vector<std::string>& parts) {
    const fs::path file = write("bad.json", replaced(kResults, from, to));
    expect_contains(refusal([&] { (void)store.import(file); }), parts);
  };
  refuse("\"ridgeline_import\": 2", "\"ridgeline_import\": 3", {"bad.json", "format 3", "1 to 2"});
  refuse("\"ridgeline_import\": 2", "\"else\": 2", {"'ridgeline_import' is missing"});
  refuse("\"ridgeline_import\": 2", "\"ridgeline_import\": 1", {"runs[0].work", "not a field"});
  refuse("\"1x28x28\"", "\"28x28\"", {"runs[0].work.image", "3x224x224"});
  refuse("{\"filters\": \"4,8\"}", "\"filters=4,8\"", {"runs[0].work.settings", "an object"});
  refuse("[\"compile\"]", "\"compile\"", {"runs[0].executor.modes", "a list of texts"});
  refuse("[0.1307, 0.3081]", "[\"0.1307\"]", {"runs[0].work.normalisation", "a list of numbers"});
  refuse("\"nesterov\": true", "\"nesterov\": 1", {"runs[0].work.nesterov", "true or false"});
  refuse("\"command\": \"bench\"", "\"network\": \"ne7\"", {"runs[0].network", "not a field"});
  refuse("\"wall_seconds\": 0.01", "\"wall_second\": 0.01",
         {"runs[0].samples[1].wall_second", "did you mean 'wall_seconds'"});
  refuse("\"wall_seconds\": 0.01", "\"wall_seconds\": \"fast\"",
         {"runs[0].samples[1].wall_seconds", "a number"});
  refuse("\"wall_seconds\": 0.01", "\"block\": 1", {"runs[0].samples[1].wall_seconds", "missing"});
  refuse("\"batch\": 512", "\"batch\": 1.5", {"runs[0].work.batch", "whole number"});
  refuse("\"batch\": 512", "\"batch\": 0", {"runs[0].work.batch", "at least 1"});
  refuse("\"kind\": \"warmup\"", "\"kind\": \"hot\"", {"kind", "warmup, measured, split"});
  refuse("\"executor\"", "\"notes2\"", {"runs[0].notes2"});
  refuse("\"started\": \"2026-11-01T10:00:00.000Z\", ", "", {"runs[0].started", "missing"});
  refuse("}]}", "}]", {"not JSON"});
  expect_contains(refusal([&] { (void)store.import(path("none.json")); }), {"no such file"});
  expect_contains(refusal([&] { (void)store.import(folder_); }), {"is a folder"});
  EXPECT_EQ(store.run_count(), 0);
  EXPECT_TRUE(store.environments().empty());
}

}  // namespace
}  // namespace ridgeline
