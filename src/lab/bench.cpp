#include "lab/bench.h"

#include <algorithm>
#include <cmath>
#include <thread>

#include "base/clock.h"
#include "base/error.h"
#include "base/parallel.h"
#include "base/text.h"
#include "lab/board/bench_board.h"
#include "lab/bucket.h"
#include "measure/iterations/blocks.h"
#include "measure/iterations/events.h"
#include "measure/iterations/grouping.h"
#include "measure/iterations/processes.h"
#include "measure/iterations/quiet.h"
#include "measure/iterations/rank_step.h"
#include "measure/iterations/recorder.h"
#include "measure/iterations/sinks.h"
#include "measure/iterations/telemetry_watch.h"
#include "ranks/launch.h"
#include "store/identity_fields.h"

namespace ridgeline {
namespace {

constexpr std::int64_t kMostProcesses = 1000;
constexpr double kWatchSeconds = 1.0;  // for the sensors, of candidates side by side

MeasureOptions measure_options(const BenchRequest& request) {
  MeasureOptions measuring;
  measuring.warmup.iterations = request.warmup;
  measuring.stopping.iterations = request.iterations;
  measuring.stopping.relative_width = 2.0 * request.precision_percent / 100.0;
  measuring.stopping.max_seconds = request.max_seconds;
  // The warm-up takes no longer than the measuring.
  measuring.warmup.max_seconds = std::min(measuring.warmup.max_seconds, request.max_seconds);
  measuring.seed = static_cast<std::uint64_t>(request.work.run.seed);
  measuring.split = request.split;
  if (request.telemetry_hz > 0.0) measuring.watch_seconds = kWatchSeconds;
  return measuring;
}

// All that can be checked before anything is loaded.
void check_request(const BenchRequest& request) {
  RunOptions run = request.work.run;
  run.model = request.axes.models;
  apply(run);
  if (request.iterations && *request.iterations < 1) {
    bad_input("--iterations {}: must be at least 1", *request.iterations);
  }
  if (request.warmup && *request.warmup < 0) {
    bad_input("--warmup {}: must not be negative", *request.warmup);
  }
  if (!(request.precision_percent > 0.0 && request.precision_percent < 100.0)) {
    bad_input("--precision-target {}: must be above 0 and below 100 percent",
              request.precision_percent);
  }
  if (!(request.max_seconds > 0.0) || !std::isfinite(request.max_seconds)) {
    bad_input("--max-seconds {}: must be above 0", request.max_seconds);
  }
  if (request.processes < 1 || request.processes > kMostProcesses) {
    bad_input("--processes {}: must be between 1 and {}", request.processes, kMostProcesses);
  }
  check_telemetry(request.telemetry_hz);
  if (!(request.work.peer_seconds > 0.0) || !std::isfinite(request.work.peer_seconds)) {
    bad_input("--peer-timeout {}: must be above 0", request.work.peer_seconds);
  }
  const bool full = request.axes.batches.find("full") != std::string::npos;
  if (!request.axes.samples.empty() && !full && !request.work.loader) {
    bad_input("--samples {}: has no effect on a single batch; it needs --loader or --batch full",
              request.axes.samples);
  }
  if (request.work.decoder != "auto" && !request.work.loader) {
    bad_input("--decoder {}: needs --loader", request.work.decoder);
  }
  if (request.work.inference && request.work.loader) {
    bad_input("--loader is for training steps and cannot be combined with --inference");
  }
  if (request.work.inference && request.axes.optimizers != "sgd") {
    bad_input("--optimizer is for training steps and cannot be combined with --inference");
  }
}

// Each rank has the same threads, whatever their number: more ranks are more processors.
void settle_ranks(BenchRequest& request, const std::vector<Combination>& all) {
  int most = 1;
  for (const Combination& each : all) most = std::max(most, each.rank_count());
  if (most == 1) return;
  if (request.processes > 1) bad_input("--processes cannot be combined with --ranks");
  const std::optional<double>& bucket = request.work.ranks.bucket_mib;
  if (bucket && (!(*bucket > 0.0) || !(*bucket <= 1e6))) {
    bad_input("--bucket {}: must be above 0 MiB", *bucket);
  }
  if (request.work.run.threads > 0) return;
  request.work.run.threads = threads_among(most);
  set_thread_count(request.work.run.threads);
}

void tell_of_crowding(const std::vector<Combination>& all, CallListener& listener) {
  int most = 1;
  for (const Combination& each : all) most = std::max(most, each.rank_count());
  if (const std::string note = crowding_note(most); !note.empty()) listener.note(note);
}

// The request with what was left open filled in, and checked.
std::vector<Combination> checked(BenchRequest& request) {
  request.axes.optimizers = request.work.optimizer.name;
  check_request(request);
  request.work.workers = checked_workers(request.work.workers);
  const std::vector<Combination> all = combinations(request.axes, request.work);
  settle_ranks(request, all);
  return all;
}

std::string order_text(std::size_t candidates, const BenchRequest& request) {
  if (candidates < 2) return {};
  return fmt::format(
      "measured in turns{}, in random order (seed {}); the first iteration of a turn counts as "
      "warm-up",
      request.iterations ? fmt::format(" of up to {} iterations", kFixedTurn) : "",
      request.work.run.seed);
}

// The clock of one measuring, and its listener.
class World {
 public:
  explicit World(CallListener& listener) : listener_(listener) {}

