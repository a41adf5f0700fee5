#include "lab/describe_run.h"

#include <algorithm>
#include <array>

#include "base/digest.h"
#include "base/error.h"
#include "base/parallel.h"
#include "lab/options.h"
#include "onnx/network.h"

namespace ridgeline {
namespace {

NameList sorted(NameList names) {
  std::sort(names.begin(), names.end());
  names.erase(std::unique(names.begin(), names.end()), names.end());
  return names;
}

// The name tells people which file it was, the hash tells files of the same name apart.
std::string weights_of(const std::string& file) {
  if (file.empty()) return {};
  constexpr std::size_t kDigits = 12;
  return fmt::format("{} (sha256 {})", std::filesystem::path(file).filename().string(),
                     digest_of_file(DigestKind::sha256, file).substr(0, kDigits));
}

void describe_network(const RunSpec& spec, Work& work) {
  const ModelConfig& model = spec.step.model;
  work.model = model.name;
  work.settings = model.options;
  if (model.source) {
    work.model_hash = onnx::short_hash(*model.source);
    // A file's own values need no mention.
    for (const ModelOption& option : options_of(model)) {
      if (model.option(option.name) == option.fallback) {
        work.settings.erase(std::string(option.name));
      }
    }
  }
  complete_settings(work);
  work.image = {model.channels, model.height, model.width};
  work.classes = model.classes;
  work.init = model.init == InitScheme::pytorch ? "pytorch" : "he";
  work.weights = weights_of(spec.weights);
}

void describe_update(const RunSpec& spec, Work& work) {
  work.freeze = sorted(spec.step.freeze);
  work.learning_rate = spec.learning_rate;
  work.label_smoothing = spec.step.label_smoothing;
  work.clip_norm = spec.step.clip_norm;
  if (const auto* sgd = std::get_if<SgdAttributes>(&spec.step.optimizer)) {
    work.optimizer = "sgd";
    work.momentum = sgd->momentum;
    work.nesterov = sgd->nesterov;
    work.weight_decay = sgd->weight_decay;
  } else {
    const auto& adam = std::get<AdamAttributes>(spec.step.optimizer);
    work.optimizer = adam.decoupled ? "adamw" : "adam";
    work.weight_decay = adam.weight_decay;
  }
}

void describe_data(const RunSpec& spec, Work& work) {
  work.data = spec.data;
  work.full_batch = spec.full_batch;
  work.loader = spec.loader;
  if (spec.loader || spec.full_batch) work.data_samples = spec.data_samples;
  work.test_samples = spec.test_samples;
  work.normalisation = spec.step.mean;
  work.normalisation.insert(work.normalisation.end(), spec.step.deviation.begin(),
                            spec.step.deviation.end());
  work.augment = spec.crop ? "crop" : spec.step.flip ? "flip" : "none";
}

void describe_schedule(const TrainConfig& config, Work& work) {
  static constexpr std::array kSchedules = {"constant", "step", "cosine"};
  static constexpr std::array kLastBatches = {"smaller", "drop", "repeat"};
  work.epochs = config.epochs;
  work.target_accuracy = config.target_accuracy;
  work.last_batch = kLastBatches[static_cast<std::size_t>(config.last_batch)];
  work.schedule = kSchedules[static_cast<std::size_t>(config.schedule.kind)];
  if (config.schedule.kind == Schedule::Kind::step) {
    work.schedule_step = config.schedule.step_size;
    work.schedule_gamma = config.schedule.gamma;
  }
  work.warmup_epochs = config.schedule.warmup;
  work.micro_batch = config.micro_batch;
  work.synchronised_norms = config.ranks != nullptr && config.synchronise_norms;
  if (config.step.precision == Precision::fp16 &&
      config.first_loss_scale != first_loss_scale(Precision::fp16)) {
    work.loss_scale = config.first_loss_scale;
  }
}

Executor executor_of(const RunSpec& spec) {
  Executor executor;
  executor.device = spec.device;
  executor.threads = spec.threads;
  executor.workers = spec.loader ? spec.workers : 0;
  if (spec.loader && spec.decoder != Decoder::cpu) executor.decoder = name_of(spec.decoder);
  if (spec.peer) {
    executor.backend = spec.peer->backend();
    executor.modes = sorted(spec.peer->options);
    return executor;
  }
  executor.backend = spec.plan.backend;
  executor.deterministic = spec.plan.deterministic;
  executor.recompute = spec.step.recompute;
  executor.disabled_passes = sorted(spec.plan.disabled_passes);
  executor.ranks = spec.ranks;
  if (spec.ranks > 1 && spec.connected) {
    executor.bucket_bytes = spec.bucket_bytes;
    executor.reduce = reduce_name(spec.wire);
  }
  if (spec.ranks > 1 && !spec.connected) executor.transport = kUnconnected;
  if (spec.training != nullptr && spec.training->ranks != nullptr) {
    const Ranks& ranks = *spec.training->ranks;
    executor.ranks = ranks.size();
    executor.nodes = ranks.nodes();
    executor.transport = ranks.transport();
    executor.bucket_bytes = spec.training->bucket_bytes;
    executor.reduce = reduce_name(spec.training->wire);
  }
  return executor;
}

}  // namespace

Identity describe_run(const RunSpec& spec) {
  Work work;
  work.kind = spec.kind;
  work.batch = spec.step.batch;
  work.precision = name_of(spec.step.precision);
  work.first_epoch = spec.first_epoch;
  describe_network(spec, work);
  describe_data(spec, work);
  if (spec.kind == "training") describe_update(spec, work);
  work.synchronised_norms = spec.ranks > 1 && spec.synchronise_norms;
  if (spec.training != nullptr) describe_schedule(*spec.training, work);
  return {std::move(work), executor_of(spec)};
}

Identity describe_training(const TrainConfig& config, const Split& data, const std::string& device,
                           const std::string& weights, std::int64_t first_epoch) {
  return describe_run({.step = config.step,
                       .plan = config.plan,
                       .device = device,
                       .threads = thread_count(),
                       .learning_rate = config.learning_rate,
                       .data = data.train.name,
                       .data_samples = data.train.count(),
                       .test_samples = data.test.count(),
                       .full_batch = config.full_batch,
                       .loader = !config.full_batch,
                       .workers = config.workers,
                       .decoder = config.decoder,
                       .crop = config.crop,
                       .weights = weights,
                       .training = &config,
                       .first_epoch = first_epoch});
}

}  // namespace ridgeline
