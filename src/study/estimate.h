#pragma once

// How long the items of a plan may take, and how much memory they need: rough figures from the work
// of the networks' plans and the speed of the devices, so that a user knows how long to wait.

#include <cstdint>
#include <map>
#include <string>
#include <tuple>
#include <vector>

#include "study/capabilities.h"
#include "study/datasets.h"
#include "study/expand.h"

namespace ridgeline::study {

// What one step of a configuration asks for.
struct StepDemand {
  double flops = 0.0;          // of a training step, or of inference
  double moved_bytes = 0.0;    // between memory and the processor
  std::int64_t memory = 0;     // that it needs at once
  std::int64_t batch = 0;      // samples in it
  std::int64_t data_size = 0;  // samples of the data set; 0: not known
};

// Plans are made without running anything, and each network is planned once for each batch.
class Estimator {
 public:
  explicit Estimator(Capabilities& machine) : machine_(machine) {}

  // Throws bad_input where there can be no such network.
  [[nodiscard]] StepDemand demand(const Part& part, const Configuration& configuration,
                                  const std::string& data);
  // Of one executor.
  [[nodiscard]] double seconds(const Part& part, const StepDemand& demand,
                               const ExecutorName& executor);
  [[nodiscard]] double ceilings_seconds(const std::string& device) const;

 private:
  [[nodiscard]] double step_seconds(const StepDemand& demand, const ExecutorName& executor);

  // All that a step's work and memory depend on: model, its options, image, classes, batch,
  // optimizer, momentum, what is not trained, whether it is inference.
  using StepKey = std::tuple<std::string, Settings, ImageShape, std::int64_t, std::int64_t,
                             std::string, double, std::vector<std::string>, bool>;

  Capabilities& machine_;
  std::map<StepKey, StepDemand> known_;
};

}  // namespace ridgeline::study
