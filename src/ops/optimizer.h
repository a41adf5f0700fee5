#pragma once

namespace ridgeline {

struct OpDef;

// torch.optim.SGD. The momentum buffer starts as the first gradient there; a zero buffer gives the
// same, since dampening is 0.
struct SgdAttributes {
  double momentum = 0.0;
  double weight_decay = 0.0;
  bool nesterov = false;
};

// torch.optim.Adam, and AdamW where `decoupled`.
struct AdamAttributes {
  double beta1 = 0.9, beta2 = 0.999;
  double epsilon = 1e-8;
  double weight_decay = 0.0;
  bool decoupled = false;
};

// The learning rate and Adam's t come from StepState; gradients are divided by its gradient scale,
// and nothing is written when its overflow flag is set. A gradient may be of a narrower type.
extern const OpDef sgd_op;   // (parameter, gradient [, velocity]) -> parameter' [, velocity']
extern const OpDef adam_op;  // (parameter, gradient, m, v) -> parameter', m', v'

}  // namespace ridgeline
