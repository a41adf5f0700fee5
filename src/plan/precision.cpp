#include "plan/precision.h"

#include <algorithm>
#include <map>

#include "base/error.h"

namespace ridgeline {
namespace {

class PrecisionPass {
 public:
  PrecisionPass(const Graph& graph, Precision precision)
      : from_(graph), narrow_(image_type(precision)), guarded_(precision == Precision::fp16) {
    made_.value_of.assign(graph.values().size(), kNoValue);
    made_.graph.allow_tf32(precision == Precision::tf32);
  }

  PrecisionResult run() {
    for (std::size_t id = 0; id < from_.values().size(); ++id) {
      const Value& value = from_.values()[id];
      if (value.producer != kNoNode) continue;
      made_.value_of[id] = made_.graph.add_value(value.name, value.spec, value.role);
    }
    cast_weights();
    for (const Node& node : from_.nodes()) {
      if (guarded_ && node.kind == OpKind::bn_update_running) {
        updates_.push_back(&node);
        continue;
      }
      if (guarded_ && node.phase == Phase::optimizer) guard();
      copy(node);
    }
    if (guarded_) guard();
    for (const ValueId output : from_.outputs()) made_.graph.mark_output(mapped(output));
    return std::move(made_);
  }

 private:
  [[nodiscard]] ValueId mapped(ValueId id) const {
    return made_.value_of[static_cast<std::size_t>(id)];
  }
  [[nodiscard]] DType type_of(ValueId id) const { return made_.graph.value(id).spec.dtype; }

  // The type in which a node takes an input: wide, narrow, or as it comes.
  [[nodiscard]] DType wanted(const Node& node, std::size_t input, ValueId value) const {
    const DType type = type_of(value);
    const bool as_it_comes = node.phase == Phase::optimizer || node.kind == OpKind::cast ||
                             node.kind == OpKind::overflow_guard ||
                             node.kind == OpKind::accumulate || node.kind == OpKind::all_reduce;
    if (as_it_comes || !is_float(type) || type == DType::f64) return type;
    const bool wide = (op_def(node.kind).wide_inputs >> input & 1U) != 0 ||
                      made_.graph.value(value).spec.shape.rank() < 2;
    return wide ? DType::f32 : narrow_;
  }

  // All weights that are used narrow, in one row at the start of the step: one kernel casts all.
  void cast_weights() {
    for (const Node& node : from_.nodes()) {
      for (std::size_t i = 0; i < node.inputs.size(); ++i) {
        const ValueId value = mapped(node.inputs[i]);
        if (value == kNoValue || made_.graph.value(value).role == Role::input) continue;
        if (wanted(node, i, value) != type_of(value)) {
          (void)cast(value, narrow_, node.layer, Phase::forward);
        }
      }
    }
  }

  ValueId cast(ValueId value, DType type, const std::string& layer, Phase phase) {
    const auto [entry, is_new] = casts_.try_emplace({value, type}, kNoValue);
    if (is_new) {
      entry->second =
          made_.graph.add_node(OpKind::cast, CastAttributes{type}, {value}, layer, phase)[0];
    }
    return entry->second;
  }

  void copy(const Node& node) {
    std::vector<ValueId> inputs;
    for (std::size_t i = 0; i < node.inputs.size(); ++i) {
      ValueId input = mapped(node.inputs[i]);
      const DType type = wanted(node, i, input);
      if (type != type_of(input)) input = cast(input, type, node.layer, node.phase);
      inputs.push_back(input);
    }
    Attributes attributes = node.attributes;
    if (auto* normalize = std::get_if<NormalizeAttributes>(&attributes)) {
      normalize->dtype = narrow_;
    }
    const std::vector<ValueId> outputs = made_.graph.add_node(
        node.kind, std::move(attributes), std::move(inputs), node.layer, node.phase);
    for (std::size_t i = 0; i < outputs.size(); ++i) {
      made_.value_of[static_cast<std::size_t>(node.outputs[i])] = outputs[i];
      const Value& former = from_.value(node.outputs[i]);
      if (former.role == Role::gradient && former.version_of == kNoValue) {
        made_.graph.name_gradient(outputs[i], former.name);
      }
    }
  }

  // Before the first update: everything that updates are made from is looked at.
  void guard() {
    if (looked_) return;
    looked_ = true;
    std::vector<ValueId> guarded;  // of the former graph
    const auto take = [&](ValueId id) {
      if (std::find(guarded.begin(), guarded.end(), id) == guarded.end()) guarded.push_back(id);
    };
    for (const Node& node : from_.nodes()) {
      if (node.phase != Phase::optimizer) continue;
      if (node.kind == OpKind::clip_norm) {
        for (const ValueId gradient : node.inputs) take(gradient);
        break;  // updates use what it makes of them
      }
      take(node.inputs[1]);
    }
    if (guarded.empty()) {
      for (const Node* update : updates_) copy(*update);
      return;
    }
    for (const Node* update : updates_) {
      take(update->inputs[2]);
      take(update->inputs[3]);
    }
    std::vector<ValueId> inputs;
    for (const ValueId id : guarded) inputs.push_back(mapped(id));
    const std::vector<ValueId> outputs =
        made_.graph.add_node(OpKind::overflow_guard, OverflowGuardAttributes{}, std::move(inputs),
                             "loss scale", Phase::optimizer);
    for (std::size_t i = 0; i < guarded.size(); ++i) {
      made_.value_of[static_cast<std::size_t>(guarded[i])] = outputs[i];
    }
    for (const Node* update : updates_) copy(*update);
  }

  const Graph& from_;
  DType narrow_;
  bool guarded_;
  PrecisionResult made_;
  std::map<std::pair<ValueId, DType>, ValueId> casts_;
  std::vector<const Node*> updates_;  // of running statistics, which wait for the guard
  bool looked_ = false;
};

}  // namespace

PrecisionResult with_precision(const Graph& graph, Precision precision) {
  return PrecisionPass(graph, precision).run();
}

}  // namespace ridgeline
