// ridgeline describe: work, bytes and memory of a network, from the plan of a step; nothing runs.

#include <algorithm>
#include <array>
#include <charconv>
#include <filesystem>
#include <nlohmann/json.hpp>

#include "base/error.h"
#include "base/json_text.h"
#include "base/parse.h"
#include "base/text.h"
#include "cli/command.h"
#include "cli/describe_output.h"
#include "cli/options.h"
#include "cli/output.h"
#include "cli/parser.h"
#include "cli/tables.h"
#include "inspect/network_description.h"
#include "inspect/network_document.h"
#include "onnx/network.h"
#include "report/exhibits/figure_kinds.h"
#include "report/pictures.h"
#include "train/match_weights.h"

namespace ridgeline::cli {
namespace {

struct DescribeOptions {
  DescribeRequest request;
  OutputOptions output;
  std::string batches = "1";
  std::string memory;
  std::string draw, draw_view = "network";
  std::string graph;
  bool per_layer = false;
};

std::vector<std::int64_t> parse_batches(const std::string& text) {
  std::vector<std::int64_t> batches;
  for (const std::string_view piece : pieces_of(text, ",")) {
    batches.push_back(number_in<std::int32_t>(piece).value_or(0));
    if (batches.back() < 1) {
      bad_input("--batch '{}': expected numbers of at least 1, such as 1,32,256", text);
    }
  }
  return batches;
}

// "8GiB", "500 MB", "1.5GiB", "1000000".
std::int64_t parse_memory(const std::string& text) {
  struct Unit {
    std::string_view name;
    double bytes;
  };
  static constexpr std::array<Unit, 10> kUnits = {{{"", 1.0},
                                                   {"b", 1.0},
                                                   {"kb", 1e3},
                                                   {"mb", 1e6},
                                                   {"gb", 1e9},
                                                   {"tb", 1e12},
                                                   {"kib", 1024.0},
                                                   {"mib", 1048576.0},
                                                   {"gib", 1073741824.0},
                                                   {"tib", 1099511627776.0}}};
  double number = 0.0;
  const auto [end, error] = std::from_chars(text.data(), text.data() + text.size(), number);
  std::string unit;
  for (const char* c = end; c != text.data() + text.size(); ++c) {
    if (*c != ' ') unit += static_cast<char>(std::tolower(static_cast<unsigned char>(*c)));
  }
  for (const Unit& known : kUnits) {
    const double bytes = number * known.bytes;
    if (error == std::errc() && known.name == unit && bytes >= 1.0 && bytes < 9e18) {
      return static_cast<std::int64_t>(bytes);
    }
  }
  bad_input("--memory '{}': expected a size such as 8GiB, 500MB or 1.5GiB", text);
}

// Every op of a training step, coloured by phase.
report::Figure step_figure(const Graph& graph, const std::string& model) {
  report::Figure figure{.id = "step",
                        .title = model + ": every op of a training step",
                        .kind = report::FigureKind::diagram};
  for (std::size_t id = 0; id < graph.nodes().size(); ++id) {
    const Node& node = graph.nodes()[id];
    const std::string name = fmt::format("{}", id);
    figure.nodes.push_back(
        {name, std::string(name_of(node.kind)),
         fmt::format("{} {}", node.layer, graph.value(node.outputs[0]).spec.shape.text()),
         std::string(name_of(node.phase)), 0.0});
    for (const ValueId input : node.inputs) {
      const NodeId producer = graph.value(input).producer;
      if (producer != kNoNode) figure.edges.push_back({fmt::format("{}", producer), name});
    }
  }
  return figure;
}

// The tensors of a weight file, and the models that they fit.
int describe_weights(const std::string& file, bool json) {
  const WeightFile weights = open_weights(file);
  const std::vector<std::string> models = models_that_fit(weights);
  TextTable table({"tensor", "shape", "type"}, "lll");
  nlohmann::ordered_json list = nlohmann::ordered_json::array();
  std::int64_t bytes = 0;
  for (const WeightTensor& tensor : weights.tensors) {
    table.add_row({tensor.name, dims_text(tensor.dims), std::string(name_of(tensor.type))});
    list.push_back({{"name", tensor.name}, {"shape", tensor.dims}, {"type", name_of(tensor.type)}});
    bytes += std::ssize(tensor.bytes);
  }
  if (json) {
    print(json_document(nlohmann::ordered_json{{"file", file},
                                               {"format", weights.format},
                                               {"models", models},
                                               {"metadata", weights.metadata},
                                               {"tensors", std::move(list)}}));
    return 0;
  }
  print(fmt::format("{}: {}, {} tensors, {}\n\n{}\n{}\n", file, weights.format,
                    weights.tensors.size(), bytes_text(bytes), shown(table),
                    models.empty() ? "It fits no model of 'ridgeline models'"
                                   : "It fits " + joined(models, " or ")));
  return 0;
}

// Every node of an ONNX file that is not supported. The exit code is that of wrong input.
int describe_refusals(const std::string& file, const onnx::Survey& survey, bool json) {
  TextTable table({"node", "op", "opset", "why"}, "llrl");
  table.important({"node", "op", "why", "opset"});
  nlohmann::ordered_json list = nlohmann::ordered_json::array();
  for (const onnx::Refusal& refusal : survey.refusals) {
    table.add_row({refusal.node, refusal.op, fmt::format("{}", refusal.opset), refusal.reason});
    list.push_back({{"node", refusal.node},
                    {"op", refusal.op},
                    {"opset", refusal.opset},
                    {"reason", refusal.reason}});
  }
  if (json) {
    print(json_document(nlohmann::ordered_json{{"file", file},
                                               {"opset", survey.opset},
                                               {"producer", survey.producer},
                                               {"nodes", survey.nodes},
                                               {"not_supported", std::move(list)}}));
  } else {
    const bool unknown = std::ranges::any_of(survey.refusals, [](const onnx::Refusal& refusal) {
      return refusal.reason == onnx::kUnknownOp;
    });
    print(fmt::format("{}: opset {}, {} nodes, {} of them not supported\n\n{}{}", file,
                      survey.opset, survey.nodes, survey.refusals.size(), shown(table),
                      unknown ? fitted("\n" + survey.supported + "\n") : ""));
  }
  return 2;
}

int run_describe(const DescribeOptions& options) {
  std::error_code ignored;
  if (onnx::is_network_file(options.request.run.model)) {
    const onnx::Survey survey = onnx::survey_file(options.request.run.model);
    if (!survey.refusals.empty()) {
      return describe_refusals(options.request.run.model, survey, options.output.json);
    }
  }
  const bool is_model = std::ranges::any_of(all_models(), [&](const ModelInfo& model) {
    return model.name == options.request.run.model;
  });
  const bool is_file = onnx::is_network_file(options.request.run.model);
  if (!is_model && !is_file &&
      std::filesystem::is_regular_file(options.request.run.model, ignored)) {
    return describe_weights(options.request.run.model, options.output.json);
  }
  DescribeRequest request = options.request;
  request.batches = parse_batches(options.batches);
  if (!options.memory.empty()) request.memory_limit = parse_memory(options.memory);
  static constexpr std::array<std::string_view, 2> kViews = {"network", "step"};
  const bool whole_step = choice_of("--draw-view", options.draw_view, kViews) == 1;
  check_writable(options.output.csv);
  report::check_picture(options.draw);
  check_writable(options.graph);
  const Description description = describe_step(request);
  if (!options.draw.empty()) {
    const std::string& name = description.model.name;
    report::save_picture(whole_step
                             ? step_figure(*description.plan->graph, name)
                             : report::network_figure(describe_network(description.model), name),
                         options.draw);
  }
  if (!options.graph.empty()) {
    const NetworkForm form{.batch = request.batches[0], .freeze = request.run.freeze};
    write_file_atomically(options.graph,
                          json_text(network_document(description.model, form)) + '\n');
  }
  if (!options.output.csv.empty()) {
    write_file_atomically(options.output.csv, layers_csv(description));
  }
  print(options.output.json ? description_json(description, options.per_layer)
                            : description_text(description, options.per_layer));
  return 0;
}

}  // namespace

void add_describe(Parser& program, Action& action) {
  auto options = std::make_shared<DescribeOptions>();
  Parser* command = program.add_subcommand(
      "describe", "Show a model's work, bytes moved and memory, without running it");
  RunOptions& run = options->request.run;
  add_model_option(
      *command, run.model, "MODEL,--model NAME",
      "Model to describe: a name that 'ridgeline models' lists, or an .onnx file; or a "
      "weight file, whose tensors are listed");
  add_network_settings(*command, run, "the model's");
  command->add_option("--image CxHxW", options->request.image, "Image size [default: the model's]");
  command->heading(kTrainingHeading);
  command->add_option("--batch LIST", options->batches,
                      "Samples per step; several with commas between them");
  add_optimizer_state_options(*command, options->request.optimizer);
  add_backend_option(*command, run.backend, "--backend NAME",
                     "Backend, or auto; 'ridgeline backends' lists them [default: native on cpu, "
                     "auto on cuda]");
  add_device_options(*command, run);
  add_step_options(*command, run);
  add_threads_option(*command, run.threads);
  command->add_option("--memory SIZE", options->memory,
                      "Find the largest batch that fits into this much memory, such as 8GiB "
                      "[default: what is free]");
  add_output_options(*command, options->output, "Write the table of layers");
  add_table_options(*command, layer_columns());
  command->add_flag("--per-layer", options->per_layer, "Also show a table of the layers");
  command->add_option("--draw FILE", options->draw, "Draw the network as an SVG, PNG or PDF file");
  command
      ->add_option("--draw-view NAME", options->draw_view,
                   "What to draw: network, or step (every op of a training step)")
      ->values({"network", "step"});
  command->add_option("--graph FILE", options->graph,
                      "Write the network as JSON, for peers on other machines (docs/peers.md)");
  command->examples({"ridgeline describe resnet50 --batch 1,32,256 --memory 8GiB",
                     "ridgeline describe mobilenet_v2 --per-layer --csv layers.csv",
                     "ridgeline describe resnet18.pth", "ridgeline describe mine.onnx --per-layer",
                     "ridgeline describe resnet18 --draw resnet18.svg",
                     "ridgeline describe mobilenet_v2 --graph mobilenet_v2.json"});
  command->callback([options, &action] { action = [options] { return run_describe(*options); }; });
}

}  // namespace ridgeline::cli
