// The store: what is written is read again, whatever happens in between.

#include "store/store.h"

#include <gtest/gtest.h>
#include <signal.h>
#include <sys/wait.h>
#include <unistd.h>

#include <cmath>
#include <fstream>
#include <set>
#include <thread>

#include "store/columns.h"
#include "store/field_json.h"
#include "store/rows.h"
#include "store/schema.h"
#include "support/data_files.h"
#include "support/small_disk.h"
#include "support/source_dir.h"
#include "support/store_rows.h"

namespace ridgeline {
namespace {

namespace fs = std::filesystem;
using namespace ridgeline::testing;

class StoreTest : public FileTest {
 protected:
  [[nodiscard]] fs::path path(const std::string& name = "r.db") const { return folder_ / name; }
  [[nodiscard]] std::string bytes(const fs::path& file) const {
    std::ifstream stream(file, std::ios::binary);
    return {std::istreambuf_iterator<char>(stream), std::istreambuf_iterator<char>()};
  }
};

template <typename Row>
std::string words(const Row& row) {
  std::string text;
  visit_fields(row, [&](std::string_view name, const auto& field) {
    text += fmt::format("{}={} ", name, value_json(field).dump());
  });
  return text;
}

// What stands beside the store.
std::set<std::string> files_in(const fs::path& folder) {
  std::set<std::string> names;
  for (const auto& entry : fs::directory_iterator(folder)) names.insert(entry.path().filename());
  return names;
}

TEST_F(StoreTest, NothingButTheStoreStaysBehind) {
  const std::set<std::string> alone = {"r.db"};
  {
    Store store(path());
    (void)write_example(store);
  }
  EXPECT_EQ(files_in(folder_), alone) << "after writing";
  const std::string before = bytes(path());
  EXPECT_EQ(Store::open_existing(path()).run_count(), 1);
  EXPECT_EQ(files_in(folder_), alone) << "after reading";
  EXPECT_EQ(bytes(path()), before) << "reading changes nothing";
  {
    // A reader that outlives a writer, as a command has that reads runs and measures ceilings.
    const Store reader = Store::open_existing(path());
    EXPECT_EQ(reader.run_count(), 1);
    {
      Store writer(path());
      (void)write_example(writer);
    }
    EXPECT_EQ(reader.run_count(), 2);
  }
  EXPECT_EQ(files_in(folder_), alone) << "after both";
  EXPECT_EQ(Store::open_existing(path()).run_count(), 2);
}

TEST_F(StoreTest, AReaderTidiesUpAfterAKilledWriterAndLosesNothing) {
  const pid_t child = fork();
  if (child == 0) {
    Store store(path());
    (void)write_example(store);
    (void)kill(getpid(), SIGKILL);
  }
  int status = 0;
  ASSERT_EQ(waitpid(child, &status, 0), child);
  ASSERT_TRUE(WIFSIGNALED(status));
  ASSERT_GT(fs::file_size(path().string() + "-wal"), 0U) << "the rows are still in the log";
  EXPECT_EQ(Store::open_existing(path()).run_count(), 1);
  EXPECT_EQ(files_in(folder_), (std::set<std::string>{"r.db"}));
  EXPECT_EQ(Store::open_existing(path()).run_count(), 1);
}

TEST_F(StoreTest, AReaderCannotWrite) {
  {
    Store store(path());
    (void)write_example(store);
  }
  Store reader = Store::open_existing(path());
  EXPECT_THROW((void)reader.begin(RunRecord{}), Error);
  EXPECT_EQ(reader.run_count(), 1);
}

TEST_F(StoreTest, EveryFieldOfEveryRecordComesBack) {
  RunId id = 0;
  {
    Store store(path());
    id = write_example(store);
  }
  const Store store = Store::open_existing(path());
  const RunRecord run = store.run("last");
  EXPECT_EQ(run.id, id);
  EXPECT_EQ(run.work, example_run().work);
  EXPECT_EQ(run.executor, example_run().executor);
  EXPECT_EQ(run.label, example_run().label);
  EXPECT_EQ(run.seed, 7);
  EXPECT_EQ(run.network, example_network().key);
  EXPECT_EQ(store.network(run.network).value().description, example_network().description);
  EXPECT_EQ(run.status, RunStatus::complete);
  EXPECT_EQ(run.uuid.size(), 36U);
  EXPECT_LE(run.started, run.finished);
  EXPECT_EQ(run.started.size(), 24U);
  EXPECT_EQ(run.numbers,
            (std::map<std::string, double>{{"training_flops", 1e9}, {"median_seconds", 0.002}}));
  EXPECT_EQ(run.notes, (std::map<std::string, std::string>{{"clock", "host"}, {"parity", "n/a"}}));
  const std::vector<Sample> wanted = example_samples(12), read = store.samples(id);
  ASSERT_EQ(read.size(), wanted.size());
  for (std::size_t i = 0; i < read.size(); ++i) EXPECT_EQ(words(read[i]), words(wanted[i]));
  ASSERT_EQ(store.steps(id).size(), 2U);
  EXPECT_EQ(store.steps(id)[1].kernel, "native:dense");
  EXPECT_EQ(store.steps(id)[1].bytes_written, 2000);
  EXPECT_FALSE(store.steps(id)[1].counted_bytes.has_value());
  EXPECT_EQ(store.steps(id)[1].covers, "forward linear fc1; forward bias fc1");
  ASSERT_EQ(store.readings(id).size(), 3U);
  EXPECT_EQ(words(store.readings(id)[2]), words(Reading{0.2, "cuda:0", "gpu_power_watts", 70.5}));
  EXPECT_EQ(store.memory(id).at(0).bytes, 4096);
  EXPECT_EQ(store.findings(id).at(0).evidence, "80% of the time, waiting");
  EXPECT_EQ(store.epochs(id).at(0).test_accuracy, 0.9);
  EXPECT_FALSE(store.epochs(id).at(0).test_loss.has_value());
  EXPECT_EQ(store.live_bytes(id).at(1).bytes, 1024);
  EXPECT_EQ(words(store.timeline(id).at(0)),
            words(TimelineEntry{"step", "fc1 dense", "host", 0.0, 0.001, 0}));
  const std::vector<Ceiling> ceilings = store.ceilings("feed");
  ASSERT_EQ(ceilings.size(), 1U);
  EXPECT_EQ(ceilings[0].value, 1e11);
  EXPECT_EQ(ceilings[0].measured.size(), 24U);
  EXPECT_EQ(store.environments().at(0).fingerprint, example_environment().fingerprint);
}

TEST_F(StoreTest, RowsOfLaterCallsComeBehindAndEmptyCallsChangeNothing) {
  Store store(path());
  store.add(example_environment());
  const RunId id = store.begin(example_run());
  store.add(id, std::span<const Sample>{});
  store.add(id, example_samples(5));
  store.add(id, example_samples(5, 5));
  const std::vector<Sample> samples = store.samples(id);
  ASSERT_EQ(samples.size(), 10U);
  for (std::int64_t i = 0; i < 10; ++i) {
    EXPECT_EQ(samples[static_cast<std::size_t>(i)].iteration, i);
  }
  EXPECT_EQ(store.sample_count(id, SampleKind::warmup), 2);
  EXPECT_EQ(store.sample_count(id, SampleKind::measured), 8);
}

TEST_F(StoreTest, WhatIsNotANumberIsNullAndComesBackSo) {
  Store store(path());
  store.add(example_environment());
  const RunId id = store.begin(example_run());
  EpochRecord epoch;
  epoch.train_loss = std::nan("");
  store.add(id, std::vector<EpochRecord>{epoch});
  EXPECT_TRUE(std::isnan(store.epochs(id).at(0).train_loss));
  EXPECT_EQ(store.epochs(id).at(0).train_accuracy, 0.0);
}

TEST_F(StoreTest, RunsAreFilteredAndNamed) {
  Store store(path());
  store.add(example_environment());
  RunRecord run = example_run();
  for (const char* uuid : {"aaaa0000", "aabb0000", "12cc0000"}) {
    run.uuid = uuid;
    run.work.model = uuid[0] == '1' ? "resnet18" : "mlp";
    (void)store.begin(run);
  }
  EXPECT_EQ(store.run("2").uuid, "aabb0000");
  EXPECT_EQ(store.run("12cc").uuid, "12cc0000");
  // A number is a number, also where a uuid begins so.
  expect_contains(refusal([&] { (void)store.run("12"); }), {"no run '12'"});
  EXPECT_EQ(store.run("aab").uuid, "aabb0000");
  EXPECT_EQ(store.run("last").uuid, "12cc0000");
  EXPECT_EQ(store.run("last~2").uuid, "aaaa0000");
  expect_contains(refusal([&] { (void)store.run("aa"); }), {"more than one", "1", "2"});
  expect_contains(refusal([&] { (void)store.run("last~3"); }), {"only 3 runs"});
  expect_contains(refusal([&] { (void)store.run("zz"); }), {"no run 'zz'", "store list"});
  EXPECT_EQ(store.runs({{"model", "mlp"}}).size(), 2U);
  EXPECT_EQ(store.runs({{"model", "mlp"}, {"hidden", "64,32"}}).at(1).uuid, "aabb0000");
  EXPECT_EQ(store.runs({{"device", "cuda:0"}}).size(), 0U);
  EXPECT_EQ(store.runs({{"label", ""}}).size(), 0U);
  EXPECT_EQ(store.run_count(), 3);
  run.environment = "unknown";
  run.uuid = "dd";
  EXPECT_THROW((void)store.begin(run), Error);
  EXPECT_EQ(store.run_count(), 3);
}

TEST_F(StoreTest, DeletingARunTakesItsRowsAndNoOthers) {
  Store store(path());
  const RunId first = write_example(store), second = write_example(store);
  store.remove(std::vector<RunId>{second});
  EXPECT_EQ(store.run_count(), 1);
  EXPECT_EQ(store.samples(first).size(), 12U);
  sqlite::Connection connection(path(), sqlite::Access::read);
  for (const Table& each : tables()) {
    if (each.key.starts_with("run,")) {
      EXPECT_EQ(connection.number(
                    fmt::format("SELECT count(*) FROM \"{}\" WHERE run = {}", each.name, second)),
                0)
          << each.name;
    }
  }
  EXPECT_GT(write_example(store), second);  // numbers are not used again
}

TEST_F(StoreTest, StudiesAndTheirItemsAreReplacedByWhatIsPut) {
  Store store(path());
  store.add(example_environment());
  StudyRecord study = example_study();
  store.put(study);
  store.put(example_items());
  study.finished = utc_now();
  store.put(study);  // its items stay
  std::vector<StudyItemRecord> items = example_items();
  items[1].status = ItemStatus::left_out;
  items[1].reason = "no GPU";
  store.put(std::span(items).subspan(1, 1));
  ASSERT_EQ(store.studies().size(), 1U);
  EXPECT_EQ(words(store.studies()[0]), words(study));
  const std::vector<StudyItemRecord> read = store.study_items(study.uuid);
  ASSERT_EQ(read.size(), items.size());
  for (std::size_t i = 0; i < read.size(); ++i) EXPECT_EQ(words(read[i]), words(items[i]));
  RunRecord run = example_run();
  run.study = study.uuid;
  run.item = read[0].key;
  (void)store.begin(run);
  (void)write_example(store);
  ASSERT_EQ(store.runs({{"study", study.uuid}}).size(), 1U);
  EXPECT_EQ(store.runs({{"study", study.uuid}})[0].item, read[0].key);
}

TEST_F(StoreTest, CeilingsOfADeviceAreReplacedTogether) {
  Store store(path());
  store.add(example_environment());
  Ceiling cpu, gpu;
  cpu.device = "cpu";
  gpu.device = "cuda:0";
  store.replace_ceilings("feed", "cpu", std::vector<Ceiling>{cpu, cpu, cpu});
  store.replace_ceilings("feed", "cuda:0", std::vector<Ceiling>{gpu});
  store.replace_ceilings("feed", "cpu", std::vector<Ceiling>{cpu});
  EXPECT_EQ(store.ceilings("feed").size(), 2U);
  EXPECT_THROW(store.replace_ceilings("feed", "cpu", std::vector<Ceiling>{gpu}), Error);
  EXPECT_EQ(store.ceilings("feed").size(), 2U);
}

TEST_F(StoreTest, FilesThatAreNoStoreAreRefusedAndLeftAsTheyAre) {
  const fs::path text = write("notes.txt", "no database at all, but longer than a header");
  expect_contains(refusal([&] { Store store(text); }), {"notes.txt", "not an SQLite database"});
  EXPECT_EQ(bytes(text), "no database at all, but longer than a header");
  expect_contains(refusal([&] { Store store(write("r.json", "{}")); }), {"store import"});
  expect_contains(refusal([&] { Store store(folder_); }), {"is a folder"});
  expect_contains(refusal([&] { Store store(path("no/r.db")); }), {"no folder"});
  expect_contains(refusal([&] { (void)Store::open_existing(path()); }), {"does not exist"});
  EXPECT_FALSE(fs::exists(path()));
  {
    sqlite::Connection other(path("other.db"), sqlite::Access::write_or_create);
    other.execute("CREATE TABLE bookmarks (url TEXT)");
  }
  const std::string before = bytes(path("other.db"));
  expect_contains(refusal([&] { Store store(path("other.db")); }), {"another program"});
  EXPECT_EQ(bytes(path("other.db")), before);
}

TEST_F(StoreTest, AStoreOfANewerProgramIsRefused) {
  { Store store(path()); }
  {
    sqlite::Connection connection(path(), sqlite::Access::write);
    connection.execute(fmt::format("PRAGMA user_version = {}", kSchemaVersion + 1));
  }
  const std::string before = bytes(path());
  expect_contains(refusal([&] { Store store(path()); }),
                  {"newer Ridgeline", fmt::format("version {}", kSchemaVersion + 1)});
  expect_contains(refusal([&] { (void)Store::open_existing(path()); }), {"newer Ridgeline"});
  EXPECT_EQ(bytes(path()), before);
}

TEST_F(StoreTest, DamagedStoresAreRefused) {
  {
    Store store(path());
    (void)write_example(store, 5000);
  }
  const std::string whole = bytes(path());
  // Cut off: the header speaks of more pages than there are.
  const fs::path cut = write("cut.db", whole.substr(0, whole.size() / 2));
  expect_contains(refusal([&] { (void)Store::open_existing(cut).samples(1); }), {"damaged"});
  // Overwritten in the middle.
  std::string broken = whole;
  for (std::size_t i = 8192; i + 4096 < broken.size(); i += 4096) broken.replace(i, 64, 64, '\xff');
  const fs::path overwritten = write("overwritten.db", broken);
  expect_contains(refusal([&] {
                    Store target(path("target.db"));
                    (void)target.import(overwritten);
                  }),
                  {"overwritten.db", "damaged"});
  EXPECT_EQ(Store::open_existing(path("target.db")).run_count(), 0);
  EXPECT_EQ(bytes(overwritten), broken);
  {
    sqlite::Connection connection(path(), sqlite::Access::write);
    connection.execute("DROP TABLE findings");
  }
  expect_contains(refusal([&] { Store store(path()); }), {"damaged", "findings.run"});
}

// A store that an older program made, kept as text.
fs::path older_store(const fs::path& file, int version) {
  std::ifstream dump(source_dir() / fmt::format("tests/data/store_v{}.sql", version));
  const std::string text{std::istreambuf_iterator<char>(dump), std::istreambuf_iterator<char>()};
  EXPECT_FALSE(text.empty()) << version;
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
    const std::string before = bytes(file);
    const std::string read = contents_of(Store::open_existing(file));
    EXPECT_EQ(contents_of(Store::open_existing(file)), read);
    EXPECT_EQ(bytes(file), before) << "reading leaves the file as it is";
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

// --- Disks, crashes, other writers
// ----------------------------------------------------------------

TEST_F(StoreTest, AFullDiskIsAFailureThatKeepsWhatWasCommitted) {
  RunId id = 0;
  {
    Store store(path());
    store.add(example_environment());
    id = store.begin(example_run());
    store.add(id, example_samples(100));
    const SmallDisk disk(200'000);
    try {
      store.add(id, example_samples(50'000, 100));
      ADD_FAILURE() << "the disk was large enough";
    } catch (const Error& error) {
      EXPECT_EQ(error.kind(), ErrorKind::failure);
      expect_contains(error.what(), {"r.db", "committed before is kept"});
    }
  }
  EXPECT_EQ(Store::open_existing(path()).samples(id).size(), 100U);
}

TEST_F(StoreTest, AStoreThatCannotBeWrittenIsAFailureAndCanBeRead) {
  try {
    Store store(fs::path("/proc/ridgeline.db"));
    ADD_FAILURE() << "/proc was written";
  } catch (const Error& error) {
    EXPECT_EQ(error.kind(), ErrorKind::failure);
    expect_contains(error.what(), {"/proc/ridgeline.db", "cannot be"});
  }
  {
    Store store(path());
    (void)write_example(store);
  }
  if (geteuid() == 0) return;  // whom permissions do not bind
  fs::permissions(path(), fs::perms::owner_read);
  fs::permissions(folder_, fs::perms::owner_read | fs::perms::owner_exec);
  EXPECT_THROW(Store store(path()), Error);
  EXPECT_EQ(Store::open_existing(path()).run_count(), 1);
  fs::permissions(folder_, fs::perms::owner_all);
}

TEST_F(StoreTest, AReadingStoreRefusesToWrite) {
  {
    Store store(path());
    (void)write_example(store);
  }
  Store reader = Store::open_existing(path());
  EXPECT_THROW((void)reader.begin(example_run()), Error);
  EXPECT_EQ(reader.run_count(), 1);
}

TEST_F(StoreTest, AKilledWriterLeavesAllThatItCommitted) {
  int ready[2];
  ASSERT_EQ(pipe(ready), 0);
  const pid_t child = fork();
  if (child == 0) {
    Store store(path());
    store.add(example_environment());
    const RunId id = store.begin(example_run());
    for (std::int64_t i = 0;; ++i) {
      store.add(id, example_samples(1, i));
      if (::write(ready[1], "x", 1) != 1) _exit(1);
    }
  }
  char told[50];
  std::int64_t committed = 0;
  while (committed < 50) {
    const ssize_t count = ::read(ready[0], told, sizeof(told));
    ASSERT_GT(count, 0);
    committed += count;
  }
  kill(child, SIGKILL);
  int status = 0;
  waitpid(child, &status, 0);
  ASSERT_TRUE(WIFSIGNALED(status));
  close(ready[0]);
  close(ready[1]);
  const Store store = Store::open_existing(path());
  const RunRecord run = store.run("last");
  EXPECT_EQ(run.status, RunStatus::running);
  const std::vector<Sample> samples = store.samples(run.id);
  EXPECT_GE(static_cast<std::int64_t>(samples.size()), committed);
  for (std::size_t i = 0; i < samples.size(); ++i) {
    EXPECT_EQ(samples[i].iteration, static_cast<std::int64_t>(i));
  }
}

TEST_F(StoreTest, TwoProcessesLoseNothing) {
  constexpr std::int64_t kCalls = 60;
  std::vector<pid_t> children;
  for (int c = 0; c < 2; ++c) {
    children.push_back(fork());
    if (children.back() != 0) continue;
    try {
      Store store(path());  // both try to make it
      store.add(example_environment());
      const RunId id = store.begin(example_run());
      for (std::int64_t i = 0; i < kCalls; ++i) store.add(id, example_samples(20, 20 * i));
      store.finish(id, RunStatus::complete, "", {}, {});
      _exit(0);
    } catch (const std::exception& error) {
      fprintf(stderr, "%s\n", error.what());
      _exit(1);
    }
  }
  for (const pid_t child : children) {
    int status = 0;
    waitpid(child, &status, 0);
    EXPECT_EQ(status, 0);
  }
  const Store store = Store::open_existing(path());
  ASSERT_EQ(store.run_count(), 2);
  for (const RunRecord& run : store.runs()) {
    EXPECT_EQ(run.status, RunStatus::complete);
    EXPECT_EQ(store.samples(run.id).size(), static_cast<std::size_t>(20 * kCalls));
  }
}

class ThreadsStoreTest : public StoreTest {};

TEST_F(ThreadsStoreTest, TwoThreadsOnOneRunLoseNothing) {
  RunId id = 0;
  {
    Store store(path());
    store.add(example_environment());
    id = store.begin(example_run());
  }
  std::vector<std::thread> threads;
  for (std::int64_t process = 0; process < 2; ++process) {
    threads.emplace_back([&, process] {
      Store store(path());
      for (std::int64_t i = 0; i < 40; ++i) {
        std::vector<Sample> samples = example_samples(5, 5 * i);
        for (Sample& sample : samples) sample.process = process;
        store.add(id, samples);
      }
    });
  }
  for (std::thread& thread : threads) thread.join();
  std::set<std::pair<std::int64_t, std::int64_t>> seen;
  for (const Sample& sample : Store::open_existing(path()).samples(id)) {
    seen.insert({sample.process, sample.iteration});
  }
  EXPECT_EQ(seen.size(), 400U);
}

template <typename Row>
void expect_registered(std::string_view name, const std::set<std::string_view>& keys) {
  std::set<std::string_view> columns, fields = keys;
  for (const Column& column : table(name).columns) columns.insert(column.name);
  for (const std::string_view field : field_names<Row>()) fields.insert(field);
  EXPECT_EQ(columns, fields) << name;
}

TEST(StoreColumns, RecordsAndTablesHaveTheSameFields) {
  expect_registered<EnvironmentRecord>("environments", {});
  expect_registered<NetworkRecord>("networks", {});
  expect_registered<RunRecord>("runs", {"id"});
  expect_registered<Sample>("samples", {"run", "number"});
  expect_registered<StepTime>("steps", {"run", "number"});
  expect_registered<Reading>("readings", {"run", "number"});
  expect_registered<MemoryEntry>("memory", {"run", "number"});
  expect_registered<Finding>("findings", {"run", "number"});
  expect_registered<EpochRecord>("epochs", {"run", "number"});
  expect_registered<LiveEntry>("live_bytes", {"run", "number"});
  expect_registered<TimelineEntry>("timeline", {"run", "number"});
  expect_registered<StudyRecord>("studies", {});
  expect_registered<StudyItemRecord>("study_items", {});
  expect_registered<Ceiling>("ceilings", {"environment", "number"});
}

TEST(StoreColumns, UnitsStandInTheNames) {
  const std::vector<std::pair<std::string_view, std::string_view>> words = {
      {"s", "seconds"},
      {"B", "bytes"},
      {"FLOP", "flops"},
      {"MHz", "mhz"},
      {"J", "joules"},
      {"W", "watts"},
      {"%", "percent"},
      {"°C", "celsius"},
      {"Hz", "hz"},
      {"B/s", "bytes_per_second"},
      {"FLOP/s", "flops_per_second"},
      {"1/s", "per_second"},
      {"samples/s", "samples_per_second"}};
  const auto check = [&](std::string_view name, std::string_view unit) {
    for (const auto& [symbol, word] : words) {
      if (unit != symbol) continue;
      EXPECT_NE(name.find(word), name.npos) << name << " in " << unit;
    }
  };
  for (const Table& each : tables()) {
    for (const Column& column : each.columns) check(column.name, column.unit);
  }
  std::set<std::string_view> seen;
  for (const auto& names : {number_names(), note_names(), sensor_names()}) {
    seen.clear();
    for (const RegisteredName& name : names) {
      check(name.name, name.unit);
      EXPECT_TRUE(seen.insert(name.name).second) << name.name << " is registered twice";
      EXPECT_FALSE(name.meaning.empty());
    }
  }
  EXPECT_NE(find_name(number_names(), "training_flops"), nullptr);
  EXPECT_EQ(find_name(number_names(), "training_flop"), nullptr);
}

TEST(StoreColumns, TheDocumentationNamesEveryTableAndColumn) {
  const fs::path page = source_dir() / "docs/store.md";
  std::ifstream stream(page);
  const std::string text{std::istreambuf_iterator<char>(stream), std::istreambuf_iterator<char>()};
  ASSERT_FALSE(text.empty()) << page;
  // 'ridgeline store columns' prints what must stand there.
  EXPECT_NE(text.find(registry_markdown()), text.npos);
  expect_contains(text, {fmt::format("version {}", kSchemaVersion),
                         fmt::format("(1 to {} today)", kSchemaVersion)});
}

}  // namespace
}  // namespace ridgeline
