#pragma once

#include <cstdint>

namespace ridgeline {

struct OpDef;

// Batch normalisation over axis 1 as several ops, so that kernels can join statistics, apply and
// their gradients with their neighbours. Variances are biased (divided by the count) except in the
// running variance, which PyTorch keeps unbiased.
struct BatchNormAttributes {
  double epsilon = 1e-5;
  double momentum = 0.1;  // running = (1 - momentum) * running + momentum * batch
  // backward_apply: the statistics were constants (inference mode), so no gradient flows into them.
  bool frozen = false;
  std::int64_t count = 0;  // update_running: the values of a channel, by which variances are biased
};

extern const OpDef bn_statistics_op;       // (src) -> mean, variance
extern const OpDef bn_update_running_op;   // (running_mean, running_variance, mean, variance)
                                           //   -> running_mean', running_variance'
extern const OpDef bn_apply_op;            // (src, mean, variance, scale, shift) -> dst
extern const OpDef bn_backward_reduce_op;  // (diff_dst, src, mean, variance)
                                           //   -> diff_scale, diff_shift
extern const OpDef bn_backward_apply_op;   // (diff_dst, src, mean, variance, scale, diff_scale,
                                           //  diff_shift) -> diff_src

}  // namespace ridgeline
