#include "train/match_weights.h"

#include <algorithm>
#include <cmath>
#include <map>

#include "base/error.h"
#include "base/text.h"
#include "train/step_graph.h"

namespace ridgeline {
namespace {

using TensorsByName = std::map<std::string, const WeightTensor*, std::less<>>;

std::vector<std::int64_t> dims_of(const Shape& shape) {
  std::vector<std::int64_t> dims;
  for (int axis = 0; axis < shape.rank(); ++axis) dims.push_back(shape[axis]);
  return dims;
}

// The dimensions of a parameter in files.
std::vector<std::int64_t> file_dims(const Parameter& parameter) {
  return dims_of(parameter.file_shape);
}

std::string layer_of(std::string_view name) { return std::string(name.substr(0, name.rfind('.'))); }

TensorsByName tensors_by_name(const WeightFile& file) {
  TensorsByName tensors;
  for (const WeightTensor& tensor : file.tensors) {
    if (is_batch_counter(tensor.name)) continue;
    const auto [entry, is_new] = tensors.emplace(modern_name(tensor.name), &tensor);
    if (!is_new) {
      bad_input("{}: '{}' and '{}' are two names of one parameter", file.path.string(),
                entry->second->name, tensor.name);
    }
  }
  return tensors;
}

// Another number of classes: only the first dimension differs.
bool differs_in_classes(std::span<const std::int64_t> a, std::span<const std::int64_t> b) {
  return a.size() == b.size() && !a.empty() && a[0] != b[0] &&
         std::equal(a.begin() + 1, a.end(), b.begin() + 1);
}

// The parameters of a model of the zoo as torchvision has it; none where the model cannot be built
// for such images.
std::vector<Parameter> zoo_parameters(const ModelInfo& model, std::int64_t channels,
                                      std::int64_t side) {
  StepSpec spec;
  spec.batch = 1;
  spec.model.name = std::string(model.name);
  spec.model.channels = channels;
  spec.model.height = spec.model.width = side;
  try {
    return evaluation_graph(spec).parameters;
  } catch (const Error&) {
    return {};
  }
}

// Whether a parameter's first dimension is the number of classes.
bool is_of_head(const Parameter& parameter, const std::string& head) {
  return parameter.auxiliary_head || layer_of(parameter.name) == head;
}

// Whether the file has exactly a model's names, and its shapes up to the heads'.
bool fits(const std::vector<Parameter>& parameters, const TensorsByName& tensors) {
  if (parameters.empty() || parameters.size() != tensors.size()) return false;
  const std::string head = head_layer(parameters);
  return std::all_of(parameters.begin(), parameters.end(), [&](const Parameter& parameter) {
    const auto found = tensors.find(parameter.name);
    return found != tensors.end() &&
           (is_of_head(parameter, head) || found->second->dims == file_dims(parameter));
  });
}

std::vector<std::string> models_that_fit(const TensorsByName& tensors) {
  std::vector<std::string> names;
  for (const ModelInfo& model : all_models()) {
    if (fits(zoo_parameters(model, 3, 224), tensors) ||
        fits(zoo_parameters(model, 1, 28), tensors)) {
      names.emplace_back(model.name);
    }
  }
  return names;
}

std::string hint(const TensorsByName& tensors, const std::string& asked) {
  std::vector<std::string> names = models_that_fit(tensors);
  std::erase(names, asked);
  if (names.empty()) return {};
  return fmt::format("\nThese weights belong to {}", joined(names, " or "));
}

}  // namespace

std::vector<std::string> models_that_fit(const WeightFile& file) {
  return models_that_fit(tensors_by_name(file));
}

void check_finite(const WeightFile& file) {
  for (const WeightTensor& tensor : file.tensors) {
    if (!is_real(tensor.type)) continue;
    const std::vector<float> values = tensor.to_float();
    const auto wrong = std::count_if(values.begin(), values.end(),
                                     [](float value) { return !std::isfinite(value); });
    if (wrong == 0) continue;
    bad_input(
        "{}: '{}' has {} of {} values that are not finite; the training that produced it failed",
        file.path.string(), tensor.name, wrong, values.size());
  }
}

void check_finite(std::span<const Parameter> parameters, const std::string& file) {
  for (const Parameter& parameter : parameters) {
    if (parameter.init.kind != Init::Kind::given) continue;
    const std::vector<double> values = parameter.init.values();
    const auto wrong = std::count_if(values.begin(), values.end(),
                                     [](double value) { return !std::isfinite(value); });
    if (wrong > 0) {
      bad_input("{}: '{}' has {} of {} values that are not finite", file, parameter.name, wrong,
                values.size());
    }
  }
}

bool is_batch_counter(std::string_view name) {
  return name == "n_averaged" || name == "num_batches_tracked" ||
         name.ends_with(".num_batches_tracked");
}

std::string modern_name(std::string_view name) {
  for (const std::string_view wrapper : {"module.", "_orig_mod.", "module."}) {
    while (name.starts_with(wrapper)) name.remove_prefix(wrapper.size());
  }
  std::string modern(name);
  const std::size_t layer = modern.find("denselayer");
  if (layer == std::string::npos) return modern;
  for (const char* part : {".norm.", ".relu.", ".conv."}) {
    const std::size_t at = modern.find(part, layer);
    const std::size_t digit = at == std::string::npos ? at : at + 6;
    if (digit == std::string::npos || digit + 1 >= modern.size()) continue;
    if ((modern[digit] == '1' || modern[digit] == '2') && modern[digit + 1] == '.') {
      modern.erase(digit - 1, 1);
    }
  }
  return modern;
}

std::string head_layer(std::span<const Parameter> parameters) {
  for (std::size_t i = parameters.size(); i-- > 0;) {
    const Parameter& parameter = parameters[i];
    if (parameter.role == Role::parameter && parameter.name.ends_with(".weight")) {
      return layer_of(parameter.name);
    }
  }
  return {};
}

WeightMatch match_weights(std::span<const Parameter> parameters, const WeightFile& file,
                          const MatchOptions& options) {
  const TensorsByName tensors = tensors_by_name(file);
  const std::string head = head_layer(parameters);
  WeightMatch match;
  TextTable troubles({"trouble", "tensor", "in the file", "in the network"}, "llll");
  std::size_t count = 0;
  const auto trouble = [&](const char* what, const std::string& name, std::string there,
                           std::string here) {
    if (++count > kMostListed) return;
    troubles.add_row({what, name, std::move(there), std::move(here)});
  };
  std::size_t used = 0;
  for (const Parameter& parameter : parameters) {
    const std::vector<std::int64_t> dims = file_dims(parameter);
    const auto found = tensors.find(parameter.name);
    if (found == tensors.end()) {
      trouble("missing", parameter.name, "", dims_text(dims));
      continue;
    }
    ++used;
    const WeightTensor& tensor = *found->second;
    if (!is_real(tensor.type)) {
      trouble("no weights", parameter.name, tensor.text(), dims_text(dims));
    } else if (tensor.dims == dims) {
      match.pairs.push_back({parameter.name, &tensor});
    } else if (options.new_head && is_of_head(parameter, head) &&
               differs_in_classes(tensor.dims, dims)) {
      match.kept.push_back(fmt::format("{} ({} in the file, {} here)", parameter.name,
                                       dims_text(tensor.dims), dims_text(dims)));
    } else {
      trouble("other shape", parameter.name, dims_text(tensor.dims), dims_text(dims));
    }
  }
  if (used != tensors.size()) {
    for (const auto& [name, tensor] : tensors) {
      const bool known = std::any_of(parameters.begin(), parameters.end(),
                                     [&](const Parameter& p) { return p.name == name; });
      if (!known) trouble("unexpected", name, dims_text(tensor->dims), "");
    }
  }
  if (count > 0) {
    const std::string more =
        count > kMostListed ? fmt::format("and {} more\n", count - kMostListed) : std::string();
    bad_input("{}: the weights do not fit {}; nothing was loaded\n{}{}{}", file.path.string(),
              options.model, troubles.text(), more, hint(tensors, options.model));
  }
  return match;
}

}  // namespace ridgeline
