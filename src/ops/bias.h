#pragma once

namespace ridgeline {

struct OpDef;

// Adds one number per channel; axis 1 of src is the channel.
extern const OpDef bias_op;           // (src, bias) -> dst
extern const OpDef bias_backward_op;  // (diff_dst) -> diff_bias

}  // namespace ridgeline
