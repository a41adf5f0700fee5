#pragma once

// The steps of a Plan with their measured times: what the profile, the roofline and the shares of
// providers and phases are views of.

#include <span>
#include <string>
#include <vector>

#include "plan/session.h"
#include "store/records.h"

namespace ridgeline {

// "conv2d+bias+activation", or "reorder".
[[nodiscard]] std::string ops_of(const Plan& plan, const Step& step);
// "forward conv2d conv1; forward bias conv1": what each of its ops is; empty for a reorder.
[[nodiscard]] std::string covers_of(const Plan& plan, const Step& step);
// "forward"; of a kernel that computes several of forward, backward and optimizer at once all of
// its phases, "forward+backward-data+optimizer". The loss with its gradient counts as forward.
[[nodiscard]] std::string phase_of(const Plan& plan, const Step& step);
// Of the buffers that a step touches, each byte once, and its workspace.
[[nodiscard]] std::int64_t working_set_of(const Plan& plan, const Step& step);
// What a step must move at the least: its boundary, without pixels that a strided convolution jumps
// over.
[[nodiscard]] std::int64_t bytes_read_by(const Plan& plan, const Step& step);
// The unit whose rate bounds a step: on the CPU "fp32", "fp64", "amx bf16" or "avx512 bf16"; on
// CUDA "tensor bf16", "tensor fp16" or "tensor tf32" for products on tensor cores, "fp32" or "fp64"
// for all else; of an all-reduce "4 ranks", whose links are its roof. Depthwise convolutions have
// no matrix products and count as plain arithmetic.
[[nodiscard]] std::string unit_of(const Plan& plan, const Step& step, const Device& device);

// REQUIRES: one time for each step of the plan.
[[nodiscard]] std::vector<StepTime> step_times(const Plan& plan, const Device& device,
                                               std::span<const double> seconds);

struct StepMeasuring {
  std::int64_t fewest = 7, most = 200;  // passes over the whole plan
  double patience_seconds = 1.0;        // no more passes after that, the fewest always
};

struct StepMeasurement {
  std::vector<double> seconds;  // of each step: the mean over the middle of the passes
  // What the steps of a pass add up to, over the unprofiled step before it: the middle of these. A
  // machine whose speed changes meets both.
  double share_of_whole = 0.0;
  std::int64_t passes = 0;

  [[nodiscard]] double sum() const;
};

// Times every step where it stands: whole plans are run in order with a clock between the steps, so
// that each step finds the caches as in training. (A step repeated alone finds its own data in them
// and comes out too fast.) Passes take turns with unprofiled steps. Of the passes the middle half
// by their totals counts, and their mean: medians of single steps would each leave out the moments
// in which the machine did something else, which the whole step has in it, and add up to less than
// it. On CUDA the clocks are events in a recording of the plan, so that neither launches nor
// waiting lie between the steps; what two events cost by themselves is taken off. The learning rate
// is 0 meanwhile: weights stay as they are, running statistics and totals do not. REQUIRES: a
// prepared session with a batch written.
[[nodiscard]] StepMeasurement measure_steps(Session& session, Session::PlanId plan,
                                            const StepMeasuring& measuring = {});

// The phases of a training step, from the times of its steps. Reading the pixels counts as forward,
// recomputing as backward. `joint` holds kernels that compute several phases at once; their time is
// never split.
struct PhaseSeconds {
  double forward = 0.0, backward = 0.0, optimizer = 0.0, joint = 0.0;

  [[nodiscard]] double sum() const { return forward + backward + optimizer + joint; }
};
[[nodiscard]] PhaseSeconds split_of(std::span<const StepTime> steps);

}  // namespace ridgeline
