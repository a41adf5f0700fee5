#pragma once

// What goes between images with few channels and convolutions that want eight: copies of 16-bit
// elements, zeros where there is nothing.

#include "backends/cuda/launch.h"

namespace ridgeline::cuda::conv {

inline constexpr int kStemChannels = 8;

// `together` neighbouring pixels of a row become one, each with 8 / together channels.
struct StemImages {
  Rows src;
  void* dst = nullptr;
  std::int64_t src_w = 0, dst_w = 0;
  int together = 1;
};
void launch_stem_images(const StemImages& task, Stream stream);

// Rows of taps, outputs x kernel_h of them: tap k of a narrow row is pixel (k - pad) mod together
// of tap (k - pad) / together + wide_pad of a wide one.
struct StemWeights {
  const void* src = nullptr;
  void* dst = nullptr;
  std::int64_t rows = 0;
  int taps = 0, channels = 0, pad = 0;  // narrow
  int wide_taps = 0, wide_pad = 0, together = 1;
};
void launch_stem_weights(const StemWeights& task, Stream stream);           // to the wide ones
void launch_stem_weights_gradient(const StemWeights& task, Stream stream);  // back

}  // namespace ridgeline::cuda::conv
