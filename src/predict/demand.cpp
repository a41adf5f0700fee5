#include "predict/demand.h"

#include <algorithm>
#include <array>
#include <cmath>
#include <utility>

#include "analysis/roofline/points.h"
#include "base/error.h"

namespace ridgeline::predict {
namespace {

// Products by FLOPs for each element that they touch: depthwise convolutions have few, 1x1
// convolutions some, 3x3 ones and large matrices many. Elements, not bytes: the same product is the
// same shape in every precision.
constexpr double kThin = 12.0, kNarrow = 150.0;

// The first word found in the ops of a step names its group, so that fused steps go by their
// heaviest op.
constexpr std::array kGroups = std::to_array<std::pair<std::string_view, std::string_view>>({
    {"conv2d_backward_data", "conv2d backward data"},
    {"conv2d_backward_weights", "conv2d backward weights"},
    {"conv2d", "conv2d"},
    {"linear", "linear"},
    {"bn_backward", "norm backward"},
    {"layer_norm_backward", "norm backward"},
    {"bn_", "norm"},
    {"layer_norm", "norm"},
    {"pool_backward", "pool backward"},
    {"pool", "pool"},
    {"softmax", "loss"},
    {"metrics", "loss"},
    {"sgd", "optimizer"},
    {"adam", "optimizer"},
});

constexpr const char* kWholeNetwork = "whole network";
constexpr const char* kTensor = "tensor";
constexpr double kUsualBalance = 200.0;  // FLOP/byte of tensor units and memory

bool is_product(std::string_view group) { return group.starts_with("conv2d") || group == "linear"; }

double element_bytes(const StepTime& step) {
  const bool narrow = step.unit.ends_with("bf16") || step.unit.ends_with("fp16");
  return narrow ? 2.0 : 4.0;
}

std::string_view shape_of(const StepTime& step) {
  // Fewer multiplications, at another share of the roof.
  if (step.flop_factor < 1.0) return " winograd";
  const auto bytes = static_cast<double>(step.bytes_read + step.bytes_written);
  if (bytes <= 0.0) return "";
  const double each = static_cast<double>(step.work_flops) * element_bytes(step) / bytes;
  return each < kThin ? " thin" : each < kNarrow ? " narrow" : " wide";
}

// The faster the tensor units are beside the memory, the smaller a share of them products keep
// busy: an RTX 3090 (76 FLOP/byte) reaches twice the share of an H200 (206) with the same library.
// Shares are carried from GPU to GPU relative to the geometric mean of both rates, in units of a
// GPU of kUsualBalance (docs/predict.md).
double fed_less(const StepTime& step, const Target& target) {
  double fastest = 0.0;
  for (const ComputeRoof& roof : target.roofs.compute) {
    if (roof.unit == step.unit) fastest = std::max(fastest, roof.flops_per_second);
  }
  return std::sqrt(fastest / target.roofs.memory.back().bytes_per_second / kUsualBalance);
}

std::string_view roof_name(const StepTime& step, bool compute_bound, const Target& target) {
  if (compute_bound) return step.unit.find(' ') == std::string::npos ? "plain" : kTensor;
  return static_cast<double>(step.working_set_bytes) <= target.cache_bytes ? "cache" : "memory";
}

}  // namespace

std::string op_group(const StepTime& step) {
  for (const auto& [word, group] : kGroups) {
    if (step.ops.find(word) == std::string::npos) continue;
    const bool whole_step = step.ops.find("softmax") != std::string::npos && is_product(group);
    if (whole_step) return kWholeNetwork;
    return std::string(group) + std::string(is_product(group) ? shape_of(step) : "");
  }
  return "elements";
}

StepDemand demand_of(const StepTime& step, const Target& target) {
  const RooflinePoint point = point_of(step, target.roofs);
  if (!point.compute_seconds) {
    bad_input("{} has no rate for {} ({})", target.name, step.unit, target.source);
  }
  if (!point.memory_seconds) {
    bad_input("{} has no bandwidth of its memory ({})", target.name, target.source);
  }
  const std::string group = op_group(step);
  // A kernel for a whole network waits for its own passes, whichever roof is nearest.
  const bool compute_bound =
      group == kWholeNetwork || *point.compute_seconds > *point.memory_seconds;
  const std::string_view roof = roof_name(step, compute_bound, target);
  const bool tensor_product = roof == kTensor && target.family == Family::gpu;
  return {fmt::format("{} | {}", group, roof), *point.least_seconds,
          *point.least_seconds * (tensor_product ? fed_less(step, target) : 1.0)};
}

Demand demand_of(std::span<const StepTime> steps, const Target& target) {
  Demand demand;
  for (const StepTime& step : steps) {
    const StepDemand one = demand_of(step, target);
    Part& part = demand[one.kind];
    part.least_seconds += one.least_seconds;
    part.roof_seconds += one.roof_seconds;
    part.steps += 1.0;
  }
  return demand;
}

}  // namespace ridgeline::predict
