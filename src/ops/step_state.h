#pragma once

#include <cstdint>

namespace ridgeline {

// What changes from step to step, kept in device memory because a captured step freezes its
// arguments. The host writes it before each step; kernels read it through a pointer.
struct StepState {
  double learning_rate = 0.0;
  double loss_scale = 1.0;
  std::int64_t optimizer_step = 1;  // Adam's t: 1 on the first update
  std::uint64_t seed = 0;
  std::int64_t random_step = 0;  // keys dropout
  std::int64_t epoch = 0;        // keys augmentation
  std::int64_t valid_rows = 0;   // rows of the batch that count; the others give no loss
  std::int64_t overflow = 0;     // set when a scaled gradient is not finite: updates are skipped
};

}  // namespace ridgeline
