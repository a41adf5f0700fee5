#pragma once

// Starts this command again as several processes, with mpirun.

#include <cstdint>
#include <string>

namespace ridgeline::cli {

struct StartRanks {
  int count = 1;
  std::int64_t restarts = 0;  // after a failure, from the last checkpoint
  std::string checkpoint;     // its folder; empty: there is none
};

// The exit code of the job. Bad_input where there is no MPI, or where restarts have nothing to go
// on from.
[[nodiscard]] int start_ranks(const StartRanks& options);

}  // namespace ridgeline::cli
