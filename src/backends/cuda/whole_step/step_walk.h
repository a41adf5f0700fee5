#pragma once

// Finds the nodes of a whole training step, for the rows that cover one: each layer forward, the
// loss, and each layer's gradients in turn.

#include <optional>
#include <string>
#include <vector>

#include "plan/kernel.h"

namespace ridgeline::cuda {

// The nodes of a dense layer; kNoNode for what it has not.
struct DenseNodes {
  NodeId linear = kNoNode, bias = kNoNode, activation = kNoNode;
  NodeId activation_backward = kNoNode, bias_backward = kNoNode;
  NodeId weights_backward = kNoNode, data_backward = kNoNode;

  [[nodiscard]] std::vector<NodeId> all() const;
};

// Those of a convolution with bias, activation and pooling.
struct ConvNodes {
  NodeId conv = kNoNode, bias = kNoNode, activation = kNoNode, pool = kNoNode;
  NodeId pool_backward = kNoNode, activation_backward = kNoNode, bias_backward = kNoNode;
  NodeId weights_backward = kNoNode, data_backward = kNoNode;

  [[nodiscard]] std::vector<NodeId> all() const;
};

struct LossNodes {
  NodeId loss = kNoNode, metrics = kNoNode, backward = kNoNode;

  [[nodiscard]] std::vector<NodeId> all() const { return {loss, metrics, backward}; }
};

// Walks along a graph. Every function follows `value` to what comes out of the nodes it finds and
// says whether they were all there.
class StepWalk {
 public:
  StepWalk(const Graph& graph, ValueId start) : value(start), graph_(graph) {}

  NodeId through(OpKind kind);  // kNoNode when no node of the kind reads the value
  bool dense(DenseNodes& nodes);
  bool conv(ConvNodes& nodes);
  bool loss(LossNodes& nodes);  // ends at diff_logits
  // `first`: a layer whose input needs no gradient. Ends at the gradient of the layer's input.
  bool dense_backward(DenseNodes& nodes, bool first);
  bool conv_backward(ConvNodes& nodes, bool first);

  ValueId value;

 private:
  [[nodiscard]] NodeId user(OpKind kind, std::size_t index = 0) const;

  const Graph& graph_;
};

// In order and without kNoNode; empty when `first` is not the first of them.
[[nodiscard]] std::vector<NodeId> in_order(std::vector<NodeId> nodes, NodeId first);

// Why a step cannot be computed as a whole, as far as its boundary tells: values other than the
// loss, the totals and the outputs of `gradients` are needed outside, or something is not f32.
[[nodiscard]] std::string check_boundary(const Problem& problem, const LossNodes& loss,
                                         const std::vector<NodeId>& gradients);

// Where the values of the loss stand among a kernel's arguments.
struct LossPlaces {
  std::size_t labels = 0, totals = 0;
  std::optional<std::size_t> loss, new_totals;

  LossPlaces(const Problem& problem, const LossNodes& nodes);
};

[[nodiscard]] float smoothing_of(const Graph& graph, const LossNodes& nodes);
// Of the loss's gradient.
[[nodiscard]] double diff_weight_of(const Graph& graph, const LossNodes& nodes);

// Pixels become pixel * scale + shift; channels are normalised alike.
struct PixelScale {
  float scale = 1.0F, shift = 0.0F;
};
// Why a normalisation cannot be folded into a step's first layer; empty when it can.
[[nodiscard]] std::string check_normalize(const Node& node);
[[nodiscard]] PixelScale pixel_scale_of(const Node& node);

}  // namespace ridgeline::cuda
