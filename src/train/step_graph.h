#pragma once

// One whole step as a graph: from pixels to updated weights for training, from pixels to logits and
// totals for evaluation, from pixels to logits alone for inference.

#include <functional>
#include <string>
#include <variant>
#include <vector>

#include "base/precision.h"
#include "graph/divide.h"
#include "graph/fold_norms.h"
#include "graph/graph.h"
#include "models/model.h"

namespace ridgeline {

// Names of the values that the host writes and reads.
inline constexpr const char* kImages = "images";    // input, u8 (N, C, H, W)
inline constexpr const char* kLabels = "labels";    // input, i32 (N)
inline constexpr const char* kSamples = "samples";  // input, i32 (N), only with `flip`
inline constexpr const char* kMetrics = "metrics";  // MetricTotals

using OptimizerAttributes = std::variant<SgdAttributes, AdamAttributes>;

struct StepSpec {
  ModelConfig model;
  std::int64_t batch = 64;
  std::vector<double> mean, deviation;  // of the pixels / 255, one per channel; empty: 0 and 1
  bool flip = false;
  double label_smoothing = 0.0;
  OptimizerAttributes optimizer = SgdAttributes{};
  double clip_norm = 0.0;  // the largest norm of all gradients together; 0: any
  // Of a step that computes a part of the batch, `batch` is the part's rows, or 1 where it has
  // none.
  DivideOptions divide = {};
  // Names of parameters that are not trained, with * and ?: 'features.*'.
  std::vector<std::string> freeze = {};
  // Computes the outputs of batch norms and activations again in the backward pass: less memory.
  bool recompute = false;
  // Gradients can be read after the step; otherwise their memory may have been used again.
  bool keep_gradients = false;
  DType dtype = DType::f32;  // f64 for references
  Precision precision = Precision::fp32;
  // Inference alone: batch norms go into the convolutions before them, where they can.
  bool fold_norms = true;
  // The input is a tensor of `dtype` that the network takes as it is, instead of pixels.
  bool tensor_input = false;
};

struct StepGraph {
  Graph graph;
  std::vector<Parameter> parameters;  // running statistics included
  ValueId logits = kNoValue, loss = kNoValue;
};

// No labels, no loss, no dropout. `parameters` are the network's own, as files name them; those
// that a fold names are not in the graph, which has the folded ones instead.
struct InferenceGraph {
  Graph graph;
  std::vector<Parameter> parameters;
  std::vector<Fold> folds;
  ValueId logits = kNoValue;
};

// The network between the normalised image and the logits.
using BuildNetwork = std::function<ValueId(NetworkBuilder& builder, ValueId image)>;

// Of the network that spec.model tells, or of any other.
[[nodiscard]] StepGraph training_graph(const StepSpec& spec);
[[nodiscard]] StepGraph evaluation_graph(const StepSpec& spec);
[[nodiscard]] InferenceGraph inference_graph(const StepSpec& spec);
[[nodiscard]] StepGraph training_graph(const StepSpec& spec, const BuildNetwork& build);
[[nodiscard]] StepGraph evaluation_graph(const StepSpec& spec, const BuildNetwork& build);
[[nodiscard]] InferenceGraph inference_graph(const StepSpec& spec, const BuildNetwork& build);

// The initial elements of a parameter: a function of the seed and the parameter's name alone.
[[nodiscard]] std::vector<double> initial_values(const Parameter& parameter, std::uint64_t seed);

// "weight.grad" of "weight".
[[nodiscard]] inline std::string gradient_name(const std::string& parameter) {
  return parameter + ".grad";
}

}  // namespace ridgeline
