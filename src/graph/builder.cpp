#include "graph/builder.h"

#include <fnmatch.h>

#include <algorithm>
#include <cmath>

#include "base/error.h"

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
    case Weights::normal:
      return {Init::Kind::normal, layer.amount};
    case Weights::truncated_normal:
      return {Init::Kind::truncated_normal, layer.amount};
    case Weights::uniform:
      return {Init::Kind::uniform, layer.amount};
  }
  return {Init::Kind::uniform, 1.0 / std::sqrt(in)};
}

Init NetworkBuilder::bias_init(LayerInit layer, std::int64_t fan_in) const {
  if (scheme_ == InitScheme::he || layer.zero_bias) return {Init::Kind::constant, 0.0};
  return {Init::Kind::uniform, 1.0 / std::sqrt(static_cast<double>(fan_in))};
}

ValueId NetworkBuilder::one(OpKind kind, Attributes attributes, std::vector<ValueId> inputs,
                            const std::string& layer) {
  return graph_.add_node(kind, std::move(attributes), std::move(inputs), layer, Phase::forward)[0];
}

Conv2dAttributes ConvOptions::attributes() const {
  if (window) return *window;
  const std::int64_t top = pad_h.value_or(padding), left = pad_w.value_or(padding);
  return {.kernel_h = kernel_h,
          .kernel_w = kernel_w,
          .stride_h = stride_h.value_or(stride),
          .stride_w = stride_w.value_or(stride),
          .pad_top = top,
          .pad_left = left,
          .pad_bottom = top,
          .pad_right = left,
          .dilation_h = dilation,
          .dilation_w = dilation,
          .groups = groups};
}

ValueId NetworkBuilder::conv2d(ValueId src, std::int64_t channels, const ConvOptions& options,
                               const std::string& layer) {
  const Conv2dAttributes attributes = options.attributes();
  if (attributes.groups < 1 || shape(src)[1] % attributes.groups != 0) {
    bad_input("{}: {} channels cannot be cut into {} groups", layer, shape(src)[1],
              attributes.groups);
  }
  const std::int64_t group_channels = shape(src)[1] / attributes.groups;
  const std::int64_t pixels = attributes.kernel_h * attributes.kernel_w;
  const std::int64_t fan_in = group_channels * pixels;
  const ValueId weights = parameter(
      layer + ".weight", {channels, group_channels, attributes.kernel_h, attributes.kernel_w},
      Role::parameter, weight_init(options.init, fan_in, channels * pixels));
  if (!options.file_shape.empty()) {
    Shape& file_shape = last_parameter().file_shape = {};
    for (const std::int64_t dim : options.file_shape) file_shape.append(dim);
    ensure(file_shape.elements() == last_parameter().shape.elements(),
           "{}: weights {} cannot be {} in files", layer, last_parameter().shape.text(),
           file_shape.text());
  }
  const ValueId dst = one(OpKind::conv2d, attributes, {src, weights}, layer);
  if (!options.bias) return dst;
  const ValueId bias =
      parameter(layer + ".bias", {channels}, Role::parameter, bias_init(options.init, fan_in));
  return one(OpKind::bias, {}, {dst, bias}, layer);
}

ValueId NetworkBuilder::linear(ValueId src, std::int64_t features, const std::string& layer,
                               LayerInit init, bool bias) {
  const std::int64_t fan_in = shape(src)[1];
  const ValueId weights = parameter(layer + ".weight", {features, fan_in}, Role::parameter,
                                    weight_init(init, fan_in, features));
  const ValueId numbers =
      bias ? parameter(layer + ".bias", {features}, Role::parameter, bias_init(init, fan_in))
           : kNoValue;
  const ValueId product = one(OpKind::linear, {}, {src, weights}, layer);
  return bias ? one(OpKind::bias, {}, {product, numbers}, layer) : product;
}

ValueId NetworkBuilder::activation(ValueId src, const ActivationAttributes& attributes,
                                   const std::string& layer) {
  return one(OpKind::activation, attributes, {src}, layer);
}

