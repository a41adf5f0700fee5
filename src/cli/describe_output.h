#pragma once

// What `describe` prints: tables for people, a document for machines, a CSV file of the layers.

#include <optional>
#include <string>
#include <vector>

#include "inspect/complexity.h"

namespace ridgeline::cli {

// The titles of the table of layers.
[[nodiscard]] std::vector<std::string> layer_columns();

struct Description {
  ModelConfig model;
  std::string backend, device, precision, optimizer;
  std::int64_t parameters = 0;
  std::vector<BatchComplexity> batches;  // at least one
  std::int64_t memory_limit = 0;
  bool limit_is_machines = true;  // what is free now, not what --memory said
  LargestBatch largest;
  std::vector<LayerComplexity> layers;  // at the first batch
};

[[nodiscard]] std::string description_text(const Description& description, bool per_layer);
[[nodiscard]] std::string description_json(const Description& description, bool per_layer);
[[nodiscard]] std::string layers_csv(const Description& description);

}  // namespace ridgeline::cli
