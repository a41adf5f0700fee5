#pragma once

#include <cstddef>
#include <cstdint>

namespace ridgeline {

// What changes from step to step, kept in device memory because a captured step freezes its
// arguments. Kernels read it through a pointer.
struct StepState {
  // The host writes these before each step.
  double learning_rate = 0.0;
  std::int64_t optimizer_step = 1;  // 1 on the first step
  std::uint64_t seed = 0;
  std::int64_t random_step = 0;  // keys dropout
  std::int64_t epoch = 0;        // keys augmentation
  std::int64_t valid_rows = 0;   // rows of the batch that count; the others give no loss
  std::int64_t first_row = 0;    // of a larger batch, where this step computes a part: keys dropout

  // The host writes these when training begins; then overflow_guard, where a step has one.
  double loss_scale = 1.0;          // the loss's gradient is multiplied by this
  double gradient_scale = 1.0;      // what this step's gradients were multiplied by
  std::int64_t overflow = 0;        // a scaled gradient was not finite: updates are skipped
  std::int64_t overflows = 0;       // skipped steps so far; Adam's t does not count them
  std::int64_t steps_in_range = 0;  // since the scale last changed

  [[nodiscard]] std::int64_t updates() const { return optimizer_step - overflows; }
};

// The part that is written before each step.
inline constexpr std::size_t kHostStepBytes = offsetof(StepState, loss_scale);

}  // namespace ridgeline
