#include "peers/parity.h"

#include <algorithm>
#include <cmath>
#include <cstring>
#include <limits>
#include <numeric>

#include "base/error.h"
#include "base/hash.h"
#include "base/philox.h"
#include "train/step_runner.h"

namespace ridgeline {
namespace {

// A loss near zero has no digits to compare.
constexpr double kSmallestLoss = 0.1;

// Relative. The first loss has seen one forward pass, whose rounding errors stay small; every
// update then spreads them, and a ReLU or a maximum that tips over makes them visible.
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

// A peer rounds in every op, where a try rounds the weights alone.
constexpr double kTimesRounding = 3.0;
constexpr std::uint64_t kTries = 3;

double unit_of(Precision precision) {
  switch (precision) {
    case Precision::fp32:
      return 0x1p-23;
    case Precision::bf16:
      return 0x1p-8;
    case Precision::tf32:
    case Precision::fp16:
      return 0x1p-10;
  }
  return 0.0;
}

double relative_difference(double a, double b) {
  return std::abs(a - b) / std::max(std::abs(a), kSmallestLoss);
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
                        Precision precision, std::span<const double> rounding) {
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
      parity.text = fmt::format("unknown: the loss of step {} is {} here and {} there", step,
                                ours[i], theirs[i]);
      parity.finding = difference(parity.text);
      return parity;
    }
    double allowed = allowed_at(i, tolerance);
    if (i < rounding.size()) allowed = std::max(allowed, kTimesRounding * rounding[i]);
    const double found = relative_difference(ours[i], theirs[i]);
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

namespace {

// Losses of the same steps on the same batches, as often as wanted, each time from weights that may
// be rounded otherwise.
class LossRuns {
 public:
  LossRuns(const PeerWork& work, const PlanRequest& request, Device& device, const Dataset& data,
           std::uint64_t seed, std::int64_t batches, const WeightFile* source)
      : work_(work),
        spec_(work.step),
        data_(data),
        seed_(seed),
        batches_(batches),
        runner_(device, request) {
    drop_nothing(spec_.model);
    if (work.inference) spec_.label_smoothing = 0.0;  // a matter of training alone
    plan_ = work.inference ? runner_.add_evaluation(spec_) : runner_.add_training(spec_);
    runner_.prepare(seed);
    if (source != nullptr) {
      runner_.load(match_weights(runner_.parameters(), *source, {.model = spec_.model.name}));
    }
    beginning_ = work.inference ? runner_.read_weights() : runner_.read_state();
    numbers_.resize(static_cast<std::size_t>(spec_.batch));
    std::iota(numbers_.begin(), numbers_.end(), 0);
  }

  // From the weights as they are, or with every one a unit up or down, as `number` has it.
  std::vector<double> losses(std::int64_t steps, std::optional<std::uint64_t> number) {
    for (const StepRunner::NamedTensor& tensor : beginning_) {
      runner_.write_state(tensor.name, tensor.bytes);
    }
    if (number) round_otherwise(*number);
    Session& session = runner_.session();
    if (spec_.precision == Precision::fp16) {
      session.step_state().loss_scale = kParityLossScale;
      session.write_step_state();
    }
    std::vector<double> losses;
    for (std::int64_t step = 0; step < steps; ++step) {
      runner_.write_batch(batch_of(data_, numbers_, spec_.batch, step % batches_));
      StepState& state = session.step_state();
      state.learning_rate = work_.learning_rate;
      state.optimizer_step = step + 1;
      state.seed = seed_;
      state.random_step = step;
      state.valid_rows = spec_.batch;
      runner_.clear_totals();
      session.run(plan_);
      losses.push_back(runner_.totals().loss / static_cast<double>(spec_.batch));
    }
    return losses;
  }

 private:
  void round_otherwise(std::uint64_t number) {
    const auto unit = static_cast<float>(unit_of(spec_.precision));
    for (const StepRunner::NamedTensor& tensor : runner_.read_weights()) {
      if (tensor.dtype != DType::f32) continue;
      PhiloxSequence random(number, RandomStream::weights, hash_of(tensor.name));
      std::vector<float> values(tensor.bytes.size() / sizeof(float));
      std::memcpy(values.data(), tensor.bytes.data(), tensor.bytes.size());
      std::uint32_t signs = 0;
      for (std::size_t i = 0; i < values.size(); ++i, signs >>= 1) {
        if (i % 32 == 0) signs = random.next();
        values[i] *= (signs & 1U) == 0 ? 1.0F + unit : 1.0F - unit;
      }
      runner_.write_state(tensor.name, std::as_bytes(std::span(values)));
    }
  }

  const PeerWork& work_;
  StepSpec spec_;
  const Dataset& data_;
  std::uint64_t seed_;
  std::int64_t batches_;
  StepRunner runner_;
  Session::PlanId plan_ = 0;
  std::vector<StepRunner::NamedTensor> beginning_;
  std::vector<std::int32_t> numbers_;
};

}  // namespace

std::vector<double> our_losses(const PeerWork& work, const PlanRequest& request, Device& device,
                               const Dataset& data, std::uint64_t seed, std::int64_t batches,
                               std::int64_t steps, const WeightFile* source) {
  return LossRuns(work, request, device, data, seed, batches, source).losses(steps, {});
}

std::vector<double> rounding_of_losses(const PeerWork& work, const PlanRequest& request,
                                       Device& device, const Dataset& data, std::uint64_t seed,
                                       std::int64_t batches, std::span<const double> ours) {
  LossRuns runs(work, request, device, data, seed, batches, nullptr);
  std::vector<double> largest(ours.size(), 0.0);
  for (std::uint64_t number = 1; number <= kTries; ++number) {
    const std::vector<double> tried = runs.losses(static_cast<std::int64_t>(ours.size()), number);
    for (std::size_t i = 0; i < ours.size(); ++i) {
      largest[i] = std::max(largest[i], relative_difference(ours[i], tried[i]));
    }
  }
  return largest;
}

}  // namespace ridgeline
