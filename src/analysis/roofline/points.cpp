#include "analysis/roofline/points.h"

#include <algorithm>
#include <map>

#include "base/error.h"
#include "base/text.h"

namespace ridgeline {
namespace {

// A step is called bound by its start when that takes longer than its work at the roofs and its
// time is within a few starts; a longer one is slow for another reason.
constexpr double kFewLatencies = 5.0;
// Factors this near to 1 are not worth a remark.
constexpr double kWorthNaming = 0.01;

struct MemoryTime {
  double seconds = 0.0;
  std::string level;
  double share = 1.0;
};

MemoryTime memory_time(const StepTime& step, const Roofs& roofs) {
  const auto bytes = static_cast<double>(step.bytes_read + step.bytes_written);
  const auto working_set = static_cast<double>(step.working_set_bytes);
  MemoryTime longest;
  double held = 0.0;  // by the levels before
  for (const MemoryRoof& roof : roofs.memory) {
    const double share = working_set > 0.0 ? std::max(0.0, 1.0 - held / working_set) : 1.0;
    const double seconds = share * bytes / roof.bytes_per_second;
    if (longest.level.empty() || seconds > longest.seconds) {
      longest = {seconds, roof.level, share};
    }
    if (roof.capacity_bytes == 0 || share == 0.0) break;
    held = static_cast<double>(roof.capacity_bytes);
  }
  return longest;
}

std::string remark_of(const StepTime& step) {
  if (step.flop_factor > 1.0 - kWorthNaming && step.flop_factor < 1.0 + kWorthNaming) return {};
  const auto has = [&](const char* word) { return step.kernel.find(word) != std::string::npos; };
  const char* algorithm = "padding left out";
  if (has("wino") || has("WINO")) {
    algorithm = "winograd";
  } else if (has("fft") || has("FFT")) {
    algorithm = "fft";
  } else if (step.flop_factor > 1.0) {
    algorithm = "padded tiles";
  }
  return fmt::format("{}: executes {:.2f} of the operations", algorithm, step.flop_factor);
}

Bound bound_of(const RooflinePoint& point, const Roofs& roofs) {
  if (!point.least_seconds || point.seconds <= 0.0) return Bound::unknown;
  const double latency = roofs.latency_seconds.value_or(0.0);
  if (latency > *point.least_seconds && point.seconds < kFewLatencies * latency) {
    return Bound::launch;
  }
  return *point.memory_seconds >= *point.compute_seconds ? Bound::memory : Bound::compute;
}

void keep_if_same(std::string& text, const std::string& other, const char* mixed) {
  if (text != other) text = mixed;
}

void add(std::optional<double>& sum, const std::optional<double>& part) {
  sum = sum && part ? std::optional(*sum + *part) : std::nullopt;
}

// Points of steps become one.
class Group {
 public:
  void add_step(const RooflinePoint& step, const std::string& name) {
    if (by_bound_.empty()) {
      point_ = step;
      point_.name = name;
    } else {
      join(step);
    }
    by_bound_[{step.bound, step.level}] += step.seconds;
  }

  [[nodiscard]] RooflinePoint point() const {
    RooflinePoint point = point_;
    double longest = -1.0;
    for (const auto& [bound, seconds] : by_bound_) {
      if (seconds <= longest) continue;
      longest = seconds;
      point.bound = bound.first;
      point.level = bound.second;
    }
    point.bound_share = point.seconds > 0.0 ? longest / point.seconds : 1.0;
    return point;
  }

 private:
  void join(const RooflinePoint& step) {
    ++point_.steps;
    point_.seconds += step.seconds;
    point_.flops += step.flops;
    point_.work_flops += step.work_flops;
    point_.bytes += step.bytes;
    point_.working_set_bytes = std::max(point_.working_set_bytes, step.working_set_bytes);
    add(point_.counted_bytes, step.counted_bytes);
    add(point_.compute_seconds, step.compute_seconds);
    add(point_.memory_seconds, step.memory_seconds);
    add(point_.least_seconds, step.least_seconds);
    keep_if_same(point_.ops, step.ops, "");
    keep_if_same(point_.phase, step.phase, "");
    keep_if_same(point_.kernel, step.kernel, "");
    if (point_.remark.empty()) point_.remark = step.remark;
    if (point_.flops - step.flops == 0.0) {
      point_.unit = step.unit;  // what has no FLOPs has no unit either
    } else if (step.flops > 0.0) {
      keep_if_same(point_.unit, step.unit, "several");
    }
  }

