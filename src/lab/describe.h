#pragma once

// Work, bytes and memory of a network, from the plan of a training step that does not run: what
// `ridgeline describe` does.

#include <memory>
#include <optional>
#include <string>
#include <vector>

#include "inspect/complexity.h"
#include "lab/options.h"

namespace ridgeline {

struct DescribeRequest {
  RunOptions run;  // its batch is not used
  OptimizerOptions optimizer;
  std::vector<std::int64_t> batches = {1};
  std::string image;                         // empty: the model's
  std::optional<std::int64_t> memory_limit;  // nothing: what is free now
};

struct Description {
  ModelConfig model;
  std::string backend, device, precision, optimizer;
  std::int64_t parameters = 0;
  std::vector<BatchComplexity> batches;  // at least one
  std::int64_t memory_limit = 0;
  bool limit_is_machines = true;  // what is free now
  LargestBatch largest;
  std::vector<LayerComplexity> layers;  // at the first batch
  std::shared_ptr<const Plan> plan;     // of the first batch
};

// Throws bad_input for what cannot be built. REQUIRES: at least one batch.
[[nodiscard]] Description describe_step(const DescribeRequest& request);

// The plan of a training step of the first batch alone.
[[nodiscard]] Plan plan_step(const DescribeRequest& request);

}  // namespace ridgeline
