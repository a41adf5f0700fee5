#pragma once

// diff_src = g * factor + src * slope + offset: the gradient of a normalisation, of which factor,
// slope and offset are numbers per channel.

#include "backends/cuda/device.cuh"

namespace ridgeline::cuda {

struct NormCoefficients {
  float factor, slope, offset;
};

// What they are made of, for one channel.
struct NormChannel {
  double mean, inverse_deviation, scale;
  double products, sums;  // the gradients of scale and shift
  double count;
};

// A frozen normalisation's statistics were constants: nothing flows through them.
__device__ __forceinline__ NormCoefficients coefficients_of(const NormChannel& channel,
                                                            bool frozen) {
  const double factor = channel.scale * channel.inverse_deviation;
  const double through = frozen ? 0.0 : factor / channel.count;
  const double slope = -through * channel.inverse_deviation * channel.products;
  const double offset = -through * channel.sums - slope * channel.mean;
  return {static_cast<float>(factor), static_cast<float>(slope), static_cast<float>(offset)};
}

}  // namespace ridgeline::cuda