  [[nodiscard]] MeasureControl control() {
    return {.now = [this] { return now(); },
            .go_on =
                [this](const MeasureProgress& progress) {
                  listener_.progress(progress.done, progress.total, progress.unit);
                  return listener_.go_on();
                },
            .settle = [](const std::function<double()>& used) { (void)wait_until_quiet(used); }};
  }
  [[nodiscard]] Clock::time_point start() const { return start_; }
  [[nodiscard]] double now() const { return seconds_since(start_); }

 private:
  CallListener& listener_;
  Clock::time_point start_ = Clock::now();
};

// Tells of each configuration when it is finished: a call may take minutes, and its table comes at
// the end.
class FinishedLines final : public MeasureSink {
 public:
  FinishedLines(const ResultCollector& results, std::int64_t processes, CallListener& listener)
      : results_(results), processes_(processes), listener_(listener) {}

  void ended(std::size_t candidate, const Ending& ending) override {
    const Measured& measured = results_.results()[candidate];
    const Work& work = measured.subject.work;
    const std::string options = options_text(measured.subject.executor);
    listener_.note(fmt::format(
        "finished {} of {}: {}, batch {}, {}, {}, {}{}: {}", ++ended_,
        results_.results().size() * static_cast<std::size_t>(processes_), work.model, work.batch,
        work.image.text(), work.precision, measured.subject.executor.backend,
        options.empty() ? "" : fmt::format(" ({})", options), result_text(measured, ending)));
  }

 private:
  static std::string result_text(const Measured& measured, const Ending& ending) {
    if (ending.status == RunStatus::failed) return "failed: " + ending.error;
    std::vector<double> seconds;
    for (const Sample& sample : measured.samples) {
      if (sample.kind == SampleKind::measured) seconds.push_back(sample.wall_seconds);
    }
    if (seconds.empty()) return "interrupted";
    return fmt::format("median {}, {} iterations", duration_text(summarise(seconds).median),
                       count_text(std::ssize(seconds)));
  }

