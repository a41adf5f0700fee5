// What no training can be done with, each with one line that says why.

#include <cmath>

#include "base/error.h"
#include "train/trainer.h"

namespace ridgeline {
namespace {

void check_share(const char* what, double value) {
  if (!(value >= 0.0 && value < 1.0)) {
    bad_input("{} {}: must be at least 0 and below 1", what, value);
  }
}

void check_amount(const char* what, double value) {
  if (!std::isfinite(value)) bad_input("{} {}: must be a finite number", what, value);
  if (value < 0.0) bad_input("{} {}: must not be negative", what, value);
}

void check_optimizer(const OptimizerAttributes& optimizer) {
  if (const auto* sgd = std::get_if<SgdAttributes>(&optimizer)) {
    check_share("momentum", sgd->momentum);
    check_amount("weight decay", sgd->weight_decay);
    if (sgd->nesterov && sgd->momentum == 0.0) bad_input("Nesterov needs a momentum above 0");
    return;
  }
  const auto& adam = std::get<AdamAttributes>(optimizer);
  check_share("beta1", adam.beta1);
  check_share("beta2", adam.beta2);
  check_amount("epsilon", adam.epsilon);
  check_amount("weight decay", adam.weight_decay);
}

void check_normalisation(const StepSpec& step) {
  const auto channels = static_cast<std::size_t>(step.model.channels);
  for (const auto* list : {&step.mean, &step.deviation}) {
    if (!list->empty() && list->size() != channels) {
      bad_input("normalisation for {} channels, but the images have {}", list->size(), channels);
    }
  }
  for (const double mean : step.mean) {
    if (!std::isfinite(mean)) bad_input("the mean {} of the normalisation is not a number", mean);
  }
  for (const double deviation : step.deviation) {
    if (!(deviation > 0.0 && std::isfinite(deviation))) {
      bad_input("the deviation {} of the normalisation must be above 0", deviation);
    }
  }
}

}  // namespace

void check_train_config(const TrainConfig& config, const Split& data) {
  if (data.train.empty()) bad_input("there are no training samples");
  if (config.epochs < 1) {
    bad_input("{} {}: must be at least 1", config.full_batch ? "iterations" : "epochs",
              config.epochs);
  }
  if (config.step.batch < 1) bad_input("batch {}: must be at least 1", config.step.batch);
  if (config.step.batch > data.train.count()) {
    bad_input("batch {} is larger than the training data; it must be between 1 and {}",
              config.step.batch, data.train.count());
  }
  if (config.eval_batch < 0)
    bad_input("evaluation batch {}: must be at least 1", config.eval_batch);
  if (config.eval_every < 1) {
    bad_input("evaluation every {} epochs: must be at least 1", config.eval_every);
  }
  check_amount("learning rate", config.learning_rate);
  check_schedule(config.schedule, config.epochs);
  if (config.checkpoint_every < 0) {
    bad_input("a checkpoint every {} steps: must be at least 1", config.checkpoint_every);
  }
  if (!(config.step.label_smoothing >= 0.0 && config.step.label_smoothing <= 1.0)) {
    bad_input("label smoothing {}: must be between 0 and 1", config.step.label_smoothing);
  }
  check_optimizer(config.step.optimizer);
  check_normalisation(config.step);
  if (config.target_accuracy &&
      !(*config.target_accuracy > 0.0 && *config.target_accuracy <= 1.0)) {
    bad_input("target accuracy {}: must be above 0 and not above 1", *config.target_accuracy);
  }
  if (config.target_accuracy && data.test.empty()) {
    bad_input("a target accuracy needs test samples, and there are none");
  }
  if (!(config.step.clip_norm >= 0.0) || !std::isfinite(config.step.clip_norm)) {
    bad_input("clip norm {}: must be above 0", config.step.clip_norm);
  }
  if (config.micro_batch < 0) bad_input("micro-batch {}: must be at least 1", config.micro_batch);
  if (config.full_batch && (config.micro_batch > 0 || config.ranks != nullptr)) {
    bad_input("--full-batch is one pass of one process: without --micro-batch and ranks");
  }
  if (config.step.batch % config.rank_count() != 0) {
    bad_input("batch {} cannot be divided evenly among {} ranks", config.step.batch,
              config.rank_count());
  }
  if (config.bucket_bytes < 1) {
    bad_input("buckets of {} bytes: must be at least 1", config.bucket_bytes);
  }
  if (config.full_batch && (data.train.images != nullptr || config.crop)) {
    bad_input("--full-batch needs images in memory and does not crop or resize them");
  }
}

}  // namespace ridgeline
