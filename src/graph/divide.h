#pragma once

// Makes of a training step one that computes a part of the batch: for one rank of several, or one
// of several passes whose gradients add up. Together the parts do what the whole step did.

#include <cstdint>
#include <vector>

#include "graph/graph.h"

namespace ridgeline {

// Rows of a step's batch. Ranks divide the rows of each pass among them.
struct BatchPart {
  std::int64_t rows = 0;       // computed here; may be 0, where a graph has one row that counts not
  std::int64_t pass_rows = 0;  // of all ranks in this pass
  std::int64_t batch_rows = 0;  // of all ranks in all passes: what the loss is the mean of
};

inline constexpr std::int64_t kBucketBytes = std::int64_t{1} << 20;

struct DivideOptions {
  BatchPart part;
  int ranks = 1;
  // Gradients travel together until they are so large.
  std::int64_t bucket_bytes = kBucketBytes;
  DType wire = DType::f32;  // how they travel: f32, bf16 or f16
  // Batch norms use statistics of all ranks' rows; otherwise each rank those of its own.
  bool synchronise_norms = false;
  // Of several passes: whether sums of gradients begin here, and whether the update ends this one.
  bool several_passes = false, first_pass = true, last_pass = true;

  [[nodiscard]] bool divides() const { return ranks > 1 || several_passes; }
};

struct DividedGraph {
  Graph graph;
  std::vector<ValueId> value_of;  // for each value of the former graph its place in the new one
};

// Gradients are summed over ranks in buckets, in the order in which the backward pass makes them.
// Where batch norms are not synchronised, running statistics follow the mean of all ranks', so that
// the state is the same on all. REQUIRES: a training step whose batch has the part's rows.
[[nodiscard]] DividedGraph divide_step(const Graph& graph, const DivideOptions& options);

}  // namespace ridgeline
