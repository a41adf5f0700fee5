#pragma once

// Shares the time of iterations out: each moment belongs to one step of the plan or to one part of
// the breakdown, so that everything adds up to the wall time by construction.
//
// Where several things happen at once the moment belongs to the first of
//   kernel   what the device computes (on the cpu: a step of the plan)
//   copy     what it copies or fills (on the cpu: a batch that is handed over)
//   runtime  a call of the device's runtime that does not wait
//   data     waiting for a batch, and on the host's side handing it over
//   idle     a call that waits for the device while the device does nothing
//   cpu      all else: the host's own work

#include <span>
#include <vector>

#include "measure/profile/profile.h"

namespace ridgeline {

// Iterations around the median by their wall times: the middle quarter, at least one.
[[nodiscard]] std::vector<std::size_t> middle_of(std::span<const double> wall_seconds);
// Over those.
[[nodiscard]] double middle_mean(std::span<const double> wall_seconds);

struct SharedTime {
  double wall = 0.0;          // of an iteration: the mean over the middle ones
  std::vector<double> steps;  // of it, each step of the plan
  TimeBreakdown breakdown;    // all of it
  TimeBreakdown outside;      // without the steps
};

// `host_computes`: the steps of the plan are run by the host itself. REQUIRES: an event for each
// iteration; steps lie below `steps`.
[[nodiscard]] SharedTime share_time(std::span<const ProfileEvent> events, std::size_t steps,
                                    bool host_computes);

// Where only times of steps are known, of passes of their own: what is left of the iterations
// is not known, and it counts as idle.
[[nodiscard]] SharedTime share_time(std::span<const double> wall_seconds,
                                    std::span<const double> step_seconds);

}  // namespace ridgeline
