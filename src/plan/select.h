#pragma once

// Selection: tiles the graph with kernel rows and orders the tiles.

#include <vector>

#include "plan/plan.h"

namespace ridgeline {

struct Tile {
  std::vector<NodeId> nodes;
  const Backend* backend = nullptr;
  const KernelRow* row = nullptr;  // null for a reshape, which needs no kernel
};

// Every node is covered by exactly one tile; a tile comes after all it depends on, and a tile that
// updates state after all readers of the former version.
[[nodiscard]] std::vector<Tile> select_tiles(const Graph& graph, const PlanOptions& options,
                                             std::vector<Refusal>& refusals);

}  // namespace ridgeline
