#include "cli/options.h"

#include <algorithm>
#include <array>
#include <charconv>
#include <cmath>
#include <limits>

#include "backends/registry.h"
#include "base/error.h"
#include "base/parallel.h"
#include "base/suggest.h"
#include "base/text.h"
#include "cli/parser.h"

namespace ridgeline::cli {
namespace {

constexpr std::int64_t kLargestBatch = std::numeric_limits<std::int32_t>::max();
constexpr int kMostThreads = 4096;

std::vector<std::string_view> pieces_of(std::string_view text, char separator) {
  std::vector<std::string_view> pieces;
  for (;;) {
    const std::size_t end = text.find(separator);
    pieces.push_back(text.substr(0, end));
    if (end == std::string_view::npos) return pieces;
    text.remove_prefix(end + 1);
  }
}

template <typename Number>
bool parse_whole(std::string_view text, Number& number) {
  const auto [end, error] = std::from_chars(text.data(), text.data() + text.size(), number);
  return error == std::errc() && end == text.data() + text.size();
}

}  // namespace

void add_output_options(Parser& command, OutputOptions& options, const char* csv_meaning) {
  command.add_flag("--json", options.json, "Print one JSON document, messages on standard error");
  command.add_option("--csv", options.csv, csv_meaning)->type_name("FILE");
}

void add_device_options(Parser& command, RunOptions& options) {
  command.add_option("--device", options.device, "cpu, or cuda:0 for the first graphics processor")
      ->capture_default_str();
  command
      .add_option("--precision", options.precision,
                  "fp32, tf32, bf16 or fp16; the cpu computes in fp32")
      ->capture_default_str();
}

void add_run_options(Parser& command, RunOptions& options, const char* backend_meaning) {
  command.add_option("MODEL,--model", options.model, "Model, see 'ridgeline models'");
  command.add_option("--backend", options.backend,
                     std::string(backend_meaning) + " [cpu: native, cuda: auto]");
  add_device_options(command, options);
  command.add_option("--batch", options.batch, "Samples in a step")->capture_default_str();
  add_plan_options(command, options);
}

void add_plan_options(Parser& command, RunOptions& options) {
  command.add_option("--set", options.settings, "Set an option of the model, repeatable")
      ->type_name("NAME=VALUE")
      ->expected(1)
      ->take_all();
  command.add_option("--init", options.init, "Initial weights: pytorch or he")
      ->capture_default_str();
  command
      .add_option("--classes", options.classes, "Classes; labels must lie below [the model's own]")
      ->type_name("N");
  command.add_option("--seed", options.seed, "Seed of weights, data order and dropout")
      ->capture_default_str();
  command.add_option("--threads", options.threads, "Threads; 0: one for each usable processor")
      ->capture_default_str();
  command
      .add_option("--freeze", options.freeze,
                  "Do not train parameters of such names, repeatable: 'features.*'")
      ->type_name("PATTERN")
      ->expected(1)
      ->take_all();
  command.add_flag("--recompute", options.recompute,
                   "Compute outputs of batch norms again instead of keeping them: less memory");
  command.add_flag("--deterministic", options.deterministic,
                   "Only kernels that give the same bits in every run");
  command.add_option("--no-pass", options.disabled_passes, "Switch a pass of planning off")
      ->type_name("NAME")
      ->expected(1)
      ->take_all();
  command.add_flag("--print-plan", options.print_plan, "Print the plan first");
  command.add_flag("--explain", options.explain, "The same, and why other kernels were refused");
}

void add_optimizer_options(Parser& command, OptimizerOptions& options) {
  command.add_option("--optimizer", options.name, "sgd, adam or adamw")->capture_default_str();
  command
      .add_option("--lr", options.learning_rate, "Learning rate [sgd: 0.01, adam and adamw: 0.001]")
      ->type_name("RATE");
  command
      .add_option("--momentum", options.momentum,
                  fmt::format("Momentum of sgd [{}]", options.sgd_momentum))
      ->type_name("NUMBER");
  command.add_flag("--nesterov", options.nesterov, "Nesterov's momentum for sgd");
  command
      .add_option("--weight-decay", options.weight_decay,
                  "Weight decay [sgd and adam: 0, adamw: 0.01]")
      ->type_name("DECAY");
  command.add_option("--label-smoothing", options.label_smoothing, "Label smoothing of the loss")
      ->capture_default_str();
}

void add_schedule_options(Parser& command, ScheduleOptions& options) {
  command
      .add_option("--schedule", options.name,
                  "Learning rate over the epochs: constant, step or cosine (PyTorch's formulas)")
      ->capture_default_str();
  command.add_option("--step-size", options.step_size, "Epochs between two drops of step [30]")
      ->type_name("N");
  command.add_option("--gamma", options.gamma, "Factor of a drop of step [0.1]")
      ->type_name("FACTOR");
  command
      .add_option("--warmup", options.warmup,
                  "Epochs in which the rate rises, from a hundredth, before the schedule begins")
      ->capture_default_str();
}

Schedule schedule_of(const ScheduleOptions& options) {
  static constexpr std::array<std::string_view, 3> kNames = {"constant", "step", "cosine"};
  Schedule schedule;
  schedule.kind = static_cast<Schedule::Kind>(choice_of("--schedule", options.name, kNames));
  if (schedule.kind != Schedule::Kind::step && (options.step_size || options.gamma)) {
    bad_input("--step-size and --gamma belong to --schedule step, not to {}", options.name);
  }
  schedule.step_size = options.step_size.value_or(schedule.step_size);
  schedule.gamma = options.gamma.value_or(schedule.gamma);
  schedule.warmup = options.warmup;
  return schedule;
}

std::string known_names(std::string_view name, std::span<const std::string_view> names) {
  const std::string guess = did_you_mean(name, names);
  return (guess.empty() ? "." : guess) + " Known: " + joined(names, ", ");
}

std::size_t choice_of(const char* option, const std::string& value,
                      std::span<const std::string_view> names) {
  for (std::size_t i = 0; i < names.size(); ++i) {
    if (names[i] == value) return i;
  }
  bad_input("{}: unknown value '{}'{}", option, value, known_names(value, names));
}

void apply(const RunOptions& options) {
  if (options.model.empty()) {
    std::vector<std::string_view> names;
    for (const ModelInfo& model : all_models()) names.push_back(model.name);
    bad_input("no model given; known: {}", joined(names, ", "));
  }
  (void)choice_of("--precision", options.precision, kPrecisionNames);
  if (options.batch < 1 || options.batch > kLargestBatch) {
    bad_input("--batch {}: must lie between 1 and {}", options.batch, kLargestBatch);
  }
  if (options.classes && (*options.classes < 2 || *options.classes > kLargestBatch)) {
    bad_input("--classes {}: must be at least 2", *options.classes);
  }
  if (options.seed < 0) bad_input("--seed {}: must not be negative", options.seed);
  if (options.threads < 0 || options.threads > kMostThreads) {
    bad_input("--threads {}: must lie between 0 and {}", options.threads, kMostThreads);
  }
  set_thread_count(options.threads);
}

ModelConfig model_config(const RunOptions& options) {
  ModelConfig model = default_config(options.model);
  if (options.classes) model.classes = *options.classes;
  static constexpr std::array<std::string_view, 2> kSchemes = {"pytorch", "he"};
  model.init =
      choice_of("--init", options.init, kSchemes) == 0 ? InitScheme::pytorch : InitScheme::he;
  for (const std::string& setting : options.settings) {
    const std::size_t equals = setting.find('=');
    if (equals == std::string::npos || equals == 0) {
      bad_input("--set {}: expected NAME=VALUE, for example --set hidden=64", setting);
    }
    model.options[setting.substr(0, equals)] = setting.substr(equals + 1);
  }
  check_config(model);
  return model;
}

PlanRequest plan_request(const RunOptions& options, const std::string& backend) {
  PlanRequest request;
  request.backend = backend;
  if (backend.empty()) request.backend = options.device == "cpu" ? "native" : "auto";
  if (request.backend != "auto") (void)providers_of(request.backend);
  request.disabled_passes = options.disabled_passes;
  request.deterministic = options.deterministic;
  request.cache = default_choice_cache();
  return request;
}

Precision precision_of(const RunOptions& options, const Device& device) {
  const auto precision =
      static_cast<Precision>(choice_of("--precision", options.precision, kPrecisionNames));
  const std::string refusal = device.refuse(precision);
  if (!refusal.empty()) bad_input("--precision {}: {}", options.precision, refusal);
  return precision;
}

double momentum_of(const OptimizerOptions& options) {
  return options.momentum.value_or(options.name == "sgd" ? options.sgd_momentum : 0.0);
}

OptimizerAttributes optimizer_attributes(const OptimizerOptions& options) {
  static constexpr std::array<std::string_view, 3> kNames = {"sgd", "adam", "adamw"};
  const std::size_t choice = choice_of("--optimizer", options.name, kNames);
  const double decay = options.weight_decay.value_or(choice == 2 ? 0.01 : 0.0);
  if (!(decay >= 0.0 && std::isfinite(decay))) {
    bad_input("--weight-decay {}: must not be negative", decay);
  }
  const double momentum = momentum_of(options);
  if (!(momentum >= 0.0 && momentum < 1.0)) {
    bad_input("--momentum {}: must be at least 0 and below 1", momentum);
  }
  if (choice == 0) {
    if (options.nesterov && momentum == 0.0) {
      bad_input("--nesterov needs --momentum above 0");
    }
    return SgdAttributes{.momentum = momentum, .weight_decay = decay, .nesterov = options.nesterov};
  }
  if (momentum != 0.0 || options.nesterov) {
    bad_input("--momentum and --nesterov belong to sgd, not to {}", options.name);
  }
  return AdamAttributes{.weight_decay = decay, .decoupled = choice == 2};
}

double learning_rate(const OptimizerOptions& options) {
  const double rate = options.learning_rate.value_or(options.name == "sgd" ? 0.01 : 0.001);
  if (!(rate >= 0.0 && std::isfinite(rate))) bad_input("--lr {}: must not be negative", rate);
  return rate;
}

std::string optimizer_text(const OptimizerAttributes& attributes, double rate) {
  if (const auto* sgd = std::get_if<SgdAttributes>(&attributes)) {
    std::string text = fmt::format("sgd, lr {}", rate);
    if (sgd->momentum > 0.0) text += fmt::format(", momentum {}", sgd->momentum);
    if (sgd->nesterov) text += " (nesterov)";
    if (sgd->weight_decay > 0.0) text += fmt::format(", weight decay {}", sgd->weight_decay);
    return text;
  }
  const auto& adam = std::get<AdamAttributes>(attributes);
  std::string text = fmt::format("{}, lr {}", adam.decoupled ? "adamw" : "adam", rate);
  if (adam.weight_decay > 0.0) text += fmt::format(", weight decay {}", adam.weight_decay);
  return text;
}

void fit_to_data(ModelConfig& model, const Dataset& data) {
  model.channels = data.channels;
  model.height = data.height;
  model.width = data.width;
  model.classes = data.classes;
}

std::string ImageSize::text() const { return fmt::format("{}x{}x{}", channels, height, width); }

ImageSize parse_image(const std::string& text, std::int64_t channels) {
  std::vector<std::int64_t> numbers;
  for (const std::string_view piece : pieces_of(text, 'x')) {
    std::int64_t number = 0;
    if (!parse_whole(piece, number) || number < 1 || number > 65536) numbers.assign(4, 0);
    numbers.push_back(number);
  }
  switch (numbers.size()) {
    case 1:
      return {channels, numbers[0], numbers[0]};
    case 2:
      return {channels, numbers[0], numbers[1]};
    case 3:
      return {numbers[0], numbers[1], numbers[2]};
    default:
      break;
  }
  bad_input("--image '{}': expected a size such as 224, 224x224 or 3x224x224", text);
}

FrameSize parse_frame(const std::string& text) {
  if (std::count(text.begin(), text.end(), 'x') > 1) {
    bad_input("--image {}: expected HxW, such as 224x224; the data has its own channels", text);
  }
  const ImageSize image = parse_image(text, 3);
  return {static_cast<int>(image.height), static_cast<int>(image.width)};
}

void set_image(ModelConfig& model, const std::string& text) {
  if (text.empty()) return;
  const ImageSize image = parse_image(text, model.channels);
  model.channels = image.channels;
  model.height = image.height;
  model.width = image.width;
}

void set_normalisation(StepSpec& step, const std::string& text) {
  const auto channels = static_cast<std::size_t>(step.model.channels);
  if (text == "unit") {
    step.mean.clear();
    step.deviation.clear();
    return;
  }
  if (text == "mnist") {
    step.mean.assign(channels, 0.1307);
    step.deviation.assign(channels, 0.3081);
    return;
  }
  if (text == "imagenet") {
    if (channels != 3) {
      bad_input("--normalize imagenet: is for images of 3 channels, these have {}", channels);
    }
    step.mean = {0.485, 0.456, 0.406};
    step.deviation = {0.229, 0.224, 0.225};
    return;
  }
  std::vector<double> numbers;
  for (const std::string_view piece : pieces_of(text, ',')) {
    double number = 0.0;
    if (!parse_whole(piece, number)) {
      bad_input(
          "--normalize '{}': expected unit, mnist, imagenet, or the mean and the deviation of each "
          "channel, such as 0.1307,0.3081",
          text);
    }
    numbers.push_back(number);
  }
  if (numbers.size() != 2 * channels) {
    bad_input(
        "--normalize '{}': {} numbers, but images of {} channels need {}: the means, then the "
        "deviations",
        text, numbers.size(), channels, 2 * channels);
  }
  const auto middle = numbers.begin() + static_cast<std::ptrdiff_t>(channels);
  step.mean.assign(numbers.begin(), middle);
  step.deviation.assign(middle, numbers.end());
  for (const double deviation : step.deviation) {
    if (!(deviation > 0.0)) bad_input("--normalize '{}': a deviation must be above 0", text);
  }
}

std::string usual_normalisation(const Dataset& data) {
  return data.photos && data.channels == 3 ? "imagenet" : "unit";
}

std::string normalisation_text(const StepSpec& step) {
  if (step.mean.empty()) return "pixels / 255, in [0, 1]";
  std::string means, deviations;
  for (std::size_t c = 0; c < step.mean.size(); ++c) {
    means += fmt::format("{}{}", c > 0 ? "," : "", step.mean[c]);
    deviations += fmt::format("{}{}", c > 0 ? "," : "", step.deviation[c]);
  }
  return fmt::format("(pixels / 255 - {}) / {}", means, deviations);
}

}  // namespace ridgeline::cli
