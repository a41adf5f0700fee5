#include "lab/step_bench.h"

#include <algorithm>
#include <chrono>
#include <map>
#include <numeric>

#include "base/error.h"
#include "plan/measure.h"

namespace ridgeline {
namespace {

using Clock = std::chrono::steady_clock;

constexpr std::int64_t kTurn = 10;  // measured steps before the next candidate's turn

class Candidate {
 public:
  Candidate(const BenchConfig& config, const PlanRequest& request, const Dataset& data,
            Device& device)
      : config_(config) {
    const std::int64_t batch = config.step.batch;
    result.backend = request.backend;
    result.runner = std::make_unique<StepRunner>(device, request);
    result.plan = result.runner->add_training(config.step);
    result.memory_bytes = result.runner->bytes();
    result.runner->prepare(config.seed);

    const auto rows = static_cast<std::size_t>(batch);
    std::vector<std::int32_t> numbers(rows);
    std::iota(numbers.begin(), numbers.end(), 0);
    Batch first;
    first.pixels = std::span(data.pixels).first(rows * data.sample_bytes());
    first.labels = std::span(data.labels).first(rows);
    first.samples = numbers;
    first.rows = batch;
    result.runner->write_batch(first);
    device.synchronize();
  }

  double step() {
    Session& session = result.runner->session();
    session.device().synchronize();
    const Clock::time_point start = Clock::now();
    launch();
    session.device().synchronize();
    return std::chrono::duration<double>(Clock::now() - start).count();
  }

  // A turn of steps, queued.
  void measure_queued() {
    Device& device = result.runner->session().device();
    if (device.queue() == nullptr) return;
    const double seconds = device.time([&] {
      for (std::int64_t i = 0; i < kTurn; ++i) launch();
    });
    result.device_seconds.push_back(seconds / static_cast<double>(kTurn));
  }

  void finish() {
    Session& session = result.runner->session();
    result.summary = median_interval(result.seconds);
    session.step_state().learning_rate = 0.0;
    result.step_seconds = time_steps(session, result.plan);
    result.providers = provider_shares(session.plan(result.plan), result.step_seconds);
  }

  BenchResult result;

 private:
  void launch() {
    Session& session = result.runner->session();
    session.step_state() = {.learning_rate = config_.learning_rate,
                            .optimizer_step = done_ + 1,
                            .seed = config_.seed,
                            .random_step = done_,
                            .valid_rows = config_.step.batch};
    session.run(result.plan);
    ++done_;
  }

  const BenchConfig& config_;
  std::int64_t done_ = 0;
};

}  // namespace

ProviderShares provider_shares(const Plan& plan, std::span<const double> seconds) {
  std::map<std::string, double> sums;
  double total = 0.0;
  for (std::size_t s = 0; s < plan.steps.size(); ++s) {
    sums[plan.steps[s].provider] += seconds[s];
    total += seconds[s];
  }
  ProviderShares shares(sums.begin(), sums.end());
  for (auto& [provider, share] : shares) share = total > 0.0 ? share / total : 0.0;
  std::stable_sort(shares.begin(), shares.end(),
                   [](const auto& a, const auto& b) { return a.second > b.second; });
  return shares;
}

std::vector<BenchResult> bench_steps(
    const BenchConfig& config, const Dataset& data, Device& device,
    const std::function<bool(std::int64_t, std::int64_t)>& progress) {
  if (config.iterations < 1) bad_input("iterations {}: must be at least 1", config.iterations);
  if (config.warmup < 0) bad_input("warm-up {}: must not be negative", config.warmup);
  std::vector<std::unique_ptr<Candidate>> candidates;
  for (const PlanRequest& request : config.candidates) {
    candidates.push_back(std::make_unique<Candidate>(config, request, data, device));
  }
  const std::int64_t turns = (config.iterations + kTurn - 1) / kTurn;
  // A turn among several begins with one step that is not measured: others have used the caches.
  const bool alone = candidates.size() == 1;
  const auto per_candidate = config.warmup + config.iterations + (alone ? 0 : turns);
  const auto total = per_candidate * static_cast<std::int64_t>(candidates.size());
  std::int64_t done = 0;
  bool go_on = true;
  const auto step = [&](Candidate& candidate) {
    const double seconds = candidate.step();
    go_on = progress(++done, total) && go_on;
    return seconds;
  };

  for (const auto& candidate : candidates) {
    for (std::int64_t i = 0; i < config.warmup && go_on; ++i) {
      const double seconds = step(*candidate);
      if (i == 0) candidate->result.first_step_seconds = seconds;
    }
  }
  for (std::int64_t turn = 0; turn < turns && (go_on || turn == 0); ++turn) {
    const std::int64_t steps = std::min(kTurn, config.iterations - turn * kTurn);
    for (const auto& candidate : candidates) {
      if (!alone && go_on) (void)step(*candidate);
      for (std::int64_t i = 0; i < steps && (go_on || (turn == 0 && i == 0)); ++i) {
        candidate->result.seconds.push_back(step(*candidate));
      }
      candidate->measure_queued();
    }
  }
  std::vector<BenchResult> results;
  for (const auto& candidate : candidates) {
    candidate->finish();
    results.push_back(std::move(candidate->result));
  }
  return results;
}

}  // namespace ridgeline
