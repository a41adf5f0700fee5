// Studies as a user runs them: to the end, interrupted and killed at random moments, two at once,
// with items that fail.

#include <chrono>
#include <random>
#include <set>
#include <thread>

#include "base/error.h"
#include "store/store.h"
#include "study/study_lock.h"
#include "support/program.h"

namespace ridgeline::testing {
namespace {

constexpr const char* kTiny = R"(
name = "tiny"
title = "A tiny study"
question = "Does it end?"
[[part]]
id = "speed"
command = "bench"
models = ["mlp"]
backends = ["native", "onednn", "cuda"]
batches = [4, 8, 16]
warmup = 1
iterations = 12
[[part]]
id = "training"
command = "train"
models = ["mlp"]
backends = ["native", "onednn"]
data = "cats-dogs"
substitute = "synthetic:1x28x28:10:120"
batches = [20]
epochs = 2
)";

class StudyRunTest : public ProgramTest {
 protected:
  void SetUp() override {
    ProgramTest::SetUp();
    write("tiny.toml", kTiny);
  }
  void write(const std::string& name, const std::string& text) const {
    std::ofstream(folder_ / name) << text;
  }

  // Everything about a study's rows that must not depend on how often it was interrupted.
  [[nodiscard]] std::multiset<std::string> rows(const std::string& store,
                                                const std::string& study) const {
    const Store opened = Store::open_existing(folder_ / store);
    std::multiset<std::string> all;
    std::string uuid;
    for (const StudyRecord& record : opened.studies()) {
      if (record.name != study) continue;
      EXPECT_EQ(uuid, "") << "two records of the study";
      EXPECT_NE(record.finished, "");
      uuid = record.uuid;
    }
    for (const StudyItemRecord& item : opened.study_items(uuid)) {
      all.insert(fmt::format("item {} {} {} {} {}", item.number, item.key, item.command,
                             static_cast<int>(item.status), item.substitute));
    }
    for (const RunRecord& run : opened.runs({{"study", uuid}})) {
      all.insert(fmt::format("run {} {} {} {} {} {} {} measured {} epochs {}", run.item,
                             run.command, static_cast<int>(run.status), run.work.model,
                             run.work.batch, run.work.data, run.executor.backend,
                             opened.sample_count(run.id, SampleKind::measured),
                             opened.epochs(run.id).size()));
    }
    return all;
  }
};

class SlowStudyRun : public StudyRunTest {};

TEST_F(StudyRunTest, GoesThroughAndIsDoneAnewTheNextTime) {
  const Outcome outcome = run("study tiny.toml --store a.db");
  EXPECT_EQ(outcome.code, 0) << outcome.err;
  EXPECT_NE(outcome.out.find("5 done, 1 left out, 0 failed"), std::string::npos) << outcome.out;
  EXPECT_NE(outcome.out.find("in place of cats-dogs"), std::string::npos);
  // The total stays from the first item to the last.
  for (int finished = 1; finished <= 5; ++finished) {
    EXPECT_NE(outcome.err.find(fmt::format("({} of 5 items finished in ", finished)),
              std::string::npos)
        << outcome.err;
  }
  const std::multiset<std::string> all = rows("a.db", "tiny");
  // Six items; two runs for each of three batches, two trainings.
  EXPECT_EQ(all.size(), 6U + 6U + 2U);
  // Nothing is left beside the store.
  for (const auto& entry : std::filesystem::directory_iterator(folder_)) {
    EXPECT_EQ(entry.path().string().find("-study-"), std::string::npos);
  }
  EXPECT_EQ(run("study tiny.toml --store a.db --only training").code, 0);
  EXPECT_EQ(Store::open_existing(folder_ / "a.db").studies().size(), 2U);
}

TEST_F(StudyRunTest, APlanChangesNothing) {
  const Outcome outcome = run("study tiny.toml --dry-run --json");
  EXPECT_EQ(outcome.code, 0) << outcome.err;
  EXPECT_NE(outcome.out.find("\"speed/mlp/batch=4\""), std::string::npos);
  EXPECT_NE(outcome.out.find("\"left out\""), std::string::npos);
  EXPECT_FALSE(std::filesystem::exists(folder_ / "ridgeline.db"));
}

TEST_F(SlowStudyRun, TenInterruptionsGiveTheSameRows) {
  const auto start = std::chrono::steady_clock::now();
  ASSERT_EQ(run("study tiny.toml --store whole.db").code, 0);
  const std::chrono::duration<double> whole = std::chrono::steady_clock::now() - start;
  // Long enough for an item now and then, too short for all of them.
  std::mt19937 random(7);
  std::uniform_real_distribution<double> seconds(0.0, 0.4 * whole.count());
  int interrupted = 0;
  while (interrupted < 10) {
    Child child("study tiny.toml --store broken.db", folder_);
    std::this_thread::sleep_for(std::chrono::duration<double>(seconds(random)));
    const int signal = interrupted % 2 == 0 ? SIGKILL : SIGINT;
    child.send(signal);
    const Outcome outcome = child.finish();
    if (outcome.code == 0) break;
    EXPECT_EQ(outcome.code, 128 + signal) << outcome.err;
    ++interrupted;
  }
  EXPECT_GE(interrupted, 3) << "too fast to be interrupted";
  // Where the last one was not faster than its signal.
  if (interrupted == 10) {
    ASSERT_EQ(run("study tiny.toml --store broken.db").code, 0);
  }
  EXPECT_EQ(rows("broken.db", "tiny"), rows("whole.db", "tiny"));
}

TEST_F(StudyRunTest, AnInterruptedItemLeavesNothingBehind) {
  write("long.toml",
        "name = \"long\"\ntitle = \"t\"\nquestion = \"q\"\n[[part]]\nid = \"p\"\ncommand = "
        "\"bench\"\nmodels = \"mlp\"\nbackends = \"native\"\nbatches = [4, 512]\nwarmup = "
        "0\niterations = {small = 1000000000}\n");
  Child child("study long.toml --store a.db --json", folder_);
  // Until the first run is on its way.
  for (int i = 0; i < 600; ++i) {
    std::this_thread::sleep_for(std::chrono::milliseconds(50));
    if (!std::filesystem::exists(folder_ / "a.db")) continue;
    if (Store(folder_ / "a.db").run_count() > 0) break;
  }
  child.send(SIGINT);
  const Outcome outcome = child.finish();
  EXPECT_EQ(outcome.code, 130) << outcome.err;
  EXPECT_NE(outcome.out.find("\"interrupted\": true"), std::string::npos);
  const Store store = Store::open_existing(folder_ / "a.db");
  EXPECT_EQ(store.run_count(), 0);
  ASSERT_EQ(store.studies().size(), 1U);
  EXPECT_EQ(store.studies()[0].finished, "");
}

// An item that fails until there is data, and one that is done at once.
constexpr const char* kLacksData =
    "name = \"bad\"\ntitle = \"t\"\nquestion = \"q\"\n[[part]]\nid = \"p\"\ncommand = \"train\"\n"
    "models = \"mlp\"\nbackends = \"native\"\ndata = \"./digits.csv\"\nbatches = 8\nepochs = 1\n"
    "[[part]]\nid = \"q\"\ncommand = \"bench\"\nmodels = \"mlp\"\nbackends = \"native\"\nwarmup = "
    "0\n"
    "iterations = 10\n";

std::string digits_csv() {
  std::string digits = "label";
  for (int i = 0; i < 784; ++i) digits += ",pixel" + std::to_string(i);
  for (int row = 0; row < 40; ++row) {
    digits += '\n' + std::to_string(row % 10);
    for (int i = 0; i < 784; ++i) digits += ',' + std::to_string((row * 7 + i) % 256);
  }
  return digits + '\n';
}

TEST_F(StudyRunTest, WhatFailsIsRecordedAndTriedAgain) {
  write("bad.toml", kLacksData);
  write("digits.csv", "label,pixel0\nnonsense\n");
  const Outcome outcome = run("study bad.toml --store a.db");
  EXPECT_EQ(outcome.code, 1);
  EXPECT_NE(outcome.out.find("1 done, 0 left out, 1 failed"), std::string::npos) << outcome.out;
  EXPECT_NE(outcome.out.find("digits.csv"), std::string::npos) << outcome.out;
  write("digits.csv", digits_csv());
  const Outcome again = run("study bad.toml --store a.db");
  EXPECT_EQ(again.code, 0) << again.err << again.out;
  EXPECT_NE(again.out.find("Continuing"), std::string::npos);
  EXPECT_EQ(again.out.find("another build"), std::string::npos);
  EXPECT_NE(again.out.find("2 done, 0 left out, 0 failed"), std::string::npos);
  // The one that was done was not repeated.
  EXPECT_EQ(Store::open_existing(folder_ / "a.db").run_count(), 2);
}

TEST_F(StudyRunTest, NothingThatCouldBeDoneIsAFailureWithItsReason) {
  write("idle.toml",
        "name = \"idle\"\ntitle = \"t\"\nquestion = \"q\"\n[[part]]\nid = \"p\"\ncommand = "
        "\"train\"\nmodels = \"mlp\"\nbackends = \"native\"\ndata = \"./nowhere.csv\"\n");
  const Outcome outcome = run("study idle.toml --store a.db");
  EXPECT_EQ(outcome.code, 1);
  EXPECT_NE(outcome.out.find("0 done, 1 left out, 0 failed"), std::string::npos) << outcome.out;
  EXPECT_NE(outcome.err.find("cannot run any item"), std::string::npos) << outcome.err;
  EXPECT_NE(outcome.err.find("./nowhere.csv is not here"), std::string::npos) << outcome.err;
  EXPECT_EQ(run("study idle.toml --store a.db --dry-run").code, 0);
}

TEST_F(StudyRunTest, AnotherBuildGoesOn) {
  write("bad.toml", kLacksData);
  write("digits.csv", "label,pixel0\nnonsense\n");
  EXPECT_EQ(run("study bad.toml --store a.db").code, 1);
  {
    Store store(folder_ / "a.db");
    ASSERT_EQ(store.environments().size(), 1U);
    EnvironmentRecord former = store.environments()[0];
    former.key = "former build";
    store.add(former);
    EnvironmentRecord elsewhere = former;
    elsewhere.key = "another machine";
    elsewhere.host += "2";
    store.add(elsewhere);
    StudyRecord study = store.studies()[0];
    std::vector<StudyItemRecord> items = store.study_items(study.uuid);
    study.finished = study.started;
    store.put(study);
    study.finished.clear();
    for (const EnvironmentRecord& by : {former, elsewhere}) {
      study.uuid = study.environment = by.key;
      store.put(study);
      for (StudyItemRecord& item : items) item.study = study.uuid;
      store.put(items);
    }
  }
  write("digits.csv", digits_csv());
  const Outcome again = run("study bad.toml --store a.db");
  EXPECT_EQ(again.code, 0) << again.err << again.out;
  EXPECT_NE(again.out.find("another build"), std::string::npos) << again.out;
  EXPECT_NE(again.out.find("2 done, 0 left out, 0 failed"), std::string::npos);
  const Store store = Store::open_existing(folder_ / "a.db");
  EXPECT_EQ(store.run_count(), 2);
  for (const StudyRecord& study : store.studies()) {
    EXPECT_EQ(study.finished.empty(), study.uuid == "another machine") << study.uuid;
  }
}

TEST_F(SlowStudyRun, TwoStudiesShareAStore) {
  std::string other = kTiny;
  other.replace(other.find("\"tiny\""), 6, "\"other\"");
  write("other.toml", other);
  ASSERT_EQ(run("study tiny.toml --store alone.db").code, 0);
  Child first("study tiny.toml --store both.db", folder_),
      second("study other.toml --store both.db", folder_);
  EXPECT_EQ(first.finish().code, 0);
  EXPECT_EQ(second.finish().code, 0);
  EXPECT_EQ(rows("both.db", "tiny"), rows("alone.db", "tiny"));
  EXPECT_EQ(rows("both.db", "other"), rows("alone.db", "tiny"));
}

TEST_F(StudyRunTest, OneStudyRunsOnceAtATime) {
  {
    const study::StudyLock lock(folder_ / "a.db", "u1", 0.0);
    EXPECT_THROW(study::StudyLock(folder_ / "a.db", "u1", 0.1), Error);
    const study::StudyLock other(folder_ / "a.db", "u2", 0.0);
  }
  const study::StudyLock again(folder_ / "a.db", "u1", 0.0);
}

TEST_F(StudyRunTest, MistakesEndTheCall) {
  write("wrong.toml", "name = \"x\"\ntitle = \"t\"\nquestion = \"q\"\n[[part]]\nidd = \"p\"\n");
  const Outcome wrong = run("study wrong.toml");
  EXPECT_EQ(wrong.code, 2);
  EXPECT_NE(wrong.err.find("wrong.toml, line"), std::string::npos) << wrong.err;
  EXPECT_EQ(run("study nowhere").code, 2);
  EXPECT_EQ(run("study tiny.toml --scale huge").code, 2);
  EXPECT_EQ(run("study tiny.toml --only nothing").code, 2);
  EXPECT_EQ(run("study tiny.toml --data nowhere").code, 2);
  EXPECT_EQ(run("study tiny.toml --store none").code, 2);
  EXPECT_EQ(run("study list").code, 0);
  EXPECT_NE(run("study show tiny.toml").out.find("A tiny study"), std::string::npos);
}

}  // namespace
}  // namespace ridgeline::testing
