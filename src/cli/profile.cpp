// ridgeline profile: where the time of an iteration goes, op by op.

#include <cmath>
#include <thread>

#include "base/error.h"
#include "cli/bench_matrix.h"
#include "cli/command.h"
#include "cli/interrupt.h"
#include "cli/output.h"
#include "cli/parser.h"
#include "cli/profile_output.h"
#include "cli/progress.h"
#include "cli/store_options.h"
#include "lab/ceilings/ceilings.h"
#include "lab/compare/stored.h"
#include "lab/measure/provider_shares.h"
#include "lab/peers/peer_name.h"
#include "lab/profile/stored.h"
#include "lab/profile/trace.h"
#include "lab/telemetry/telemetry.h"

namespace ridgeline::cli {
namespace {

constexpr std::int64_t kMostSteps = 10000;

struct ProfileOptions {
  BenchAxes axes;
  BenchWork work;
  OutputOptions output;
  StoreOptions store;
  std::int64_t steps = 5;
  std::string by = "op", trace, against;
  std::optional<std::int64_t> top;
  bool counters = false, no_roof = false, memory = false;
  double telemetry_hz = kTelemetryHz;
};

DifferenceBy difference_by(const std::string& by) {
  if (by == "op") return DifferenceBy::op;
  if (by == "layer") return DifferenceBy::layer;
  if (by == "step") return DifferenceBy::step;
  bad_input("--by {}: with --against it must be op, layer or step", by);
}

// All that can be checked before anything is loaded.
Combination checked(ProfileOptions& options) {
  RunOptions run = options.work.run;
  run.model = options.axes.models;
  apply(run);
  if (options.steps < 1 || options.steps > kMostSteps) {
    bad_input("--steps {}: must lie between 1 and {}", options.steps, kMostSteps);
  }
  if (options.top && *options.top < 1) bad_input("--top {}: must be at least 1", *options.top);
  if (!(options.telemetry_hz >= 0.0 && options.telemetry_hz <= 1000.0)) {
    bad_input("--telemetry {}: must lie between 0 (off) and 1000 readings a second",
              options.telemetry_hz);
  }
  if (options.work.workers < 0 || options.work.workers > 256) {
    bad_input("--workers {}: must lie between 0 and 256", options.work.workers);
  }
  if (options.work.workers == 0) {
    options.work.workers = static_cast<int>(std::max(1U, std::thread::hardware_concurrency()));
  }
  if (options.work.inference && options.work.loader) {
    bad_input("--loader is for training steps, not for --inference");
  }
  options.axes.optimizers = options.work.optimizer.name;
  std::vector<Combination> wanted = combinations(options.axes, options.work.inference);
  // For inference `combinations` adds the batch of 1.
  std::erase_if(wanted,
                [&](const Combination& each) { return each.batch != options.axes.batches; });
  if (wanted.size() != 1) {
    bad_input("a profile is of one model, backend, device, batch, precision and image at a time");
  }
  if (is_peer(wanted[0].backend)) {
    bad_input("--backend {}: only steps of this program's own backends can be profiled",
              wanted[0].backend);
  }
  check_writable(options.output.csv);
  check_writable(options.trace);
  check_store(options.store);
  return wanted[0];
}

// What the profile is held against: found before anything is measured.
std::optional<DifferenceSide> other_side(const ProfileOptions& options) {
  if (options.against.empty()) return std::nullopt;
  (void)difference_by(options.by);
  const Store store = read_store(options.store);
  const RunRecord run = find_run(store, options.against);
  DifferenceSide side = difference_side(store, run);
  if (side.steps.empty()) {
    bad_input("--against {}: run {} has no times of steps", options.against, run.id);
  }
  return side;
}

// The roofs that the steps are held against; measured where the store does not know them yet.
Roofs roofs_for(std::optional<Store>& store, const RunRecord& run, const ProfileOptions& options,
                std::vector<Missing>& missing) {
  if (options.no_roof) {
    missing.push_back({"efficiency and bound", "--no-roof"});
    return {};
  }
  if (!store) {
    missing.push_back(
        {"efficiency and bound", "the roofs are kept in the store, and there is none"});
    return {};
  }
  const std::string& device = run.executor.device;
  ProgressBar bar;
  bool told = false;
  std::vector<Ceiling> ceilings;
  try {
    ceilings = known_or_measured(
        *store, run.environment, device,
        [&](std::int64_t done, std::int64_t total, const std::string& what) {
          if (!told) {
            message(fmt::format(
                "measuring the ceilings of {}, once for this environment (--no-roof: not)\n",
                device));
          }
          told = true;
          bar.show(done, total, what.c_str());
        });
  } catch (const Error& error) {
    missing.push_back({"efficiency and bound", error.what()});
    return {};
  }
  return roofs_of(ceilings, device, device == "cpu" ? run.executor.threads : 0);
}

// A store that cannot be written any more does not take the profile away.
class Recording {
 public:
  Recording(std::optional<Store>& store, const RunRecord& run) : store_(store) {
    if (store_) id_ = store_->begin(run);
  }

