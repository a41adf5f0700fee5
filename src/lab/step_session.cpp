#include "lab/step_session.h"

#include <cmath>

#include "base/error.h"
#include "devices/device.h"

namespace ridgeline {
namespace {

constexpr std::string_view kGradient = ".grad";

StepSpec spec_of(const SessionRequest& request) {
  StepSpec spec;
  spec.model = model_config(request.run);
  set_image(spec.model, request.image);
  spec.batch = request.run.batch;
  spec.freeze = request.run.freeze;
  spec.recompute = request.run.recompute;
  spec.optimizer = optimizer_attributes(request.optimizer);
  spec.label_smoothing = request.optimizer.label_smoothing;
  if (!(spec.label_smoothing >= 0.0 && spec.label_smoothing <= 1.0)) {
    bad_input("label smoothing {}: must be between 0 and 1", spec.label_smoothing);
  }
  spec.tensor_input = request.tensor_input;
  spec.keep_gradients = request.keep_gradients;
  if (request.exact) spec.dtype = DType::f64;
  if (!request.tensor_input) set_normalisation(spec, request.normalize);
  return spec;
}

// After an error: what the device says then would only hide it.
void wait_quietly(Device& device) noexcept {
  try {
    device.synchronize();
  } catch (const std::exception&) {
    return;
  }
}

}  // namespace

StepSession::StepSession(const SessionRequest& request) {
  apply(request.run);
  spec_ = spec_of(request);
  learning_rate_ = learning_rate(request.optimizer);
  seed_ = static_cast<std::uint64_t>(request.run.seed);
  std::string backend = request.run.backend;
  if (request.exact && backend.empty()) backend = "reference";
  if (request.exact && backend != "reference") {
    bad_input("{} does not compute in fp64; only the backend reference does", backend);
  }
  const PlanRequest plan = plan_request(request.run, backend);
  backend_ = plan.backend;
  device_ = make_device(request.run.device);
  spec_.precision = precision_of(request.run, *device_);
  check_training_memory(*device_, spec_, {&plan, 1});
  runner_ = std::make_unique<StepRunner>(*device_, plan);
  train_ = runner_->add_training(spec_);
  // Logits are compared with those of others: plain, without what training smooths.
  StepSpec evaluation = spec_;
  evaluation.label_smoothing = 0.0;
  evaluation_ = runner_->add_evaluation(evaluation);
  runner_->prepare(seed_);
  if (!request.weights.empty()) {
    const WeightFile file = open_weights(request.weights);
    check_finite(file);
    runner_->load(
        match_weights(runner_->parameters(), file, {.model = spec_.model.name, .new_head = false}));
  }
}

std::size_t StepSession::sample_bytes() const {
  const auto elements =
      static_cast<std::size_t>(spec_.model.channels * spec_.model.height * spec_.model.width);
  return elements * (spec_.tensor_input ? size_of(spec_.dtype) : 1);
}

std::int64_t StepSession::rows_of(std::span<const std::byte> images) const {
  if (images.size() % sample_bytes() != 0) {
    bad_input("{} bytes of images: one image has {}", images.size(), sample_bytes());
  }
  return static_cast<std::int64_t>(images.size() / sample_bytes());
}

double StepSession::step(std::span<const std::byte> images, std::span<const std::int32_t> labels,
                         std::optional<double> rate) {
  if (rows_of(images) != spec_.batch || std::ssize(labels) != spec_.batch) {
    bad_input("a step takes {} images and labels; {} and {} given", spec_.batch, rows_of(images),
              labels.size());
  }
  for (const std::int32_t label : labels) {
    if (label < 0 || label >= spec_.model.classes) {
      bad_input("label {}: must be between 0 and {}", label, spec_.model.classes - 1);
    }
  }
  if (rate && !(*rate >= 0.0 && std::isfinite(*rate))) {
    bad_input("learning rate {}: must be a finite number, not below 0", *rate);
  }
  runner_->clear_totals();
  const MetricTotals totals = run(train_, images, labels,
                                  {.learning_rate = rate.value_or(learning_rate_),
                                   .optimizer_step = steps_ + 1,
                                   .seed = seed_,
                                   .random_step = steps_,
                                   .valid_rows = spec_.batch});
  ++steps_;
  return totals.loss / totals.rows;
}

// The device reads the caller's memory until it has been waited for, also where the run fails.
MetricTotals StepSession::run(Session::PlanId plan, std::span<const std::byte> images,
                              std::span<const std::int32_t> labels, const StepState& state) {
  Session& session = runner_->session();
  try {
    session.lend(kImages, images);
    if (!labels.empty()) session.lend(kLabels, std::as_bytes(labels));
    if (lent_) session.weights_changed();
    session.step_state() = state;
    session.run(plan);
    return runner_->totals();
  } catch (const std::exception&) {
    wait_quietly(*device_);
    throw;
  }
}

std::vector<double> StepSession::logits(std::span<const std::byte> images) {
  const std::int64_t rows = rows_of(images);
  if (rows < 1 || rows > spec_.batch) {
    bad_input("{} images: between 1 and {} are possible at once", rows, spec_.batch);
  }
  (void)run(evaluation_, images, {}, {.seed = seed_, .valid_rows = rows});
  std::vector<double> all =
      runner_->session().read_value(evaluation_, runner_->logits(evaluation_));
  all.resize(static_cast<std::size_t>(rows * spec_.model.classes));
  return all;
}

std::string StepSession::checked_name(const std::string& name) const {
  const bool gradient = spec_.keep_gradients && name.ends_with(kGradient);
  const std::string owner = gradient ? name.substr(0, name.size() - kGradient.size()) : name;
  for (const Parameter& parameter : runner_->parameters()) {
    if (parameter.name == owner && runner_->session().has(name)) return name;
  }
  bad_input("{} has no tensor '{}'{}", spec_.model.name, name,
            name.ends_with(kGradient) && !spec_.keep_gradients
                ? "; gradients are kept with keep_gradients"
                : "");
}

std::string StepSession::checked_name(const std::string& name, std::size_t bytes) const {
  const std::size_t wanted = runner_->session().place(checked_name(name)).size();
  if (bytes != wanted) bad_input("{}: {} bytes given, {} wanted", name, bytes, wanted);
  return name;
}

void StepSession::read(const std::string& name, std::span<std::byte> values) const {
  runner_->session().read(checked_name(name, values.size()), values);
}

void StepSession::write(const std::string& name, std::span<const std::byte> values) {
  runner_->write_state(checked_name(name, values.size()), values);
}

std::span<std::byte> StepSession::memory(const std::string& name) {
  const std::span<std::byte> place = runner_->session().place(checked_name(name));
  if (device_->kind() != "cpu") return {};
  lent_ = true;
  return place;
}

}  // namespace ridgeline
