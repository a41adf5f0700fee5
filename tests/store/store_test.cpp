// The store: what is written is read again.

#include "store/store.h"

#include <gtest/gtest.h>
#include <signal.h>
#include <sys/wait.h>
#include <unistd.h>

#include <cmath>
#include <set>

#include "base/text_file.h"
#include "store/schema.h"
#include "store/sqlite.h"
#include "support/store_rows.h"
#include "support/store_test_folder.h"

namespace ridgeline {
namespace {

namespace fs = std::filesystem;
using namespace ridgeline::testing;

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
  const std::string before = read_text(path());
  EXPECT_EQ(Store::open_existing(path()).run_count(), 1);
  EXPECT_EQ(files_in(folder_), alone) << "after reading";
  EXPECT_EQ(read_text(path()), before) << "reading changes nothing";
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
  EXPECT_EQ(read_text(text), "no database at all, but longer than a header");
  expect_contains(refusal([&] { Store store(write("r.json", "{}")); }), {"store import"});
  expect_contains(refusal([&] { Store store(folder_); }), {"is a folder"});
  expect_contains(refusal([&] { Store store(path("no/r.db")); }), {"no folder"});
  expect_contains(refusal([&] { (void)Store::open_existing(path()); }), {"does not exist"});
  EXPECT_FALSE(fs::exists(path()));
  {
    sqlite::Connection other(path("other.db"), sqlite::Access::write_or_create);
    other.execute("CREATE TABLE bookmarks (url TEXT)");
  }
  const std::string before = read_text(path("other.db"));
  expect_contains(refusal([&] { Store store(path("other.db")); }), {"another program"});
  EXPECT_EQ(read_text(path("other.db")), before);
}

TEST_F(StoreTest, AStoreOfANewerProgramIsRefused) {
  { Store store(path()); }
  {
    sqlite::Connection connection(path(), sqlite::Access::write);
    connection.execute(fmt::format("PRAGMA user_version = {}", kSchemaVersion + 1));
  }
  const std::string before = read_text(path());
  expect_contains(refusal([&] { Store store(path()); }),
                  {"newer Ridgeline", fmt::format("version {}", kSchemaVersion + 1)});
  expect_contains(refusal([&] { (void)Store::open_existing(path()); }), {"newer Ridgeline"});
  EXPECT_EQ(read_text(path()), before);
}

TEST_F(StoreTest, DamagedStoresAreRefused) {
  {
    Store store(path());
    (void)write_example(store, 5000);
  }
  const std::string whole = read_text(path());
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
  EXPECT_EQ(read_text(overwritten), broken);
  {
    sqlite::Connection connection(path(), sqlite::Access::write);
    connection.execute("DROP TABLE findings");
  }
  expect_contains(refusal([&] { Store store(path()); }), {"damaged", "findings.run"});
}

}  // namespace
}  // namespace ridgeline
