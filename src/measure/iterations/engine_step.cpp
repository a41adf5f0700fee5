#include "measure/iterations/engine_step.h"

#include <numeric>

#include "base/clock.h"
#include "base/error.h"
#include "data/loader.h"
#include "measure/iterations/plan_timer.h"
#include "measure/memory_ledger.h"
#include "measure/step_times.h"

namespace ridgeline {
namespace {

std::int64_t bytes_of_plan(const EngineStepConfig& config) {
  StepRunner dry(*config.device, without_search(config.request, *config.device));
  (void)dry.add_training(config.step);
  return dry.bytes();
}

class EngineStep final : public MeasuredStep {
 public:
  explicit EngineStep(EngineStepConfig config) : config_(std::move(config)) {
    ensure(config_.data->count() >= config_.first_row + config_.step.batch,
           "a batch of {} needs as many samples", config_.step.batch);
    subject_ = {config_.work, config_.executor, bytes_of_plan(config_)};
  }

  [[nodiscard]] const Subject& subject() const override { return subject_; }

  Preparation prepare() override {
    const Clock::time_point start = Clock::now();
    Preparation preparation;
    ledger_.emplace(*config_.device);
    if (config_.loader) {
      loader_ = make_loader(*config_.data,
                            {.batch = config_.step.batch,
                             .shuffle = true,
                             .seed = config_.seed,
                             .last_batch = LastBatch::drop,
                             .workers = config_.workers,
                             .crop = config_.crop},
                            config_.decoder, *config_.device);
      ledger_->mark("loader");
    }
    const Clock::time_point planning = Clock::now();
    runner_ = std::make_unique<StepRunner>(*config_.device, config_.request);
    plan_ = runner_->add_training(config_.step);
    if (searches(config_.request)) preparation.autotune_seconds = seconds_since(planning);
    runner_->prepare(config_.seed);
    if (config_.loader) {
      loader_->start_epoch(epoch_);
      (void)load_next();
      waited_before_ = loader_->wait_seconds();
    } else {
      write_first_batch();
    }
    config_.device->synchronize();
    preparation.setup_seconds = seconds_since(start);
    return preparation;
  }

  void run(std::int64_t count, const std::function<bool(const Iteration&)>& see) override {
    for (std::int64_t i = 0; i < count; ++i) {
      if (!see(config_.loader ? run_loaded() : run_once())) return;
    }
  }

  [[nodiscard]] std::optional<Iteration> run_queued(std::int64_t count) override {
    if (config_.loader) return std::nullopt;
    return time_queued(*config_.device, count, [&] { launch(); });
  }

  [[nodiscard]] bool works_ahead() const override { return config_.loader; }

  [[nodiscard]] std::optional<SplitIteration> run_split() override {
    const StepMeasurement measured =
        measure_steps(session(), plan_, {.fewest = 1, .most = 1, .patience_seconds = 0.0});
    const auto steps = step_times(session().plan(plan_), *config_.device, measured.seconds);
    const PhaseSeconds phases = split_of(steps);
    // A kernel that does the whole step at once has no phases to tell apart.
    if (phases.joint > 0.0) return std::nullopt;
    return SplitIteration{phases.sum(), phases.forward, phases.backward, phases.optimizer};
  }

  [[nodiscard]] StepDetails details(bool timed) override {
    // All ranks make as many passes.
    const StepMeasuring measuring =
        config_.ranks == nullptr ? StepMeasuring{} : StepMeasuring{.patience_seconds = 0.0};
    StepDetails details = plan_details(session(), plan_, true, timed, measuring);
    details.memory = ledger_->entries(session(), {&plan_, 1});
    details.numbers["parameters"] = static_cast<double>(count_parameters(runner_->parameters()));
    return details;
  }

  [[nodiscard]] std::optional<EnginePlan> engine() override {
    return EnginePlan{&session(), plan_};
  }

  void close() override {
    loader_.reset();
    runner_.reset();
  }

 private:
  [[nodiscard]] Session& session() { return runner_->session(); }

  void write_first_batch() {
    const Dataset& data = *config_.data;
    const auto rows = static_cast<std::size_t>(config_.step.batch);
    const auto begin = static_cast<std::size_t>(config_.first_row);
    std::vector<std::int32_t> numbers(rows);
    std::iota(numbers.begin(), numbers.end(), static_cast<std::int32_t>(begin));
    Batch first;
    first.pixels =
        std::span(data.pixels).subspan(begin * data.sample_bytes(), rows * data.sample_bytes());
    first.labels = std::span(data.labels).subspan(begin, rows);
    first.samples = numbers;
    first.rows = config_.step.batch;
    runner_->write_batch(first);
    config_.device->synchronize();
  }

  void launch() {
    session().step_state() = {.learning_rate = config_.learning_rate,
                              .optimizer_step = done_ + 1,
                              .seed = config_.seed,
                              .random_step = done_,
                              .epoch = epoch_,
                              .valid_rows = config_.step.batch};
    session().run(plan_);
    ++done_;
  }

  Iteration run_once() {
    // The host does not see how long a GPU's queues wait.
    if (config_.ranks == nullptr || config_.device->kind() != "cpu") {
      return time_one(*config_.device, [&] { launch(); });
    }
    const double exchanged = config_.ranks->seconds(), exposed = session().exposed_seconds();
    Iteration iteration = time_one(*config_.device, [&] { launch(); });
    iteration.exchange_seconds = config_.ranks->seconds() - exchanged;
    iteration.exposed_seconds = session().exposed_seconds() - exposed;
    return iteration;
  }

  // Fetches the next batch, of the next epoch where this one is used up, and sends it off.
  double load_next() {
    std::optional<Batch> batch = loader_->next();
    if (!batch) {
      waited_before_ = 0.0;
      loader_->start_epoch(++epoch_);
      batch = loader_->next();
    }
    const Clock::time_point start = Clock::now();
    runner_->write_batch(*batch);
    return seconds_since(start);
  }

  // As the trainer does it: the next batch is fetched and travels while a device computes.
  Iteration run_loaded() {
    const Clock::time_point start = Clock::now();
    Iteration iteration;
    iteration.began = start;
    launch();
    iteration.asked_for_data = Clock::now();
    iteration.upload_seconds = load_next();
    (void)runner_->totals();  // the loss, which waits for the device
    iteration.wall_seconds = seconds_since(start);
    const double waited = loader_->wait_seconds();
    iteration.data_wait_seconds = waited - waited_before_;
    waited_before_ = waited;
    return iteration;
  }

  EngineStepConfig config_;
  Subject subject_;
  std::optional<MemoryLedger> ledger_;
  std::unique_ptr<StepRunner> runner_;
  std::unique_ptr<Loader> loader_;
  Session::PlanId plan_ = 0;
  std::int64_t done_ = 0, epoch_ = 0;
  double waited_before_ = 0.0;
};

}  // namespace

std::unique_ptr<MeasuredStep> make_engine_step(EngineStepConfig config) {
  return std::make_unique<EngineStep>(std::move(config));
}

}  // namespace ridgeline
