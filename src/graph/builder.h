#pragma once

// Builds networks the way PyTorch's modules do: layers by name, with their parameters and initial
// values. Model files use nothing else.

#include <string>
#include <vector>

#include "graph/graph.h"

namespace ridgeline {

// Where a parameter starts.
struct Init {
  enum class Kind : std::uint8_t { constant, uniform, normal };
  Kind kind = Kind::constant;
  double amount = 0.0;  // the constant, the bound of the uniform, the deviation of the normal
};

// A value that is saved with a model: a parameter or a running statistic.
struct Parameter {
  std::string name;
  Shape shape;
  Role role = Role::parameter;
  Init init;
  bool frozen = false;  // a parameter that training leaves as it is
};

enum class InitScheme : std::uint8_t {
  pytorch,  // torch.nn's defaults: weights and biases uniform within 1 / sqrt(fan in)
  he,       // weights normal with deviation sqrt(2 / fan in), biases 0
};

// How a model starts one of its layers under InitScheme::pytorch.
struct LayerInit {
  enum class Weights : std::uint8_t {
    layer_default,       // torch.nn's default
    he_normal_fan_in,    // kaiming_normal_: deviation sqrt(2 / fan in)
    he_normal_fan_out,   // the same with mode="fan_out"
    he_uniform_fan_in,   // kaiming_uniform_: bound sqrt(6 / fan in)
    normal_one_percent,  // deviation 0.01
  };
  Weights weights = Weights::layer_default;
  bool zero_bias = false;
};

struct ConvOptions {
  std::int64_t kernel_h = 1, kernel_w = 1;
  std::int64_t stride = 1, padding = 0, dilation = 1, groups = 1;
  bool bias = true;
  LayerInit init = {};
};

struct PoolOptions {
  std::int64_t kernel = 2, stride = 2, padding = 0;
  bool ceil_mode = false;
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
  ValueId linear(ValueId src, std::int64_t features, const std::string& layer, LayerInit init = {});
  ValueId activation(ValueId src, const ActivationAttributes& attributes, const std::string& layer);
  ValueId relu(ValueId src, const std::string& layer) { return activation(src, {}, layer); }
  ValueId max_pool(ValueId src, const PoolOptions& options, const std::string& layer);
  ValueId average_pool(ValueId src, const PoolOptions& options, const std::string& layer);
  ValueId global_average_pool(ValueId src, const std::string& layer);
  ValueId batch_norm(ValueId src, const std::string& layer);
  ValueId add(ValueId a, ValueId b, const std::string& layer);
  ValueId concat(std::vector<ValueId> parts, const std::string& layer);
  ValueId flatten(ValueId src, const std::string& layer);
  ValueId dropout(ValueId src, double probability, const std::string& layer);

  [[nodiscard]] const Shape& shape(ValueId value) const { return graph_.value(value).spec.shape; }
  [[nodiscard]] const std::vector<Parameter>& parameters() const { return parameters_; }

 private:
  [[nodiscard]] bool is_frozen(const std::string& name) const;
  ValueId parameter(const std::string& name, const Shape& shape, Role role, Init init);
  [[nodiscard]] Init weight_init(LayerInit layer, std::int64_t fan_in, std::int64_t fan_out) const;
  [[nodiscard]] Init bias_init(LayerInit layer, std::int64_t fan_in) const;
  ValueId pool(ValueId src, const PoolAttributes& attributes, const std::string& layer);

  Graph& graph_;
  bool training_;
  InitScheme scheme_;
  DType dtype_;
  std::vector<std::string> freeze_;
  std::vector<Parameter> parameters_;
  std::uint32_t dropouts_ = 0;
};

}  // namespace ridgeline
