#include "lab/peers/parity.h"

#include <algorithm>
#include <array>
#include <cmath>
#include <limits>
#include <numeric>

#include "base/error.h"
#include "train/step_runner.h"

namespace ridgeline {
namespace {

// A loss near zero has no digits to compare.
constexpr double kSmallestLoss = 0.1;

// Relative. The first loss has seen one forward pass, whose rounding errors stay small; every
// update then spreads them, and a ReLU or a maximum that tips over makes them visible. After two
// updates, batch norms over few values have made up to 4e-3 of them, seen with ResNet-18 at batch
// 16; other gradients or other updates show by more.
struct Tolerance {
  double first, second;
};
constexpr double kLaterTolerance = 1e-2;

double allowed_at(std::size_t step, const Tolerance& tolerance) {
  if (step == 0) return tolerance.first;
  return step == 1 ? tolerance.second : std::max(tolerance.second, kLaterTolerance);
}

Tolerance tolerance_of(Precision precision) {
  switch (precision) {
    case Precision::fp32:
      return {2e-5, 1e-3};
    case Precision::tf32:
      return {2e-3, 2e-2};
    case Precision::bf16:
      return {1e-2, 5e-2};
    case Precision::fp16:
      return {3e-3, 3e-2};
  }
  return {0.0, 0.0};
}

Finding difference(const std::string& evidence) { return {"parity", "error", evidence}; }

// The batch with this number, going round.
Batch batch_of(const Dataset& data, std::span<const std::int32_t> numbers, std::int64_t rows,
               std::int64_t index) {
  const auto count = static_cast<std::size_t>(rows);
  const std::size_t begin = static_cast<std::size_t>(index) * count;
  return {
      .pixels =
          std::span(data.pixels).subspan(begin * data.sample_bytes(), count * data.sample_bytes()),
      .labels = std::span(data.labels).subspan(begin, count),
      .samples = numbers.first(count),
      .rows = rows};
}

}  // namespace

PeerParity check_parity(std::span<const double> ours, std::span<const double> theirs,
                        Precision precision) {
  ensure(!ours.empty() && ours.size() == theirs.size(), "parity of {} and {} losses", ours.size(),
         theirs.size());
  const Tolerance tolerance = tolerance_of(precision);
  PeerParity parity;
  double worst_share = -1.0;  // of what is allowed
  for (std::size_t i = 0; i < ours.size(); ++i) {
    const auto step = static_cast<std::int64_t>(i) + 1;
    if (!std::isfinite(ours[i]) || !std::isfinite(theirs[i])) {
      parity.worst = std::numeric_limits<double>::quiet_NaN();
      parity.step = step;
      parity.text = fmt::format("cannot be told: the loss of step {} is {} here and {} there", step,
                                ours[i], theirs[i]);
      parity.finding = difference(parity.text);
      return parity;
    }
    const double allowed = allowed_at(i, tolerance);
    const double found = std::abs(ours[i] - theirs[i]) / std::max(std::abs(ours[i]), kSmallestLoss);
    if (found / allowed <= worst_share) continue;
    worst_share = found / allowed;
    parity.worst = found;
    parity.tolerance = allowed;
    parity.step = step;
  }
  parity.agrees = worst_share <= 1.0;
  const auto at = static_cast<std::size_t>(parity.step - 1);
  if (parity.agrees) {
    parity.text = fmt::format("losses of {} steps agree: within {:.1e} (allowed {:.0e}, step {})",
                              ours.size(), parity.worst, parity.tolerance, parity.step);
  } else {
    parity.text = fmt::format(
        "computes something else: the loss of step {} is {:.6g} here and {:.6g} there, apart by "
        "{:.1e} (allowed {:.0e})",
        parity.step, ours[at], theirs[at], parity.worst, parity.tolerance);
    parity.finding = difference(parity.text);
  }
  return parity;
}

std::vector<double> our_losses(const PeerWork& work, const PlanRequest& request, Device& device,
                               const Dataset& data, std::uint64_t seed, std::int64_t batches,
                               std::int64_t steps, const WeightFile* source) {
  StepSpec spec = work.step;
  for (const ModelOption& option : find_model(spec.model.name).options) {
    if (option.name == "dropout") spec.model.options["dropout"] = "0";
  }
  if (work.inference) spec.label_smoothing = 0.0;  // a matter of training alone
  StepRunner runner(device, request);
  const Session::PlanId plan =
      work.inference ? runner.add_evaluation(spec) : runner.add_training(spec);
  runner.prepare(seed);
  if (source != nullptr) {
    runner.load(match_weights(runner.parameters(), *source, {.model = spec.model.name}));
  }
  Session& session = runner.session();
  if (spec.precision == Precision::fp16) {
    session.step_state().loss_scale = kParityLossScale;
    session.write_step_state();
  }
  std::vector<std::int32_t> numbers(static_cast<std::size_t>(spec.batch));
  std::iota(numbers.begin(), numbers.end(), 0);
  std::vector<double> losses;
  for (std::int64_t step = 0; step < steps; ++step) {
    runner.write_batch(batch_of(data, numbers, spec.batch, step % batches));
    StepState& state = session.step_state();
    state.learning_rate = work.learning_rate;
    state.optimizer_step = step + 1;
    state.seed = seed;
    state.random_step = step;
    state.valid_rows = spec.batch;
    runner.clear_totals();
    session.run(plan);
    losses.push_back(runner.totals().loss / static_cast<double>(spec.batch));
  }
  return losses;
}

}  // namespace ridgeline
