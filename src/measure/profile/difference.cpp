#include "measure/profile/difference.h"

#include <algorithm>
#include <array>
#include <cmath>
#include <map>
#include <numeric>

#include "analysis/compare/alike.h"
#include "analysis/compare/run_series.h"
#include "analysis/stats/summary.h"
#include "base/error.h"
#include "base/parse.h"
#include "store/identity_fields.h"

namespace ridgeline {
namespace {

struct Op {
  std::string phase, kind, layer;
  auto operator<=>(const Op&) const = default;
};

// What a step covers. Reorders belong to the layer that they serve; runs of an older store know the
// layer of the first op alone.
std::vector<Op> ops_of(const StepTime& step) {
  std::vector<Op> ops;
  for (const std::string_view text : pieces_of(step.covers, "; ")) {
    const std::size_t kind = text.find(' ');
    const std::size_t layer = kind == std::string::npos ? kind : text.find(' ', kind + 1);
    if (layer == std::string::npos) continue;
    ops.push_back({std::string(text.substr(0, kind)),
                   std::string(text.substr(kind + 1, layer - kind - 1)),
                   std::string(text.substr(layer + 1))});
  }
  if (!ops.empty()) return ops;
  for (const std::string_view kind : pieces_of(step.ops, "+")) {
    ops.push_back({step.phase, std::string(kind), step.layer});
  }
  return ops;
}

void add_once(std::vector<std::string>& list, const std::string& text) {
  if (std::find(list.begin(), list.end(), text) == list.end()) list.push_back(text);
}

void add_all(std::vector<std::string>& list, const std::vector<std::string>& more) {
  for (const std::string& text : more) add_once(list, text);
}

// Steps of both sides in sets: joined where they cover the same op.
class Sets {
 public:
  explicit Sets(std::size_t count) : parent_(count) {
    std::iota(parent_.begin(), parent_.end(), std::size_t{0});
  }
  // The first step of its set.
  std::size_t first(std::size_t step) {
    while (parent_[step] != step) step = parent_[step] = parent_[parent_[step]];
    return step;
  }
  void join(std::size_t one, std::size_t other) {
    one = first(one);
    other = first(other);
    parent_[std::max(one, other)] = std::min(one, other);
  }

