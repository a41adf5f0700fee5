// ridgeline compare over a store: what it says, what it refuses, its exit codes.

#include <gtest/gtest.h>

#include <cmath>
#include <nlohmann/json.hpp>

#include "analysis/compare/stored.h"
#include "base/error.h"
#include "base/philox.h"
#include "store/identity_fields.h"
#include "store/store.h"
#include "support/program.h"
#include "support/vary_identity.h"

namespace ridgeline {
namespace {

namespace fs = std::filesystem;
using Json = nlohmann::json;
using testing::Child;
using testing::Outcome;

class CompareCli : public ::testing::Test {
 protected:
  void SetUp() override {
    folder_ = fs::temp_directory_path() /
              ("ridgeline_compare_" + std::to_string(getpid()) + "_" +
               ::testing::UnitTest::GetInstance()->current_test_info()->name());
    fs::remove_all(folder_);
    fs::create_directories(folder_);
    store_.emplace(folder_ / "ridgeline.db");
    for (const char* key : {"here", "there"}) {
      EnvironmentRecord environment;
      environment.key = key;
      environment.host = std::string("host ") + key;
      environment.cpu = "some processor";
      environment.fingerprint = "{}";
      store_->add(environment);
    }
  }
  void TearDown() override {
    store_.reset();
    fs::remove_all(folder_);
  }

  static RunRecord record(const std::string& backend) {
    RunRecord run;
    run.environment = "here";
    run.command = "bench";
    run.work.model = "mnist_cnn";
    run.work.batch = 64;
    run.work.image = {1, 28, 28};
    run.work.classes = 10;
    run.executor.backend = backend;
    run.executor.device = "cpu";
    run.executor.threads = 2;
    run.started = "2026-01-01T00:00:00Z";
    return run;
  }

  // Iterations around `seconds`; turns of runs that are added with the same `start` alternate.
  RunId add(const RunRecord& run, double seconds, double start = 0.0) {
    const RunId id = store_->begin(run);
    PhiloxSequence random(31, RandomStream::synthetic, static_cast<std::uint64_t>(id));
    std::vector<Sample> samples;
    for (std::int64_t i = 0; i < 120; ++i) {
      Sample sample;
      sample.block = i / 10;
      sample.iteration = i;
      sample.at_seconds = start + static_cast<double>(sample.block) + 0.01 * double(i % 10);
      sample.wall_seconds = seconds * std::exp(0.01 * random.normal());
      samples.push_back(sample);
    }
    store_->add(id, samples);
    store_->finish(id, RunStatus::complete, "", {}, {});
    return id;
  }

  [[nodiscard]] Outcome run(const std::string& arguments) const {
    return Child(arguments, folder_).finish();
  }

