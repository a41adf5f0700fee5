#include "lab/options.h"

#include <algorithm>
#include <array>
#include <cmath>
#include <limits>
#include <thread>

#include "backends/registry.h"
#include "base/error.h"
#include "base/parallel.h"
#include "base/parse.h"
#include "base/suggest.h"
#include "base/text.h"
#include "data/sample_reader.h"
#include "devices/device.h"
#include "onnx/network.h"

namespace ridgeline {
namespace {

constexpr std::int64_t kLargestBatch = std::numeric_limits<std::int32_t>::max();
constexpr int kMostThreads = 4096;
constexpr double kSgdMomentum = 0.9;

void check_amount(const char* option, double value) {
  if (!std::isfinite(value)) bad_input("{} {}: must be a finite number", option, value);
  if (value < 0.0) bad_input("{} {}: must not be negative", option, value);
}

}  // namespace

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
    bad_input("no model given; 'ridgeline models' lists them, or give the path of an .onnx file");
  }
  (void)choice_of("--precision", options.precision, kPrecisionNames);
  if (options.batch < 1 || options.batch > kLargestBatch) {
    bad_input("--batch {}: must be between 1 and {}", options.batch, kLargestBatch);
  }
  if (options.classes && (*options.classes < 2 || *options.classes > kLargestBatch)) {
    bad_input("--classes {}: must be at least 2", *options.classes);
  }
  if (options.seed < 0) bad_input("--seed {}: must not be negative", options.seed);
  if (options.threads < 0 || options.threads > kMostThreads) {
    bad_input("--threads {}: must be between 0 and {}", options.threads, kMostThreads);
  }
  set_thread_count(options.threads);
}

void check_telemetry(double hz) {
  if (!(hz >= 0.0 && hz <= 1000.0)) {
    bad_input("--telemetry {}: must be between 0 (off) and 1000 readings per second", hz);
  }
}

Decoder decoder_of(const std::string& name, const Dataset& data, const Device& device) {
  const bool files = has_encoded_images(data);
  if (name == "auto") {
    return files && refuse(Decoder::gpu, device).empty() ? Decoder::gpu : Decoder::cpu;
  }
  static constexpr std::array<std::string_view, 5> kNames = {"cpu", "gpu", "nvjpeg", "nvjpeg-cuda",
                                                             "auto"};
  static_assert(std::equal(kDecoderNames.begin(), kDecoderNames.end(), kNames.begin()));
  const auto decoder = static_cast<Decoder>(choice_of("--decoder", name, kNames));
  if (const std::string reason = refuse(decoder, device); !reason.empty()) {
    bad_input("--decoder {}: {}", name, reason);
  }
  if (decoder != Decoder::cpu && !files) {
    bad_input("--decoder {}: the data is no image files that could be decoded", name);
  }
  return decoder;
}

int checked_workers(int workers) {
  if (workers < 0 || workers > 256) bad_input("--workers {}: must be between 0 and 256", workers);
  if (workers > 0) return workers;
  return static_cast<int>(std::max(1U, std::thread::hardware_concurrency()));
}

ModelConfig model_config(const RunOptions& options) {
  ModelConfig model = onnx::named_config(options.model);
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
  request.backend = backend.empty() ? default_backend(device_kind(options.device)) : backend;
  if (request.backend != kAuto) (void)providers_of(request.backend);
  request.disabled_passes = options.disabled_passes;
  request.deterministic = options.deterministic;
  request.cache = default_choice_cache();
  return request;
}

void tell_of_search(PlanRequest& request, CallListener& listener) {
  request.search.progress = [&listener](double share) {
    const auto percent = static_cast<std::int64_t>(100.0 * std::min(share, 1.0));
    listener.progress(percent, 100, "choosing kernels, percent");
  };
}

Precision precision_of(const RunOptions& options, const Device& device) {
  const auto precision =
      static_cast<Precision>(choice_of("--precision", options.precision, kPrecisionNames));
  const std::string refusal = device.refuse(precision);
  if (!refusal.empty()) bad_input("--precision {}: {}", options.precision, refusal);
  return precision;
}

double momentum_of(const OptimizerOptions& options) {
  return options.momentum.value_or(options.name == "sgd" ? kSgdMomentum : 0.0);
}

OptimizerAttributes optimizer_attributes(const OptimizerOptions& options) {
  static constexpr std::array<std::string_view, 3> kNames = {"sgd", "adam", "adamw"};
  const std::size_t choice = choice_of("--optimizer", options.name, kNames);
  const double decay = options.weight_decay.value_or(choice == 2 ? 0.01 : 0.0);
  check_amount("--weight-decay", decay);
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
  check_amount("--lr", rate);
  return rate;
}

DType wire_type(const std::string& reduce) {
  static constexpr std::array kTypes = {DType::f32, DType::bf16, DType::f16};
  return kTypes[choice_of("--reduce", reduce, kReduceNames)];
}

std::string reduce_name(DType wire) {
  return wire == DType::f32 ? "" : wire == DType::bf16 ? "bf16" : "fp16";
}

void fit_to_data(ModelConfig& model, const Dataset& data) {
  model.channels = data.channels;
  model.height = data.height;
  model.width = data.width;
  model.classes = data.classes;
}

ImageShape parse_image(const std::string& text, std::int64_t channels, const char* option) {
  std::vector<std::int64_t> numbers;
  for (const std::string_view piece : pieces_of(text, "x")) {
    const std::int64_t number = number_in<std::int64_t>(piece).value_or(0);
    if (number < 1 || number > 65536) numbers.assign(4, 0);
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
  bad_input("{} '{}': expected a size such as 224, 224x224 or 3x224x224", option, text);
}

FrameSize parse_frame(const std::string& text, const char* option) {
  if (std::count(text.begin(), text.end(), 'x') > 1) {
    bad_input("{} {}: expected HxW, such as 224x224; the data has its own channels", option, text);
  }
  const ImageShape image = parse_image(text, 3, option);
  return {static_cast<int>(image.height), static_cast<int>(image.width)};
}

void set_image(ModelConfig& model, const std::string& text) {
  if (text.empty()) return;
  const ImageShape image = parse_image(text, model.channels);
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
  for (const std::string_view piece : pieces_of(text, ",")) {
    const auto number = number_in<double>(piece);
    if (!number) {
      bad_input(
          "--normalize '{}': expected unit, mnist, imagenet, or the mean and the deviation of each "
          "channel, such as 0.1307,0.3081",
          text);
    }
    numbers.push_back(*number);
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

}  // namespace ridgeline
