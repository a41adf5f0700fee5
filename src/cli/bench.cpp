// ridgeline bench: how long training steps and inferences take.

#include <chrono>
#include <cmath>
#include <optional>
#include <thread>

#include "base/error.h"
#include "base/text.h"
#include "cli/bench_matrix.h"
#include "cli/bench_output.h"
#include "cli/command.h"
#include "cli/command_line.h"
#include "cli/interrupt.h"
#include "cli/output.h"
#include "cli/parser.h"
#include "cli/progress.h"
#include "cli/store_options.h"
#include "lab/board/bench_board.h"
#include "lab/measure/blocks.h"
#include "lab/measure/events.h"
#include "lab/measure/grouping.h"
#include "lab/measure/processes.h"
#include "lab/measure/quiet.h"
#include "lab/measure/recorder.h"
#include "lab/measure/sinks.h"
#include "lab/measure/telemetry_watch.h"

namespace ridgeline::cli {
namespace {

using Clock = std::chrono::steady_clock;

constexpr std::int64_t kMostProcesses = 1000;
constexpr double kWatchSeconds = 1.0;  // for the sensors, of candidates side by side

struct BenchOptions {
  BenchAxes axes;
  BenchWork work;
  OutputOptions output;
  StoreOptions store;
  std::optional<std::int64_t> warmup, iterations;
  double precision_percent = 1.0, max_seconds = 20.0;
  std::int64_t processes = 1;
  std::string as_process;  // "2/7": process 2 of several, of 7 configurations; empty: none of them
  double telemetry_hz = kTelemetryHz;
  std::string tensorboard;  // folder of event files; empty: none
  bool split = true, per_step = false;
};

MeasureOptions measure_options(const BenchOptions& options) {
  MeasureOptions measuring;
  measuring.warmup.iterations = options.warmup;
  measuring.stopping.iterations = options.iterations;
  measuring.stopping.relative_width = 2.0 * options.precision_percent / 100.0;
  measuring.stopping.max_seconds = options.max_seconds;
  // Who wants to measure for a short time does not want to wait longer before it.
  measuring.warmup.max_seconds = std::min(measuring.warmup.max_seconds, options.max_seconds);
  measuring.seed = static_cast<std::uint64_t>(options.work.run.seed);
  measuring.split = options.split;
  if (options.telemetry_hz > 0.0) measuring.watch_seconds = kWatchSeconds;
  return measuring;
}

// All that can be checked before anything is loaded.
void check_options(const BenchOptions& options) {
  RunOptions run = options.work.run;
  run.model = options.axes.models;
  apply(run);
  if (options.iterations && *options.iterations < 1) {
    bad_input("--iterations {}: must be at least 1", *options.iterations);
  }
  if (options.warmup && *options.warmup < 0) {
    bad_input("--warmup {}: must not be negative", *options.warmup);
  }
  if (!(options.precision_percent > 0.0 && options.precision_percent < 100.0)) {
    bad_input("--precision-target {}: must lie above 0 and below 100 percent",
              options.precision_percent);
  }
  if (!(options.max_seconds > 0.0) || !std::isfinite(options.max_seconds)) {
    bad_input("--max-seconds {}: must be above 0", options.max_seconds);
  }
  if (options.processes < 1 || options.processes > kMostProcesses) {
    bad_input("--processes {}: must lie between 1 and {}", options.processes, kMostProcesses);
  }
  if (!(options.telemetry_hz >= 0.0 && options.telemetry_hz <= 1000.0)) {
    bad_input("--telemetry {}: must lie between 0 (off) and 1000 readings a second",
              options.telemetry_hz);
  }
  if (!(options.work.peer_seconds > 0.0) || !std::isfinite(options.work.peer_seconds)) {
    bad_input("--peer-timeout {}: must be above 0", options.work.peer_seconds);
  }
  if (options.work.workers < 0 || options.work.workers > 256) {
    bad_input("--workers {}: must lie between 0 and 256", options.work.workers);
  }
  const bool full = options.axes.batches.find("full") != std::string::npos;
  if (!options.axes.samples.empty() && !full && !options.work.loader) {
    bad_input(
        "--samples {}: changes nothing while one batch lies on the device; it needs --loader or "
        "--batch full",
        options.axes.samples);
  }
  if (options.work.inference && options.work.loader) {
    bad_input("--loader is for training steps, not for --inference");
  }
  if (options.work.inference && options.axes.optimizers != "sgd") {
    bad_input("--optimizer is for training steps, not for --inference");
  }
}

std::string order_text(std::size_t candidates, const BenchOptions& options) {
  if (candidates < 2) return {};
  return fmt::format(
      "measured in turns{}, in blocks of random order (seed {}); the first iteration of a turn "
      "counts as warm-up",
      options.iterations ? fmt::format(" of up to {} iterations", kFixedTurn) : "",
      options.work.run.seed);
}

// Everything around one measuring: clock, progress, interruption.
class World {
 public:
  explicit World(bool quiet) : quiet_(quiet) {}

