#pragma once

// Sums over the pixels of each image, one for each channel: an average of whole images, or the
// gradient of a factor that all pixels of a channel share.

#include "backends/cuda/launch.h"

namespace ridgeline::cuda {

struct ImageSums {
  DType dtype = DType::f32;
  Rows src, other;  // other: what src is multiplied with; null: nothing
  std::int64_t samples = 0, pixels = 0;
  Rows dst;  // a row for each sample
  float divisor = 1.0F;
  float* workspace = nullptr;  // of image_sums_bytes
};
[[nodiscard]] std::size_t image_sums_bytes(DType dtype, std::int64_t samples, std::int64_t pixels,
                                           std::int64_t channels);
void launch_image_sums(const ImageSums& task, Stream stream);

}  // namespace ridgeline::cuda
