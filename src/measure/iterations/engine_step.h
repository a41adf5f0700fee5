#pragma once

// A training step of the engine, measured. Either one batch lies on the device and the step runs on
// it again and again, or every iteration brings its batch through the loader, as training does.

#include <memory>

#include "data/dataset.h"
#include "devices/image_place.h"
#include "measure/iterations/measured_step.h"
#include "ranks/ranks.h"
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
  int workers = 1;  // threads that decode images
  Decoder decoder = Decoder::cpu;
  bool crop = false;  // as training does with photographs
  // Of several ranks: `step` computes this one's rows, and these are the first of them in `data`.
  Ranks* ranks = nullptr;
  std::int64_t first_row = 0;
};

// Plans without allocating anything. Throws bad_input where there can be no plan.
[[nodiscard]] std::unique_ptr<MeasuredStep> make_engine_step(EngineStepConfig config);

}  // namespace ridgeline
