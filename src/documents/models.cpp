#include "documents/models.h"

#include <nlohmann/json.hpp>

#include "base/json_text.h"
#include "train/step_runner.h"

namespace ridgeline {
namespace {

using Json = nlohmann::ordered_json;

Json model_json(const ModelInfo& model) {
  Json options = Json::array();
  for (const ModelOption& option : model.options) {
    options.push_back(
        {{"name", option.name}, {"default", option.fallback}, {"meaning", option.meaning}});
  }
  return {{"name", model.name},
          {"family", model.family},
          {"description", model.description},
          {"parameters", parameters_of(model)},
          {"image", {model.image.channels, model.image.height, model.image.width}},
          {"classes", model.image.classes},
          {"options", std::move(options)}};
}

}  // namespace

std::int64_t parameters_of(const ModelInfo& model) {
  StepSpec spec;
  spec.model = default_config(model.name);
  spec.batch = 1;
  return count_parameters(evaluation_graph(spec).parameters);
}

std::string models_json() {
  Json models = Json::array();
  for (const ModelInfo& model : all_models()) models.push_back(model_json(model));
  return json_document(Json{{"models", std::move(models)}});
}

}  // namespace ridgeline
