#include "graph/autodiff.h"

#include <algorithm>
#include <map>

#include "base/error.h"

namespace ridgeline {
namespace {

// For each value: does a wanted value lie upstream of it, and what is its gradient so far?
struct Progress {
  std::vector<char> needed;
  std::vector<ValueId> gradient;
  std::vector<char> seeded;
  bool recompute = false;
  std::map<ValueId, ValueId> again;  // forward values that the backward pass has computed again
};

class NodeGradient final : public GradientContext {
 public:
  NodeGradient(Graph& graph, Progress& progress, NodeId node)
      : graph_(graph), progress_(progress), node_(graph.node(node)) {}

  [[nodiscard]] const Attributes& attributes() const override { return node_.attributes; }
  [[nodiscard]] std::size_t input_count() const override { return node_.inputs.size(); }
  [[nodiscard]] ValueId input(std::size_t index) const override {
    return kept(node_.inputs[index]);
  }
  [[nodiscard]] ValueId output(std::size_t index) const override {
    return kept(node_.outputs[index]);
  }
  [[nodiscard]] const TensorSpec& spec(ValueId value) const override {
    return graph_.value(value).spec;
  }
  [[nodiscard]] ValueId diff_output(std::size_t index) const override {
    return progress_.gradient[static_cast<std::size_t>(node_.outputs[index])];
  }
  [[nodiscard]] bool wanted(std::size_t index) const override {
    return progress_.needed[static_cast<std::size_t>(node_.inputs[index])] != 0;
  }
  std::vector<ValueId> emit(OpKind kind, Attributes attributes, std::vector<ValueId> inputs,
                            Phase phase) override {
    return graph_.add_node(kind, std::move(attributes), std::move(inputs), node_.layer, phase);
  }
  void give(std::size_t index, ValueId gradient) override {
    const ValueId value = node_.inputs[index];
    ensure(graph_.value(gradient).spec.shape == graph_.value(value).spec.shape,
           "the gradient of {} has shape {}", graph_.value(value).name,
           graph_.value(gradient).spec.shape.text());
    ValueId& sum = progress_.gradient[static_cast<std::size_t>(value)];
    sum = sum == kNoValue ? gradient
                          : emit(OpKind::add, {}, {sum, gradient}, Phase::backward_data)[0];
  }

 private:
  // The value itself, or what replaces it where it is not kept.
  [[nodiscard]] ValueId kept(ValueId value) const {
    if (!(progress_.recompute && cheap(value)) && !is_normed_src(value)) return value;
    if (const auto found = progress_.again.find(value); found != progress_.again.end()) {
      return found->second;
    }
    const Node made = graph_.node(graph_.value(value).producer);
    std::vector<ValueId> inputs;
    for (const ValueId input : made.inputs) inputs.push_back(kept(input));
    const ValueId copy = graph_.add_node(made.kind, made.attributes, std::move(inputs), made.layer,
                                         Phase::recompute)[0];
    progress_.again.emplace(value, copy);
    return copy;
  }

  [[nodiscard]] bool cheap(ValueId value) const {
    const NodeId producer = graph_.value(value).producer;
    if (producer == kNoNode || graph_.is_output(value)) return false;
    const Node& node = graph_.node(producer);
    if (node.kind == OpKind::bn_apply) return true;
    return node.kind == OpKind::activation && cheap(node.inputs[0]);
  }

  // What a batch norm gives to this activation alone, whose gradient needs it. It is computed again
  // in every case: then norm and activation are one kernel, and so are their gradients, which read
  // the norm's src anyway.
  [[nodiscard]] bool is_normed_src(ValueId value) const {
    const auto* activation = std::get_if<ActivationAttributes>(&node_.attributes);
    if (activation == nullptr || !backward_uses_src(activation->kind)) return false;
    const Value& about = graph_.value(value);
    return about.producer != kNoNode && graph_.node(about.producer).kind == OpKind::bn_apply &&
           about.users.size() == 1 && !graph_.is_output(value);
  }

  Graph& graph_;
  Progress& progress_;
  const Node node_;  // a copy: emit moves the graph's nodes
};

}  // namespace

std::vector<ValueId> differentiate(Graph& graph, std::span<const Seed> seeds,
                                   std::span<const ValueId> wanted, bool recompute) {
  const std::size_t forward_values = graph.values().size();
  const auto forward_nodes = static_cast<NodeId>(graph.nodes().size());
  Progress progress{std::vector<char>(forward_values),
                    std::vector<ValueId>(forward_values, kNoValue),
                    std::vector<char>(forward_values),
                    recompute,
                    {}};

  for (const ValueId value : wanted) progress.needed[static_cast<std::size_t>(value)] = 1;
  for (NodeId id = 0; id < forward_nodes; ++id) {
    const Node& node = graph.node(id);
    if (op_def(node.kind).gradient == nullptr) continue;
    const bool needed = std::any_of(node.inputs.begin(), node.inputs.end(), [&](ValueId input) {
      return progress.needed[static_cast<std::size_t>(input)] != 0;
    });
    if (!needed) continue;
    for (const ValueId output : node.outputs) progress.needed[static_cast<std::size_t>(output)] = 1;
  }

  for (const Seed& seed : seeds) {
    progress.seeded[static_cast<std::size_t>(seed.value)] = 1;
    progress.gradient[static_cast<std::size_t>(seed.value)] = seed.gradient;
  }
  for (NodeId id = forward_nodes - 1; id >= 0; --id) {
    const Node& node = graph.node(id);
    if (op_def(node.kind).gradient == nullptr) continue;
    const bool reached = std::any_of(node.outputs.begin(), node.outputs.end(), [&](ValueId output) {
      const auto o = static_cast<std::size_t>(output);
      return progress.seeded[o] != 0 || progress.gradient[o] != kNoValue;
    });
    const bool needed = std::any_of(node.inputs.begin(), node.inputs.end(), [&](ValueId input) {
      return progress.needed[static_cast<std::size_t>(input)] != 0;
    });
    if (!reached || !needed) continue;
    NodeGradient context(graph, progress, id);
    op_def(graph.node(id).kind).gradient(context);
  }

  std::vector<ValueId> gradients;
  for (const ValueId value : wanted) {
    gradients.push_back(progress.gradient[static_cast<std::size_t>(value)]);
  }
  return gradients;
}

}  // namespace ridgeline
