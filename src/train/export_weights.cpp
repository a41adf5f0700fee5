#include "train/export_weights.h"

#include <cstring>

#include "train/match_weights.h"
#include "train/step_graph.h"

namespace ridgeline {
namespace {

constexpr std::string_view kVariance = ".running_var";  // the last of a layer

template <typename T>
std::span<const std::byte> keep(StateDict& dict, std::span<const T> values) {
  std::vector<std::byte>& bytes = dict.owned.emplace_back(values.size_bytes());
  std::memcpy(bytes.data(), values.data(), bytes.size());
  return bytes;
}

std::vector<float> initial_floats(const Parameter& parameter, std::uint64_t seed) {
  const std::vector<double> values = initial_values(parameter, seed);
  std::vector<float> floats;
  for (const double value : values) floats.push_back(static_cast<float>(value));
  return floats;
}

std::int64_t counted(const WeightFile* source, const std::string& name, std::int64_t otherwise) {
  const WeightTensor* tensor = source == nullptr ? nullptr : source->find(name);
  if (tensor == nullptr || tensor->type != WeightType::i64 || tensor->elements() != 1) {
    return otherwise;
  }
  std::int64_t count = 0;
  std::memcpy(&count, tensor->bytes.data(), sizeof(count));
  return count;
}

}  // namespace

StateDict state_dict(std::span<const Parameter> parameters, const std::string& model,
                     const WeightFile* source, std::uint64_t seed, std::int64_t batches) {
  WeightMatch match;
  if (source != nullptr) match = match_weights(parameters, *source, {.model = model});
  StateDict dict;
  for (std::size_t i = 0; i < parameters.size(); ++i) {
    const Parameter& parameter = parameters[i];
    // A match without troubles has the order of the parameters.
    const std::vector<float> values =
        source != nullptr ? match.pairs[i].tensor->to_float() : initial_floats(parameter, seed);
    WeightTensor tensor{parameter.name, WeightType::f32, {}, keep<float>(dict, values)};
    for (int axis = 0; axis < parameter.file_shape.rank(); ++axis) {
      tensor.dims.push_back(parameter.file_shape[axis]);
    }
    dict.tensors.push_back(std::move(tensor));
    if (!parameter.name.ends_with(kVariance)) continue;
    const std::string layer = parameter.name.substr(0, parameter.name.size() - kVariance.size());
    const std::string name = layer + ".num_batches_tracked";
    const std::int64_t count = counted(source, name, batches);
    dict.tensors.push_back(
        {name, WeightType::i64, {}, keep<std::int64_t>(dict, std::span(&count, 1))});
  }
  return dict;
}

}  // namespace ridgeline
