#pragma once

#include <span>
#include <vector>

#include "graph/graph.h"

namespace ridgeline {

struct SmallerGraph {
  Graph graph;
  std::vector<ValueId> value_of;  // for each value of the former graph; kNoValue: left out
};

// The graph with only those nodes that lead to one of `wanted`; inputs stay, parameters that no
// node reads any more do not. REQUIRES: no outputs are marked, no node updates a value.
[[nodiscard]] SmallerGraph keep_what_leads_to(const Graph& graph, std::span<const ValueId> wanted);

}  // namespace ridgeline
