#include "train/evaluator.h"

#include <algorithm>
#include <cmath>

#include "base/clock.h"

namespace ridgeline {

EvaluationPlans add_evaluation_plans(StepRunner& runner, StepSpec spec, std::int64_t samples) {
  EvaluationPlans plans{.batch = spec.batch, .full = runner.add_evaluation(spec), .rest = {}};
  spec.batch = samples % spec.batch;
  if (spec.batch > 0) plans.rest = runner.add_evaluation(spec, true);
  return plans;
}

Evaluation run_evaluation(StepRunner& runner, Loader& loader, const EvaluationPlans& plans,
                          std::uint64_t seed, const SeeLogits& see) {
  const Clock::time_point start = Clock::now();
  Session& session = runner.session();
  runner.clear_totals();
  loader.start_epoch(0);
  std::int64_t sample = 0;
  while (const std::optional<Batch> batch = loader.next()) {
    const Session::PlanId plan = batch->rows == plans.batch ? plans.full : *plans.rest;
    runner.write_batch(*batch);
    session.step_state() = {.seed = seed, .valid_rows = batch->rows};
    session.run(plan);
    if (!see) continue;
    const std::vector<double> logits = session.read_value(plan, runner.logits(plan));
    const std::size_t classes = logits.size() / static_cast<std::size_t>(batch->rows);
    for (std::size_t row = 0; row < static_cast<std::size_t>(batch->rows); ++row) {
      see(sample++, batch->labels[row], std::span(logits).subspan(row * classes, classes));
    }
  }
  const MetricTotals totals = runner.totals();
  return {.loss = totals.loss / totals.rows,
          .accuracy = totals.top1 / totals.rows,
          .top5 = totals.top5 / totals.rows,
          .samples = std::llround(totals.rows),
          .seconds = seconds_since(start)};
}

Evaluator::Evaluator(EvaluatorConfig config, const Dataset& data, std::unique_ptr<Device> device)
    : config_(std::move(config)), device_(std::move(device)) {
  StepSpec& step = config_.step;
  step.batch = std::min(step.batch, data.count());
  const auto needed = [&](std::int64_t batch) {
    StepSpec dry_step = step;
    dry_step.batch = batch;
    StepRunner dry(*device_, without_search(config_.plan, *device_));
    (void)add_evaluation_plans(dry, dry_step, data.count());
    return dry.bytes();
  };
  check_memory(*device_, step.batch, needed(step.batch), needed);
  runner_ = std::make_unique<StepRunner>(*device_, config_.plan);
  plans_ = add_evaluation_plans(*runner_, step, data.count());
  runner_->prepare(config_.seed);
  LoaderOptions options;
  options.batch = step.batch;
  options.workers = config_.workers;
  options.strict = config_.strict;
  loader_ = std::make_unique<Loader>(data, options);
}

Evaluation Evaluator::evaluate(const SeeLogits& see) {
  return run_evaluation(*runner_, *loader_, plans_, config_.seed, see);
}

std::vector<std::string> Evaluator::broken_images() const {
  std::vector<std::string> reasons;
  for (BrokenImage& image : loader_->broken()) reasons.push_back(std::move(image.reason));
  return reasons;
}

}  // namespace ridgeline
