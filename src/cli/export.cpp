// ridgeline export: a network's weights as a safetensors file that PyTorch can load.

#include <CLI/CLI.hpp>
#include <nlohmann/json.hpp>

#include "base/error.h"
#include "base/text.h"
#include "cli/command.h"
#include "cli/options.h"
#include "cli/output.h"
#include "train/checkpoint.h"
#include "train/export_weights.h"
#include "train/safetensors.h"

namespace ridgeline::cli {
namespace {

struct ExportOptions {
  RunOptions run;
  std::string image;
  std::string weights, checkpoint, out;
  bool best = false, json = false;
};

// What is exported: the network and where its weights come from.
struct Source {
  ModelConfig model;
  std::optional<WeightFile> weights;
  std::string text;
  std::int64_t steps = 0;
};

// A checkpoint's file also holds the optimizer's state, which is no part of the network.
WeightFile only(std::span<const Parameter> parameters, WeightFile file) {
  std::erase_if(file.tensors, [&](const WeightTensor& tensor) {
    return std::none_of(parameters.begin(), parameters.end(),
                        [&](const Parameter& parameter) { return parameter.name == tensor.name; });
  });
  return file;
}

Source source_of(const ExportOptions& options) {
  Source source;
  if (!options.checkpoint.empty()) {
    Checkpoint checkpoint = options.best ? read_best_checkpoint(options.checkpoint)
                                         : read_last_checkpoint(options.checkpoint);
    if (!options.run.model.empty() && options.run.model != checkpoint.model.name) {
      bad_input("{}: is a checkpoint of {}, not of {}", options.checkpoint, checkpoint.model.name,
                options.run.model);
    }
    source.model = std::move(checkpoint.model);
    source.weights = std::move(checkpoint.tensors);
    source.steps = checkpoint.progress.result.steps;
    source.text = checkpoint.folder.string();
    return source;
  }
  apply(options.run);
  source.model = model_config(options.run);
  set_image(source.model, options.image);
  if (!options.weights.empty()) source.weights = open_weights(options.weights);
  source.text = options.weights.empty()
                    ? fmt::format("initial weights of seed {}", options.run.seed)
                    : options.weights;
  return source;
}

int run_export(const ExportOptions& options) {
  if (options.out.empty()) bad_input("no file to write given: --out FILE.safetensors");
  if (!options.weights.empty() && !options.checkpoint.empty()) {
    bad_input("--weights and --checkpoint exclude each other");
  }
  if (options.best && options.checkpoint.empty()) bad_input("--best needs --checkpoint DIR");
  check_writable(options.out);
  Source source = source_of(options);
  StepSpec step;
  step.batch = 1;
  step.model = source.model;
  const std::vector<Parameter> parameters = evaluation_graph(step).parameters;
  if (!options.checkpoint.empty()) source.weights = only(parameters, std::move(*source.weights));
  const StateDict dict =
      state_dict(parameters, source.model.name, source.weights ? &*source.weights : nullptr,
                 static_cast<std::uint64_t>(options.run.seed), source.steps);
  write_safetensors(options.out, dict.tensors, {{"format", "pt"}, {"model", source.model.name}});
  std::int64_t bytes = 0;
  for (const WeightTensor& tensor : dict.tensors) {
    bytes += static_cast<std::int64_t>(tensor.bytes.size());
  }
  if (options.json) {
    print(nlohmann::ordered_json{{"model", source.model.name},
                                 {"source", source.text},
                                 {"out", options.out},
                                 {"tensors", dict.tensors.size()},
                                 {"bytes", bytes}}
              .dump(2) +
          '\n');
  } else {
    print(fmt::format("model    {}\nsource   {}\nwritten  {}: {} tensors, {}\n", source.model.name,
                      source.text, options.out, dict.tensors.size(), bytes_text(bytes)));
  }
  return 0;
}

}  // namespace

void add_export(CLI::App& program, Action& action) {
  auto options = std::make_shared<ExportOptions>();
  CLI::App* command =
      program.add_subcommand("export", "Write a network's weights for PyTorch (safetensors)");
  command->add_option("MODEL,--model", options->run.model,
                      "Model, see 'ridgeline models'; a checkpoint tells its own");
  command->add_option("--set", options->run.settings, "Set an option of the model, repeatable")
      ->type_name("NAME=VALUE")
      ->expected(1)
      ->multi_option_policy(CLI::MultiOptionPolicy::TakeAll);
  command->add_option("--classes", options->run.classes, "Classes [the model's own]")
      ->type_name("N");
  command->add_option("--image", options->image, "Size of the images [the model's own]")
      ->type_name("CxHxW");
  command->add_option("--init", options->run.init, "Initial weights: pytorch or he")
      ->capture_default_str();
  command->add_option("--seed", options->run.seed, "Seed of the initial weights")
      ->capture_default_str();
  command
      ->add_option("--weights", options->weights,
                   "Take the weights of a .safetensors, .pth or .pt file")
      ->type_name("FILE");
  command->add_option("--checkpoint", options->checkpoint, "Take those of the last checkpoint")
      ->type_name("DIR");
  command->add_flag("--best", options->best, "Take the checkpoint with the best test accuracy");
  command->add_option("--out", options->out, "The file to write")->type_name("FILE");
  command->add_flag("--json", options->json, "Print one JSON document");
  command->footer(
      "Examples:\n"
      "  ridgeline export --checkpoint run1 --best --out mnist_cnn.safetensors\n"
      "  ridgeline export mlp --weights mlp.pth --out mlp.safetensors");
  command->callback([options, &action] { action = [options] { return run_export(*options); }; });
}

}  // namespace ridgeline::cli
