#pragma once

// The patterns that several backends cover with one kernel each, as match functions for rows. Each
// gives the nodes in order, or nothing when the pattern does not begin at `first`.

#include <optional>
#include <vector>

#include "plan/kernel.h"

namespace ridgeline::patterns {

using Match = std::vector<NodeId>;

// conv2d or linear, then bias or activation or both, as far as no other op needs what lies between.
Match conv2d_epilogue(const Graph& graph, NodeId first);
Match linear_epilogue(const Graph& graph, NodeId first);

Match add_act(const Graph& graph, NodeId first);

// bn_apply, then the add or activation that alone uses its result.
Match bn_apply_act(const Graph& graph, NodeId first);
Match bn_apply_add(const Graph& graph, NodeId first);
Match bn_apply_add_act(const Graph& graph, NodeId first);

// bn_backward_reduce and bn_backward_apply of one normalisation, behind what gives its diff_dst.
// The diff_dst itself may be used by others too, and is then an output.
Match bn_backward(const Graph& graph, NodeId first);
Match act_bn_backward(const Graph& graph, NodeId first);
Match add_bn_backward(const Graph& graph, NodeId first);
Match add_act_bn_backward(const Graph& graph, NodeId first);
// The same where the activation's src is computed again by the bn_apply of that normalisation.
Match again_act_bn_backward(const Graph& graph, NodeId first);
Match add_again_act_bn_backward(const Graph& graph, NodeId first);

// activation_backward, the add of gradients before it, and the bias_backward of its result, which
// others use as well: it is output 0.
Match act_backward_bias(const Graph& graph, NodeId first);
Match add_act_backward(const Graph& graph, NodeId first);
Match add_act_backward_bias(const Graph& graph, NodeId first);

// The same behind a pool_backward.
Match pool_act_backward(const Graph& graph, NodeId first);
Match pool_act_backward_bias(const Graph& graph, NodeId first);

// The end of a ConvNeXt or MBConv block: at least two of a layer scale, a dropout of samples and an
// add, in this order, each of which alone uses the result of the one before.
Match scale_chain(const Graph& graph, NodeId first);
Match sample_dropout(const Graph& graph, NodeId first);

// The concatenation of two equal halves and the shuffle with two groups behind it; and the gradient
// of that: a shuffle back and a slice for each half.
Match concat_shuffle(const Graph& graph, NodeId first);
Match shuffle_slices(const Graph& graph, NodeId first);

// The node and those of its kind that follow it without a gap; `same_settings`: as long as their
// attributes are the same.
Match run_of(const Graph& graph, NodeId first, OpKind kind, bool same_settings);

template <OpKind kind>
Match run_of_same(const Graph& graph, NodeId first) {
  return run_of(graph, first, kind, true);
}
template <OpKind kind>
Match run_of_any(const Graph& graph, NodeId first) {
  return run_of(graph, first, kind, false);
}

// The nodes of a problem that an epilogue pattern gave, or of the op alone.
struct Chain {
  const Node* root = nullptr;  // the convolution or matrix product
  const Node* bias = nullptr;
  const Node* activation = nullptr;

  [[nodiscard]] ValueId dst() const {
    const Node* last = activation != nullptr ? activation : bias != nullptr ? bias : root;
    return last->outputs[0];
  }
};
[[nodiscard]] Chain chain_of(const Problem& problem);

// What a scale_chain, or a part of it, is made of: inputs and attributes.
struct ScaleOperands {
  std::size_t src = 0;
  std::optional<std::size_t> factor, other;
  std::optional<DropoutAttributes> dropout;
};
[[nodiscard]] ScaleOperands scale_operands(const Problem& problem);

// The halves of a concat_shuffle among its inputs, and of shuffle_slices among its outputs.
struct Halves {
  std::size_t first = 0, second = 0;
};
[[nodiscard]] Halves halves_of(const Problem& problem);

// Where the operands of bn_apply, with what follows it in a pattern, stand among a kernel's inputs.
struct NormApplyOperands {
  std::size_t src = 0, mean = 0, variance = 0, scale = 0, shift = 0;
  std::optional<std::size_t> other;  // added after
  BatchNormAttributes attributes;
  std::optional<ActivationAttributes> activation;
};
[[nodiscard]] NormApplyOperands norm_apply_operands(const Problem& problem);

// Where the operands of batch norm's gradients, with what comes before them in a pattern, stand
// among a kernel's arguments; nothing where there are none.
struct NormBackwardOperands {
  using Index = std::optional<std::size_t>;
  std::size_t diff = 0, src = 0, mean = 0, variance = 0;  // inputs
  Index other, kept, scale, given_scale, given_shift;     // inputs
  Index shift;  // input, where the activation's src is computed again
  Index stored, diff_scale, diff_shift, diff_src;  // outputs
  bool reduce = false, apply = false;
  BatchNormAttributes attributes;
  std::optional<ActivationAttributes> activation;
};
[[nodiscard]] NormBackwardOperands norm_backward_operands(const Problem& problem);

}  // namespace ridgeline::patterns
