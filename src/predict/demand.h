#pragma once

// What a step demands of a device: for each kind of work the least time that the device's roofs
// allow. A kind is an op, its shape, and the roof that it meets: shares of roofs differ by these
// and are carried from device to device by them.

#include <map>
#include <span>
#include <string>

#include "predict/target.h"
#include "store/records.h"

namespace ridgeline::predict {

// "conv2d wide | tensor", "batch norm | memory", "optimizer | cache".
using Kind = std::string;

struct StepDemand {
  Kind kind;
  double roof_seconds = 0.0;   // at the roofs
  double least_seconds = 0.0;  // what slowdowns multiply: the same, but of tensor products on GPUs
};
// Throws bad_input where the device has no rate for the step's unit.
[[nodiscard]] StepDemand demand_of(const StepTime& step, const Target& target);

struct Part {
  double least_seconds = 0.0;
  double steps = 0.0;
  double roof_seconds = 0.0;
};
using Demand = std::map<Kind, Part>;
[[nodiscard]] Demand demand_of(std::span<const StepTime> steps, const Target& target);

// The op and its shape alone: "conv2d wide".
[[nodiscard]] std::string op_group(const StepTime& step);

}  // namespace ridgeline::predict
