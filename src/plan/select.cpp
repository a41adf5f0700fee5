#include "plan/select.h"

#include <algorithm>
#include <queue>

#include "base/error.h"

namespace ridgeline {
namespace {

// For each node, the nodes that must run before it.
std::vector<std::vector<NodeId>> dependencies_of(const Graph& graph) {
  std::vector<std::vector<NodeId>> before(graph.nodes().size());
  for (std::size_t id = 0; id < before.size(); ++id) {
    const Node& node = graph.nodes()[id];
    for (const ValueId input : node.inputs) {
      if (graph.value(input).producer != kNoNode) before[id].push_back(graph.value(input).producer);
    }
    for (const ValueId output : node.outputs) {
      const ValueId former = graph.value(output).version_of;
      if (former == kNoValue) continue;
      for (const NodeId reader : graph.value(former).users) {
        if (reader != static_cast<NodeId>(id)) before[id].push_back(reader);
      }
    }
  }
  return before;
}

// The order of tiles, given each node's tile: after dependencies, else by the last node of each, so
// that the plan stays near the order in which the graph was built. Empty when tiles wait for each
// other in a circle.
std::vector<int> order_tiles(const std::vector<std::vector<NodeId>>& before,
                             const std::vector<int>& tile_of, int tiles) {
  const auto count = static_cast<std::size_t>(tiles);
  std::vector<std::vector<int>> after(count);
  std::vector<int> waits(count, 0), last_node(count, 0);
  for (std::size_t node = 0; node < before.size(); ++node) {
    const auto tile = static_cast<std::size_t>(tile_of[node]);
    last_node[tile] = static_cast<int>(node);
    for (const NodeId dependency : before[node]) {
      const int other = tile_of[static_cast<std::size_t>(dependency)];
      if (other == tile_of[node]) continue;
      after[static_cast<std::size_t>(other)].push_back(tile_of[node]);
      ++waits[tile];
    }
  }
  using Ready = std::pair<int, int>;  // last node, tile
  std::priority_queue<Ready, std::vector<Ready>, std::greater<>> ready;
  for (std::size_t tile = 0; tile < count; ++tile) {
    if (waits[tile] == 0) ready.emplace(last_node[tile], static_cast<int>(tile));
  }
  std::vector<int> order;
  while (!ready.empty()) {
    const int tile = ready.top().second;
    ready.pop();
    order.push_back(tile);
    for (const int next : after[static_cast<std::size_t>(tile)]) {
      if (--waits[static_cast<std::size_t>(next)] == 0) {
        ready.emplace(last_node[static_cast<std::size_t>(next)], next);
      }
    }
  }
  if (order.size() != count) order.clear();
  return order;
}

class Tiling {
 public:
  Tiling(const Graph& graph, const PlanOptions& options, std::vector<Refusal>& refusals)
      : graph_(graph),
        options_(options),
        refusals_(refusals),
        before_(dependencies_of(graph)),
        tile_of_(graph.nodes().size(), kFree),
        mark_(graph.nodes().size()),
        fusion_(pass_enabled(options, "fusion")) {}

  std::vector<Tile> run() {
    for (NodeId id = 0; id < static_cast<NodeId>(tile_of_.size()); ++id) {
      if (tile_of_[static_cast<std::size_t>(id)] == kFree) cover(id);
    }
    const std::vector<int> order = order_tiles(before_, tile_of_, static_cast<int>(tiles_.size()));
    ensure(!order.empty() || tiles_.empty(), "steps wait for each other in a circle");
    std::vector<Tile> ordered;
    for (const int tile : order)
      ordered.push_back(std::move(tiles_[static_cast<std::size_t>(tile)]));
    return ordered;
  }

 private:
  static constexpr int kFree = -1;

  void cover(NodeId id) {
    if (graph_.node(id).kind == OpKind::reshape) {
      bool joined = false;
      for (const Backend* backend : candidates(id)) joined = joined || try_rows(*backend, id, true);
      if (!joined) take({{id}, nullptr, nullptr});
      return;
    }
    const std::size_t first_refusal = refusals_.size();
    for (const Backend* backend : candidates(id)) {
      if (try_rows(*backend, id, false)) return;
    }
    std::string reasons;
    for (std::size_t i = first_refusal; i < refusals_.size(); ++i) {
      reasons += "\n  " + refusals_[i].row + ": " + refusals_[i].reason;
    }
    const Problem problem = make_problem(graph_, {id});
    fail("no kernel for {} at '{}'{}", problem.text(), graph_.node(id).layer,
         reasons.empty() ? ": no backend has a row for it" : reasons);
  }

  [[nodiscard]] bool may_use(const KernelRow& row, NodeId id) const {
    const std::string_view pass = pass_of(row.name);
    if (pass.empty()) return true;
    const auto index = static_cast<std::size_t>(id);
    const auto& without = options_.without_passes;
    return pass_enabled(options_, pass) && (index >= without.size() || !without[index]);
  }

