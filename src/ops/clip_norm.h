#pragma once

#include <cstdint>

namespace ridgeline {

struct OpDef;

// Shrinks all gradients of a step together where their norm exceeds `largest`, as
// torch.nn.utils.clip_grad_norm_. The norm is that of the true gradients: StepState::gradient_scale
// is taken out. What is not finite stays as it is, and makes no step any worse.
struct ClipNormAttributes {
  double largest = 1.0;
};
extern const OpDef clip_norm_op;  // (gradient...) -> gradient'...

// What gradients of this norm are multiplied by.
[[nodiscard]] double clip_factor(const ClipNormAttributes& attributes, double norm);

}  // namespace ridgeline
