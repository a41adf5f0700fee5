#include "measure/profile/tables.h"

#include <algorithm>
#include <map>
#include <numeric>

#include "base/error.h"
#include "base/parse.h"
#include "base/text.h"
#include "measure/profile/thread_activity.h"

namespace ridgeline {
namespace {

// The words of study 2 for a forward op.
std::string_view forward_word(std::string_view op) {
  if (op == "linear" || op == "conv2d") return "matrix multiplication";
  if (op == "activation") return "ReLU";
  if (op.starts_with("softmax")) return "softmax";
  if (op == "bias") return "bias";
  return "other";
}

std::string group_of(const StepTime& step, TableBy by) {
  switch (by) {
    case TableBy::op:
      return step.ops;
    case TableBy::layer:
      return step.layer;
    case TableBy::phase:
      return step.phase;
    case TableBy::kernel:
      return step.kernel;
    case TableBy::step:
      return fmt::format("{}", step.index);
    case TableBy::study2:
      return study2_group(step);
  }
  fail("unknown kind of table");
}

void add(std::optional<double>& sum, const std::optional<double>& part) {
  if (part) sum = sum.value_or(0.0) + *part;
}

// What the steps of a row share beside their points.
struct Rest {
  double longest = 0.0, mean = 0.0;
  std::optional<double> instructions, cycles, cache_misses;
};

std::map<std::string, Rest> rests_of(const Profile& profile, TableBy by) {
  const std::vector<ThreadBalance> balances = balance_of(profile.events, profile.steps.size());
  std::map<std::string, Rest> rests;
  for (std::size_t s = 0; s < profile.steps.size(); ++s) {
    Rest& rest = rests[group_of(profile.steps[s], by)];
    rest.longest += balances[s].longest;
    rest.mean += balances[s].mean;
    if (s >= profile.counters.size()) continue;
    add(rest.instructions, profile.counters[s].instructions);
    add(rest.cycles, profile.counters[s].cycles);
    add(rest.cache_misses, profile.counters[s].cache_misses);
  }
  return rests;
}

void add_outside(const Profile& profile, ProfileTable& table) {
  const TimeBreakdown& outside = profile.outside;
  const std::array<std::pair<const char*, double>, 6> parts = {
      {{"between steps: kernels", outside.kernel},
       {"between steps: copies", outside.copy},
       {"between steps: runtime calls", outside.runtime},
       {"between steps: waiting for data", outside.data},
       {"between steps: the host's own work", outside.cpu},
       {"between steps: idle", outside.idle}}};
  for (const auto& [name, seconds] : parts) {
    if (seconds <= 0.0) continue;
    TableRow row;
    row.name = name;
    row.seconds = seconds;
    table.rows.push_back(std::move(row));
  }
}

}  // namespace

std::string study2_group(const StepTime& step) {
  if (step.phase.find('+') != std::string::npos) return "whole step in one kernel (fused)";
  if (step.phase == "optimizer") return "parameter update";
  if (step.phase.starts_with("backward") || step.phase == "recompute") {
    return "gradient computation";
  }
  std::vector<std::string_view> words;
  for (const std::string_view op : pieces_of(step.ops, "+")) {
    const std::string_view word = forward_word(op);
    if (std::find(words.begin(), words.end(), word) == words.end()) words.push_back(word);
  }
  if (words.size() == 1) return words[0] == "other" ? "other (forward)" : std::string(words[0]);
  // The loss comes with figures that are no op of study 2.
  std::erase(words, "other");
  return words.size() == 1 ? std::string(words[0]) : joined(words, " + ") + " (fused)";
}

ProfileTable table_of(const Profile& profile, const Roofs& roofs, TableBy by) {
  const std::map<std::string, Rest> rests = rests_of(profile, by);
  ProfileTable table;
  table.by = by;
  table.seconds = profile.profiled_seconds;
  for (RooflinePoint& point :
       points_of(profile.steps, roofs, [by](const StepTime& step) { return group_of(step, by); })) {
    TableRow row;
    const Rest& rest = rests.at(point.name);
    row.name = point.name;
    if (by == TableBy::step) {
      const StepTime& step = profile.steps[static_cast<std::size_t>(point.index)];
      row.name = point.name = step.layer;
    }
    row.seconds = point.seconds;
    row.steps = point.steps;
    if (rest.mean > 0.0) row.imbalance = rest.longest / rest.mean;
    row.instructions = rest.instructions;
    row.cycles = rest.cycles;
    row.cache_misses = rest.cache_misses;
    row.point = std::move(point);
    table.rows.push_back(std::move(row));
  }
  std::stable_sort(table.rows.begin(), table.rows.end(),
                   [](const TableRow& a, const TableRow& b) { return a.seconds > b.seconds; });
  add_outside(profile, table);
  for (TableRow& row : table.rows) row.share = row.seconds / table.seconds;
  return table;
}

ProfileTable top_of(const ProfileTable& table, std::size_t count) {
  ProfileTable top = table;
  top.rows.clear();
  TableRow others;
  std::size_t hidden = 0, shown = 0;
  for (const TableRow& row : table.rows) {
    if (row.steps == 0) continue;
    if (shown < count) {
      top.rows.push_back(row);
      ++shown;
      continue;
    }
    ++hidden;
    others.seconds += row.seconds;
    others.share += row.share;
    others.steps += row.steps;
  }
  if (hidden > 0) {
    others.name = fmt::format("{} other{}", hidden, hidden == 1 ? "" : "s");
    top.rows.push_back(std::move(others));
  }
  for (const TableRow& row : table.rows) {
    if (row.steps == 0) top.rows.push_back(row);
  }
  return top;
}

}  // namespace ridgeline
