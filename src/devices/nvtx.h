#pragma once

// Named stretches of the host's time for tools that watch the program from outside, such as Nsight
// Systems. Without such a tool a mark does nothing.

#include <string>

namespace ridgeline {

// Why this build cannot set marks; empty when it can.
[[nodiscard]] std::string nvtx_unavailable();

// Begins a stretch within the last one begun, and ends the last one. Nothing where unavailable.
void nvtx_push(const std::string& name);
void nvtx_pop();

// Whether the environment asks for marks in every run: RIDGELINE_NVTX is set, and not to 0. Throws
// bad_input when it does and this build cannot set them.
[[nodiscard]] bool nvtx_wanted();

}  // namespace ridgeline
