#pragma once

// What the tests of hypotheses have in common; judge.cpp chooses among them.

#include "report/analysis/estimates.h"
#include "report/analysis/judge.h"
#include "report/analysis/places.h"
#include "report/analysis/prose.h"

namespace ridgeline::report {

struct JudgeInput {
  const Data& data;
  Ratios& ratios;
  const study::Hypothesis& hypothesis;
  std::vector<const RunView*> runs;  // of its parts, the newest of each place and work
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

// Speed-ups between two machines, or of one: one for each work that both sides did. Runs of other
// machines are compared only where the devices differ: what beats a library does so on the same
// processor.
struct SpeedupLine {
  std::size_t of_machine = 0, than_machine = 0;
  std::vector<Ratio> ratios;
};
// Of several runs of a work that fit `of`, the fastest or the slowest; of those that fit `than`
// the fastest. A claim that all are faster rests on the slowest.
enum class Choice { fastest, slowest };
[[nodiscard]] std::vector<SpeedupLine> speedup_lines(const JudgeInput& input, Choice of);
// "server against desk", or nothing where one machine did both.
[[nodiscard]] std::string line_name(const Data& data, const SpeedupLine& line);

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
