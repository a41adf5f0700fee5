// Hypotheses on runs whose answers are known, and sentences that need support.

#include <gtest/gtest.h>

#include <filesystem>
#include <memory>
#include <set>

#include "analysis/compare/stored.h"
#include "base/error.h"
#include "report/analysis/estimates.h"
#include "report/analysis/judge.h"
#include "report/analysis/prose.h"
#include "report/analysis/text.h"
#include "support/report_store.h"
#include "support/vary_identity.h"

namespace ridgeline::report {
namespace {

namespace fs = std::filesystem;
using testing::ReportRun;
using testing::ReportTraining;

// A store in a folder of its own, machines and their studies written.
class ReportText : public ::testing::Test {
 protected:
  ReportText()
      : path_(fs::path(::testing::TempDir()) /
              ("report_text_" + std::to_string(::testing::UnitTest::GetInstance()->random_seed()) +
               ::testing::UnitTest::GetInstance()->current_test_info()->name() + ".db")) {
    fs::remove(path_);
    store_ = std::make_unique<Store>(path_);
    testing::write_report_machines(*store_);
  }
  ~ReportText() override {
    store_.reset();
    fs::remove(path_);
  }

  RunId bench(const std::string& model, const std::string& backend, double seconds,
              std::int64_t batch = 64, const std::string& part = "speed") {
    ReportRun run;
    run.model = model;
    run.batch = batch;
    run.part = part;
    run.seconds = seconds;
    run.backend = backend;
    run.count = count_;
    if (backend == "auto") {
      run.environment = "server";
      run.device = "cuda:0";
    }
    run.group = "call on " + run.environment;
    return testing::write_report_bench(*store_, run);
  }

  void train(const std::string& backend, std::vector<double> accuracies) {
    ReportTraining training;
    training.run.part = "training";
    training.run.backend = backend;
    training.seconds.assign(accuracies.size(), 2.0);
    training.accuracies = std::move(accuracies);
    testing::write_report_training(*store_, training);
  }

  struct Verdict {
    std::string verdict, text;
    std::set<RunId> runs;
  };
  Verdict answer(const study::Hypothesis& hypothesis) {
    const Data data(*store_);
    const Judgement judgement = judge(data, data.studies().front(), hypothesis);
    Verdict verdict{judgement.verdict, {}, {}};
    for (const Piece& piece : judgement.pieces) {
      verdict.text += piece.text;
      verdict.runs.insert(piece.runs.begin(), piece.runs.end());
    }
    return verdict;
  }

  static study::Hypothesis hypothesis(const std::string& test, const std::string& axis = "",
                                      const std::string& of = "device=cuda:0",
                                      const std::string& than = "device=cpu") {
    study::Hypothesis made;
    made.id = "h";
    made.statement = "A statement.";
    made.test = test;
    made.axis = axis;
    made.of = of;
    made.than = than;
    return made;
  }

  std::string analysis(std::vector<Sentence> (*tell)(const TextInput&)) {
    const Data data(*store_);
    std::vector<const RunView*> runs;
    for (const RunView& run : data.runs()) runs.push_back(&run);
    std::string text;
    for (const Sentence& sentence : tell(text_input(data, runs))) {
      if (sentence) text += sentence->text() + "\n";
    }
    return text;
  }

