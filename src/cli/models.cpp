// ridgeline models: the model zoo.

#include "documents/models.h"

#include <algorithm>

#include "base/error.h"
#include "base/text.h"
#include "cli/command.h"
#include "cli/options.h"
#include "cli/output.h"
#include "cli/parser.h"
#include "cli/tables.h"

namespace ridgeline::cli {
namespace {

const std::vector<std::string> kModelColumns = {"model",   "parameters", "image",
                                                "classes", "settings",   "description"};

// Families one below the other, with an empty line between them.
TextTable model_table() {
  TextTable table(kModelColumns, "lrrrll");
  table.important({"model", "parameters", "image", "description"});
  std::string_view family = all_models().front().family;
  for (const ModelInfo& model : all_models()) {
    if (model.family != family) table.add_row(std::vector<std::string>(kModelColumns.size()));
    family = model.family;
    std::vector<std::string> settings;
    for (const ModelOption& option : model.options) {
      settings.push_back(fmt::format("{}={}", option.name, option.fallback));
    }
    const ModelImage& image = model.image;
    table.add_row({std::string(model.name), count_text(parameters_of(model)),
                   fmt::format("{}x{}x{}", image.channels, image.height, image.width),
                   count_text(image.classes), joined(settings, " "),
                   std::string(model.description)});
  }
  return table;
}

// One line for each setting, however many families have it.
std::string settings_text() {
  struct Setting {
    ModelOption option;
    std::vector<std::string_view> families;
  };
  std::vector<Setting> settings;
  for (const ModelInfo& model : all_models()) {
    for (const ModelOption& option : model.options) {
      auto found = std::find_if(settings.begin(), settings.end(), [&](const Setting& setting) {
        return setting.option.name == option.name && setting.option.meaning == option.meaning;
      });
      if (found == settings.end()) found = settings.insert(found, {option, {}});
      if (found->families.empty() || found->families.back() != model.family) {
        found->families.push_back(model.family);
      }
    }
  }
  std::string text;
  for (const Setting& setting : settings) {
    text += fmt::format("  {:<18}{} ({})\n", setting.option.name, setting.option.meaning,
                        joined(setting.families, ", "));
  }
  return text;
}

int run_models(bool as_json) {
  if (as_json) {
    print(models_json());
    return 0;
  }
  print(
      shown_main(model_table()) +
      fitted("\nSettings (--set NAME=VALUE); --columns model,settings shows their defaults\n" +
             settings_text() +
             "\nThe number of parameters is for the default settings, image size and classes.\n"));
  return 0;
}

}  // namespace

void add_models(Parser& program, Action& action) {
  auto as_json = std::make_shared<bool>(false);
  Parser* command = program.add_subcommand("models", "List the models and their settings");
  add_json_option(*command, *as_json);
  add_table_options(*command, kModelColumns);
  command->examples({"ridgeline models"});
  command->callback([as_json, &action] { action = [as_json] { return run_models(*as_json); }; });
}

}  // namespace ridgeline::cli
