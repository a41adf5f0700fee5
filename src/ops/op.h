#pragma once

// What an op is. Each op's whole story stands in one file pair of this folder: attributes, shape
// rule, cost, gradient rule and plain reference loops, joined in one OpDef. FLOP and byte formulas
// stand here and nowhere else.

#include <cstdint>
#include <span>
#include <string>
#include <string_view>
#include <variant>
#include <vector>

#include "base/tensor.h"
#include "ops/accumulate.h"
#include "ops/activation.h"
#include "ops/all_reduce.h"
#include "ops/batch_norm.h"
#include "ops/cast.h"
#include "ops/clip_norm.h"
#include "ops/concat.h"
#include "ops/conv2d.h"
#include "ops/dropout.h"
#include "ops/layer_norm.h"
#include "ops/loss.h"
#include "ops/multiply.h"
#include "ops/normalize.h"
#include "ops/optimizer.h"
#include "ops/overflow_guard.h"
#include "ops/pad.h"
#include "ops/pool.h"
#include "ops/reshape.h"
#include "ops/resize.h"
#include "ops/shuffle.h"
#include "ops/step_state.h"

namespace ridgeline {

enum class OpKind : std::uint8_t {
  normalize,
  conv2d,
  conv2d_backward_data,
  conv2d_backward_weights,
  linear,
  linear_backward_data,
  linear_backward_weights,
  bias,
  bias_backward,
  activation,
  activation_backward,
  pool,
  pool_backward,
  bn_statistics,
  bn_update_running,
  bn_apply,
  bn_backward_reduce,
  bn_backward_apply,
  layer_norm,
  layer_norm_backward,
  add,
  multiply,
  multiply_backward,
  concat,
  slice,
  split,
  shuffle,
  pad,
  resize,
  resize_backward,
  reshape,
  dropout,
  softmax_cross_entropy,
  softmax_cross_entropy_backward,
  metrics,
  cast,
  overflow_guard,
  sgd,
  adam,
  accumulate,
  clip_norm,
  all_reduce,
  merge_statistics,
};
inline constexpr int kOpKinds = static_cast<int>(OpKind::merge_statistics) + 1;

using Attributes = std::variant<
    std::monostate, NormalizeAttributes, Conv2dAttributes, ActivationAttributes, PoolAttributes,
    BatchNormAttributes, LayerNormAttributes, MultiplyAttributes, SliceAttributes, SplitAttributes,
    ShuffleAttributes, PadAttributes, ResizeAttributes, ReshapeAttributes, DropoutAttributes,
    LossAttributes, CastAttributes, OverflowGuardAttributes, SgdAttributes, AdamAttributes,
    AccumulateAttributes, ClipNormAttributes, AllReduceAttributes, MergeStatisticsAttributes>;

// Which part of a training step an op belongs to.
enum class Phase : std::uint8_t {
  input,
  forward,
  recompute,  // forward values computed once more for the backward pass, instead of being kept
  backward_data,
  backward_weights,
  optimizer
};
[[nodiscard]] std::string_view name_of(Phase phase);

using ValueId = std::int32_t;
inline constexpr ValueId kNoValue = -1;

// The work an op asks for, on any backend: multiply-accumulates, floating-point operations (two
// for each of those) and the bytes of its inputs and outputs, each counted once.
struct Cost {
  std::int64_t macs = 0, flops = 0, bytes_read = 0, bytes_written = 0;

  Cost& operator+=(const Cost& other);
};

// One output as the shape rule gives it. An op that updates a value in place (an optimizer, running
// statistics) gives the new version of input `updates`.
struct OutputSpec {
  TensorSpec spec;
  int updates = -1;
};

// What an op's reference loops work on. All tensors are plain, possibly slices: use the strides.
struct OpCall {
  const Attributes& attributes;
  std::span<const Tensor> inputs, outputs;
  StepState& state;
};

// Where a gradient rule asks and answers; autodiff stands behind it.
class GradientContext {
 public:
  virtual ~GradientContext() = default;
  [[nodiscard]] virtual const Attributes& attributes() const = 0;
  [[nodiscard]] virtual std::size_t input_count() const = 0;
  [[nodiscard]] virtual ValueId input(std::size_t index) const = 0;
  [[nodiscard]] virtual ValueId output(std::size_t index) const = 0;
  [[nodiscard]] virtual const TensorSpec& spec(ValueId value) const = 0;
  // The gradient with respect to an output; kNoValue for a loss, where it is 1 by definition.
  [[nodiscard]] virtual ValueId diff_output(std::size_t index) const = 0;
  // Whether anybody needs the gradient with respect to an input.
  [[nodiscard]] virtual bool wanted(std::size_t input) const = 0;
  // Adds a node with the forward node's layer; returns its outputs.
  virtual std::vector<ValueId> emit(OpKind kind, Attributes attributes, std::vector<ValueId> inputs,
                                    Phase phase) = 0;
  // Hands over the gradient with respect to an input; several are added up.
  virtual void give(std::size_t input, ValueId gradient) = 0;
};

struct OpDef {
  std::string_view name;
  // Shape rule; throws a bad_input Error with both shapes when inputs do not fit.
  std::vector<OutputSpec> (*outputs)(const Attributes&, std::span<const TensorSpec> inputs);
  // MACs and FLOPs; bytes are filled in by cost_of, which counts every input and output once.
  Cost (*work)(const Attributes&, std::span<const TensorSpec> inputs,
               std::span<const OutputSpec> outputs);
  void (*gradient)(GradientContext&);      // null: no gradient flows through this op
  void (*reference)(const OpCall&);        // f32 and f64
  std::string (*text)(const Attributes&);  // attributes for keys and printing; null: none
  // Inputs that stay in f32 where images and weights are narrower, one bit each. Scalars and
  // numbers of which there is one for each channel stay so in every op.
  std::uint32_t wide_inputs = 0;
};

[[nodiscard]] const OpDef& op_def(OpKind kind);
[[nodiscard]] inline std::string_view name_of(OpKind kind) { return op_def(kind).name; }
[[nodiscard]] std::string text_of(OpKind kind, const Attributes& attributes);

[[nodiscard]] Cost cost_of(OpKind kind, const Attributes& attributes,
                           std::span<const TensorSpec> inputs);

}  // namespace ridgeline
