#pragma once

// Evaluates a network with given weights: every sample once, whatever the batch.

#include <functional>
#include <memory>
#include <optional>
#include <span>
#include <string>
#include <vector>

#include "data/loader.h"
#include "ranks/ranks.h"
#include "train/metrics.h"
#include "train/step_runner.h"

namespace ridgeline {

// The plans of an evaluation; one for the rest where the batch leaves a smaller one at the end.
struct EvaluationPlans {
  std::int64_t batch = 0;
  Session::PlanId full = 0;
  std::optional<Session::PlanId> rest;
};

// Sees the logits of each sample, in the order of the dataset.
using SeeLogits =
    std::function<void(std::int64_t sample, std::int32_t label, std::span<const double> logits)>;

// Adds the plans for `samples` samples to a runner that is not prepared yet. With ranks, batches
// are divided among them.
[[nodiscard]] EvaluationPlans add_evaluation_plans(StepRunner& runner, StepSpec spec,
                                                   std::int64_t samples,
                                                   const Ranks* ranks = nullptr);
// REQUIRES: the loader neither shuffles nor repeats, and gives this rank's part. `see` may be
// empty; it sees the samples of this rank, by their numbers. The result is that of all ranks.
[[nodiscard]] Evaluation run_evaluation(StepRunner& runner, Loader& loader,
                                        const EvaluationPlans& plans, std::uint64_t seed,
                                        const SeeLogits& see, Ranks* ranks = nullptr);

struct EvaluatorConfig {
  StepSpec step;  // its batch is made smaller where there are fewer samples
  PlanRequest plan = {};
  std::uint64_t seed = 0;  // of the initial weights
  int workers = 1;
  Decoder decoder = Decoder::cpu;
  bool strict = false;  // a broken image is an error
};

class Evaluator {
 public:
  // REQUIRES: `data` outlives the evaluator, and is not empty. Throws as check_memory does.
  Evaluator(EvaluatorConfig config, const Dataset& data, std::unique_ptr<Device> device);

  [[nodiscard]] StepRunner& runner() { return *runner_; }
  [[nodiscard]] const EvaluatorConfig& config() const { return config_; }
  [[nodiscard]] Evaluation evaluate(const SeeLogits& see = {});
  // Reasons, each naming its image.
  [[nodiscard]] std::vector<std::string> broken_images() const;

 private:
  EvaluatorConfig config_;
  std::unique_ptr<Device> device_;
  std::unique_ptr<StepRunner> runner_;
  std::unique_ptr<Loader> loader_;
  EvaluationPlans plans_;
};

}  // namespace ridgeline
