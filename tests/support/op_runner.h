#pragma once

// Runs a case on a backend straight through its rows, without plan or session, and holds every
// value that comes out against the reference in double.

#include <string>
#include <vector>

#include "plan/kernel.h"
#include "support/host_values.h"

namespace ridgeline::testing {

// A case tiled with a backend's rows, or why it cannot be.
struct Tile {
  const KernelRow* row = nullptr;
  std::vector<NodeId> nodes;
};
struct Tiling {
  std::vector<Tile> tiles;  // in an order in which they can run
  std::string refusal;      // empty when the backend covers the case

  [[nodiscard]] std::string text() const;  // "conv2d_bias_act + pool"
};
[[nodiscard]] Tiling tile(const Backend& backend, const Graph& graph);

struct CheckResult {
  std::string refusal;                // empty when the backend supports the case
  std::string rows;                   // the rows that ran
  std::vector<std::string> failures;  // empty when everything was right
  double error = 0.0;      // largest |result - expected| ÷ largest |expected|, over all outputs
  double tolerance = 0.0;  // largest error in units of what is allowed: above 1 is a failure
};

// thorough: every thread count, offered layout, slices, in place, unread outputs, and a second run
// that must give the same bits. Otherwise one run.
enum class Effort { quick, thorough };
[[nodiscard]] CheckResult check_case(const Backend& backend, const OpCase& op_case, Effort effort);

struct Speed {
  double seconds = 0.0;  // best of the repetitions, summed over the tiles
  Cost cost;             // of the nodes; bytes at the boundaries of the tiles
};
// REQUIRES: the backend covers the case.
[[nodiscard]] Speed time_case(const Backend& backend, const OpCase& op_case, int repetitions);

}  // namespace ridgeline::testing