  void finish(const Collected& collected) {
    if (!store_) return;
    const Profile& profile = collected.profile;
    std::map<std::string, double> numbers = collected.details.numbers;
    std::map<std::string, std::string> notes = collected.details.notes;
    numbers["setup_seconds"] = collected.preparation.setup_seconds;
    if (collected.preparation.autotune_seconds) {
      numbers["autotune_seconds"] = *collected.preparation.autotune_seconds;
    }
    double sum = 0.0;
    for (const StepTime& step : profile.steps) sum += step.seconds;
    numbers["step_sum_seconds"] = sum;
    numbers["profiled_iterations"] = static_cast<double>(profile.iterations);
    numbers["profiled_seconds"] = profile.profiled_seconds;
    numbers["unprofiled_seconds"] = profile.unprofiled_seconds;
    numbers["profiling_overhead_share"] = overhead_share(profile);
    numbers["breakdown_kernel_seconds"] = profile.breakdown.kernel;
    numbers["breakdown_copy_seconds"] = profile.breakdown.copy;
    numbers["breakdown_runtime_seconds"] = profile.breakdown.runtime;
    numbers["breakdown_data_seconds"] = profile.breakdown.data;
    numbers["breakdown_cpu_seconds"] = profile.breakdown.cpu;
    numbers["breakdown_idle_seconds"] = profile.breakdown.idle;
    notes["providers"] = text_of(provider_shares(profile.steps));
    std::string missing;
    for (const Missing& each : profile.missing) {
      missing += fmt::format("{}{}: {}", missing.empty() ? "" : "; ", each.what, each.reason);
    }
    if (!missing.empty()) notes["missing_from_profile"] = missing;
    writing([&] {
      store_->add(id_, std::span<const Sample>(collected.samples));
      store_->add(id_, std::span<const StepTime>(profile.steps));
      if (!profile.readings.empty()) store_->add(id_, std::span<const Reading>(profile.readings));
      if (!collected.details.memory.empty()) {
        store_->add(id_, std::span<const MemoryEntry>(collected.details.memory));
      }
      store_->add(id_, std::span<const LiveEntry>(live_entries(profile)));
      store_->add(id_, std::span<const TimelineEntry>(middle_iteration(profile)));
      if (!profile.findings.empty()) store_->add(id_, std::span<const Finding>(profile.findings));
      store_->finish(id_, collected.status, collected.error, numbers, notes);
    });
  }
  void fail_with(const std::string& error) {
    if (store_) writing([&] { store_->finish(id_, RunStatus::failed, error, {}, {}); });
  }
  [[nodiscard]] const std::string& trouble() const { return trouble_; }

 private:
  template <typename Body>
  void writing(Body body) {
    try {
      body();
    } catch (const Error& error) {
      trouble_ = error.what();
    }
  }

