#pragma once

// What the rows of Winograd's algorithm are made of: forward alone and with bias and activation,
// backward data and backward weights. docs/kernels/native-winograd.md tells how it works.

#include <memory>
#include <span>
#include <string>

#include "plan/kernel.h"

namespace ridgeline::native {

[[nodiscard]] std::string refuse_winograd(const Problem& problem);
[[nodiscard]] std::unique_ptr<Kernel> make_winograd(const Problem& problem,
                                                    std::span<const Layout> layouts);

}  // namespace ridgeline::native
