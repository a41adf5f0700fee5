#pragma once

// Which device each of several ranks computes on.

#include <memory>
#include <string>

#include "devices/device.h"
#include "ranks/ranks.h"

namespace ridgeline {

// Set to 1, ranks of one machine may share a GPU: for tests, as they wait for each other's turns.
inline constexpr const char* kShareGpu = "RIDGELINE_SHARE_GPU";

// "cuda" and "cuda:1" mean a GPU for each rank of a machine, from that one on; "cpu" is the same
// for all. All ranks call it at the same point; where one of them cannot have its device, all throw
// the same bad_input.
[[nodiscard]] std::string device_of_rank(const std::string& device, Ranks& ranks);

// Makes it. What waits for a device waits no longer than ranks wait for each other.
[[nodiscard]] std::unique_ptr<Device> make_rank_device(const std::string& name);

// What ranks on GPUs should know; empty: nothing.
[[nodiscard]] std::string rank_device_note(const std::string& device);

}  // namespace ridgeline
