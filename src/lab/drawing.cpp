#include "lab/drawing.h"

#include <algorithm>
#include <array>
#include <map>

#include "base/error.h"
#include "base/text.h"

namespace ridgeline {
namespace {

constexpr const char* kHeader =
    "digraph network {{\n"
    "  label=\"{}\"; labelloc=t; fontname=\"Helvetica\"; fontsize=16;\n"
    "  nodesep=0.35; ranksep=0.35;\n"
    "  node [shape=box, style=\"rounded,filled\", color=\"#5f6b7a\", fillcolor=\"#ffffff\", "
    "fontname=\"Helvetica\", fontsize=11];\n"
    "  edge [color=\"#5f6b7a\", fontname=\"Helvetica\", fontsize=9, fontcolor=\"#4a5562\", "
    "arrowsize=0.7];\n";

const char* color_of(OpKind kind) {
  switch (kind) {
    case OpKind::conv2d:
      return "#d6e6f7";
    case OpKind::linear:
      return "#e5dcf3";
    case OpKind::pool:
      return "#d9efdc";
    case OpKind::add:
    case OpKind::concat:
      return "#fbe3c4";
    default:
      return "#f0f1f3";
  }
}

const char* color_of(Phase phase) {
  switch (phase) {
    case Phase::input:
    case Phase::forward:
      return "#d6e6f7";
    case Phase::recompute:
      return "#e5dcf3";
    case Phase::backward_data:
      return "#fbe3c4";
    case Phase::backward_weights:
      return "#f6d5d5";
    case Phase::optimizer:
      return "#d9efdc";
  }
  return "#ffffff";
}

std::string short_count(std::int64_t count) {
  static constexpr std::array<const char*, 4> kSuffixes = {"", " k", " M", " G"};
  auto amount = static_cast<double>(count);
  std::size_t suffix = 0;
  for (; amount >= 1000.0 && suffix + 1 < kSuffixes.size(); ++suffix) amount /= 1000.0;
  return suffix == 0 ? fmt::format("{}", count)
                     : fmt::format("{:.{}f}{}", amount, amount < 100.0 ? 1 : 0, kSuffixes[suffix]);
}

// "9.4 k parameters, 231 M MACs"; nothing where there are none.
std::string amounts_text(std::int64_t parameters, std::int64_t macs) {
  std::string text;
  if (parameters > 0) text = short_count(parameters) + " parameters";
  if (macs > 0) text += (text.empty() ? "" : ", ") + short_count(macs) + " MACs";
  return text;
}

// Without the batch, which is the same everywhere.
std::string shape_text(const Shape& shape) {
  std::string text;
  for (int axis = 1; axis < shape.rank(); ++axis) {
    text += fmt::format("{}{}", axis > 1 ? "x" : "", shape[axis]);
  }
  return text.empty() ? shape.text() : text;
}

std::string conv_text(const Conv2dAttributes& a, const Shape& weights) {
  std::string text = fmt::format("conv {}x{}", a.kernel_h, a.kernel_w);
  if (a.stride_h != 1 || a.stride_w != 1) text += fmt::format(", stride {}", a.stride_h);
  if (a.dilation_h != 1) text += fmt::format(", dilation {}", a.dilation_h);
  if (a.groups > 1) {
    text += weights[1] == 1 ? std::string(", depthwise") : fmt::format(", {} groups", a.groups);
  }
  return text;
}

std::string pool_text(const PoolAttributes& a) {
  return fmt::format("{} pool {}x{}", a.kind == PoolKind::max ? "max" : "average", a.kernel_h,
                     a.kernel_w);
}

std::string op_text(const Graph& graph, const Node& node) {
  switch (node.kind) {
    case OpKind::normalize:
      return "image";
    case OpKind::conv2d:
      return conv_text(std::get<Conv2dAttributes>(node.attributes),
                       graph.value(node.inputs[1]).spec.shape);
    case OpKind::linear:
      return "dense";
    case OpKind::bias:
      return "";
    case OpKind::bn_apply:
      return "batch norm";
    case OpKind::activation:
      return std::string(name_of(std::get<ActivationAttributes>(node.attributes).kind));
    case OpKind::pool:
      return pool_text(std::get<PoolAttributes>(node.attributes));
    case OpKind::reshape:
      return "flatten";
    default:
      return std::string(name_of(node.kind));
  }
}

// A layer with what follows it element by element: "conv 3x3, batch norm, relu".
struct Box {
  std::vector<NodeId> nodes;
  std::vector<ValueId> inputs;  // drawn as edges
  std::int64_t parameters = 0, macs = 0;
};

class BlockDrawing {
 public:
  explicit BlockDrawing(const Graph& graph) : graph_(graph) {
    for (std::size_t id = 0; id < graph.nodes().size(); ++id) {
      if (is_drawn(graph.nodes()[id])) place(static_cast<NodeId>(id));
    }
    for (std::size_t box = 0; box < boxes_.size(); ++box) {
      std::string path = layer_of(boxes_[box]);
      do {
        path = parent(path);
        ++boxes_under_[path];
      } while (!path.empty());
    }
    for (const auto& [path, count] : boxes_under_) {
      if (count > 1 && !path.empty()) ++divided_children_[parent(path)];
    }
  }

