#include "train/trainer.h"

#include <algorithm>
#include <cmath>
#include <numeric>
#include <utility>

#include "backends/registry.h"
#include "base/clock.h"
#include "base/error.h"
#include "base/text.h"

namespace ridgeline {
namespace {

constexpr double kHighestAdvised = 0.1;  // learning rate after a loss that is no number

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

Batch first_rows(const Dataset& data, std::span<const std::int32_t> numbers, std::int64_t rows) {
  const auto count = static_cast<std::size_t>(rows);
  Batch batch;
  batch.pixels = std::span(data.pixels).first(count * data.sample_bytes());
  batch.labels = std::span(data.labels).first(count);
  batch.samples = numbers.first(count);
  batch.rows = rows;
  return batch;
}

// Whatever the sign of the NaN.
std::string loss_text(double loss) { return std::isnan(loss) ? "nan" : fmt::format("{}", loss); }

std::string percent(double share) { return fmt::format("{:.2f}%", 100.0 * share); }

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
  if (config.full_batch && (data.train.images != nullptr || config.crop)) {
    bad_input("--full-batch needs images in memory and does not crop or resize them");
  }
}

Trainer::Trainer(TrainConfig config, const Split& data, std::unique_ptr<Device> device)
    : config_(std::move(config)), data_(data), device_(std::move(device)) {
  const Clock::time_point start = Clock::now();
  if (config_.full_batch) config_.step.batch = data.train.count();
  check_train_config(config_, data);

  // `auto` times kernels with real buffers, so there the check comes first, with a stand-in.
  if (config_.plan.backend == kAuto) check_memory_for_plans();
  runner_ = std::make_unique<StepRunner>(*device_, config_.plan);
  plans_ = add_plans(*runner_, config_.step.batch);
  if (config_.plan.backend != kAuto) check_memory_for_plans();
  runner_->prepare(config_.seed);

  if (config_.full_batch) {
    sample_numbers_.resize(static_cast<std::size_t>(data.train.count()));
    std::iota(sample_numbers_.begin(), sample_numbers_.end(), 0);
  } else {
    LoaderOptions options = loader_options();
    options.batch = config_.step.batch;
    options.shuffle = true;
    options.last_batch = config_.last_batch;
    options.crop = config_.crop;
    loader_ = std::make_unique<Loader>(data.train, options);
  }
  if (!data.test.empty()) {
    LoaderOptions options = loader_options();
    options.batch = eval_batch(config_.step.batch);
    test_loader_ = std::make_unique<Loader>(data.test, options);
  }
  setup_seconds_ = seconds_since(start);
}

LoaderOptions Trainer::loader_options() const {
  return {.seed = config_.seed, .workers = config_.workers, .strict = config_.strict_images};
}

std::vector<std::string> Trainer::broken_images() const {
  std::vector<std::string> reasons;
  for (const Loader* loader : {loader_.get(), test_loader_.get()}) {
    if (loader == nullptr) continue;
    for (BrokenImage& image : loader->broken()) reasons.push_back(std::move(image.reason));
  }
  return reasons;
}

std::int64_t Trainer::eval_batch(std::int64_t batch) const {
  return std::min(config_.eval_batch > 0 ? config_.eval_batch : batch, data_.test.count());
}

Trainer::Plans Trainer::add_plans(StepRunner& runner, std::int64_t batch) const {
  Plans plans;
  StepSpec spec = config_.step;
  spec.batch = batch;
  plans.train = runner.add_training(spec);
  spec.batch = data_.train.count() % batch;
  if (spec.batch > 0 && config_.last_batch == LastBatch::smaller) {
    plans.train_rest = runner.add_training(spec, true);
  }
  if (data_.test.empty()) return plans;
  // The test loss is the plain cross-entropy, comparable whatever training smooths.
  spec.label_smoothing = 0.0;
  spec.batch = eval_batch(batch);
  plans.eval = add_evaluation_plans(runner, spec, data_.test.count());
  return plans;
}

// What the loader's batches take beside the plans.
std::int64_t Trainer::host_bytes(std::int64_t batch) const {
  if (config_.full_batch) return 0;
  const int slots = LoaderOptions{}.prefetch + 1;
  const std::int64_t tested = data_.test.images != nullptr ? eval_batch(batch) : 0;
  return slots * (batch + tested) * static_cast<std::int64_t>(data_.train.sample_bytes());
}

void Trainer::check_memory_for_plans() const {
  const auto needed = [&](std::int64_t batch) {
    StepRunner dry(*device_, without_search(config_.plan, *device_));
    (void)add_plans(dry, batch);
    return dry.bytes() + host_bytes(batch);
  };
  const std::int64_t batch = config_.step.batch;
  check_memory(*device_, batch,
               runner_ != nullptr ? runner_->bytes() + host_bytes(batch) : needed(batch), needed);
}

std::vector<std::string> Trainer::kernels() const {
  std::vector<Session::PlanId> plans = {plans_.train};
  if (plans_.train_rest) plans.push_back(*plans_.train_rest);
  std::vector<std::string> names;
  for (const Session::PlanId plan : plans) {
    for (const Step& step : runner_->session().plan(plan).steps) {
      names.push_back(step.kernel_name());
    }
  }
  return names;
}

Evaluation Trainer::evaluate(ConfusionMatrix* confusion) {
  ensure(test_loader_ != nullptr, "there is nothing to evaluate on");
  SeeLogits see;
  if (confusion != nullptr) {
    see = [&](std::int64_t, std::int32_t label, std::span<const double> logits) {
      confusion->add(logits, {&label, 1});
    };
  }
  const Evaluation result =
      run_evaluation(*runner_, *test_loader_, *plans_.eval, config_.seed, see);
  if (config_.full_batch) {
    // The test batches lay where the training data has its place.
    runner_->write_batch(first_rows(data_.train, sample_numbers_,
                                    std::min(plans_.eval->batch, data_.train.count())));
    device_->synchronize();
  }
  return result;
}

namespace {

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
    if (config_.full_batch) {
      runner_.write_batch(
          first_rows(trainer_.data_.train, trainer_.sample_numbers_, trainer_.data_.train.count()));
      runner_.session().device().synchronize();
    }
    // Room for all reports at once: nothing is allocated between two epochs either.
    const std::int64_t reports =
        config_.full_batch ? (config_.epochs + config_.eval_every - 1) / config_.eval_every
                           : config_.epochs;
    result_.epochs.reserve(static_cast<std::size_t>(std::min<std::int64_t>(reports, 100'000)));
    start_ = Clock::now();
    const StopWhen stop(runner_.session(), [this] { return observer_.stop(); });
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

  struct Loaded {
    std::int64_t rows = 0, index = 0;
  };
  std::optional<Loaded> load_next(Loader& loader) {
    const std::optional<Batch> batch = loader.next();
    if (!batch) return std::nullopt;
    runner_.write_batch(*batch);
    return Loaded{batch->rows, batch->index};
  }

  std::optional<EpochResult> train_epoch() {
    Loader& loader = *trainer_.loader_;
    const std::int64_t epoch = progress_.epoch;
    if (progress_.step_in_epoch == 0) {
      clear_totals();
    } else {
      runner_.write_totals(progress_.totals);
    }
    Stretch stretch;
    loader.start_epoch(epoch, progress_.step_in_epoch);
    // The next batch travels while a device computes.
    std::optional<Loaded> batch = load_next(loader);
    while (batch && !result_.interrupted) {
      const Loaded now = *batch;
      const bool full = now.rows == config_.step.batch;
      if (!start_step(full ? trainer_.plans_.train : *trainer_.plans_.train_rest, now.rows,
                      epoch)) {
        break;
      }
      batch = load_next(loader);
      finish_step(epoch);
      count(stretch, now.rows, loader.wait_seconds());
      progress_.step_in_epoch = now.index + 1;
      report_step(epoch, now.index + 1);
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
      if (!start_step(trainer_.plans_.train, config_.step.batch, progress_.epoch)) {
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
  bool start_step(Session::PlanId plan, std::int64_t rows, std::int64_t epoch) {
    Session& session = runner_.session();
    session.step_state() = {.learning_rate = rate_of(epoch),
                            .optimizer_step = result_.steps + 1,
                            .seed = config_.seed,
                            .random_step = result_.steps,
                            .epoch = epoch,
                            .valid_rows = rows};
    if (session.stops_within_runs()) runner_.note_statistics();
    try {
      session.run(plan);
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
    const double loss =
        (progress_.totals.loss - before.loss) / (progress_.totals.rows - before.rows);
    if (!std::isfinite(loss)) stop_for_loss(loss, epoch);
    progress_.loss = loss;
  }

  void report_step(std::int64_t epoch, std::int64_t step_in_epoch) {
    observer_.on_step({.epoch = epoch + 1,
                       .step = step_in_epoch,
                       .steps_in_epoch = steps_in_epoch_,
                       .done = result_.steps,
                       .total = config_.epochs * steps_in_epoch_,
                       .loss = progress_.loss});
    result_.interrupted = observer_.stop();
  }

  [[nodiscard]] std::string likely_cause() const {
    return fmt::format(
        "The last finite loss was {:.6g}; the learning rate {} is likely too high: try {:.3g}",
        progress_.loss, config_.learning_rate,
        std::min(config_.learning_rate / 10.0, kHighestAdvised));
  }

  [[noreturn]] void stop_for_loss(double loss, std::int64_t epoch) {
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
  double seconds_before_;  // of the trainings that this one goes on from, with their checkpoints
  bool stepped_ = false;   // the first step is done
};

TrainResult Trainer::train(TrainObserver& observer) { return Run(*this, observer).go(); }

}  // namespace ridgeline
