// ridgeline infer: classifies images with a trained network.

#include <algorithm>
#include <cmath>
#include <fstream>
#include <nlohmann/json.hpp>
#include <numeric>

#include "base/error.h"
#include "base/json_text.h"
#include "base/text.h"
#include "base/utf8.h"
#include "cli/class_output.h"
#include "cli/command.h"
#include "cli/options.h"
#include "cli/output.h"
#include "cli/parser.h"
#include "cli/trained_network.h"
#include "data/loader.h"
#include "data/npy.h"
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
  bool logits = false, json = false;
};

bool is_npy(const std::string& file) { return file.ends_with(".npy"); }

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
  for (std::string line; std::getline(stream, line);) names.push_back(valid_utf8(line));
  if (static_cast<std::int64_t>(names.size()) != classes) {
    bad_input("{}: has {} line(s), but the network has {} classes", file, names.size(), classes);
  }
  return names;
}

Dataset images_of(const InferOptions& options, const ModelConfig& model) {
  if (options.images.empty()) bad_input("no image given; name JPEG, PNG or .npy files");
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

// What the network says about each input, as text and as JSON.
class Answers {
 public:
  Answers(const InferOptions& options, std::vector<std::string> names)
      : options_(options), names_(std::move(names)) {}

  void add(const std::string& file, std::span<const double> logits) {
    if (!std::all_of(logits.begin(), logits.end(), [](double v) { return std::isfinite(v); })) {
      fail("{}: the network's output is not finite", file);
    }
    Json guesses = Json::array();
    text_ += (text_.empty() ? "" : "\n") + file + '\n';
    for (const Guess& guess : best_guesses(logits, static_cast<std::size_t>(options_.top))) {
      guesses.push_back({{"class", guess.label},
                         {"name", class_name(names_, guess.label)},
                         {"probability", guess.probability}});
      if (!options_.logits) add_line(percent_text(guess.probability), guess.label);
    }
    images_.push_back({{"image", file}, {"top", std::move(guesses)}});
    if (!options_.logits) return;
    images_.back()["logits"] = Json(std::vector<double>(logits.begin(), logits.end()));
    for (std::size_t i = 0; i < logits.size(); ++i) {
      add_line(fmt::format("{:.9g}", logits[i]), static_cast<std::int64_t>(i));
    }
  }

  void print_all(const std::string& model) {
    const Json document = {{"model", model}, {"images", std::move(images_)}};
    print(options_.json ? json_document(document) : text_);
  }

 private:
  void add_line(const std::string& value, std::int64_t label) {
    const std::string name = class_name(names_, label), number = fmt::format("{}", label);
    text_ += fmt::format("  {:>7}  {}{}\n", value, number, name != number ? "  " + name : "");
  }

  const InferOptions& options_;
  std::vector<std::string> names_;
  Json images_ = Json::array();
  std::string text_;
};

// The inputs of .npy files, one after another, as the network takes them.
struct Tensors {
  std::vector<std::string> names;  // "x.npy", or "x.npy[3]" of one that holds several
  std::vector<float> values;
};

Tensors tensors_of(const InferOptions& options, const ModelConfig& model) {
  Tensors tensors;
  const std::vector<std::int64_t> wanted = {model.channels, model.height, model.width};
  for (const std::string& file : options.images) {
    if (!is_npy(file)) bad_input("{}: images and .npy files cannot be mixed", file);
    const NpyArray array = read_npy(file);
    std::vector<std::int64_t> dims = array.dims;
    const std::int64_t rows = dims.size() == 4 ? dims[0] : 1;
    if (dims.size() == 4) dims.erase(dims.begin());
    if (dims != wanted || rows < 1) {
      bad_input(
          "{}: has shape {}; the network takes {}, or a stack of these (--image HxW changes the "
          "size)",
          file, dims_text(array.dims), dims_text(wanted));
    }
    for (std::int64_t row = 0; row < rows; ++row) {
      tensors.names.push_back(rows == 1 ? file : fmt::format("{}[{}]", file, row));
    }
    tensors.values.insert(tensors.values.end(), array.values.begin(), array.values.end());
  }
  return tensors;
}

void infer_tensors(const Tensors& tensors, InferenceRunner& runner, Answers& answers) {
  const std::size_t size = tensors.values.size() / tensors.names.size();
  const auto batch = static_cast<std::size_t>(runner.batch());
  for (std::size_t first = 0; first < tensors.names.size(); first += batch) {
    const std::size_t rows = std::min(batch, tensors.names.size() - first);
    runner.write_tensor(std::span(tensors.values).subspan(first * size, rows * size));
    runner.run();
    const std::vector<double> logits = runner.logits();
    const std::size_t classes = logits.size() / batch;
    for (std::size_t row = 0; row < rows; ++row) {
      answers.add(tensors.names[first + row], std::span(logits).subspan(row * classes, classes));
    }
  }
}

void infer_images(const Dataset& data, const InferOptions& options, InferenceRunner& runner,
                  Answers& answers) {
  Loader loader(data, {.batch = runner.batch(), .strict = true});
  loader.start_epoch(0);
  while (const std::optional<Batch> batch = loader.next()) {
    runner.write_batch(batch->pixels);
    runner.run();
    const std::vector<double> logits = runner.logits();
    const auto classes = static_cast<std::size_t>(data.classes);
    for (std::size_t row = 0; row < batch->samples.size(); ++row) {
      answers.add(options.images[static_cast<std::size_t>(batch->samples[row])],
                  std::span(logits).subspan(row * classes, classes));
    }
  }
}

int run_infer(const InferOptions& options) {
  const TrainedNetwork network = trained_network(options.network);
  if (options.top < 1) bad_input("--top {}: must be at least 1", options.top);
  Answers answers(options, options.class_names.empty()
                               ? network.class_names
                               : read_names(options.class_names, network.model.classes));
  const Dataset data = images_of(options, network.model);
  const RunOptions& run = options.network.run;
  std::unique_ptr<Device> device = make_device(run.device);
  StepSpec step;
  step.model = network.model;
  step.tensor_input = is_npy(options.images[0]);
  Tensors tensors;
  if (step.tensor_input) tensors = tensors_of(options, network.model);
  step.batch = std::min(step.tensor_input ? std::ssize(tensors.names) : data.count(), run.batch);
  step.precision = precision_of(run, *device);
  const std::string known =
      network.normalisation.empty() ? usual_normalisation(data) : network.normalisation;
  set_normalisation(step, options.normalize.empty() ? known : options.normalize);
  const PlanRequest request = plan_request(run, run.backend);
  check_inference_memory(*device, step, request);
  InferenceRunner runner(*device, request, step);
  runner.prepare(static_cast<std::uint64_t>(run.seed));
  if (network.weights) {
    check_finite(*network.weights);
    runner.load(
        match_weights(runner.parameters(), *network.weights, {.model = network.model.name}));
  } else if (network.model.source) {
    check_finite(runner.parameters(), network.model.source->path());
  } else {
    message("warning: the network is untrained; use --weights or --checkpoint\n");
  }
  if (step.tensor_input) {
    infer_tensors(tensors, runner, answers);
  } else {
    infer_images(data, options, runner, answers);
  }
  answers.print_all(network.model.name);
  return 0;
}

}  // namespace

