#include "graph/builder.h"

#include <fnmatch.h>

#include <algorithm>
#include <cmath>

namespace ridgeline {

bool NetworkBuilder::is_frozen(const std::string& name) const {
  return std::any_of(freeze_.begin(), freeze_.end(), [&](const std::string& pattern) {
    return fnmatch(pattern.c_str(), name.c_str(), 0) == 0;
  });
}

ValueId NetworkBuilder::parameter(const std::string& name, const Shape& shape, Role role,
                                  Init init) {
  parameters_.push_back({name, shape, role, init, role == Role::parameter && is_frozen(name)});
  return graph_.add_value(name, {shape, dtype_}, role);
}

Init NetworkBuilder::weight_init(LayerInit layer, std::int64_t fan_in, std::int64_t fan_out) const {
  using Weights = LayerInit::Weights;
  const auto in = static_cast<double>(fan_in), out = static_cast<double>(fan_out);
  switch (scheme_ == InitScheme::he ? Weights::he_normal_fan_in : layer.weights) {
    case Weights::layer_default:
      break;
    case Weights::he_normal_fan_in:
      return {Init::Kind::normal, std::sqrt(2.0 / in)};
    case Weights::he_normal_fan_out:
      return {Init::Kind::normal, std::sqrt(2.0 / out)};
    case Weights::he_uniform_fan_in:
      return {Init::Kind::uniform, std::sqrt(6.0 / in)};
    case Weights::normal_one_percent:
      return {Init::Kind::normal, 0.01};
  }
  return {Init::Kind::uniform, 1.0 / std::sqrt(in)};
}

Init NetworkBuilder::bias_init(LayerInit layer, std::int64_t fan_in) const {
  if (scheme_ == InitScheme::he || layer.zero_bias) return {Init::Kind::constant, 0.0};
  return {Init::Kind::uniform, 1.0 / std::sqrt(static_cast<double>(fan_in))};
}

ValueId NetworkBuilder::conv2d(ValueId src, std::int64_t channels, const ConvOptions& options,
                               const std::string& layer) {
  const std::int64_t group_channels = shape(src)[1] / options.groups;
  const std::int64_t window = options.kernel_h * options.kernel_w;
  const std::int64_t fan_in = group_channels * window;
  const ValueId weights =
      parameter(layer + ".weight", {channels, group_channels, options.kernel_h, options.kernel_w},
                Role::parameter, weight_init(options.init, fan_in, channels * window));
  const Conv2dAttributes attributes{.kernel_h = options.kernel_h,
                                    .kernel_w = options.kernel_w,
                                    .stride_h = options.stride,
                                    .stride_w = options.stride,
                                    .pad_top = options.padding,
                                    .pad_left = options.padding,
                                    .pad_bottom = options.padding,
                                    .pad_right = options.padding,
                                    .dilation_h = options.dilation,
                                    .dilation_w = options.dilation,
                                    .groups = options.groups};
  ValueId dst =
      graph_.add_node(OpKind::conv2d, attributes, {src, weights}, layer, Phase::forward)[0];
  if (options.bias) {
    const ValueId bias =
        parameter(layer + ".bias", {channels}, Role::parameter, bias_init(options.init, fan_in));
    dst = graph_.add_node(OpKind::bias, {}, {dst, bias}, layer, Phase::forward)[0];
  }
  return dst;
}

ValueId NetworkBuilder::linear(ValueId src, std::int64_t features, const std::string& layer,
                               LayerInit init) {
  const std::int64_t fan_in = shape(src)[1];
  const ValueId weights = parameter(layer + ".weight", {features, fan_in}, Role::parameter,
                                    weight_init(init, fan_in, features));
  const ValueId bias =
      parameter(layer + ".bias", {features}, Role::parameter, bias_init(init, fan_in));
  const ValueId product =
      graph_.add_node(OpKind::linear, {}, {src, weights}, layer, Phase::forward)[0];
  return graph_.add_node(OpKind::bias, {}, {product, bias}, layer, Phase::forward)[0];
}

ValueId NetworkBuilder::activation(ValueId src, const ActivationAttributes& attributes,
                                   const std::string& layer) {
  return graph_.add_node(OpKind::activation, attributes, {src}, layer, Phase::forward)[0];
}

ValueId NetworkBuilder::pool(ValueId src, const PoolAttributes& attributes,
                             const std::string& layer) {
  return graph_.add_node(OpKind::pool, attributes, {src}, layer, Phase::forward)[0];
}

namespace {

PoolAttributes square_pool(PoolKind kind, const PoolOptions& options) {
  return {.kind = kind,
          .kernel_h = options.kernel,
          .kernel_w = options.kernel,
          .stride_h = options.stride,
          .stride_w = options.stride,
          .pad_top = options.padding,
          .pad_left = options.padding,
          .pad_bottom = options.padding,
          .pad_right = options.padding,
          .ceil_mode = options.ceil_mode};
}

}  // namespace

ValueId NetworkBuilder::max_pool(ValueId src, const PoolOptions& options,
                                 const std::string& layer) {
  return pool(src, square_pool(PoolKind::max, options), layer);
}

ValueId NetworkBuilder::average_pool(ValueId src, const PoolOptions& options,
                                     const std::string& layer) {
  return pool(src, square_pool(PoolKind::average, options), layer);
}

ValueId NetworkBuilder::global_average_pool(ValueId src, const std::string& layer) {
  const Shape& image = shape(src);
  return pool(src,
              {.kind = PoolKind::average,
               .kernel_h = image[2],
               .kernel_w = image[3],
               .stride_h = image[2],
               .stride_w = image[3]},
              layer);
}

ValueId NetworkBuilder::batch_norm(ValueId src, const std::string& layer) {
  const Shape channels{shape(src)[1]};
  const ValueId scale =
      parameter(layer + ".weight", channels, Role::parameter, {Init::Kind::constant, 1.0});
  const ValueId shift =
      parameter(layer + ".bias", channels, Role::parameter, {Init::Kind::constant, 0.0});
  const ValueId running_mean =
      parameter(layer + ".running_mean", channels, Role::statistics, {Init::Kind::constant, 0.0});
  const ValueId running_variance =
      parameter(layer + ".running_var", channels, Role::statistics, {Init::Kind::constant, 1.0});
  const bool frozen = !training_ || is_frozen(layer + ".weight");
  const BatchNormAttributes attributes{.frozen = frozen};
  ValueId mean = running_mean, variance = running_variance;
  if (!frozen) {
    const auto statistics =
        graph_.add_node(OpKind::bn_statistics, attributes, {src}, layer, Phase::forward);
    mean = statistics[0];
    variance = statistics[1];
    BatchNormAttributes update = attributes;
    update.count = shape(src).elements() / shape(src)[1];
    graph_.add_node(OpKind::bn_update_running, update,
                    {running_mean, running_variance, mean, variance}, layer, Phase::forward);
  }
  return graph_.add_node(OpKind::bn_apply, attributes, {src, mean, variance, scale, shift}, layer,
                         Phase::forward)[0];
}

ValueId NetworkBuilder::add(ValueId a, ValueId b, const std::string& layer) {
  return graph_.add_node(OpKind::add, {}, {a, b}, layer, Phase::forward)[0];
}

ValueId NetworkBuilder::concat(std::vector<ValueId> parts, const std::string& layer) {
  return graph_.add_node(OpKind::concat, {}, std::move(parts), layer, Phase::forward)[0];
}

ValueId NetworkBuilder::flatten(ValueId src, const std::string& layer) {
  const Shape& from = shape(src);
  const Shape to{from[0], from[0] == 0 ? 0 : from.elements() / from[0]};
  return graph_.add_node(OpKind::reshape, ReshapeAttributes{to}, {src}, layer, Phase::forward)[0];
}

ValueId NetworkBuilder::dropout(ValueId src, double probability, const std::string& layer) {
  const std::uint32_t number = dropouts_++;
  if (!training_) return src;
  return graph_.add_node(OpKind::dropout, DropoutAttributes{probability, number}, {src}, layer,
                         Phase::forward)[0];
}

}  // namespace ridgeline
