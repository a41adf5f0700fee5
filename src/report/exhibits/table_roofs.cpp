// How near the roofs, and what bounds.

#include <algorithm>
#include <map>

#include "base/error.h"
#include "report/exhibits/makers.h"
#include "report/exhibits/run_table.h"

namespace ridgeline::report {
namespace {

bool any_speed(const RunView& run) { return run.flops_per_second && !is_profile(run); }

// The compute roof of most FLOPs of the run.
const ComputeRoof* compute_roof(const Data& data, const RunView& run, const Roofs& roofs) {
  std::map<std::string, double> flops;
  for (const StepTime& step : data.store().steps(run.run.id)) {
    flops[step.unit] += static_cast<double>(step.flops);
  }
  const auto most = std::max_element(
      flops.begin(), flops.end(), [](const auto& a, const auto& b) { return a.second < b.second; });
  if (most != flops.end()) return roofs.find_compute(most->first);
  // A peer does not tell of its steps; what it computes in is known.
  if (!is_peer(run)) return nullptr;
  const std::string& precision = run.run.work.precision;
  return roofs.find_compute(precision == "fp32" ? precision : "tensor " + precision);
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

bool has_shares(const RunView& run) { return !is_peer(run) && !is_training(run); }

}  // namespace

Tables make_efficiency(const ExhibitInput& input) {
  const Runs runs = chosen(input.runs, any_speed);
  if (runs.empty()) return {};
  double greatest = 0.0;
  for (const RunView* run : runs) greatest = std::max(greatest, *run->flops_per_second);
  const Scale scale = scale_of(greatest, "FLOP/s");
  const Heads heads = heads_of(input.data, runs, {"model", "batch", "machine", "executor"});
  Table table = begin_table(input, "", "Achieved FLOP/s and efficiency", heads);
  table.caption += fmt::format(
      " FLOPs are algorithmic, of whole training steps; {}. The share of the roof is the least "
      "time "
      "of the plan at the measured ceilings, step by step, over the measured time: it cannot "
      "exceed "
      "100% but by the inaccuracy of ceilings.",
      samples_text(runs));
  for (TableColumn column : std::vector<TableColumn>{
           {"achieved", scale.unit, true, "Algorithmic FLOPs over time, with its 95% interval"},
           {"of the peak", "%", true,
            "Of the compute roof of the unit that does most of the work, of a peer that of its "
            "precision"},
           {"of the roof", "%", true, "Least time at the roofs over the measured time"},
           {"intensity", "FLOP/byte", true, "Executed FLOPs for each byte of the plan's steps"},
           {"bandwidth", "GB/s", true, "Bytes at the boundaries of the plan's steps over time"},
           {"bound by", "", false, "What keeps it from being faster"}}) {
    table.columns.push_back(std::move(column));
  }
  for (const RunView* run : runs) {
    std::vector<Cell> row = begin_row(input.data, heads, *run);
    const double flops = *run->flops_per_second * scale.factor, rate = run->rate->value;
    row.push_back(interval(flops, flops * run->rate->low / rate, flops * run->rate->high / rate,
                           {run->run.id}));
    mark_as(input.data, table, row.back(), *run, Marks::speed);
    const Roofs roofs = input.data.roofs(*run);
    const std::optional<RooflinePoint> point = input.data.point(*run);
    const std::string why = why_no_point(input.data, *run);
    const ComputeRoof* roof = compute_roof(input.data, *run, roofs);
    row.push_back(number_cell(table,
                              roof != nullptr
                                  ? std::optional(*run->flops_per_second / roof->flops_per_second)
                                  : std::nullopt,
                              100.0, *run, why));
    row.push_back(efficiency_cell(input.data, table, *run));
    row.push_back(number_cell(table, point ? point->intensity() : std::nullopt, 1.0, *run, why));
    row.push_back(number_cell(
        table, point ? std::optional(point->bytes_per_second()) : std::nullopt, 1e-9, *run, why));
    row.push_back(bound_cell(input.data, table, *run));
    table.rows.push_back(std::move(row));
  }
  return {table};
}

Tables make_bounds(const ExhibitInput& input) {
  // Watching costs time: where iterations were also measured without a profile, those count.
  const Runs runs = without_profiles(chosen(input.runs, [&](const RunView& run) {
    return has_shares(run) && shares_of(input.data, run).has_value();
  }));
  if (runs.empty()) return {};
  const Heads heads = heads_of(input.data, runs, {"model", "batch", "machine", "executor"});
  Table table = begin_table(input, "", "What bounds each network", heads);
  table.caption +=
      " Each step of the plan is bound by what takes longest at the measured ceilings: its bytes, "
      "its FLOPs, or being started. Shares of an iteration's time; every row adds up to 100%.";
  for (TableColumn column : std::vector<TableColumn>{
           {"bound by", "", false, "What bounds most of its time"},
           {"of the roof", "%", true, "Least time at the roofs over the measured time"},
           {"memory", "%", true, "Time in steps that are bound by memory"},
           {"compute", "%", true, "Time in steps that are bound by computing"},
           {"launch", "%", true, "Time in steps that take longer to start than to do"},
           {"data", "%", true, "Time waiting for the loader"},
           {"unknown", "%", true, "Time in steps whose unit has no measured roof"},
           {"between steps", "%", true, "Time in which no step runs"}}) {
    table.columns.push_back(std::move(column));
  }
  for (const RunView* run : runs) {
    const BoundShares shares = shares_of(input.data, *run).value();
    std::vector<Cell> row = begin_row(input.data, heads, *run);
    row.push_back(bound_cell(input.data, table, *run));
    mark_as(input.data, table, row.back(), *run, Marks::speed);
    row.push_back(efficiency_cell(input.data, table, *run));
    for (const double part : {shares.memory, shares.compute, shares.launch, shares.data,
                              shares.unknown, shares.between()}) {
      row.push_back(number(100.0 * part / shares.seconds, {run->run.id}));
    }
    table.rows.push_back(std::move(row));
  }
  return {table};
}

}  // namespace ridgeline::report
