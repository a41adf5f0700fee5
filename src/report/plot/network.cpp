#include "report/plot/network.h"

#include <fmt/core.h>

#include <algorithm>
#include <map>
#include <numeric>
#include <set>

namespace ridgeline::report::plot {
namespace {

// "layer1.0" of "layer1.0.conv1" for two parts.
std::string prefix_of(const std::string& id, std::size_t parts) {
  std::size_t end = 0;
  for (std::size_t i = 0; i < parts; ++i) {
    end = id.find('.', end + (i > 0 ? 1 : 0));
    if (end == std::string::npos) return id;
  }
  return id.substr(0, end);
}

using Keys = std::vector<std::string>;

std::size_t different(const Keys& keys) { return std::set(keys.begin(), keys.end()).size(); }

// The finest grouping of the ids that is small enough; nothing: none is.
Keys keys_by_name(const Network& network, std::size_t most) {
  for (std::size_t parts = 5; parts > 0; --parts) {
    Keys keys;
    for (const Node& node : network.nodes) keys.push_back(prefix_of(node.id, parts));
    if (different(keys) <= most) return keys;
  }
  return {};
}

Keys keys_by_order(const Network& network, std::size_t most) {
  const std::vector<std::size_t> depths = depths_of(network);
  std::vector<std::size_t> order(depths.size());
  std::iota(order.begin(), order.end(), 0U);
  std::stable_sort(order.begin(), order.end(),
                   [&](std::size_t a, std::size_t b) { return depths[a] < depths[b]; });
  const std::size_t each = (order.size() + most - 1) / most;
  Keys keys(order.size());
  for (std::size_t i = 0; i < order.size(); ++i) {
    keys[order[i]] = network.nodes[order[i - i % each]].id;
  }
  return keys;
}

// "conv2d ×2, batchnorm ×2, relu"
std::string contents(const std::vector<std::string>& groups) {
  std::vector<std::pair<std::string, int>> counts;
  for (const std::string& group : groups) {
    const auto known = std::find_if(counts.begin(), counts.end(),
                                    [&](const auto& count) { return count.first == group; });
    if (known == counts.end()) {
      counts.emplace_back(group, 1);
    } else {
      ++known->second;
    }
  }
  std::string text;
  for (const auto& [group, count] : counts) {
    if (!text.empty()) text += ", ";
    text += count == 1 ? group : fmt::format("{} ×{}", group, count);
  }
  return text;
}

}  // namespace

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

Network condensed(const Network& network, std::size_t most) {
  if (network.nodes.size() <= most) return network;
  Keys keys = keys_by_name(network, most);
  if (keys.empty()) keys = keys_by_order(network, most);
  Network result;
  std::map<std::string, std::size_t> index;
  std::vector<std::vector<const Node*>> members;
  for (std::size_t i = 0; i < keys.size(); ++i) {
    const auto [place, is_new] = index.try_emplace(keys[i], members.size());
    if (is_new) members.emplace_back();
    members[place->second].push_back(&network.nodes[i]);
  }
  result.nodes.resize(index.size());
  for (const auto& [key, place] : index) {
    Node& node = result.nodes[place];
    const std::vector<const Node*>& all = members[place];
    if (all.size() == 1) {
      node = *all[0];
      continue;
    }
    const Node* heaviest = all[0];
    std::vector<std::string> groups;
    for (const Node* each : all) {
      node.weight += each->weight;
      groups.push_back(each->group);
      if (each->weight > heaviest->weight) heaviest = each;
    }
    node.id = node.title = key;
    node.detail = contents(groups);
    node.group = heaviest->group;
  }
  std::set<std::pair<std::size_t, std::size_t>> known;
  for (const auto& [from, to] : network.edges) {
    const std::pair edge{index[keys[from]], index[keys[to]]};
    if (edge.first != edge.second && known.insert(edge).second) result.edges.push_back(edge);
  }
  return result;
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
