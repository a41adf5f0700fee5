#pragma once

// What the tests of hypotheses have in common; judge.cpp chooses among them.

#include "report/analysis/estimates.h"
#include "report/analysis/judge.h"
#include "report/analysis/places.h"
#include "report/analysis/prose.h"

namespace ridgeline::report {

struct JudgeInput {
  const Data& data;
  const study::Hypothesis& hypothesis;
  Runs runs;  // of its parts, the newest of each place and work
  Wording wording;
};

struct Answer {
  Outcome outcome = Outcome::undecided;
  Prose evidence;
};

[[nodiscard]] Answer judge_faster(const JudgeInput& input);
[[nodiscard]] Answer judge_speedup_varies(const JudgeInput& input);
[[nodiscard]] Answer judge_speedup_grows(const JudgeInput& input);
[[nodiscard]] Answer judge_efficiency_grows(const JudgeInput& input);
[[nodiscard]] Answer judge_throughput_grows(const JudgeInput& input);
[[nodiscard]] Answer judge_bound(const JudgeInput& input);
[[nodiscard]] Answer judge_same_accuracy(const JudgeInput& input);

// "Not measured here: …"
[[nodiscard]] Answer not_measured(const std::string& what);

// Values along the axis of one place and one work but for the axis.
struct GrowthLine {
  std::string name;  // "resnet18 with native on desk"
  std::vector<TrendPoint> points;
  std::string doubts;  // of all its points
};
// Judges each line and tells its ends. `quantity`: "samples a second"; `number` writes a value.
[[nodiscard]] Answer judge_growth(const std::vector<GrowthLine>& lines, const std::string& axis,
                                  const std::string& quantity,
                                  std::string (*number)(const Estimate& value));

// Where a run stands on an axis. FLOPs are those of one sample, so that batches do not matter.
[[nodiscard]] std::optional<double> axis_place(const RunView& run, const std::string& axis);
// "batch", "training FLOPs": what an axis is called in a sentence.
[[nodiscard]] std::string axis_words(const std::string& axis);
// The value of the axis, shown: "batch 64", "1.2 GFLOP".
[[nodiscard]] std::string axis_value(const std::string& axis, double value);

}  // namespace ridgeline::report
