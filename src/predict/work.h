#pragma once

// What a step asks for on a kind of device: its steps with FLOPs and bytes, and its memory, from a
// Plan that is made and not run.

#include <cstdint>
#include <string>
#include <string_view>
#include <vector>

#include "store/records.h"
#include "train/step_graph.h"

namespace ridgeline::predict {

enum class Family : std::uint8_t { cpu, gpu };
[[nodiscard]] std::string_view name_of(Family family);

struct Work {
  StepSpec step;
  bool inference = false;
  std::vector<std::string> disabled_passes = {};  // of a CPU's plan
};

struct PlannedWork {
  std::vector<StepTime> steps;  // without times
  std::int64_t memory_bytes = 0;
};

// CPUs: our own kernels' plan. Graphics processors: dry_gpu.h. Throws bad_input where this machine
// cannot plan such a precision, or the network cannot be built.
[[nodiscard]] PlannedWork planned(const Work& work, Family family);

// One rank's part of a step that ranks share, with `work.step.batch` samples for each of them.
struct DividedWork {
  std::vector<StepTime> steps;
  std::vector<double> exchanged_bytes;  // of each step; 0: it computes
  std::vector<int> needed_by;           // as in Step
};
[[nodiscard]] DividedWork divided(const Work& work, Family family, int ranks);

// The largest batch whose step fits into so many bytes; 0 when not even one sample does.
[[nodiscard]] std::int64_t largest_batch_within(const Work& work, Family family,
                                                std::int64_t bytes);

// The step of a stored run. Throws bad_input where the run does not tell enough of its network.
[[nodiscard]] Work work_of_run(const ridgeline::Work& stored);

}  // namespace ridgeline::predict