 private:
  std::vector<std::size_t> parent_;
};

RowKind kind_of(const DifferenceRow& row) {
  if (row.steps_b == 0) return RowKind::only_a;
  return row.steps_a == 0 ? RowKind::only_b : RowKind::both;
}

void add_to(DifferenceRow& row, const DifferenceRow& other) {
  add_all(row.layers, other.layers);
  add_all(row.ops, other.ops);
  add_all(row.phases, other.phases);
  add_all(row.kernels_a, other.kernels_a);
  add_all(row.kernels_b, other.kernels_b);
  row.steps_a += other.steps_a;
  row.steps_b += other.steps_b;
  row.a += other.a;
  row.b += other.b;
}

// Every step of both sides is in one of them.
std::vector<DifferenceRow> groups_of(const DifferenceSide& a, const DifferenceSide& b) {
  const std::size_t count = a.steps.size() + b.steps.size();
  const auto step_at = [&](std::size_t i) -> const StepTime& {
    return i < a.steps.size() ? a.steps[i] : b.steps[i - a.steps.size()];
  };
  Sets sets(count);
  std::map<Op, std::size_t> seen;
  for (std::size_t i = 0; i < count; ++i) {
    for (Op& op : ops_of(step_at(i))) {
      const auto [first, fresh] = seen.try_emplace(std::move(op), i);
      if (!fresh) sets.join(first->second, i);
    }
  }
  std::map<std::size_t, DifferenceRow> rows;
  for (std::size_t i = 0; i < count; ++i) {
    const StepTime& step = step_at(i);
    DifferenceRow& row = rows[sets.first(i)];
    for (const Op& op : ops_of(step)) {
      add_once(row.layers, op.layer);
      add_once(row.ops, op.kind);
      add_once(row.phases, op.phase);
    }
    const bool of_a = i < a.steps.size();
    (of_a ? row.a : row.b) += step.seconds;
    (of_a ? row.steps_a : row.steps_b) += 1;
    add_once(of_a ? row.kernels_a : row.kernels_b, step.kernel);
  }
  std::vector<DifferenceRow> groups;
  for (auto& [first, row] : rows) groups.push_back(std::move(row));
  return groups;
}

// Groups with the same kinds of ops, or the same layers, as one row. A group that covers several
// layers is never divided among them.
std::vector<DifferenceRow> merged(const std::vector<DifferenceRow>& groups, DifferenceBy by) {
  if (by == DifferenceBy::step) return groups;
  std::map<std::vector<std::string>, std::size_t> places;
  std::vector<DifferenceRow> rows;
  for (const DifferenceRow& group : groups) {
    std::vector<std::string> key = by == DifferenceBy::op ? group.ops : group.layers;
    std::sort(key.begin(), key.end());
    const auto [place, fresh] = places.try_emplace(std::move(key), rows.size());
    if (fresh) rows.emplace_back();
    add_to(rows[place->second], group);
  }
  return rows;
}

// The first `top` rows, then one for the others.
void keep_top(std::vector<DifferenceRow>& rows, std::int64_t top) {
  const auto kept = static_cast<std::size_t>(top);
  if (rows.size() <= kept) return;
  DifferenceRow others;
  for (std::size_t i = kept; i < rows.size(); ++i) add_to(others, rows[i]);
  others.kind = RowKind::others;
  others.rows = static_cast<std::int64_t>(rows.size() - kept);
  rows.resize(kept);
  rows.push_back(std::move(others));
}

double sum_of(const std::vector<StepTime>& steps) {
  double sum = 0.0;
  for (const StepTime& step : steps) sum += step.seconds;
  return sum;
}

void check_side(const DifferenceSide& side) {
  if (!side.steps.empty()) return;
  bad_input("{} has no times of single steps; 'bench' and 'profile' of a backend store them",
            side.name);
}

std::vector<std::string> warnings_of(const DifferenceSide& a, const DifferenceSide& b, bool force) {
  std::vector<std::string> warnings;
  const std::string unlike = differences_text(work_differences(a.run, b.run));
  if (!unlike.empty() && !force) {
    bad_input("{} and {} did different work ({}); --force compares them anyway", a.name, b.name,
              unlike);
  }
  if (!unlike.empty()) warnings.push_back("the work differs: " + unlike);
  for (const DifferenceSide* side : {&a, &b}) {
    if (!side->seconds) {
      warnings.push_back(fmt::format(
          "{} has no unprofiled iterations: the totals are the sums of the steps", side->name));
    }
    const bool old = std::any_of(side->steps.begin(), side->steps.end(), [](const StepTime& step) {
      return step.covers.empty() && step.ops != "reorder";
    });
    if (old) {
      warnings.push_back(fmt::format(
          "{} does not tell all layers of its fused steps: they are matched by the first",
          side->name));
    }
  }
  return warnings;
}

}  // namespace

std::string_view name_of(RowKind kind) {
  static constexpr std::array<std::string_view, 5> kNames = {"both", "only A", "only B", "others",
                                                             "between steps"};
  return kNames[static_cast<std::size_t>(kind)];
}

std::optional<double> DifferenceRow::speedup() const {
  if (kind == RowKind::between_steps || !(a > 0.0) || !(b > 0.0)) return std::nullopt;
  return a / b;
}

std::optional<double> StepDifference::speedup() const {
  return total_b > 0.0 ? std::optional(total_a / total_b) : std::nullopt;
}

DifferenceSide difference_side(const Profile& profile) {
  DifferenceSide side;
  side.run.work = profile.work;
  side.run.executor = profile.executor;
  side.name = "this profile: " + executor_text(side.run);
  side.steps = profile.steps;
  if (profile.unprofiled_seconds > 0.0) side.seconds = profile.unprofiled_seconds;
  return side;
}

DifferenceSide difference_side(const Store& store, const RunRecord& run) {
  DifferenceSide side;
  side.run = run;
  side.name = fmt::format("run {}: {}", run.id, executor_text(run));
  side.steps = store.steps(run.id);
  const std::vector<double> seconds = run_series(store.samples(run.id)).seconds;
  const auto median = run.numbers.find("median_seconds");
  if (!seconds.empty()) {
    side.seconds = median_of(seconds);
  } else if (median != run.numbers.end()) {
    side.seconds = median->second;
  }
  return side;
}

StepDifference step_difference(const DifferenceSide& a, const DifferenceSide& b,
                               const DifferenceOptions& options) {
  check_side(a);
  check_side(b);
  StepDifference result;
  result.name_a = a.name;
  result.name_b = b.name;
  result.warnings = warnings_of(a, b, options.force);
  result.per_sample = a.run.work.batch != b.run.work.batch;
  const auto scale = [&](const DifferenceSide& side) {
    return result.per_sample ? 1.0 / static_cast<double>(side.run.work.batch) : 1.0;
  };
  const double scale_a = scale(a), scale_b = scale(b);
  result.rows = merged(groups_of(a, b), options.by);
  for (DifferenceRow& row : result.rows) {
    row.a *= scale_a;
    row.b *= scale_b;
    row.kind = kind_of(row);
  }
  std::stable_sort(result.rows.begin(), result.rows.end(),
                   [](const DifferenceRow& one, const DifferenceRow& other) {
                     return std::abs(one.difference()) > std::abs(other.difference());
                   });
  if (options.top) keep_top(result.rows, *options.top);
  result.total_a = scale_a * sum_of(a.steps);
  result.total_b = scale_b * sum_of(b.steps);
  if (a.seconds && b.seconds) {
    DifferenceRow between;
    between.kind = RowKind::between_steps;
    between.a = scale_a * *a.seconds - result.total_a;
    between.b = scale_b * *b.seconds - result.total_b;
    result.rows.push_back(std::move(between));
    result.total_a = scale_a * *a.seconds;
    result.total_b = scale_b * *b.seconds;
  }
  return result;
}

}  // namespace ridgeline
