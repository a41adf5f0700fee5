#pragma once

// The rate of the tensor cores in the vendor's own matrix products: the instructions that reach all
// of it differ from one generation to the next, and its library has kernels for each.

#include <string>
#include <vector>

#include "base/precision.h"
#include "devices/device.h"

namespace ridgeline::ceilings {

struct ProductRates {
  std::vector<double> flops_per_second;  // one for each repeat; none: see the problem
  std::string problem;                   // why none could be measured
};
// Large products of random matrices; the best of a few sizes and algorithms.
[[nodiscard]] ProductRates product_rates(Device& device, Precision precision, int repeats,
                                         double repeat_seconds);

}  // namespace ridgeline::ceilings
