// Convolution, pools, batch normalisation and element by element ops on images.

#include <algorithm>
#include <array>
#include <utility>

#include "base/error.h"
#include "support/onnx_translator.h"

namespace ridgeline::onnx {
namespace {

// One spatial axis of a window op.
struct Axis {
  std::int64_t kernel = 1, stride = 1, dilation = 1, before = 0, after = 0;
};
using Axes = std::array<Axis, 2>;

// (N, C, W) as an image of height 1; three spatial axes are more than we have.
Shape image_shape(const Dims& dims) {
  if (dims.size() == 3) return {dims[0], dims[1], 1, dims[2]};
  if (dims.size() == 4) return {dims[0], dims[1], dims[2], dims[3]};
  unsupported("{} spatial axes, ours has two", dims.size() - 2);
}

// Dimensions as the model has them for a graph value that is an image.
Dims model_dims(const Shape& image, std::size_t rank) {
  if (rank == 3) return {image[0], image[1], image[3]};
  return {image[0], image[1], image[2], image[3]};
}

void pad_same(Axis& axis, std::int64_t size, bool upper) {
  const std::int64_t windows = (size + axis.stride - 1) / axis.stride;
  const std::int64_t covered = (windows - 1) * axis.stride + axis.dilation * (axis.kernel - 1) + 1;
  const std::int64_t total = std::max<std::int64_t>(covered - size, 0);
  axis.before = upper ? total / 2 : total - total / 2;
  axis.after = total - axis.before;
}

Axes axes_of(const OpNode& node, const Dims& kernel, const Shape& image, bool pads_wanted = true) {
  const std::size_t count = kernel.size(), skipped = 2 - count;
  const Dims strides = node.integers("strides", Dims(count, 1));
  const Dims dilations = node.integers("dilations", Dims(count, 1));
  const Dims pads = node.integers("pads", Dims(2 * count, 0));
  const std::string automatic = node.text("auto_pad", "NOTSET");
  Axes axes{};
  for (std::size_t i = 0; i < count; ++i) {
    Axis& axis = axes[i + skipped];
    axis = {kernel[i], strides[i], dilations[i], pads[i], pads[i + count]};
    if (pads_wanted && automatic.starts_with("SAME")) {
      pad_same(axis, image[static_cast<int>(2 + i + skipped)], automatic == "SAME_UPPER");
    }
  }
  return axes;
}

Conv2dAttributes conv_attributes(const Axes& axes, std::int64_t groups) {
  const auto& [h, w] = axes;
  return {.kernel_h = h.kernel,
          .kernel_w = w.kernel,
          .stride_h = h.stride,
          .stride_w = w.stride,
          .pad_top = h.before,
          .pad_left = w.before,
          .pad_bottom = h.after,
          .pad_right = w.after,
          .dilation_h = h.dilation,
          .dilation_w = w.dilation,
          .groups = groups,
          .src_h = 0,
          .src_w = 0};
}

Dims spatial(const Dims& dims) { return {dims.begin() + 2, dims.end()}; }

ValueId with_bias(Translator& t, const OpNode& node, ValueId dst) {
  if (!node.has_input(2)) return dst;
  const Array& bias = t.floats(node.inputs[2]);
  return t.node(OpKind::bias, {}, {dst, t.input(bias.numbers(), {bias.dims[0]})})[0];
}

void convolution(Translator& t, const OpNode& node) {
  const Dims& dims = t.dims(node.inputs[0]);
  const Shape image = image_shape(dims);
  const Array& weights = t.floats(node.inputs[1]);
  const Axes axes = axes_of(node, spatial(weights.dims), image);
  const ValueId dst = t.node(
      OpKind::conv2d, conv_attributes(axes, node.integer("group", 1)),
      {t.place(node.inputs[0], image), t.input(weights.numbers(), image_shape(weights.dims))})[0];
  const ValueId result = with_bias(t, node, dst);
  t.give(node.outputs[0], model_dims(t.graph().value(result).spec.shape, dims.size()), result);
}

// The size of the result along one axis, and the padding that ONNX derives from a wanted size.
std::int64_t transposed_size(Axis& axis, std::int64_t size, std::int64_t extra, std::int64_t wanted,
                             bool upper) {
  const std::int64_t full =
      axis.stride * (size - 1) + extra + axis.dilation * (axis.kernel - 1) + 1;
  if (wanted == 0) return full - axis.before - axis.after;
  const std::int64_t total = std::max<std::int64_t>(full - wanted, 0);
  axis.before = upper ? total / 2 : total - total / 2;
  axis.after = total - axis.before;
  return wanted;
}

// A transposed convolution is a convolution's gradient with respect to its input.
void transposed_convolution(Translator& t, const OpNode& node) {
  const Dims& dims = t.dims(node.inputs[0]);
  const Shape image = image_shape(dims);
  const Array& weights = t.floats(node.inputs[1]);
  const Dims kernel = spatial(weights.dims);
  const std::size_t skipped = 2 - kernel.size();
  const std::string automatic = node.text("auto_pad", "NOTSET");
  Axes axes = axes_of(node, kernel, image, false);
  const Dims extra = node.integers("output_padding", Dims(kernel.size(), 0));
  Dims wanted = node.integers("output_shape", Dims(kernel.size(), 0));
  std::array<std::int64_t, 2> sizes = {1, 1};
  for (std::size_t i = 0; i < kernel.size(); ++i) {
    Axis& axis = axes[i + skipped];
    const std::int64_t size = image[static_cast<int>(2 + i + skipped)];
    if (automatic.starts_with("SAME")) wanted[i] = size * axis.stride;
    sizes[i + skipped] =
        transposed_size(axis, size, extra[i], wanted[i], automatic == "SAME_UPPER");
  }
  Conv2dAttributes attributes = conv_attributes(axes, node.integer("group", 1));
  attributes.src_h = sizes[0];
  attributes.src_w = sizes[1];
  const ValueId diff_src = t.node(
      OpKind::conv2d_backward_data, attributes,
      {t.place(node.inputs[0], image), t.input(weights.numbers(), image_shape(weights.dims))})[0];
  const ValueId result = with_bias(t, node, diff_src);
  t.give(node.outputs[0], model_dims(t.graph().value(result).spec.shape, dims.size()), result);
}

PoolAttributes pool_attributes(PoolKind kind, const Axes& axes, const OpNode& node) {
  const auto& [h, w] = axes;
  return {.kind = kind,
          .kernel_h = h.kernel,
          .kernel_w = w.kernel,
          .stride_h = h.stride,
          .stride_w = w.stride,
          .pad_top = h.before,
          .pad_left = w.before,
          .pad_bottom = h.after,
          .pad_right = w.after,
          .dilation_h = h.dilation,
          .dilation_w = w.dilation,
          .ceil_mode = node.integer("ceil_mode", 0) != 0,
          .count_include_pad = node.integer("count_include_pad", 0) != 0,
          .src_h = 0,
          .src_w = 0};
}

// Our positions are counted within the window, ONNX's over the whole value.
void derive_indices(Translator& t, const OpNode& node, const PoolAttributes& a, const Shape& src,
                    ValueId positions) {
  const Shape dst = t.graph().value(positions).spec.shape;
  const bool by_columns = node.integer("storage_order", 0) != 0;
  const auto convert = [=](const ReadValue& read) {
    std::vector<double> indices = read(positions);
    for (std::size_t i = 0; i < indices.size(); ++i) {
      const auto at = static_cast<std::int64_t>(i), tap = static_cast<std::int64_t>(indices[i]);
      const std::int64_t column = at % dst[3], row = at / dst[3] % dst[2];
      const std::int64_t plane = at / (dst[2] * dst[3]);
      const std::int64_t h = row * a.stride_h - a.pad_top + tap / a.kernel_w * a.dilation_h;
      const std::int64_t w = column * a.stride_w - a.pad_left + tap % a.kernel_w * a.dilation_w;
      const std::int64_t within = by_columns ? w * src[2] + h : h * src[3] + w;
      indices[i] = static_cast<double>(plane * src[2] * src[3] + within);
    }
    return indices;
  };
  t.derive(node.outputs[1], {dst[0], dst[1], dst[2], dst[3]}, {positions}, convert);
}

void pool(Translator& t, const OpNode& node, PoolKind kind, bool global) {
  const Dims& dims = t.dims(node.inputs[0]);
  const Shape image = image_shape(dims);
  const Dims kernel = global ? spatial(dims) : node.integers("kernel_shape", {});
  const PoolAttributes attributes = pool_attributes(kind, axes_of(node, kernel, image), node);
  const std::vector<ValueId> outputs =
      t.node(OpKind::pool, attributes, {t.place(node.inputs[0], image)});
  const ValueId dst = outputs[0];
  t.give(node.outputs[0], model_dims(t.graph().value(dst).spec.shape, dims.size()), dst);
  if (node.has_output(1)) derive_indices(t, node, attributes, image, outputs[1]);
}

void max_pool(Translator& t, const OpNode& node) { pool(t, node, PoolKind::max, false); }
void average_pool(Translator& t, const OpNode& node) { pool(t, node, PoolKind::average, false); }
void global_max_pool(Translator& t, const OpNode& node) { pool(t, node, PoolKind::max, true); }
void global_average_pool(Translator& t, const OpNode& node) {
  pool(t, node, PoolKind::average, true);
}

// Channels apart, everything else together: what batch normalisation sees.
Shape channel_shape(const Dims& dims) {
  if (dims.size() == 2) return {dims[0], dims[1]};
  return {dims[0], dims[1], dims[2], product(dims, 3, dims.size())};
}

ValueId channel_input(Translator& t, const std::string& name, Role role) {
  const Array& array = t.floats(name);
  return t.input(array.numbers(), {array.dims[0]}, role);
}

// ONNX's running variance is the biased one of the batch, ours, like PyTorch's, the unbiased.
void derive_running_variance(Translator& t, const OpNode& node, double momentum, ValueId variance,
                             std::int64_t rows) {
  const std::vector<double> before = t.floats(node.inputs[4]).numbers();
  const auto bias_factor = static_cast<double>(rows - 1) / static_cast<double>(rows);
  const auto convert = [=](const ReadValue& read) {
    std::vector<double> running = read(variance);
    for (std::size_t c = 0; c < running.size(); ++c) {
      const double kept = (1.0 - momentum) * before[c];
      running[c] = kept + (running[c] - kept) * bias_factor;
    }
    return running;
  };
  t.derive(node.outputs[2], t.dims(node.inputs[4]), {variance}, convert);
}

void batch_norm(Translator& t, const OpNode& node) {
  const Dims& dims = t.dims(node.inputs[0]);
  const Shape shape = channel_shape(dims);
  const ValueId src = t.place(node.inputs[0], shape);
  const ValueId scale = channel_input(t, node.inputs[1], Role::parameter);
  const ValueId shift = channel_input(t, node.inputs[2], Role::parameter);
  const ValueId running_mean = channel_input(t, node.inputs[3], Role::statistics);
  const ValueId running_variance = channel_input(t, node.inputs[4], Role::statistics);
  const BatchNormAttributes attributes{.epsilon = node.real("epsilon", 1e-5),
                                       .momentum = 1.0 - node.real("momentum", 0.9)};
  ValueId mean = running_mean, variance = running_variance;
  if (node.integer("training_mode", 0) != 0) {
    const std::vector<ValueId> batch = t.node(OpKind::bn_statistics, attributes, {src});
    mean = batch[0];
    variance = batch[1];
    BatchNormAttributes update = attributes;
    update.count = shape.elements() / shape[1];
    const std::vector<ValueId> running =
        t.node(OpKind::bn_update_running, update, {running_mean, running_variance, mean, variance});
    t.give(node.outputs[1], t.dims(node.inputs[3]), running[0]);
    derive_running_variance(t, node, attributes.momentum, running[1], shape.elements() / shape[1]);
  }
  const ValueId dst = t.node(OpKind::bn_apply, attributes, {src, mean, variance, scale, shift})[0];
  t.give(node.outputs[0], dims, dst);
}

void activate(Translator& t, const OpNode& node, const ActivationAttributes& attributes) {
  const Dims& dims = t.dims(node.inputs[0]);
  const Shape shape = dims.size() == 4 ? image_shape(dims) : as_rows(dims);
  t.give(node.outputs[0], dims,
         t.node(OpKind::activation, attributes, {t.place(node.inputs[0], shape)})[0]);
}

void relu(Translator& t, const OpNode& node) { activate(t, node, {ActivationKind::relu}); }
void sigmoid(Translator& t, const OpNode& node) { activate(t, node, {ActivationKind::sigmoid}); }
void tanh(Translator& t, const OpNode& node) { activate(t, node, {ActivationKind::tanh}); }
void leaky_relu(Translator& t, const OpNode& node) {
  activate(t, node, {ActivationKind::leaky_relu, node.real("alpha", 0.01)});
}

// Clipping is ReLU from 0 on and ReLU6 from 0 to 6.
void clip(Translator& t, const OpNode& node) {
  (void)t.floats(node.inputs[0]);
  const bool has_low = node.has_input(1), has_high = node.has_input(2);
  const double low = has_low ? t.constant(node.inputs[1]).numbers()[0] : 0.0;
  const double high = has_high ? t.constant(node.inputs[2]).numbers()[0] : 0.0;
  if (has_low && low == 0.0 && !has_high) {
    relu(t, node);
  } else if (has_low && low == 0.0 && high == 6.0) {
    activate(t, node, {ActivationKind::relu6});
  } else {
    unsupported("clips to other bounds than 0 to 6 or from 0");
  }
}

// A slope for each channel is a leaky ReLU on each channel's slice.
void slopes(Translator& t, const OpNode& node) {
  const std::vector<double> slope = t.floats(node.inputs[1]).numbers();
  if (slope.size() == 1) {
    activate(t, node, {ActivationKind::leaky_relu, slope[0]});
    return;
  }
  const Dims& dims = t.dims(node.inputs[0]);
  const ValueId src = t.place(node.inputs[0], channel_shape(dims));
  std::vector<ValueId> parts;
  for (std::size_t c = 0; c < slope.size(); ++c) {
    const ValueId part =
        t.node(OpKind::slice, SliceAttributes{static_cast<std::int64_t>(c), 1}, {src})[0];
    parts.push_back(t.node(OpKind::activation,
                           ActivationAttributes{ActivationKind::leaky_relu, slope[c]}, {part})[0]);
  }
  t.give(node.outputs[0], dims, t.node(OpKind::concat, {}, parts)[0]);
}

// With ratio 0 everything stays; which elements a generator drops otherwise is its own affair.
void dropout(Translator& t, const OpNode& node) {
  const double ratio = node.has_input(1) ? t.constant(node.inputs[1]).numbers()[0] : 0.5;
  const bool training = node.has_input(2) && t.constant(node.inputs[2]).numbers()[0] != 0.0;
  if (!training) unsupported("dropout outside training is left out of the graph");
  if (ratio != 0.0) unsupported("the mask comes from another random generator");
  const Dims& dims = t.dims(node.inputs[0]);
  const DropoutAttributes attributes{.probability = ratio};
  const ValueId dst =
      t.node(OpKind::dropout, attributes, {t.place(node.inputs[0], as_rows(dims))})[0];
  t.give(node.outputs[0], dims, dst);
  if (!node.has_output(1)) return;
  const StepState state = t.state();
  const auto mask = [=](const ReadValue& read) {
    std::vector<double> kept = read(dst);
    for (std::size_t i = 0; i < kept.size(); ++i) {
      const float factor =
          dropout_factor(attributes, state.seed, state.random_step, static_cast<std::int64_t>(i));
      kept[i] = factor != 0.0F ? 1.0 : 0.0;
    }
    return kept;
  };
  t.derive(node.outputs[1], dims, {dst}, mask);
}

}  // namespace

TranslateNode find_image_op(const std::string& type) {
  static const std::map<std::string, TranslateNode> ops = {
      {"AveragePool", average_pool},
      {"BatchNormalization", batch_norm},
      {"Clip", clip},
      {"Conv", convolution},
      {"ConvTranspose", transposed_convolution},
      {"Dropout", dropout},
      {"GlobalAveragePool", global_average_pool},
      {"GlobalMaxPool", global_max_pool},
      {"LeakyRelu", leaky_relu},
      {"MaxPool", max_pool},
      {"PRelu", slopes},
      {"Relu", relu},
      {"Sigmoid", sigmoid},
      {"Tanh", tanh},
  };
  const auto found = ops.find(type);
  return found != ops.end() ? found->second : nullptr;
}

}  // namespace ridgeline::onnx
