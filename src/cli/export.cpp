// ridgeline export: a network's weights as a safetensors file that PyTorch can load, or the network
// itself as an ONNX file.

#include <nlohmann/json.hpp>

#include "base/error.h"
#include "base/json_text.h"
#include "base/text.h"
#include "cli/command.h"
#include "cli/options.h"
#include "cli/output.h"
#include "cli/parser.h"
#include "cli/trained_network.h"
#include "onnx/network.h"
#include "train/export_onnx.h"
#include "train/export_weights.h"
#include "train/safetensors.h"

namespace ridgeline::cli {
namespace {

struct ExportOptions {
  NetworkOptions network;
  std::string out;
  bool fold_norms = false;
  bool json = false;
};

void write_weights(const ExportOptions& options, const TrainedNetwork& source,
                   const StateDict& dict) {
  std::map<std::string, std::string> metadata = {{"format", "pt"}, {"model", source.model.name}};
  if (!source.class_names.empty()) {
    metadata[kClassNames] = json_text(nlohmann::json(source.class_names));
  }
  write_safetensors(options.out, dict.tensors, metadata);
}

int run_export(const ExportOptions& options) {
  if (options.out.empty()) {
    bad_input("no output file given; use --out FILE.safetensors or --out FILE.onnx");
  }
  const bool onnx_file = onnx::is_network_file(options.out);
  if (options.fold_norms && !onnx_file) {
    bad_input("--fold-norms is for .onnx files: weights by themselves stay as they are");
  }
  check_writable(options.out);
  const TrainedNetwork source = trained_network(options.network);
  StepSpec step;
  step.batch = 1;
  step.model = source.model;
  const StateDict dict =
      state_dict(evaluation_graph(step).parameters, source.model.name,
                 source.weights ? &*source.weights : nullptr,
                 static_cast<std::uint64_t>(options.network.run.seed), source.steps);
  if (onnx_file) {
    write_onnx({.model = source.model,
                .weights = &dict,
                .class_names = source.class_names,
                .fold_norms = options.fold_norms},
               options.out);
  } else {
    write_weights(options, source, dict);
  }
  std::int64_t bytes = 0;
  for (const WeightTensor& tensor : dict.tensors) {
    bytes += static_cast<std::int64_t>(tensor.bytes.size());
  }
  if (options.json) {
    print(json_document(nlohmann::ordered_json{{"model", source.model.name},
                                               {"source", source.source},
                                               {"out", options.out},
                                               {"tensors", dict.tensors.size()},
                                               {"bytes", bytes}}));
  } else {
    print(fmt::format("model    {}\nsource   {}\nwritten  {}: {} tensors, {}\n", source.model.name,
                      source.source, options.out, dict.tensors.size(), bytes_text(bytes)));
  }
  return 0;
}

}  // namespace

void add_export(Parser& program, Action& action) {
  auto options = std::make_shared<ExportOptions>();
  Parser* command = program.add_subcommand(
      "export",
      "Write a network's weights to a safetensors file, with PyTorch's names, or the whole network "
      "to an .onnx file");
  add_network_options(*command, options->network, "MODEL,--model NAME");
  add_json_option(*command, options->json);
  command->add_option("--out FILE", options->out,
                      "The file to write: .onnx for the network, else its weights as safetensors");
  command->add_flag(
      "--fold-norms", options->fold_norms,
      "In an .onnx file, fold batch norms into the convolutions before them and leave "
      "out what only training needs");
  command->examples(
      {"ridgeline export --checkpoint run1 --best --out mnist_cnn.safetensors",
       "ridgeline export mlp --weights mlp.pth --out mlp.safetensors",
       "ridgeline export --checkpoint run1 --best --fold-norms --out mnist_cnn.onnx"});
  command->callback([options, &action] { action = [options] { return run_export(*options); }; });
}

}  // namespace ridgeline::cli
