#pragma once

// Times whole training steps, data already on the device, several candidates side by side.

#include <functional>
#include <memory>
#include <string>
#include <utility>
#include <vector>

#include "data/dataset.h"
#include "lab/stats/summary.h"
#include "train/step_runner.h"

namespace ridgeline {

struct BenchConfig {
  StepSpec step;
  std::vector<PlanRequest> candidates;
  std::int64_t warmup = 10, iterations = 100;
  double learning_rate = 0.01;
  std::uint64_t seed = 0;
};

// A share of the time of a step, by provider, largest first.
using ProviderShares = std::vector<std::pair<std::string, double>>;
[[nodiscard]] ProviderShares provider_shares(const Plan& plan, std::span<const double> seconds);

struct BenchResult {
  std::string backend;
  std::vector<double> seconds;  // of every measured step, in the order of measuring
  MedianInterval summary;       // of them
  // On a device with a queue: a step by the device's own clock, one number for each turn, whose
  // steps are queued without waiting in between. The host's way to the device is not in it.
  std::vector<double> device_seconds;
  double first_step_seconds = 0.0;
  std::int64_t memory_bytes = 0;     // both arenas
  std::vector<double> step_seconds;  // each step of the plan alone, the fastest of some repeats
  ProviderShares providers;          // from those
  std::unique_ptr<StepRunner> runner;
  Session::PlanId plan = 0;
};

// Measures in turns of a few steps for each candidate, so that a change of the machine's speed
// meets all of them. `progress` is called after each step with (steps done, steps in all); when it
// says false the measuring ends there, with as many steps as each candidate has had, at least one.
// REQUIRES: `data` has at least the batch's samples; the memory was checked; the device outlives
// the results.
[[nodiscard]] std::vector<BenchResult> bench_steps(
    const BenchConfig& config, const Dataset& data, Device& device,
    const std::function<bool(std::int64_t, std::int64_t)>& progress);

}  // namespace ridgeline
