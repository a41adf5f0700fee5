// ridgeline profile: where the time of an iteration goes, op by op.

#include "lab/profile.h"

#include "base/error.h"
#include "base/parse.h"
#include "cli/command.h"
#include "cli/options.h"
#include "cli/output.h"
#include "cli/parser.h"
#include "cli/profile_output.h"
#include "cli/start_ranks.h"
#include "cli/tables.h"
#include "cli/terminal.h"
#include "measure/profile/trace.h"
#include "ranks/ranks.h"

namespace ridgeline::cli {
namespace {

struct ProfileOptions {
  ProfileRequest request;
  OutputOptions output;
  std::string by = "op", trace;
  std::optional<std::int64_t> top;
  bool memory = false;
};

DifferenceBy difference_by(const std::string& by) {
  if (by == "op") return DifferenceBy::op;
  if (by == "layer") return DifferenceBy::layer;
  if (by == "step") return DifferenceBy::step;
  bad_input("--by {}: with --against it must be op, layer or step", by);
}

// 1: none.
int ranks_to_start(const std::string& asked) {
  if (launched_ranks() > 1) return 1;
  const int count = number_in<int>(asked).value_or(0);
  if (count < 1) bad_input("--ranks {}: must be a number, at least 1", asked);
  return count;
}

// Of the ranks but the first: they say nothing.
int run_silent_rank(const ProfileOptions& options) {
  CallListener silent;
  const ProfileReport report = run_profile(options.request, silent);
  const Collected& collected = report.collected;
  if (collected.status == RunStatus::failed) fail("{}", collected.error);
  if (!options.trace.empty()) write_trace(collected.profile, options.trace, *joined_ranks());
  return 0;
}

void write_trace_of_all(const Profile& profile, const std::string& file) {
  if (Ranks* ranks = joined_ranks()) return write_trace(profile, file, *ranks);
  write_trace(profile, file);
}

int run_profile_command(const ProfileOptions& options) {
  if (const int count = ranks_to_start(options.request.axes.ranks); count > 1) {
    return start_ranks({.count = count, .restarts = 0, .checkpoint = {}});
  }
  if (const Ranks* ranks = started_ranks(); ranks != nullptr && !ranks->first()) {
    return run_silent_rank(options);
  }
  ProfileView view;
  view.by = static_cast<TableBy>(choice_of("--by", options.by, kTableNames));
  view.top = options.top;
  view.memory = options.memory;
  if (options.top && *options.top < 1) bad_input("--top {}: must be at least 1", *options.top);
  if (!options.request.against.empty()) (void)difference_by(options.by);
  check_writable(options.output.csv);
  check_writable(options.trace);
  Terminal terminal(options.output.json);
  const ProfileReport report = run_profile(options.request, terminal);
  terminal.clear();

  // A file that cannot be written does not keep the rest from being shown.
  std::vector<std::string> troubles;
  const auto writing = [&](const auto& body) {
    try {
      body();
    } catch (const Error& error) {
      troubles.emplace_back(error.what());
    }
  };
  const Profile& profile = report.collected.profile;
  if (report.against) {
    writing([&] {
      view.difference =
          step_difference(*report.against, difference_side(profile),
                          {.by = difference_by(options.by), .top = options.top, .force = false});
    });
  }
  if (!options.trace.empty()) {
    writing([&] {
      write_trace_of_all(profile, options.trace);
      view.trace = options.trace;
    });
  }
  if (!options.output.csv.empty()) {
    writing([&] { write_file_atomically(options.output.csv, profile_csv(report, view)); });
  }
  print(options.output.json ? profile_json(report, view) : profile_text(report, view));
  if (!report.store_trouble.empty()) {
    troubles.push_back("cannot write to the store: " + report.store_trouble);
  }
  if (report.collected.status == RunStatus::failed) {
    troubles.push_back(fmt::format("failed after {} watched iterations: {}", profile.iterations,
                                   report.collected.error));
  }
  for (const std::string& trouble : troubles) message("ridgeline: " + trouble + '\n');
  if (terminal.signal() != 0) {
    message("interrupted: the profile is incomplete\n");
    return 128 + terminal.signal();
  }
  return troubles.empty() ? 0 : 1;
}

}  // namespace

void add_profile(Parser& program, Action& action) {
  auto options = std::make_shared<ProfileOptions>();
  ProfileRequest& request = options->request;
  BenchAxes& axes = request.axes;
  BenchWork& work = request.work;
  Parser* command =
      program.add_subcommand("profile", "Show where the time of a training step goes, op by op");
  add_model_option(*command, axes.models, "MODEL,--model NAME",
                   "Model to profile: a name that 'ridgeline models' lists, or an .onnx file");
  add_backend_option(*command, axes.backends, "--backend NAME",
                     "Backend, or auto; 'ridgeline backends' lists them [default: native on cpu, "
                     "auto on cuda]");
  command->add_option("--device NAME", axes.devices,
                      "cpu, or cuda:0 for the first GPU [default: the backend's]");
  command->add_option(
      "--precision NAME", axes.precisions,
      "Number format: fp32, tf32, bf16 or fp16; the CPU supports fp32 and, with AMX or "
      "AVX512-BF16, bf16, OpenCL devices fp32 and fp16");
  command->heading(kTrainingHeading);
  command->add_option("--batch N", axes.batches, "Samples per step");
  command->heading(kDataHeading);
  command->add_option("--image SIZE", axes.images,
                      "Image size: 224, 224x224 or 3x224x224 [default: the model's]");
  add_work_options(*command, work);
  command->heading(kMeasuringHeading);
  command->add_option("--steps N", request.steps, "Iterations to profile");
  command->add_flag("--counters", request.counters,
                    "Count instructions, cycles and cache misses, if the system allows it");
  command->add_flag("--no-roof", request.no_roof,
                    "Do not compare with the hardware's ceilings, and do not measure them");
  add_telemetry_option(*command, request.telemetry_hz);
  command->heading("Ranks");
  command->add_option(
      "--ranks N", axes.ranks,
      "Processes that share the step, started with mpirun; the table shows the first, a "
      "trace all of them");
  add_exchange_options(*command, work.ranks);
  add_store_options(*command, request.store);
  add_output_options(*command, options->output, "Write one row per row of the table");
  add_table_options(*command, profile_columns());
  command
      ->add_option("--by NAME", options->by,
                   "Rows of the table: op, layer, phase, kernel, step (of the plan), or study2 "
                   "(matrix multiplication, ReLU, softmax, gradients)")
      ->values({"op", "layer", "phase", "kernel", "step", "study2"});
  command->add_option("--top N", options->top, "Show N rows; the others become one");
  command->add_flag("--memory", options->memory,
                    "Also show what is in memory at each step of the plan");
  command->add_option("--against RUN", request.against,
                      "Also show the difference to a stored run, op by op: a run number, 'last' "
                      "or backend=NAME");
  command->add_option("--trace FILE", options->trace,
                      "Write a trace for Perfetto or chrome://tracing; compressed if the name ends "
                      "in .gz");
  command->notes(
      "Every table adds up to the time of one iteration; time between steps has rows of its own.");
  command->examples(
      {"ridgeline profile mnist_cnn --batch 512",
       "ridgeline profile resnet50 --image 64 --batch 8 --backend onednn --by layer --top 20",
       "ridgeline profile mlp --by study2",
       "ridgeline profile resnet18 --image 64 --trace resnet18.json.gz --steps 2",
       "ridgeline profile mnist_cnn --backend onednn --against backend=native",
       "ridgeline profile resnet18 --data photos/ --loader --image 64 --json",
       "ridgeline profile resnet18 --image 64 --ranks 2 --trace ranks.json.gz --steps 2",
       "ridgeline profile resnet50 --device cuda:0 --precision bf16 --batch 128 --by kernel"});
  command->callback(
      [options, &action] { action = [options] { return run_profile_command(*options); }; });
}

}  // namespace ridgeline::cli
