#pragma once

// Sums over windows whose place follows from two sizes alone, and divides neither: averages of
// windows of about equal size, their gradient, and the gradient of resizing.

#include "backends/cuda/launch.h"

namespace ridgeline::cuda {

enum class WindowRule : std::uint8_t {
  average,           // a pixel of dst is the average of its window of src
  average_backward,  // a pixel of dst gets its share of every window, a pixel of src, it lies in
  resize_backward,   // a pixel of dst gets the sum of the pixels of src that were made from it
};

struct WindowSums {
  WindowRule rule = WindowRule::average;
  DType dtype = DType::f32;
  std::int64_t src_h = 1, src_w = 1, dst_h = 1, dst_w = 1;
  Rows src, dst;
};
void launch_window_sums(const WindowSums& task, Stream stream);

}  // namespace ridgeline::cuda
