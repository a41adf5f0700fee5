#include "measure/iterations/plan_timer.h"

#include "backends/registry.h"
#include "base/clock.h"
#include "inspect/complexity.h"
#include "measure/iterations/provider_shares.h"

namespace ridgeline {
bool searches(const PlanRequest& request) { return measures(request.backend); }

Iteration time_one(Device& device, const std::function<void()>& launch) {
  device.synchronize();
  Iteration iteration;
  const Clock::time_point start = Clock::now();
  iteration.began = start;
  if (device.queue() == nullptr) {
    launch();
    device.synchronize();
  } else {
    iteration.device_seconds = device.time(launch);
  }
  iteration.wall_seconds = seconds_since(start);
  return iteration;
}

std::optional<Iteration> time_queued(Device& device, std::int64_t count,
                                     const std::function<void()>& launch) {
  if (device.queue() == nullptr) return std::nullopt;
  device.synchronize();
  const auto iterations = static_cast<double>(count);
  const Clock::time_point start = Clock::now();
  const double seconds = device.time([&] {
    for (std::int64_t i = 0; i < count; ++i) launch();
  });
  Iteration iteration;
  iteration.device_seconds = seconds / iterations;
  iteration.wall_seconds = seconds_since(start) / iterations;
  return iteration;
}

StepDetails plan_details(Session& session, Session::PlanId id, bool training, bool timed,
                         const StepMeasuring& measuring) {
  const Plan& plan = session.plan(id);
  StepDetails details;
  for (const Step& step : plan.steps) details.kernels.push_back(step.kernel_name());
  details.numbers = complexity_numbers(plan, training);
  details.numbers["planned_bytes"] =
      static_cast<double>(session.state_bytes() + session.scratch_bytes());
  if (const auto runtime = session.device().runtime_memory()) {
    details.numbers["runtime_memory_bytes"] = static_cast<double>(*runtime);
  }
  if (!timed) return details;
  const StepMeasurement measured = measure_steps(session, id, measuring);
  details.steps = step_times(plan, session.device(), measured.seconds);
  details.numbers["step_sum_seconds"] = measured.sum();
  details.numbers["step_sum_share"] = measured.share_of_whole;
  details.notes["providers"] = text_of(provider_shares(details.steps));
  return details;
}

}  // namespace ridgeline
