#include "analysis/compare/scaling.h"

#include <algorithm>

#include "analysis/compare/verdict.h"

namespace ridgeline {
namespace {

constexpr double kAlpha = 0.05;

bool exchanges(const ScalingRun& run) { return run.executor.transport != kUnconnected; }

// All but what ranks are.
bool same_without_ranks(const ScalingRun& a, const ScalingRun& b) {
  Work work = a.work;
  work.batch = b.work.batch;
  // One rank has nothing to synchronise.
  work.synchronised_norms = b.work.synchronised_norms;
  Executor executor = a.executor;
  executor.ranks = b.executor.ranks;
  executor.nodes = b.executor.nodes;
  executor.transport = b.executor.transport;
  executor.bucket_bytes = b.executor.bucket_bytes;
  executor.reduce = b.executor.reduce;
  return work == b.work && executor == b.executor;
}

bool is_strong(const ScalingRun& a, const ScalingRun& b) { return a.work.batch == b.work.batch; }
bool is_weak(const ScalingRun& a, const ScalingRun& b) {
  return a.work.batch * b.executor.ranks == b.work.batch * a.executor.ranks;
}

// How many times as long B takes as A.
ScaledRatio time_ratio(const ScalingRun& a, const ScalingRun& b) {
  const Comparison result = compare(
      a.series, b.series, {.alpha = kAlpha, .side_by_side = !a.call.empty() && a.call == b.call});
  return {result.ratio, result.low, result.high, result.ranges};
}

ScaledRatio times(ScaledRatio ratio, double factor) {
  return {ratio.value * factor, ratio.low * factor, ratio.high * factor, ratio.range};
}

// How much alike two runs are in what ranks are.
int likeness(const ScalingRun& a, const ScalingRun& b) {
  return (a.executor.transport == b.executor.transport ? 1 : 0) +
         (a.executor.bucket_bytes == b.executor.bucket_bytes ? 1 : 0) +
         (a.executor.nodes == b.executor.nodes ? 1 : 0) +
         (a.executor.reduce == b.executor.reduce ? 1 : 0) +
         (a.work.synchronised_norms == b.work.synchronised_norms ? 1 : 0);
}

// Ranks that exchange in another way are no base; one rank alone exchanges nothing.
bool may_be_base(const ScalingRun& run, const ScalingRun& of) {
  return run.executor.ranks == 1 ||
         (exchanges(run) && run.executor.transport == of.executor.transport &&
          run.executor.reduce == of.executor.reduce);
}

// Of those that scale as `weak` tells, the one with the fewest ranks, itself included; of several
// the most alike.
std::size_t base_of(std::span<const ScalingRun> runs, std::size_t of, bool weak) {
  std::size_t base = of;
  for (std::size_t i = 0; i < runs.size(); ++i) {
    const ScalingRun& run = runs[i];
    if (!same_without_ranks(run, runs[of]) || !may_be_base(run, runs[of])) continue;
    if (!(weak ? is_weak(run, runs[of]) : is_strong(run, runs[of]))) continue;
    const int ranks = run.executor.ranks, fewest = runs[base].executor.ranks;
    if (ranks < fewest || (ranks == fewest && base != of &&
                           likeness(run, runs[of]) > likeness(runs[base], runs[of]))) {
      base = i;
    }
  }
  return base;
}

bool has_larger(std::span<const ScalingRun> runs, std::size_t of, bool weak) {
  return std::any_of(runs.begin(), runs.end(), [&](const ScalingRun& run) {
    return run.executor.ranks > runs[of].executor.ranks && same_without_ranks(run, runs[of]) &&
           (weak ? is_weak(run, runs[of]) : is_strong(run, runs[of]));
  });
}

std::optional<ScaledRatio> against_unconnected(std::span<const ScalingRun> runs, std::size_t of) {
  const ScalingRun& own = runs[of];
  if (!exchanges(own) || own.executor.ranks == 1) return std::nullopt;
  for (const ScalingRun& other : runs) {
    if (exchanges(other) || other.executor.ranks != own.executor.ranks ||
        other.work.batch != own.work.batch || !same_without_ranks(own, other)) {
      continue;
    }
    return time_ratio(own, other);
  }
  return std::nullopt;
}

}  // namespace

std::vector<ScalingPoint> scaling_points(std::span<const ScalingRun> runs) {
  std::vector<ScalingPoint> points;
  for (std::size_t i = 0; i < runs.size(); ++i) {
    for (const bool weak : {false, true}) {
      const std::size_t base = base_of(runs, i, weak);
      if (base == i && (!exchanges(runs[i]) || !has_larger(runs, i, weak))) continue;
      ScalingPoint point;
      point.run = i;
      point.base = base;
      point.weak = weak;
      if (base != i) {
        const double work =
            static_cast<double>(runs[i].work.batch) / static_cast<double>(runs[base].work.batch);
        const double ranks = static_cast<double>(runs[i].executor.ranks) /
                             static_cast<double>(runs[base].executor.ranks);
        const ScaledRatio faster = time_ratio(runs[i], runs[base]);
        point.speedup = faster.value * work;
        point.efficiency = times(faster, work / ranks);
      }
      point.of_unconnected = against_unconnected(runs, i);
      points.push_back(point);
    }
  }
  return points;
}

}  // namespace ridgeline
