#include "report/plot/network.h"

#include <algorithm>
#include <map>
#include <set>

namespace ridgeline::report::plot {
Network network_of(const Figure& figure) {
  Network network{figure.nodes, {}};
  std::map<std::string, std::size_t> index;
  for (std::size_t i = 0; i < figure.nodes.size(); ++i) index.emplace(figure.nodes[i].id, i);
  std::set<std::pair<std::size_t, std::size_t>> known;
  for (const Edge& edge : figure.edges) {
    const auto from = index.find(edge.from), to = index.find(edge.to);
    if (from == index.end() || to == index.end() || from == to) continue;
    if (known.emplace(from->second, to->second).second) {
      network.edges.emplace_back(from->second, to->second);
    }
  }
  return network;
}

std::vector<std::size_t> depths_of(const Network& network) {
  const std::size_t count = network.nodes.size();
  std::vector<std::vector<std::size_t>> next(count);
  std::vector<std::size_t> waits(count, 0), depths(count, 0);
  for (const auto& [from, to] : network.edges) {
    next[from].push_back(to);
    ++waits[to];
  }
  std::vector<std::size_t> ready;
  std::vector<bool> seen(count, false);
  for (std::size_t done = 0; done < count;) {
    if (ready.empty()) {
      // At first the inputs; later, if ever, the first node of a circle.
      const bool circle = done > 0;
      for (std::size_t i = 0; i < count && (!circle || ready.empty()); ++i) {
        if (!seen[i] && (waits[i] == 0 || circle)) {
          ready.push_back(i);
          seen[i] = true;
        }
      }
      if (ready.empty()) {
        ready.push_back(0);
        seen[0] = true;
      }
    }
    const std::size_t node = ready.back();
    ready.pop_back();
    ++done;
    for (const std::size_t after : next[node]) {
      if (seen[after]) continue;
      depths[after] = std::max(depths[after], depths[node] + 1);
      if (--waits[after] == 0) {
        ready.push_back(after);
        seen[after] = true;
      }
    }
  }
  return depths;
}

}  // namespace ridgeline::report::plot
