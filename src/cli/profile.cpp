// ridgeline profile: where the time of an iteration goes, op by op.

#include "lab/profile.h"

#include "base/error.h"
#include "cli/command.h"
#include "cli/options.h"
#include "cli/output.h"
#include "cli/parser.h"
#include "cli/profile_output.h"
#include "cli/terminal.h"
#include "measure/profile/trace.h"

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

int run_profile_command(const ProfileOptions& options) {
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

  // What cannot be written does not keep the rest from being told.
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
      write_trace(profile, options.trace);
      view.trace = options.trace;
    });
  }
  if (!options.output.csv.empty()) {
    writing([&] { write_file_atomically(options.output.csv, profile_csv(report, view)); });
  }
  print(options.output.json ? profile_json(report, view) : profile_text(report, view));
  if (!report.store_trouble.empty()) {
    troubles.push_back("the store could not be written: " + report.store_trouble);
  }
  if (report.collected.status == RunStatus::failed) {
    troubles.push_back(fmt::format("failed after {} watched iterations: {}", profile.iterations,
                                   report.collected.error));
  }
  for (const std::string& trouble : troubles) message("ridgeline: " + trouble + '\n');
  if (terminal.signal() != 0) {
    message("interrupted: less was watched than was asked for\n");
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
      program.add_subcommand("profile", "Tell where the time of a training step goes, op by op");
  command->add_option("MODEL,--model", axes.models, "Model, see 'ridgeline models'");
  command->add_option("--backend", axes.backends,
                      "Provider, see 'ridgeline backends', or auto [cpu: native, cuda: auto]");
  command->add_option("--device", axes.devices,
                      "cpu, cuda:0 for the first graphics processor [the backend's]");
  command->add_option("--precision", axes.precisions, "fp32, tf32, bf16, fp16; the cpu has fp32");
  command->add_option("--batch", axes.batches, "Samples in a step");
  command->add_option("--image", axes.images, "Size of images: 224, 224x224 or 3x224x224");
  command->add_option("--steps", request.steps, "Iterations that are watched");
  command->add_option("--by", options->by,
                      "Rows of the table: op (kind), layer, phase, kernel, step (of the plan), or "
                      "study2 (matrix multiplication, ReLU, softmax, gradients)");
  command->add_option("--top N", options->top, "Only so many rows, the others as one");
  command->add_option("--trace FILE", options->trace,
                      "Write a trace for Perfetto, chrome://tracing and other readers of PyTorch's "
                      "traces; gzip where the name ends in .gz");
  command->add_option(
      "--against RUN", request.against,
      "Also the difference to a stored run, op by op: a number, 'last', backend=NAME");
  command->add_flag("--memory", options->memory, "Also what lives in memory, step by step");
  add_work_options(*command, work,
                   "Every iteration gets its batch through the loader, as in training");
  command->add_flag("--inference", work.inference, "Inference with batch norms folded");
  command->add_flag("--counters", request.counters,
                    "Count instructions, cycles and cache misses, where the system permits it");
  command->add_flag("--no-roof", request.no_roof,
                    "Without ceilings, which are measured where the store has none");
  command->add_option("--telemetry", request.telemetry_hz, "Readings of sensors a second; 0: none");
  add_store_options(*command, request.store);
  add_output_options(*command, options->output, "Write one row for each row of the table");
  command->footer(
      "Every table adds up to the time of an iteration; what lies between steps has rows of its "
      "own.\n"
      "Examples:\n"
      "  ridgeline profile mnist_cnn --batch 512\n"
      "  ridgeline profile resnet50 --image 64 --batch 8 --backend onednn --by layer --top 20\n"
      "  ridgeline profile mlp --by study2\n"
      "  ridgeline profile resnet18 --image 64 --trace resnet18.json.gz --steps 2\n"
      "  ridgeline profile mnist_cnn --backend onednn --against backend=native\n"
      "  ridgeline profile resnet18 --data photos/ --loader --image 64 --json\n"
      "  ridgeline profile resnet50 --device cuda:0 --precision bf16 --batch 128 --by kernel");
  command->callback(
      [options, &action] { action = [options] { return run_profile_command(*options); }; });
}

}  // namespace ridgeline::cli
