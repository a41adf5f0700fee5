#pragma once

// What measured training steps and measured inference share: the clock around an iteration, and
// what a plan tells of itself.

#include <functional>
#include <optional>

#include "backends/auto.h"
#include "measure/iterations/measured_step.h"
#include "measure/step_times.h"
#include "plan/session.h"

namespace ridgeline {

// Whether planning tries several kernels, so that its time counts as autotuning.
[[nodiscard]] bool searches(const PlanRequest& request);

// One iteration from an idle device to its end. `launch` starts it and does not wait.
[[nodiscard]] Iteration time_one(Device& device, const std::function<void()>& launch);
// The mean of `count` of them, queued. Nothing on a device without a queue.
[[nodiscard]] std::optional<Iteration> time_queued(Device& device, std::int64_t count,
                                                   const std::function<void()>& launch);

// With `timed`, the time of each step of the plan too.
[[nodiscard]] StepDetails plan_details(Session& session, Session::PlanId plan, bool training,
                                       bool timed, const StepMeasuring& measuring = {});

}  // namespace ridgeline
