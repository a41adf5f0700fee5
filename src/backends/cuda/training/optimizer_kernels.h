#pragma once

// Updates of many parameters in few launches, and the look for overflows before them.

#include "backends/cuda/launch.h"
#include "ops/step_state.h"

namespace ridgeline::cuda {

// A parameter with what belongs to it, updated where it lies. The optimizer's state is velocity, or
// Adam's moments; null where there is none.
struct UpdatedTensor {
  float* parameter = nullptr;
  const void* gradient = nullptr;
  float* first = nullptr;
  float* second = nullptr;
  DType gradient_type = DType::f32;
  std::int64_t elements = 0;
  // A gradient in nhwc has its channels innermost; 1 where it lies as the parameter does.
  std::int64_t channels = 1, pixels = 1;
};

struct SgdSettings {
  float momentum = 0.0F, weight_decay = 0.0F;
  bool nesterov = false;
};

struct AdamSettings {
  double beta1 = 0.0, beta2 = 0.0, epsilon = 0.0, weight_decay = 0.0;
  bool decoupled = false;
};

// Tensors of one launch at most: their table is a kernel's parameter, which has 4 KiB.
inline constexpr int kUpdatedTensors = 48;

void launch_sgd(const UpdatedTensor* tensors, int count, const SgdSettings& settings,
                const StepState* state, Stream stream);
void launch_adam(const UpdatedTensor* tensors, int count, const AdamSettings& settings,
                 const StepState* state, Stream stream);

// A value to look at; dense, its order does not matter.
struct GuardedValue {
  const void* data = nullptr;
  DType dtype = DType::f32;
  std::int64_t elements = 0;
};

struct GuardSettings {
  double growth = 2.0, backoff = 0.5;
  std::int64_t interval = 2000;
};

// Values of one launch at most, and the flags that each launch may set.
inline constexpr int kGuardedValues = 120;
inline constexpr int kGuardFlags = 1024;

// Sets flags where a value has a number that is not finite; returns how many flags it wrote.
int launch_find_overflow(const GuardedValue* values, int count, std::int32_t* flags, Stream stream);
// Makes of the flags what note_overflow in ops/overflow_guard.h makes of an overflow.
void launch_note_overflow(const std::int32_t* flags, int count, const GuardSettings& settings,
                          StepState* state, Stream stream);

}  // namespace ridgeline::cuda
