#pragma once

// A network as a JSON document, for programs that build it by other means: docs/peers.md has the
// fields. Attributes go by their names in src/ops.

#include <nlohmann/json_fwd.hpp>
#include <span>

#include "graph/builder.h"

namespace ridgeline {

// Raised when a reader of the former version would misunderstand a document.
inline constexpr int kGraphVersion = 1;

// A graph with what a reader must know of its values.
struct NetworkOutline {
  std::span<const Parameter> parameters = {};  // in the graph or not
  ValueId image = kNoValue, logits = kNoValue;
  std::span<const AuxiliaryHead> auxiliary = {};
};

// REQUIRES: all nodes are of the forward phase.
[[nodiscard]] nlohmann::ordered_json graph_json(const Graph& graph, const NetworkOutline& outline);

}  // namespace ridgeline
