// ridgeline eval: how well a trained network does on data.

#include <algorithm>
#include <array>
#include <nlohmann/json.hpp>

#include "base/error.h"
#include "base/json_text.h"
#include "base/parallel.h"
#include "base/text.h"
#include "cli/class_output.h"
#include "cli/command.h"
#include "cli/options.h"
#include "cli/output.h"
#include "cli/parser.h"
#include "cli/progress.h"
#include "cli/tables.h"
#include "cli/trained_network.h"
#include "data/catalog.h"
#include "data/image_folder.h"
#include "lab/describe_run.h"
#include "train/evaluator.h"

namespace ridgeline::cli {
namespace {

using Json = nlohmann::ordered_json;

constexpr std::int64_t kWidestMatrix = 30;  // classes whose matrix a terminal can show

struct EvalOptions {
  NetworkOptions network;
  std::string data = "fashion-mnist", part = "test";
  std::string normalize;  // empty: the checkpoint's, or what is usual for the data
  std::optional<std::int64_t> limit;
  int workers = 0;
  std::string decoder = "auto";
  bool strict = false, per_class = false, confusion = false, json = false;
};

Dataset load_part(const EvalOptions& options, ModelConfig& model) {
  static constexpr std::array<std::string_view, 2> kParts = {"train", "test"};
  const bool train = choice_of("--part", options.part, kParts) == 0;
  LoadOptions load;
  load.classes = static_cast<std::int32_t>(model.classes);
  load.seed = static_cast<std::uint64_t>(options.network.run.seed);
  if (!options.network.image.empty() || !options.network.checkpoint.empty()) {
    load.image = {static_cast<int>(model.height), static_cast<int>(model.width)};
  }
  Split split = load_dataset(options.data, load);
  if (!train && split.test.empty()) {
    message("note: the data has no test part; the evaluation uses all of it\n");
  }
  Dataset data = std::move(train || split.test.empty() ? split.train : split.test);
  if (!split.skipped.empty()) message("note: " + skipped_text(split.skipped) + '\n');
  if (options.limit) {
    const std::string note = limit_note(data, *options.limit);
    if (!note.empty()) message(note + '\n');
    data = limit(std::move(data), *options.limit);
  }
  if (data.classes > model.classes) {
    bad_input("{}: has {} classes, but the network has {}", data.name, data.classes, model.classes);
  }
  if (data.classes < model.classes) {
    message(fmt::format(
        "warning: the network has {} classes, the data {}: labels 0 to {} are compared with the "
        "network's first classes, which may mean something else\n",
        model.classes, data.classes, data.classes - 1));
  }
  if (data.channels != model.channels && !options.network.checkpoint.empty()) {
    bad_input("{}: the images have {} channels, but the network was trained on {}", data.name,
              data.channels, model.channels);
  }
  model.channels = data.channels;
  model.height = data.height;
  model.width = data.width;
  return data;
}

std::string eval_text(const EvalOptions& options, const Evaluator& evaluator,
                      const TrainedNetwork& network, const Dataset& data, const Evaluation& result,
                      const ConfusionMatrix& matrix, std::span<const std::string> names) {
  std::string text = fmt::format("model      {}\nweights    {}\ndata       {}\ninput      {}\n",
                                 network.model.name, network.source, data.text(),
                                 normalisation_text(evaluator.config().step));
  text += fmt::format("\ntop-1      {}\ntop-5      {}\nloss       {:.4f}\n",
                      percent_text(result.accuracy), percent_text(result.top5), result.loss);
  text += fmt::format(
      "samples    {} in {:.2f} s, {} per second\n", count_text(result.samples), result.seconds,
      count_text(std::llround(static_cast<double>(result.samples) / result.seconds)));
  if (options.per_class) text += '\n' + per_class_text(matrix, names);
  if (options.confusion && matrix.classes() <= kWidestMatrix) {
    text += '\n' + confusion_text(matrix, names);
  } else if (options.confusion) {
    text += fmt::format(
        "\nA confusion matrix of {} classes is too wide for a terminal; --json has it\n",
        matrix.classes());
  }
  return text;
}

void tell_broken(const std::vector<std::string>& broken) {
  if (broken.empty()) return;
  message(fmt::format("warning: {} broken images were replaced by other images:\n  {}\n",
                      broken.size(), listed(broken, "\n  ")));
}

int run_eval(const EvalOptions& options) {
  TrainedNetwork network = trained_network(options.network);
  if (options.limit && *options.limit < 1) {
    bad_input("--limit {}: must be at least 1", *options.limit);
  }
  const int workers = checked_workers(options.workers);
  std::unique_ptr<Device> device = make_device(options.network.run.device);
  const Dataset data = load_part(options, network.model);
  EvaluatorConfig config;
  config.step.model = network.model;
  config.step.batch = options.network.run.batch;
  config.plan = plan_request(options.network.run, options.network.run.backend);
  config.step.precision = precision_of(options.network.run, *device);
  config.seed = static_cast<std::uint64_t>(options.network.run.seed);
  config.workers = options.workers > 0 ? workers : thread_count();
  config.decoder = decoder_of(options.decoder, data, *device);
  config.strict = options.strict;
  const std::string known =
      network.normalisation.empty() ? usual_normalisation(data) : network.normalisation;
  set_normalisation(config.step, options.normalize.empty() ? known : options.normalize);

  Evaluator evaluator(config, data, std::move(device));
  if (network.weights) {
    check_finite(*network.weights);
    evaluator.runner().load(match_weights(evaluator.runner().parameters(), *network.weights,
                                          {.model = network.model.name}));
  } else if (network.model.source) {
    check_finite(evaluator.runner().parameters(), network.model.source->path());
  }
  ConfusionMatrix matrix(network.model.classes);
  ProgressBar bar;
  const Evaluation result = evaluator.evaluate(
      [&](std::int64_t sample, std::int32_t label, std::span<const double> logits) {
        matrix.add(logits, {&label, 1});
        bar.show(sample + 1, data.count(), "sample");
      });
  bar.clear();
  const auto& names = data.class_names.empty() ? network.class_names : data.class_names;
  const std::vector<std::string> broken = evaluator.broken_images();
  tell_broken(broken);
  if (!options.json) {
    print(eval_text(options, evaluator, network, data, result, matrix, names));
    return 0;
  }
  Json document = {{"model", network.model.name}, {"weights", network.source},
                   {"data", data.name},           {"backend", config.plan.backend},
                   {"top1", result.accuracy},     {"top5", result.top5},
                   {"loss", result.loss},         {"samples", result.samples},
                   {"seconds", result.seconds},   {"broken_images", broken}};
  const Identity identity = describe_run({.kind = "evaluation",
                                          .step = config.step,
                                          .plan = config.plan,
                                          .device = options.network.run.device,
                                          .threads = thread_count(),
                                          .data = data.name,
                                          .data_samples = data.count(),
                                          .loader = true,
                                          .workers = config.workers,
                                          .decoder = config.decoder,
                                          .weights = options.network.weights});
  document["work"] = to_json(identity.work);
  document["executor"] = to_json(identity.executor);
  if (options.per_class || options.confusion) document["confusion"] = confusion_json(matrix, names);
  print(json_document(document));
  return 0;
}

}  // namespace

void add_eval(Parser& program, Action& action) {
  auto options = std::make_shared<EvalOptions>();
  Parser* command =
      program.add_subcommand("eval", "Measure the accuracy of a trained network on a dataset");
  add_network_options(*command, options->network, "MODEL,--model NAME");
  RunOptions& run = options->network.run;
  command->heading(kDataHeading);
  command->add_option("--data NAME", options->data, "Any data that 'train --data' accepts");
  command->add_option("--part NAME", options->part, "Part of the data: test or train")
      ->values({"test", "train"});
  command->add_option("--limit N", options->limit,
                      "Use a fixed random sample of N images, evenly over the classes");
  command->add_option("--normalize NAME", options->normalize,
                      "Pixel scaling, as in 'train' [default: the checkpoint's]");
  command->add_option("--workers N", options->workers,
                      "Threads that decode images; 0 takes as many as --threads");
  add_decoder_option(*command, options->decoder);
  command->add_flag("--strict", options->strict,
                    "Stop at the first broken image instead of replacing it");
  add_backend_option(*command, run.backend, "--backend NAME",
                     "Backend, or auto; 'ridgeline backends' lists them [default: native on cpu, "
                     "auto on cuda]");
  add_device_options(*command, run);
  command->add_option("--batch N", run.batch, "Samples per step");
  add_threads_option(*command, run.threads);
  add_json_option(*command, options->json);
  add_table_options(*command);
  command->add_flag("--per-class", options->per_class, "Also show precision and recall per class");
  command->add_flag("--confusion", options->confusion, "Also show the confusion matrix");
  command->examples(
      {"ridgeline eval squeezenet1_1 --weights squeezenet1_1.safetensors --data photos/",
       "ridgeline eval --checkpoint run1 --best --data mnist --confusion"});
  command->callback([options, &action] { action = [options] { return run_eval(*options); }; });
}

}  // namespace ridgeline::cli
