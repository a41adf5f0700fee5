#include "inspect/network_document.h"

#include <nlohmann/json.hpp>

#include "graph/graph_json.h"
#include "onnx/network.h"

namespace ridgeline {

nlohmann::ordered_json network_document(const ModelConfig& model, const NetworkForm& form) {
  check_config(model);
  Graph graph;
  const ValueId image = graph.add_value(
      "images", {Shape{form.batch, model.channels, model.height, model.width}, DType::f32},
      Role::input);
  NetworkBuilder builder(graph, form.training, model.init, DType::f32, form.freeze);
  const ValueId logits = build_network(builder, image, model);
  nlohmann::ordered_json document = {
      {"ridgeline_graph", kGraphVersion},
      {"model", model.name},
      {"model_hash", model.source ? onnx::short_hash(*model.source) : std::string()},
      {"settings", model.options}};
  NetworkOutline outline{.parameters = builder.parameters(), .image = image, .logits = logits};
  if (form.training) outline.auxiliary = builder.auxiliary_heads();
  document.update(graph_json(graph, outline));
  return document;
}

}  // namespace ridgeline
