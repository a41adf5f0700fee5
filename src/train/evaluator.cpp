#include "train/evaluator.h"

#include <algorithm>
#include <array>
#include <cmath>

#include "base/clock.h"

namespace ridgeline {

namespace {

// Of a batch; a rank without any computes one that counts not.
std::int64_t rows_to_plan(std::int64_t batch, const Ranks* ranks) {
  if (ranks == nullptr) return batch;
  const Range rows = share_of(batch, ranks->rank(), ranks->size());
  return std::max<std::int64_t>(rows.end - rows.begin, 1);
}

}  // namespace

EvaluationPlans add_evaluation_plans(StepRunner& runner, StepSpec spec, std::int64_t samples,
                                     const Ranks* ranks) {
  EvaluationPlans plans;
  plans.batch = spec.batch;
  const std::int64_t rest = samples % spec.batch;
  spec.batch = rows_to_plan(plans.batch, ranks);
  plans.full = runner.add_evaluation(spec);
  spec.batch = rows_to_plan(rest, ranks);
  if (rest > 0) plans.rest = runner.add_evaluation(spec, true);
  return plans;
}

Evaluation run_evaluation(StepRunner& runner, Loader& loader, const EvaluationPlans& plans,
                          std::uint64_t seed, const SeeLogits& see, Ranks* ranks) {
  const Clock::time_point start = Clock::now();
  Session& session = runner.session();
  runner.clear_totals();
  loader.start_epoch(0);
  while (const std::optional<Batch> batch = loader.next()) {
    const Session::PlanId plan = batch->batch_rows == plans.batch ? plans.full : *plans.rest;
    runner.write_batch(*batch);
    session.step_state() = {.seed = seed, .valid_rows = batch->rows};
    session.run(plan);
    if (!see || batch->rows == 0) continue;
    const std::vector<double> logits = session.read_value(plan, runner.logits(plan));
    const std::size_t classes = logits.size() / static_cast<std::size_t>(batch->rows);
    for (std::size_t row = 0; row < static_cast<std::size_t>(batch->rows); ++row) {
      see(batch->samples[row], batch->labels[row],
          std::span(logits).subspan(row * classes, classes));
    }
  }
  MetricTotals totals = runner.totals();
  if (ranks != nullptr) {
    std::array<double, 4> sums = {totals.loss, totals.top1, totals.top5, totals.rows};
    ranks->all_reduce(sums);
    totals = {sums[0], sums[1], sums[2], sums[3]};
  }
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
  loader_ = make_loader(data, options, config_.decoder, *device_);
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
