#pragma once

#include <span>
#include <string>

#include "plan/kernel.h"
#include "ranks/ranks.h"

namespace ridgeline {

// The provider `nccl`: ops that join the ranks of a job, in the memory of their GPUs. It computes
// nothing else, and stands behind the backend of a Plan where there are ranks on GPUs.
extern const Backend nccl_backend;

namespace nccl {

// Why it cannot be used here, in words that name what is missing; empty when it can.
[[nodiscard]] std::string unavailable();
// "NCCL 2.28.9"
[[nodiscard]] std::string version_text();
// Whether exchanges can be part of a step that is recorded and replayed as a whole.
[[nodiscard]] bool can_be_recorded();

// While the host waits for `device`, it watches the others: it throws when one has failed, or has
// not answered for as long as ranks wait; what is queued on the device then ends.
void watch_over(Device& device);

// Sums values that lie in the device's memory over all ranks, in place and queued: for measuring
// links. REQUIRES: all ranks call it, and this one has chosen its own device.
void all_reduce(Ranks& ranks, std::span<float> values, void* queue);

}  // namespace nccl
}  // namespace ridgeline
