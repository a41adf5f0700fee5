#pragma once

// A network as the store keeps it: the forward pass of one sample, operation by operation, so that
// reports can draw it without building it again.

#include "lab/store/records.h"
#include "models/model.h"

namespace ridgeline {

[[nodiscard]] NetworkRecord describe_network(const ModelConfig& model);

}  // namespace ridgeline
