#include "measure/iterations/inference_step.h"

#include "base/clock.h"
#include "base/error.h"
#include "measure/iterations/plan_timer.h"
#include "measure/memory_ledger.h"

namespace ridgeline {
namespace {

class InferenceStep final : public MeasuredStep {
 public:
  explicit InferenceStep(InferenceStepConfig config) : config_(std::move(config)) {
    ensure(config_.data->count() >= config_.step.batch, "a batch of {} needs as many samples",
           config_.step.batch);
    const InferenceRunner dry(*config_.device, without_search(config_.request, *config_.device),
                              config_.step);
    subject_ = {config_.work, config_.executor, dry.bytes()};
  }

  [[nodiscard]] const Subject& subject() const override { return subject_; }

  Preparation prepare() override {
    const Clock::time_point start = Clock::now();
    const auto seconds = [&] { return seconds_since(start); };
    Preparation preparation;
    ledger_.emplace(*config_.device);
    runner_ = std::make_unique<InferenceRunner>(*config_.device, config_.request, config_.step);
    if (searches(config_.request)) preparation.autotune_seconds = seconds();
    runner_->prepare(config_.seed);
    const Dataset& data = *config_.data;
    runner_->write_batch(
        std::span(data.pixels)
            .first(static_cast<std::size_t>(config_.step.batch) * data.sample_bytes()));
    config_.device->synchronize();
    preparation.setup_seconds = seconds();
    return preparation;
  }

  void run(std::int64_t count, const std::function<bool(const Iteration&)>& see) override {
    for (std::int64_t i = 0; i < count; ++i) {
      if (!see(time_one(*config_.device, [&] { runner_->run(); }))) return;
    }
  }

  [[nodiscard]] std::optional<Iteration> run_queued(std::int64_t count) override {
    return time_queued(*config_.device, count, [&] { runner_->run(); });
  }

  [[nodiscard]] StepDetails details(bool timed) override {
    StepDetails details = plan_details(runner_->session(), runner_->plan_id(), false, timed);
    const Session::PlanId plan = runner_->plan_id();
    details.memory = ledger_->entries(runner_->session(), {&plan, 1});
    details.numbers["parameters"] = static_cast<double>(count_parameters(runner_->parameters()));
    details.numbers["folded_batch_norms"] = static_cast<double>(runner_->folds().size());
    return details;
  }

  [[nodiscard]] std::optional<EnginePlan> engine() override {
    return EnginePlan{&runner_->session(), runner_->plan_id()};
  }

  void close() override { runner_.reset(); }

 private:
  InferenceStepConfig config_;
  Subject subject_;
  std::optional<MemoryLedger> ledger_;
  std::unique_ptr<InferenceRunner> runner_;
};

}  // namespace

std::unique_ptr<MeasuredStep> make_inference_step(InferenceStepConfig config) {
  return std::make_unique<InferenceStep>(std::move(config));
}

}  // namespace ridgeline
