#include "train/export_onnx.h"

#include <map>
#include <nlohmann/json.hpp>

#include "base/error.h"
#include "base/json_text.h"
#include "onnx/export.h"
#include "onnx/network.h"
#include "train/step_graph.h"

namespace ridgeline {
namespace {

// Statistics of a batch need two samples; the file has a free batch.
constexpr std::int64_t kBatch = 2;

using Values = std::map<std::string, std::vector<double>>;

Values values_of(const StateDict& weights) {
  Values values;
  for (const WeightTensor& tensor : weights.tensors) {
    if (!is_real(tensor.type)) continue;
    const std::vector<float> elements = tensor.to_float();
    values[tensor.name].assign(elements.begin(), elements.end());
  }
  return values;
}

std::map<std::string, std::string> metadata_of(const OnnxExport& network) {
  std::map<std::string, std::string> metadata = {{"model", network.model.name}};
  if (!network.class_names.empty()) {
    metadata[onnx::kClassNames] = json_text(nlohmann::json(network.class_names));
  }
  return metadata;
}

// The network as it trains, with dropout and auxiliary heads.
void write_whole(const OnnxExport& network, const Values& values,
                 const std::filesystem::path& path) {
  const ModelConfig& model = network.model;
  Graph graph;
  const Shape shape{kBatch, model.channels, model.height, model.width};
  const ValueId image = graph.add_value(kImages, {shape, DType::f32}, Role::input);
  NetworkBuilder builder(graph, true, model.init, DType::f32);
  std::vector<ValueId> logits = {build_network(builder, image, model)};
  for (const AuxiliaryHead& head : builder.auxiliary_heads()) logits.push_back(head.logits);
  onnx::write_model(
      onnx::export_network({.graph = &graph,
                            .image = image,
                            .logits = logits,
                            .values = [&](const std::string& name) { return values.at(name); },
                            .metadata = metadata_of(network)}),
      path);
}

void write_folded(const OnnxExport& network, Values values, const std::filesystem::path& path) {
  StepSpec step;
  step.model = network.model;
  step.batch = kBatch;
  step.tensor_input = true;
  const InferenceGraph made = inference_graph(step);
  for (const Fold& fold : made.folds) {
    FoldedValues folded =
        fold_values(fold, [&](const std::string& name) { return values.at(name); });
    values[fold.folded_weights] = std::move(folded.weights);
    values[fold.folded_bias] = std::move(folded.bias);
  }
  onnx::write_model(
      onnx::export_network({.graph = &made.graph,
                            .image = made.graph.find(kImages),
                            .logits = {made.logits},
                            .values = [&](const std::string& name) { return values.at(name); },
                            .metadata = metadata_of(network)}),
      path);
}

}  // namespace

void write_onnx(const OnnxExport& network, const std::filesystem::path& path) {
  Values values = values_of(*network.weights);
  if (network.fold_norms) {
    write_folded(network, std::move(values), path);
  } else {
    write_whole(network, values, path);
  }
}

}  // namespace ridgeline
