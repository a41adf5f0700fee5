#pragma once

// What a network asks for before anything runs: work, bytes, memory. Everything is read from the
// dry Plan of a training step; the formulas themselves stand in src/ops.

#include <array>
#include <functional>
#include <map>
#include <optional>
#include <string>
#include <vector>

#include "backends/auto.h"
#include "train/step_graph.h"

namespace ridgeline {

inline constexpr std::size_t kPhases = static_cast<std::size_t>(Phase::optimizer) + 1;

// The work of a training step by phase, and what the plan's steps move at their boundaries.
struct StepWork {
  std::array<Cost, kPhases> by_phase{};  // the ops' own work; bytes as if each op ran alone
  Cost total;                            // the same, summed: Plan::work()
  std::int64_t moved_bytes = 0;          // at the boundaries of the plan's steps
  // Of the steps that begin in the forward pass, the loss with its gradient among them; nothing
  // when a kernel computes layers forward and backward at once.
  std::optional<std::int64_t> forward_moved_bytes;

  [[nodiscard]] const Cost& of(Phase phase) const {
    return by_phase[static_cast<std::size_t>(phase)];
  }
  // From the pixels to the loss: input and forward.
  [[nodiscard]] Cost forward() const;
};
[[nodiscard]] StepWork work_of(const Plan& plan);

// The same under the names that the store has for numbers of a run.
[[nodiscard]] std::map<std::string, double> complexity_numbers(const Plan& plan, bool training);

// FLOPs for each byte moved.
[[nodiscard]] std::optional<double> forward_intensity(const StepWork& work);
[[nodiscard]] double training_intensity(const StepWork& work);
// The same of ops that run alone; nothing where no byte is touched.
[[nodiscard]] std::optional<double> intensity(const Cost& cost);

// What one training step at one batch asks for.
struct BatchComplexity {
  std::int64_t batch = 1;
  StepWork work;
  std::array<std::int64_t, kRoles> memory{};  // by role; scratch as it is at the fullest step
  std::int64_t gaps = 0;                      // of the arenas, between what is alive
  std::int64_t peak = 0;                      // what a session allocates: the sum of the above
};
[[nodiscard]] BatchComplexity batch_complexity(const Plan& plan, std::int64_t batch);

// One layer of the network: all ops with its path. Bytes are those of its ops, each alone.
struct LayerComplexity {
  std::string layer;
  std::string ops;  // of the forward pass: "conv2d+bias"; "concat (view)" where no step is needed
  Shape output;     // of the last forward op
  std::int64_t parameters = 0;
  Cost forward, backward, optimizer;

  [[nodiscard]] Cost total() const;
};
[[nodiscard]] std::vector<LayerComplexity> layers_of(const Plan& plan);

// The plan of a training step, nothing allocated. `auto` is planned as native: it would have to run
// kernels to choose.
[[nodiscard]] Plan dry_plan(const StepSpec& spec, const PlanRequest& request, Device& device);

// The largest batch whose training step needs at most `bytes`; 0 when not even one sample fits.
// `known` is a batch already planned. Memory grows nearly in proportion to the batch, so that a few
// plans suffice; the answer itself and the batch after it have been planned.
struct LargestBatch {
  std::int64_t batch = 0, bytes = 0;
};
using PlanOfBatch = std::function<Plan(std::int64_t batch)>;
[[nodiscard]] LargestBatch largest_batch(const PlanOfBatch& plan_of, std::int64_t bytes,
                                         const LargestBatch& known);
[[nodiscard]] LargestBatch largest_batch(const StepSpec& spec, const PlanRequest& request,
                                         Device& device, std::int64_t bytes,
                                         const BatchComplexity& known);

}  // namespace ridgeline
