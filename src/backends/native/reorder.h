#pragma once

// Copies between the layouts plain and nhwc, and between tensors of one layout where one or both
// are slices.

#include <memory>

#include "plan/kernel.h"

namespace ridgeline::native {

// Copies a tensor of any element type. REQUIRES: one shape and type; layouts plain or nhwc; the
// memory does not overlap.
void copy_tensor(const Tensor& src, const Tensor& dst);

// Null when a layout is a provider's own.
[[nodiscard]] std::unique_ptr<Kernel> make_reorder(const TensorSpec& spec, const Layout& from,
                                                   const Layout& to);

}  // namespace ridgeline::native
