#pragma once

// A network of ours as an ONNX model (opset 17) that onnxruntime runs and this program reads again.

#include <functional>
#include <map>
#include <string>
#include <vector>

#include "graph/graph.h"
#include "onnx/file.h"

namespace ridgeline::onnx {

// The forward pass, from a tensor of images to logits. Batch norms may work as in training: they
// are written with their running statistics.
struct ExportedNetwork {
  const Graph* graph = nullptr;
  ValueId image = kNoValue;
  std::vector<ValueId> logits;  // of the network, then of auxiliary heads
  // The elements of a parameter or a running statistic by its name.
  std::function<std::vector<double>(const std::string& name)> values;
  std::map<std::string, std::string> metadata = {};
};

// The batch is free, the image has the graph's size.
[[nodiscard]] Model export_network(const ExportedNetwork& network);

// The share that each pixel of an axis has in each window of an adaptive average, (src, dst): ONNX
// has no such op, and a product with this matrix is one along one axis.
[[nodiscard]] std::vector<double> adaptive_shares(std::int64_t src, std::int64_t dst);

// What the name of a Dropout node ends with that drops whole samples: ONNX has no op for it, and
// without training both pass their input on.
inline constexpr const char* kStochasticDepth = "stochastic_depth";

}  // namespace ridgeline::onnx
