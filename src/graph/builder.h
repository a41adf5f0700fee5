#pragma once

// Builds networks the way PyTorch's modules do: layers by name, with their parameters and initial
// values. Model files use nothing else.

#include <functional>
#include <optional>
#include <string>
#include <vector>

#include "graph/graph.h"

namespace ridgeline {

// Where a parameter starts.
struct Init {
  enum class Kind : std::uint8_t {
    constant,
    uniform,
    normal,
    truncated_normal,  // drawn anew outside [-2, 2]: torch.nn.init.trunc_normal_
    given,             // the elements that `values` reads
  };
  Kind kind = Kind::constant;
  double amount = 0.0;  // the constant, the bound of the uniform, the deviation of the normals
  std::function<std::vector<double>()> values = {};  // of a network that comes from a file
};

// A value that is saved with a model: a parameter or a running statistic.
struct Parameter {
  std::string name;
  Shape shape;
  Role role = Role::parameter;
  Init init;
  bool frozen = false;          // a parameter that training leaves as it is
  bool auxiliary_head = false;  // of the layer that gives an auxiliary head's logits
  // In weight files and exports: another one of as many elements where PyTorch's module has that.
  Shape file_shape = shape;
};

enum class InitScheme : std::uint8_t {
  pytorch,  // torch.nn's defaults: weights and biases uniform within 1 / sqrt(fan in)
  he,       // weights normal with deviation sqrt(2 / fan in), biases 0
};

// How a model starts one of its layers under InitScheme::pytorch.
struct LayerInit {
  enum class Weights : std::uint8_t {
    layer_default,      // torch.nn's default
    he_normal_fan_in,   // kaiming_normal_: deviation sqrt(2 / fan in)
    he_normal_fan_out,  // the same with mode="fan_out"
    he_uniform_fan_in,  // kaiming_uniform_: bound sqrt(6 / fan in)
    normal,             // deviation `amount`
    truncated_normal,   // the same, within [-2, 2]
    uniform,            // bound `amount`
  };
  Weights weights = Weights::layer_default;
  double amount = 0.0;
  bool zero_bias = false;
};

struct ConvOptions {
  std::int64_t kernel_h = 1, kernel_w = 1;
  std::int64_t stride = 1, padding = 0, dilation = 1, groups = 1;
  bool bias = true;
  LayerInit init = {};
  // Where the two axes differ; otherwise `stride` and `padding`.
  std::optional<std::int64_t> stride_h = {}, stride_w = {}, pad_h = {}, pad_w = {};
  // All of the window and the groups at once, for what the numbers above cannot say.
  std::optional<Conv2dAttributes> window = {};
  // Of the weights in weight files; empty: as they are. A 1x1 convolution may be a linear there.
  std::vector<std::int64_t> file_shape = {};

  [[nodiscard]] Conv2dAttributes attributes() const;
};

struct PoolOptions {
  std::int64_t kernel = 2, stride = 2, padding = 0;
  bool ceil_mode = false;
};

struct NormOptions {
  double epsilon = 1e-5, momentum = 0.1;
  double scale_init = 1.0;
  bool affine = true;  // false: scale and shift stay 1 and 0
};

// A second classifier within a network, which helps to train what lies before it.
struct AuxiliaryHead {
  ValueId logits = kNoValue;
  double loss_weight = 0.0;
};

class NetworkBuilder {
 public:
  // `training`: dropout drops and batch norm uses the batch's own statistics. Parameters whose
  // names match one of the patterns `freeze` ('features.*') are frozen; a batch norm with frozen
  // weights works as in evaluation: it uses its running statistics and leaves them as they are.
  NetworkBuilder(Graph& graph, bool training, InitScheme scheme, DType dtype,
                 std::vector<std::string> freeze = {})
      : graph_(graph),
        training_(training),
        scheme_(scheme),
        dtype_(dtype),
        freeze_(std::move(freeze)) {}

