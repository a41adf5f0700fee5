#include "train/step_runner.h"

#include <algorithm>
#include <cstring>
#include <limits>

#include "base/error.h"
#include "base/hash.h"
#include "base/text.h"

namespace ridgeline {
namespace {

std::uint64_t hash_of_bytes(std::span<const std::byte> bytes) {
  return hash_of({reinterpret_cast<const char*>(bytes.data()), bytes.size()});
}

}  // namespace

StepRunner::StepRunner(Device& device, PlanRequest request)
    : request_(std::move(request)), session_(device) {
  if (!request_.by_structure) request_.by_structure = std::make_shared<PlanChoices>();
}

Session::PlanId StepRunner::add(StepGraph step, bool seldom) {
  if (parameters_.empty()) parameters_ = std::move(step.parameters);
  logits_.push_back(step.logits);
  PlanRequest request = request_;
  request.measure = request.measure && !seldom;
  return session_.add(plan_for(std::move(step.graph), request, session_.device()));
}

Session::PlanId StepRunner::add_training(const StepSpec& spec, bool seldom) {
  dtype_ = spec.dtype;
  precision_ = spec.precision;
  return add(training_graph(spec), seldom);
}

Session::PlanId StepRunner::add_evaluation(const StepSpec& spec, bool seldom) {
  dtype_ = spec.dtype;
  precision_ = spec.precision;
  return add(evaluation_graph(spec), seldom);
}

std::vector<std::byte> StepRunner::to_bytes(std::span<const double> values) const {
  std::vector<std::byte> bytes(values.size() * size_of(dtype_));
  if (dtype_ == DType::f64) {
    std::memcpy(bytes.data(), values.data(), bytes.size());
    return bytes;
  }
  ensure(dtype_ == DType::f32, "parameters are kept in f32 or f64, not {}", name_of(dtype_));
  std::transform(values.begin(), values.end(), reinterpret_cast<float*>(bytes.data()),
                 [](double value) { return static_cast<float>(value); });
  return bytes;
}

void StepRunner::prepare(std::uint64_t seed) {
  session_.prepare();
  session_.step_state().loss_scale = first_loss_scale(precision_);
  session_.write_step_state();
  for (const Parameter& parameter : parameters_) {
    if (!session_.has(parameter.name)) continue;
    const std::vector<std::byte> bytes = to_bytes(initial_values(parameter, seed));
    write_state(parameter.name, bytes);
    beginnings_[parameter.name] = hash_of_bytes(bytes);
  }
}

void StepRunner::load(const WeightMatch& match) {
  for (const WeightMatch::Pair& pair : match.pairs) {
    const std::vector<float> values = pair.tensor->to_float();
    const std::vector<std::byte> bytes =
        to_bytes(std::vector<double>(values.begin(), values.end()));
    write_state(pair.parameter, bytes);
    beginnings_[pair.parameter] = hash_of_bytes(bytes);
  }
}

StepRunner::NamedTensor StepRunner::read_tensor(const std::string& name, const Shape& shape) const {
  NamedTensor tensor{name, shape, dtype_, {}};
  tensor.bytes.resize(static_cast<std::size_t>(shape.elements()) * size_of(dtype_));
  session_.read(name, tensor.bytes);
  return tensor;
}

std::vector<StepRunner::NamedTensor> StepRunner::read_weights() const {
  std::vector<NamedTensor> tensors;
  for (const Parameter& parameter : parameters_) {
    // A plan may leave out what it does not touch.
    if (session_.has(parameter.name)) {
      tensors.push_back(read_tensor(parameter.name, parameter.file_shape));
    }
  }
  return tensors;
}

std::vector<StepRunner::NamedTensor> StepRunner::read_state() const {
  std::vector<NamedTensor> tensors = read_weights();
  for (const Value& value : session_.plan(0).graph->values()) {
    if (value.role == Role::optimizer_state && value.version_of == kNoValue) {
      tensors.push_back(read_tensor(value.name, value.spec.shape));
    }
  }
  return tensors;
}

void StepRunner::write_state(const std::string& name, std::span<const std::byte> bytes) {
  session_.write(name, bytes);
  session_.device().synchronize();
}

void StepRunner::note_statistics() {
  if (statistics_.empty()) {
    for (const Parameter& parameter : parameters_) {
      if (parameter.role != Role::statistics || !session_.has(parameter.name)) continue;
      statistics_.push_back(read_tensor(parameter.name, parameter.shape));
    }
  }
  for (NamedTensor& tensor : statistics_) session_.read(tensor.name, tensor.bytes);
}

void StepRunner::put_back_statistics() {
  for (const NamedTensor& tensor : statistics_) write_state(tensor.name, tensor.bytes);
}

void StepRunner::write_totals(const MetricTotals& totals) {
  session_.write(kMetrics, std::as_bytes(std::span(&totals, 1)));
  session_.device().synchronize();
}

void StepRunner::write_batch(const Batch& batch) {
  if (batch.place != nullptr) {
    batch.place->deliver(batch.slot, static_cast<std::size_t>(batch.rows),
                         session_.place(kImages).data());
  } else {
    session_.write(kImages, std::as_bytes(batch.pixels));
  }
  session_.write(kLabels, std::as_bytes(batch.labels));
  if (session_.has(kSamples)) session_.write(kSamples, std::as_bytes(batch.samples));
}

MetricTotals StepRunner::totals() const {
  MetricTotals totals;
  session_.read(kMetrics, std::as_writable_bytes(std::span(&totals, 1)));
  return totals;
}

void StepRunner::clear_totals() { session_.clear(kMetrics); }

std::vector<std::string> StepRunner::unchanged_parameters() const {
  std::vector<std::string> names;
  for (const Parameter& parameter : parameters_) {
    if (parameter.role != Role::parameter || parameter.frozen) continue;
    const NamedTensor now = read_tensor(parameter.name, parameter.shape);
    if (hash_of_bytes(now.bytes) == beginnings_.at(parameter.name)) names.push_back(parameter.name);
  }
  return names;
}

std::int64_t count_parameters(std::span<const Parameter> parameters) {
  std::int64_t count = 0;
  for (const Parameter& parameter : parameters) {
    if (parameter.role == Role::parameter) count += parameter.shape.elements();
  }
  return count;
}

void check_memory(const Device& device, std::int64_t batch, std::int64_t bytes,
                  const std::function<std::int64_t(std::int64_t)>& needed) {
  const auto available = static_cast<std::int64_t>(
      std::min<std::size_t>(device.available_memory(), std::numeric_limits<std::int64_t>::max()));
  if (bytes <= available) return;
  std::int64_t fits = 0, too_large = batch;
  while (too_large - fits > 1) {
    const std::int64_t middle = fits + (too_large - fits) / 2;
    (needed(middle) <= available ? fits : too_large) = middle;
  }
  no_room("too little memory for batch {}: {} needed, {} available on {}; {}", batch,
          bytes_text(bytes), bytes_text(available), device.name(),
          fits > 0 ? fmt::format("the largest batch that fits is {}", fits)
                   : std::string("not even a batch of 1 fits"));
}

void check_training_memory(Device& device, const StepSpec& spec,
                           std::span<const PlanRequest> requests) {
  const auto needed = [&](std::int64_t batch) {
    StepSpec sized = spec;
    sized.batch = batch;
    std::int64_t bytes = batch * spec.model.channels * spec.model.height * spec.model.width;
    for (const PlanRequest& request : requests) {
      PlanRequest unmeasured = without_search(request, device);
      unmeasured.measure = false;
      StepRunner dry(device, unmeasured);
      (void)dry.add_training(sized);
      bytes += dry.bytes();
    }
    return bytes;
  };
  check_memory(device, spec.batch, needed(spec.batch), needed);
}

}  // namespace ridgeline
