#pragma once

// Tables of a profile: the steps of the plan grouped in some way, and what lies between them. Every
// table adds up to the time of an iteration. A fused step is an op of its own
// ("conv2d+bias+activation"): its time is never split among its ops.

#include <array>
#include <optional>
#include <string>
#include <string_view>
#include <vector>

#include "analysis/roofline/points.h"
#include "measure/profile/profile.h"

namespace ridgeline {

enum class TableBy {
  op,  // kinds of ops
  layer,
  phase,
  kernel,  // of the plan
  step,
  study2,  // matrix multiplication, ReLU, softmax, gradient computation, …
};
inline constexpr std::array<std::string_view, 6> kTableNames = {"op",     "layer", "phase",
                                                                "kernel", "step",  "study2"};

struct TableRow {
  std::string name;
  double seconds = 0.0, share = 0.0;  // of an iteration
  std::int64_t steps = 0;             // of the plan that it stands for; 0: what lies between them
  // Of steps: FLOPs, bytes, efficiency, bound; with fields of a single step where it is one.
  std::optional<RooflinePoint> point;
  // Longest over mean busy time of the threads; nothing: no parallel region of ours.
  std::optional<double> imbalance;
  std::optional<double> instructions, cycles, cache_misses;  // counted, for one iteration
};

struct ProfileTable {
  TableBy by = TableBy::op;
  std::vector<TableRow> rows;  // most time first, what lies between the steps last
  double seconds = 0.0;        // of an iteration: the sum of the rows
};

// With no roofs, efficiency and bound are not known.
[[nodiscard]] ProfileTable table_of(const Profile& profile, const Roofs& roofs, TableBy by);
// The first `count` rows; all other steps become one row more.
[[nodiscard]] ProfileTable top_of(const ProfileTable& table, std::size_t count);

// The group of a step in study 2's table.
[[nodiscard]] std::string study2_group(const StepTime& step);

}  // namespace ridgeline
