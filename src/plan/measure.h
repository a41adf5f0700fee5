#pragma once

// Times the steps of a Plan in place, on values like those of a real training step.

#include <string>
#include <vector>

#include "devices/device.h"
#include "plan/plan.h"

namespace ridgeline {

// Fills a session's state for timing: random parameters, random pixels, valid labels, a
// learning rate of 0 so that nothing drifts. Zeros would flatter the hardware.
class Session;
void fill_for_timing(Session& session, std::size_t plan);

// The time of every step, each alone.
[[nodiscard]] std::vector<double> time_steps(Session& session, std::size_t plan);

// The fastest of a few runs of one step, or of the whole plan: more of them where they are short.
// REQUIRES: the plan has run before, so that values are there and memory is mapped.
[[nodiscard]] double time_step(Session& session, std::size_t plan, std::size_t step);
[[nodiscard]] double time_whole(Session& session, std::size_t plan);

}  // namespace ridgeline
