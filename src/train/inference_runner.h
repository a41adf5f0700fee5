#pragma once

// The host's side of inference: one plan from pixels to logits, batch norms folded into the weights
// when these are written. `infer` and the benchmarks of latency and throughput run through it.

#include <cstdint>
#include <functional>
#include <span>
#include <string>
#include <vector>

#include "backends/auto.h"
#include "plan/session.h"
#include "train/match_weights.h"
#include "train/step_graph.h"
#include "train/step_runner.h"

namespace ridgeline {

class InferenceRunner {
 public:
  // Makes the plan and allocates nothing. REQUIRES: the device outlives the runner.
  InferenceRunner(Device& device, PlanRequest request, const StepSpec& spec);

  // What prepare() will allocate on the device.
  [[nodiscard]] std::int64_t bytes() const {
    return session_.state_bytes() + session_.scratch_bytes();
  }

  // Allocates everything and writes the initial weights of the seed.
  void prepare(std::uint64_t seed);

  // The elements of one of the network's own parameters.
  using WeightSource = std::function<std::vector<double>(const Parameter& parameter)>;
  // Asks for every parameter, folds in double, writes in the session's type. All others do this.
  void write_weights(const WeightSource& source);
  // REQUIRES: the match has all parameters.
  void load(const WeightMatch& match);
  // Of a StepRunner: the network as it is in a training.
  void load(std::span<const StepRunner::NamedTensor> weights);

  // Hands over the pixels of up to a batch of images; rows that are missing stay as they were.
  void write_batch(std::span<const std::uint8_t> pixels);
  // The same with the network's input itself. REQUIRES: the spec said `tensor_input`, in f32.
  void write_tensor(std::span<const float> input);
  // Queued, where the device queues.
  void run();
  // Of the images of the last run, row by row; waits for the device.
  [[nodiscard]] std::vector<double> logits() const;

  [[nodiscard]] Session& session() { return session_; }
  // For those who time its steps.
  [[nodiscard]] Session::PlanId plan_id() const { return plan_; }
  [[nodiscard]] const Plan& plan() const { return session_.plan(plan_); }
  [[nodiscard]] const std::vector<Parameter>& parameters() const { return parameters_; }
  // The batch norms that are gone from the plan.
  [[nodiscard]] const std::vector<Fold>& folds() const { return folds_; }
  [[nodiscard]] std::int64_t batch() const { return batch_; }

 private:
  [[nodiscard]] std::vector<double> values_of(const WeightSource& source,
                                              const std::string& name) const;
  void write(const std::string& name, std::span<const double> values);

  Session session_;
  Session::PlanId plan_ = 0;
  std::vector<Parameter> parameters_;
  std::vector<Fold> folds_;
  ValueId logits_ = kNoValue;
  std::int64_t batch_;
  DType dtype_;
};

// Throws as check_memory does when a batch needs more than the device has.
void check_inference_memory(Device& device, const StepSpec& spec, const PlanRequest& request);

}  // namespace ridgeline
