#pragma once

// Finds the fastest provider for every op of a graph, by measuring, for `auto`. Providers whose
// plans are made at once are compared as a whole. Those that measure variants of their own while a
// plan is made are asked only for the problems that take much longer than they would at the best
// rates seen so far, the most promising first, for as long as there is time.

#include <functional>
#include <string>
#include <vector>

#include "devices/device.h"
#include "plan/plan.h"

namespace ridgeline {

// For a node the provider to try first, and whether without its rows of passes.
struct Choice {
  const Backend* backend = nullptr;
  bool without_passes = false;

  friend bool operator==(const Choice&, const Choice&) = default;
};
using Preference = std::vector<Choice>;

void set_preference(PlanOptions& options, const Preference& preference);

struct SearchLimits {
  // For asking providers that measure. What was begun is finished, and the result is compared with
  // the best single provider: a few seconds more.
  double seconds = 6.0;
  // How often the plan will run; 0: unknown. What can gain less than it costs is not tried.
  std::int64_t runs = 0;
  // Told from time to time which share of the time has passed; null: it is not wanted.
  std::function<void(double share)> progress = {};
};

[[nodiscard]] Preference search(const Graph& graph, const PlanOptions& options, Device& device,
                                const SearchLimits& limits);

// The op with its shapes: nodes with the same text change hands together.
[[nodiscard]] std::string problem_of(const Graph& graph, NodeId id);

}  // namespace ridgeline
