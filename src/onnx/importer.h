#pragma once

// Builds the network of a file with NetworkBuilder: nodes in their order, each by the function for
// its op. What can be known at import is computed there and then.

#include <map>
#include <optional>
#include <set>
#include <span>
#include <string>
#include <variant>
#include <vector>

#include "graph/builder.h"
#include "onnx/constants.h"
#include "onnx/file.h"
#include "onnx/names.h"
#include "onnx/pointwise.h"
#include "onnx/view.h"

namespace ridgeline::onnx {

// A value of our graph as the file sees it.
struct Tensor {
  ValueId id = kNoValue;
  View view;
  std::string layer = {};  // of the last op that changed the view
};

// A function of every element of a tensor that no op stands for yet: GELU is written as five of
// them. Where the whole is no activation of ours, its parts may be.
struct Lazy {
  Tensor of;
  Pointwise function;
  std::string op, layer;
  std::vector<std::string> parts;  // the values that `op` joins; one where it works on one alone
  Pointwise last = {};             // what the op alone does with that one
  int steps = 0;                   // ops since the tensor
};

// Zeros around an image, until it is known whether a convolution can have them as its padding.
struct Padded {
  Tensor of;
  PadAttributes amounts;
  std::string layer;
};

// A normalisation within samples as some ops one after another:
// (x - mean) / sqrt(mean((x - mean)^2) + epsilon) * scale + shift.
struct NormPart {
  enum class Stage : std::uint8_t {
    mean,
    centred,
    squared,
    variance,
    deviation,
    inverse,
    normalised,
    scaled
  };
  Stage stage = Stage::mean;
  Tensor of;
  std::int64_t groups = 0;  // 0: over the channels of each pixel
  double epsilon = 0.0;     // added to the variance
  std::optional<Array> scale;
  std::string layer;
};

// Random numbers, and what is made of them: 1 / survival with that probability, else 0.
struct Mask {
  Dims dims;
  std::optional<double> survival = {};  // nothing: numbers between 0 and 1 as they were drawn
  bool scaled = false;
};

// An adaptive average along one axis, or along both with the axes still turned.
struct HalfPooled {
  Tensor of;
  std::int64_t width = 0;
  std::optional<std::int64_t> height = {};
  bool turned = false;
};

// What could not be understood, or depends on it.
struct Unknown {};

using Known = std::variant<Unknown, Array, Tensor, Lazy, Padded, NormPart, Mask, HalfPooled>;

// A node that is not supported, for people.
struct Refusal {
  std::string node, op;
  std::int64_t opset = 0;
  std::string reason;
};
inline constexpr std::string_view kUnknownOp = "the op is not supported";  // a reason

// Which nodes read a value, and which one writes it.
struct Links {
  explicit Links(const Model& model);

  std::map<std::string, std::vector<std::size_t>, std::less<>> readers;
  std::map<std::string, std::size_t, std::less<>> writer;
  std::set<std::string, std::less<>> constants, outputs;
};

// What of a file is built, and how.
struct ImportPlan {
  const Model* model = nullptr;
  const Links* links = nullptr;
  std::vector<bool> wanted;           // of each node
  std::string image;                  // name of the input
  std::optional<std::int64_t> batch;  // the file's own, where it is fixed
  std::int64_t classes = 0;           // the file's own; 0: not known yet
  std::int64_t wanted_classes = 0;    // 0: the file's own
  bool drops = true;                  // dropout and stochastic depth are built
  std::vector<std::size_t> heads;     // nodes of the classifiers, which have as many channels
};

class Importer {
 public:
  Importer(const ImportPlan& plan, NetworkBuilder& builder);

  // Builds all nodes that are wanted. With `refusals`, nodes that are not supported are collected
  // and the walk goes on; without, the first one is a bad_input Error that names it.
  void run(ValueId image, const View& view, std::vector<Refusal>* refusals);

  // The value of our graph for an output of the file, (N, classes).
  [[nodiscard]] ValueId logits(const std::string& output);

  // For the translations of single ops.
  [[nodiscard]] NetworkBuilder& builder() { return builder_; }
  [[nodiscard]] const ImportPlan& plan() const { return plan_; }
  [[nodiscard]] std::int64_t opset() const { return plan_.model->opset(); }

  [[nodiscard]] const Known& known(const std::string& name) const;
  // What an input is; null where it is left out.
  [[nodiscard]] const Known* input(const OpNode& node, std::size_t index) const;
  [[nodiscard]] const Array* constant(const OpNode& node, std::size_t index) const;
  // By name; null where it is none. What is reckoned further down in the file is computed now.
  [[nodiscard]] const Array* find_constant(const std::string& name);
  // Inputs from `first` on that are constants; others, and those left out, are null.
  [[nodiscard]] std::vector<const Array*> constants(const OpNode& node, std::size_t first) const;
  // Throws bad_input where it is none.
  [[nodiscard]] const Array& needed_constant(const OpNode& node, std::size_t index) const;

