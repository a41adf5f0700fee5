#pragma once

// A part of a study: one command over lists of values (axes), at one scale.

#include <cstdint>
#include <optional>
#include <string>
#include <string_view>
#include <vector>

#include "base/precision.h"

namespace ridgeline::study {

enum class Scale { small, full };
[[nodiscard]] std::string_view name_of(Scale scale);
// Throws bad_input for another name.
[[nodiscard]] Scale parse_scale(std::string_view name);

// `ceilings` is `env --measure`, `inference` is `bench --inference`.
enum class PartCommand { bench, inference, train, profile, ceilings };
[[nodiscard]] std::string_view name_of(PartCommand command);

// "adam", or "adam lr=0.001": with a learning rate of its own.
struct OptimizerChoice {
  std::string name;
  std::optional<double> learning_rate;
};

// An option of the model and the values that it takes, one after another.
struct SettingAxis {
  std::string name;
  std::vector<std::string> values;
};

constexpr std::int64_t kFullBatch = 0;

struct Part {
  std::string id, title;
  PartCommand command = PartCommand::bench;

  // Axes: every value with every other, but those that `one_at_a_time` names. An empty list leaves
  // it to the command.
  std::vector<std::string> models, backends, devices;
  std::vector<Precision> precisions;
  std::vector<std::string> images;    // as `--image` takes them: "64x64", "3x64x64"
  std::vector<std::int64_t> batches;  // kFullBatch: all of the data
  std::vector<std::int64_t> samples;
  std::vector<OptimizerChoice> optimizers;
  std::vector<double> learning_rates;
  std::vector<SettingAxis> settings;
  std::vector<std::int64_t> threads;
  // Numbers of processes that share the steps, which `bench` measures in turns; of ceilings, whose
  // links are measured.
  std::vector<std::int64_t> ranks;
  // Axes whose values are tried one at a time, the others of this list keeping their first value:
  // "batches", "optimizers", "learning_rates", "precisions", "images", "samples", a setting's name.
  std::vector<std::string> one_at_a_time;

  // What all of them share; nothing: the command's own.
  std::optional<std::int64_t> warmup, iterations, epochs, workers, classes, eval_every;
  std::optional<double> max_seconds, momentum, weight_decay;
  std::vector<std::string> data;        // the first that is there is taken
  std::vector<std::string> substitute;  // where none of them is
  std::string normalize, validation, init, augment, schedule, target_accuracy, weights;
  std::vector<std::string> freeze;
  std::vector<std::string> no_pass;  // of planning, switched off
  std::string scaling, reduce;       // of ranks
  bool unconnected = false;          // as many processes that exchange nothing are measured, too
  bool loader = false, full_batch = false;
  bool weights_required = false;  // left out where the weights are missing, not begun at random
};

}  // namespace ridgeline::study
