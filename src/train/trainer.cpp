#include "train/trainer.h"

#include <algorithm>
#include <array>
#include <cmath>
#include <map>
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
    loader_ = make_loader(data.train, options, config_.decoder, *device_);
  }
  if (!data.test.empty()) {
    LoaderOptions options = loader_options();
    options.batch = eval_batch(config_.step.batch);
    test_loader_ = make_loader(data.test, options, config_.decoder, *device_);
  }
  setup_seconds_ = seconds_since(start);
}

LoaderOptions Trainer::loader_options() const {
  return {.seed = config_.seed,
          .workers = config_.workers,
          .strict = config_.strict_images,
          .part = config_.rank(),
          .parts = config_.rank_count()};
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

// Every rank makes the same number of passes, so that they meet.
Trainer::StepPasses Trainer::add_passes(StepRunner& runner, std::int64_t batch, bool seldom) const {
  const int ranks = config_.rank_count();
  const auto rows_of = [&](int rank) {
    const Range rows = share_of(batch, rank, ranks);
    return rows.end - rows.begin;
  };
  const std::int64_t most = rows_of(0);
  const std::int64_t at_once = config_.micro_batch > 0 ? std::min(config_.micro_batch, most) : most;
  const auto count = static_cast<int>((most + at_once - 1) / at_once);
  StepPasses made{.first_row = share_of(batch, config_.rank(), ranks).begin, .passes = {}};
  std::map<std::array<std::int64_t, 4>, Session::PlanId> known;
  for (int pass = 0; pass < count; ++pass) {
    const Range rows = share_of(rows_of(config_.rank()), pass, count);
    StepSpec spec = config_.step;
    DivideOptions& divide = spec.divide;
    divide.part = {.rows = rows.end - rows.begin, .pass_rows = 0, .batch_rows = batch};
    for (int rank = 0; rank < ranks; ++rank) {
      const Range there = share_of(rows_of(rank), pass, count);
      divide.part.pass_rows += there.end - there.begin;
    }
    divide.ranks = ranks;
    divide.bucket_bytes = config_.bucket_bytes;
    divide.wire = config_.wire;
    divide.synchronise_norms = config_.synchronise_norms;
    divide.several_passes = count > 1;
    divide.first_pass = pass == 0;
    divide.last_pass = pass == count - 1;
    spec.batch = std::max<std::int64_t>(divide.part.rows, 1);
    const auto [plan, is_new] = known.try_emplace(
        {divide.part.rows, divide.part.pass_rows, divide.first_pass, divide.last_pass});
    if (is_new) plan->second = runner.add_training(spec, seldom);
    made.passes.push_back({plan->second, rows.begin, divide.part.rows});
  }
  return made;
}

Trainer::Plans Trainer::add_plans(StepRunner& runner, std::int64_t batch) const {
  Plans plans;
  plans.train = add_passes(runner, batch, false);
  const std::int64_t rest = data_.train.count() % batch;
  if (rest > 0 && config_.last_batch == LastBatch::smaller) {
    plans.train_rest = add_passes(runner, rest, true);
  }
  if (data_.test.empty()) return plans;
  StepSpec spec = config_.step;
  // The test loss is the plain cross-entropy, comparable whatever training smooths.
  spec.label_smoothing = 0.0;
  spec.batch = eval_batch(batch);
  plans.eval = add_evaluation_plans(runner, spec, data_.test.count(), config_.ranks);
  return plans;
}

// What the loader's batches take beside the plans.
std::int64_t Trainer::host_bytes(std::int64_t batch) const {
  if (config_.full_batch) return 0;
  const int slots = LoaderOptions{}.prefetch + 1;
  const std::int64_t tested = data_.test.images != nullptr ? eval_batch(batch) : 0;
  return slots * ((batch + tested) / config_.rank_count()) *
         static_cast<std::int64_t>(data_.train.sample_bytes());
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
  std::vector<std::string> names = whole_batch_kernels();
  add_kernels(plans_.train_rest, names);
  return names;
}

std::vector<std::string> Trainer::whole_batch_kernels() const {
  std::vector<std::string> names;
  add_kernels(plans_.train, names);
  return names;
}

void Trainer::add_kernels(const StepPasses& step, std::vector<std::string>& names) const {
  for (const Pass& pass : step.passes) {
    for (const Step& one : runner_->session().plan(pass.plan).steps) {
      names.push_back(one.kernel_name());
    }
  }
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
      run_evaluation(*runner_, *test_loader_, *plans_.eval, config_.seed, see, config_.ranks);
  if (confusion != nullptr && config_.ranks != nullptr) {
    config_.ranks->all_reduce(confusion->counts());
  }
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
