#pragma once

#include "backends/onednn/common.h"

namespace ridgeline::onednn {

// An activation in the library's terms. The backward one reads dst, or src
// where backward_uses_src.
struct EltwiseAlgorithm {
  dnnl::algorithm forward{}, backward{};
  float alpha = 0, beta = 0;
};

[[nodiscard]] EltwiseAlgorithm eltwise_of(const ActivationAttributes& attributes);

// Lets the primitive apply the activation of a node to what it writes; nothing for null.
void append_activation(dnnl::primitive_attr& attr, const Node* activation);

}  // namespace ridgeline::onednn
