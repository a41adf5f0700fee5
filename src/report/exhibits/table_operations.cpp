// Time by operation: study 2's rows side by side, and the kinds of ops of each run.

#include <algorithm>
#include <array>
#include <functional>
#include <map>

#include "base/error.h"
#include "base/parse.h"
#include "measure/profile/tables.h"
#include "report/exhibits/run_table.h"

namespace ridgeline::report {
namespace {

constexpr std::size_t kMostOps = 15;  // rows of a breakdown; the rest becomes one

bool may_have_steps(const RunView& run) {
  return !is_peer(run) && !is_training(run) && !is_inference(run);
}

// An iteration of the run as its steps are part of: watched in a profile, else as it was measured.
std::optional<double> iteration_seconds(const RunView& run) {
  if (const auto profiled = number_of(run, "profiled_seconds")) return profiled;
  if (run.seconds) return run.seconds->value;
  return std::nullopt;
}

// Runs with steps; of the same work by the same executor the profile, or the others.
Runs with_steps(const Data& data, const Runs& all, bool profiles) {
  const Runs found = chosen(all, [&](const RunView& run) {
    return may_have_steps(run) && !data.store().steps(run.run.id).empty();
  });
  Runs runs;
  for (const Runs& alike : grouped(found, {"command"})) {
    const Runs better =
        only(alike, [&](const RunView& run) { return is_profile(run) == profiles; });
    const Runs& kept = better.empty() ? alike : better;
    runs.insert(runs.end(), kept.begin(), kept.end());
  }
  return runs;
}

// The order of study 2; what it does not name comes behind, fused steps after the plain ones.
std::size_t place_of(const std::string& group) {
  static constexpr std::array<const char*, 8> kOrder = {"matrix multiplication",
                                                        "bias",
                                                        "ReLU",
                                                        "softmax",
                                                        "other (forward)",
                                                        "gradient computation",
                                                        "parameter update",
                                                        "whole step in one kernel (fused)"};
  const auto found = std::ranges::find(kOrder, group);
  if (found != kOrder.end()) return 2 * static_cast<std::size_t>(found - kOrder.begin());
  return 9;  // fused forward steps, before the gradients
}

struct Groups {
  std::map<std::string, double> seconds;
  double sum = 0.0, iteration = 0.0;
};

Groups groups_of(const Data& data, const RunView& run) {
  Groups groups;
  for (const StepTime& step : data.store().steps(run.run.id)) {
    groups.seconds[study2_group(step)] += step.seconds;
    groups.sum += step.seconds;
  }
  groups.iteration = iteration_seconds(run).value_or(groups.sum);
  return groups;
}

Table operations_table(const ExhibitInput& input, const std::string& part, const Runs& runs) {
  const Heads heads = heads_of(input.data, runs, {}, executor_fields());
  const Names executors(input.data, runs, work_fields());
  Table table = begin_table(input, part, "Time by operation", heads);
  // The fields that differ cannot be columns here: all runs of the table did the same work.
  table.columns = {
      {"operation", "", false, "As study 2 names them; gradients are all backward steps"}};
  table.caption +=
      " Each step of the plan belongs to one row, so that the rows add up. Times of "
      "steps are means of the middle passes with a clock between the steps.";
  std::vector<Groups> all;
  std::vector<std::string> names;
  for (const RunView* run : runs) {
    all.push_back(groups_of(input.data, *run));
    for (const auto& [name, seconds] : all.back().seconds) {
      if (!has(names, name)) names.push_back(name);
    }
    const std::string executor = executors.of(*run);
    table.columns.push_back({executor, "ms", true, "Time in an iteration by " + executor});
  }
  for (std::size_t i = 1; i < runs.size(); ++i) {
    table.columns.push_back({"speed-up of " + executors.of(*runs[i]), "x", true,
                             fmt::format("Time by {} over time by {}", executors.of(*runs[0]),
                                         executors.of(*runs[i]))});
  }
  std::ranges::stable_sort(names, {}, place_of);
  const auto add_row = [&](const std::string& name, const auto& value, const std::string& why) {
    std::vector<Cell> row = {words(name)};
    for (std::size_t i = 0; i < runs.size(); ++i) {
      row.push_back(number_cell(table, value(all[i]), 1e3, *runs[i], why));
      if (name != "iteration") continue;
      mark_as(input.data, table, row.back(), *runs[i], Marks::speed);
      if (is_profile(*runs[i])) {
        row.back() = noted(table, std::move(row.back()),
                           "iterations that a profile watched, which takes time itself");
      }
    }
    for (std::size_t i = 1; i < runs.size(); ++i) {
      const std::optional<double> first = value(all[0]), other = value(all[i]);
      const bool both = first && other && *first > 0.0 && *other > 0.0;
      row.push_back(both ? number(*first / *other, {runs[0]->run.id, runs[i]->run.id})
                         : missing(table, "no ratio: one of the two has no such step"));
    }
    table.rows.push_back(std::move(row));
  };
  for (const std::string& name : names) {
    add_row(
        name,
        [&](const Groups& groups) -> std::optional<double> {
          const auto found = groups.seconds.find(name);
          return found == groups.seconds.end() ? std::nullopt : std::optional(found->second);
        },
        "this executor has no such step of its own: the operation is part of a fused one");
  }
  add_row(
      "between steps",
      [](const Groups& groups) -> std::optional<double> {
        if (groups.iteration < groups.sum) return std::nullopt;
        return groups.iteration - groups.sum;
      },
      "the single steps, each with a clock, took longer than the whole iteration");
  add_row(
      "iteration", [](const Groups& groups) { return std::optional(groups.iteration); }, "");
  return table;
}

// "normalize+conv2d+…+sgd (35 ops)": a kernel that does a whole network has a long name.
std::string short_ops(const std::string& ops) {
  const std::vector<std::string_view> parts = pieces_of(ops, "+");
  if (parts.size() <= 5) return ops;
  return fmt::format("{}+{}+…+{} ({} ops)", parts[0], parts[1], parts.back(), parts.size());
}

Table breakdown_table(const ExhibitInput& input, const std::string& part, const RunView& run) {
  const Heads heads = heads_of(input.data, {&run}, {});
  Table table = begin_table(input, part, "Time by kind of operation", heads);
  table.caption +=
      " A fused step is an operation of its own: its time is never split. The rows add "
      "up to the iteration.";
  table.columns = {{"operation", "", false, "Ops that a step computes, joined by +"},
                   {"steps", "", true, "Of the plan"},
                   {"time", "ms", true, "In one iteration"},
                   {"share", "%", true, "Of the iteration"},
                   {"achieved", "GFLOP/s", true, "Executed FLOPs over time"},
                   {"bandwidth", "GB/s", true, "Bytes at the steps' boundaries over time"},
                   {"of the roof", "%", true, "Least time at the roofs over the measured time"},
                   {"bound by", "", false, "What bounds most of its time"}};
  const std::vector<StepTime> steps = input.data.store().steps(run.run.id);
  std::vector<RooflinePoint> points =
      points_of(steps, input.data.roofs(run), [](const StepTime& step) { return step.ops; });
  std::ranges::stable_sort(points, std::greater{}, &RooflinePoint::seconds);
  double sum = 0.0;
  for (const RooflinePoint& point : points) sum += point.seconds;
  const double iteration = std::max(iteration_seconds(run).value_or(sum), 1e-12);
  const std::vector<RunId> id = {run.run.id};
  const std::string no_roof = why_no_point(input.data, run);
  double others = 0.0;
  std::int64_t other_steps = 0;
  for (std::size_t i = 0; i < points.size(); ++i) {
    const RooflinePoint& point = points[i];
    if (i >= kMostOps) {
      others += point.seconds;
      other_steps += point.steps;
      continue;
    }
    std::vector<Cell> row = {words(short_ops(point.name))};
    row.push_back(count_cell(point.steps, id));
    row.push_back(number(1e3 * point.seconds, id));
    row.push_back(number(100.0 * point.seconds / iteration, id));
    row.push_back(point.seconds > 0.0 && point.flops > 0.0
                      ? number(1e-9 * point.flops_per_second(), id)
                      : missing(table, "it computes nothing: it moves bytes"));
    row.push_back(point.seconds > 0.0 ? number(1e-9 * point.bytes_per_second(), id)
                                      : missing(table, "it took no time"));
    const auto efficiency = point.efficiency();
    row.push_back(number_cell(table, efficiency, 100.0, run, no_roof));
    if (efficiency && *efficiency > 1.0 + kRoofTolerance) {
      row.back() = noted(table, std::move(row.back()),
                         "above the roof: a cost, a time or a ceiling is wrong");
    }
    row.push_back(point.bound == Bound::unknown ? missing(table, no_roof)
                                                : words(point.bound_text()));
    table.rows.push_back(std::move(row));
  }
  const auto add_plain = [&](const std::string& name, std::optional<std::int64_t> count,
                             double seconds) {
    std::vector<Cell> row = {words(name)};
    row.push_back(count ? count_cell(*count, id) : words("–"));
    row.push_back(number(1e3 * seconds, id));
    row.push_back(number(100.0 * seconds / iteration, id));
    while (row.size() < table.columns.size()) row.push_back(words("–"));
    table.rows.push_back(std::move(row));
  };
  if (other_steps > 0) {
    add_plain(fmt::format("{} other kinds", points.size() - kMostOps), other_steps, others);
  }
  add_plain(iteration >= sum ? "between steps" : "less: clocks between the steps", std::nullopt,
            iteration - sum);
  add_plain("iteration", static_cast<std::int64_t>(steps.size()), iteration);
  mark_as(input.data, table, table.rows.back()[2], run, Marks::speed);
  return table;
}

}  // namespace

Tables make_operations(const ExhibitInput& input) {
  // Watching costs time: where iterations were also measured without a profile, those count.
  const Runs runs = with_steps(input.data, input.runs, false);
  const std::vector<Runs> groups = grouped(runs, executor_fields());
  const Names names(input.data, runs, executor_fields(), {"model"});
  Tables tables;
  for (const Runs& group : groups) {
    tables.push_back(operations_table(
        input, groups.size() > 1 ? names.of(*group.front()) : std::string(), group));
  }
  return tables;
}

Tables make_op_breakdown(const ExhibitInput& input) {
  Runs runs = with_steps(input.data, input.runs, true);
  const Runs profiles = only(runs, is_profile);
  // Without profiles one table for each configuration is enough: that of the largest batch.
  runs = profiles.empty() ? largest_batches(runs) : profiles;
  const Names names(input.data, runs, {}, {"model", "executor"});
  Tables tables;
  for (const RunView* run : runs) {
    tables.push_back(
        breakdown_table(input, runs.size() > 1 ? names.of(*run) : std::string(), *run));
  }
  return tables;
}

}  // namespace ridgeline::report