void add_infer(Parser& program, Action& action) {
  auto options = std::make_shared<InferOptions>();
  Parser* command = program.add_subcommand("infer", "Classify images with a trained network");
  command->heading("Images");
  command->add_option("IMAGE", options->images,
                      "JPEG or PNG files, or .npy files with the network's input");
  add_network_options(*command, options->network, "--model NAME");
  RunOptions& run = options->network.run;
  run.batch = 16;
  command->add_option("--class-names FILE", options->class_names,
                      "Text file with the name of each class, one per line");
  command->add_option("--normalize NAME", options->normalize,
                      "Pixel scaling, as in 'train' [default: the checkpoint's]");
  add_backend_option(*command, run.backend, "--backend NAME",
                     "Backend, or auto; 'ridgeline backends' lists them [default: native on cpu, "
                     "auto on cuda]");
  add_device_options(*command, run);
  add_threads_option(*command, run.threads);
  add_json_option(*command, options->json);
  command->add_option("--top N", options->top, "Classes to show per image");
  command->add_flag("--logits", options->logits, "Show the raw outputs of all classes");
  command->examples(
      {"ridgeline infer cat.jpg dog.jpg --checkpoint run1 --best",
       "ridgeline infer cat.jpg --model squeezenet1_1 --weights squeezenet1_1.safetensors "
       "--class-names imagenet.txt",
       "ridgeline infer input.npy --model squeezenet1_1 --weights squeezenet1_1.pth --logits "
       "--json"});
  command->callback([options, &action] { action = [options] { return run_infer(*options); }; });
}

}  // namespace ridgeline::cli
