#include "documents/describe.h"

#include <nlohmann/json.hpp>

#include "base/json_text.h"

namespace ridgeline {
namespace {

using Json = nlohmann::ordered_json;

Json memory_json(const BatchComplexity& batch) {
  Json memory = Json::object();
  for (const MemoryCategory& category : kMemoryCategories) {
    memory[category.key] = memory_of(batch, category.role);
  }
  memory["gaps"] = batch.gaps;
  memory["peak"] = batch.peak;
  return memory;
}

// What depends on the batch, under the same keys at the top and in the list of batches.
void add_batch(Json& json, const BatchComplexity& batch) {
  const StepWork& work = batch.work;
  json["batch"] = batch.batch;
  json["forward_macs"] = work.forward().macs;
  json["forward_flops"] = work.forward().flops;
  json["recomputed_flops"] = work.of(Phase::recompute).flops;
  json["data_gradient_flops"] = work.of(Phase::backward_data).flops;
  json["weight_gradient_flops"] = work.of(Phase::backward_weights).flops;
  json["optimizer_flops"] = work.of(Phase::optimizer).flops;
  json["training_macs"] = work.total.macs;
  json["training_flops"] = work.total.flops;
  json["forward_bytes"] = or_null(work.forward_moved_bytes);
  json["bytes"] = work.moved_bytes;
  json["bytes_each_op_alone"] = bytes_of(work.total);
  json["forward_intensity"] = or_null(forward_intensity(work));
  json["intensity"] = training_intensity(work);
  json["memory"] = memory_json(batch);
}

Json layer_json(const LayerComplexity& layer) {
  const Cost total = layer.total();
  return {{"layer", layer.layer},
          {"ops", layer.ops},
          {"output", layer.output.text()},
          {"parameters", layer.parameters},
          {"forward_macs", layer.forward.macs},
          {"forward_flops", layer.forward.flops},
          {"backward_flops", layer.backward.flops},
          {"optimizer_flops", layer.optimizer.flops},
          {"bytes", bytes_of(total)},
          {"intensity", or_null(intensity(total))}};
}

}  // namespace

std::int64_t bytes_of(const Cost& cost) { return cost.bytes_read + cost.bytes_written; }

std::int64_t memory_of(const BatchComplexity& batch, Role role) {
  return batch.memory[static_cast<std::size_t>(role)];
}

std::string image_text(const ModelConfig& model) {
  return ImageShape{model.channels, model.height, model.width}.text();
}

std::string description_json(const Description& d, bool per_layer) {
  Json json = {{"model", d.model.name},
               {"file", d.model.source ? Json(d.model.source->path()) : Json(nullptr)},
               {"model_hash", d.model.source ? Json(d.model.source->hash()) : Json(nullptr)},
               {"image", image_text(d.model)},
               {"classes", d.model.classes},
               {"precision", d.precision},
               {"backend", d.backend},
               {"device", d.device},
               {"optimizer", d.optimizer},
               {"parameters", d.parameters}};
  add_batch(json, d.batches[0]);
  json["memory_limit_bytes"] = d.memory_limit;
  json["largest_batch"] = d.largest.batch;
  json["largest_batch_bytes"] = d.largest.bytes;
  Json batches = Json::array();
  for (const BatchComplexity& batch : d.batches) add_batch(batches.emplace_back(), batch);
  json["batches"] = std::move(batches);
  if (per_layer) {
    Json layers = Json::array();
    for (const LayerComplexity& layer : d.layers) layers.push_back(layer_json(layer));
    json["layers"] = std::move(layers);
  }
  return json_document(json);
}

}  // namespace ridgeline
