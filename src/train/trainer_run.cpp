// A training from the first step to the last: what Trainer::train does.

#include <algorithm>
#include <array>
#include <cmath>
#include <utility>

#include "base/clock.h"
#include "base/error.h"
#include "base/text.h"
#include "train/trainer.h"

namespace ridgeline {
namespace {

constexpr double kHighestAdvised = 0.1;  // learning rate after a loss that is no number

// Whatever the sign of the NaN.
std::string loss_text(double loss) { return std::isnan(loss) ? "nan" : fmt::format("{}", loss); }

std::string percent(double share) { return fmt::format("{:.2f}%", 100.0 * share); }

// While one lives, runs of the session can be stopped.
class StopWhen {
 public:
  StopWhen(Session& session, std::function<bool()> stop) : session_(session) {
    session_.stop_when(std::move(stop));
  }
  ~StopWhen() { session_.stop_when({}); }
  StopWhen(const StopWhen&) = delete;
  StopWhen& operator=(const StopWhen&) = delete;

 private:
  Session& session_;
};

}  // namespace

// One training from the first step to the last.
class Trainer::Run {
 public:
  Run(Trainer& trainer, TrainObserver& observer)
      : trainer_(trainer),
        config_(trainer.config_),
        runner_(*trainer.runner_),
        observer_(observer),
        steps_in_epoch_(trainer.loader_ == nullptr ? 1 : trainer.loader_->batches()),
        progress_(trainer.progress_),
        seconds_before_(progress_.result.total_seconds + progress_.result.checkpoint_seconds) {}

