// ridgeline bench: how long training steps and inferences take.

#include "lab/bench.h"

#include <iostream>

#include "backends/registry.h"
#include "base/error.h"
#include "cli/bench_output.h"
#include "cli/command.h"
#include "cli/command_line.h"
#include "cli/options.h"
#include "cli/output.h"
#include "cli/parser.h"
#include "cli/tables.h"
#include "cli/terminal.h"
#include "lab/outcome.h"
#include "peers/peer_name.h"

namespace ridgeline::cli {
namespace {

struct BenchOptions {
  BenchRequest request;
  OutputOptions output;
  std::optional<std::int64_t> as_rank;  // of the configuration with that number
  std::string as_process;  // "2/7": process 2 of several, of 7 configurations; empty: none of them
  std::string scaling = "strong";
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

// Tells the study that started this process what is not in the store.
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

// The words of this call as one of the ranks of a configuration.
std::vector<std::string> rank_command(const BenchOptions& options, std::size_t number, int threads,
                                      double bucket_mib) {
  std::vector<std::string> words = command_words();
  words[0] = own_program();
  words.insert(words.end(), {"--as-rank", std::to_string(number)});
  const BenchWork& work = options.request.work;
  if (work.run.threads == 0) {
    words.insert(words.end(), {"--threads", std::to_string(threads)});
  }
  if (!work.ranks.bucket_mib)
    words.insert(words.end(), {"--bucket", fmt::format("{}", bucket_mib)});
  return words;
}

int run_as_rank(const BenchOptions& options) {
  CallListener silent;
  const auto read = [] {
    std::string line;
    return std::getline(std::cin, line) ? std::optional(line) : std::nullopt;
  };
  bench_as_rank(options.request, static_cast<std::size_t>(*options.as_rank), silent, read,
                [](const std::string& line) { print(line + '\n'); });
  return 0;
}

int run_bench_command(const BenchOptions& options) {
  if (!options.as_process.empty()) return run_as_process(options);
  if (options.as_rank) return run_as_rank(options);
  check_writable(options.output.csv);
  Terminal terminal(options.output.json);
  BenchRequest request = options.request;
  request.work.ranks.command = [&](std::size_t number, int threads, double bucket_mib) {
    return rank_command(options, number, threads, bucket_mib);
  };
  const BenchReport report = run_bench(request, terminal, process_command);
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
    message(fmt::format("ridgeline: cannot write to the store: {}\n", report.store_trouble));
  }
  if (!report.board_trouble.empty()) {
    message(
        fmt::format("warning: the TensorBoard files are incomplete: {}\n", report.board_trouble));
  }
  if (terminal.signal() != 0) {
    message("interrupted: the results are incomplete\n");
    return 128 + terminal.signal();
  }
  return report.failed() ? 1 : 0;
}

void add_rank_options(Parser& command, BenchOptions& options) {
  RankWork& ranks = options.request.work.ranks;
  command.heading("Ranks");
  command.add_option(
      "--ranks LIST", options.request.axes.ranks,
      "Numbers of processes that share the steps, such as 1,2,4; mpirun starts them");
  command
      .add_option("--scaling NAME", options.scaling,
                  "strong divides --batch among the ranks; weak gives each rank --batch samples")
      ->values({"strong", "weak"});
  command.add_flag("--unconnected", ranks.unconnected,
                   "Also measure as many processes at the same time that exchange nothing");
  add_exchange_options(command, ranks);
  command.add_option("--as-rank", options.as_rank)->hidden();
}

}  // namespace

void add_bench(Parser& program, Action& action) {
  auto options = std::make_shared<BenchOptions>();
  BenchRequest& request = options->request;
  BenchAxes& axes = request.axes;
  BenchWork& work = request.work;
  Parser* command = program.add_subcommand(
      "bench", "Measure the time of training steps or inference, for models, backends and batches");
  std::vector<std::string> executors = {"auto"};
  for (const Backend* backend : all_backends()) executors.emplace_back(backend->name);
  for (const PeerInfo& peer : known_peers()) executors.emplace_back(peer.name);
  add_model_option(*command, axes.models, "MODEL,--model LIST",
                   "Models to measure: names that 'ridgeline models' lists, or .onnx files");
  add_backend_option(*command, axes.backends, "--backend LIST",
                     "Backends and peers to measure, such as native,onednn,torch-cpu; 'ridgeline "
                     "backends' lists them. auto@cuda:0 runs one on another device [default: "
                     "native on cpu, auto on cuda]")
      ->values(executors);
  command->add_option("--device LIST", axes.devices,
                      "cpu, or cuda:0 for the first GPU [default: the backend's]");
  command->add_option(
      "--precision LIST", axes.precisions,
      "Number formats: fp32, tf32, bf16 or fp16; the CPU supports fp32 and, with AMX or "
      "AVX512-BF16, bf16, OpenCL devices fp32 and fp16");
  command->heading(kTrainingHeading);
  command->add_option("--batch LIST", axes.batches,
                      "Samples per step; 'full' takes the whole dataset as one batch");
  command->heading(kDataHeading);
  command->add_option("--image LIST", axes.images,
                      "Image sizes: 224, 224x224, or 3x224x224 with synthetic data [default: the "
                      "model's]");
  command->add_option("--samples LIST", axes.samples,
                      "Dataset sizes; needs --loader or --batch full");
  add_work_options(*command, work, "--optimizer LIST");
  command->heading(kMeasuringHeading);
  command->add_option("--warmup N", request.warmup,
                      "Iterations before measuring [default: until times are steady]");
  command->add_option("--iterations N", request.iterations,
                      "Iterations to measure [default: until --precision-target or --max-seconds]");
  command->add_option("--precision-target PERCENT", request.precision_percent,
                      "Stop when the 95% interval is within this many percent of the median");
  command->add_option("--max-seconds SECONDS", request.max_seconds,
                      "Maximum seconds of measuring per configuration");
  command->add_option("--processes N", request.processes,
                      "Repeat everything in N processes, one after another");
  command->add_option("--as-process", options->as_process)->hidden();
  add_telemetry_option(*command, request.telemetry_hz);
  add_rank_options(*command, *options);
  command->heading(kMeasuringHeading);
  command->add_flag("!--no-split", request.split,
                    "Do not time forward, backward and optimizer separately");
  command->add_option("--peer-timeout SECONDS", work.peer_seconds,
                      "Stop a peer that does not answer for this long");
  add_store_options(*command, request.store);
  add_output_options(*command, options->output, "Write one row per measured iteration");
  add_table_options(*command, bench_columns());
  command->add_flag("--per-step", options->per_step, "Also show the time of each step of the plan");
  command->add_option("--tensorboard DIR", request.tensorboard,
                      "Write TensorBoard event files into DIR, in one folder per configuration");
  command->notes(
      "LIST is one value or several with commas between them. Every combination is a "
      "configuration and becomes one run in the store. Configurations take turns in random order, "
      "so that all of them meet the same disturbances.");
  command->examples(
      {"ridgeline bench mnist_cnn --batch 512 --backend native,onednn,torch-cpu",
       "ridgeline bench resnet18,mobilenet_v2 --backend native,auto --batch 16,32 --image 64,224",
       "ridgeline bench mnist_cnn --batch 512 --warmup 10 --iterations 100 --per-step",
       "ridgeline bench resnet50 --batch 128 --precision bf16 --backend cuda,cudnn,auto --device "
       "cuda:0",
       "ridgeline bench densenet121 --inference --batch 1,64",
       "ridgeline bench resnet18 --image 64 --batch 16 --ranks 1,2,4 --scaling weak --unconnected",
       "ridgeline bench resnet18 --data photos/ --loader --workers 2 --image 64"});
  command->callback([options, &action] {
    options->request.work.ranks.weak = options->scaling == "weak";
    action = [options] { return run_bench_command(*options); };
  });
}

}  // namespace ridgeline::cli
