#pragma once

// A network and its weights as `export`, `eval` and `infer` take them: from a weight file, from a
// checkpoint, or as they begin.

#include <optional>
#include <string>
#include <vector>

#include "cli/options.h"
#include "train/weight_file.h"

namespace ridgeline::cli {

class Parser;

struct NetworkOptions {
  RunOptions run;  // model, settings, classes, init and seed
  std::string image, weights, checkpoint;
  bool best = false;
};
// --model (also as the first word, where `names` says "MODEL,--model"), --set, --classes, --image,
// --init, --seed, --weights, --checkpoint, --best.
void add_network_options(Parser& command, NetworkOptions& options, const char* names);

struct TrainedNetwork {
  ModelConfig model;
  std::optional<WeightFile> weights;  // of parameters and running statistics; nothing: initial ones
  std::string source;                 // for people
  std::int64_t steps = 0;             // of a checkpoint's training
  std::string normalisation;          // as --normalize takes it; empty: not known
  std::vector<std::string> class_names;
};

// Among the metadata of a safetensors file: a JSON list with a name for each class.
inline constexpr const char* kClassNames = "class_names";

// Also does what `apply` does. Without --classes a weight file's classifier tells the classes.
[[nodiscard]] TrainedNetwork trained_network(const NetworkOptions& options);

}  // namespace ridgeline::cli
