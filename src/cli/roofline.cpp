// ridgeline roofline: points and roofs of stored runs.

#include "analysis/compare/stored.h"
#include "base/error.h"
#include "cli/command.h"
#include "cli/options.h"
#include "cli/output.h"
#include "cli/parser.h"
#include "cli/progress.h"
#include "cli/roofline_text.h"
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
      if (other.id == run.id) bad_input("run {} is named twice", name);
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
    message(fmt::format("measuring the ceilings of {}, once for this environment\n", one.device));
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
  // What lies above its roof is no result: scripts must notice.
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
      "roofline", "Hold stored runs against the measured ceilings of their machine");
  command->add_option(
      "run", options->runs,
      "Runs by number, first letters of their uuid, 'last', or conditions such as "
      "backend=native,model=resnet18 (the newest that fits); none: those of the last "
      "bench call");
  command->add_option("--store", options->store, "The store to read");
  command->add_option("--by", options->by,
                      "What a point stands for: network, layer, op (kind) or step of the plan");
  command->add_option("--top", options->top, "Only the points that lose the most time");
  add_output_options(*command, options->output, "Write one row for each point");
  command->footer(
      "Efficiency is the least time that the measured roofs allow over the measured time.\n"
      "Exit code 1 says that a point lies above its roof: a cost, a time or a ceiling is wrong.\n"
      "Examples:\n"
      "  ridgeline roofline\n"
      "  ridgeline roofline last --by op\n"
      "  ridgeline roofline backend=native,model=resnet18 --by layer\n"
      "  ridgeline roofline 12 13 --by step --top 20\n"
      "  ridgeline roofline --by layer --json");
  command->callback([options, &action] { action = [options] { return run_roofline(*options); }; });
}

}  // namespace ridgeline::cli
