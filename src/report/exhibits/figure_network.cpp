// Networks as boxes and arrows, as the model builders make them.

#include <algorithm>
#include <cctype>
#include <charconv>
#include <map>

#include "base/error.h"
#include "base/text.h"
#include "models/model.h"
#include "report/exhibits/figure_kinds.h"
#include "report/exhibits/figure_runs.h"

namespace ridgeline::report {
namespace {

// Beyond that many boxes, layers of a block become one.
constexpr std::size_t kMostBoxes = 68;

// A box of the diagram: some nodes of the graph.
struct Box {
  std::string id;    // the path of its layer or block
  std::string path;  // without what makes the id unique
  std::vector<NodeId> nodes;
  std::int64_t flops = 0;
};

// The forward graph of a training step for one image.
struct Network {
  Graph graph;
  ValueId image = kNoValue;
};

// Nothing for a network that this program does not know, or not with these options.
std::optional<Network> build_network(const Work& work) {
  const auto models = all_models();
  const auto model = std::find_if(models.begin(), models.end(),
                                  [&](const ModelInfo& each) { return each.name == work.model; });
  if (model == models.end()) return std::nullopt;
  std::vector<std::int64_t> sizes;
  for (std::string_view rest = work.image; !rest.empty();) {
    std::int64_t size = 0;
    const auto [end, error] = std::from_chars(rest.data(), rest.data() + rest.size(), size);
    if (error != std::errc()) return std::nullopt;
    sizes.push_back(size);
    rest.remove_prefix(static_cast<std::size_t>(end - rest.data()));
    if (!rest.empty()) rest.remove_prefix(1);
  }
  if (sizes.size() != 3) return std::nullopt;
  ModelConfig config = default_config(work.model);
  config.channels = sizes[0];
  config.height = sizes[1];
  config.width = sizes[2];
  config.classes = work.classes;
  config.options = settings_of(work);
  try {
    check_config(config);
    Network network;
    network.image = network.graph.add_value(
        "images", {Shape{1, config.channels, config.height, config.width}, DType::f32},
        Role::input);
    NetworkBuilder builder(network.graph, true, config.init, DType::f32);
    (void)model->build(builder, network.image, config);
    return network;
  } catch (const Error&) {
    return std::nullopt;
  }
}

// The first `depth` names of "features.denseblock1.denselayer1".
std::string prefix_of(const std::string& path, int depth) {
  std::size_t end = 0;
  for (int names = 0; names < depth; ++names) {
    end = path.find('.', names == 0 ? 0 : end + 1);
    if (end == std::string::npos) return path;
  }
  return path.substr(0, end);
}

// One box for each layer, or for each block where `depth` names of a path count. A layer that is
// used again (a block's relu) has a box for each use.
std::vector<Box> boxes_of(const Graph& graph, std::optional<int> depth) {
  std::vector<Box> boxes;
  std::map<std::string, std::size_t> last;
  std::map<std::string, int> uses;
  for (std::size_t id = 0; id < graph.nodes().size(); ++id) {
    const ridgeline::Node& node = graph.nodes()[id];
    const std::string path = depth ? prefix_of(node.layer, *depth) : node.layer;
    const auto known = last.find(path);
    bool joins = known != last.end();
    if (joins && !depth) {
      const std::vector<NodeId>& members = boxes[known->second].nodes;
      joins = std::any_of(node.inputs.begin(), node.inputs.end(), [&](ValueId input) {
        return std::find(members.begin(), members.end(), graph.value(input).producer) !=
               members.end();
      });
    }
    if (!joins) {
      const int use = ++uses[path];
      last[path] = boxes.size();
      boxes.push_back({use == 1 ? path : fmt::format("{} ({})", path, use), path, {}, 0});
    }
    Box& box = boxes[last[path]];
    box.nodes.push_back(static_cast<NodeId>(id));
    box.flops += graph.cost(static_cast<NodeId>(id)).flops;
  }
  return boxes;
}

std::string op_name(const ridgeline::Node& node) {
  if (const auto* activation = std::get_if<ActivationAttributes>(&node.attributes)) {
    return std::string(name_of(activation->kind));
  }
  if (const auto* pool = std::get_if<PoolAttributes>(&node.attributes)) {
    return pool->kind == PoolKind::max ? "max pool" : "average pool";
  }
  const std::string name(name_of(node.kind));
  if (name.starts_with("bn_")) return "batch norm";
  return node.kind == OpKind::reshape ? "flatten" : name;
}

// "conv2d 3x3, stride 2".
std::string title_of(const ridgeline::Node& node) {
  std::string title = op_name(node);
  if (const auto* conv = std::get_if<Conv2dAttributes>(&node.attributes)) {
    title += fmt::format(" {}x{}", conv->kernel_h, conv->kernel_w);
    if (conv->stride_h > 1) title += fmt::format(", stride {}", conv->stride_h);
    if (conv->groups > 1) title += fmt::format(", {} groups", conv->groups);
  } else if (const auto* pool = std::get_if<PoolAttributes>(&node.attributes)) {
    title += fmt::format(" {}x{}", pool->kernel_h, pool->kernel_w);
  }
  return title;
}

// "layer1.0: 3 conv2d, add": what computes most, and what joins branches.
std::string summary_of(const Graph& graph, const Box& box) {
  std::vector<std::pair<std::string, int>> counts;
  for (const NodeId id : box.nodes) {
    const ridgeline::Node& node = graph.node(id);
    const bool counted = node.kind == OpKind::conv2d || node.kind == OpKind::linear ||
                         node.kind == OpKind::pool || node.kind == OpKind::add ||
                         node.kind == OpKind::concat;
    if (!counted) continue;
    const std::string name = op_name(node);
    const auto known = std::find_if(counts.begin(), counts.end(),
                                    [&](const auto& each) { return each.first == name; });
    if (known == counts.end()) {
      counts.emplace_back(name, 1);
    } else {
      ++known->second;
    }
  }
  std::vector<std::string> parts;
  for (const auto& [name, count] : counts) {
    parts.push_back(count == 1 ? name : fmt::format("{} {}", count, name));
  }
  // A number alone is no name.
  const std::size_t dot = box.path.rfind('.');
  const bool numbered =
      dot == std::string::npos || std::isdigit(static_cast<unsigned char>(box.path[dot + 1])) != 0;
  return (numbered ? box.path : box.path.substr(dot + 1)) + ": " + joined(parts, ", ");
}

bool is_one_layer(const Graph& graph, const Box& box) {
  return std::all_of(box.nodes.begin(), box.nodes.end(), [&](NodeId id) {
    return graph.node(id).layer == graph.node(box.nodes[0]).layer;
  });
}

// Without the batch: "64x56x56".
std::string shape_text(const Shape& shape) {
  std::string text;
  for (int axis = 1; axis < shape.rank(); ++axis) {
    text += fmt::format("{}{}", axis == 1 ? "" : "x", shape[axis]);
  }
  return text;
}

std::string flops_text(std::int64_t flops) {
  const auto count = static_cast<double>(flops);
  if (count >= 1e8) return fmt::format("{:.2f} GFLOP", count / 1e9);
  if (count >= 1e5) return fmt::format("{:.2f} MFLOP", count / 1e6);
  return count_text(flops) + " FLOP";
}

// The last value of the box that is no new version of a running statistic.
const Shape& output_of(const Graph& graph, const Box& box) {
  for (auto id = box.nodes.rbegin(); id != box.nodes.rend(); ++id) {
    const Value& value = graph.value(graph.node(*id).outputs[0]);
    if (value.version_of == kNoValue && graph.node(*id).kind != OpKind::bn_statistics) {
      return value.spec.shape;
    }
  }
  return graph.value(graph.node(box.nodes[0]).outputs[0]).spec.shape;
}

// Boxes of small networks have room for the names of their layers.
void name_layers(Figure& figure) {
  constexpr std::size_t kRoom = 24;
  const bool fit = std::all_of(figure.nodes.begin(), figure.nodes.end(), [](const Node& node) {
    return node.id.size() + node.title.size() + 2 <= kRoom;
  });
  for (Node& node : figure.nodes) {
    if (fit && node.id != "input" && node.id != node.title)
      node.title = node.id + ": " + node.title;
  }
}

Figure diagram(const ExhibitInput& input, const Network& network, const std::string& what) {
  const Graph& graph = network.graph;
  std::vector<Box> boxes = boxes_of(graph, std::nullopt);
  const std::size_t layers = boxes.size();
  const bool in_blocks = layers + 1 > kMostBoxes;
  if (in_blocks) boxes = boxes_of(graph, 2);
  std::int64_t total = 0;
  std::map<NodeId, std::string> owner;
  for (const Box& box : boxes) {
    total += box.flops;
    for (const NodeId id : box.nodes) owner[id] = box.id;
  }
  Figure figure = new_figure(input, "The network", what);
  figure.kind = FigureKind::diagram;
  const Shape& image = graph.value(network.image).spec.shape;
  figure.nodes.push_back({"input", "image", shape_text(image), "input", 0.0});
  std::set<std::pair<std::string, std::string>> edges;
  for (const Box& box : boxes) {
    const bool single = is_one_layer(graph, box);
    const double share =
        static_cast<double>(box.flops) / static_cast<double>(std::max<std::int64_t>(total, 1));
    std::string detail = shape_text(output_of(graph, box));
    if (share >= 0.0005)
      detail += fmt::format(" · {} · {:.1f}%", flops_text(box.flops), share * 100.0);
    figure.nodes.push_back(
        {box.id, single ? title_of(graph.node(box.nodes[0])) : summary_of(graph, box),
         std::move(detail), single ? op_name(graph.node(box.nodes[0])) : "block", share});
    for (const NodeId id : box.nodes) {
      for (const ValueId source : graph.node(id).inputs) {
        const NodeId producer = graph.value(source).producer;
        const bool from_image = source == network.image;
        if (!from_image && producer == kNoNode) continue;
        const std::string& from = from_image ? "input" : owner.at(producer);
        if (from == box.id || !edges.emplace(from, box.id).second) continue;
        figure.edges.push_back({from, box.id});
      }
    }
  }
  figure.caption = fmt::format(
      "The network as it is built, {} layers, from the image to the scores of the classes: shape "
      "of "
      "each output, and FLOPs of the forward pass of one image ({} in all) with their share.",
      layers, flops_text(total));
  if (!in_blocks) name_layers(figure);
  if (in_blocks) figure.caption += " Layers of a block are drawn as one box.";
  return figure;
}

}  // namespace

std::vector<Figure> network_figures(const ExhibitInput& input) {
  std::vector<Figure> figures;
  std::vector<std::pair<std::string, const RunView*>> networks;
  for (const RunView* run : input.runs) {
    const Work& work = run->run.work;
    std::string name = work.model;
    if (!work.settings.empty()) name += " (" + work.settings + ")";
    name += fmt::format(", {}, {} classes", work.image, work.classes);
    const bool known = std::any_of(networks.begin(), networks.end(),
                                   [&](const auto& each) { return each.first == name; });
    if (!known) networks.emplace_back(std::move(name), run);
  }
  for (const auto& [name, run] : networks) {
    const std::optional<Network> network = build_network(run->run.work);
    if (network) put(figures, diagram(input, *network, name));
  }
  return figures;
}

}  // namespace ridgeline::report
