#pragma once

// Single training steps for those who write the loop themselves: the same steps, bit for bit, as
// `ridgeline train` runs.

#include <cstdint>
#include <memory>
#include <optional>
#include <span>
#include <string>
#include <vector>

#include "lab/options.h"
#include "train/step_runner.h"

namespace ridgeline {

struct SessionRequest {
  RunOptions run;
  OptimizerOptions optimizer;
  std::string image;               // empty: the model's
  std::string normalize = "unit";  // of pixels
  std::string weights;             // a file to begin with; empty: the initial weights of the seed
  bool tensor_input = false;       // images come as the network takes them, not as pixels
  bool exact = false;              // all in f64, on the reference
  bool keep_gradients = false;     // they can be read after a step
};

// Serves one thread at a time.
class StepSession {
 public:
  // Plans, allocates and writes the weights. Throws bad_input, and as check_memory does.
  explicit StepSession(const SessionRequest& request);

  // One training step with a full batch, images row by row; gives its mean loss. Throws bad_input
  // for sizes that do not fit and labels that are no class. Without a rate, the request's.
  double step(std::span<const std::byte> images, std::span<const std::int32_t> labels,
              std::optional<double> learning_rate = {});
  // Of up to a batch of images, row by row, in evaluation mode.
  [[nodiscard]] std::vector<double> logits(std::span<const std::byte> images);

  // A parameter, a running statistic, or with `keep_gradients` "NAME.grad": elements of element().
  // Throws bad_input for other names and sizes.
  void read(const std::string& name, std::span<std::byte> values) const;
  void write(const std::string& name, std::span<const std::byte> values);
  // Where they lie, for those who read and write there between steps; empty where the host cannot
  // reach the device's memory.
  [[nodiscard]] std::span<std::byte> memory(const std::string& name);

  [[nodiscard]] const StepSpec& spec() const { return spec_; }
  [[nodiscard]] DType element() const { return spec_.dtype; }
  [[nodiscard]] std::string device_name() const { return device_->name(); }
  [[nodiscard]] const std::string& backend() const { return backend_; }
  [[nodiscard]] const std::vector<Parameter>& parameters() const { return runner_->parameters(); }
  [[nodiscard]] std::size_t sample_bytes() const;  // of one image
  [[nodiscard]] std::int64_t steps() const { return steps_; }
  [[nodiscard]] const Plan& plan() const { return runner_->session().plan(train_); }

 private:
  // Runs a plan on the caller's images and labels; gives the totals.
  MetricTotals run(Session::PlanId plan, std::span<const std::byte> images,
                   std::span<const std::int32_t> labels, const StepState& state);
  [[nodiscard]] std::string checked_name(const std::string& name) const;
  [[nodiscard]] std::string checked_name(const std::string& name, std::size_t bytes) const;
  [[nodiscard]] std::int64_t rows_of(std::span<const std::byte> images) const;

  StepSpec spec_;
  std::string backend_;
  double learning_rate_ = 0.0;
  std::uint64_t seed_ = 0;
  std::unique_ptr<Device> device_;
  std::unique_ptr<StepRunner> runner_;
  Session::PlanId train_ = 0, evaluation_ = 0;
  std::int64_t steps_ = 0;
  bool lent_ = false;  // others write the weights as well
};

}  // namespace ridgeline
