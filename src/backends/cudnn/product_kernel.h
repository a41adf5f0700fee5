#pragma once

#include <memory>

#include "plan/kernel.h"

namespace ridgeline::cudnn {

// The kernel that computes a problem of one product with its epilogue.
[[nodiscard]] std::unique_ptr<Kernel> make_product(const Problem& problem);

}  // namespace ridgeline::cudnn
