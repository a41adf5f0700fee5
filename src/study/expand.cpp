#include "study/expand.h"

#include <fmt/core.h>

#include <algorithm>
#include <functional>

#include "onnx/network.h"

namespace ridgeline::study {
namespace {

// One axis: what each of its values does to a configuration.
struct Axis {
  std::string name;
  std::vector<std::function<void(Configuration&)>> values;
};

template <typename Value, typename Set>
Axis axis_of(std::string name, const std::vector<Value>& values, Set set) {
  Axis axis{std::move(name), {}};
  for (const Value& value : values) {
    axis.values.push_back([value, set](Configuration& each) { set(each, value); });
  }
  return axis;
}

// Those of one call each.
std::vector<std::vector<std::int64_t>> batches_of(const Part& part) {
  if (part.command == PartCommand::inference && !part.batches.empty()) return {part.batches};
  std::vector<std::vector<std::int64_t>> single;
  for (const std::int64_t batch : part.batches) single.push_back({batch});
  return single;
}

// In the order in which they vary, the slowest first.
std::vector<Axis> axes_of(const Part& part) {
  std::vector<Axis> axes;
  axes.push_back(axis_of("models", part.models,
                         [](Configuration& each, const auto& value) { each.model = value; }));
  for (const SettingAxis& setting : part.settings) {
    axes.push_back(axis_of(setting.name, setting.values,
                           [name = setting.name](Configuration& each, const auto& value) {
                             each.settings[name] = value;
                           }));
  }
  axes.push_back(axis_of("images", part.images,
                         [](Configuration& each, const auto& value) { each.image = value; }));
  axes.push_back(axis_of("samples", part.samples,
                         [](Configuration& each, const auto& value) { each.samples = value; }));
  axes.push_back(axis_of("batches", batches_of(part),
                         [](Configuration& each, const auto& value) { each.batches = value; }));
  axes.push_back(axis_of("precisions", part.precisions,
                         [](Configuration& each, const auto& value) { each.precision = value; }));
  axes.push_back(
      axis_of("learning_rates", part.learning_rates,
              [](Configuration& each, const auto& value) { each.learning_rate = value; }));
  // Behind the learning rates: an optimizer may have its own.
  axes.push_back(axis_of("optimizers", part.optimizers, [](Configuration& each, const auto& value) {
    each.optimizer = value.name;
    if (value.learning_rate) each.learning_rate = value.learning_rate;
  }));
  axes.push_back(axis_of("threads", part.threads,
                         [](Configuration& each, const auto& value) { each.threads = value; }));
  std::erase_if(axes, [](const Axis& axis) { return axis.values.empty(); });
  return axes;
}

// For one choice of values: their numbers, axis by axis.
using Choice = std::vector<std::size_t>;

void cross(std::vector<Choice>& choices, std::size_t values) {
  std::vector<Choice> crossed;
  for (const Choice& choice : choices) {
    for (std::size_t value = 0; value < values; ++value) {
      crossed.push_back(choice);
      crossed.back().push_back(value);
    }
  }
  choices = std::move(crossed);
}

}  // namespace

std::string Configuration::text() const {
  std::string words = model;
  for (const auto& [name, value] : settings) words += fmt::format(", {} {}", name, value);
  if (!image.empty()) words += ", " + image;
  if (samples) words += fmt::format(", {} samples", *samples);
  if (batches == std::vector{kFullBatch}) {
    words += ", one batch";
  } else if (!batches.empty()) {
    words += ", batch " + batch_text();
  }
  if (precision) words += fmt::format(", {}", name_of(*precision));
  if (!optimizer.empty()) words += ", " + optimizer;
  if (learning_rate) words += fmt::format(", rate {}", *learning_rate);
  if (threads) words += fmt::format(", {} threads", *threads);
  return words;
}

std::string Configuration::batch_text() const {
  std::string text;
  for (const std::int64_t batch : batches) {
    if (!text.empty()) text += ',';
    text += batch == kFullBatch ? "full" : fmt::format("{}", batch);
  }
  return text;
}

std::vector<Configuration> expand(const Part& part) {
  const std::vector<Axis> axes = axes_of(part);
  const auto alone = [&](const Axis& axis) {
    return std::find(part.one_at_a_time.begin(), part.one_at_a_time.end(), axis.name) !=
           part.one_at_a_time.end();
  };
  // Those that are crossed; the others at their first value.
  std::vector<Choice> choices(1);
  for (const Axis& axis : axes) cross(choices, alone(axis) ? 1 : axis.values.size());
  // Then, around each of these, one further value at a time.
  std::vector<Choice> all;
  for (const Choice& base : choices) {
    all.push_back(base);
    for (std::size_t i = 0; i < axes.size(); ++i) {
      if (!alone(axes[i])) continue;
      for (std::size_t value = 1; value < axes[i].values.size(); ++value) {
        all.push_back(base);
        all.back()[i] = value;
      }
    }
  }
  std::vector<Configuration> configurations;
  for (const Choice& choice : all) {
    Configuration configuration;
    for (std::size_t i = 0; i < axes.size(); ++i) axes[i].values[choice[i]](configuration);
    // Two optimizers' own rates, say, make what differs only in the rate of the axis the same.
    if (std::find(configurations.begin(), configurations.end(), configuration) ==
        configurations.end()) {
      configurations.push_back(configuration);
    }
  }
  return configurations;
}

std::string key_of(const Part& part, const Configuration& configuration) {
  std::string key = onnx::key_of_model(configuration.model);
  for (const SettingAxis& setting : part.settings) {
    if (setting.values.size() < 2) continue;
    key += fmt::format("/{}={}", setting.name, configuration.settings.at(setting.name));
  }
  if (part.images.size() > 1) key += "/image=" + configuration.image;
  if (part.samples.size() > 1) key += fmt::format("/samples={}", *configuration.samples);
  if (!part.batches.empty()) key += "/batch=" + configuration.batch_text();
  if (part.precisions.size() > 1) key += fmt::format("/{}", name_of(*configuration.precision));
  if (part.optimizers.size() > 1) key += "/" + configuration.optimizer;
  const bool own_rates =
      std::any_of(part.optimizers.begin(), part.optimizers.end(),
                  [](const OptimizerChoice& choice) { return choice.learning_rate.has_value(); });
  if (configuration.learning_rate && (part.learning_rates.size() > 1 || own_rates)) {
    key += fmt::format("/lr={}", *configuration.learning_rate);
  }
  if (part.threads.size() > 1) key += fmt::format("/threads={}", *configuration.threads);
  return key;
}

}  // namespace ridgeline::study