  [[nodiscard]] std::string text(const std::string& title) const {
    std::int64_t parameters = 0, macs = 0;
    std::map<std::string, std::vector<std::size_t>> blocks;
    for (std::size_t box = 0; box < boxes_.size(); ++box) {
      blocks[block_of(layer_of(boxes_[box]))].push_back(box);
      parameters += boxes_[box].parameters;
      macs += boxes_[box].macs;
    }
    std::string text = fmt::format(fmt::runtime(kHeader),
                                   fmt::format("{}: {}", title, amounts_text(parameters, macs)));
    for (const auto& [path, members] : blocks) text += block_text(path, members);
    for (std::size_t box = 0; box < boxes_.size(); ++box) text += edges_text(box);
    return text + "}\n";
  }

 private:
  // The network alone: statistics, metrics, the loss and the backward pass are left out.
  static bool is_drawn(const Node& node) {
    if (node.phase != Phase::input && node.phase != Phase::forward) return false;
    switch (node.kind) {
      case OpKind::bn_statistics:
      case OpKind::bn_update_running:
      case OpKind::softmax_cross_entropy:
      case OpKind::metrics:
        return false;
      default:
        return true;
    }
  }

  static bool is_elementwise(OpKind kind) {
    return kind == OpKind::bias || kind == OpKind::bn_apply || kind == OpKind::activation ||
           kind == OpKind::dropout || kind == OpKind::reshape;
  }

  static std::string parent(const std::string& path) {
    const std::size_t dot = path.rfind('.');
    return dot == std::string::npos ? std::string() : path.substr(0, dot);
  }

  [[nodiscard]] const std::string& layer_of(const Box& box) const {
    return graph_.node(box.nodes[0]).layer;
  }
  [[nodiscard]] OpKind kind_of(const Box& box) const { return graph_.node(box.nodes[0]).kind; }

  // A box of its own, or the end of the box before where nothing else looks at what that gives.
  void place(NodeId id) {
    const Node& node = graph_.node(id);
    const auto& users = graph_.value(node.inputs[0]).users;
    const auto drawn_users = std::count_if(
        users.begin(), users.end(), [&](NodeId user) { return is_drawn(graph_.node(user)); });
    const auto before = box_of_.find(node.inputs[0]);
    const bool joins = is_elementwise(node.kind) && before != box_of_.end() && drawn_users == 1 &&
                       kind_of(boxes_[before->second]) != OpKind::concat;
    const std::size_t index = joins ? before->second : boxes_.size();
    if (!joins) boxes_.emplace_back();
    Box& box = boxes_[index];
    box.nodes.push_back(id);
    box.macs += graph_.cost(id).macs;
    for (const ValueId input : node.inputs) {
      const Value& value = graph_.value(input);
      if (value.role == Role::parameter) box.parameters += value.spec.shape.elements();
      if (!joins && box_of_.contains(input)) box.inputs.push_back(input);
    }
    box_of_[node.outputs[0]] = index;
  }

  // The outermost part of a path that holds several boxes but is not itself made of such parts.
  [[nodiscard]] std::string block_of(const std::string& layer) const {
    std::string block;
    for (std::string path = parent(layer); !path.empty(); path = parent(path)) {
      const auto divided = divided_children_.find(path);
      const bool of_blocks = divided != divided_children_.end() && divided->second > 1;
      if (boxes_under_.at(path) > 1 && !of_blocks) block = path;
    }
    return block;
  }

