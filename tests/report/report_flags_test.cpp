// What the reader of a number must know of the run behind it.

#include <gtest/gtest.h>

#include <map>
#include <set>

#include "report/flags.h"
#include "support/report_tables.h"

namespace ridgeline::report {
namespace {

using testing::column_of;
using testing::contains;
using testing::notes_of;
using testing::one;
using testing::ReportRun;
using testing::ReportTraining;
using testing::TempStore;

TEST(ReportFlags, RunsThatMustNotBeBelievedAreFlagged) {
  const TempStore store("flags", [](Store& into) {
    testing::write_report_machines(into);
    ReportRun few;
    few.part = "few";
    few.count = 4;
    testing::write_report_bench(into, few);
    ReportRun waiting;
    waiting.part = "waiting";
    waiting.loader_wait = 0.008;
    testing::write_report_bench(into, waiting);
    ReportRun above;
    above.part = "above";
    above.seconds = 0.0001;  // its FLOPs take 0.9 ms at the roof
    testing::write_report_bench(into, above);
    ReportRun sound;
    sound.part = "sound";
    testing::write_report_bench(into, sound);
    ReportRun partly;
    partly.part = "partly";
    partly.change = [](RunRecord& record) { record.work.freeze = {"conv1.*", "conv2.*"}; };
    testing::write_report_bench(into, partly);
    ReportTraining frozen;
    frozen.run.part = "frozen";
    frozen.accuracies = {0.5};
    frozen.seconds = {1.0};
    const RunId id = testing::write_report_training(into, frozen);
    EpochRecord epoch;
    epoch.epoch = 2;
    epoch.train_loss = 1.0;  // as in the first
    epoch.samples = 6000;
    epoch.seconds = 1.0;
    into.add(id, std::span<const EpochRecord>(&epoch, 1));
  });
  std::map<std::string, std::set<std::string>> names;
  std::string partly;
  for (const RunView& run : store.data().runs()) {
    for (const Finding& flag : flags_of(store.data(), run)) {
      names[run.part].insert(flag.name);
      if (run.part == "partly") partly = flag.evidence;
      EXPECT_FALSE(flag.evidence.empty());
      EXPECT_FALSE(flag.severity.empty());
    }
  }
  EXPECT_TRUE(names["few"].contains(std::string(kFewSamples)));
  EXPECT_TRUE(names["waiting"].contains(std::string(kLoaderBound)));
  EXPECT_TRUE(names["above"].contains(std::string(kAboveRoof)));
  EXPECT_TRUE(names["frozen"].contains(std::string(kFrozen)));
  EXPECT_TRUE(names["frozen"].contains(std::string(kSubstituted)));
  EXPECT_TRUE(names["partly"].contains(std::string(kFrozen)));
  EXPECT_TRUE(contains(partly, "conv1.*, conv2.* frozen")) << partly;
  EXPECT_TRUE(names["sound"].empty());
  const Table table = one(store.data(), "throughput", {"waiting"});
  EXPECT_TRUE(
      contains(notes_of(table, table.rows[0][column_of(table, "throughput")]), "loader-bound"));
}

TEST(ReportFlags, ChanceIsWithinBinomialNoise) {
  const auto guesses = [](double accuracy, std::int64_t classes, std::int64_t tested,
                          std::map<std::string, double> numbers = {}) {
    RunView run;
    run.run.work.classes = classes;
    run.run.work.test_samples = tested;
    run.run.numbers = std::move(numbers);
    return at_chance(run, accuracy);
  };
  EXPECT_TRUE(guesses(0.10, 10, 10'000));
  EXPECT_TRUE(guesses(0.1089, 10, 10'000));  // three standard errors are 0.9 points
  EXPECT_FALSE(guesses(0.1091, 10, 10'000));
  EXPECT_TRUE(guesses(0.12, 10, 1'000));
  EXPECT_TRUE(guesses(0.005, 200, 10'000));
  EXPECT_FALSE(guesses(0.02, 200, 10'000));
  // Nine of ten test samples are of one class: naming that class is right nine times of ten.
  EXPECT_FALSE(guesses(0.9, 2, 10'000));
  EXPECT_TRUE(guesses(0.9, 2, 10'000, {{"chance_accuracy", 0.9}}));
}

}  // namespace
}  // namespace ridgeline::report
