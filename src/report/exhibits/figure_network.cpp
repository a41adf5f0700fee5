// Networks as boxes and arrows, as the store describes them.

#include <algorithm>
#include <array>
#include <cctype>
#include <map>
#include <nlohmann/json.hpp>
#include <set>

#include "base/error.h"
#include "base/text.h"
#include "report/exhibits/figure_kinds.h"
#include "report/exhibits/figure_runs.h"

namespace ridgeline::report {
namespace {

// Beyond that many boxes, layers of a block become one.
constexpr std::size_t kMostBoxes = 68;

using Sizes = std::vector<std::int64_t>;

// An operation of the forward pass.
struct Operation {
  std::string layer, name, title;    // "layer1.0.conv1", "conv2d", "conv2d 3x3, stride 2"
  std::vector<std::int64_t> inputs;  // operations before this one; -1: the image
  Sizes output;
  std::int64_t flops = 0;   // of one image
  bool statistics = false;  // its output is not the layer's
};
struct Network {
  Sizes input;
  std::vector<Operation> operations;
};

// Nothing for a description that cannot be read.
std::optional<Network> read_network(const std::string& description) {
  try {
    const nlohmann::json json = nlohmann::json::parse(description);
    Network network{json.at("input").get<Sizes>(), {}};
    for (const nlohmann::json& node : json.at("nodes")) {
      Operation& made = network.operations.emplace_back();
      node.at("layer").get_to(made.layer);
      node.at("op").get_to(made.name);
      node.at("title").get_to(made.title);
      node.at("inputs").get_to(made.inputs);
      node.at("output").get_to(made.output);
      node.at("flops").get_to(made.flops);
      node.at("statistics").get_to(made.statistics);
      const auto before = static_cast<std::int64_t>(network.operations.size()) - 1;
      for (const std::int64_t input : made.inputs) {
        if (input < -1 || input >= before) return std::nullopt;
      }
    }
    return network;
  } catch (const nlohmann::json::exception&) {
    return std::nullopt;
  }
}

// A box of the diagram: some operations.
struct Box {
  std::string id;    // the path of its layer or block
  std::string path;  // without what makes the id unique
  std::vector<const Operation*> operations = {};
};

// The first `depth` names of "features.denseblock1.denselayer1".
std::string prefix_of(const std::string& path, int depth) {
  std::size_t end = 0;
  for (int names = 0; names < depth; ++names) {
    end = path.find('.', names == 0 ? 0 : end + 1);
    if (end == std::string::npos) return path;
  }
  return path.substr(0, end);
}

struct Boxes {
  std::vector<Box> boxes;
  std::vector<std::size_t> owner;  // of each operation, its box
};

// One box for each layer, or for each block where `depth` names of a path count. A layer that is
// used again (a block's relu) has a box for each use.
Boxes boxes_of(const Network& network, std::optional<int> depth) {
  Boxes made;
  std::map<std::string, std::size_t> last;
  std::map<std::string, int> uses;
  for (const Operation& operation : network.operations) {
    const std::string path = depth ? prefix_of(operation.layer, *depth) : operation.layer;
    const auto known = last.find(path);
    const bool joins =
        known != last.end() &&
        (depth || std::ranges::any_of(operation.inputs, [&](auto input) {
           return input >= 0 && made.owner[static_cast<std::size_t>(input)] == known->second;
         }));
    if (!joins) {
      const int use = ++uses[path];
      last[path] = made.boxes.size();
      made.boxes.push_back({use == 1 ? path : fmt::format("{} ({})", path, use), path});
    }
    made.owner.push_back(last[path]);
    made.boxes[last[path]].operations.push_back(&operation);
  }
  return made;
}

// "layer1.0: 3 conv2d, add": what computes most, and what joins branches.
std::string summary_of(const Box& box) {
  static constexpr std::array<std::string_view, 6> kCounted = {"conv2d",       "linear", "max pool",
                                                               "average pool", "add",    "concat"};
  std::vector<std::pair<std::string, int>> counts;
  for (const Operation* operation : box.operations) {
    const std::string& name = operation->name;
    if (!has(kCounted, name)) continue;
    const auto known =
        std::ranges::find_if(counts, [&](const auto& each) { return each.first == name; });
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

// "64x56x56".
std::string sizes_text(const Sizes& sizes) {
  std::vector<std::string> words;
  for (const std::int64_t size : sizes) words.push_back(fmt::format("{}", size));
  return joined(words, "x");
}

std::string flops_text(std::int64_t flops) {
  const auto count = static_cast<double>(flops);
  if (count >= 1e8) return fmt::format("{:.2f} GFLOP", count / 1e9);
  if (count >= 1e5) return fmt::format("{:.2f} MFLOP", count / 1e6);
  return count_text(flops) + " FLOP";
}

std::int64_t flops_of(const Box& box) {
  std::int64_t flops = 0;
  for (const Operation* operation : box.operations) flops += operation->flops;
  return flops;
}

Node node_of(const Box& box, std::int64_t total) {
  const Operation& first = *box.operations.front();
  const bool single = std::ranges::all_of(
      box.operations, [&](const Operation* each) { return each->layer == first.layer; });
  const auto output = std::find_if(box.operations.rbegin(), box.operations.rend(),
                                   [](const Operation* each) { return !each->statistics; });
  const double share =
      static_cast<double>(flops_of(box)) / static_cast<double>(std::max<std::int64_t>(total, 1));
  std::string detail =
      sizes_text(output == box.operations.rend() ? first.output : (*output)->output);
  if (share >= 0.0005) {
    detail += fmt::format(" · {} · {:.1f}%", flops_text(flops_of(box)), share * 100.0);
  }
  return {box.id, single ? first.title : summary_of(box), std::move(detail),
          single ? first.name : "block", share};
}

// Boxes of small networks have room for the names of their layers.
void name_layers(Figure& figure) {
  constexpr std::size_t kRoom = 24;
  const bool fit = std::ranges::all_of(figure.nodes, [](const Node& node) {
    return node.id.size() + node.title.size() + 2 <= kRoom;
  });
  for (Node& node : figure.nodes) {
    if (fit && node.id != "input" && node.id != node.title)
      node.title = node.id + ": " + node.title;
  }
}

void draw_network(Figure& figure, const Network& network) {
  Boxes made = boxes_of(network, std::nullopt);
  const std::size_t layers = made.boxes.size();
  const bool in_blocks = layers + 1 > kMostBoxes;
  if (in_blocks) made = boxes_of(network, 2);
  std::int64_t total = 0;
  for (const Operation& operation : network.operations) total += operation.flops;
  figure.kind = FigureKind::diagram;
  figure.nodes.push_back({"input", "image", sizes_text(network.input), "input", 0.0});
  std::set<std::pair<std::string, std::string>> edges;
  for (const Box& box : made.boxes) {
    figure.nodes.push_back(node_of(box, total));
    for (const Operation* operation : box.operations) {
      for (const std::int64_t source : operation->inputs) {
        const std::string& from =
            source < 0 ? "input" : made.boxes[made.owner[static_cast<std::size_t>(source)]].id;
        if (from == box.id || !edges.emplace(from, box.id).second) continue;
        figure.edges.push_back({from, box.id});
      }
    }
  }
  figure.caption = fmt::format(
      "The network as it is built, {} layers, from the image to the scores of the classes: shape "
      "of each output, and FLOPs of the forward pass of one image ({} in all) with their share.",
      layers, flops_text(total));
  if (!in_blocks) name_layers(figure);
  if (in_blocks) figure.caption += " Layers of a block are drawn as one box.";
}

}  // namespace

Figure network_figure(const NetworkRecord& record, const std::string& title) {
  const auto network = read_network(record.description);
  ensure(network.has_value(), "the description of {} cannot be read", title);
  Figure figure{.id = "network", .title = title};
  draw_network(figure, *network);
  return figure;
}

std::vector<Figure> network_figures(const ExhibitInput& input) {
  const FieldNames told = {"model", "settings", "image", "classes"};
  FieldNames others = fields_without(told);
  others.push_back("precision");
  Runs networks;
  for (const Runs& alike :
       grouped(chosen(input.runs, [](const RunView& run) { return !run.run.network.empty(); }),
               others)) {
    networks.push_back(alike.front());
  }
  const Names names(input.data, networks, others, told);
  std::vector<Figure> figures;
  for (const RunView* run : networks) {
    const std::optional<NetworkRecord> record = input.data.store().network(run->run.network);
    const auto network = record ? read_network(record->description) : std::nullopt;
    if (!network) continue;
    Figure figure = new_figure(input, "The network", names.of(*run));
    draw_network(figure, *network);
    figure.runs = {run->run.id};
    put(figures, std::move(figure));
  }
  return figures;
}

}  // namespace ridgeline::report