  std::int64_t count_ = 22;
  fs::path path_;
  std::unique_ptr<Store> store_;
};

bool has(const std::string& text, const std::string& part) {
  return text.find(part) != std::string::npos;
}

TEST_F(ReportText, FasterIsConfirmedWhenEveryWorkIsFaster) {
  bench("mlp", "native", 0.001);
  bench("mlp", "auto", 0.0002);
  bench("mnist_cnn", "native", 0.010);
  bench("mnist_cnn", "auto", 0.001);
  const Verdict verdict = answer(hypothesis("faster"));
  EXPECT_EQ(verdict.verdict, "confirmed");
  EXPECT_TRUE(has(verdict.text, "5.00× [")) << verdict.text;
  EXPECT_TRUE(has(verdict.text, "10.0× [")) << verdict.text;
  EXPECT_EQ(verdict.runs.size(), 4U);
}

TEST_F(ReportText, FasterIsNotConfirmedWhenOneWorkIsSlower) {
  bench("mlp", "native", 0.001);
  bench("mlp", "auto", 0.004);
  bench("mnist_cnn", "native", 0.010);
  bench("mnist_cnn", "auto", 0.001);
  const Verdict verdict = answer(hypothesis("faster"));
  EXPECT_EQ(verdict.verdict, "not confirmed");
  EXPECT_TRUE(has(verdict.text, "the other way round: 4.00× [")) << verdict.text;
}

TEST_F(ReportText, FasterIsNotConfirmedByTheFastestAloneOfSeveral) {
  // One backend of the graphics processor is faster than the processor, the other is not.
  ReportRun run;
  run.seconds = 0.010;
  testing::write_report_bench(*store_, run);
  run.environment = "server";
  run.device = "cuda:0";
  for (const auto& [backend, seconds] : {std::pair("auto", 0.001), std::pair("cuda", 0.030)}) {
    run.backend = backend;
    run.seconds = seconds;
    testing::write_report_bench(*store_, run);
  }
  EXPECT_EQ(answer(hypothesis("faster")).verdict, "not confirmed");
}

TEST_F(ReportText, FasterIsUndecidedWhenTheIntervalHoldsOne) {
  // Differences of 3% that a handful of scattered samples cannot show.
  count_ = 2;
  bench("mlp", "native", 0.00103);
  bench("mlp", "auto", 0.001);
  EXPECT_EQ(answer(hypothesis("faster")).verdict, "undecided");
}

TEST_F(ReportText, WhatWasNotMeasuredIsUndecidedAndSaysWhy) {
  bench("mlp", "native", 0.001);
  StudyItemRecord item;
  item.study = "trial-on-desk";
  item.number = 9;
  item.key = "speed/mlp/cuda:0";
  item.status = ItemStatus::left_out;
  item.reason = "no NVIDIA driver was found";
  store_->put(std::vector<StudyItemRecord>{item});
  for (const char* test : {"faster", "speedup-varies", "speedup-grows"}) {
    const Verdict verdict = answer(hypothesis(test, "training_flops"));
    EXPECT_EQ(verdict.verdict, "undecided") << test;
    EXPECT_TRUE(has(verdict.text, "Not measured here: no run with device=cuda:0")) << verdict.text;
    EXPECT_TRUE(has(verdict.text, "no NVIDIA driver was found")) << verdict.text;
  }
}

TEST_F(ReportText, WhatBeatsALibraryDoesSoOnTheSameMachine) {
  // "native" on the server is faster than "onednn" on the desk: that is another machine's merit.
  bench("mlp", "onednn", 0.001);
  ReportRun run;
  run.model = "mlp";
  run.environment = "server";
  run.seconds = 0.0001;
  testing::write_report_bench(*store_, run);
  EXPECT_EQ(answer(hypothesis("faster", "", "backend=native", "backend=onednn")).verdict,
            "undecided");
}

TEST_F(ReportText, SpeedupVaries) {
  bench("mlp", "native", 0.001);
  bench("mlp", "auto", 0.0002);
  EXPECT_EQ(answer(hypothesis("speedup-varies")).verdict, "undecided");  // one alone
  bench("mnist_cnn", "native", 0.010);
  bench("mnist_cnn", "auto", 0.002);
  EXPECT_EQ(answer(hypothesis("speedup-varies")).verdict, "not confirmed");  // 5 and 5
  bench("resnet18", "native", 0.500);
  bench("resnet18", "auto", 0.010);
  const Verdict verdict = answer(hypothesis("speedup-varies"));
  EXPECT_EQ(verdict.verdict, "confirmed");
  EXPECT_TRUE(has(verdict.text, "geometric mean")) << verdict.text;
}

TEST_F(ReportText, SpeedupGrowsWithTheWorkOfASample) {
  bench("mlp", "native", 0.001);
  bench("mlp", "auto", 0.0002);
  bench("mnist_cnn", "native", 0.010);
  bench("mnist_cnn", "auto", 0.001);
  // Two networks differ by all they are: no trend yet.
  EXPECT_EQ(answer(hypothesis("speedup-grows", "training_flops")).verdict, "undecided");
  bench("resnet18", "native", 0.500);
  const RunId last = bench("resnet18", "auto", 0.010);
  const Verdict grows = answer(hypothesis("speedup-grows", "training_flops"));
  EXPECT_EQ(grows.verdict, "confirmed");
  EXPECT_TRUE(grows.runs.contains(last));
}

TEST_F(ReportText, SpeedupThatFallsForTheLargestNetworkDoesNotGrow) {
  for (const auto& [model, seconds] :
       {std::pair("mlp", 0.0002), std::pair("mnist_cnn", 0.0001), std::pair("resnet18", 0.00025)}) {
    bench(model, "native", 0.001);
    bench(model, "auto", seconds);  // 5, 10 and 4 times as fast
  }
  const Verdict falls = answer(hypothesis("speedup-grows", "training_flops"));
  EXPECT_EQ(falls.verdict, "not confirmed");
  EXPECT_TRUE(has(falls.text, "it falls from 10.0× [")) << falls.text;
}

TEST_F(ReportText, RunsThatDifferByThemselvesDecideNothing) {
  // The same thing took 1 ms and 4 ms: a third measurement of 2 ms is no news.
  bench("mlp", "auto", 0.001);
  bench("mlp", "auto", 0.004);
  bench("mlp", "native", 0.002);
  EXPECT_EQ(answer(hypothesis("faster")).verdict, "undecided");
}

// Every place of the report asks for the verdict here, and it is that of `ridgeline compare`.
TEST_F(ReportText, VerdictsAreThoseOfCompare) {
  int call = 0;
  for (const char* model : {"mlp", "mnist_cnn"}) {
    for (const char* backend : {"native", "onednn", "torch-cpu", "auto"}) {
      for (const double seconds : {0.0100, 0.0103, 0.0250}) {
        ReportRun run;
        run.model = model;
        run.backend = backend;
        run.seconds = seconds * (1.0 + 0.05 * call);
        run.group = fmt::format("call {}", call++ % 5);
        const RunId id = testing::write_report_bench(*store_, run);
        if (call % 4 == 0) {
          store_->add(id, std::vector<Finding>{{"noisy neighbour", "warning", "others"}});
        }
      }
    }
  }
  const Data data(*store_);
  Ratios ratios(data);
  std::size_t judged = 0, beside = 0;
  for (const RunView& run : data.runs()) {
    for (const RunView& than : data.runs()) {
      const auto ratio = ratios.of(run, than);
      if (!ratio) continue;
      const RunComparison compared =
          compare_runs(*store_, ratio->than->run, ratio->of->run, {}, false);
      EXPECT_EQ(ratio->verdict, compared.pair.result.verdict);
      EXPECT_DOUBLE_EQ(ratio->speedup, 1.0 / compared.pair.result.ratio);
      EXPECT_EQ(ratio->doubts, compared.pair.doubts);
      ++judged;
      beside += ratio->side_by_side ? 1 : 0;
    }
  }
  EXPECT_GT(judged, 200U);
  EXPECT_GT(beside, 50U);
}

// A pair that took turns goes before newer runs of different calls.
TEST_F(ReportText, RunsThatTookTurnsGoBeforeNewerOnes) {
  const RunId slow = bench("mlp", "native", 0.010), fast = bench("mlp", "onednn", 0.007);
  ReportRun later;
  later.model = "mlp";
  later.seconds = 0.006;
  later.group = "a later call";
  testing::write_report_bench(*store_, later);
  const Data data(*store_);
  Ratios ratios(data);
  const auto ratio = ratios.of(data.runs()[2], data.runs()[1]);
  ASSERT_TRUE(ratio);
  EXPECT_EQ(ratio->of->run.id, slow);
  EXPECT_EQ(ratio->than->run.id, fast);
  EXPECT_TRUE(ratio->side_by_side);
  EXPECT_EQ(ratio->verdict, ridgeline::Verdict::slower);
}

TEST_F(ReportText, FlaggedRunsSayItBesideTheirNumbers) {
  store_->add(bench("mlp", "native", 0.010),
              std::vector<Finding>{{"noisy neighbour", "warning", "others took 40%"}});
  bench("mlp", "onednn", 0.003);
  const std::string text = analysis(executor_differences);
  EXPECT_TRUE(has(text, "with 2 threads, onednn is 3.33× [")) << text;
  EXPECT_TRUE(has(text, "(flagged: noisy neighbour)")) << text;
}

TEST_F(ReportText, ThroughputGrowsWithTheBatch) {
  const study::Hypothesis grows = hypothesis("throughput-grows", "batch", "", "");
  bench("mlp", "native", 0.001, 32, "sweep");
  EXPECT_EQ(answer(grows).verdict, "undecided");
  bench("mlp", "native", 0.0015, 64, "sweep");
  EXPECT_EQ(answer(grows).verdict, "confirmed");
  // As many samples a second: growth has ended, which is no fall.
  bench("mlp", "native", 0.0030, 128, "sweep");
  EXPECT_EQ(answer(grows).verdict, "confirmed");
  bench("mlp", "native", 0.0090, 256, "sweep");
  const Verdict falls = answer(grows);
  EXPECT_EQ(falls.verdict, "not confirmed");
  EXPECT_TRUE(has(falls.text, "it falls from 42,667 [")) << falls.text;
}

TEST_F(ReportText, ThroughputThatStaysTheSameDoesNotGrow) {
  bench("mlp", "native", 0.001, 32, "sweep");
  bench("mlp", "native", 0.002, 64, "sweep");
  EXPECT_EQ(answer(hypothesis("throughput-grows", "batch", "", "")).verdict, "not confirmed");
}

TEST_F(ReportText, EfficiencyGrowsAndNeedsRoofs) {
  const study::Hypothesis grows = hypothesis("efficiency-grows", "batch", "", "");
  bench("mnist_cnn", "native", 0.006, 32, "sweep");
  bench("mnist_cnn", "native", 0.008, 64, "sweep");
  const Verdict verdict = answer(grows);
  EXPECT_EQ(verdict.verdict, "confirmed") << verdict.text;
  store_->replace_ceilings("desk", "cpu", std::vector<Ceiling>{});
  EXPECT_EQ(answer(grows).verdict, "undecided");
  EXPECT_TRUE(has(answer(grows).text, "ceilings")) << answer(grows).text;
}

TEST_F(ReportText, BoundIsThatOfTheRoofline) {
  // Ten FLOPs a byte on a machine whose ridge point is five: compute.
  bench("mnist_cnn", "native", 0.002);
  EXPECT_EQ(answer(hypothesis("bound", "", "compute", "")).verdict, "confirmed");
  EXPECT_EQ(answer(hypothesis("bound", "", "memory", "")).verdict, "not confirmed");
}

TEST_F(ReportText, BoundByDataIsThatOfIterationsThatWait) {
  ReportRun run;
  run.part = "training";
  run.seconds = 0.010;
  run.loader_wait = 0.008;
  testing::write_report_bench(*store_, run);
  EXPECT_EQ(answer(hypothesis("bound", "", "data", "")).verdict, "confirmed");
}

TEST_F(ReportText, BoundByDataIsKnownFromTrainingsToo) {
  ReportTraining training;
  training.run.part = "training";
  training.run.backend = "torch-cpu";                 // no step was timed
  testing::write_report_training(*store_, training);  // waits 0.1 s of epochs of 2 to 3 s
  EXPECT_EQ(answer(hypothesis("bound", "", "data", "")).verdict, "not confirmed");
  // Nothing else is known of what bounds it.
  EXPECT_EQ(answer(hypothesis("bound", "", "memory", "")).verdict, "undecided");
}

TEST_F(ReportText, SameAccuracy) {
  const study::Hypothesis same = hypothesis("same-accuracy", "", "", "");
  train("native", {0.80, 0.95, 0.985});
  EXPECT_EQ(answer(same).verdict, "undecided");  // one alone
  train("onednn", {0.81, 0.95, 0.984});
  EXPECT_EQ(answer(same).verdict, "confirmed") << answer(same).text;
  train("torch-cpu", {0.50, 0.60, 0.70});
  const Verdict differ = answer(same);
  EXPECT_EQ(differ.verdict, "not confirmed");
  EXPECT_TRUE(has(differ.text, "70.0%")) << differ.text;
}

TEST_F(ReportText, GuessingAgreesAboutNothing) {
  train("native", {0.10, 0.10, 0.10});
  train("onednn", {0.10, 0.10, 0.10});
  const Verdict verdict = answer(hypothesis("same-accuracy", "", "", ""));
  EXPECT_EQ(verdict.verdict, "undecided");
  EXPECT_TRUE(has(verdict.text, "chance")) << verdict.text;
}

TEST_F(ReportText, AnUnknownTestIsADefect) {
  bench("mlp", "native", 0.001);
  EXPECT_THROW((void)answer(hypothesis("no-such-test")), Error);
}

TEST_F(ReportText, ConditionsOnRuns) {
  ReportRun run;
  run.settings = {{"depth", "3"}, {"filters", "8,16"}};
  testing::write_report_bench(*store_, run);
  const Data data(*store_);
  const RunView& view = data.runs().front();
  EXPECT_TRUE(fits(data, view, ""));
  EXPECT_TRUE(fits(data, view, "backend=native,device=cpu"));
  EXPECT_TRUE(fits(data, view, "backend=onednn|native"));
  EXPECT_TRUE(fits(data, view, "depth=3"));
  EXPECT_TRUE(fits(data, view, "filters=8,16,batch=64"));
  EXPECT_FALSE(fits(data, view, "filters=8"));
  EXPECT_TRUE(fits(data, view, "command=bench,loader=no"));
  EXPECT_TRUE(fits(data, view, "machine=desk"));
  EXPECT_FALSE(fits(data, view, "device=cuda:0"));
  EXPECT_FALSE(fits(data, view, "device=gpu"));
  EXPECT_FALSE(fits(data, view, "nonsense"));
}

TEST_F(ReportText, NothingIsSaidWithoutSupport) {
  for (const auto tell : {environment_impact, executor_differences, model_differences,
                          batch_effects, bottlenecks, learning}) {
    EXPECT_EQ(analysis(tell), "");
  }
  // One run alone has nothing beside it.
  bench("mlp", "torch-cpu", 0.001);
  for (const auto tell : {environment_impact, executor_differences, model_differences,
                          batch_effects, bottlenecks, learning}) {
    EXPECT_EQ(analysis(tell), "");
  }
}

TEST_F(ReportText, EnvironmentsThatDoNotDifferAreNotSaidTo) {
  bench("mlp", "native", 0.001);
  ReportRun run;
  run.model = "mlp";
  run.environment = "server";
  run.seconds = 0.001;
  testing::write_report_bench(*store_, run);
  EXPECT_EQ(analysis(environment_impact), "");
}

TEST_F(ReportText, EnvironmentImpactTellsTheRange) {
  bench("mlp", "native", 0.001);
  bench("mlp", "auto", 0.0002);
  bench("resnet18", "native", 0.500);
  bench("resnet18", "auto", 0.010);
  const std::string text = analysis(environment_impact);
  EXPECT_TRUE(has(text, "server is faster than desk")) << text;
  EXPECT_TRUE(has(text, "5.00× [")) << text;
  EXPECT_TRUE(has(text, "50.0× [")) << text;
  // 10 TFLOP/s over 100 GFLOP/s, 1 TB/s over 20 GB/s.
  EXPECT_TRUE(has(text, "100× as high in fp32")) << text;
  EXPECT_TRUE(has(text, "50.0× in memory")) << text;
}

TEST_F(ReportText, BatchesThatGainNothingAreSaidToGainNothing) {
  bench("mlp", "native", 0.001, 32, "sweep");
  bench("mlp", "native", 0.002, 64, "sweep");
  EXPECT_TRUE(has(analysis(batch_effects), "no gain is shown")) << analysis(batch_effects);
}

TEST_F(ReportText, DivergedAndGuessingTrainingsAreNoAccuracies) {
  train("native", {0.10, 0.10, 0.10});
  const std::string text = analysis(learning);
  EXPECT_TRUE(has(text, "learned nothing")) << text;
  EXPECT_FALSE(has(text, "reaches")) << text;
}

TEST_F(ReportText, AResumedTrainingSaysSo) {
  ReportTraining training;
  training.run.part = "training";
  training.first_epoch = 4;
  testing::write_report_training(*store_, training);
  const std::string text = analysis(learning);
  EXPECT_TRUE(has(text, "84.0")) << text;
  EXPECT_TRUE(has(text, "after 7 epochs (resumed after epoch 4)")) << text;
}

// Two runs that differ in one field, and in a second way where it takes two for a sentence.
class ReportTextOfUnlikeRuns : public ReportText {
 protected:
  void write(const std::function<void(RunRecord&)>& change, double seconds = 0.001,
             const std::string& environment = "desk", const std::string& model = "mlp") {
    ReportRun run;
    run.model = model;
    run.seconds = seconds;
    run.environment = environment;
    run.group = "one call";
    run.change = change;
    testing::write_report_bench(*store_, run);
  }
  // The store anew for each field.
  void for_each_field(const std::function<void(const IdentityField&)>& check) {
    for (const IdentityField& field : identity_fields()) {
      SCOPED_TRACE(field.name);
      check(field);
      std::vector<RunId> runs;
      for (const RunRecord& run : store_->runs()) runs.push_back(run.id);
      store_->remove(runs);
    }
  }
};

TEST_F(ReportTextOfUnlikeRuns, AreToldApartByTheirWords) {
  for_each_field([&](const IdentityField& field) {
    write([](RunRecord&) {});
    write([&](RunRecord& run) { testing::vary(run, field.name); }, 0.002);
    const Data data(*store_);
    const RunView &usual = data.runs()[0], &changed = data.runs()[1];
    const Wording wording({&usual, &changed});
    EXPECT_NE(wording.run(usual), wording.run(changed));
    EXPECT_EQ(wording.work(usual) != wording.work(changed), field.of_work);
    EXPECT_EQ(wording.executor(usual) != wording.executor(changed),
              !field.of_work || field.name == "precision");
    EXPECT_EQ(comparable(usual, changed), !field.of_work);
    EXPECT_EQ(newest_of({&usual, &changed}).size(), 2U);
    Ratios ratios(data);
    EXPECT_EQ(ratios.of(usual, changed).has_value(), !field.of_work);
    EXPECT_EQ(has(analysis(executor_differences), "2.00×"),
              !field.of_work && field.name != "device")
        << analysis(executor_differences);
  });
}

TEST_F(ReportTextOfUnlikeRuns, AreNoPointsOfOneLine) {
  for_each_field([&](const IdentityField& field) {
    if (field.name == "batch") return;
    write([](RunRecord&) {});
    write([&](RunRecord& run) {
      testing::vary(run, field.name);
      run.work.batch = 256;
    });
    EXPECT_EQ(answer(hypothesis("throughput-grows", "batch", "", "")).verdict, "undecided");
    EXPECT_EQ(analysis(batch_effects), "");
  });
}

TEST_F(ReportTextOfUnlikeRuns, AreNoNetworksSideBySide) {
  for_each_field([&](const IdentityField& field) {
    write([](RunRecord&) {});
    write([&](RunRecord& run) { testing::vary(run, field.name); }, 0.010, "desk", "resnet18");
    const bool network = field.name == "model" || field.name == "settings";
    EXPECT_EQ(!analysis(model_differences).empty(), network) << analysis(model_differences);
  });
}

TEST_F(ReportTextOfUnlikeRuns, OnTwoMachinesAreComparedWhereTheWorkIsTheSame) {
  for_each_field([&](const IdentityField& field) {
    write([](RunRecord&) {});
    write([&](RunRecord& run) { testing::vary(run, field.name); }, 0.0001, "server");
    EXPECT_EQ(!analysis(environment_impact).empty(), !field.of_work)
        << analysis(environment_impact);
  });
}

TEST_F(ReportText, AxesTakeWithThemWhatFollowsFromThem) {
  const auto sweep = [&](const char* axis, const std::function<void(RunRecord&)>& change) {
    for (const bool large : {false, true}) {
      ReportRun run;
      run.part = axis;
      run.batch = large ? 256 : 64;
      run.change = [&](RunRecord& record) {
        change(record);
        if (record.work.full_batch) record.work.data_samples = record.work.batch;
        if (axis == std::string("hidden")) record.work.settings["hidden"] = large ? "64" : "32";
        if (axis == std::string("hidden")) record.work.batch = 64;
      };
      testing::write_report_bench(*store_, run);
    }
    study::Hypothesis grows = hypothesis("throughput-grows", axis, "", "");
    grows.parts = {axis};
    return answer(grows);
  };
  EXPECT_EQ(sweep("batch", [](RunRecord&) {}).verdict, "confirmed");
  const auto full = [](RunRecord& run) { run.work.full_batch = true; };
  EXPECT_EQ(sweep("samples", full).verdict, "confirmed");
  const Verdict options = sweep("hidden", [](RunRecord& run) { run.work.settings["depth"] = "3"; });
  EXPECT_TRUE(has(options.text, "(hidden 64)")) << options.text;
}

TEST_F(ReportText, ThreadsAreToldWhereOneMachineHadSeveralNumbersOfThem) {
  for (const int threads : {2, 4}) {
    ReportRun run;
    run.model = "mlp";
    run.seconds = 0.004 / threads;
    run.group = "one call";
    run.change = [&](RunRecord& record) { record.executor.threads = threads; };
    testing::write_report_bench(*store_, run);
  }
  const std::string text = analysis(executor_differences);
  EXPECT_TRUE(has(text, "native (4 threads) is 2.00×")) << text;
  EXPECT_TRUE(has(text, "as fast as native (2 threads)")) << text;
}

TEST(ReportEstimates, RatioAddsIntervalsAsSquares) {
  const Estimate a{10.0, 9.0, 11.0, 20}, b{5.0, 4.5, 5.5, 20};
  const Estimate ratio = ratio_of(a, b);
  EXPECT_DOUBLE_EQ(ratio.value, 2.0);
  EXPECT_GT(ratio.low, 2.0 * 0.9 / 1.1);
  EXPECT_LT(ratio.low, 2.0 * 0.9);
  EXPECT_LT(ratio.high, 2.0 * 1.1 / 0.9);
  EXPECT_GT(ratio.high, 2.0 * 1.1);
}

TEST(ReportEstimates, GeometricMeanCoversItsValues) {
  const std::vector<double> values = {2.0, 4.0, 8.0};
  const Estimate mean = geometric_mean(values);
  EXPECT_NEAR(mean.value, 4.0, 1e-12);
  EXPECT_LT(mean.low, 2.0 + 1e-9);
  EXPECT_GT(mean.high, 8.0 - 1e-9);
  const Estimate two = geometric_mean(std::vector<double>{2.0, 8.0});
  EXPECT_DOUBLE_EQ(two.low, 2.0);
  EXPECT_DOUBLE_EQ(two.high, 8.0);
}

TEST(ReportEstimates, PointsWithoutIntervalsShowNoTrend) {
  const std::vector<TrendPoint> points = {{1.0, {1.0, 1.0, 1.0, 1}, {}, ""},
                                          {2.0, {2.0, 2.0, 2.0, 1}, {}, ""}};
  EXPECT_EQ(trend_of(points, 2).outcome, Outcome::undecided);
}

// Two to five values have a range, which holds the true value less often than an interval does.
TEST(ReportEstimates, AFewValuesShowNoTrendHoweverFarApart) {
  const auto points = [](std::int64_t samples) {
    return std::vector<TrendPoint>{{1.0, {1.0, 0.99, 1.01, samples}, {}, ""},
                                   {2.0, {2.0, 1.99, 2.01, samples}, {}, ""}};
  };
  for (const std::int64_t samples : {2, 3, 4, 5}) {
    EXPECT_EQ(trend_of(points(samples), 2).outcome, Outcome::undecided) << samples;
  }
  EXPECT_EQ(trend_of(points(6), 2).outcome, Outcome::confirmed);
  // A machine's own changes could explain less than a factor of two.
  EXPECT_EQ(trend_of(points(6), 2, "measured in different calls").outcome, Outcome::undecided);
}

TEST(ReportProse, NumbersAreWrittenAsInTables) {
  EXPECT_EQ(estimate_text({1107.4, 1098.0, 1115.0, 9}), interval(1107.4, 1098.0, 1115.0).text);
  EXPECT_EQ(percent_text(0.3411), "34.1%");
  EXPECT_EQ(percent_text(0.0341), "3.4%");
  EXPECT_EQ(rate_words(110.3e9, "FLOP/s"), "110 GFLOP/s");
  EXPECT_EQ(rate_words(999.7e9, "FLOP/s"), "1.00 TFLOP/s");
  EXPECT_EQ(list_text({"a"}), "a");
  EXPECT_EQ(list_text({"a", "b", "c"}), "a, b and c");
  EXPECT_EQ(list_text({"a", "b", "c", "d"}, 2), "a, b and 2 more");
  EXPECT_EQ(count_words(1, "run"), "one run");
  EXPECT_EQ(count_words(1200, "run"), "1,200 runs");
}

}  // namespace
}  // namespace ridgeline::report
