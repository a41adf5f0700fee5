#pragma once

// Copies that change no number but put pixels and channels elsewhere.

#include "backends/cuda/launch.h"

namespace ridgeline::cuda {

// Pixel i of dst is pixel i * src / dst + offset of src along an axis, rounded down, or zero where
// there is none. Padding has src == dst == 1, resizing no offset.
struct MoveAxis {
  std::int64_t size = 1, dst_size = 1;  // of the images
  std::int64_t src = 1, dst = 1, offset = 0;
};

struct MovePixels {
  int element_bytes = 4;
  MoveAxis rows, columns;
  std::int64_t channel_offset = 0;  // channel c of dst is channel c + channel_offset of src
  Rows src, dst;
};
void launch_move_pixels(const MovePixels& task, Stream stream);

// Channel c of dst is channel c % groups * (channels / groups) + c / groups of src.
struct Shuffle {
  int element_bytes = 4;
  std::int64_t groups = 1;
  Rows src, dst;
};
void launch_shuffle(const Shuffle& task, Stream stream);

}  // namespace ridgeline::cuda
