#pragma once

// Holds a network's parameters against the tensors of a weight file, by the names that torchvision
// gives them.

#include <span>
#include <string>
#include <utility>
#include <vector>

#include "graph/builder.h"
#include "train/weight_file.h"

namespace ridgeline {

struct MatchOptions {
  std::string model;  // for messages
  // The last layer with parameters, the classifier, and those of auxiliary heads may have another
  // number of classes in the file; they then keep their initial values.
  bool new_head = false;
};

struct WeightMatch {
  struct Pair {
    std::string parameter;
    const WeightTensor* tensor = nullptr;  // of the file, which must outlive the match
  };
  std::vector<Pair> pairs;
  // Of the new head: "fc.weight (1000x512 in the file, 10x512 here)".
  std::vector<std::string> kept;
};

// What is missing, unexpected or of another shape stands in one bad_input Error, ten lines of it
// and a count, with a word on the model that the weights seem to belong to. Counters of batches are
// ignored.
[[nodiscard]] WeightMatch match_weights(std::span<const Parameter> parameters,
                                        const WeightFile& file, const MatchOptions& options);

// The models of the zoo whose parameters the file has, but for the number of classes.
[[nodiscard]] std::vector<std::string> models_that_fit(const WeightFile& file);

// Bad_input naming a tensor with NaN or infinity in it.
void check_finite(const WeightFile& file);

// The same for parameters that begin with the values of a file.
void check_finite(std::span<const Parameter> parameters, const std::string& file);

// The name that a parameter has today: without the "module." and "_orig_mod." of PyTorch's wrappers
// in front, and DenseNet's
// "denselayer1.norm.1.weight" as "denselayer1.norm1.weight".
[[nodiscard]] std::string modern_name(std::string_view name);

// The layer of the last weight in the list: "fc".
[[nodiscard]] std::string head_layer(std::span<const Parameter> parameters);

// "bn1.num_batches_tracked", and "n_averaged" of averaged weights: PyTorch counts there; nothing
// here needs it.
[[nodiscard]] bool is_batch_counter(std::string_view name);

}  // namespace ridgeline
