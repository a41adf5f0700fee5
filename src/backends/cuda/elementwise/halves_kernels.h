#pragma once

#include "backends/cuda/launch.h"

namespace ridgeline::cuda {

// Rows of channels as two halves, and as rows in which these alternate.
struct HalvesTask {
  int element_bytes = 4;  // or 2
  Rows first, second, both;
};
void launch_interleave(const HalvesTask& task, Stream stream);  // first and second to both
void launch_separate(const HalvesTask& task, Stream stream);    // the other way

}  // namespace ridgeline::cuda
