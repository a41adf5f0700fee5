// ridgeline roofline: points and roofs of stored runs.

#include "analysis/compare/stored.h"
#include "base/error.h"
#include "cli/command.h"
#include "cli/options.h"
#include "cli/output.h"
#include "cli/parser.h"
#include "cli/progress.h"
#include "cli/roofline_text.h"
#include "cli/tables.h"
#include "measure/ceilings/ceilings.h"
#include "measure/machine/environment.h"

namespace ridgeline::cli {
namespace {

struct RooflineOptions {
  std::vector<std::string> runs;
  std::string store = "ridgeline.db";
  std::string by = "network";
  std::optional<std::int64_t> top;
  OutputOptions output;
};

Grouping grouping_of(const std::string& name) {
  if (name == "network") return Grouping::network;
  if (name == "layer") return Grouping::layer;
  if (name == "op") return Grouping::op;
  if (name == "step") return Grouping::step;
  bad_input("--by {}: must be network, layer, op or step", name);
}

std::vector<RunRecord> runs_of(const Store& store, const std::vector<std::string>& names) {
  if (names.empty()) return last_bench_runs(store);
  std::vector<RunRecord> runs;
  for (const std::string& name : names) {
    RunRecord run = find_run(store, name);
    for (const RunRecord& other : runs) {
      if (other.id == run.id) bad_input("run {} is given twice", name);
    }
    runs.push_back(std::move(run));
  }
  return runs;
}

// Ceilings that this machine can still tell: runs of another one need a measurement there.
void measure_missing(const std::string& path, const std::vector<RunRecord>& runs) {
  const auto missing = missing_ceilings(Store::open_existing(path), runs);
  if (missing.empty()) return;
  const Environment here = read_environment();
  for (const MissingCeilings& one : missing) {
    if (environment_record(here, one.environment.label).key != one.environment.key) continue;
    message(fmt::format("measuring the ceilings of {} (only once on this machine)\n", one.device));
    Store store{std::filesystem::path(path)};
    ProgressBar bar;
    (void)known_or_measured(store, one.environment.key, one.device,
                            [&](std::int64_t done, std::int64_t total, const std::string& what) {
                              bar.show(done, total, what.c_str());
                            });
  }
}

int run_roofline(const RooflineOptions& options) {
  const RooflineView view{grouping_of(options.by), options.top};
  if (options.top && *options.top < 1) bad_input("--top {}: must be at least 1", *options.top);
  check_writable(options.output.csv);
  const Store store = Store::open_existing(options.store);
  const std::vector<RunRecord> runs = runs_of(store, options.runs);
  measure_missing(options.store, runs);
  const StoredRooflines found = rooflines_of(store, runs);
  if (!options.output.csv.empty()) {
    write_file_atomically(options.output.csv, roofline_csv(found, view));
  }
  print(options.output.json ? roofline_json(found, view) : roofline_text(found, view));
  // A point above its roof is wrong: scripts must notice.
  for (const RooflineGroup& group : found.groups) {
    for (const RunRoofline& run : group.runs) {
      if (!roofline_errors(run, group.roofs).empty()) return 1;
    }
  }
  return 0;
}

}  // namespace

void add_roofline(Parser& program, Action& action) {
  auto options = std::make_shared<RooflineOptions>();
  Parser* command = program.add_subcommand(
      "roofline", "Show how close stored runs come to the hardware's limits");
  command->heading("Runs");
  command->add_option("RUN", options->runs,
                      "Run numbers, first letters of a uuid, 'last', or conditions such as "
                      "backend=native,model=resnet18 (the newest match) [default: the runs of the "
                      "last bench call]");
  add_store_option(*command, options->store);
  add_output_options(*command, options->output, "Write one row per point");
  add_table_options(*command, roofline_columns());
  command
      ->add_option("--by NAME", options->by,
                   "One point per network, layer, op (kind) or step (of the plan)")
      ->values({"network", "layer", "op", "step"});
  command->add_option("--top N", options->top, "Show the N points that lose the most time");
  command->notes(
      "Efficiency is the least time that the measured ceilings allow, divided by the measured "
      "time.\n"
      "The exit code is 1 if a point is above its roof: then a cost, a time or a ceiling is "
      "wrong.");
  command->examples({"ridgeline roofline", "ridgeline roofline last --by op",
                     "ridgeline roofline backend=native,model=resnet18 --by layer",
                     "ridgeline roofline 12 13 --by step --top 20",
                     "ridgeline roofline --by layer --json"});
  command->callback([options, &action] { action = [options] { return run_roofline(*options); }; });
}

}  // namespace ridgeline::cli