ValueId NetworkBuilder::pool(ValueId src, const PoolAttributes& attributes,
                             const std::string& layer) {
  return one(OpKind::pool, attributes, {src}, layer);
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

ValueId NetworkBuilder::adaptive_average_pool(ValueId src, std::int64_t h, std::int64_t w,
                                              const std::string& layer) {
  const Shape& image = shape(src);
  if (image.rank() == 4 && h > 0 && w > 0) {
    if (image[2] == h && image[3] == w) return src;
    if (image[2] % h == 0 && image[3] % w == 0) {
      return pool(src,
                  {.kind = PoolKind::average,
                   .kernel_h = image[2] / h,
                   .kernel_w = image[3] / w,
                   .stride_h = image[2] / h,
                   .stride_w = image[3] / w},
                  layer);
    }
  }
  return pool(src, {.kind = PoolKind::adaptive_average, .dst_h = h, .dst_w = w}, layer);
}

ValueId NetworkBuilder::batch_norm(ValueId src, const std::string& layer,
                                   const NormOptions& options) {
  const Shape channels{shape(src)[1]};
  const ValueId scale = parameter(layer + ".weight", channels, Role::parameter,
                                  {Init::Kind::constant, options.scale_init});
  if (!options.affine) last_parameter().frozen = true;
  const ValueId shift =
      parameter(layer + ".bias", channels, Role::parameter, {Init::Kind::constant, 0.0});
  if (!options.affine) last_parameter().frozen = true;
  const ValueId running_mean =
      parameter(layer + ".running_mean", channels, Role::statistics, {Init::Kind::constant, 0.0});
  const ValueId running_variance =
      parameter(layer + ".running_var", channels, Role::statistics, {Init::Kind::constant, 1.0});
  const bool frozen = !training_ || is_frozen(layer + ".weight");
  const BatchNormAttributes attributes{
      .epsilon = options.epsilon, .momentum = options.momentum, .frozen = frozen};
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
  return one(OpKind::bn_apply, attributes, {src, mean, variance, scale, shift}, layer);
}

ValueId NetworkBuilder::norm_within_samples(ValueId src, const LayerNormAttributes& attributes,
                                            const std::string& layer) {
  const Shape channels{shape(src)[1]};
  const ValueId scale =
      parameter(layer + ".weight", channels, Role::parameter, {Init::Kind::constant, 1.0});
  const ValueId shift =
      parameter(layer + ".bias", channels, Role::parameter, {Init::Kind::constant, 0.0});
  return one(OpKind::layer_norm, attributes, {src, scale, shift}, layer);
}

ValueId NetworkBuilder::layer_norm(ValueId src, const std::string& layer, double epsilon) {
  return norm_within_samples(src, {.groups = 0, .epsilon = epsilon}, layer);
}

ValueId NetworkBuilder::group_norm(ValueId src, std::int64_t groups, const std::string& layer,
                                   double epsilon) {
  if (groups < 1) bad_input("{}: a group norm of {} groups", layer, groups);
  return norm_within_samples(src, {.groups = groups, .epsilon = epsilon}, layer);
}

ValueId NetworkBuilder::add(ValueId a, ValueId b, const std::string& layer) {
  return one(OpKind::add, {}, {a, b}, layer);
}

ValueId NetworkBuilder::multiply(ValueId a, ValueId b, const std::string& layer) {
  if (shape(a).elements() < shape(b).elements()) std::swap(a, b);
  return one(OpKind::multiply, {}, {a, b}, layer);
}

ValueId NetworkBuilder::bias(ValueId src, const std::string& layer) {
  const ValueId values = parameter(layer + ".bias", {shape(src)[1]}, Role::parameter, {});
  return one(OpKind::bias, {}, {src, values}, layer);
}

ValueId NetworkBuilder::fixed_scale(ValueId src, const std::string& layer) {
  const ValueId values =
      parameter(layer + ".scale", {shape(src)[1]}, Role::statistics, {Init::Kind::constant, 1.0});
  return one(OpKind::multiply, {}, {src, values}, layer);
}

ValueId NetworkBuilder::fixed_shift(ValueId src, const std::string& layer) {
  const ValueId values = parameter(layer + ".shift", {shape(src)[1]}, Role::statistics, {});
  return one(OpKind::bias, {}, {src, values}, layer);
}

ValueId NetworkBuilder::layer_scale(ValueId src, double init, const std::string& layer) {
  const std::int64_t channels = shape(src)[1];
  const ValueId scale = parameter(layer, {channels}, Role::parameter, {Init::Kind::constant, init});
  last_parameter().file_shape = {channels, 1, 1};
  return one(OpKind::multiply, {}, {src, scale}, layer);
}

ValueId NetworkBuilder::concat(std::vector<ValueId> parts, const std::string& layer) {
  return one(OpKind::concat, {}, std::move(parts), layer);
}

ValueId NetworkBuilder::slice(ValueId src, std::int64_t begin, std::int64_t channels,
                              const std::string& layer) {
  return one(OpKind::slice, SliceAttributes{begin, channels}, {src}, layer);
}

std::vector<ValueId> NetworkBuilder::split(ValueId src, std::vector<std::int64_t> channels,
                                           const std::string& layer) {
  return graph_.add_node(OpKind::split, SplitAttributes{std::move(channels)}, {src}, layer,
                         Phase::forward);
}

ValueId NetworkBuilder::shuffle(ValueId src, std::int64_t groups, const std::string& layer) {
  return one(OpKind::shuffle, ShuffleAttributes{groups}, {src}, layer);
}

ValueId NetworkBuilder::pad(ValueId src, std::int64_t top, std::int64_t left, std::int64_t bottom,
                            std::int64_t right, const std::string& layer) {
  return pad(src, {.top = top, .left = left, .bottom = bottom, .right = right}, layer);
}

ValueId NetworkBuilder::pad(ValueId src, const PadAttributes& attributes,
                            const std::string& layer) {
  return one(OpKind::pad, attributes, {src}, layer);
}

ValueId NetworkBuilder::resize(ValueId src, std::int64_t h, std::int64_t w,
                               const std::string& layer) {
  return one(OpKind::resize, ResizeAttributes{.dst_h = h, .dst_w = w}, {src}, layer);
}

ValueId NetworkBuilder::flatten(ValueId src, const std::string& layer) {
  const Shape& from = shape(src);
  return reshape(src, {from[0], from[0] == 0 ? 0 : from.elements() / from[0]}, layer);
}

ValueId NetworkBuilder::reshape(ValueId src, const Shape& to, const std::string& layer) {
  return one(OpKind::reshape, ReshapeAttributes{to}, {src}, layer);
}

// Layers are numbered in training and evaluation alike, so that masks depend on the network alone.
ValueId NetworkBuilder::drop(ValueId src, DropoutAttributes attributes, const std::string& layer) {
  attributes.layer = dropouts_++;
  return training_ ? one(OpKind::dropout, attributes, {src}, layer) : src;
}

ValueId NetworkBuilder::dropout(ValueId src, double probability, const std::string& layer) {
  return drop(src, {.probability = probability}, layer);
}

ValueId NetworkBuilder::stochastic_depth(ValueId src, double probability,
                                         const std::string& layer) {
  // The first block of a network is never dropped.
  if (probability == 0.0) return src;
  return drop(src, {.probability = probability, .per_sample = true}, layer);
}

void NetworkBuilder::begin_with(const std::string& parameter,
                                std::function<std::vector<double>()> values) {
  // Those that were added last are asked for.
  const auto found = std::find_if(parameters_.rbegin(), parameters_.rend(),
                                  [&](const Parameter& each) { return each.name == parameter; });
  ensure(found != parameters_.rend(), "the network has no parameter {}", parameter);
  found->init = {Init::Kind::given, 0.0, std::move(values)};
}

void NetworkBuilder::auxiliary(ValueId logits, double loss_weight) {
  heads_.push_back({logits, loss_weight});
  const std::string& layer = graph_.node(graph_.value(logits).producer).layer;
  for (Parameter& parameter : parameters_) {
    if (parameter.name == layer + ".weight" || parameter.name == layer + ".bias") {
      parameter.auxiliary_head = true;
    }
  }
}

}  // namespace ridgeline
