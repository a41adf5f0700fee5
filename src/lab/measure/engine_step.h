#pragma once

// A training step of the engine, measured. Either one batch lies on the device and the step runs on
// it again and again, or every iteration brings its batch through the loader, as training does.

#include <memory>

#include "data/dataset.h"
#include "lab/measure/measured_step.h"
#include "train/step_runner.h"

namespace ridgeline {

struct EngineStepConfig {
  Work work;
  Executor executor;
  StepSpec step;
  PlanRequest request;
  std::shared_ptr<Device> device;
  // At least a batch; in memory unless batches come through the loader.
  std::shared_ptr<const Dataset> data;
  double learning_rate = 0.01;
  std::uint64_t seed = 0;
  bool loader = false;
  int workers = 1;    // threads that decode images
  bool crop = false;  // as training does with photographs
};

// Plans without allocating anything. Throws bad_input where there can be no plan.
[[nodiscard]] std::unique_ptr<MeasuredStep> make_engine_step(EngineStepConfig config);

// Iterations of a session's plan on whatever batch it has: what training and inference share.
class PlanTimer {
 public:
  explicit PlanTimer(Session& session) : session_(session) {}
  // `launch` starts one iteration and does not wait.
  [[nodiscard]] Iteration run(const std::function<void()>& launch) const;
  // Nothing on a device without a queue.
  [[nodiscard]] std::optional<Iteration> run_queued(std::int64_t count,
                                                    const std::function<void()>& launch) const;

 private:
  Session& session_;
};

// What a session's plan is and, with `timed`, the time of each of its steps: details that training
// and inference share.
[[nodiscard]] StepDetails plan_details(Session& session, Session::PlanId plan, bool timed);

}  // namespace ridgeline
