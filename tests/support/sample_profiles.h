#pragma once

// Profiles for tests of what is made from them: one of a real run on the CPU, one made up of a
// graphics processor's activities.

#include <string>

#include "measure/profile/profile.h"

namespace ridgeline::testing {

// Training steps of a model on native, timed step by step: host track, planned memory.
[[nodiscard]] Profile stepped_profile(const std::string& model, std::int64_t batch,
                                      std::int64_t iterations);

// How a made-up graphics processor gets its work: kernel by kernel, ahead of it; or as a recording
// of the whole step, where the host sees no steps.
enum class Launching { one_by_one, recorded };

// Iterations of `steps` steps, each with `kernels` kernels on stream 7; the batch is copied on
// stream 13. A memory fill, two threads' bodies, telemetry.
[[nodiscard]] Profile made_up_gpu_profile(std::int64_t iterations, std::int64_t steps,
                                          std::int64_t kernels,
                                          Launching launching = Launching::one_by_one);

}  // namespace ridgeline::testing