  const ResultCollector& results_;
  std::int64_t processes_;
  CallListener& listener_;
  std::size_t ended_ = 0;
};

// Measures in this process; with telemetry where it is asked for.
void measure_here(const BenchMatrix& matrix, const MemoryGroups& grouping,
                  const BenchRequest& request, const MeasureOptions& measuring, World& world,
                  MeasureSink& sink) {
  if (request.telemetry_hz == 0.0) {
    (void)measure(matrix.steps, grouping.groups, measuring, world.control(), sink);
    return;
  }
  TelemetryWatch watch(
      sink, std::make_unique<TelemetrySampler>(all_sensors(), request.telemetry_hz, world.start()),
      matrix.subjects());
  (void)measure(matrix.steps, grouping.groups, measuring, world.control(), watch);
}

MemoryGroups groups_of(const BenchMatrix& matrix) {
  return group_by_memory(matrix.subjects(), [&](const std::string& device) {
    return matrix.available_memory(device);
  });
}

std::vector<RunRecord> run_records(Store& store, const BenchMatrix& matrix,
                                   const MemoryGroups& grouping, const BenchRequest& request) {
  const RunRecord beginning = begin_record(store, request.store, "bench");
  for (const NetworkRecord& network : matrix.networks) store.add(network);
  std::vector<RunRecord> runs;
  for (std::size_t i = 0; i < matrix.steps.size(); ++i) {
    RunRecord run = beginning;
    run.uuid = new_uuid();
    run.seed = request.work.run.seed;
    run.network = matrix.networks[i].key;
    run.work = matrix.steps[i]->subject().work;
    run.executor = matrix.steps[i]->subject().executor;
    runs.push_back(std::move(run));
  }
  for (std::size_t group = 0; group < grouping.groups.size(); ++group) {
    for (const std::size_t member : grouping.groups[group]) {
      runs[member].turns = static_cast<std::int64_t>(group);
    }
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

}  // namespace

bool BenchReport::failed() const {
  return !store_trouble.empty() ||
         std::any_of(results.begin(), results.end(), [](const Measured& measured) {
           return measured.ending.status == RunStatus::failed;
         });
}

BenchReport run_bench(BenchRequest request, CallListener& listener,
                      const ProcessCommand& process_command) {
  const std::vector<Combination> wanted = checked(request);
  check_store(request.store);
  if (!request.tensorboard.empty()) check_event_folder(request.tensorboard);
  for (const Combination& each : wanted) {
    const int ranks = each.rank_count();
    const std::string kind = device_kind(each.device);
    if (ranks > 1) {
      request.work.ranks.usual_buckets[{ranks, kind}] = usual_bucket(request.store, ranks, kind);
    }
  }
  tell_of_crowding(wanted, listener);
  const BenchMatrix matrix = make_matrix(wanted, request.work, listener);
  const MemoryGroups grouping = groups_of(matrix);

  ResultCollector collector(matrix.subjects());
  SinkChain sinks;
  sinks.add(collector);
  std::optional<Store> store = open_store(request.store);
  std::optional<StoreRecorder> recorder;
  if (store) {
    recorder.emplace(
        *store, RecorderConfig{run_records(*store, matrix, grouping, request), request.processes},
        collector);
    sinks.add(*recorder);
  }
  std::optional<BenchBoard> board;
  if (!request.tensorboard.empty()) {
    sinks.add(board.emplace(request.tensorboard, matrix.subjects()));
  }
  FinishedLines lines(collector, request.processes, listener);
  sinks.add(lines);
  World world(listener);
  if (request.processes > 1) {
    (void)measure_in_processes(
        {.processes = request.processes,
         .command =
             [&](std::int64_t number) { return process_command(number, matrix.steps.size()); },
         .candidates = matrix.steps.size()},
        world.control(), sinks);
  } else {
    measure_here(matrix, grouping, request, measure_options(request), world, sinks);
  }
  const double seconds = world.now();

  BenchReport report;
  report.results = collector.results();
  report.left_out = matrix.left_out;
  report.grouping = grouping.note;
  report.order = order_text(matrix.steps.size(), request);
  report.processes = request.processes;
  report.telemetry_share = largest_number(report.results, "telemetry_overhead_share");
  if (board) report.board_trouble = board->trouble();
  if (recorder) {
    // What a process that was interrupted between two others leaves open.
    recorder->close(RunStatus::interrupted, "");
    report.store_trouble = recorder->trouble();
    if (report.store_trouble.empty()) report.store = request.store.path;
    report.recording_share = recorder->seconds() / seconds;
    for (std::size_t i = 0; i < report.results.size(); ++i) {
      report.runs.push_back(recorder->run(i) != 0 ? recorder->uuid(i) : "");
    }
  }
  return report;
}

void bench_as_process(BenchRequest request, std::int64_t number, std::size_t candidates,
                      CallListener& listener,
                      const std::function<void(const std::string&)>& write) {
  const std::vector<Combination> wanted = checked(request);
  request.work.run.print_plan = request.work.run.explain = false;
  const BenchMatrix matrix = make_matrix(wanted, request.work, listener);
  if (matrix.steps.size() != candidates) {
    fail("process {}: only {} of {} configurations can be measured now", number,
         matrix.steps.size(), candidates);
  }
  MeasureOptions measuring = measure_options(request);
  measuring.process = number;
  // Another order of the turns in each.
  measuring.seed += static_cast<std::uint64_t>(number);
  EventWriter events(write);
  World world(listener);
  measure_here(matrix, groups_of(matrix), request, measuring, world, events);
}

void bench_as_rank(BenchRequest request, std::size_t number, CallListener& listener,
                   const std::function<std::optional<std::string>()>& read,
                   const std::function<void(const std::string&)>& write) {
  ensure(started_ranks() != nullptr, "this process is no rank");
  Ranks& ranks = *joined_ranks();
  const std::vector<Combination> all = checked(request);
  const Combination& combination = all.at(number);
  if (!ranks.first()) request.work.run.print_plan = request.work.run.explain = false;
  serve_rank_step([&] { return make_step_of_rank(combination, request.work, ranks, listener); },
                  combination.connected(), ranks, read, write);
}

}  // namespace ridgeline