  RooflinePoint point_;
  std::map<std::pair<Bound, std::string>, double> by_bound_;
};

std::string group_name(const StepTime& step, Grouping by) {
  if (by == Grouping::layer) return step.layer;
  return by == Grouping::op ? step.ops : "network";
}

}  // namespace

std::string_view name_of(Bound bound) {
  switch (bound) {
    case Bound::unknown:
      return "n/a";
    case Bound::memory:
      return "memory";
    case Bound::compute:
      return "compute";
    case Bound::launch:
      return "launch";
    case Bound::data:
      return "data";
    case Bound::link:
      return "link";
  }
  return "n/a";
}

std::optional<double> RooflinePoint::intensity() const {
  return bytes > 0.0 ? std::optional(flops / bytes) : std::nullopt;
}

std::optional<double> RooflinePoint::counted_intensity() const {
  return counted_bytes && *counted_bytes > 0.0 ? std::optional(flops / *counted_bytes)
                                               : std::nullopt;
}

std::optional<double> RooflinePoint::attainable_flops_per_second() const {
  if (!least_seconds || *least_seconds <= 0.0 || flops <= 0.0) return std::nullopt;
  return flops / *least_seconds;
}

std::optional<double> RooflinePoint::efficiency() const {
  if (!least_seconds || seconds <= 0.0) return std::nullopt;
  return *least_seconds / seconds;
}

std::string RooflinePoint::bound_text() const {
  if (bound != Bound::memory || level == "memory" || level.empty()) {
    return std::string(name_of(bound));
  }
  return fmt::format("memory ({})", level);
}

RooflinePoint point_of(const StepTime& step, const Roofs& roofs) {
  RooflinePoint point;
  point.name = step.layer;
  point.ops = step.ops;
  point.phase = step.phase;
  point.kernel = step.kernel;
  point.index = step.index;
  point.unit = step.unit;
  point.seconds = step.seconds;
  point.flops = static_cast<double>(step.flops);
  point.work_flops = static_cast<double>(step.work_flops);
  point.bytes = static_cast<double>(step.bytes_read + step.bytes_written);
  point.working_set_bytes = static_cast<double>(step.working_set_bytes);
  point.counted_bytes = step.counted_bytes;
  point.remark = remark_of(step);
  // Half of its bytes are read, the other half written over them.
  if (const auto least = roofs.all_reduce_seconds(step.unit, point.bytes / 2.0)) {
    point.compute_seconds = 0.0;
    point.memory_seconds = point.least_seconds = *least;
    point.level = step.unit;
    point.bound = Bound::link;
    return point;
  }
  if (!roofs.memory.empty()) {
    const MemoryTime memory = memory_time(step, roofs);
    point.memory_seconds = memory.seconds;
    point.level = memory.level;
    point.level_share = memory.share;
  }
  // Where links were not measured an exchange has the roof of what it moves.
  if (step.flops == 0 || step.unit.ends_with(" ranks")) {
    point.compute_seconds = 0.0;
  } else if (const ComputeRoof* roof = roofs.find_compute(step.unit)) {
    point.compute_seconds = point.flops / roof->flops_per_second;
  }
  if (point.compute_seconds && point.memory_seconds) {
    point.least_seconds = std::max(*point.compute_seconds, *point.memory_seconds);
  }
  point.bound = bound_of(point, roofs);
  return point;
}

std::vector<RooflinePoint> points_of(std::span<const StepTime> steps, const Roofs& roofs,
                                     Grouping by) {
  std::vector<RooflinePoint> points;
  if (by == Grouping::step) {
    for (const StepTime& step : steps) points.push_back(point_of(step, roofs));
    return points;
  }
  return points_of(steps, roofs, [by](const StepTime& step) { return group_name(step, by); });
}

std::vector<RooflinePoint> points_of(
    std::span<const StepTime> steps, const Roofs& roofs,
    const std::function<std::string(const StepTime&)>& name_of_group) {
  std::vector<RooflinePoint> points;
  std::map<std::string, std::size_t> places;
  std::vector<Group> groups;
  for (const StepTime& step : steps) {
    const std::string name = name_of_group(step);
    const auto [place, is_new] = places.try_emplace(name, groups.size());
    if (is_new) groups.emplace_back();
    groups[place->second].add_step(point_of(step, roofs), name);
  }
  for (const Group& group : groups) points.push_back(group.point());
  return points;
}

RooflinePoint network_point(const std::string& name, std::span<const StepTime> steps,
                            const Roofs& roofs, const IterationTime& iteration) {
  ensure(!steps.empty(), "{} has no steps", name);
  RooflinePoint point = points_of(steps, roofs, Grouping::network).front();
  const double in_steps = point.seconds;
  const double waiting = std::min(iteration.data_wait_seconds.value_or(0.0), iteration.seconds);
  point.name = name;
  point.seconds = iteration.seconds;
  if (waiting > 0.5 * iteration.seconds) {
    point.bound = Bound::data;
    point.bound_share = waiting / iteration.seconds;
  } else if (in_steps < 0.5 * (iteration.seconds - waiting)) {
    point.bound = Bound::launch;
    point.bound_share = (iteration.seconds - waiting - in_steps) / iteration.seconds;
  }
  return point;
}

std::vector<Finding> above_roof(std::span<const RooflinePoint> points) {
  std::vector<Finding> findings;
  for (const RooflinePoint& point : points) {
    const std::optional<double> efficiency = point.efficiency();
    if (!efficiency || *efficiency <= 1.0 + kRoofTolerance) continue;
    const bool by_memory = *point.memory_seconds >= *point.compute_seconds;
    const std::string roof = by_memory ? point.level + " bandwidth" : point.unit + " peak";
    findings.push_back(
        {.name = "above the roof",
         .severity = "error",
         .evidence = fmt::format(
             "{}{}{}{}: took {}, and {} allows no less than {} for its {:.4g} GFLOP and {:.4g} MB "
             "({:.0f}% of the roof); a cost, a time or a ceiling is wrong",
             point.name, point.ops.empty() || point.ops == point.name ? "" : " " + point.ops,
             point.phase.empty() ? "" : ", " + point.phase,
             point.kernel.empty() ? "" : ", " + point.kernel, duration_text(point.seconds), roof,
             duration_text(*point.least_seconds), point.flops / 1e9, point.bytes / 1e6,
             100.0 * *efficiency)});
  }
  return findings;
}

}  // namespace ridgeline
