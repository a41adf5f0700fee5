#pragma once

namespace ridgeline {

struct OpDef;

// dst (N, M) = src (N, K) · weightsᵀ, weights (M, K). The bias is an op of its own.
extern const OpDef linear_op;                   // (src, weights) -> dst
extern const OpDef linear_backward_data_op;     // (diff_dst, weights) -> diff_src
extern const OpDef linear_backward_weights_op;  // (src, diff_dst) -> diff_weights

}  // namespace ridgeline
