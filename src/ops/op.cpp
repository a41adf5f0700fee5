#include "ops/op.h"

#include "base/error.h"
#include "ops/add.h"
#include "ops/bias.h"
#include "ops/linear.h"

namespace ridgeline {

const OpDef& op_def(OpKind kind) {
  switch (kind) {
    case OpKind::normalize:
      return normalize_op;
    case OpKind::conv2d:
      return conv2d_op;
    case OpKind::conv2d_backward_data:
      return conv2d_backward_data_op;
    case OpKind::conv2d_backward_weights:
      return conv2d_backward_weights_op;
    case OpKind::linear:
      return linear_op;
    case OpKind::linear_backward_data:
      return linear_backward_data_op;
    case OpKind::linear_backward_weights:
      return linear_backward_weights_op;
    case OpKind::bias:
      return bias_op;
    case OpKind::bias_backward:
      return bias_backward_op;
    case OpKind::activation:
      return activation_op;
    case OpKind::activation_backward:
      return activation_backward_op;
    case OpKind::pool:
      return pool_op;
    case OpKind::pool_backward:
      return pool_backward_op;
    case OpKind::bn_statistics:
      return bn_statistics_op;
    case OpKind::bn_update_running:
      return bn_update_running_op;
    case OpKind::bn_apply:
      return bn_apply_op;
    case OpKind::bn_backward_reduce:
      return bn_backward_reduce_op;
    case OpKind::bn_backward_apply:
      return bn_backward_apply_op;
    case OpKind::layer_norm:
      return layer_norm_op;
    case OpKind::layer_norm_backward:
      return layer_norm_backward_op;
    case OpKind::add:
      return add_op;
    case OpKind::multiply:
      return multiply_op;
    case OpKind::multiply_backward:
      return multiply_backward_op;
    case OpKind::concat:
      return concat_op;
    case OpKind::slice:
      return slice_op;
    case OpKind::split:
      return split_op;
    case OpKind::shuffle:
      return shuffle_op;
    case OpKind::pad:
      return pad_op;
    case OpKind::resize:
      return resize_op;
    case OpKind::resize_backward:
      return resize_backward_op;
    case OpKind::reshape:
      return reshape_op;
    case OpKind::dropout:
      return dropout_op;
    case OpKind::softmax_cross_entropy:
      return softmax_cross_entropy_op;
    case OpKind::softmax_cross_entropy_backward:
      return softmax_cross_entropy_backward_op;
    case OpKind::metrics:
      return metrics_op;
    case OpKind::cast:
      return cast_op;
    case OpKind::accumulate:
      return accumulate_op;
    case OpKind::all_reduce:
      return all_reduce_op;
    case OpKind::merge_statistics:
      return merge_statistics_op;
    case OpKind::overflow_guard:
      return overflow_guard_op;
    case OpKind::clip_norm:
      return clip_norm_op;
    case OpKind::sgd:
      return sgd_op;
    case OpKind::adam:
      return adam_op;
  }
  fail("unknown op kind {}", static_cast<int>(kind));
}

std::string_view name_of(Phase phase) {
  switch (phase) {
    case Phase::input:
      return "input";
    case Phase::forward:
      return "forward";
    case Phase::recompute:
      return "recompute";
    case Phase::backward_data:
      return "backward-data";
    case Phase::backward_weights:
      return "backward-weights";
    case Phase::optimizer:
      return "optimizer";
  }
  return "?";
}

std::string text_of(OpKind kind, const Attributes& attributes) {
  const OpDef& def = op_def(kind);
  return def.text == nullptr ? std::string() : def.text(attributes);
}

Cost& Cost::operator+=(const Cost& other) {
  macs += other.macs;
  flops += other.flops;
  bytes_read += other.bytes_read;
  bytes_written += other.bytes_written;
  return *this;
}

Cost cost_of(OpKind kind, const Attributes& attributes, std::span<const TensorSpec> inputs) {
  const OpDef& def = op_def(kind);
  const std::vector<OutputSpec> outputs = def.outputs(attributes, inputs);
  Cost cost = def.work(attributes, inputs, outputs);
  for (const TensorSpec& input : inputs) cost.bytes_read += input.bytes();
  for (const OutputSpec& output : outputs) cost.bytes_written += output.spec.bytes();
  return cost;
}

}  // namespace ridgeline
