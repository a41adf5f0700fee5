#include "lab/train_record.h"

#include <algorithm>
#include <cmath>
#include <set>

#include "base/clock.h"
#include "base/error.h"
#include "base/parallel.h"
#include "base/reason.h"
#include "base/text.h"
#include "inspect/complexity.h"
#include "inspect/network_description.h"
#include "lab/options.h"

namespace ridgeline {
namespace {

constexpr double kReadingsPace = 2.0;  // seconds between two looks at the readings

}  // namespace

void check(const TrainRecordOptions& options) {
  check_telemetry(options.telemetry_hz);
  if (options.tensorboard_every < 1) {
    bad_input("--tensorboard-every {}: must be at least 1", options.tensorboard_every);
  }
  if (!options.tensorboard.empty()) check_event_folder(options.tensorboard);
  check_store(options.store);
}

TrainRecord::TrainRecord(const TrainRecordOptions& options, Trainer& trainer, const Split& data,
                         const Identity& identity)
    : store_(open_store(options.store)),
      device_(identity.executor.device),
      start_(TelemetrySampler::Clock::now()),
      board_every_(options.tensorboard_every),
      rate_hz_(options.telemetry_hz) {
  const TrainConfig& config = trainer.config();
  const Session& session = trainer.runner().session();
  const Plan& plan = session.plan(trainer.training_plan());
  numbers_ = complexity_numbers(plan, true);
  numbers_["setup_seconds"] = trainer.setup_seconds();
  numbers_["parameters"] = static_cast<double>(count_parameters(trainer.runner().parameters()));
  numbers_["planned_bytes"] = static_cast<double>(session.state_bytes() + session.scratch_bytes());
  if (!data.test.empty()) {
    numbers_["chance_accuracy"] = majority_share(data.test.labels, config.step.model.classes);
  }
  if (const TrainProgress& former = trainer.beginning(); former.result.steps > 0) {
    numbers_["former_seconds"] = former.result.training_seconds;
    numbers_["former_total_seconds"] = former.result.total_seconds;
    if (former.best) {
      numbers_["former_best_test_accuracy"] = former.best->accuracy;
      numbers_["best_test_accuracy"] = former.best->accuracy;
    }
  }
  if (!options.tensorboard.empty()) {
    board_.emplace(options.tensorboard, wall_time_now());
    std::vector<Setting> settings = settings_of(identity.work, identity.executor);
    settings.emplace_back("seed", fmt::format("{}", config.seed));
    board_->settings(settings);
  }
  if (rate_hz_ > 0.0) {
    sampler_ = std::make_unique<TelemetrySampler>(all_sensors(), rate_hz_, start_);
  }
  // Last: from here on the run is to be ended.
  if (store_) {
    RunRecord run = begin_record(*store_, options.store, "train");
    const NetworkRecord network = describe_network(config.step.model);
    store_->add(network);
    run.network = network.key;
    run.seed = static_cast<std::int64_t>(config.seed);
    run.work = identity.work;
    run.executor = identity.executor;
    if (const auto& changes = trainer.beginning().changes; !changes.empty()) {
      run.notes["resumed_with_changes"] = joined(changes, "; ");
    }
    run_ = store_->begin(run);
  }
}

TrainRecord::~TrainRecord() { give_up(); }

double TrainRecord::now() const { return seconds_since(start_); }

template <typename Body>
void TrainRecord::writing(Body body) {
  if (!store_ || !trouble_.empty()) return;
  try {
    body();
  } catch (const std::exception& error) {
    trouble_ = reason_of(error);
  }
}

// A run that is not whole in the store must not look as if it went on.
void TrainRecord::give_up() noexcept {
  if (run_ == 0 || finished_) return;
  finished_ = true;
  try {
    store_->finish(run_, RunStatus::failed,
                   trouble_.empty() ? "the training ended early" : trouble_, {}, {});
  } catch (const std::exception&) {
    // It cannot be written at all, of which trouble() tells.
  }
}

void TrainRecord::take_readings() {
  if (sampler_ == nullptr) return;
  const std::vector<Reading> fresh = sampler_->take();
  readings_taken_ = now();
  if (board_) board_->readings(fresh);
  readings_.insert(readings_.end(), fresh.begin(), fresh.end());
  if (!fresh.empty()) writing([&] { store_->add(run_, std::span(fresh)); });
}

std::optional<double> TrainRecord::energy(double from, double to) const {
  std::optional<double> total;
  for (const std::string& device : std::set<std::string>{"cpu", device_}) {
    const auto joules = energy_between(readings_, device, from, to);
    if (joules) total = total.value_or(0.0) + *joules;
  }
  return total;
}

void TrainRecord::add(const StepProgress& step) {
  if (step.done == 1) numbers_["first_loss"] = step.loss;
  if (!board_) return;
  const double at = now();
  if (sampler_ != nullptr) board_->step_ended(step.done, at);
  if (step.done % board_every_ == 0 || step.done == step.total) {
    board_->scalar("loss/step", step.done, at, step.loss);
  }
  // A long epoch is followed while it lasts.
  if (at - readings_taken_ >= kReadingsPace) take_readings();
}

void TrainRecord::show(const EpochResult& epoch) {
  const double at = now();
  const auto scalar = [&](const char* tag, const std::optional<double>& value) {
    if (value) board_->scalar(tag, epoch.epoch, at, *value);
  };
  scalar("loss/train", epoch.train_loss);
  scalar("accuracy/train", epoch.train_accuracy);
  scalar("loss/test", epoch.test_loss);
  scalar("accuracy/test", epoch.test_accuracy);
  // A training of one step has no time but that of the first, which does not count.
  if (epoch.seconds > 0.0) scalar("rate/samples_per_second", epoch.samples_per_second());
  scalar("time/data_wait", epoch.data_wait_seconds);
  scalar("learning_rate", epoch.learning_rate);
  board_->flush();
}

void TrainRecord::add(const EpochResult& epoch) {
  take_readings();
  if (board_) show(epoch);
  EpochRecord record;
  record.epoch = epoch.epoch;
  record.train_loss = epoch.train_loss;
  record.train_accuracy = epoch.train_accuracy;
  record.test_loss = epoch.test_loss;
  record.test_accuracy = epoch.test_accuracy;
  record.samples = epoch.samples;
  record.seconds = epoch.seconds;
  record.data_wait_seconds = epoch.data_wait_seconds;
  record.evaluation_seconds = epoch.evaluation_seconds;
  const double end = now() - epoch.evaluation_seconds - epoch.checkpoint_seconds;
  record.energy_joules = energy(end - epoch.seconds, end);
  epochs_.push_back(record);
  writing([&] { store_->add(run_, std::span<const EpochRecord>(&record, 1)); });
}

std::optional<double> TrainRecord::joules_per_sample() const {
  double joules = 0.0;
  std::int64_t samples = 0;
  for (const EpochRecord& epoch : epochs_) {
    if (!epoch.energy_joules) continue;
    joules += *epoch.energy_joules;
    samples += epoch.samples;
  }
  if (samples == 0) return std::nullopt;
  return joules / static_cast<double>(samples);
}

// What was wrong after the first epoch and has gone since is none.
std::vector<Finding> TrainRecord::lasting_alarms() const {
  std::vector<Finding> findings;
  for (const TrainAlarm& alarm : alarms_) {
    const bool last = epochs_.empty() || alarm.epoch == epochs_.back().epoch;
    if (alarm.fatal || last) {
      findings.push_back({alarm.name, alarm.fatal ? "error" : "warning", alarm.evidence});
    }
  }
  return findings;
}

// An epoch stands for its steps: its wait is the sum of theirs.
std::vector<Finding> TrainRecord::waiting() const {
  std::vector<Sample> waits;
  for (const EpochRecord& epoch : epochs_) {
    Sample sample;
    sample.wall_seconds = epoch.seconds;
    sample.data_wait_seconds = epoch.data_wait_seconds;
    waits.push_back(sample);
  }
  std::vector<Finding> findings = loader_findings(waits);
  std::erase_if(findings, [](const Finding& finding) { return finding.name != "loader-bound"; });
  return findings;
}

void TrainRecord::count(const TrainResult& result, bool failed) {
  const auto set = [&](const char* name, const std::optional<double>& value) {
    if (value) numbers_[name] = *value;
  };
  double seconds = 0.0, waited = 0.0;
  std::int64_t samples = 0;
  for (const EpochRecord& epoch : epochs_) {
    seconds += epoch.seconds;
    waited += epoch.data_wait_seconds;
    samples += epoch.samples;
    if (epoch.test_accuracy) {
      set("best_test_accuracy", std::max(numbers_["best_test_accuracy"], *epoch.test_accuracy));
    }
  }
  if (seconds > 0.0) {
    set("samples_per_second", static_cast<double>(samples) / seconds);
    set("data_wait_share", waited / seconds);
  }
  set("training_steps", static_cast<double>(result.steps));
  // Of a training that failed only the epochs are known.
  if (!failed) {
    set("first_step_seconds", result.first_step_seconds);
    set("training_seconds", result.training_seconds);
    set("total_seconds", result.total_seconds);
    set("checkpoint_seconds", result.checkpoint_seconds);
  }
  if (!epochs_.empty()) set("final_loss", epochs_.back().train_loss);
  set("final_test_accuracy", result.final_test_accuracy);
  if (result.target) {
    set("target_epoch", static_cast<double>(result.target->epoch));
    set("target_seconds", result.target->training_seconds);
    set("target_total_seconds", result.target->total_seconds);
  }
  set("energy_joules_per_sample", joules_per_sample());
}

std::vector<Finding> TrainRecord::finish(const TrainResult& result, const std::string& error) {
  if (sampler_ != nullptr) sampler_->stop();
  take_readings();
  if (board_) board_->flush();
  std::vector<Finding> findings = findings_of(readings_);
  for (Finding& finding : waiting()) findings.push_back(std::move(finding));
  count(result, !error.empty());
  std::map<std::string, std::string> notes;
  if (sampler_ != nullptr) {
    numbers_["telemetry_rate_hz"] = sampler_->overhead().rate_hz;
    numbers_["telemetry_overhead_share"] = sampler_->overhead().share;
    std::string missing;
    for (const MissingSensor& sensor : sampler_->missing()) {
      missing += fmt::format("{}{} {}: {}", missing.empty() ? "" : "; ", sensor.device,
                             sensor.sensor, sensor.reason);
    }
    if (!missing.empty()) notes["missing_sensors"] = missing;
  }
  const RunStatus status = !error.empty()       ? RunStatus::failed
                           : result.interrupted ? RunStatus::interrupted
                                                : RunStatus::complete;
  std::vector<Finding> stored = lasting_alarms();
  stored.insert(stored.end(), findings.begin(), findings.end());
  writing([&] {
    if (!stored.empty()) store_->add(run_, std::span<const Finding>(stored));
    store_->finish(run_, status, error, numbers_, notes);
    finished_ = true;
  });
  give_up();
  return findings;
}

}  // namespace ridgeline