  ValueId conv2d(ValueId src, std::int64_t channels, const ConvOptions& options,
                 const std::string& layer);
  ValueId linear(ValueId src, std::int64_t features, const std::string& layer, LayerInit init = {},
                 bool bias = true);
  ValueId activation(ValueId src, const ActivationAttributes& attributes, const std::string& layer);
  ValueId relu(ValueId src, const std::string& layer) { return activation(src, {}, layer); }
  ValueId max_pool(ValueId src, const PoolOptions& options, const std::string& layer);
  ValueId average_pool(ValueId src, const PoolOptions& options, const std::string& layer);
  ValueId global_average_pool(ValueId src, const std::string& layer);
  // To h x w pixels: nothing where the image has them, a plain average where windows are equal.
  ValueId adaptive_average_pool(ValueId src, std::int64_t h, std::int64_t w,
                                const std::string& layer);
  ValueId pool(ValueId src, const PoolAttributes& attributes, const std::string& layer);
  ValueId batch_norm(ValueId src, const std::string& layer, const NormOptions& options = {});
  ValueId layer_norm(ValueId src, const std::string& layer, double epsilon = 1e-5);
  ValueId group_norm(ValueId src, std::int64_t groups, const std::string& layer,
                     double epsilon = 1e-5);
  ValueId add(ValueId a, ValueId b, const std::string& layer);
  // Either factor may be the one that is broadcast.
  ValueId multiply(ValueId a, ValueId b, const std::string& layer);
  // A bias by itself.
  ValueId bias(ValueId src, const std::string& layer);
  // A factor and a summand for each channel that training leaves as they are: "layer.scale" and
  // "layer.shift".
  ValueId fixed_scale(ValueId src, const std::string& layer);
  ValueId fixed_shift(ValueId src, const std::string& layer);
  // The parameter has the name of the layer.
  ValueId layer_scale(ValueId src, double init, const std::string& layer);
  ValueId concat(std::vector<ValueId> parts, const std::string& layer);
  ValueId slice(ValueId src, std::int64_t begin, std::int64_t channels, const std::string& layer);
  std::vector<ValueId> split(ValueId src, std::vector<std::int64_t> channels,
                             const std::string& layer);
  ValueId shuffle(ValueId src, std::int64_t groups, const std::string& layer);
  ValueId pad(ValueId src, std::int64_t top, std::int64_t left, std::int64_t bottom,
              std::int64_t right, const std::string& layer);
  ValueId pad(ValueId src, const PadAttributes& attributes, const std::string& layer);
  ValueId resize(ValueId src, std::int64_t h, std::int64_t w, const std::string& layer);
  ValueId flatten(ValueId src, const std::string& layer);
  ValueId reshape(ValueId src, const Shape& shape, const std::string& layer);
  ValueId dropout(ValueId src, double probability, const std::string& layer);
  // Drops whole samples.
  ValueId stochastic_depth(ValueId src, double probability, const std::string& layer);
  // The training's loss is the network's plus this weight times the loss of these logits;
  // evaluation leaves the head out. Its parameters are the network's in both.
  void auxiliary(ValueId logits, double loss_weight);

  // A parameter begins with these elements, whatever the seed. REQUIRES: it was added.
  void begin_with(const std::string& parameter, std::function<std::vector<double>()> values);

  [[nodiscard]] bool training() const { return training_; }
  [[nodiscard]] const Shape& shape(ValueId value) const { return graph_.value(value).spec.shape; }
  [[nodiscard]] const std::vector<Parameter>& parameters() const { return parameters_; }
  [[nodiscard]] const std::vector<AuxiliaryHead>& auxiliary_heads() const { return heads_; }

 private:
  [[nodiscard]] bool is_frozen(const std::string& name) const;
  ValueId parameter(const std::string& name, const Shape& shape, Role role, Init init);
  // The one just added.
  Parameter& last_parameter() { return parameters_.back(); }
  [[nodiscard]] Init weight_init(LayerInit layer, std::int64_t fan_in, std::int64_t fan_out) const;
  [[nodiscard]] Init bias_init(LayerInit layer, std::int64_t fan_in) const;
  ValueId one(OpKind kind, Attributes attributes, std::vector<ValueId> inputs,
              const std::string& layer);
  ValueId norm_within_samples(ValueId src, const LayerNormAttributes& attributes,
                              const std::string& layer);
  ValueId drop(ValueId src, DropoutAttributes attributes, const std::string& layer);

  Graph& graph_;
  bool training_;
  InitScheme scheme_;
  DType dtype_;
  std::vector<std::string> freeze_;
  std::vector<Parameter> parameters_;
  std::vector<AuxiliaryHead> heads_;
  std::uint32_t dropouts_ = 0;
};

}  // namespace ridgeline