  [[nodiscard]] std::string block_text(const std::string& path,
                                       const std::vector<std::size_t>& members) const {
    std::string text;
    std::int64_t parameters = 0, macs = 0;
    for (const std::size_t box : members) {
      text += box_text(box, path);
      parameters += boxes_[box].parameters;
      macs += boxes_[box].macs;
    }
    if (path.empty()) return text;
    return fmt::format(
        "  subgraph \"cluster_{}\" {{\n"
        "  label=\"{}\\l{}\\l\"; labeljust=l; fontsize=11; style=\"rounded,filled\"; "
        "color=\"#c9d1da\"; fillcolor=\"#fafbfc\";\n{}  }}\n",
        path, path, amounts_text(parameters, macs), text);
  }

  [[nodiscard]] std::string box_text(std::size_t index, const std::string& block) const {
    const Box& box = boxes_[index];
    std::vector<std::string> layers, ops;
    for (const NodeId id : box.nodes) {
      const Node& node = graph_.node(id);
      std::string layer = node.layer;
      if (!block.empty() && layer.starts_with(block + '.')) layer.erase(0, block.size() + 1);
      if (layers.empty() || layers.back() != layer) layers.push_back(layer);
      const std::string op = op_text(graph_, node);
      if (!op.empty()) ops.push_back(op);
    }
    const OpKind kind = kind_of(box);
    std::string label = joined(layers, ", ");
    label += "\\n" + joined(ops, " · ");
    const std::string amounts = amounts_text(box.parameters, box.macs);
    if (!amounts.empty()) label += "\\n" + amounts;
    const bool joint = kind == OpKind::add || kind == OpKind::concat;
    if (joint) label = kind == OpKind::add ? joined(ops, " · ") : "concat";
    return fmt::format("  b{} [label=\"{}\", fillcolor=\"{}\"{}];\n", index, label, color_of(kind),
                       joint ? ", shape=ellipse, style=filled, margin=\"0.05,0.02\"" : "");
  }

  [[nodiscard]] std::string edges_text(std::size_t index) const {
    // Where ways meet, they stand out.
    const OpKind kind = kind_of(boxes_[index]);
    const bool joins = kind == OpKind::concat || kind == OpKind::add;
    std::string text;
    for (const ValueId input : boxes_[index].inputs) {
      text += fmt::format("  b{} -> b{} [label=\" {}\"{}];\n", box_of_.at(input), index,
                          shape_text(graph_.value(input).spec.shape),
                          joins ? ", color=\"#d9822b\", penwidth=1.6" : "");
    }
    return text;
  }

  const Graph& graph_;
  std::vector<Box> boxes_;
  std::map<ValueId, std::size_t> box_of_;
  std::map<std::string, int> boxes_under_;       // by path
  std::map<std::string, int> divided_children_;  // of a path, those that hold several boxes
};

// Shapes stand in the boxes here, and lines are straight: Graphviz would take minutes to find room
// for thousands of labels.
std::string full_text(const Graph& graph, const std::string& title) {
  std::string text =
      fmt::format(fmt::runtime(kHeader), fmt::format("{}: every op of a training step", title));
  text += "  splines=line; nslimit=1; nslimit1=1; mclimit=0.2;\n";
  for (std::size_t id = 0; id < graph.nodes().size(); ++id) {
    const Node& node = graph.nodes()[id];
    const std::string attributes = text_of(node.kind, node.attributes);
    const std::int64_t macs = graph.cost(static_cast<NodeId>(id)).macs;
    std::int64_t parameters = 0;
    for (const ValueId input : node.inputs) {
      const Value& value = graph.value(input);
      const bool forward = node.phase == Phase::forward && value.role == Role::parameter;
      if (forward) parameters += value.spec.shape.elements();
      if (value.producer != kNoNode) text += fmt::format("  n{} -> n{};\n", value.producer, id);
    }
    const std::string amounts = amounts_text(parameters, macs);
    text += fmt::format("  n{} [label=\"{}\\n{}{}\\n{}{}\", fillcolor=\"{}\"];\n", id, node.layer,
                        name_of(node.kind), attributes.empty() ? "" : "\\n" + attributes,
                        shape_text(graph.value(node.outputs[0]).spec.shape),
                        amounts.empty() ? "" : "\\n" + amounts, color_of(node.phase));
  }
  return text + "}\n";
}

}  // namespace

std::string drawing_of(const Plan& plan, const std::string& title, DrawingView view) {
  return view == DrawingView::full ? full_text(*plan.graph, title)
                                   : BlockDrawing(*plan.graph).text(title);
}

}  // namespace ridgeline
