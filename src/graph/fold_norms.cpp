#include "graph/fold_norms.h"

#include <algorithm>
#include <cmath>
#include <map>

#include "base/error.h"

namespace ridgeline {
namespace {

// The nodes of one fold; bias is kNoNode where there is none.
struct Chain {
  NodeId product = kNoNode, bias = kNoNode, norm = kNoNode;
};

class FoldPass {
 public:
  explicit FoldPass(const Graph& graph) : from_(graph) {
    made_.value_of.assign(graph.values().size(), kNoValue);
    made_.graph.allow_tf32(graph.allows_tf32());
  }

  FoldResult run() {
    find_chains();
    for (std::size_t id = 0; id < from_.values().size(); ++id) {
      const Value& value = from_.values()[id];
      if (value.producer == kNoNode && is_used(value)) {
        made_.value_of[id] = made_.graph.add_value(value.name, value.spec, value.role);
      }
    }
    for (NodeId id = 0; id < static_cast<NodeId>(from_.nodes().size()); ++id) {
      if (const auto chain = by_product_.find(id); chain != by_product_.end()) {
        emit(chain->second);
      } else if (!is_folded(id)) {
        copy(id);
      }
    }
    for (const ValueId output : from_.outputs()) {
      const ValueId value = mapped(output);
      ensure(value != kNoValue, "output {} was folded away", from_.value(output).name);
      made_.graph.mark_output(value);
    }
    return std::move(made_);
  }

 private:
  [[nodiscard]] ValueId& mapped(ValueId id) { return made_.value_of[static_cast<std::size_t>(id)]; }
  [[nodiscard]] bool is_folded(NodeId id) const {
    return std::find(folded_.begin(), folded_.end(), id) != folded_.end();
  }
  // Whether a node that stays reads the value.
  [[nodiscard]] bool is_used(const Value& value) const {
    return value.role == Role::input || std::any_of(value.users.begin(), value.users.end(),
                                                    [&](NodeId user) { return !is_folded(user); });
  }

  [[nodiscard]] bool is_constant(ValueId id) const {
    const Value& value = from_.value(id);
    return value.producer == kNoNode &&
           (value.role == Role::parameter || value.role == Role::statistics);
  }

  // The node that makes a value for one reader alone.
  [[nodiscard]] NodeId private_producer(ValueId id) const {
    const Value& value = from_.value(id);
    return value.users.size() == 1 && !from_.is_output(id) ? value.producer : kNoNode;
  }

  // A parameter that one node alone reads: it can be changed without harm to others.
  [[nodiscard]] bool is_own(ValueId id) const {
    return is_constant(id) && from_.value(id).users.size() == 1;
  }

  void find_chains() {
    for (NodeId id = 0; id < static_cast<NodeId>(from_.nodes().size()); ++id) {
      const Node& norm = from_.node(id);
      if (norm.kind != OpKind::bn_apply) continue;
      if (!std::all_of(norm.inputs.begin() + 1, norm.inputs.end(),
                       [&](ValueId input) { return is_constant(input); })) {
        continue;
      }
      Chain chain{.norm = id};
      NodeId before = private_producer(norm.inputs[0]);
      if (before != kNoNode && from_.node(before).kind == OpKind::bias) {
        if (!is_own(from_.node(before).inputs[1])) continue;
        chain.bias = before;
        before = private_producer(from_.node(before).inputs[0]);
      }
      if (before == kNoNode) continue;
      const Node& product = from_.node(before);
      if (product.kind != OpKind::conv2d && product.kind != OpKind::linear) continue;
      if (!is_own(product.inputs[1])) continue;
      chain.product = before;
      by_product_.emplace(before, chain);
      for (const NodeId part : {chain.product, chain.bias, chain.norm}) {
        if (part != kNoNode) folded_.push_back(part);
      }
    }
  }

  void emit(const Chain& chain) {
    const Node& product = from_.node(chain.product);
    const Node& norm = from_.node(chain.norm);
    const auto name = [&](ValueId id) { return from_.value(id).name; };
    Fold fold{.weights = name(product.inputs[1]),
              .bias = chain.bias == kNoNode ? "" : name(from_.node(chain.bias).inputs[1]),
              .scale = name(norm.inputs[3]),
              .shift = name(norm.inputs[4]),
              .mean = name(norm.inputs[1]),
              .variance = name(norm.inputs[2]),
              .folded_weights = name(product.inputs[1]) + ".folded",
              .folded_bias = product.layer + ".bias.folded",
              .epsilon = std::get<BatchNormAttributes>(norm.attributes).epsilon};
    const ValueId weights = made_.graph.add_value(
        fold.folded_weights, from_.value(product.inputs[1]).spec, Role::parameter);
    const ValueId bias =
        made_.graph.add_value(fold.folded_bias, from_.value(norm.inputs[4]).spec, Role::parameter);
    const ValueId dst =
        made_.graph.add_node(product.kind, product.attributes, {mapped(product.inputs[0]), weights},
                             product.layer, product.phase)[0];
    mapped(norm.outputs[0]) =
        made_.graph.add_node(OpKind::bias, {}, {dst, bias}, product.layer, product.phase)[0];
    made_.folds.push_back(std::move(fold));
  }

  void copy(NodeId id) {
    const Node& node = from_.node(id);
    std::vector<ValueId> inputs;
    for (const ValueId input : node.inputs) inputs.push_back(mapped(input));
    const std::vector<ValueId> outputs =
        made_.graph.add_node(node.kind, node.attributes, std::move(inputs), node.layer, node.phase);
    for (std::size_t i = 0; i < outputs.size(); ++i) mapped(node.outputs[i]) = outputs[i];
  }

  const Graph& from_;
  FoldResult made_;
  std::map<NodeId, Chain> by_product_;
  std::vector<NodeId> folded_;
};

}  // namespace

FoldResult fold_norms(const Graph& graph) { return FoldPass(graph).run(); }

FoldedValues fold_values(
    const Fold& fold, const std::function<std::vector<double>(const std::string& name)>& values) {
  FoldedValues folded{.weights = values(fold.weights),
                      .bias = fold.bias.empty() ? std::vector<double>() : values(fold.bias)};
  const std::vector<double> scale = values(fold.scale), shift = values(fold.shift);
  const std::vector<double> mean = values(fold.mean), variance = values(fold.variance);
  const std::size_t channels = scale.size();
  const std::size_t row = folded.weights.size() / channels;  // weights of one channel of dst
  folded.bias.resize(channels);
  for (std::size_t c = 0; c < channels; ++c) {
    const double factor = scale[c] / std::sqrt(variance[c] + fold.epsilon);
    for (std::size_t i = c * row; i < (c + 1) * row; ++i) folded.weights[i] *= factor;
    folded.bias[c] = (folded.bias[c] - mean[c]) * factor + shift[c];
  }
  return folded;
}

}  // namespace ridgeline
