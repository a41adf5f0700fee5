// ridgeline infer: what a trained network sees in images.

#include <algorithm>
#include <cmath>
#include <fstream>
#include <nlohmann/json.hpp>
#include <numeric>

#include "base/error.h"
#include "base/text.h"
#include "cli/class_output.h"
#include "cli/command.h"
#include "cli/output.h"
#include "cli/parser.h"
#include "cli/trained_network.h"
#include "data/loader.h"
#include "train/inference_runner.h"

namespace ridgeline::cli {
namespace {

using Json = nlohmann::ordered_json;

struct InferOptions {
  NetworkOptions network;
  std::vector<std::string> images;
  std::string class_names;  // a file with a line for each class
  std::string normalize;
  std::int64_t top = 5;
  bool json = false;
};

struct Guess {
  std::int64_t label = 0;
  double probability = 0.0;
};

std::vector<Guess> best_guesses(std::span<const double> logits, std::size_t top) {
  std::vector<Guess> guesses(logits.size());
  const double largest = *std::max_element(logits.begin(), logits.end());
  double sum = 0.0;
  for (const double logit : logits) sum += std::exp(logit - largest);
  for (std::size_t i = 0; i < logits.size(); ++i) {
    guesses[i] = {static_cast<std::int64_t>(i), std::exp(logits[i] - largest) / sum};
  }
  std::stable_sort(guesses.begin(), guesses.end(),
                   [](const Guess& a, const Guess& b) { return a.probability > b.probability; });
  guesses.resize(std::min(top, guesses.size()));
  return guesses;
}

std::vector<std::string> read_names(const std::string& file, std::int64_t classes) {
  std::ifstream stream(file);
  if (!stream) bad_input("{}: cannot be read", file);
  std::vector<std::string> names;
  for (std::string line; std::getline(stream, line);) names.push_back(std::move(line));
  if (static_cast<std::int64_t>(names.size()) != classes) {
    bad_input("{}: {} lines, but the network has {} classes", file, names.size(), classes);
  }
  return names;
}

Dataset images_of(const InferOptions& options, const ModelConfig& model) {
  if (options.images.empty()) bad_input("no image given");
  Dataset data;
  data.name = "images";
  data.channels = model.channels;
  data.height = model.height;
  data.width = model.width;
  data.classes = static_cast<std::int32_t>(model.classes);
  data.photos = true;
  data.images = std::make_shared<FileImages>(std::filesystem::path(), options.images);
  data.labels.assign(options.images.size(), 0);
  data.image_numbers.resize(options.images.size());
  std::iota(data.image_numbers.begin(), data.image_numbers.end(), 0);
  return data;
}

int run_infer(const InferOptions& options) {
  const TrainedNetwork network = trained_network(options.network);
  if (options.top < 1) bad_input("--top {}: must be at least 1", options.top);
  const std::vector<std::string> names =
      options.class_names.empty() ? network.class_names
                                  : read_names(options.class_names, network.model.classes);
  const Dataset data = images_of(options, network.model);
  const RunOptions& run = options.network.run;
  std::unique_ptr<Device> device = make_device(run.device);
  StepSpec step;
  step.model = network.model;
  step.batch = std::min<std::int64_t>(data.count(), run.batch);
  step.precision = precision_of(run, *device);
  const std::string known =
      network.normalisation.empty() ? usual_normalisation(data) : network.normalisation;
  set_normalisation(step, options.normalize.empty() ? known : options.normalize);
  const PlanRequest request = plan_request(run, run.backend);
  check_inference_memory(*device, step, request);
  InferenceRunner runner(*device, request, step);
  runner.prepare(static_cast<std::uint64_t>(run.seed));
  if (network.weights) {
    runner.load(
        match_weights(runner.parameters(), *network.weights, {.model = network.model.name}));
  } else {
    message("warning: the network has its initial weights: give --weights or --checkpoint\n");
  }

  Json images = Json::array();
  std::string text;
  const auto tell = [&](const std::string& file, std::span<const double> logits) {
    Json guesses = Json::array();
    text += (text.empty() ? "" : "\n") + file + '\n';
    for (const Guess& guess : best_guesses(logits, static_cast<std::size_t>(options.top))) {
      const std::string name = class_name(names, guess.label);
      guesses.push_back(
          {{"class", guess.label}, {"name", name}, {"probability", guess.probability}});
      const bool named = name != fmt::format("{}", guess.label);
      text += fmt::format("  {:>7}  {}{}\n", percent_text(guess.probability), guess.label,
                          named ? "  " + name : "");
    }
    images.push_back({{"image", file}, {"top", std::move(guesses)}});
  };
  LoaderOptions loading;
  loading.batch = step.batch;
  loading.strict = true;
  Loader loader(data, loading);
  loader.start_epoch(0);
  while (const std::optional<Batch> batch = loader.next()) {
    runner.write_batch(batch->pixels);
    runner.run();
    const std::vector<double> logits = runner.logits();
    const auto classes = static_cast<std::size_t>(network.model.classes);
    for (std::size_t row = 0; row < batch->samples.size(); ++row) {
      tell(options.images[static_cast<std::size_t>(batch->samples[row])],
           std::span(logits).subspan(row * classes, classes));
    }
  }
  print(options.json
            ? Json{{"model", network.model.name}, {"images", std::move(images)}}.dump(2) + '\n'
            : text);
  return 0;
}

}  // namespace

void add_infer(Parser& program, Action& action) {
  auto options = std::make_shared<InferOptions>();
  Parser* command = program.add_subcommand("infer", "Tell what a trained network sees in images");
  add_network_options(*command, options->network, "--model");
  RunOptions& run = options->network.run;
  run.batch = 16;
  command->add_option("IMAGE", options->images, "JPEG or PNG files")->type_name("FILE...");
  command->add_option("--class-names", options->class_names, "A file with a line for each class")
      ->type_name("FILE");
  command->add_option("--normalize", options->normalize, "As in 'train' [the checkpoint's own]")
      ->type_name("NAME");
  command->add_option("--top", options->top, "Classes to show for each image")
      ->capture_default_str();
  command->add_option("--backend", run.backend,
                      "Provider, see 'ridgeline backends', or auto [cpu: native, cuda: auto]");
  add_device_options(*command, run);
  command->add_option("--threads", run.threads, "Threads; 0: one for each usable processor")
      ->capture_default_str();
  command->add_flag("--json", options->json, "Print one JSON document");
  command->footer(
      "Examples:\n"
      "  ridgeline infer cat.jpg dog.jpg --checkpoint run1 --best\n"
      "  ridgeline infer cat.jpg --model squeezenet1_1 --weights squeezenet1_1.safetensors "
      "--class-names imagenet.txt");
  command->callback([options, &action] { action = [options] { return run_infer(*options); }; });
}

}  // namespace ridgeline::cli
