// ridgeline export: a network's weights as a safetensors file that PyTorch can load.

#include <nlohmann/json.hpp>

#include "base/error.h"
#include "base/json_text.h"
#include "base/text.h"
#include "cli/command.h"
#include "cli/options.h"
#include "cli/output.h"
#include "cli/parser.h"
#include "cli/trained_network.h"
#include "train/export_weights.h"
#include "train/safetensors.h"

namespace ridgeline::cli {
namespace {

struct ExportOptions {
  NetworkOptions network;
  std::string out;
  bool json = false;
};

int run_export(const ExportOptions& options) {
  if (options.out.empty()) bad_input("no output file given; use --out FILE.safetensors");
  check_writable(options.out);
  const TrainedNetwork source = trained_network(options.network);
  StepSpec step;
  step.batch = 1;
  step.model = source.model;
  const StateDict dict =
      state_dict(evaluation_graph(step).parameters, source.model.name,
                 source.weights ? &*source.weights : nullptr,
                 static_cast<std::uint64_t>(options.network.run.seed), source.steps);
  std::map<std::string, std::string> metadata = {{"format", "pt"}, {"model", source.model.name}};
  if (!source.class_names.empty()) {
    metadata[kClassNames] = json_text(nlohmann::json(source.class_names));
  }
  write_safetensors(options.out, dict.tensors, metadata);
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
      "export", "Write a network's weights to a safetensors file, with PyTorch's names");
  add_network_options(*command, options->network, "MODEL,--model NAME");
  add_json_option(*command, options->json);
  command->add_option("--out FILE", options->out, "The file to write");
  command->examples({"ridgeline export --checkpoint run1 --best --out mnist_cnn.safetensors",
                     "ridgeline export mlp --weights mlp.pth --out mlp.safetensors"});
  command->callback([options, &action] { action = [options] { return run_export(*options); }; });
}

}  // namespace ridgeline::cli
