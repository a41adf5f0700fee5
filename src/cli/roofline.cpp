// ridgeline roofline: points and roofs of stored runs.

#include "lab/roofline.h"

#include "base/error.h"
#include "cli/command.h"
#include "cli/options.h"
#include "cli/output.h"
#include "cli/parser.h"
#include "cli/roofline_text.h"
#include "cli/tables.h"
#include "cli/terminal.h"

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

int run_roofline_command(const RooflineOptions& options) {
  const RooflineView view{grouping_of(options.by), options.top};
  if (options.top && *options.top < 1) bad_input("--top {}: must be at least 1", *options.top);
  check_writable(options.output.csv);
  Terminal terminal(options.output.json);
  const StoredRooflines found = run_roofline({options.store, options.runs}, terminal);
  terminal.clear();
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
  command->callback(
      [options, &action] { action = [options] { return run_roofline_command(*options); }; });
}

}  // namespace ridgeline::cli
