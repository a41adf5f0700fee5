#pragma once

// Folds batch norms into the convolution or matrix product before them. With running statistics a
// batch norm is a scale and a shift of each channel, and so is a change of the weights:
//   scale · (W·x + b - mean) / √(variance + ε) + shift = W'·x + b'
// The graph gets new weights and a bias in their place; the recipes tell what to fill them with.

#include <functional>
#include <string>
#include <vector>

#include "graph/graph.h"

namespace ridgeline {

// One folded norm: parameters of the former graph by name, and what the new graph has instead.
struct Fold {
  std::string weights, bias;                 // bias: empty where the layer had none
  std::string scale, shift, mean, variance;  // of the norm
  std::string folded_weights, folded_bias;   // "conv1.weight.folded", "conv1.bias.folded"
  double epsilon = 0.0;
};

struct FoldResult {
  Graph graph;
  std::vector<ValueId> value_of;  // for each value of the former graph; kNoValue: folded away
  std::vector<Fold> folds;
};

// A norm is folded where it reads running statistics, where it alone reads what the convolution or
// matrix product (with its bias) gives, and where no other op reads those weights. All others stay.
[[nodiscard]] FoldResult fold_norms(const Graph& graph);

struct FoldedValues {
  std::vector<double> weights, bias;
};
// The elements of the new parameters, from those of the former ones by name.
[[nodiscard]] FoldedValues fold_values(
    const Fold& fold, const std::function<std::vector<double>(const std::string& name)>& values);

}  // namespace ridgeline
