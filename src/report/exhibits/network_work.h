#pragma once

// What a network asks for, from the plan of a training step that is never run.

#include <cstdint>
#include <string>

#include "lab/store/records.h"

namespace ridgeline::report {

struct NetworkWork {
  std::string error;  // why there is no plan; empty: there is one
  std::int64_t batch = 1;
  double parameters = 0.0;
  // Of one sample.
  double forward_macs = 0.0, forward_flops = 0.0, training_flops = 0.0;
  double bytes = 0.0;      // at the boundaries of the plan's steps, by training
  double intensity = 0.0;  // FLOP/byte of a training step
};

// Of the work's network, images and classes, all parameters trained, in fp32 on the processor. Kept
// for the next one who asks.
[[nodiscard]] const NetworkWork& network_work(const Work& work, std::int64_t batch);

}  // namespace ridgeline::report
