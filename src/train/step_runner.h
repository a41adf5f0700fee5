#pragma once

// The host's side of training and evaluation steps: a Session with the plans of one model, initial
// weights, batches in, totals out. Trainer, benchmarks and verification all run steps through it.

#include <functional>
#include <map>
#include <span>
#include <string>
#include <vector>

#include "backends/auto.h"
#include "data/loader.h"
#include "plan/session.h"
#include "train/match_weights.h"
#include "train/step_graph.h"

namespace ridgeline {

class StepRunner {
 public:
  // REQUIRES: the device outlives the runner.
  StepRunner(Device& device, PlanRequest request);

  // Plans may have different batches; REQUIRES: the same model otherwise, prepare() not yet called.
  // Nothing is measured for plans that run seldom.
  Session::PlanId add_training(const StepSpec& spec, bool seldom = false);
  Session::PlanId add_evaluation(const StepSpec& spec, bool seldom = false);
  // What prepare() will allocate on the device.
  [[nodiscard]] std::int64_t bytes() const {
    return session_.state_bytes() + session_.scratch_bytes();
  }

  // Allocates everything and writes the initial weights of the seed.
  void prepare(std::uint64_t seed);

  // Hands a batch to the next steps; what is missing to a plan's batch stays as it was.
  void write_batch(const Batch& batch);

  // Running totals since they were cleared; waits for the device.
  [[nodiscard]] MetricTotals totals() const;
  void clear_totals();

  // Writes a file's weights over the initial ones; f16, bf16 and f64 become the session's type.
  void load(const WeightMatch& match);

  // A value of the session's state with its elements.
  struct NamedTensor {
    std::string name;
    Shape shape;
    DType dtype = DType::f32;
    std::vector<std::byte> bytes;
  };
  // All that a network is: parameters and running statistics, in the shapes of weight files.
  [[nodiscard]] std::vector<NamedTensor> read_weights() const;
  // All that a training goes on from: the same and the optimizer's state. REQUIRES: a training
  // plan.
  [[nodiscard]] std::vector<NamedTensor> read_state() const;
  void write_state(const std::string& name, std::span<const std::byte> bytes);
  // Notes the running statistics, and writes them back: a step that is left before it updates the
  // parameters has changed nothing else but totals.
  void note_statistics();
  void put_back_statistics();
  // Running totals, to go on with in the middle of an epoch.
  void write_totals(const MetricTotals& totals);

  // Names of the trained parameters of which no element differs from what they began with.
  [[nodiscard]] std::vector<std::string> unchanged_parameters() const;

  [[nodiscard]] Session& session() { return session_; }
  [[nodiscard]] const Session& session() const { return session_; }
  [[nodiscard]] const std::vector<Parameter>& parameters() const { return parameters_; }
  // The network's output in a plan.
  [[nodiscard]] ValueId logits(Session::PlanId id) const { return logits_[id]; }

 private:
  Session::PlanId add(StepGraph step, bool seldom);
  [[nodiscard]] std::vector<std::byte> to_bytes(std::span<const double> values) const;
  [[nodiscard]] NamedTensor read_tensor(const std::string& name, const Shape& shape) const;

  PlanRequest request_;
  Session session_;
  std::vector<Parameter> parameters_;
  std::vector<ValueId> logits_;                      // one for each plan
  std::map<std::string, std::uint64_t> beginnings_;  // hashes of the parameters' first values
  std::vector<NamedTensor> statistics_;              // as noted
  DType dtype_ = DType::f32;
  Precision precision_ = Precision::fp32;
};

// Elements of the trained parameters; running statistics are none.
[[nodiscard]] std::int64_t count_parameters(std::span<const Parameter> parameters);

// Throws lacks_memory when the device has less than the `bytes` that a batch needs: says what
// is needed, what is there, and the largest batch that fits, for which it asks `needed(batch)`.
// REQUIRES: a larger batch never needs less.
void check_memory(const Device& device, std::int64_t batch, std::int64_t bytes,
                  const std::function<std::int64_t(std::int64_t)>& needed);

// The same for training steps of one batch by each of the requests at once, nothing allocated yet.
void check_training_memory(Device& device, const StepSpec& spec,
                           std::span<const PlanRequest> requests);

}  // namespace ridgeline
