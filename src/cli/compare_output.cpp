#include "cli/compare_output.h"

#include <algorithm>

#include "base/error.h"
#include "base/text.h"
#include "cli/tables.h"
#include "store/identity_fields.h"

namespace ridgeline::cli {
namespace {

std::string change_percent(double ratio) { return fmt::format("{:+.2f}%", 100.0 * (ratio - 1.0)); }

// "0.8184"; with few samples an end of the interval may be of any size.
std::string ratio_text(double ratio) {
  return ratio < 1000.0 ? fmt::format("{:.4f}", ratio) : fmt::format("{:.3g}", ratio);
}

std::string interval_text(const Comparison& result) {
  return fmt::format("{} to {}", ratio_text(result.low), ratio_text(result.high));
}

// What tells the work from that of the others.
std::string work_among(const std::vector<RunComparison>& others, const RunRecord& run) {
  std::vector<std::string> words = {run.work.model};
  for (const IdentityField& field : identity_fields()) {
    const bool differs = std::any_of(others.begin(), others.end(), [&](const RunComparison& other) {
      return !field.equal(other.b, run);
    });
    if (!field.of_work || field.name == "model" || !differs) continue;
    if (std::string phrase = field.phrase(run); !phrase.empty()) words.push_back(phrase);
  }
  return joined(words, ", ");
}

std::string runs_text(const RunComparison& comparison) {
  TextTable table(
      {"", "run", "executor", comparison.pair.per_sample ? "median per sample" : "median",
       "samples", "units", "label"},
      "lllrrrl");
  const Comparison& result = comparison.pair.result;
  const auto add = [&](const char* name, const RunRecord& run, double median, std::int64_t samples,
                       std::int64_t units) {
    table.add_row({name, fmt::format("{}", run.id), executor_text(run), duration_text(median),
                   count_text(samples), count_text(units), run.label});
  };
  add("A", comparison.a, result.median_a, result.samples_a, result.units_a);
  add("B", comparison.b, result.median_b, result.samples_b, result.units_b);
  return shown(table);
}

std::string noise_text(const RunComparison& comparison) {
  const Comparison& result = comparison.pair.result;
  const auto deviation = [](const std::optional<double>& value) {
    return value ? fmt::format("{:.2f}%", 100.0 * *value) : std::string("n/a");
  };
  std::string text = fmt::format(
      "uncertainty of the ratio (standard deviation): {:.2f}% within the runs{}, {} between "
      "processes",
      100.0 * result.within, result.paired ? " (turns paired)" : "",
      deviation(result.between_processes));
  if (comparison.pair.floor) {
    text += fmt::format(", {} between runs ({} repetitions)", deviation(result.between_runs),
                        comparison.pair.floor->runs);
  }
  return text + '\n';
}

std::string verdict_text(const PairVerdict& pair) {
  const Verdict verdict = pair.result.verdict;
  const std::string answer = verdict == Verdict::undecided ? "undecided"
                             : verdict == Verdict::same
                                 ? "A and B are the same"
                                 : fmt::format("B is {} than A", name_of(verdict));
  return fmt::format("{}: {} time{}", answer, change_percent(pair.result.ratio),
                     pair.doubts.empty() ? "" : fmt::format(" ({})", pair.doubts));
}

std::string verdict_cell(const PairVerdict& pair) {
  const std::string_view verdict = name_of(pair.result.verdict);
  return pair.doubts.empty() ? std::string(verdict) : fmt::format("{} ({})", verdict, pair.doubts);
}

std::string findings_text(const char* name, const std::vector<Finding>& findings) {
  std::string text;
  for (const Finding& finding : findings) {
    text += fmt::format("{}, {}: {}: {}\n", name, finding.severity, finding.name, finding.evidence);
  }
  return text;
}

}  // namespace

std::vector<std::string> compare_columns() {
  return {"work", "A", "B", "verdict", "ratio B/A", "interval"};
}

std::string comparison_text(const RunComparison& comparison, const VerdictOptions& options) {
  const Comparison& result = comparison.pair.result;
  const std::string around = result.ranges
                                 ? "range of the samples"
                                 : fmt::format("{:.4g}% interval", 100.0 * (1.0 - options.alpha));
  std::string text =
      fitted(fmt::format("{}\nratio B/A {:.4f}, {} {}\n{}\n\n", verdict_text(comparison.pair),
                         result.ratio, around, interval_text(result), result.reason));
  if (comparison.work.empty()) text += fitted(work_text(comparison.a) + '\n');
  text += runs_text(comparison);
  if (!result.ranges) text += fitted(noise_text(comparison));
  if (result.paired) {
    text += fmt::format("the ratio compares turn by turn; the ratio of the medians is {:.4f}\n",
                        result.median_b / result.median_a);
  }
  for (const std::string& warning : comparison.warnings) {
    text += fitted("warning: " + warning + '\n');
  }
  if (!comparison.executor.empty()) {
    text +=
        fitted("\ndifferences between A and B: " + differences_text(comparison.executor) + '\n');
  }
  text += "\nwhy: factors of the ratio (above 1: B loses time); their product is ";
  text += fmt::format("{:.4f}\n", comparison.gap.ratio);
  TextTable table({"factor", "B/A", "evidence"}, "lrl");
  for (const GapFactor& factor : comparison.gap.factors) {
    table.add_row({factor.name, fmt::format("{:.4f}", factor.factor), factor.evidence});
  }
  text += shown(table);
  const std::string findings =
      findings_text("A", comparison.findings_a) + findings_text("B", comparison.findings_b);
  if (!findings.empty()) text += "\nfindings of the runs\n" + fitted(findings);
  return text;
}

std::string comparisons_text(const std::vector<RunComparison>& comparisons,
                             const VerdictOptions& options) {
  TextTable table({"work", "A", "B", "verdict", "ratio B/A",
                   fmt::format("interval ({:.4g}%)", 100.0 * (1.0 - options.alpha))},
                  "llllrr");
  table.important({"B", "verdict", "ratio B/A", "A", "work"});
  for (const RunComparison& comparison : comparisons) {
    const auto name = [](const RunRecord& run) {
      return fmt::format("{}: {}", run.id, executor_text(run));
    };
    table.add_row({work_among(comparisons, comparison.b), name(comparison.a), name(comparison.b),
                   verdict_cell(comparison.pair),
                   fmt::format("{:.4f}", comparison.pair.result.ratio),
                   interval_text(comparison.pair.result) +
                       (comparison.pair.result.ranges ? " (range of few samples)" : "")});
  }
  return shown_main(table);
}

}  // namespace ridgeline::cli