  // The value with whatever it still lacks emitted.
  [[nodiscard]] Tensor tensor(const std::string& name);
  [[nodiscard]] Tensor tensor(const OpNode& node, std::size_t index);
  // The same with the elements in the file's own order: what lies otherwise is emitted.
  [[nodiscard]] Tensor settled(const OpNode& node, std::size_t index);
  // Emits a reshape that an op on elements would stand behind.
  void settle_order(const OpNode& node, std::size_t index);
  // The same as (N, C, H, W); bad_input where it is no image.
  [[nodiscard]] ValueId image(const OpNode& node, std::size_t index);
  // A value of our graph with a tensor's own dimensions, two or four of them.
  [[nodiscard]] ValueId placed(const Tensor& tensor, const std::string& otherwise);

  void give(const std::string& name, Known value);
  void give(const OpNode& node, ValueId id) { give(node.outputs.at(0), whole(id)); }
  [[nodiscard]] Tensor whole(ValueId id) const { return {id, View(builder_.shape(id)), {}}; }

  // Names of layers: without parameters, by the node; with, by the name of one of them if it tells.
  [[nodiscard]] const std::string& layer_of(const OpNode& node) const;
  [[nodiscard]] std::string parameter_layer(const OpNode& node, std::size_t weights);
  // Of a normalisation that several nodes make up, by its scale.
  [[nodiscard]] std::string norm_layer(const Array& scale, const std::string& otherwise);
  // A scale by itself is a parameter without a layer: its own name, if it is a readable one.
  [[nodiscard]] std::string scale_layer(const OpNode& node, const Array& scale);
  // A parameter begins with the elements of a constant.
  void begin_with(const std::string& parameter, const Array& values);
  // factors * x + shifts, one of each for a channel, which training leaves as they are.
  [[nodiscard]] Tensor scaled_and_shifted(const Tensor& of, const std::vector<double>& factors,
                                          const std::vector<double>& shifts,
                                          const std::string& layer);
  // Whether a node gives the classes, of which another number is wanted.
  [[nodiscard]] bool is_new_head(const OpNode& node) const;

  [[nodiscard]] const Shape& shape(ValueId id) const { return builder_.shape(id); }
  // Whether a tensor is the network's input, or that input normalised.
  [[nodiscard]] bool is_image(const Tensor& tensor) const { return images_.contains(tensor.id); }

  // The node that alone reads a value; null where there are others or it is an output.
  [[nodiscard]] const OpNode* only_reader(const std::string& name) const;
  // Leaves a node out of the walk: another one has done its work.
  // Goes on from an earlier concatenation of the first of these values, as DenseNet's layers do.
  [[nodiscard]] ValueId concat(std::vector<ValueId> parts, const std::string& layer);
  void skip(const OpNode& node);
  [[nodiscard]] bool is_output(const std::string& name) const;
  // The nodes that read a value.
  [[nodiscard]] std::vector<const OpNode*> readers(const std::string& name) const;

 private:
  [[nodiscard]] std::size_t number_of(const OpNode& node) const {
    return static_cast<std::size_t>(&node - plan_.model->nodes.data());
  }
  void name_layers();
  void walk(const OpNode& node, std::vector<Refusal>* refusals);
  void translate(const OpNode& node);
  [[nodiscard]] bool reads_unknown(const OpNode& node) const;
  [[nodiscard]] bool fold_constants(const OpNode& node);
  const Array* find_constant(const std::string& name, int depth);
  Tensor emit(const Lazy& lazy);
  Tensor emit(const Padded& padded);

  const ImportPlan& plan_;
  NetworkBuilder& builder_;
  std::map<std::string, Known, std::less<>> values_;
  std::vector<bool> skipped_;  // nodes that are done
  std::set<ValueId> images_;
  std::map<std::vector<ValueId>, ValueId> concats_;
  std::vector<std::string> layer_of_;  // of each node
  LayerNames layers_;                  // with parameters
  FoldBudget budget_;
};

// The translations, by the kind of op; null for an op that is none of theirs.
using Translate = void (*)(Importer&, const OpNode&);
[[nodiscard]] Translate find_layer(std::string_view type);       // with weights; pools
[[nodiscard]] Translate find_shape_op(std::string_view type);    // axes, parts, sizes
[[nodiscard]] Translate find_element_op(std::string_view type);  // element by element
[[nodiscard]] std::vector<std::string_view> layer_ops();
[[nodiscard]] std::vector<std::string_view> shape_ops();
[[nodiscard]] std::vector<std::string_view> element_ops();
// All of them by name.
[[nodiscard]] std::vector<std::string_view> supported_ops();

}  // namespace ridgeline::onnx
