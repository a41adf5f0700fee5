#pragma once

// The precision pass: a graph in f32 becomes one of another precision, whatever the network. Values
// that an op wants wide stay f32; the rest is narrow, and casts stand where the two meet.

#include <vector>

#include "base/precision.h"
#include "graph/graph.h"

namespace ridgeline {

struct PrecisionResult {
  Graph graph;
  std::vector<ValueId> value_of;  // for each value of the former graph its place in the new one
};

// For fp16, an overflow_guard looks at all gradients and batch statistics before optimizers and
// running statistics use them. REQUIRES: a graph in f32.
[[nodiscard]] PrecisionResult with_precision(const Graph& graph, Precision precision);

}  // namespace ridgeline