  fs::path folder_;
  std::optional<Store> store_;
};

TEST_F(CompareCli, FasterSlowerAndSameHaveTheirExitCodes) {
  RunRecord base = record("native");
  base.group = "one-call";
  add(base, 0.010);
  base.executor.backend = "auto";
  add(base, 0.008, 0.5);
  base.executor.backend = "onednn";
  add(base, 0.010, 0.3);
  const Outcome faster = run("compare 1 2 --json");
  EXPECT_EQ(faster.code, 0) << faster.err;
  const Json json = Json::parse(faster.out);
  EXPECT_EQ(json["verdict"], "faster");
  EXPECT_NEAR(json["ratio"], 0.8, 0.01);
  EXPECT_LT(json["ci_low"], 0.8);
  EXPECT_GT(json["ci_high"], 0.8);
  EXPECT_TRUE(json["paired"]);
  double product = 1.0;
  for (const Json& factor : json["gap"]["factors"]) product *= factor["factor"].get<double>();
  EXPECT_NEAR(product, json["ratio"].get<double>(), 1e-9);
  const Outcome slower = run("compare 2 1");
  EXPECT_EQ(slower.code, 3) << slower.err;
  EXPECT_NE(slower.out.find("B is slower than A"), std::string::npos) << slower.out;
  const Outcome same = run("compare 1 3");
  EXPECT_EQ(same.code, 0);
  EXPECT_NE(same.out.find("A and B are the same"), std::string::npos) << same.out;

  const Outcome all = run("compare --all last --json");
  EXPECT_EQ(all.code, 0) << all.err;
  const Json rows = Json::parse(all.out)["comparisons"];
  ASSERT_EQ(rows.size(), 2U);
  EXPECT_EQ(rows[0]["verdict"], "faster");
  EXPECT_EQ(rows[1]["verdict"], "same");
}

TEST_F(CompareCli, OpsOfTwoRunsAddUpToTheirDifference) {
  const auto steps = [](double convolution, double pool) {
    std::vector<StepTime> list(2);
    list[0].covers = "forward conv2d conv1";
    list[0].seconds = convolution;
    list[1].covers = "forward pool pool1";
    list[1].seconds = pool;
    return list;
  };
  const RunId a = add(record("native"), 0.010);
  store_->add(a, steps(0.006, 0.002));
  const RunId b = add(record("onednn"), 0.005);
  store_->add(b, steps(0.001, 0.003));
  add(record("torch-cpu"), 0.005);
  const Outcome outcome = run("compare --ops 1 2 --json");
  ASSERT_EQ(outcome.code, 0) << outcome.err;
  const Json json = Json::parse(outcome.out);
  double sum = 0.0;
  for (const Json& row : json["rows"]) sum += row["difference_ms"].get<double>();
  EXPECT_NEAR(sum, json["difference_ms"].get<double>(), 1e-9);
  EXPECT_NEAR(sum, json["b"]["ms"].get<double>() - json["a"]["ms"].get<double>(), 1e-9);
  ASSERT_EQ(json["rows"].size(), 3U);
  EXPECT_EQ(json["rows"][0]["op"], "conv2d");
  EXPECT_NEAR(json["rows"][0]["speedup"], 6.0, 1e-9);
  EXPECT_EQ(json["rows"][2]["kind"], "between steps");
  const Outcome text = run("compare --ops 1 2 --by layer --top 1");
  EXPECT_EQ(text.code, 0) << text.err;
  for (const char* word : {"conv1", "1 other", "between steps", "total", "6.00x"}) {
    EXPECT_NE(text.out.find(word), std::string::npos) << word << text.out;
  }
  const std::pair<const char*, const char*> refused[] = {
      {"compare --ops 1 3", "has no times of single steps"},
      {"compare --ops 1 1", "A and B are both run 1"},
      {"compare --ops 1", "needs two runs"},
      {"compare --ops 1 2 --by kernel", "--by"},
      {"compare --ops 1 2 --top 0", "--top 0"},
      {"compare 1 2 --top 3", "--ops"},
      {"compare --ops --all last", "cannot be combined with --all"}};
  for (const auto& [arguments, words] : refused) {
    const Outcome wrong = run(arguments);
    EXPECT_EQ(wrong.code, 2) << arguments;
    EXPECT_NE(wrong.err.find(words), std::string::npos) << wrong.err;
  }
}

// The same program measured twice: nothing is known of how much runs differ by themselves.
TEST_F(CompareCli, RunsOfDifferentCallsThatWereNeverRepeatedAreUndecided) {
  add(record("native"), 0.0100);
  add(record("native"), 0.0088);
  add(record("onednn"), 0.0040);
  const Outcome apart = run("compare 1 3");
  EXPECT_EQ(apart.code, 0) << apart.out;
  EXPECT_NE(apart.out.find("B is faster than A: -60"), std::string::npos) << apart.out;
  RunRecord once = record("auto");
  add(once, 0.0100);
  once.executor.threads = 1;
  add(once, 0.0088);
  const Outcome open = run("compare last~1 last");
  EXPECT_EQ(open.code, 4) << open.out;
  EXPECT_EQ(open.out.find("undecided: -1"), 0U) << open.out;
  const std::string line = open.out.substr(0, open.out.find('\n'));
  EXPECT_NE(line.find("(measured in different calls and never repeated)"), std::string::npos)
      << line;
}

// Runs of one call that did not fit into memory together were measured one after another.
TEST_F(CompareCli, OnlyRunsThatTookTurnsAreSideBySide) {
  RunRecord run_a = record("native");
  run_a.group = "one-call";
  add(run_a, 0.010);
  RunRecord run_b = record("auto");
  run_b.group = "one-call";
  run_b.turns = 1;
  add(run_b, 0.009, 0.5);
  const Json json = Json::parse(run("compare 1 2 --json").out);
  EXPECT_FALSE(json["side_by_side"]);
  EXPECT_FALSE(json["paired"]);
  EXPECT_EQ(json["verdict"], "undecided");
  // Older stores do not number the turns: there one run began when the other had ended.
  RunRecord late = record("onednn");
  late.group = "one-call";
  late.started = "2999-01-01T00:00:00Z";
  EXPECT_FALSE(took_turns(store_->run("1"), store_->run(std::to_string(add(late, 0.01)))));
}

TEST_F(CompareCli, AVerdictOnFlaggedRunsSaysSoInItsLine) {
  const std::vector<Finding> flags = {{"noisy neighbour", "warning", "others took 40%"}};
  RunRecord base = record("native");
  base.group = "one-call";
  store_->add(add(base, 0.010), flags);
  base.executor.backend = "auto";
  add(base, 0.008, 0.5);
  const Outcome together = run("compare 1 2");
  EXPECT_EQ(together.code, 0) << together.out;
  const std::string line = together.out.substr(0, together.out.find('\n'));
  EXPECT_NE(line.find("B is faster than A"), std::string::npos) << line;
  EXPECT_NE(line.find("(flagged: noisy neighbour)"), std::string::npos) << line;
  // Apart, with repetitions, the flag could explain the difference.
  for (const char* backend : {"onednn", "cuda"}) {
    for (int i = 0; i < 3; ++i) {
      const RunId id = add(record(backend), std::string(backend) == "cuda" ? 0.008 : 0.010);
      if (i == 2) store_->add(id, flags);
    }
  }
  const Json apart = Json::parse(run("compare backend=onednn backend=cuda --json").out);
  EXPECT_EQ(apart["verdict"], "undecided");
  EXPECT_EQ(apart["doubts"], "flagged: noisy neighbour");
  const Json calm = Json::parse(run("compare 3 6 --json").out);
  EXPECT_EQ(calm["verdict"], "faster") << calm;
}

TEST_F(CompareCli, WhatDiffersBetweenEnvironmentsIsNamed) {
  for (const int processors : {2, 1}) {
    EnvironmentRecord environment;
    environment.key = fmt::format("with {}", processors);
    environment.host = "desk";
    environment.fingerprint =
        fmt::format(R"({{"cpu": {{"model": "same", "usable_processors": {}}}}})", processors);
    store_->add(environment);
    RunRecord on = record("native");
    on.environment = environment.key;
    add(on, 0.01);
  }
  const Outcome outcome = run("compare 1 2");
  EXPECT_NE(outcome.out.find("the environments differ: cpu usable_processors: 2 against 1\n"),
            std::string::npos)
      << outcome.out;
}

TEST_F(CompareCli, UndecidedHasItsOwnExitCode) {
  RunRecord base = record("native");
  const RunId few = store_->begin(base);
  Sample sample;
  sample.wall_seconds = 0.01;
  store_->add(few, std::vector<Sample>(3, sample));
  store_->finish(few, RunStatus::interrupted, "", {}, {});
  add(base, 0.010);
  const Outcome outcome = run("compare 1 2");
  EXPECT_EQ(outcome.code, 4) << outcome.out << outcome.err;
  EXPECT_NE(outcome.out.find("run 1 did not run to its end"), std::string::npos) << outcome.out;
}

TEST_F(CompareCli, UnlikeWorkIsRefusedUnlessForced) {
  add(record("native"), 0.010);
  RunRecord other = record("native");
  other.work.batch = 128;
  other.work.optimizer = "adam";
  add(other, 0.020);
  const Outcome refused = run("compare 1 2");
  EXPECT_EQ(refused.code, 2);
  EXPECT_NE(refused.err.find("batch: 64 against 128"), std::string::npos) << refused.err;
  EXPECT_NE(refused.err.find("optimizer: none against adam"), std::string::npos) << refused.err;
  const Outcome forced = run("compare 1 2 --force --json");
  const Json json = Json::parse(forced.out);
  EXPECT_TRUE(json["per_sample"]);
  EXPECT_NEAR(json["ratio"], 1.0, 0.01);
  EXPECT_EQ(json["unlike_work"].size(), 2U);
  EXPECT_FALSE(json["warnings"].empty());
}

// Whatever the field: unlike work is refused by its name, unlike executors are what is compared.
TEST_F(CompareCli, EveryFieldOfTheIdentityIsTold) {
  const RunRecord usual = store_->run(std::to_string(add(record("native"), 0.010)));
  for (const IdentityField& field : identity_fields()) {
    SCOPED_TRACE(field.name);
    RunRecord changed = record("native");
    testing::vary(changed, field.name);
    changed = store_->run(std::to_string(add(changed, 0.011)));
    EXPECT_FALSE(repeats(usual, changed));
    if (field.of_work) {
      try {
        (void)compare_runs(*store_, usual, changed, {}, false);
        ADD_FAILURE() << "was compared";
      } catch (const Error& error) {
        EXPECT_NE(std::string(error.what()).find(fmt::format("({}: ", field.label)),
                  std::string::npos)
            << error.what();
      }
      continue;
    }
    const RunComparison comparison = compare_runs(*store_, usual, changed, {}, false);
    EXPECT_TRUE(comparison.work.empty());
    ASSERT_EQ(comparison.executor.size(), 1U);
    EXPECT_EQ(comparison.executor[0].field, field.label);
    EXPECT_NE(comparison.executor[0].a, comparison.executor[0].b);
  }
}

TEST_F(CompareCli, HowTheExecutorsDifferIsShown) {
  RunRecord run_a = record("native");
  run_a.group = "one-call";
  add(run_a, 0.010);
  run_a.executor.threads = 4;
  run_a.executor.recompute = true;
  run_a.executor.disabled_passes = {"fusion"};
  add(run_a, 0.012, 0.5);
  const Outcome text = run("compare 1 2");
  EXPECT_EQ(text.code, 3) << text.err;
  for (const char* words :
       {"native on cpu, 4 threads, recompute, without fusion",
        "differences between A and B: threads: 2 against 4; recompute: no against yes; "
        "passes off: none against fusion"}) {
    EXPECT_NE(text.out.find(words), std::string::npos) << words << text.out;
  }
  const Json json = Json::parse(run("compare 1 2 --json").out);
  EXPECT_EQ(json["executors_differ"].size(), 3U);
  EXPECT_EQ(json["a"]["recompute"], false);
  EXPECT_EQ(json["b"]["disabled_passes"], Json({"fusion"}));
  const Outcome all = run("compare --all last");
  EXPECT_NE(all.out.find("2: native on cpu, 4 threads, recompute, without fusion"),
            std::string::npos)
      << all.out;
}

TEST_F(CompareCli, RepetitionsGiveTheNoiseFloor) {
  // Runs of the same thing that differ by some percent: 4% between two of them prove nothing.
  for (const double seconds : {0.0100, 0.0104, 0.0097, 0.0102, 0.0099}) {
    add(record("native"), seconds);
  }
  RunRecord other = record("auto");
  const RunId last = add(other, 0.0104);
  const RunComparison careful =
      compare_runs(*store_, store_->run("1"), store_->run(std::to_string(last)), {}, false);
  ASSERT_TRUE(careful.pair.floor);
  EXPECT_EQ(careful.pair.floor->runs, 5);
  EXPECT_EQ(careful.pair.result.verdict, Verdict::undecided);
  EXPECT_TRUE(careful.pair.result.between_runs);
  // Two runs without repetitions: told, not hidden.
  RunRecord alone = record("reference");
  add(alone, 0.1);
  alone.executor.threads = 1;
  alone.environment = "there";
  add(alone, 0.21);
  const Outcome unknown = run("compare last~1 last");
  EXPECT_EQ(unknown.code, 3) << unknown.out;
  EXPECT_NE(unknown.out.find("never repeated"), std::string::npos) << unknown.out;
  EXPECT_NE(unknown.out.find("the environments differ: host: host here against host there"),
            std::string::npos)
      << unknown.out;
}

TEST_F(CompareCli, RunsAreFoundByConditions) {
  add(record("native"), 0.010);
  RunRecord labelled = record("auto");
  labelled.label = "after";
  const RunId id = add(labelled, 0.025);
  EXPECT_EQ(find_run(*store_, "label=after").id, id);
  EXPECT_EQ(find_run(*store_, "model=mnist_cnn,backend=native").id, 1);
  EXPECT_EQ(run("compare backend=native label=after").code, 3);
  const Outcome wrong = run("compare colour=red label=after");
  EXPECT_EQ(wrong.code, 2);
  EXPECT_NE(wrong.err.find("colour=red"), std::string::npos) << wrong.err;
  EXPECT_EQ(run("compare label=before label=after").code, 2);
}

TEST_F(CompareCli, BadUseIsRefused) {
  add(record("native"), 0.010);
  EXPECT_EQ(run("compare").code, 2);
  EXPECT_EQ(run("compare 1").code, 2);
  EXPECT_EQ(run("compare 1 1").code, 2);
  EXPECT_EQ(run("compare 1 99").code, 2);
  EXPECT_EQ(run("compare 1 1 --alpha 0").code, 2);
  EXPECT_EQ(run("compare 1 1 --margin -1").code, 2);
  EXPECT_EQ(run("compare --all last").code, 2);
  EXPECT_EQ(run("compare 1 2 --store nothing.db").code, 2);
  RunRecord empty = record("native");
  store_->finish(store_->begin(empty), RunStatus::failed, "out of memory", {}, {});
  const Outcome outcome = run("compare 1 2");
  EXPECT_EQ(outcome.code, 2);
  EXPECT_NE(outcome.err.find("no measured iterations"), std::string::npos) << outcome.err;
}

}  // namespace
}  // namespace ridgeline
