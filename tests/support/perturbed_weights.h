#pragma once

// Weights of a network as a training would leave them: statistics, scales and shifts of batch norms
// away from the 0 and 1 they start with. With those a norm would do nothing, and neither would a
// wrong one.

#include <algorithm>
#include <cmath>
#include <vector>

#include "base/hash.h"
#include "base/philox.h"
#include "support/worst_difference.h"
#include "train/inference_runner.h"

namespace ridgeline::testing {

[[nodiscard]] inline std::vector<double> perturbed_weights(const Parameter& parameter) {
  // Some thousand numbers that repeat, in a row no layer has: drawing millions would take long.
  constexpr std::size_t kDrawn = 4099;
  PhiloxSequence random(2, RandomStream::weights, hash_of(parameter.name));
  std::vector<double> drawn(kDrawn);
  for (double& value : drawn) value = random.normal();
  std::vector<double> values(static_cast<std::size_t>(parameter.shape.elements()));
  for (std::size_t i = 0; i < values.size(); ++i) {
    const double number = drawn[i % kDrawn];
    if (parameter.init.kind != Init::Kind::constant) {
      values[i] = parameter.init.amount * number;
    } else {
      values[i] = parameter.init.amount == 0.0 ? 0.2 * number : 0.5 + 1.0 / (1.0 + number * number);
    }
  }
  return values;
}

[[nodiscard]] inline std::vector<std::uint8_t> random_pixels(const StepSpec& spec) {
  PhiloxSequence random(3, RandomStream::synthetic, 0);
  std::vector<std::uint8_t> pixels(static_cast<std::size_t>(spec.batch * spec.model.channels *
                                                            spec.model.height * spec.model.width));
  for (std::uint8_t& pixel : pixels) pixel = static_cast<std::uint8_t>(random.below(256));
  return pixels;
}

// A model of the zoo on small images.
[[nodiscard]] inline StepSpec small_spec(const char* model, std::int64_t batch = 2) {
  StepSpec spec;
  spec.model = default_config(model);
  if (spec.model.height > 32) spec.model.height = spec.model.width = 32;
  spec.model.classes = 10;
  spec.batch = batch;
  return spec;
}

[[nodiscard]] inline std::vector<double> inferred_logits(Device& device, const char* backend,
                                                         const StepSpec& spec) {
  PlanRequest request;
  request.backend = backend;
  InferenceRunner runner(device, request, spec);
  runner.session().prepare();
  runner.write_weights(perturbed_weights);
  runner.write_batch(random_pixels(spec));
  runner.run();
  return runner.logits();
}

// Of the evaluation graph, in which every batch norm is a step of its own.
[[nodiscard]] inline std::vector<double> evaluated_logits(Device& device, const char* backend,
                                                          const StepSpec& spec) {
  PlanRequest request;
  request.backend = backend;
  StepRunner runner(device, request);
  const Session::PlanId plan = runner.add_evaluation(spec);
  runner.session().prepare();
  for (const Parameter& parameter : runner.parameters()) {
    const std::vector<double> values = perturbed_weights(parameter);
    const std::vector<float> floats(values.begin(), values.end());
    runner.write_state(parameter.name, spec.dtype == DType::f64 ? std::as_bytes(std::span(values))
                                                                : std::as_bytes(std::span(floats)));
  }
  const std::vector<std::uint8_t> pixels = random_pixels(spec);
  const std::vector<std::int32_t> labels(static_cast<std::size_t>(spec.batch), 0);
  Batch batch;
  batch.pixels = pixels;
  batch.labels = labels;
  batch.rows = spec.batch;
  runner.write_batch(batch);
  runner.session().step_state().valid_rows = spec.batch;
  runner.session().run(plan);
  return runner.session().read_value(plan, runner.logits(plan));
}

// The largest difference, in units of the largest expected value.
[[nodiscard]] inline double relative_error(std::span<const double> values,
                                           std::span<const double> expected) {
  double largest = 0.0;
  for (const double value : expected) largest = std::max(largest, std::abs(value));
  return worst_difference(values, expected) / largest;
}

}  // namespace ridgeline::testing