  [[nodiscard]] MeasureControl control() {
    return {.now = [this] { return now(); },
            .go_on =
                [this](const MeasureProgress& progress) {
                  // Before the first iteration there is nothing to print: the signal then ends the
                  // program.
                  if (!interrupt_) interrupt_.emplace();
                  if (!quiet_) bar_.show(progress.done, progress.total, progress.unit);
                  return !interrupt_->raised();
                },
            .settle = [](const std::function<double()>& used) { (void)wait_until_quiet(used); }};
  }
  [[nodiscard]] Clock::time_point start() const { return start_; }
  [[nodiscard]] double now() const {
    return std::chrono::duration<double>(Clock::now() - start_).count();
  }
  [[nodiscard]] int signal() const { return interrupt_ ? interrupt_->signal() : 0; }
  void clear() { bar_.clear(); }

 private:
  bool quiet_;
  ProgressBar bar_;
  Clock::time_point start_ = Clock::now();
  std::optional<InterruptGuard> interrupt_;
};

// Measures in this process; with telemetry where it is asked for.
void measure_here(const BenchMatrix& matrix, const MemoryGroups& grouping,
                  const BenchOptions& options, const MeasureOptions& measuring, World& world,
                  MeasureSink& sink) {
  if (options.telemetry_hz == 0.0) {
    (void)measure(matrix.steps, grouping.groups, measuring, world.control(), sink);
    return;
  }
  TelemetryWatch watch(
      sink, std::make_unique<TelemetrySampler>(all_sensors(), options.telemetry_hz, world.start()),
      matrix.subjects());
  (void)measure(matrix.steps, grouping.groups, measuring, world.control(), watch);
}

// One of several processes: events go to the one that started it.
int run_as_process(const BenchMatrix& matrix, const MemoryGroups& grouping,
                   const BenchOptions& options) {
  const std::size_t slash = options.as_process.find('/');
  const std::string count = fmt::format("{}", matrix.steps.size());
  if (slash == std::string::npos || options.as_process.substr(slash + 1) != count) {
    fail("process {}: {} configurations can be measured now", options.as_process, count);
  }
  MeasureOptions measuring = measure_options(options);
  measuring.process = std::stoll(options.as_process.substr(0, slash));
  // Another order of the turns in each.
  measuring.seed += static_cast<std::uint64_t>(measuring.process);
  EventWriter events([](const std::string& line) { print(line + '\n'); });
  World world(true);
  measure_here(matrix, grouping, options, measuring, world, events);
  return 0;
}

std::vector<std::string> process_command(std::int64_t number, std::size_t candidates) {
  std::vector<std::string> words = command_words();
  words[0] = own_program();
  words.push_back("--as-process");
  words.push_back(fmt::format("{}/{}", number, candidates));
  return words;
}

std::vector<RunRecord> run_records(const BenchMatrix& matrix, const BenchOptions& options,
                                   const RunRecord& beginning) {
  std::vector<RunRecord> runs;
  for (const Subject& subject : matrix.subjects()) {
    RunRecord run = beginning;
    run.uuid = new_uuid();
    run.seed = options.work.run.seed;
    run.work = subject.work;
    run.executor = subject.executor;
    runs.push_back(std::move(run));
  }
  return runs;
}

std::optional<double> largest_number(const std::vector<Measured>& results, const char* name) {
  std::optional<double> largest;
  for (const Measured& measured : results) {
    const auto found = measured.ending.details.numbers.find(name);
    if (found == measured.ending.details.numbers.end()) continue;
    largest = std::max(largest.value_or(0.0), found->second);
  }
  return largest;
}

int run_bench(BenchOptions options) {
  options.axes.optimizers = options.work.optimizer.name;
  check_options(options);
  if (options.work.workers == 0) {
    options.work.workers = static_cast<int>(std::max(1U, std::thread::hardware_concurrency()));
  }
  const std::vector<Combination> wanted = combinations(options.axes, options.work.inference);
  check_writable(options.output.csv);
  const bool one_of_several = !options.as_process.empty();
  if (!one_of_several) check_store(options.store);
  if (!one_of_several && !options.tensorboard.empty()) check_event_folder(options.tensorboard);
  if (one_of_several) options.work.run.print_plan = options.work.run.explain = false;
  BenchMatrix matrix = make_matrix(wanted, options.work, options.output.json);
  const MemoryGroups grouping = group_by_memory(matrix.subjects(), [&](const std::string& device) {
    return matrix.available_memory(device);
  });
  if (one_of_several) return run_as_process(matrix, grouping, options);

  ResultCollector collector(matrix.subjects());
  SinkChain sinks;
  sinks.add(collector);
  std::optional<Store> store = open_store(options.store);
  std::optional<StoreRecorder> recorder;
  if (store) {
    const RunRecord beginning = begin_record(*store, options.store, "bench");
    recorder.emplace(*store,
                     RecorderConfig{run_records(matrix, options, beginning), options.processes},
                     collector);
    sinks.add(*recorder);
  }
  std::optional<BenchBoard> board;
  if (!options.tensorboard.empty()) {
    sinks.add(board.emplace(options.tensorboard, matrix.subjects()));
  }
  World world(false);
  if (options.processes > 1) {
    (void)measure_in_processes(
        {.processes = options.processes,
         .command =
             [&](std::int64_t number) { return process_command(number, matrix.steps.size()); },
         .candidates = matrix.steps.size()},
        world.control(), sinks);
  } else {
    measure_here(matrix, grouping, options, measure_options(options), world, sinks);
  }
  const double seconds = world.now();
  world.clear();

  BenchReport report;
  report.results = collector.results();
  report.left_out = matrix.left_out;
  report.grouping = grouping.note;
  report.order = order_text(matrix.steps.size(), options);
  report.processes = options.processes;
  report.per_step = options.per_step;
  report.telemetry_share = largest_number(report.results, "telemetry_overhead_share");
  if (recorder) {
    // What a process that was interrupted between two others leaves open.
    recorder->close(RunStatus::interrupted, "");
    if (recorder->trouble().empty()) report.store = options.store.path;
    report.recording_share = recorder->seconds() / seconds;
    for (std::size_t i = 0; i < report.results.size(); ++i) {
      report.runs.push_back(recorder->run(i) != 0 ? recorder->uuid(i) : "");
    }
  }
  if (!options.output.csv.empty()) write_file_atomically(options.output.csv, bench_csv(report));
  print(options.output.json ? bench_json(report) : bench_text(report));

  bool failed = false;
  for (const Measured& measured : report.results) {
    if (measured.ending.status != RunStatus::failed) continue;
    failed = true;
    message(fmt::format("ridgeline: {}: {}\n", measured.subject.executor.backend,
                        measured.ending.error));
  }
  if (recorder && !recorder->trouble().empty()) {
    message(fmt::format("ridgeline: the store could not be written: {}\n", recorder->trouble()));
    failed = true;
  }
  if (board && !board->trouble().empty()) {
    message(fmt::format("warning: TensorBoard does not see all: {}\n", board->trouble()));
  }
  if (world.signal() != 0) {
    message("interrupted: less was measured than was asked for\n");
    return 128 + world.signal();
  }
  return failed ? 1 : 0;
}

}  // namespace

void add_bench(Parser& program, Action& action) {
  auto options = std::make_shared<BenchOptions>();
  BenchAxes& axes = options->axes;
  BenchWork& work = options->work;
  work.optimizer.sgd_momentum = 0.9;
  Parser* command = program.add_subcommand(
      "bench", "Measure training steps and inferences over models, backends, batches, ...");
  const auto list = [&](const char* name, std::string& value, const std::string& meaning) {
    return command->add_option(name, value, meaning)->type_name("LIST");
  };
  list("MODEL,--model", axes.models, "Models, see 'ridgeline models'");
  list("--backend", axes.backends,
       "Providers, see 'ridgeline backends', auto, or peers such as torch-cpu; auto@cuda:0 for one "
       "on a device of its own [cpu: native, cuda: auto]");
  list("--device", axes.devices, "cpu, cuda:0 for the first graphics processor [the backend's]");
  list("--precision", axes.precisions, "fp32, tf32, bf16, fp16; the cpu computes in fp32")
      ->capture_default_str();
  list("--batch", axes.batches, "Samples in a step; full: all of the data")->capture_default_str();
  list("--image", axes.images, "Sizes of images: 224, 224x224 or, synthetic, 3x224x224");
  list("--samples", axes.samples, "Sizes of the data set, with --loader or --batch full");
  add_plan_options(*command, work.run);
  command->add_option("--data", work.data.data, "synthetic, or data as 'train' takes it")
      ->capture_default_str();
  command
      ->add_option("--normalize", work.data.normalize,
                   "unit, mnist or MEAN,DEVIATION, as in 'train'")
      ->capture_default_str();
  command->add_flag("--loader", work.loader,
                    "Every iteration gets its batch through the loader, as in training; without "
                    "it one batch lies on the device");
  command
      ->add_option("--workers", work.workers,
                   "Threads that decode images; 0: one for each usable processor")
      ->capture_default_str();
  add_optimizer_options(*command, work.optimizer);
  command->get_option("--optimizer")->type_name("LIST");
  command->add_flag("--inference", work.inference,
                    "Inference with batch norms folded: latency at batch 1, and other batches");
  command->add_option("--warmup", options->warmup, "Iterations before measuring [until steady]")
      ->type_name("N");
  command
      ->add_option("--iterations", options->iterations,
                   "Measured iterations [until the interval is narrow or time is up]")
      ->type_name("N");
  command
      ->add_option("--precision-target", options->precision_percent,
                   "The 95% interval is narrow when it reaches no further from the median, percent")
      ->capture_default_str();
  command
      ->add_option("--max-seconds", options->max_seconds,
                   "Time is up for a configuration after so much measuring")
      ->capture_default_str();
  command
      ->add_option("--processes", options->processes,
                   "Repeat all of it in so many processes, one after another")
      ->capture_default_str();
  command->add_option("--as-process", options->as_process)->hidden();
  command
      ->add_option("--telemetry", options->telemetry_hz, "Readings of sensors in a second; 0: none")
      ->capture_default_str();
  command->add_flag("--split,!--no-split", options->split,
                    "A few iterations with forward, backward and optimizer apart [on]");
  command
      ->add_option("--peer-timeout", work.peer_seconds,
                   "Seconds after which a silent peer counts as hung")
      ->capture_default_str();
  command->add_flag("--per-step", options->per_step,
                    "Also print the time of every step of the plan");
  command
      ->add_option("--tensorboard", options->tensorboard,
                   "Write event files for TensorBoard into folders in this one, one for each "
                   "configuration")
      ->type_name("DIR");
  add_store_options(*command, options->store);
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
  command->callback([options, &action] { action = [options] { return run_bench(*options); }; });
}

}  // namespace ridgeline::cli
