#include "lab/profile.h"

#include "analysis/compare/stored.h"
#include "analysis/roofline/points.h"
#include "base/error.h"
#include "lab/bucket.h"
#include "measure/ceilings/ceilings.h"
#include "measure/iterations/provider_shares.h"
#include "measure/profile/stored.h"
#include "peers/peer_name.h"
#include "ranks/agree.h"

namespace ridgeline {
namespace {

constexpr std::int64_t kMostSteps = 10000;

// One of several ranks. The first tells and stores; each sees where its own time goes.
void fit_to_ranks(ProfileRequest& request, Ranks& ranks) {
  const std::string started = std::to_string(ranks.size());
  if (request.axes.ranks == "1") request.axes.ranks = started;
  together(ranks, [&] {
    if (request.axes.ranks == started) return;
    bad_input("--ranks {}: {} processes were started", request.axes.ranks, started);
  });
  if (request.work.run.threads == 0) request.work.run.threads = threads_of_rank(ranks);
  if (!request.work.ranks.bucket_mib) {
    const std::string kind =
        device_kind(request.axes.devices.empty() ? "cpu" : request.axes.devices);
    request.work.ranks.usual_buckets[{ranks.size(), kind}] =
        usual_bucket(request.store, ranks, kind);
  }
  if (ranks.first()) return;
  request.store.none = true;
  request.against.clear();
  request.telemetry_hz = 0.0;
  request.no_roof = true;
  request.work.run.print_plan = request.work.run.explain = false;
}

// All that can be checked before anything is loaded.
Combination checked(ProfileRequest& request) {
  RunOptions run = request.work.run;
  run.model = request.axes.models;
  apply(run);
  if (request.steps < 1 || request.steps > kMostSteps) {
    bad_input("--steps {}: must be between 1 and {}", request.steps, kMostSteps);
  }
  check_telemetry(request.telemetry_hz);
  request.work.workers = checked_workers(request.work.workers);
  if (request.work.decoder != "auto" && !request.work.loader) {
    bad_input("--decoder {}: needs --loader", request.work.decoder);
  }
  if (request.work.inference && request.work.loader) {
    bad_input("--loader is for training steps and cannot be combined with --inference");
  }
  request.axes.optimizers = request.work.optimizer.name;
  std::vector<Combination> wanted = combinations(request.axes, request.work);
  // For inference `combinations` adds the batch of 1.
  std::erase_if(wanted,
                [&](const Combination& each) { return each.batch != request.axes.batches; });
  if (wanted.size() != 1) {
    bad_input("profile takes only one model, backend, device, batch, precision and image size");
  }
  if (is_peer(wanted[0].backend)) {
    bad_input("--backend {}: peers cannot be profiled, only backends", wanted[0].backend);
  }
  check_store(request.store);
  return wanted[0];
}

// The run that the profile is compared with: found before anything is measured.
std::optional<DifferenceSide> other_side(const ProfileRequest& request) {
  if (request.against.empty()) return std::nullopt;
  const Store store = read_store(request.store);
  const RunRecord run = find_run(store, request.against);
  DifferenceSide side = difference_side(store, run);
  if (side.steps.empty()) {
    bad_input("--against {}: run {} has no times of single steps", request.against, run.id);
  }
  return side;
}

// The roofs of the steps; measured where the store does not know them yet.
Roofs roofs_for(std::optional<Store>& store, const RunRecord& run, const ProfileRequest& request,
                CallListener& listener, std::vector<Missing>& missing) {
  if (request.no_roof) {
    missing.push_back({"efficiency and bound", "--no-roof"});
    return {};
  }
  if (!store) {
    missing.push_back(
        {"efficiency and bound", "the roofs are in the store, and --no-store is set"});
    return {};
  }
  const std::string& device = run.executor.device;
  bool told = false;
  std::vector<Ceiling> ceilings;
  try {
    ceilings = known_or_measured(
        *store, run.environment, device,
        [&](std::int64_t done, std::int64_t total, const std::string& what) {
          if (!told) {
            listener.note(fmt::format(
                "measuring the ceilings of {} (only once on this machine; --no-roof skips it)",
                device));
          }
          told = true;
          listener.progress(done, total, what.c_str());
        });
  } catch (const Error& error) {
    missing.push_back({"efficiency and bound", error.what()});
    return {};
  }
  return roofs_of(ceilings, device, device == "cpu" ? run.executor.threads : 0);
}

// A store that cannot be written any more does not take the profile away.
class ProfileRecording {
 public:
  ProfileRecording(std::optional<Store>& store, const RunRecord& run) : store_(store) {
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

Collected collect(MeasuredStep& step, const ProfileRequest& request, CallListener& listener) {
  CollectOptions collecting;
  collecting.iterations = request.steps;
  collecting.counters = request.counters;
  collecting.telemetry_hz = request.telemetry_hz;
  // Ranks end together: by the signal that mpirun sends them.
  const bool alone = joined_ranks() == nullptr;
  collecting.go_on = [&, alone](std::int64_t done, std::int64_t total) {
    listener.progress(done, total, "iteration");
    return !alone || listener.go_on();
  };
  return collect_profile(step, collecting);
}

RunRecord record_of(std::optional<Store>& store, const ProfileRequest& request,
                    const BenchMatrix& matrix) {
  RunRecord run;
  if (store) {
    run = begin_record(*store, request.store, "profile");
    store->add(matrix.networks.front());
    run.network = matrix.networks.front().key;
  }
  run.uuid = new_uuid();
  run.seed = request.work.run.seed;
  run.work = matrix.steps.front()->subject().work;
  run.executor = matrix.steps.front()->subject().executor;
  return run;
}

}  // namespace

ProfileReport run_profile(ProfileRequest request, CallListener& listener) {
  Ranks* const ranks = started_ranks();
  if (ranks != nullptr) fit_to_ranks(request, *ranks);
  // Ranks go on together, or none does.
  const auto all = [&](const auto& body) { ranks != nullptr ? together(*ranks, body) : body(); };
  Combination combination;
  ProfileReport report;
  all([&] {
    combination = checked(request);
    report.against = other_side(request);
  });
  BenchMatrix matrix;
  all([&] { matrix = make_matrix({combination}, request.work, listener, ranks); });
  std::optional<Store> store = open_store(request.store);
  const RunRecord run = record_of(store, request, matrix);
  std::vector<Missing> missing;
  report.roofs = roofs_for(store, run, request, listener, missing);
  ProfileRecording recording(store, run);
  try {
    report.collected = collect(*matrix.steps.front(), request, listener);
  } catch (const std::exception& error) {
    recording.fail_with(error.what());
    throw;
  }
  Profile& profile = report.collected.profile;
  profile.missing.insert(profile.missing.end(), missing.begin(), missing.end());
  const auto above = above_roof(points_of(profile.steps, report.roofs, Grouping::step));
  profile.findings.insert(profile.findings.end(), above.begin(), above.end());
  recording.finish(report.collected);
  report.store_trouble = recording.trouble();
  if (store && report.store_trouble.empty()) {
    report.run = run.uuid;
    report.store = request.store.path;
  }
  return report;
}

}  // namespace ridgeline