  TrainResult go() {
    write_scaling();
    if (config_.full_batch) trainer_.write_training_rows(trainer_.data_.train.count());
    // Room for all reports at once: nothing is allocated between two epochs either.
    const std::int64_t reports =
        config_.full_batch ? (config_.epochs + config_.eval_every - 1) / config_.eval_every
                           : config_.epochs;
    result_.epochs.reserve(static_cast<std::size_t>(std::min<std::int64_t>(reports, 100'000)));
    start_ = Clock::now();
    // Ranks stop together, between two steps.
    std::optional<StopWhen> stop;
    if (config_.ranks == nullptr) {
      stop.emplace(runner_.session(), [this] { return observer_.stop(); });
    }
    if (progress_.untested) test(not_trained_here(*progress_.untested));
    while (progress_.epoch < config_.epochs && !finished()) {
      if (const auto epoch = config_.full_batch ? train_iterations() : train_epoch()) {
        finish(*epoch);
      } else {
        (void)checkpoint();
      }
    }
    result_.total_seconds = total_seconds();
    result_.broken_images = trainer_.broken_images();
    return result_;
  }

 private:
  [[nodiscard]] double total_seconds() const {
    return seconds_before_ + seconds_since(start_) - result_.checkpoint_seconds;
  }

  void read_scaling() {
    if (config_.step.precision != Precision::fp16) return;
    const StepState state = runner_.session().read_step_state();
    result_.scaling = {state.loss_scale, state.overflows, state.steps_in_range};
  }

  // Where a former training stopped, or the scale to begin with.
  void write_scaling() {
    if (config_.step.precision != Precision::fp16) return;
    const LossScaling scaling =
        result_.scaling.value_or(LossScaling{.scale = config_.first_loss_scale});
    StepState& state = runner_.session().step_state();
    state.loss_scale = scaling.scale;
    state.overflows = scaling.overflows;
    state.steps_in_range = scaling.steps_in_range;
    runner_.session().write_step_state();
  }

  // Gives the seconds that it took.
  double checkpoint() {
    const Clock::time_point begin = Clock::now();
    read_scaling();
    result_.total_seconds = total_seconds();
    observer_.on_checkpoint(progress_);
    const double seconds = seconds_since(begin);
    result_.checkpoint_seconds += seconds;
    return seconds;
  }
  // Within an epoch; what ends an epoch is saved before and after its test.
  [[nodiscard]] bool checkpoint_due() const {
    return config_.checkpoint_every > 0 && result_.steps % config_.checkpoint_every == 0 &&
           !result_.interrupted;
  }

  [[nodiscard]] bool finished() const { return result_.interrupted || result_.target.has_value(); }

  // Measures a stretch of training, with the first step of all apart.
  struct Stretch {
    Clock::time_point start = Clock::now();
    double saving = 0.0;   // seconds of checkpoints in it
    double counted = 0.0;  // seconds that are part of the result already
    std::int64_t samples = 0;
    double first_seconds = 0.0, first_wait = 0.0;
    std::int64_t first_samples = 0;
  };

  // Measures it up to now, and counts it as training.
  double measure(Stretch& stretch) {
    const double all = seconds_since(stretch.start) - stretch.saving;
    result_.training_seconds += all - stretch.counted;
    stretch.counted = all;
    return all;
  }

  void save_within(Stretch& stretch) {
    (void)measure(stretch);
    stretch.saving += checkpoint();
  }

  void count(Stretch& stretch, std::int64_t rows, double waited) {
    stretch.samples += rows;
    if (std::exchange(stepped_, true)) return;
    stretch.first_seconds = result_.first_step_seconds = seconds_since(stretch.start);
    stretch.first_samples = rows;
    stretch.first_wait = waited;
  }

  // Nothing where an interruption came before the epoch's first step.
  std::optional<EpochResult> result_of(Stretch& stretch, std::int64_t epoch, double waited,
                                       bool complete) {
    if (stretch.samples == 0 && progress_.step_in_epoch == 0) return std::nullopt;
    const double all = measure(stretch);
    EpochResult result{.epoch = epoch, .learning_rate = rate_of(epoch - 1)};
    const bool only_first = stretch.samples == stretch.first_samples;
    result.seconds = only_first ? all : all - stretch.first_seconds;
    result.samples = only_first ? stretch.samples : stretch.samples - stretch.first_samples;
    result.data_wait_seconds = only_first ? waited : waited - stretch.first_wait;
    const MetricTotals& totals = progress_.totals;
    result.train_loss = totals.loss / totals.rows;
    result.train_accuracy = totals.top1 / totals.rows;
    result.complete = complete;
    read_scaling();
    return result;
  }

  [[nodiscard]] const StepPasses& passes_of(std::int64_t batch_rows) const {
    return batch_rows == config_.step.batch ? trainer_.plans_.train : trainer_.plans_.train_rest;
  }

  // What one pass takes is on its way at once.
  std::optional<Batch> load_next(Loader& loader) {
    const std::optional<Batch> batch = loader.next();
    if (batch && passes_of(batch->batch_rows).passes.size() == 1) runner_.write_batch(*batch);
    return batch;
  }

  [[nodiscard]] static Batch rows_of(const Batch& batch, const Pass& pass) {
    Batch part = batch;
    const auto first = static_cast<std::size_t>(pass.first);
    const auto rows = static_cast<std::size_t>(pass.rows);
    const std::size_t bytes =
        batch.rows > 0 ? batch.pixels.size() / static_cast<std::size_t>(batch.rows) : 0;
    part.pixels = batch.pixels.subspan(first * bytes, rows * bytes);
    part.labels = batch.labels.subspan(first, rows);
    part.samples = batch.samples.subspan(first, rows);
    part.rows = pass.rows;
    return part;
  }

  std::optional<EpochResult> train_epoch() {
    Loader& loader = *trainer_.loader_;
    const std::int64_t epoch = progress_.epoch;
    if (progress_.step_in_epoch == 0) {
      clear_totals();
    } else {
      // They are the totals of all ranks: one has them.
      runner_.write_totals(config_.rank() == 0 ? progress_.totals : MetricTotals());
    }
    Stretch stretch;
    loader.start_epoch(epoch, progress_.step_in_epoch);
    // The next batch travels while a device computes.
    std::optional<Batch> batch = load_next(loader);
    while (batch && !result_.interrupted) {
      const std::int64_t rows = batch->batch_rows, done = batch->index + 1;
      if (!start_step(passes_of(rows), *batch, epoch)) break;
      batch = load_next(loader);
      finish_step(epoch);
      count(stretch, rows, loader.wait_seconds());
      progress_.step_in_epoch = done;
      report_step(epoch, done);
      if (checkpoint_due() && progress_.step_in_epoch < steps_in_epoch_) save_within(stretch);
    }
    return result_of(stretch, epoch + 1, loader.wait_seconds(),
                     progress_.step_in_epoch == steps_in_epoch_);
  }

  // Up to the next report.
  std::optional<EpochResult> train_iterations() {
    const std::int64_t pace = config_.eval_every;
    const std::int64_t last = std::min((progress_.epoch / pace + 1) * pace, config_.epochs);
    Stretch stretch;
    while (progress_.epoch < last && !result_.interrupted) {
      const MetricTotals before = progress_.totals;
      clear_totals();
      // The batch is on the device already.
      if (!start_step(trainer_.plans_.train, Batch(), progress_.epoch)) {
        progress_.totals = before;
        break;
      }
      finish_step(progress_.epoch);
      count(stretch, config_.step.batch, 0.0);
      report_step(progress_.epoch, 1);
      ++progress_.epoch;
      if (checkpoint_due() && progress_.epoch < last) save_within(stretch);
    }
    return result_of(stretch, progress_.epoch, 0.0, progress_.epoch == last);
  }

  void clear_totals() {
    runner_.clear_totals();
    progress_.totals = {};
  }

  [[nodiscard]] double rate_of(std::int64_t epoch) const {
    return learning_rate_at(config_.schedule, config_.learning_rate, epoch, config_.epochs);
  }

  // False when it was interrupted, and nothing was changed.
  bool start_step(const StepPasses& step, const Batch& batch, std::int64_t epoch) {
    Session& session = runner_.session();
    if (session.stops_within_runs()) runner_.note_statistics();
    try {
      for (const Pass& pass : step.passes) {
        if (step.passes.size() > 1) runner_.write_batch(rows_of(batch, pass));
        session.step_state() = {.learning_rate = rate_of(epoch),
                                .optimizer_step = result_.steps + 1,
                                .seed = config_.seed,
                                .random_step = result_.steps,
                                .epoch = epoch,
                                .valid_rows = pass.rows,
                                .first_row = step.first_row + pass.first};
        session.run(pass.plan);
      }
    } catch (const Interrupted&) {
      runner_.put_back_statistics();
      result_.interrupted = true;
      return false;
    }
    ++result_.steps;
    return true;
  }

  void finish_step(std::int64_t epoch) {
    const MetricTotals before = progress_.totals;
    progress_.totals = runner_.totals();
    if (config_.ranks != nullptr) join_ranks(*config_.ranks);
    const double loss =
        (progress_.totals.loss - before.loss) / (progress_.totals.rows - before.rows);
    if (!std::isfinite(loss)) stop_for_loss(loss, epoch);
    progress_.loss = loss;
  }

  // The totals of all; and whether anybody wants to stop, which all do together.
  void join_ranks(Ranks& ranks) {
    MetricTotals& totals = progress_.totals;
    std::array<double, 5> sums = {totals.loss, totals.top1, totals.top5, totals.rows,
                                  observer_.stop() ? 1.0 : 0.0};
    ranks.all_reduce(sums);
    totals = {sums[0], sums[1], sums[2], sums[3]};
    stop_asked_ = sums[4] > 0.0;
  }

  void report_step(std::int64_t epoch, std::int64_t step_in_epoch) {
    observer_.on_step({.epoch = epoch + 1,
                       .step = step_in_epoch,
                       .steps_in_epoch = steps_in_epoch_,
                       .done = result_.steps,
                       .total = config_.epochs * steps_in_epoch_,
                       .loss = progress_.loss});
    result_.interrupted = config_.ranks != nullptr ? stop_asked_ : observer_.stop();
  }

  [[nodiscard]] std::string likely_cause() const {
    return fmt::format(
        "The last finite loss was {:.6g}; the learning rate {} is likely too high: try {:.3g}",
        progress_.loss, config_.learning_rate,
        std::min(config_.learning_rate / 10.0, kHighestAdvised));
  }

  [[noreturn]] void stop_for_loss(double loss, std::int64_t epoch) {
    if (config_.ranks != nullptr) config_.ranks->end_together();  // all see the same loss
    const std::string where = config_.full_batch
                                  ? fmt::format("iteration {}", result_.steps)
                                  : fmt::format("step {} (epoch {})", result_.steps, epoch + 1);
    observer_.on_alarm({.name = "loss is not a number",
                        .evidence = fmt::format("the loss is {} at {}", loss_text(loss), where),
                        .epoch = epoch + 1,
                        .fatal = true});
    if (result_.steps == 1) {
      fail(
          "the loss is {} at {}, before any update: the initial weights or the normalised input "
          "are not finite or far too large; check the normalisation and the initialisation",
          loss_text(loss), where);
    }
    fail("the loss is {} at {}. {}", loss_text(loss), where, likely_cause());
  }

  void finish(EpochResult epoch) {
    if (!epoch.complete) {
      report(epoch);
      (void)checkpoint();
      return;
    }
    progress_.epoch = epoch.epoch;
    progress_.step_in_epoch = 0;
    const bool due = config_.full_batch || epoch.epoch % config_.eval_every == 0 ||
                     epoch.epoch == config_.epochs;
    if (trainer_.test_loader_ == nullptr || !due) {
      conclude(epoch);
      return;
    }
    // A test may take long, and be killed.
    progress_.untested = epoch;
    epoch.checkpoint_seconds = checkpoint();
    test(epoch);
  }

  // What a former part of the training has trained and counted.
  static EpochResult not_trained_here(EpochResult epoch) {
    epoch.samples = 0;
    epoch.seconds = epoch.data_wait_seconds = 0.0;
    return epoch;
  }

  void test(EpochResult epoch) {
    try {
      evaluate(epoch);
    } catch (const Interrupted&) {
      result_.interrupted = true;
      epoch.complete = false;
      report(epoch);
      return;
    }
    progress_.untested.reset();
    conclude(epoch);
  }

  void report(const EpochResult& epoch) {
    result_.epochs.push_back(epoch);
    observer_.on_epoch(epoch);
  }

  void conclude(const EpochResult& epoch) {
    report(epoch);
    if (epoch.test_accuracy) {
      const TrainProgress::Best best{epoch.epoch, *epoch.test_accuracy, *epoch.test_loss};
      if (!progress_.best || best.better_than(*progress_.best)) progress_.best = best;
    }
    look_for_trouble(epoch);
    (void)checkpoint();
  }

  void evaluate(EpochResult& epoch) {
    const Evaluation test = trainer_.evaluate();
    if (!std::isfinite(test.loss)) {
      observer_.on_alarm({.name = "loss is not a number",
                          .evidence = fmt::format("the test loss is {}", loss_text(test.loss)),
                          .epoch = epoch.epoch,
                          .fatal = true});
      fail("the test loss is {} after {} {}. {}", loss_text(test.loss),
           config_.full_batch ? "iteration" : "epoch", epoch.epoch, likely_cause());
    }
    epoch.test_loss = result_.final_test_loss = test.loss;
    epoch.test_accuracy = result_.final_test_accuracy = test.accuracy;
    epoch.evaluation_seconds = test.seconds;
    if (config_.target_accuracy && test.accuracy >= *config_.target_accuracy) {
      result_.target = TargetReached{.epoch = epoch.epoch,
                                     .training_seconds = result_.training_seconds,
                                     .total_seconds = total_seconds()};
    }
  }

  // Alarms come after the first report and, where the trouble lasts, after the last one.
  void look_for_trouble(const EpochResult& epoch) {
    const bool first = result_.epochs.size() == 1;
    const bool last = epoch.epoch == config_.epochs || finished();
    if (!first && !last) return;
    const char* unit = config_.full_batch ? "iteration" : "epoch";

    const Dataset& seen = epoch.test_accuracy ? trainer_.data_.test : trainer_.data_.train;
    const double accuracy = epoch.test_accuracy.value_or(epoch.train_accuracy);
    const double chance = std::max(majority_share(seen.labels, config_.step.model.classes),
                                   1.0 / static_cast<double>(config_.step.model.classes));
    if (at_chance(accuracy, chance, seen.count())) {
      warn({"accuracy at chance",
            fmt::format("{} accuracy after {} {} is {}, no better than chance ({})",
                        epoch.test_accuracy ? "test" : "train", unit, epoch.epoch,
                        percent(accuracy), percent(chance)),
            epoch.epoch});
    }
    if (!first && !progress_.still_unchanged) return;
    const std::vector<std::string> unchanged = runner_.unchanged_parameters();
    progress_.still_unchanged = !unchanged.empty();
    if (progress_.still_unchanged) {
      warn({"parameters never change",
            fmt::format("parameters that never changed up to {} {}: {}", unit, epoch.epoch,
                        listed(unchanged)),
            epoch.epoch});
    }
  }

  void warn(const TrainAlarm& alarm) {
    observer_.on_alarm(alarm);
    result_.warnings.push_back(alarm.evidence);
  }

  Trainer& trainer_;
  const TrainConfig& config_;
  StepRunner& runner_;
  TrainObserver& observer_;
  std::int64_t steps_in_epoch_;
  TrainProgress progress_;
  TrainResult& result_ = progress_.result;
  Clock::time_point start_;
  double seconds_before_;    // of the trainings that this one goes on from, with their checkpoints
  bool stepped_ = false;     // the first step is done
  bool stop_asked_ = false;  // by any rank
};

TrainResult Trainer::train(TrainObserver& observer) { return Run(*this, observer).go(); }

}  // namespace ridgeline
