#include "lab/train_checkpoint.h"

#include "base/error.h"
#include "base/parse.h"
#include "base/text.h"
#include "plan/choice_cache.h"

namespace ridgeline {

TrainCheckpoints::TrainCheckpoints(const CheckpointOptions& options) : options_(options) {
  if (options.every && *options.every < 1) {
    bad_input("--checkpoint-every {}: must be at least 1", *options.every);
  }
  if (options.folder.empty()) {
    if (options.every) bad_input("--checkpoint-every needs --checkpoint DIR");
    if (options.resume) bad_input("--resume needs --checkpoint DIR");
    return;
  }
  if (options.resume && !options.weights.empty()) {
    bad_input("--weights and --resume cannot be combined: a checkpoint has its own weights");
  }
  const bool there = has_checkpoint(options.folder);
  if (options.resume && !there) {
    bad_input("{}: has no checkpoint to resume; leave out --resume to start a new training",
              options.folder);
  }
  if (!options.resume && there) {
    bad_input("{}: already has a checkpoint; use --resume to continue it, or another folder",
              options.folder);
  }
  if (options.write) writer_ = std::make_unique<CheckpointWriter>(options.folder);
  if (options.resume) resumed_ = read_last_checkpoint(options.folder);
}

void TrainCheckpoints::configure(TrainConfig& config, const Split& data) {
  if (options_.folder.empty()) return;
  config.checkpoint_every = options_.every.value_or(0);
  config.plan.choices = std::make_shared<PlanChoices>();
  if (!resumed_) return;
  check_settings(*resumed_, config, data);
  *config.plan.choices = resumed_->choices;
  prefer_choices(resumed_->library_choices);
}

void TrainCheckpoints::load(Trainer& trainer) {
  if (resumed_) {
    restore(*resumed_, trainer);
    const TrainProgress& progress = resumed_->progress;
    story_ = fmt::format("resumed    {} after {} {}{}, {} steps\n", resumed_->folder.string(),
                         progress.epoch, trainer.config().full_batch ? "iterations" : "epochs",
                         progress.step_in_epoch > 0
                             ? fmt::format(" and {} steps", progress.step_in_epoch)
                             : std::string(),
                         count_text(progress.result.steps));
    if (const auto changes = changes_since(*resumed_, trainer); !changes.empty()) {
      story_ += fmt::format("changed    {}: not bit for bit as before\n", joined(changes, "; "));
    }
    return;
  }
  if (options_.weights.empty()) {
    tell_of_file(trainer);
    return;
  }
  const WeightFile file = open_weights(options_.weights);
  StepRunner& runner = trainer.runner();
  const WeightMatch match = match_weights(
      runner.parameters(), file, {.model = trainer.config().step.model.name, .new_head = true});
  runner.load(match);
  story_ = fmt::format("weights    {} ({}), {} tensors loaded\n", options_.weights, file.format,
                       match.pairs.size());
  if (!match.kept.empty()) {
    story_ += fmt::format("new head   {}\n", joined(match.kept, ", "));
  }
}

void TrainCheckpoints::tell_of_file(Trainer& trainer) {
  const ModelConfig& model = trainer.config().step.model;
  if (!model.source) return;
  std::size_t given = 0;
  std::vector<std::string> begun;
  for (const Parameter& parameter : trainer.runner().parameters()) {
    if (parameter.init.kind == Init::Kind::given) {
      ++given;
    } else if (parameter.role == Role::parameter) {
      begun.push_back(fmt::format("{} ({})", parameter.name, parameter.shape.text()));
    }
  }
  story_ = fmt::format("weights    {} (ONNX), {} tensors loaded\n", model.source->path(), given);
  if (!begun.empty()) story_ += fmt::format("new head   {}\n", joined(begun, ", "));
}

std::string TrainCheckpoints::save(Trainer& trainer, const Split& data,
                                   const TrainProgress& progress) {
  failed_ = false;
  if (!writer_) return {};
  try {
    writer_->write(trainer, data, progress);
    return {};
  } catch (const Error& error) {
    failed_ = true;
    return fmt::format("no checkpoint was saved, the former one stays: {}", error.what());
  }
}

void TrainCheckpoints::settle_weights(Work& work) {
  if (resumed_) work.weights = resumed_->weights;
  if (writer_) writer_->set_weights(work.weights);
}

std::int64_t TrainCheckpoints::epochs_done() const {
  return resumed_ ? resumed_->progress.epoch : 0;
}

std::optional<std::int64_t> TrainCheckpoints::bucket_bytes() const {
  if (!resumed_) return std::nullopt;
  const auto saved = resumed_->surroundings.find(std::string(kBucketSurrounding));
  if (saved == resumed_->surroundings.end()) return std::nullopt;
  return number_in<std::int64_t>(saved->second);
}

std::string TrainCheckpoints::decoder(const std::string& asked) const {
  if (asked != "auto" || !resumed_) return asked;
  const auto saved = resumed_->surroundings.find(std::string(kDecoderSurrounding));
  if (saved == resumed_->surroundings.end()) return asked;
  const std::string name = saved->second.substr(0, saved->second.find(' '));
  return name == kOwnPixels ? asked : name;
}

std::vector<EpochResult> TrainCheckpoints::former_epochs() const {
  return resumed_ ? resumed_->progress.result.epochs : std::vector<EpochResult>();
}

}  // namespace ridgeline
