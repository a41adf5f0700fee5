#include "analysis/compare/gap.h"

#include <algorithm>
#include <cmath>

#include "analysis/roofline/points.h"
#include "analysis/stats/summary.h"
#include "base/error.h"
#include "base/text.h"

namespace ridgeline {
namespace {

// "a", "a and b", "a, b and c"
std::string listed(const std::vector<std::string>& names) {
  if (names.size() < 2) return names.empty() ? "" : names[0];
  const std::vector<std::string> first(names.begin(), names.end() - 1);
  return joined(first, ", ") + " and " + names.back();
}

// The least time of a plan at some roofs; nothing where a step has none.
std::optional<double> least_seconds(const GapSide& plan, const Roofs& roofs) {
  if (plan.steps.empty() || roofs.empty()) return std::nullopt;
  double sum = 0.0;
  for (const StepTime& step : plan.steps) {
    const std::optional<double> least = point_of(step, roofs).least_seconds;
    if (!least) return std::nullopt;
    sum += *least;
  }
  return plan.scale * sum;
}

double step_sum(const GapSide& side) {
  double sum = 0.0;
  for (const StepTime& step : side.steps) sum += step.seconds;
  return sum;
}

double flops_of(const GapSide& side) {
  double sum = 0.0;
  for (const StepTime& step : side.steps) sum += static_cast<double>(step.flops);
  return side.scale * sum;
}

// The iteration without the waiting for data that no work hides. Waiting while the device computes
// costs nothing.
std::optional<double> without_wait(const GapSide& side, const std::optional<double>& busy) {
  if (!side.data_wait_seconds) return std::nullopt;
  double wait = *side.data_wait_seconds;
  if (busy) wait = std::min(wait, std::max(side.seconds - *busy, 0.0));
  const double rest = side.seconds - wait;
  return rest > 0.0 ? std::optional(side.scale * rest) : std::nullopt;
}

using Pair = std::optional<std::pair<double, double>>;
Pair both(const std::optional<double>& a, const std::optional<double>& b) {
  if (!a || !b || !(*a > 0.0) || !(*b > 0.0)) return std::nullopt;
  return std::pair(*a, *b);
}

// Takes the ratio apart, from the outside in.
class Splitter {
 public:
  Splitter(double a, double b) : a_(a), b_(b) { ledger.ratio = b / a; }

  // What remains of an iteration without this part; an unknown one waits for the next known.
  void take(const char* name, const Pair& rest, const char* rest_name) {
    names_.emplace_back(name);
    if (!rest) return;
    add(listed(names_), (b_ / rest->second) / (a_ / rest->first),
        fmt::format("{} to {} of {} in A, {} to {} in B", duration_text(a_),
                    duration_text(rest->first), rest_name, duration_text(b_),
                    duration_text(rest->second)));
    names_.clear();
    a_ = rest->first;
    b_ = rest->second;
  }
  void add(std::string name, double factor, std::string evidence) {
    ledger.factors.push_back({std::move(name), factor, std::move(evidence)});
    left_ /= factor;
  }
  // What no definition covers.
  void remainder(std::vector<std::string> names, std::string evidence) {
    names.insert(names.begin(), names_.begin(), names_.end());
    add(listed(names), ledger.ratio * left_, std::move(evidence));
  }

  [[nodiscard]] bool nothing_waits() const { return names_.empty(); }
  [[nodiscard]] double a() const { return a_; }
  [[nodiscard]] double b() const { return b_; }

  GapLedger ledger;

