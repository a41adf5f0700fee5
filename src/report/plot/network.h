#pragma once

// A network as boxes with places: which row each stands in.

#include <string>
#include <utility>
#include <vector>

#include "report/figure.h"

namespace ridgeline::report::plot {

struct Network {
  std::vector<Node> nodes;
  std::vector<std::pair<std::size_t, std::size_t>> edges;  // indices; no loops, none twice
};

[[nodiscard]] Network network_of(const Figure& figure);

// The longest way from an input to each node. Circles, which no network has, are cut.
[[nodiscard]] std::vector<std::size_t> depths_of(const Network& network);

}  // namespace ridgeline::report::plot