  [[nodiscard]] std::vector<const Backend*> candidates(NodeId id) const {
    std::vector<const Backend*> list = options_.providers;
    const auto index = static_cast<std::size_t>(id);
    if (index < options_.preferred.size() && options_.preferred[index] != nullptr) {
      const auto found = std::find(list.begin(), list.end(), options_.preferred[index]);
      if (found != list.end()) std::rotate(list.begin(), found, found + 1);
    }
    return list;
  }

  bool try_rows(const Backend& backend, NodeId id, bool patterns_only) {
    for (const KernelRow& row : backend.rows()) {
      std::vector<NodeId> nodes = row.match(graph_, id);
      if (nodes.empty() || (nodes.size() > 1 && !fusion_)) continue;
      if (nodes.size() == 1 && patterns_only) continue;
      if (!may_use(row, id)) continue;
      const std::string reason = refuse(backend, row, nodes);
      if (reason.empty()) {
        take({std::move(nodes), &backend, &row});
        return true;
      }
      refusals_.push_back({id, fmt::format("{}:{}", backend.name, row.name), reason});
    }
    return false;
  }

  std::string refuse(const Backend& backend, const KernelRow& row,
                     const std::vector<NodeId>& nodes) {
    for (const NodeId node : nodes) {
      if (tile_of_[static_cast<std::size_t>(node)] != kFree) return "another step covers a part";
      // A completing backend is used only for ops that its main backend cannot run.
      const Backend& first_choice = *candidates(node).front();
      if (nodes.size() > 1 && &backend != &first_choice && can_compute(first_choice, node)) {
        return fmt::format("{} computes a part of it", first_choice.name);
      }
    }
    std::string reason = row.check(make_problem(graph_, nodes, options_.measure));
    if (reason.empty() && nodes.size() > 1 && makes_circle(nodes)) {
      reason = "other steps would have to run in the middle of it";
    }
    if (reason.empty() && options_.deterministic && !is_deterministic(row, nodes)) {
      reason = "not deterministic";
    }
    return reason;
  }

  [[nodiscard]] bool is_deterministic(const KernelRow& row,
                                      const std::vector<NodeId>& nodes) const {
    const Problem problem = make_problem(graph_, nodes, options_.measure);
    const std::vector<Layout> layouts(problem.inputs.size(), Layout::plain());
    return row.make(problem, layouts)->traits.deterministic;
  }

  [[nodiscard]] bool can_compute(const Backend& backend, NodeId id) const {
    const auto rows = backend.rows();
    return std::any_of(rows.begin(), rows.end(), [&](const KernelRow& row) {
      const std::vector<NodeId> nodes = row.match(graph_, id);
      return nodes.size() == 1 && row.check(make_problem(graph_, nodes, options_.measure)).empty();
    });
  }

  // Whether some step outside the pattern needs it and is needed by it: walks from what the pattern
  // needs to what that needs in turn, tiles taken so far as wholes.
  bool makes_circle(const std::vector<NodeId>& nodes) {
    const int inside = ++walk_, seen = ++walk_;
    for (const NodeId node : nodes) mark_[static_cast<std::size_t>(node)] = inside;
    std::vector<NodeId> waiting;
    const auto reaches_inside = [&](NodeId node) {
      bool found = false;
      for (const NodeId dependency : before_[static_cast<std::size_t>(node)]) {
        int& mark = mark_[static_cast<std::size_t>(dependency)];
        found = found || mark == inside;
        if (mark == inside || mark == seen) continue;
        mark = seen;
        waiting.push_back(dependency);
      }
      return found;
    };
    for (const NodeId node : nodes) (void)reaches_inside(node);
    while (!waiting.empty()) {
      const NodeId node = waiting.back();
      waiting.pop_back();
      const int tile = tile_of_[static_cast<std::size_t>(node)];
      if (tile == kFree) {
        if (reaches_inside(node)) return true;
        continue;
      }
      for (const NodeId member : tiles_[static_cast<std::size_t>(tile)].nodes) {
        if (reaches_inside(member)) return true;
      }
    }
    return false;
  }

  void take(Tile tile) {
    for (const NodeId node : tile.nodes) {
      tile_of_[static_cast<std::size_t>(node)] = static_cast<int>(tiles_.size());
    }
    tiles_.push_back(std::move(tile));
  }

  const Graph& graph_;
  const PlanOptions& options_;
  std::vector<Refusal>& refusals_;
  std::vector<std::vector<NodeId>> before_;
  std::vector<int> tile_of_;
  std::vector<Tile> tiles_;
  std::vector<int> mark_;  // of makes_circle: the last walk that came to a node
  int walk_ = 0;
  bool fusion_;
};

}  // namespace

std::vector<Tile> select_tiles(const Graph& graph, const PlanOptions& options,
                               std::vector<Refusal>& refusals) {
  return Tiling(graph, options, refusals).run();
}

}  // namespace ridgeline