 private:
  double a_, b_, left_ = 1.0;
  std::vector<std::string> names_;  // parts that are not known
};

// Least times of both plans at both sides' ceilings.
struct Least {
  double a_at_a = 0.0, b_at_b = 0.0;
  std::optional<double> a_at_b, b_at_a;
};

// The work and the hardware in b_at_b / a_at_a.
void split_least(const Least& least, Splitter& splitter) {
  const double whole = least.b_at_b / least.a_at_a;
  double hardware = 1.0, ways = 0.0;
  std::vector<std::string> evidence;
  if (least.a_at_b) {
    hardware *= *least.a_at_b / least.a_at_a;
    ways += 1.0;
    evidence.push_back(fmt::format("A's plan needs at least {} at A's ceilings, {} at B's",
                                   duration_text(least.a_at_a), duration_text(*least.a_at_b)));
  }
  if (least.b_at_a) {
    hardware *= least.b_at_b / *least.b_at_a;
    ways += 1.0;
    evidence.push_back(fmt::format("B's plan {} at A's, {} at B's", duration_text(*least.b_at_a),
                                   duration_text(least.b_at_b)));
  }
  if (ways == 0.0) {
    splitter.add("FLOPs and bytes done and hardware ceiling", whole,
                 fmt::format("at least {} for A's plan, {} for B's, each at its own ceilings; no "
                             "plan has ceilings on the other's device",
                             duration_text(least.a_at_a), duration_text(least.b_at_b)));
    return;
  }
  hardware = std::pow(hardware, 1.0 / ways);
  const std::string text = joined(evidence, "; ");
  splitter.add("FLOPs and bytes done", whole / hardware, text);
  splitter.add("hardware ceiling", hardware, text);
}

// What the steps take above their least time.
void split_efficiency(const GapSide& a, const GapSide& b, const Least& least, Splitter& splitter) {
  const double above_a = splitter.a() / least.a_at_a, above_b = splitter.b() / least.b_at_b;
  const std::string evidence = fmt::format("steps reach {:.1f}% of the ceilings in A, {:.1f}% in B",
                                           100.0 / above_a, 100.0 / above_b);
  const Pair run = both(a.clock_mhz, b.clock_mhz);
  const Pair ceiling = both(a.ceiling_clock_mhz, b.ceiling_clock_mhz);
  if (!run || !ceiling) {
    splitter.add("efficiency and clock", above_b / above_a, evidence);
    return;
  }
  const double slow_a = ceiling->first / run->first, slow_b = ceiling->second / run->second;
  splitter.add("clock", slow_b / slow_a,
               fmt::format("{:.0f} MHz in A ({:.0f} during its ceilings), {:.0f} in B ({:.0f})",
                           run->first, ceiling->first, run->second, ceiling->second));
  splitter.add("efficiency", (above_b / slow_b) / (above_a / slow_a), evidence);
}

}  // namespace

GapLedger gap_ledger(const GapSide& a, const GapSide& b) {
  ensure(a.seconds > 0.0 && b.seconds > 0.0, "a gap between {} s and {} s", a.seconds, b.seconds);
  Splitter splitter(a.scale * a.seconds, b.scale * b.seconds);
  // Steps on both sides, or the device's clock on both: one of each would compare two things.
  const bool by_steps = !a.steps.empty() && !b.steps.empty();
  const auto busy = [&](const GapSide& side) {
    return by_steps ? std::optional(step_sum(side)) : side.device_seconds;
  };
  const auto busy_a = busy(a), busy_b = busy(b);
  const bool busy_known = busy_a && busy_b;
  splitter.take("data wait", both(without_wait(a, busy_a), without_wait(b, busy_b)),
                "an iteration without it");
  splitter.take("launch gaps and idle",
                busy_known ? both(a.scale * *busy_a, b.scale * *busy_b) : std::nullopt,
                by_steps ? "steps" : "the device's own time");
  const auto a_at_a = least_seconds(a, a.roofs), b_at_b = least_seconds(b, b.roofs);
  if (by_steps && splitter.nothing_waits() && both(a_at_a, b_at_b)) {
    const Least least = {*a_at_a, *b_at_b, least_seconds(a, b.roofs), least_seconds(b, a.roofs)};
    split_least(least, splitter);
    split_efficiency(a, b, least, splitter);
  } else if (const Pair flops = both(flops_of(a), flops_of(b)); flops && by_steps) {
    splitter.add("FLOPs done", flops->second / flops->first,
                 fmt::format("{:.4g} GFLOP in A, {:.4g} in B, as executed", flops->first / 1e9,
                             flops->second / 1e9));
    splitter.remainder(
        {"bytes done", "hardware ceiling", "clock", "efficiency"},
        "no ceilings for both runs: 'ridgeline env --measure' would tell them apart");
  } else {
    splitter.remainder({"FLOPs and bytes done", "hardware ceiling", "clock", "efficiency"},
                       "the times of single steps were not recorded for both runs");
  }
  double product = 1.0;
  for (const GapFactor& factor : splitter.ledger.factors) product *= factor.factor;
  ensure(std::abs(product / splitter.ledger.ratio - 1.0) < 1e-9,
         "the factors of the gap multiply to {}, not to the ratio {}", product,
         splitter.ledger.ratio);
  return splitter.ledger;
}

void add_turns(double ratio, GapLedger& ledger) {
  ledger.factors.push_back(
      {"uneven machine", ratio / ledger.ratio,
       fmt::format("the medians alone give {:.4f}, turns compared one by one {:.4f}", ledger.ratio,
                   ratio)});
  ledger.ratio = ratio;
}

GapSide gap_side(const RunRecord& run, double seconds, std::span<const Sample> samples,
                 std::vector<StepTime> steps, std::span<const Reading> readings,
                 std::span<const Ceiling> ceilings) {
  GapSide side;
  side.seconds = seconds;
  side.steps = std::move(steps);
  const std::string& device = run.executor.device;
  side.roofs = roofs_of(ceilings, device, run.executor.threads);
  std::vector<double> waits, device_seconds;
  double from = -1.0, to = -1.0;  // when the measured iterations were
  for (const Sample& sample : samples) {
    if (sample.kind != SampleKind::measured) continue;
    if (from < 0.0) from = sample.at_seconds;
    to = sample.at_seconds;
    if (sample.data_wait_seconds) waits.push_back(*sample.data_wait_seconds);
    if (sample.device_seconds) device_seconds.push_back(*sample.device_seconds);
  }
  if (!waits.empty()) side.data_wait_seconds = median_of(waits);
  if (!device_seconds.empty()) side.device_seconds = median_of(device_seconds);
  std::vector<double> clocks, ceiling_clocks;
  const char* sensor = device == "cpu" ? "cpu_mhz" : "gpu_sm_mhz";
  for (const Reading& reading : readings) {
    const bool during = reading.at_seconds >= from && reading.at_seconds <= to;
    if (during && reading.device == device && reading.sensor == sensor) {
      clocks.push_back(reading.value);
    }
  }
  for (const Ceiling& ceiling : ceilings) {
    if (ceiling.device == device && ceiling.kind == "compute" && ceiling.clock_mhz) {
      ceiling_clocks.push_back(*ceiling.clock_mhz);
    }
  }
  if (!clocks.empty()) side.clock_mhz = median_of(clocks);
  if (!ceiling_clocks.empty()) side.ceiling_clock_mhz = median_of(ceiling_clocks);
  return side;
}

}  // namespace ridgeline
