// ridgeline models: the model zoo.

#include <nlohmann/json.hpp>

#include "base/error.h"
#include "base/json_text.h"
#include "base/text.h"
#include "cli/command.h"
#include "cli/options.h"
#include "cli/output.h"
#include "cli/parser.h"
#include "cli/tables.h"
#include "train/step_runner.h"

namespace ridgeline::cli {
namespace {

using Json = nlohmann::ordered_json;

const std::vector<std::string> kColumns = {"model", "parameters", "image", "classes",
                                           "description"};

std::int64_t parameters_of(const ModelInfo& model) {
  StepSpec spec;
  spec.model = default_config(model.name);
  spec.batch = 1;
  return count_parameters(evaluation_graph(spec).parameters);
}

int run_models(bool as_json) {
  if (as_json) {
    Json models = Json::array();
    for (const ModelInfo& model : all_models()) {
      Json options = Json::array();
      for (const ModelOption& option : model.options) {
        options.push_back(
            {{"name", option.name}, {"default", option.fallback}, {"meaning", option.meaning}});
      }
      models.push_back({{"name", model.name},
                        {"description", model.description},
                        {"parameters", parameters_of(model)},
                        {"options", std::move(options)}});
    }
    print(json_document(Json{{"models", std::move(models)}}));
    return 0;
  }
  TextTable table(kColumns, "lrrrl");
  for (const ModelInfo& model : all_models()) {
    const ModelImage& image = model.image;
    table.add_row({std::string(model.name), count_text(parameters_of(model)),
                   fmt::format("{}x{}x{}", image.channels, image.height, image.width),
                   count_text(image.classes), std::string(model.description)});
  }
  std::string text = shown_main(table);
  for (const ModelInfo& model : all_models()) {
    if (model.options.empty()) continue;
    text += fmt::format("\nSettings of {} (--set NAME=VALUE), with defaults\n", model.name);
    for (const ModelOption& option : model.options) {
      text += fmt::format("  {:<12}{:<8}{}\n", option.name, option.fallback, option.meaning);
    }
  }
  print(text + "\nThe number of parameters is for the default settings, image size and classes.\n");
  return 0;
}

}  // namespace

void add_models(Parser& program, Action& action) {
  auto as_json = std::make_shared<bool>(false);
  Parser* command = program.add_subcommand("models", "List the models and their settings");
  add_json_option(*command, *as_json);
  add_table_options(*command, kColumns);
  command->examples({"ridgeline models"});
  command->callback([as_json, &action] { action = [as_json] { return run_models(*as_json); }; });
}

}  // namespace ridgeline::cli
