#pragma once

// A training or inference step as a graph of ops over values, before anything is known of kernels,
// layouts or memory. Values are written once; an op that updates state gives a new version of it.

#include <cstdint>
#include <functional>
#include <map>
#include <span>
#include <string>
#include <string_view>
#include <vector>

#include "ops/op.h"

namespace ridgeline {

using NodeId = std::int32_t;
inline constexpr NodeId kNoNode = -1;

// Who owns a value's bytes; the memory ledger's categories.
enum class Role : std::uint8_t {
  input,            // written by the host before the step
  parameter,        // state that training changes or uses
  gradient,         // of a parameter
  optimizer_state,  // velocity, moments
  statistics,       // running means and variances
  metric,           // totals that the host reads
  activation,       // forward values
  temporary,        // everything else that lives within one step
  workspace,        // a kernel's scratch memory
};
inline constexpr int kRoles = static_cast<int>(Role::workspace) + 1;
[[nodiscard]] std::string_view name_of(Role role);

// State lives across steps and is shared, by name, between the graphs of one session.
[[nodiscard]] constexpr bool is_persistent(Role role) {
  return role != Role::activation && role != Role::temporary && role != Role::workspace;
}

struct Value {
  std::string name = {};  // unique: "conv1.weight", "conv1.conv2d", "conv1.weight.grad"
  TensorSpec spec;
  Role role = Role::activation;
  NodeId producer = kNoNode;
  ValueId version_of = kNoValue;  // the value whose memory this one updates
  std::vector<NodeId> users = {};
};

struct Node {
  OpKind kind{};
  Attributes attributes;
  std::vector<ValueId> inputs, outputs;
  std::string layer;  // path as PyTorch names it: "layer1.0.conv1"
  Phase phase = Phase::forward;
};

class Graph {
 public:
  // Adds a value that no node produces. REQUIRES: is_persistent(role), a name not used before.
  ValueId add_value(std::string name, TensorSpec spec, Role role);

  // Adds a node; the op's shape rule gives the outputs. Output roles follow the phase (activation
  // in forward, temporary elsewhere); a new version keeps the role of what it updates. Names derive
  // from the layer and the op.
  std::vector<ValueId> add_node(OpKind kind, Attributes attributes, std::vector<ValueId> inputs,
                                std::string layer, Phase phase);

  // Makes a temporary the gradient of a parameter, which persists.
  void name_gradient(ValueId value, std::string name);

  // Values that must exist after the step although no node uses them.
  void mark_output(ValueId value);

  [[nodiscard]] const Value& value(ValueId id) const {
    return values_[static_cast<std::size_t>(id)];
  }
  [[nodiscard]] const Node& node(NodeId id) const { return nodes_[static_cast<std::size_t>(id)]; }
  [[nodiscard]] std::span<const Value> values() const { return values_; }
  [[nodiscard]] std::span<const Node> nodes() const { return nodes_; }
  [[nodiscard]] std::span<const ValueId> outputs() const { return outputs_; }
  [[nodiscard]] bool is_output(ValueId id) const;
  // By name; kNoValue where there is none.
  [[nodiscard]] ValueId find(std::string_view name) const;
  [[nodiscard]] std::vector<TensorSpec> input_specs(NodeId id) const;
  [[nodiscard]] Cost cost(NodeId id) const;

  // Whether products of f32 values may be computed on TF32 units: operands of 10 fraction bits.
  [[nodiscard]] bool allows_tf32() const { return tf32_; }
  void allow_tf32(bool allowed) { tf32_ = allowed; }

  // One line a node, for people.
  [[nodiscard]] std::string text() const;

 private:
  [[nodiscard]] std::string unique_name(const std::string& wanted) const;

  std::vector<Value> values_;
  std::vector<Node> nodes_;
  std::vector<ValueId> outputs_;
  std::map<std::string, ValueId, std::less<>> by_name_;
  bool tf32_ = false;
};

}  // namespace ridgeline