  std::optional<Store>& store_;
  RunId id_ = 0;
  std::string trouble_;
};

Collected collect(MeasuredStep& step, const ProfileOptions& options, int& signal) {
  ProgressBar bar;
  std::optional<InterruptGuard> interrupt;
  CollectOptions collecting;
  collecting.iterations = options.steps;
  collecting.counters = options.counters;
  collecting.telemetry_hz = options.telemetry_hz;
  collecting.go_on = [&](std::int64_t done, std::int64_t total) {
    // Before the first iteration there is nothing to print: the signal then ends the program.
    if (!interrupt) interrupt.emplace();
    bar.show(done, total, "iteration");
    signal = interrupt->signal();
    return signal == 0;
  };
  return collect_profile(step, collecting);
}

int run_profile(ProfileOptions options) {
  const auto by = static_cast<TableBy>(choice_of("--by", options.by, kTableNames));
  const Combination combination = checked(options);
  const std::optional<DifferenceSide> against = other_side(options);
  const BenchMatrix matrix = make_matrix({combination}, options.work, options.output.json);
  MeasuredStep& step = *matrix.steps.front();

  std::optional<Store> store = open_store(options.store);
  RunRecord run;
  if (store) run = begin_record(*store, options.store, "profile");
  run.uuid = new_uuid();
  run.seed = options.work.run.seed;
  run.work = step.subject().work;
  run.executor = step.subject().executor;
  ProfileReport report;
  report.by = by;
  report.top = options.top;
  report.memory = options.memory;
  std::vector<Missing> missing;
  report.roofs = roofs_for(store, run, options, missing);
  Recording recording(store, run);
  int signal = 0;
  try {
    report.collected = collect(step, options, signal);
  } catch (const std::exception& error) {
    recording.fail_with(error.what());
    throw;
  }
  Profile& profile = report.collected.profile;
  profile.missing.insert(profile.missing.end(), missing.begin(), missing.end());
  const auto above = above_roof(points_of(profile.steps, report.roofs, Grouping::step));
  profile.findings.insert(profile.findings.end(), above.begin(), above.end());
  recording.finish(report.collected);
  if (store && recording.trouble().empty()) {
    report.run = run.uuid;
    report.store = options.store.path;
  }

  // What cannot be written does not keep the rest from being told.
  std::vector<std::string> troubles;
  const auto writing = [&](const auto& body) {
    try {
      body();
    } catch (const Error& error) {
      troubles.emplace_back(error.what());
    }
  };
  if (against) {
    writing([&] {
      report.difference =
          step_difference(*against, difference_side(profile),
                          {.by = difference_by(options.by), .top = options.top, .force = false});
    });
  }
  if (!options.trace.empty()) {
    writing([&] {
      write_trace(profile, options.trace);
      report.trace = options.trace;
    });
  }
  if (!options.output.csv.empty()) {
    writing([&] { write_file_atomically(options.output.csv, profile_csv(report)); });
  }
  print(options.output.json ? profile_json(report) : profile_text(report));
  if (!recording.trouble().empty()) {
    troubles.push_back("the store could not be written: " + recording.trouble());
  }
  if (report.collected.status == RunStatus::failed) {
    troubles.push_back(fmt::format("failed after {} watched iterations: {}", profile.iterations,
                                   report.collected.error));
  }
  for (const std::string& trouble : troubles) message("ridgeline: " + trouble + '\n');
  if (signal != 0) {
    message("interrupted: less was watched than was asked for\n");
    return 128 + signal;
  }
  return troubles.empty() ? 0 : 1;
}

}  // namespace

void add_profile(Parser& program, Action& action) {
  auto options = std::make_shared<ProfileOptions>();
  BenchAxes& axes = options->axes;
  BenchWork& work = options->work;
  work.optimizer.sgd_momentum = 0.9;
  Parser* command =
      program.add_subcommand("profile", "Tell where the time of a training step goes, op by op");
  command->add_option("MODEL,--model", axes.models, "Model, see 'ridgeline models'");
  command->add_option("--backend", axes.backends,
                      "Provider, see 'ridgeline backends', or auto [cpu: native, cuda: auto]");
  command->add_option("--device", axes.devices,
                      "cpu, cuda:0 for the first graphics processor [the backend's]");
  command->add_option("--precision", axes.precisions, "fp32, tf32, bf16, fp16; the cpu has fp32")
      ->capture_default_str();
  command->add_option("--batch", axes.batches, "Samples in a step")->capture_default_str();
  command->add_option("--image", axes.images, "Size of images: 224, 224x224 or 3x224x224");
  command->add_option("--steps", options->steps, "Iterations that are watched")
      ->capture_default_str();
  command
      ->add_option("--by", options->by,
                   "Rows of the table: op (kind), layer, phase, kernel, step (of the plan), or "
                   "study2 (matrix multiplication, ReLU, softmax, gradients)")
      ->capture_default_str();
  command->add_option("--top", options->top, "Only so many rows, the others as one")
      ->type_name("N");
  command
      ->add_option("--trace", options->trace,
                   "Write a trace for Perfetto, chrome://tracing and other readers of PyTorch's "
                   "traces; gzip where the name ends in .gz")
      ->type_name("FILE");
  command
      ->add_option("--against", options->against,
                   "Also the difference to a stored run, op by op: a number, 'last', backend=NAME")
      ->type_name("RUN");
  command->add_flag("--memory", options->memory, "Also what lives in memory, step by step");
  add_plan_options(*command, work.run);
  command->add_option("--data", work.data.data, "synthetic, or data as 'train' takes it")
      ->capture_default_str();
  command
      ->add_option("--normalize", work.data.normalize,
                   "unit, mnist or MEAN,DEVIATION, as in 'train'")
      ->capture_default_str();
  command->add_flag("--loader", work.loader,
                    "Every iteration gets its batch through the loader, as in training");
  command
      ->add_option("--workers", work.workers,
                   "Threads that decode images; 0: one for each usable processor")
      ->capture_default_str();
  add_optimizer_options(*command, work.optimizer);
  command->add_flag("--inference", work.inference, "Inference with batch norms folded");
  command->add_flag("--counters", options->counters,
                    "Count instructions, cycles and cache misses, where the system permits it");
  command->add_flag("--no-roof", options->no_roof,
                    "Without ceilings, which are measured where the store has none");
  command->add_option("--telemetry", options->telemetry_hz, "Readings of sensors a second; 0: none")
      ->capture_default_str();
  add_store_options(*command, options->store);
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
  command->callback([options, &action] { action = [options] { return run_profile(*options); }; });
}

}  // namespace ridgeline::cli
