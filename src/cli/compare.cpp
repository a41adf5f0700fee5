// ridgeline compare: two stored runs, which is faster and why.

#include <algorithm>

#include "base/error.h"
#include "base/json_text.h"
#include "cli/command.h"
#include "cli/compare_output.h"
#include "cli/difference_output.h"
#include "cli/options.h"
#include "cli/output.h"
#include "cli/parser.h"
#include "cli/tables.h"

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
      message(fmt::format("run {} is left out: it has no measured iterations\n", run.id));
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
    bad_input("--all {}: the call has no two runs of the same work", options.call);
  return comparisons;
}

int run_all(const Store& store, const CompareOptions& options) {
  if (!options.runs.empty())
    bad_input("--all compares the runs of one call; do not name other runs");
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
  if (!options.call.empty()) bad_input("--ops compares two runs; it cannot be combined with --all");
  if (options.runs.size() != 2) {
    bad_input("--ops needs two runs, A and B; {} given", options.runs.size());
  }
  const DifferenceOptions wanted = difference_options(options.difference, options.force);
  const Store store = Store::open_existing(options.store);
  const RunRecord a = find_run(store, options.runs[0]), b = find_run(store, options.runs[1]);
  if (a.id == b.id) bad_input("A and B are both run {}; name two different runs", a.id);
  const StepDifference difference =
      step_difference(difference_side(store, a), difference_side(store, b), wanted);
  print(options.json ? json_document(difference_json(difference)) : difference_text(difference));
  return 0;
}

int run_compare(const CompareOptions& options) {
  if (options.ops) return run_ops(options);
  const VerdictOptions& verdict = options.verdict;
  check_verdict_options(verdict);
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
      program.add_subcommand("compare", "Compare two stored runs: is B faster than A, and why");
  command->heading("Runs");
  command->add_option("RUN", options->runs,
                      "The runs A and B. Each is a run number, the first letters of a uuid, "
                      "'last', 'last~1' (the one before), or conditions such as "
                      "backend=native,label=before (the newest match)");
  command->add_option("--all CALL", options->call,
                      "Compare every run of one call with the first run of the same work; CALL is "
                      "'last' or the first letters of the call's uuid");
  command->add_flag("--force", options->force,
                    "Compare runs of different work too, marked as such");
  command->heading("Comparison");
  Option* margin = command->add_option("--margin SHARE", options->verdict.margin,
                                       "Treat smaller differences as 'same'; 0.02 is 2%");
  Option* alpha = command->add_option("--alpha NUMBER", options->verdict.alpha,
                                      "Significance level; 0.01 gives a 99% interval");
  Option* ops =
      command->add_flag("--ops", options->ops,
                        "Show the difference op by op instead of a verdict, from the times of "
                        "single steps");
  add_difference_options(*command, options->difference, ops);
  for (Option* option : {margin, alpha}) option->excludes(ops);
  add_store_option(*command, options->store);
  add_json_option(*command, options->json);
  add_table_options(*command, compare_columns());
  command->notes(
      "Verdicts. same: the whole interval is within the margin. faster or slower: the interval "
      "does not contain 1, and the ratio is beyond the margin. undecided: neither.\n"
      "Exit code: 0 same or faster, 3 slower, 4 undecided, 2 bad usage or different work.");
  command->examples({"ridgeline compare last~1 last",
                     "ridgeline compare backend=onednn backend=native --margin 0.05",
                     "ridgeline compare label=before label=after --json",
                     "ridgeline compare --all last",
                     "ridgeline compare --ops device=cpu device=cuda:0 --by op --top 10"});
  command->callback([options, &action] { action = [options] { return run_compare(*options); }; });
}

}  // namespace ridgeline::cli
