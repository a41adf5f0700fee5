#include "cli/trained_network.h"

#include <algorithm>
#include <nlohmann/json.hpp>

#include "base/error.h"
#include "cli/options.h"
#include "cli/parser.h"
#include "onnx/network.h"
#include "train/checkpoint.h"
#include "train/match_weights.h"

namespace ridgeline::cli {
namespace {

std::vector<Parameter> parameters_of(const ModelConfig& model) {
  StepSpec step;
  step.batch = 1;
  step.model = model;
  return evaluation_graph(step).parameters;
}

// A checkpoint's file also holds the optimizer's state, which is no part of the network.
void keep_parameters(WeightFile& file, std::span<const Parameter> parameters) {
  std::erase_if(file.tensors, [&](const WeightTensor& tensor) {
    return std::none_of(parameters.begin(), parameters.end(),
                        [&](const Parameter& parameter) { return parameter.name == tensor.name; });
  });
}

// The network that a checkpoint's training took from a file: that file must still be as it was.
void take_file(Checkpoint& checkpoint, const std::string& path) {
  if (!onnx::is_network_file(path) || !std::filesystem::exists(path)) {
    bad_input("{}: the network of this checkpoint came from {}; give the path of that file",
              checkpoint.folder.string(), checkpoint.model_file);
  }
  checkpoint.model.source = onnx::named_config(path).source;
  if (checkpoint.model.source->hash() != checkpoint.model_hash) {
    bad_input("{}: the network of this checkpoint came from {}, and {} has other contents",
              checkpoint.folder.string(), checkpoint.model_file, path);
  }
}

TrainedNetwork from_checkpoint(const NetworkOptions& options) {
  Checkpoint checkpoint = options.best ? read_best_checkpoint(options.checkpoint)
                                       : read_last_checkpoint(options.checkpoint);
  const std::string& asked = options.run.model;
  if (!checkpoint.model_hash.empty()) {
    take_file(checkpoint, asked.empty() ? checkpoint.model_file : asked);
  } else if (!asked.empty() && asked != checkpoint.model.name) {
    bad_input("{}: is a checkpoint of {}, not of {}", options.checkpoint, checkpoint.model.name,
              asked);
  }
  TrainedNetwork network;
  network.model = std::move(checkpoint.model);
  network.weights = std::move(checkpoint.tensors);
  keep_parameters(*network.weights, parameters_of(network.model));
  network.steps = checkpoint.progress.result.steps;
  network.source = checkpoint.folder.string();
  network.class_names = std::move(checkpoint.class_names);
  // Kept as means/deviations.
  network.normalisation = checkpoint.settings["normalisation"];
  std::replace(network.normalisation.begin(), network.normalisation.end(), '/', ',');
  if (network.normalisation == ",") network.normalisation = "unit";
  return network;
}

void take_classes(ModelConfig& model, const WeightFile& file) {
  const std::string head = head_layer(parameters_of(model)) + ".weight";
  for (const WeightTensor& tensor : file.tensors) {
    if (modern_name(tensor.name) == head && !tensor.dims.empty() && tensor.dims[0] > 1) {
      model.classes = tensor.dims[0];
    }
  }
}

// Those that `export` wrote; none where the file has others, or not one for each class.
std::vector<std::string> names_in(const WeightFile& file, std::int64_t classes) {
  const auto found = file.metadata.find(kClassNames);
  if (found == file.metadata.end()) return {};
  const auto list = nlohmann::json::parse(found->second, nullptr, false);
  const bool texts = list.is_array() && std::all_of(list.begin(), list.end(), [](const auto& name) {
                       return name.is_string();
                     });
  if (!texts || std::ssize(list) != classes) return {};
  return list.get<std::vector<std::string>>();
}

}  // namespace

void add_network_options(Parser& command, NetworkOptions& options, const char* names) {
  RunOptions& run = options.run;
  add_model_option(
      command, run.model, names,
      "Model to use: a name that 'ridgeline models' lists, or an .onnx file. Not needed "
      "with --checkpoint");
  add_network_settings(command, run, "those of the weights");
  add_init_option(command, run);
  command.add_option("--image HxW", options.image, "Image size [default: the model's]");
  command.add_option("--seed N", run.seed, "Random seed of the initial weights");
  command.add_option("--weights FILE", options.weights,
                     "Load the weights of a .safetensors, .pth or .pt file");
  command.add_option("--checkpoint DIR", options.checkpoint,
                     "Load the last checkpoint that 'train --checkpoint DIR' saved");
  command.add_flag("--best", options.best,
                   "Load the checkpoint with the best test accuracy instead of the last one");
}

TrainedNetwork trained_network(const NetworkOptions& options) {
  if (!options.weights.empty() && !options.checkpoint.empty()) {
    bad_input("--weights and --checkpoint cannot be combined");
  }
  if (options.best && options.checkpoint.empty()) bad_input("--best needs --checkpoint DIR");
  TrainedNetwork network;
  if (!options.checkpoint.empty()) {
    network = from_checkpoint(options);
    RunOptions run = options.run;
    run.model = network.model.name;
    apply(run);
    set_image(network.model, options.image);
    return network;
  }
  apply(options.run);
  network.model = model_config(options.run);
  set_image(network.model, options.image);
  network.source = fmt::format("initial weights of seed {}", options.run.seed);
  if (const auto& file = network.model.source) {
    network.source = fmt::format("{} (ONNX)", file->path());
    network.class_names = file->class_names();
  }
  if (options.weights.empty()) return network;
  network.weights = open_weights(options.weights);
  network.source = fmt::format("{} ({})", options.weights, network.weights->format);
  if (!options.run.classes) take_classes(network.model, *network.weights);
  network.class_names = names_in(*network.weights, network.model.classes);
  return network;
}

}  // namespace ridgeline::cli
