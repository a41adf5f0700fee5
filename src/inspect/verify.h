#pragma once

// Compares two backends value by value over the same training steps.

#include <map>
#include <optional>
#include <string>
#include <vector>

#include "data/dataset.h"
#include "train/step_runner.h"

namespace ridgeline {

struct VerifyConfig {
  StepSpec step;
  PlanRequest tested, against;
  Precision against_precision = Precision::fp32;
  std::int64_t steps = 1;
  double learning_rate = 0.01;
  double tolerance = 1e-4;  // on max_relative
  // Errors accumulate: each step computes from what the steps before computed. Otherwise each
  // computes from the other's values, so that the error shown for a value is its own step's alone.
  bool accumulate = false;
  std::uint64_t seed = 0;
};

// How far a value of the tested plan is from the other's. Relative means relative to the largest
// element of the other, or for sums that cancel to what their terms make without cancelling; where
// that is 0, any difference is infinite. For whole numbers (the
// positions of maxima) both relative errors are the share of elements that differ.
struct Deviation {
  double max_absolute = 0.0, max_relative = 0.0;
  double rms_relative = 0.0;  // root mean square of the differences ÷ that of the values
};
// `yardstick`: errors are relative to at least this.
[[nodiscard]] Deviation deviation(std::span<const double> tested, std::span<const double> other,
                                  double yardstick = 0.0);
[[nodiscard]] Deviation differing_share(std::span<const double> tested,
                                        std::span<const double> other);

// How large a value's elements are.
struct Size {
  double largest = 0.0, rms = 0.0;
};
using Sizes = std::map<std::string, Size>;  // by the values' names

// What errors of a value are relative to, when its own largest element says little. Sums may add up
// to zero but for rounding: the statistics behind a norm and a convolution, the gradient of a bias
// in front of a norm, of weights whose terms cancel. Rounding leaves in them what it leaves in a
// sum of as many terms that do not cancel: they are compared with the size of that, and with more
// where there are so many terms that rounding alone exceeds the tolerance. 0 for all else.
[[nodiscard]] double least_yardstick(const Graph& graph, ValueId id, const Sizes& sizes);

struct VerifiedValue {
  std::string name, layer;
  Phase phase = Phase::forward;
  Shape shape;
  std::string tested_kernel, other_kernel;
  double flop_factor = 1.0;     // of the tested kernel: executed FLOPs ÷ those of the op
  Deviation worst;              // over all steps
  std::int64_t worst_step = 1;  // from 1
};

struct VerifyResult {
  std::vector<VerifiedValue> values;                 // in the order of the tested plan
  std::vector<std::string> only_tested, only_other;  // computed by one plan alone: fused elsewhere
  // The first value beyond the tolerance, and the step in which that was.
  std::optional<std::size_t> first_divergence;
  std::int64_t divergence_step = 0;
};

// The same backend with every value computed by itself, from which verify_steps() takes how large
// values are that a fused kernel keeps to itself. Nothing where the backend fuses nothing.
[[nodiscard]] std::optional<PlanRequest> unfused(const PlanRequest& request, Device& device);

// Values are matched by name. REQUIRES: `data` has at least the batch's samples.
[[nodiscard]] VerifyResult verify_steps(const VerifyConfig& config, const Dataset& data,
                                        Device& device, Device& against_device);

}  // namespace ridgeline
