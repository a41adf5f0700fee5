#pragma once

// A network as the store keeps it: the forward pass of one sample, operation by operation, so that
// reports can draw it without building it again.

#include "models/model.h"
#include "store/records.h"

namespace ridgeline {

[[nodiscard]] NetworkRecord describe_network(const ModelConfig& model);

}  // namespace ridgeline
