#pragma once

// What the links between ranks can do at most: all-reduce of f32 by message size, as the OSU
// benchmarks and nccl-tests count it. Fields of these ceilings:
//   device   "ranks:4": so many of them, where mpirun put them; "gpu-ranks:4": their GPUs
//   kind     latency: seconds of one all-reduce, mean over the ranks (osu_allreduce)
//            link: bytes of the message over that time (path "algorithm": algbw of nccl-tests), and
//            that times 2 (n - 1) / n, what each link carries (path "bus": busbw)
//   subject  all-reduce;  scope  the transport;  capacity_bytes  of the message

#include <functional>
#include <memory>
#include <optional>
#include <string>
#include <vector>

#include "devices/device.h"
#include "ranks/ranks.h"
#include "store/records.h"

namespace ridgeline {

inline constexpr const char* kAllReduce = "all-reduce";

[[nodiscard]] std::string link_device(int ranks, std::string_view device_kind);

// Called by all ranks, each with its own device; all of them get the result.
[[nodiscard]] std::vector<Ceiling> measure_links(Ranks& ranks, Device& device, int repeats = 21);

// Starts a job by this command, whose rank 0 answers a line with the ceilings.
[[nodiscard]] std::vector<Ceiling> links_of_job(const std::vector<std::string>& command);
// One rank of that job. `make` makes its device, on all ranks or on none.
void serve_links(Ranks& ranks, const std::function<std::unique_ptr<Device>()>& make,
                 const std::function<std::optional<std::string>()>& read,
                 const std::function<void(const std::string& line)>& write);

}  // namespace ridgeline
