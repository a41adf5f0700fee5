// ridgeline bench: how long training steps and inferences take.

#include "lab/bench.h"

#include "base/error.h"
#include "cli/bench_output.h"
#include "cli/command.h"
#include "cli/command_line.h"
#include "cli/options.h"
#include "cli/output.h"
#include "cli/parser.h"
#include "cli/terminal.h"
#include "lab/outcome.h"

namespace ridgeline::cli {
namespace {

struct BenchOptions {
  BenchRequest request;
  OutputOptions output;
  std::string as_process;  // "2/7": process 2 of several, of 7 configurations; empty: none of them
  bool per_step = false;
};

std::vector<std::string> process_command(std::int64_t number, std::size_t candidates) {
  std::vector<std::string> words = command_words();
  words[0] = own_program();
  words.push_back("--as-process");
  words.push_back(fmt::format("{}/{}", number, candidates));
  return words;
}

int run_as_process(const BenchOptions& options) {
  const std::size_t slash = options.as_process.find('/');
  CallListener silent;
  bench_as_process(options.request, std::stoll(options.as_process.substr(0, slash)),
                   std::stoull(options.as_process.substr(slash + 1)), silent,
                   [](const std::string& line) { print(line + '\n'); });
  return 0;
}

// A study that called wants to know what it does not find in the store.
void tell_study(const BenchReport& report) {
  for (const LeftOut& each : report.left_out) {
    const Combination& wanted = each.combination;
    note_left_out({wanted.model, wanted.batch, wanted.backend, wanted.device, each.reason});
  }
  for (const Measured& measured : report.results) {
    if (measured.ending.status != RunStatus::failed) continue;
    const Subject& subject = measured.subject;
    note_failed({subject.work.model, fmt::format("{}", subject.work.batch),
                 executor_text(subject.executor), subject.executor.device, measured.ending.error});
  }
}

int run_bench_command(const BenchOptions& options) {
  if (!options.as_process.empty()) return run_as_process(options);
  check_writable(options.output.csv);
  Terminal terminal(options.output.json);
  const BenchReport report = run_bench(options.request, terminal, process_command);
  terminal.clear();
  tell_study(report);
  if (!options.output.csv.empty()) write_file_atomically(options.output.csv, bench_csv(report));
  print(options.output.json ? bench_json(report, options.per_step)
                            : bench_text(report, options.per_step));
  for (const Measured& measured : report.results) {
    if (measured.ending.status != RunStatus::failed) continue;
    message(fmt::format("ridgeline: {}: {}\n", executor_text(measured.subject.executor),
                        measured.ending.error));
  }
  if (!report.store_trouble.empty()) {
    message(fmt::format("ridgeline: the store could not be written: {}\n", report.store_trouble));
  }
  if (!report.board_trouble.empty()) {
    message(fmt::format("warning: TensorBoard does not see all: {}\n", report.board_trouble));
  }
  if (terminal.signal() != 0) {
    message("interrupted: less was measured than was asked for\n");
    return 128 + terminal.signal();
  }
  return report.failed() ? 1 : 0;
}

}  // namespace

void add_bench(Parser& program, Action& action) {
  auto options = std::make_shared<BenchOptions>();
  BenchRequest& request = options->request;
  BenchAxes& axes = request.axes;
  BenchWork& work = request.work;
  Parser* command = program.add_subcommand(
      "bench", "Measure training steps and inferences over models, backends, batches, ...");
  const auto list = [&](const char* name, std::string& value, const std::string& meaning) {
    command->add_option(fmt::format("{} LIST", name), value, meaning);
  };
  list("MODEL,--model", axes.models, "Models, see 'ridgeline models'");
  list("--backend", axes.backends,
       "Providers, see 'ridgeline backends', auto, or peers such as torch-cpu; auto@cuda:0 for one "
       "on a device of its own [cpu: native, cuda: auto]");
  list("--device", axes.devices, "cpu, cuda:0 for the first graphics processor [the backend's]");
  list("--precision", axes.precisions, "fp32, tf32, bf16, fp16; the cpu computes in fp32");
  list("--batch", axes.batches, "Samples in a step; full: all of the data");
  list("--image", axes.images, "Sizes of images: 224, 224x224 or, synthetic, 3x224x224");
  list("--samples", axes.samples, "Sizes of the data set, with --loader or --batch full");
  add_work_options(*command, work,
                   "Every iteration gets its batch through the loader, as in training; without it "
                   "one batch lies on the device",
                   "--optimizer LIST");
  command->add_flag("--inference", work.inference,
                    "Inference with batch norms folded: latency at batch 1, and other batches");
  command->add_option("--warmup N", request.warmup, "Iterations before measuring [until steady]");
  command->add_option("--iterations N", request.iterations,
                      "Measured iterations [until the interval is narrow or time is up]");
  command->add_option(
      "--precision-target", request.precision_percent,
      "The 95% interval is narrow when it reaches no further from the median, percent");
  command->add_option("--max-seconds", request.max_seconds,
                      "Time is up for a configuration after so much measuring");
  command->add_option("--processes", request.processes,
                      "Repeat all of it in so many processes, one after another");
  command->add_option("--as-process", options->as_process)->hidden();
  command->add_option("--telemetry", request.telemetry_hz,
                      "Readings of sensors in a second; 0: none");
  command->add_flag("--split,!--no-split", request.split,
                    "A few iterations with forward, backward and optimizer apart [on]");
  command->add_option("--peer-timeout", work.peer_seconds,
                      "Seconds after which a silent peer counts as hung");
  command->add_flag("--per-step", options->per_step,
                    "Also print the time of every step of the plan");
  command->add_option("--tensorboard DIR", request.tensorboard,
                      "Write event files for TensorBoard into folders in this one, one for each "
                      "configuration");
  add_store_options(*command, request.store);
  add_output_options(*command, options->output, "Write one row for each measured step");
  command->footer(
      "Examples:\n"
      "  ridgeline bench mnist_cnn --batch 512 --backend native,onednn,torch-cpu\n"
      "  ridgeline bench resnet18,mobilenet_v2 --backend native,auto --batch 16,32 --image 64,224\n"
      "  ridgeline bench mnist_cnn --batch 512 --warmup 10 --iterations 100 --per-step\n"
      "  ridgeline bench resnet50 --batch 128 --precision bf16 --backend cuda,cudnn,auto --device "
      "cuda:0\n"
      "  ridgeline bench densenet121 --inference --batch 1,64\n"
      "  ridgeline bench resnet18 --data photos/ --loader --workers 2 --image 64");
  command->callback(
      [options, &action] { action = [options] { return run_bench_command(*options); }; });
}

}  // namespace ridgeline::cli
