// Layers with weights, normalisations and pools.

#include <algorithm>
#include <array>
#include <cmath>

#include "base/error.h"
#include "onnx/export.h"
#include "onnx/importer.h"

namespace ridgeline::onnx {
namespace {

// Sizes of windows and the like; more would overflow somewhere, and no network has them.
constexpr std::int64_t kMostPixels = 1 << 16;

std::int64_t bounded(const char* what, std::int64_t value, std::int64_t least) {
  if (value < least || value > kMostPixels) bad_input("{} {}", what, value);
  return value;
}

constexpr std::int64_t kMostShares = 1 << 20;  // of an adaptive average, as a matrix

// One axis of a window.
struct Axis {
  std::int64_t kernel = 1, stride = 1, dilation = 1, before = 0, after = 0;
};
using Axes = std::array<Axis, 2>;

// As many windows as strides fit into the image.
void pad_same(Axis& axis, std::int64_t size, bool upper) {
  const std::int64_t windows = (size + axis.stride - 1) / axis.stride;
  const std::int64_t covered = (windows - 1) * axis.stride + axis.dilation * (axis.kernel - 1) + 1;
  const std::int64_t total = std::max<std::int64_t>(covered - size, 0);
  axis.before = upper ? total / 2 : total - total / 2;
  axis.after = total - axis.before;
}

Axes window_of(const OpNode& node, const Dims& kernel, const Shape& image) {
  const Dims strides = node.integers("strides", {1, 1}), pads = node.integers("pads", {0, 0, 0, 0});
  const Dims dilations = node.integers("dilations", {1, 1});
  if (kernel.size() != 2 || strides.size() != 2 || dilations.size() != 2 || pads.size() != 4) {
    bad_input("its window does not have two axes");
  }
  const std::string automatic = node.text("auto_pad", "NOTSET");
  Axes axes;
  for (std::size_t i = 0; i < 2; ++i) {
    axes[i] = {bounded("kernel", kernel[i], 1), bounded("stride", strides[i], 1),
               bounded("dilation", dilations[i], 1), bounded("padding", pads[i], 0),
               bounded("padding", pads[i + 2], 0)};
    if (automatic.starts_with("SAME")) {
      pad_same(axes[i], image[static_cast<int>(i) + 2], automatic == "SAME_UPPER");
    } else if (automatic == "VALID") {
      axes[i].before = axes[i].after = 0;
    }
  }
  return axes;
}

// An image, and the zeros around it that a window may have as its own padding.
struct PaddedImage {
  ValueId id = kNoValue;
  PadAttributes amounts;
};

PaddedImage padded_image(Importer& importer, const OpNode& node) {
  const auto* padded = std::get_if<Padded>(importer.input(node, 0));
  const bool joins = padded != nullptr && node.text("auto_pad", "NOTSET") == "NOTSET" &&
                     padded->amounts.top >= 0 && padded->amounts.left >= 0 &&
                     padded->amounts.bottom >= 0 && padded->amounts.right >= 0 &&
                     padded->amounts.channels_before == 0 && padded->amounts.channels_behind == 0;
  if (!joins) return {importer.image(node, 0), {}};
  const Padded copy = *padded;
  return {importer.placed(copy.of, copy.layer), copy.amounts};
}

// A constant that is added to each channel of a value by an Add behind it, which is then done.
const Array* bias_behind(Importer& importer, const OpNode& node, std::int64_t channels,
                         std::string& output) {
  const OpNode* add = importer.only_reader(node.outputs[0]);
  if (add == nullptr || add->type != "Add" || !add->domain.empty() || add->inputs.size() != 2 ||
      add->outputs.size() != 1) {
    return nullptr;
  }
  const Array* bias = nullptr;
  for (const std::string& name : add->inputs) {
    const Array* array = importer.find_constant(name);
    if (array != nullptr) bias = array;
  }
  if (bias == nullptr || bias->dims != Dims{channels} || !is_real(bias->type)) return nullptr;
  importer.skip(*add);
  output = add->outputs[0];
  return bias;
}

void check_channels(std::int64_t wanted, std::int64_t got) {
  if (wanted == got) return;
  bad_input("its weights are for {} channels, and it gets {}", wanted, got);
}

void check_bias(const Array* bias, std::int64_t channels) {
  if (bias != nullptr && (bias->elements() != channels || !is_real(bias->type))) {
    bad_input("a bias of {} for {} channels", dims_text(bias->dims), channels);
  }
}

const Array& real_weights(Importer& importer, const OpNode& node, std::size_t index,
                          std::size_t rank) {
  const Array& weights = importer.needed_constant(node, index);
  if (!is_real(weights.type)) {
    bad_input("weights of {}: quantised networks are not supported", name_of(weights.type));
  }
  if (weights.dims.size() != rank) {
    bad_input("weights of {} axes where {} are supported", weights.dims.size(), rank);
  }
  return weights;
}

// Parameters of a layer begin with the file's, unless it is a classifier for other classes.
void begin_layer(Importer& importer, const OpNode& node, const std::string& layer,
                 const Array& weights, const Array* bias) {
  if (importer.is_new_head(node)) return;
  importer.begin_with(layer + ".weight", weights);
  if (bias != nullptr) importer.begin_with(layer + ".bias", *bias);
}

std::int64_t channels_of(Importer& importer, const OpNode& node, std::int64_t own) {
  return importer.is_new_head(node) ? importer.plan().wanted_classes : own;
}

void convolution(Importer& importer, const OpNode& node) {
  const Array& weights = real_weights(importer, node, 1, 4);
  const PaddedImage src = padded_image(importer, node);
  const Shape image = importer.builder().shape(src.id);
  const auto& [h, w] = window_of(node, {weights.dims[2], weights.dims[3]}, image);
  const std::int64_t groups = node.integer("group", 1);
  if (groups < 1 || image[1] % groups != 0 || weights.dims[0] % groups != 0) {
    bad_input("{} channels in {} groups", image[1], groups);
  }
  check_channels(weights.dims[1] * groups, image[1]);
  const Array* bias = node.has_input(2) ? &importer.needed_constant(node, 2) : nullptr;
  check_bias(bias, weights.dims[0]);
  ConvOptions options;
  options.bias = bias != nullptr;
  options.window = Conv2dAttributes{.kernel_h = h.kernel,
                                    .kernel_w = w.kernel,
                                    .stride_h = h.stride,
                                    .stride_w = w.stride,
                                    .pad_top = h.before + src.amounts.top,
                                    .pad_left = w.before + src.amounts.left,
                                    .pad_bottom = h.after + src.amounts.bottom,
                                    .pad_right = w.after + src.amounts.right,
                                    .dilation_h = h.dilation,
                                    .dilation_w = w.dilation,
                                    .groups = groups};
  const std::string layer = importer.parameter_layer(node, 1);
  const ValueId dst = importer.builder().conv2d(
      src.id, channels_of(importer, node, weights.dims[0]), options, layer);
  begin_layer(importer, node, layer, weights, bias);
  importer.give(node, dst);
}

// (features, inputs), as PyTorch has it.
Array as_linear(const Array& weights, bool is_transposed, double factor) {
  static constexpr std::array<std::int64_t, 2> kTurned = {1, 0};
  Array made = is_transposed ? weights : transposed(weights, kTurned);
  if (factor == 1.0) return made;
  std::vector<double> numbers = made.numbers();
  for (double& number : numbers) number *= factor;
  return make_array(made.name, made.type, made.dims, numbers);
}

void linear(Importer& importer, const OpNode& node, const Array& weights, const Array* bias,
            const std::string& output) {
  const std::string layer = importer.parameter_layer(node, 1);
  const ValueId id = importer.settled(node, 0).id;
  const Shape shape = importer.builder().shape(id);
  if (shape.rank() != 2) bad_input("a product of {} with a matrix", shape.text());
  if (shape[1] != weights.dims[1]) {
    bad_input("its weights are for {} features, and it gets {}", weights.dims[1], shape[1]);
  }
  const ValueId dst = importer.builder().linear(id, channels_of(importer, node, weights.dims[0]),
                                                layer, {}, bias != nullptr);
  begin_layer(importer, node, layer, weights, bias);
  importer.give(output, importer.whole(dst));
}

// PyTorch's Linear on the last axis of an image whose channels come last: a 1x1 convolution.
void pointwise_convolution(Importer& importer, const OpNode& node, const Tensor& src,
                           const Array& weights, const Array* bias, const std::string& output) {
  const std::string layer = importer.parameter_layer(node, 1);
  check_channels(weights.dims[1], importer.builder().shape(src.id)[1]);
  const std::int64_t channels = channels_of(importer, node, weights.dims[0]);
  ConvOptions options;
  options.bias = bias != nullptr;
  options.file_shape = {channels, weights.dims[1]};
  const ValueId dst = importer.builder().conv2d(src.id, channels, options, layer);
  begin_layer(importer, node, layer, weights, bias);
  importer.give(output, Tensor{dst, src.view.on(importer.builder().shape(dst))});
}

void gemm(Importer& importer, const OpNode& node) {
  if (node.integer("transA", 0) != 0) bad_input("a transposed input is not supported");
  const Array& given = real_weights(importer, node, 1, 2);
  const Array weights = as_linear(given, node.integer("transB", 0) != 0, node.real("alpha", 1.0));
  const Array* bias = node.has_input(2) ? &importer.needed_constant(node, 2) : nullptr;
  if (bias != nullptr && node.real("beta", 1.0) != 1.0) bad_input("beta other than 1");
  check_bias(bias, weights.dims[0]);
  linear(importer, node, weights, bias, node.outputs[0]);
}

// Whether a matrix makes `dst` averages of neighbours along an axis of `src` pixels.
bool is_adaptive(const Array& matrix, std::int64_t src) {
  if (matrix.dims.size() != 2 || matrix.dims[0] != src || src > kMostPixels ||
      matrix.dims[1] > kMostPixels || matrix.elements() > kMostShares) {
    return false;
  }
  const std::vector<double> numbers = matrix.numbers();
  const std::vector<double> shares = adaptive_shares(src, matrix.dims[1]);
  return std::equal(numbers.begin(), numbers.end(), shares.begin(),
                    [](double a, double b) { return std::abs(a - b) < 1e-6; });
}

// Our own exports write an adaptive average as two products.
bool step_of_pool(Importer& importer, const OpNode& node) {
  if (!node.has_input(0)) bad_input("its input is missing");
  const Known value = importer.known(node.inputs[0]);
  const Array& matrix = importer.needed_constant(node, 1);
  if (const auto* half = std::get_if<HalfPooled>(&value)) {
    if (!half->turned || half->height || !is_adaptive(matrix, importer.shape(half->of.id)[2])) {
      bad_input("of an average along one axis is not supported");
    }
    HalfPooled made = *half;
    made.height = matrix.dims[1];
    importer.give(node.outputs[0], std::move(made));
    return true;
  }
  const auto* src = std::get_if<Tensor>(&value);
  if (src == nullptr || importer.shape(src->id).rank() != 4 ||
      !(src->view == View(importer.shape(src->id))) ||
      !is_adaptive(matrix, importer.shape(src->id)[3])) {
    return false;
  }
  importer.give(node.outputs[0], HalfPooled{.of = *src, .width = matrix.dims[1]});
  return true;
}

void product(Importer& importer, const OpNode& node) {
  if (step_of_pool(importer, node)) return;
  const Array weights = as_linear(real_weights(importer, node, 1, 2), false, 1.0);
  const Tensor src = importer.tensor(node, 0);
  std::string output = node.outputs[0];
  const Array* bias = bias_behind(importer, node, weights.dims[0], output);
  const bool last = src.view.channels() == src.view.dims().size() - 1;
  if (last && importer.builder().shape(src.id).rank() == 4 && src.view.dims().size() == 4) {
    pointwise_convolution(importer, node, src, weights, bias, output);
  } else {
    linear(importer, node, weights, bias, output);
  }
}

// ONNX tells the share of the running statistics that stays, PyTorch the one that is new; both are
// short decimal numbers.
double momentum_of(const OpNode& node) {
  return std::round((1.0 - node.real("momentum", 0.9)) * 1e7) / 1e7;
}

void batch_norm(Importer& importer, const OpNode& node) {
  const std::string layer = importer.parameter_layer(node, 1);
  const ValueId src = importer.settled(node, 0).id;
  const std::int64_t channels = importer.builder().shape(src)[1];
  static constexpr std::array<const char*, 4> kNames = {".weight", ".bias", ".running_mean",
                                                        ".running_var"};
  for (std::size_t i = 0; i < kNames.size(); ++i) {
    check_channels(real_weights(importer, node, i + 1, 1).dims[0], channels);
  }
  const ValueId dst = importer.builder().batch_norm(
      src, layer, {.epsilon = node.real("epsilon", 1e-5), .momentum = momentum_of(node)});
  for (std::size_t i = 0; i < kNames.size(); ++i) {
    importer.begin_with(layer + kNames[i], importer.needed_constant(node, i + 1));
  }
  importer.give(node, dst);
}

void layer_norm(Importer& importer, const OpNode& node) {
  const Tensor src = importer.tensor(node, 0);
  const std::size_t axis = axis_of(node.integer("axis", -1), src.view.dims().size());
  if (axis + 1 != src.view.dims().size() || src.view.channels() != axis) {
    bad_input("a layer norm over other axes than the channels is not supported");
  }
  const std::int64_t channels = importer.builder().shape(src.id)[1];
  const Array& scale = real_weights(importer, node, 1, 1);
  check_channels(scale.dims[0], channels);
  const std::string layer = importer.parameter_layer(node, 1);
  const ValueId dst = importer.builder().layer_norm(src.id, layer, node.real("epsilon", 1e-5));
  importer.begin_with(layer + ".weight", scale);
  // Without a shift it is 0.
  if (node.has_input(2)) {
    check_channels(real_weights(importer, node, 2, 1).dims[0], channels);
    importer.begin_with(layer + ".bias", importer.needed_constant(node, 2));
  }
  importer.give(node.outputs[0], Tensor{dst, src.view});
}

// Each number as often as a group has channels.
Array for_channels(const Array& array, std::int64_t channels) {
  if (array.elements() == channels) return array;
  std::vector<double> made;
  for (const double number : array.numbers()) {
    made.insert(made.end(), static_cast<std::size_t>(channels / array.elements()), number);
  }
  return make_array(array.name, array.type, {channels}, made);
}

void group_norm(Importer& importer, const OpNode& node) {
  const ValueId src = importer.image(node, 0);
  const std::int64_t channels = importer.builder().shape(src)[1];
  const std::int64_t groups =
      node.type == "InstanceNormalization" ? channels : node.integer("num_groups", 0);
  if (groups < 1 || channels % groups != 0) bad_input("{} channels in {} groups", channels, groups);
  const Array &scale = real_weights(importer, node, 1, 1),
              &shift = real_weights(importer, node, 2, 1);
  for (const Array* array : {&scale, &shift}) {
    // Opset 18 has a number for each group, later ones for each channel.
    if (array->dims[0] != channels && array->dims[0] != groups) {
      check_channels(array->dims[0], channels);
    }
  }
  const std::string layer = importer.parameter_layer(node, 1);
  const ValueId dst = importer.builder().group_norm(src, groups, layer, node.real("epsilon", 1e-5));
  importer.begin_with(layer + ".weight", for_channels(scale, channels));
  importer.begin_with(layer + ".bias", for_channels(shift, channels));
  importer.give(node, dst);
}

// PyTorch writes a group norm as an instance norm of (N, groups, rest), then scales and shifts.
void instance_norm(Importer& importer, const OpNode& node) {
  const Tensor src = importer.tensor(node, 0);
  if (src.view.dims().size() == 4) {
    group_norm(importer, node);
    return;
  }
  const std::optional<std::int64_t> groups = src.view.grouped();
  const auto all = [&](std::size_t index, double value) {
    const std::vector<double> numbers = real_weights(importer, node, index, 1).numbers();
    return std::all_of(numbers.begin(), numbers.end(), [&](double x) { return x == value; });
  };
  if (!groups || !all(1, 1.0) || !all(2, 0.0)) {
    bad_input("a value of {} axes is not supported", src.view.dims().size());
  }
  importer.give(node.outputs[0], NormPart{.stage = NormPart::Stage::normalised,
                                          .of = src,
                                          .groups = *groups,
                                          .epsilon = node.real("epsilon", 1e-5),
                                          .scale = {},
                                          .layer = importer.layer_of(node)});
}

void pool(Importer& importer, const OpNode& node) {
  const bool average = node.type == "AveragePool";
  const auto* padded = std::get_if<Padded>(importer.input(node, 0));
  // Zeros are no padding of a maximum, and count as values of an average.
  const bool joins = average && padded != nullptr && node.integers("pads", {0, 0, 0, 0}) == Dims(4);
  const PaddedImage src =
      joins ? padded_image(importer, node) : PaddedImage{importer.image(node, 0), {}};
  if (node.has_output(1) && !importer.readers(node.outputs[1]).empty()) {
    bad_input("positions of maxima are not supported");
  }
  const auto& [h, w] =
      window_of(node, node.integers("kernel_shape", {}), importer.builder().shape(src.id));
  PoolAttributes attributes{.kind = average ? PoolKind::average : PoolKind::max,
                            .kernel_h = h.kernel,
                            .kernel_w = w.kernel,
                            .stride_h = h.stride,
                            .stride_w = w.stride,
                            .pad_top = h.before + src.amounts.top,
                            .pad_left = w.before + src.amounts.left,
                            .pad_bottom = h.after + src.amounts.bottom,
                            .pad_right = w.after + src.amounts.right,
                            .dilation_h = h.dilation,
                            .dilation_w = w.dilation,
                            .ceil_mode = node.integer("ceil_mode", 0) != 0};
  const bool pads = h.before + h.after + w.before + w.after > 0;
  // An adaptive average to the size that the image has.
  const bool single = h.kernel == 1 && w.kernel == 1 && h.stride == 1 && w.stride == 1;
  if (single && !pads && !joins) return importer.give(node, src.id);
  // Without padding it makes no difference, and PyTorch's default is yes.
  const bool counted = node.integer("count_include_pad", 0) != 0;
  attributes.count_include_pad = joins || counted || (!pads && !attributes.ceil_mode);
  importer.give(node, importer.builder().pool(src.id, attributes, importer.layer_of(node)));
}

void global_pool(Importer& importer, const OpNode& node) {
  const ValueId src = importer.image(node, 0);
  const std::string layer = importer.layer_of(node);
  if (node.type == "GlobalAveragePool") {
    importer.give(node, importer.builder().global_average_pool(src, layer));
    return;
  }
  const Shape image = importer.builder().shape(src);
  const PoolAttributes attributes{.kind = PoolKind::max,
                                  .kernel_h = image[2],
                                  .kernel_w = image[3],
                                  .stride_h = image[2],
                                  .stride_w = image[3]};
  importer.give(node, importer.builder().pool(src, attributes, layer));
}

void dropout(Importer& importer, const OpNode& node) {
  if (node.has_output(1) && !importer.readers(node.outputs[1]).empty()) {
    bad_input("the mask of a dropout is not supported");
  }
  const Array* given = importer.constant(node, 1);
  if (node.has_input(1) && given == nullptr) bad_input("its ratio must be a constant");
  const double ratio = given != nullptr ? given->number().value_or(-1.0) : node.real("ratio", 0.5);
  if (!(ratio >= 0.0 && ratio < 1.0)) bad_input("a ratio of {}", ratio);
  importer.settle_order(node, 0);
  Tensor value = importer.tensor(node, 0);
  const std::string ending = fmt::format("/{}", kStochasticDepth);
  if (ratio == 0.0 || !importer.plan().drops) {
    importer.give(node.outputs[0], value);
    return;
  }
  if (node.name.ends_with(ending)) {
    const std::string layer = node.name.substr(0, node.name.size() - ending.size());
    value.id = importer.builder().stochastic_depth(value.id, ratio, layer);
  } else {
    value.id = importer.builder().dropout(value.id, ratio, importer.layer_of(node));
  }
  importer.give(node.outputs[0], value);
}

struct NamedLayer {
  std::string_view type;
  Translate translate;
};
constexpr std::array<NamedLayer, 12> kLayers = {{
    {"AveragePool", pool},
    {"BatchNormalization", batch_norm},
    {"Conv", convolution},
    {"Dropout", dropout},
    {"Gemm", gemm},
    {"GlobalAveragePool", global_pool},
    {"GlobalMaxPool", global_pool},
    {"GroupNormalization", group_norm},
    {"InstanceNormalization", instance_norm},
    {"LayerNormalization", layer_norm},
    {"MatMul", product},
    {"MaxPool", pool},
}};

}  // namespace

Translate find_layer(std::string_view type) {
  for (const NamedLayer& layer : kLayers) {
    if (layer.type == type) return layer.translate;
  }
  return nullptr;
}

std::vector<std::string_view> layer_ops() {
  std::vector<std::string_view> names;
  for (const NamedLayer& layer : kLayers) names.push_back(layer.type);
  return names;
}

}  // namespace ridgeline::onnx
