#include "train/inference_runner.h"

#include <algorithm>
#include <cstring>
#include <map>

#include "base/error.h"

namespace ridgeline {
namespace {

std::vector<double> to_double(const StepRunner::NamedTensor& tensor) {
  std::vector<double> values(static_cast<std::size_t>(tensor.shape.elements()));
  if (tensor.dtype == DType::f64) {
    std::memcpy(values.data(), tensor.bytes.data(), tensor.bytes.size());
    return values;
  }
  ensure(tensor.dtype == DType::f32, "{}: weights come in f32 or f64, not {}", tensor.name,
         name_of(tensor.dtype));
  std::vector<float> floats(values.size());
  std::memcpy(floats.data(), tensor.bytes.data(), tensor.bytes.size());
  std::copy(floats.begin(), floats.end(), values.begin());
  return values;
}

}  // namespace

InferenceRunner::InferenceRunner(Device& device, PlanRequest request, const StepSpec& spec)
    : session_(device), batch_(spec.batch), dtype_(spec.dtype) {
  InferenceGraph made = inference_graph(spec);
  parameters_ = std::move(made.parameters);
  folds_ = std::move(made.folds);
  logits_ = made.logits;
  request.constant_weights = true;
  plan_ = session_.add(plan_for(std::move(made.graph), request, device));
}

void InferenceRunner::prepare(std::uint64_t seed) {
  session_.prepare();
  session_.step_state() = {.seed = seed, .valid_rows = batch_};
  write_weights([&](const Parameter& parameter) { return initial_values(parameter, seed); });
}

std::vector<double> InferenceRunner::values_of(const WeightSource& source,
                                               const std::string& name) const {
  const auto found =
      std::find_if(parameters_.begin(), parameters_.end(),
                   [&](const Parameter& parameter) { return parameter.name == name; });
  ensure(found != parameters_.end(), "the network has no parameter {}", name);
  std::vector<double> values = source(*found);
  ensure(static_cast<std::int64_t>(values.size()) == found->shape.elements(),
         "{}: {} elements given, {} wanted", name, values.size(), found->shape.elements());
  return values;
}

void InferenceRunner::write_weights(const WeightSource& source) {
  const auto values = [&](const std::string& name) { return values_of(source, name); };
  for (const Fold& fold : folds_) {
    const FoldedValues folded = fold_values(fold, values);
    write(fold.folded_weights, folded.weights);
    write(fold.folded_bias, folded.bias);
  }
  for (const Parameter& parameter : parameters_) {
    if (session_.has(parameter.name)) write(parameter.name, values(parameter.name));
  }
}

void InferenceRunner::load(const WeightMatch& match) {
  std::map<std::string, const WeightTensor*> by_name;
  for (const WeightMatch::Pair& pair : match.pairs) by_name[pair.parameter] = pair.tensor;
  write_weights([&](const Parameter& parameter) {
    const auto found = by_name.find(parameter.name);
    ensure(found != by_name.end(), "{}: no weights given", parameter.name);
    const std::vector<float> values = found->second->to_float();
    return std::vector<double>(values.begin(), values.end());
  });
}

void InferenceRunner::load(std::span<const StepRunner::NamedTensor> weights) {
  write_weights([&](const Parameter& parameter) {
    const auto found = std::find_if(weights.begin(), weights.end(), [&](const auto& tensor) {
      return tensor.name == parameter.name;
    });
    ensure(found != weights.end(), "{}: no weights given", parameter.name);
    return to_double(*found);
  });
}

void InferenceRunner::write(const std::string& name, std::span<const double> values) {
  std::vector<float> narrow;
  std::span<const std::byte> bytes = std::as_bytes(values);
  if (dtype_ == DType::f32) {
    narrow.resize(values.size());
    std::transform(values.begin(), values.end(), narrow.begin(),
                   [](double value) { return static_cast<float>(value); });
    bytes = std::as_bytes(std::span(narrow));
  }
  session_.write(name, bytes);
  session_.device().synchronize();  // what is copied from goes out of scope
}

void InferenceRunner::write_batch(std::span<const std::uint8_t> pixels) {
  session_.write(kImages, std::as_bytes(pixels));
}

void InferenceRunner::write_tensor(std::span<const float> input) {
  session_.write(kImages, std::as_bytes(input));
  session_.device().synchronize();
}

void InferenceRunner::run() { session_.run(plan_); }

std::vector<double> InferenceRunner::logits() const { return session_.read_value(plan_, logits_); }

void check_inference_memory(Device& device, const StepSpec& spec, const PlanRequest& request) {
  const auto needed = [&](std::int64_t batch) {
    StepSpec sized = spec;
    sized.batch = batch;
    return InferenceRunner(device, without_search(request, device), sized).bytes();
  };
  check_memory(device, spec.batch, needed(spec.batch), needed);
}

}  // namespace ridgeline
