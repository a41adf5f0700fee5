#pragma once

// Reverse-mode differentiation, graph to graph: appends the backward nodes that the ops' gradient
// rules ask for. Only what leads from a seed to a wanted value is computed.

#include <span>
#include <vector>

#include "graph/graph.h"

namespace ridgeline {

// Where differentiation starts: a value and the gradient with respect to it, kNoValue for a loss.
struct Seed {
  ValueId value = kNoValue;
  ValueId gradient = kNoValue;
};

// Returns the gradients with respect to `wanted`, in that order; kNoValue where none flows.
// Gradients that reach a value on several ways are added up by explicit nodes. With `recompute`,
// the outputs of batch norms and activations that come straight from values kept anyway are not
// kept: the backward pass computes them again. So it does in any case with a batch norm's output
// that an activation such as SiLU alone reads, whose gradient is made of its src.
std::vector<ValueId> differentiate(Graph& graph, std::span<const Seed> seeds,
                                   std::span<const ValueId> wanted, bool recompute = false);

}  // namespace ridgeline
