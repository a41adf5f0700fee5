// How near the roofs, and what bounds.

#include <algorithm>
#include <map>

#include "base/error.h"
#include "report/exhibits/run_table.h"

namespace ridgeline::report {
namespace {

bool has_flops(const RunView& run) { return run.flops_per_second && !is_profile(run); }

// The compute roof of most FLOPs of the run.
const ComputeRoof* compute_roof(const Data& data, const RunView& run, const Roofs& roofs) {
  std::map<std::string, double> flops;
  for (const StepTime& step : data.store().steps(run.run.id)) {
    flops[step.unit] += static_cast<double>(step.flops);
  }
  const auto most = std::ranges::max_element(
      flops, [](const auto& a, const auto& b) { return a.second < b.second; });
  if (most != flops.end()) return roofs.find_compute(most->first);
  // A peer does not tell of its steps; what it computes in is known.
  if (!is_peer(run)) return nullptr;
  return roofs.find_precision(run.run.work.precision);
}

// Shares of an iteration by what bounds its steps.
struct BoundShares {
  double memory = 0.0, compute = 0.0, launch = 0.0, unknown = 0.0;  // seconds
  double data = 0.0;
  double seconds = 0.0;  // of the iteration, or of all steps where they take longer
  [[nodiscard]] double between() const {
    const double rest = seconds - memory - compute - launch - unknown - data;
    return rest > 1e-9 * seconds ? rest : 0.0;  // not what rounding leaves
  }
};

std::optional<BoundShares> shares_of(const Data& data, const RunView& run) {
  const std::vector<StepTime> steps = data.store().steps(run.run.id);
  const Roofs roofs = data.roofs(run);
  if (steps.empty() || roofs.empty()) return std::nullopt;
  BoundShares shares;
  double sum = 0.0;
  for (const StepTime& step : steps) {
    const RooflinePoint point = point_of(step, roofs);
    double& part = point.bound == Bound::memory    ? shares.memory
                   : point.bound == Bound::compute ? shares.compute
                   : point.bound == Bound::launch  ? shares.launch
                                                   : shares.unknown;
    part += step.seconds;
    sum += step.seconds;
  }
  shares.seconds = run.seconds ? run.seconds->value : sum;
  shares.data = shares.seconds * number_of(run, "data_wait_share").value_or(0.0);
  // Steps that were timed one by one may take longer than an iteration without clocks between them.
  shares.seconds = std::max(shares.seconds, sum + shares.data);
  return shares;
}

const char* const kLeastTime = "Least time at the roofs over the measured time";

bool has_shares(const RunView& run) { return !is_peer(run) && !is_training(run); }

}  // namespace

Tables make_efficiency(const ExhibitInput& input) {
  const Data& data = input.data;
  const Runs runs = chosen(input.runs, has_flops);
  double greatest = 0.0;
  for (const RunView* run : runs) greatest = std::max(greatest, *run->flops_per_second);
  const DisplayUnit scale = unit_of(greatest, "FLOP/s");
  RunTable table(input, runs,
                 {.title = "Achieved FLOP/s and efficiency",
                  .caption = fmt::format(
                      " FLOPs are algorithmic, of whole training steps; {}. The share of the roof "
                      "is the least time of the plan at the measured ceilings, step by step, over "
                      "the measured time: it cannot exceed 100% but by the inaccuracy of ceilings.",
                      samples_text(runs))});
  table.column({"achieved", scale.unit, true, "Algorithmic FLOPs over time, with its 95% interval"},
               [&](const RunView& run) {
                 const double flops = *run.flops_per_second * scale.factor, rate = run.rate->value;
                 return table.marked(interval(flops, flops * run.rate->low / rate,
                                              flops * run.rate->high / rate, {run.run.id}),
                                     run, Marks::speed);
               });
  // What rests on the roofs; nothing where the run has no place under them.
  const auto add = [&](TableColumn head, double factor, const RunTable::Value& value) {
    table.column(std::move(head), [&, factor, value](const RunView& run) {
      return table.number(value(run), factor, run, why_no_point(data, run));
    });
  };
  add({"of the peak", "%", true,
       "Of the compute roof of the unit that does most of the work, of a peer that of its "
       "precision"},
      100.0, [&](const RunView& run) -> std::optional<double> {
        const Roofs roofs = data.roofs(run);
        const ComputeRoof* roof = compute_roof(data, run, roofs);
        if (roof == nullptr) return std::nullopt;
        return *run.flops_per_second / roof->flops_per_second;
      });
  table.of_the_roof(kLeastTime);
  add({"intensity", "FLOP/byte", true, "Executed FLOPs for each byte of the plan's steps"}, 1.0,
      [&](const RunView& run) {
        const auto point = data.point(run);
        return point ? point->intensity() : std::nullopt;
      });
  add({"bandwidth", "GB/s", true, "Bytes at the boundaries of the plan's steps over time"}, 1e-9,
      [&](const RunView& run) {
        const auto point = data.point(run);
        return point ? std::optional(point->bytes_per_second()) : std::nullopt;
      });
  table.bound_by();
  return table.made();
}

Tables make_bounds(const ExhibitInput& input) {
  const auto shares = once_per_run([&](const RunView& run) { return shares_of(input.data, run); });
  // Watching costs time: where iterations were also measured without a profile, those count.
  RunTable table(
      input,
      without_profiles(
          chosen(input.runs,
                 [&](const RunView& run) { return has_shares(run) && shares(run).has_value(); })),
      {.title = "What bounds each network",
       .caption = " Each step of the plan is bound by what takes longest at the measured ceilings: "
                  "its bytes, its FLOPs, or being started. Shares of an iteration's time; every "
                  "row adds up to 100%."});
  table.column({"bound by", "", false, "What bounds most of its time"}, [&](const RunView& run) {
    return table.marked(table.bound(run), run, Marks::speed);
  });
  table.of_the_roof(kLeastTime);
  const auto add = [&](const char* title, const auto& part, const char* meaning) {
    table.column({title, "%", true, meaning}, [&, part](const RunView& run) {
      return number(100.0 * std::invoke(part, *shares(run)) / shares(run)->seconds, {run.run.id});
    });
  };
  add("memory", &BoundShares::memory, "Time in steps that are bound by memory");
  add("compute", &BoundShares::compute, "Time in steps that are bound by computing");
  add("launch", &BoundShares::launch, "Time in steps that take longer to start than to do");
  add("data", &BoundShares::data, "Time waiting for the loader");
  add("unknown", &BoundShares::unknown, "Time in steps whose unit has no measured roof");
  add("between steps", &BoundShares::between, "Time in which no step runs");
  return table.made();
}

}  // namespace ridgeline::report
