#pragma once

// The rate of the tensor cores in the vendor's own matrix products: the instructions that reach all
// of it differ from one generation to the next, and its library has kernels for each.

#include <vector>

#include "base/precision.h"
#include "devices/device.h"

namespace ridgeline::cudnn {

// FLOP/s of large products of random matrices, one for each repeat, with the best of a few sizes
// and algorithms; none where the library is not there or offers no such product.
[[nodiscard]] std::vector<double> product_rates(Device& device, Precision precision, int repeats,
                                                double repeat_seconds);

}  // namespace ridgeline::cudnn
