#pragma once

// Where steps, ops, layers and networks stand under their roofs. Everything comes from the Plan's
// costs (in StepTime), measured times and measured ceilings; units are FLOP, bytes and seconds.
//
// The least time of a step is the longest of
// - its executed FLOPs at the rate of its compute unit, and
// - for each memory level, the bytes that this level must deliver at its bandwidth: all bytes at
//   the step's boundary but those that may have been waiting in the next faster level, which is at
//   most that level's capacity out of the working set. A step whose tensors fit a cache is thus
//   compared with that cache's roof and asks nothing of the levels behind it.
// The least time of an all-reduce is what its message takes on the measured links.
// Efficiency is this least time over the measured time, so that nothing can exceed 1.

#include <functional>
#include <optional>
#include <span>
#include <string>
#include <vector>

#include "analysis/roofline/roofs.h"
#include "store/records.h"

namespace ridgeline {

enum class Grouping { network, layer, op, step };

enum class Bound {
  unknown,  // no roof for its unit, or no time
  memory,
  compute,
  launch,  // starting it takes longer than its work at the roofs
  data,    // an iteration that mostly waits for its batch
  link,    // an exchange between ranks
};
[[nodiscard]] std::string_view name_of(Bound bound);

struct RooflinePoint {
  std::string name;                       // layer, op or network
  std::string ops, phase;                 // of one step, or where a group has one only; else empty
  std::string kernel;                     // of one step
  std::int64_t index = 0;                 // of one step, or a group's first
  std::int64_t steps = 1;                 // that it stands for
  std::string unit;                       // of the compute roof; "several" in a mixed group
  double seconds = 0.0;                   // measured
  double flops = 0.0;                     // executed
  double work_flops = 0.0;                // algorithmic
  double bytes = 0.0;                     // at the steps' boundaries
  double working_set_bytes = 0.0;         // of the largest step
  std::optional<double> counted_bytes;    // by hardware counters
  std::optional<double> compute_seconds;  // at the compute roof
  std::optional<double> memory_seconds;   // at the memory roofs
  std::optional<double> least_seconds;    // at the roofs; of a group, the sum of its steps'
  Bound bound = Bound::unknown;           // of a group: what bounds the most of its time
  double bound_share = 1.0;               // of the time
  std::string level;                      // of the memory roof that takes longest: "L2"
  double level_share = 1.0;               // of the bytes that this level must deliver
  std::string remark;                     // "winograd: executes 0.44 of the operations"

  // FLOP/byte; nothing where no byte moves.
  [[nodiscard]] std::optional<double> intensity() const;
  [[nodiscard]] std::optional<double> counted_intensity() const;
  [[nodiscard]] double flops_per_second() const { return flops / seconds; }
  [[nodiscard]] double bytes_per_second() const { return bytes / seconds; }
  // What its roofs allow; nothing without FLOPs or without roofs.
  [[nodiscard]] std::optional<double> attainable_flops_per_second() const;
  [[nodiscard]] std::optional<double> efficiency() const;
  // "memory", "memory (L2)", "compute", "launch", "data", "n/a".
  [[nodiscard]] std::string bound_text() const;
};

// One step under the roofs.
[[nodiscard]] RooflinePoint point_of(const StepTime& step, const Roofs& roofs);

// Groups in the order of their first steps; a fused step belongs to the layer of its first op and
// is an op kind of its own. By network: one point from the steps' times alone.
[[nodiscard]] std::vector<RooflinePoint> points_of(std::span<const StepTime> steps,
                                                   const Roofs& roofs, Grouping by);

// By names of the caller's own.
[[nodiscard]] std::vector<RooflinePoint> points_of(
    std::span<const StepTime> steps, const Roofs& roofs,
    const std::function<std::string(const StepTime&)>& name_of_group);

// What was measured of whole iterations.
struct IterationTime {
  double seconds = 0.0;  // unprofiled
  std::optional<double> data_wait_seconds;
};
// A network by its iterations: what lies between the steps is part of its time. An iteration that
// waits for data for more than half of its time is bound by that; one whose steps fill less than
// half of what is left, by starting them.
[[nodiscard]] RooflinePoint network_point(const std::string& name, std::span<const StepTime> steps,
                                          const Roofs& roofs, const IterationTime& iteration);

// How far above its roof a point may come to lie by the inaccuracy of ceilings and clocks.
inline constexpr double kRoofTolerance = 0.10;
// A point above its roof is an error of the tool: a wrong cost, time or ceiling.
[[nodiscard]] std::vector<Finding> above_roof(std::span<const RooflinePoint> points);

}  // namespace ridgeline
