// ridgeline compare: two stored runs, which is faster and why.

#include <algorithm>

#include "base/error.h"
#include "base/json_text.h"
#include "cli/command.h"
#include "cli/compare_output.h"
#include "cli/difference_output.h"
#include "cli/output.h"
#include "cli/parser.h"

namespace ridgeline::cli {
namespace {

constexpr int kSlower = 3, kUndecided = 4;

struct CompareOptions {
  std::vector<std::string> runs;
  std::string call;  // of --all
  std::string store = "ridgeline.db";
  VerdictOptions verdict;
  bool force = false, json = false;
  bool ops = false;
  DifferenceArguments difference;  // of --ops
};

int exit_code(Verdict verdict) {
  if (verdict == Verdict::slower) return kSlower;
  return verdict == Verdict::undecided ? kUndecided : 0;
}

// Each run against the first of the same work: unlike work never meets.
std::vector<RunComparison> compare_call(const Store& store, const CompareOptions& options) {
  PairJudge judge(store);
  std::vector<RunRecord> firsts;
  std::vector<RunComparison> comparisons;
  for (const RunRecord& run : runs_of_call(store, options.call)) {
    if (!judge.has_times(run)) {
      message(fmt::format("run {} has no measured iterations and is left out\n", run.id));
      continue;
    }
    const auto first = std::find_if(firsts.begin(), firsts.end(),
                                    [&](const RunRecord& other) { return other.work == run.work; });
    if (first == firsts.end()) {
      firsts.push_back(run);
    } else {
      comparisons.push_back(compare_runs(store, *first, run, options.verdict, false));
    }
  }
  if (comparisons.empty())
    bad_input("--all {}: no two runs of the call did the same work", options.call);
  return comparisons;
}

int run_all(const Store& store, const CompareOptions& options) {
  if (!options.runs.empty())
    bad_input("--all compares the runs of one call; name no runs beside it");
  const std::vector<RunComparison> comparisons = compare_call(store, options);
  print(options.json ? comparisons_json(comparisons, options.verdict)
                     : comparisons_text(comparisons, options.verdict));
  int code = 0;
  for (const RunComparison& comparison : comparisons) {
    const int own = exit_code(comparison.pair.result.verdict);
    if (code != kSlower && own != 0) code = own;
  }
  return code;
}

int run_ops(const CompareOptions& options) {
  if (!options.call.empty()) bad_input("--ops compares two runs; leave --all out");
  if (options.runs.size() != 2) {
    bad_input("compare --ops needs two runs, A and B; {} given", options.runs.size());
  }
  const DifferenceOptions wanted = difference_options(options.difference, options.force);
  const Store store = Store::open_existing(options.store);
  const RunRecord a = find_run(store, options.runs[0]), b = find_run(store, options.runs[1]);
  if (a.id == b.id) bad_input("both names mean run {}; name two runs", a.id);
  const StepDifference difference =
      step_difference(difference_side(store, a), difference_side(store, b), wanted);
  print(options.json ? json_document(difference_json(difference)) : difference_text(difference));
  return 0;
}

int run_compare(const CompareOptions& options) {
  if (options.ops) return run_ops(options);
  const VerdictOptions& verdict = options.verdict;
  if (!(verdict.margin > 0.0 && verdict.margin < 1.0)) {
    bad_input("--margin {}: must lie above 0 and below 1; 0.02 is 2%", verdict.margin);
  }
  if (!(verdict.alpha > 0.0 && verdict.alpha < 0.5)) {
    bad_input("--alpha {}: must lie above 0 and below 0.5; 0.01 gives a 99% interval",
              verdict.alpha);
  }
  if (options.call.empty() && options.runs.size() != 2) {
    bad_input("compare needs two runs, A and B, or --all; {} given", options.runs.size());
  }
  const Store store = Store::open_existing(options.store);
  if (!options.call.empty()) return run_all(store, options);
  const RunComparison comparison =
      compare_runs(store, find_run(store, options.runs[0]), find_run(store, options.runs[1]),
                   verdict, options.force);
  print(options.json ? comparison_json(comparison, verdict) : comparison_text(comparison, verdict));
  return exit_code(comparison.pair.result.verdict);
}

}  // namespace

void add_compare(Parser& program, Action& action) {
  auto options = std::make_shared<CompareOptions>();
  Parser* command =
      program.add_subcommand("compare", "Two stored runs: is B faster than A, and why");
  command->add_option("run", options->runs,
                      "A and B: a number, first letters of a uuid, 'last', 'last~1', or conditions "
                      "for the newest that fits, 'backend=native,label=before'");
  command->add_option("--all", options->call,
                      "Instead: each run of one call ('last', or first letters of its uuid) "
                      "against the first of the same work");
  command->add_option("--store", options->store, "The store to read");
  Option* margin = command->add_option("--margin", options->verdict.margin,
                                       "Differences up to this share do not matter");
  Option* alpha =
      command->add_option("--alpha", options->verdict.alpha,
                          "The interval misses the true ratio in this share of comparisons");
  Option* ops = command->add_flag(
      "--ops", options->ops,
      "Instead of a verdict: where the difference lies, op by op, from the times of single steps");
  add_difference_options(*command, options->difference, ops);
  for (Option* option : {margin, alpha}) option->excludes(ops);
  command->add_flag("--force", options->force, "Compare unlike work too, marked as such");
  command->add_flag("--json", options->json, "One JSON document on standard output");
  command->footer(
      "same: the whole interval lies within the margin. faster, slower: the interval excludes 1\n"
      "and the ratio is beyond the margin. undecided: neither.\n"
      "Exit code: 0 same or faster, 3 slower, 4 undecided; 2 bad use or unlike work.\n"
      "Examples:\n"
      "  ridgeline compare last~1 last\n"
      "  ridgeline compare backend=onednn backend=native --margin 0.05\n"
      "  ridgeline compare label=before label=after --json\n"
      "  ridgeline compare --all last\n"
      "  ridgeline compare --ops device=cpu device=cuda:0 --by op --top 10");
  command->callback([options, &action] { action = [options] { return run_compare(*options); }; });
}

}  // namespace ridgeline::cli
