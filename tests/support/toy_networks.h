#pragma once

// Small networks that hold what real ones are made of: residual blocks with batch norm,
// concatenations, depthwise convolutions. Engine tests run them on every backend.

#include <string>
#include <vector>

#include "plan/session.h"
#include "train/step_graph.h"

namespace ridgeline {

struct ToyNetwork {
  std::string name;
  StepSpec spec;
  BuildNetwork build;
};

[[nodiscard]] std::vector<ToyNetwork> toy_networks();

// Initial weights and a random batch, the same for every backend.
void fill_state(Session& session, const StepGraph& step, const StepSpec& spec, std::uint64_t seed);

// Trains for some steps on one batch and returns the losses.
[[nodiscard]] std::vector<double> train_losses(const ToyNetwork& network, const Backend& backend,
                                               Device& device, int steps,
                                               std::vector<std::string> disabled_passes = {});

}  // namespace ridgeline
