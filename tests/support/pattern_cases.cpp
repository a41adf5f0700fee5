// Chains of ops as networks have them. A backend may cover a chain with one kernel or with several;
// either way the values that leave it must be right.

#include <fmt/core.h>

#include "graph/autodiff.h"
#include "support/op_cases.h"
#include "support/window.h"

namespace ridgeline::testing {
namespace {

const ActivationAttributes kRelu = {.kind = ActivationKind::relu};

struct ConvBlock {
  std::string name;
  Shape src;
  std::int64_t outputs;
  Conv2dAttributes conv;
  ActivationAttributes activation = kRelu;
  bool big = false;
};

std::vector<ConvBlock> conv_blocks() {
  return {
      {"primes", {3, 5, 7, 9}, 13, kernel(3, 3).pad(1)},
      {"pointwise_relu6", {2, 16, 6, 6}, 24, kernel(1, 1), {.kind = ActivationKind::relu6}},
      {"depthwise_relu6",
       {2, 19, 8, 8},
       19,
       kernel(3, 3).stride(2).pad(1).groups(19),
       {.kind = ActivationKind::relu6}},
      {"silu", {1, 3, 9, 8}, 7, kernel(3, 3).stride(2), {.kind = ActivationKind::silu}},
      {"tanh", {2, 1, 8, 8}, 6, kernel(5, 5), {.kind = ActivationKind::tanh}},
      {"leaky_relu",
       {2, 4, 6, 7},
       8,
       kernel(3, 3),
       {.kind = ActivationKind::leaky_relu, .slope = 0.1}},
      {"tiles", {2, 16, 11, 12}, 33, kernel(3, 3).pad(1)},
      {"tiles_silu", {3, 17, 9, 11}, 20, kernel(3, 3), {.kind = ActivationKind::silu}},
      {"mnist_cnn_conv1", {512, 1, 28, 28}, 8, kernel(3, 3), kRelu, true},
      {"mnist_cnn_conv2", {512, 8, 13, 13}, 16, kernel(3, 3), kRelu, true},
  };
}

struct Block {
  ValueId conv, biased, activated;
};

// src -> conv2d -> bias -> activation.
Block add_block(CaseBuilder& builder, const ConvBlock& p) {
  const ValueId src = builder.input(p.src);
  const ValueId weights =
      builder.parameter({p.outputs, p.src[1] / p.conv.groups, p.conv.kernel_h, p.conv.kernel_w});
  const ValueId bias = builder.parameter({p.outputs});
  const ValueId conv = builder.node(OpKind::conv2d, {src, weights}, p.conv);
  const ValueId biased = builder.node(OpKind::bias, {conv, bias});
  return {conv, biased, builder.node(OpKind::activation, {biased}, p.activation)};
}

void add_conv_forward(std::vector<OpCase>& cases, const ConvBlock& p) {
  if (!p.big) {
    CaseBuilder block("pattern.conv_bias_activation_" + p.name);
    add_block(block, p);
    cases.push_back(block.done());

    CaseBuilder kept("pattern.conv_bias_activation_all_kept_" + p.name);
    const Block values = add_block(kept, p);
    kept.keep(values.conv);
    kept.keep(values.biased);
    cases.push_back(kept.done());
  }

  CaseBuilder pooled("pattern.conv_bias_activation_pool_" + p.name);
  const Block before = add_block(pooled, p);
  pooled.node(OpKind::pool, {before.activated}, max_window(2, 2).stride(2));
  cases.push_back(pooled.done(p.big));

  // As in training, where the activation's result is needed again.
  CaseBuilder pooled_kept("pattern.conv_bias_activation_kept_pool_" + p.name);
  const Block needed = add_block(pooled_kept, p);
  pooled_kept.node(OpKind::pool, {needed.activated}, max_window(2, 2).stride(2));
  pooled_kept.keep(needed.activated);
  cases.push_back(pooled_kept.done(p.big));
}

// diff_dst -> activation_backward -> bias, weights and data gradients, optionally behind a pool.
void add_conv_backward(std::vector<OpCase>& cases, const ConvBlock& p, bool pooled, bool data) {
  if (backward_uses_src(p.activation.kind) && pooled) return;
  // Of the real network the chains it has: its first layer needs no data gradient.
  const bool first_layer = p.src[1] == 1;
  if (p.big && (!pooled || data == first_layer)) return;
  CaseBuilder builder(fmt::format("pattern.{}activation_backward_bias_conv_backward{}_{}",
                                  pooled ? "pool_backward_" : "", data ? "" : "_weights", p.name));
  CaseBuilder shapes("shapes");
  const Shape dst = shapes.shape(add_block(shapes, p).activated);
  const Shape weights_shape = {p.outputs, p.src[1] / p.conv.groups, p.conv.kernel_h,
                               p.conv.kernel_w};
  const Window<PoolAttributes> pool = max_window(2, 2).stride(2).src(dst[2], dst[3]);
  const ValueId src = builder.input(p.src);
  const ValueId weights = data ? builder.parameter(weights_shape) : kNoValue;
  const bool uses_src = backward_uses_src(p.activation.kind);
  const ValueId kept = builder.input(dst, uses_src ? Data::distinct : Data::activated);
  ValueId diff = kNoValue;
  if (pooled) {
    const Shape pooled_shape = {dst[0], dst[1], dst[2] / 2, dst[3] / 2};
    const ValueId diff_pool = builder.input(pooled_shape);
    const ValueId positions = builder.input(pooled_shape, Data::positions, DType::u8);
    diff = builder.node(OpKind::pool_backward, {diff_pool, positions}, PoolAttributes(pool));
  } else {
    diff = builder.input(dst);
  }
  diff = builder.node(OpKind::activation_backward, {diff, kept}, p.activation);
  builder.node(OpKind::bias_backward, {diff});
  builder.node(OpKind::conv2d_backward_weights, {src, diff}, p.conv);
  if (data) {
    Conv2dAttributes attributes = p.conv;
    attributes.src_h = p.src[2];
    attributes.src_w = p.src[3];
    builder.node(OpKind::conv2d_backward_data, {diff, weights}, attributes);
  }
  cases.push_back(builder.done(p.big));
}

struct LinearBlock {
  std::string name;
  std::int64_t rows, depth, outputs;
  bool big = false;
};

void add_linear_patterns(std::vector<OpCase>& cases) {
  for (const LinearBlock& p : std::vector<LinearBlock>{
           {"one_row", 1, 9, 5}, {"primes", 7, 19, 11}, {"mnist_cnn_fc1", 512, 400, 128, true}}) {
    CaseBuilder biased("pattern.linear_bias_" + p.name);
    const ValueId src = biased.input({p.rows, p.depth});
    const ValueId weights = biased.parameter({p.outputs, p.depth});
    const ValueId bias = biased.parameter({p.outputs});
    biased.node(OpKind::bias, {biased.node(OpKind::linear, {src, weights}), bias});
    cases.push_back(biased.done(p.big));

    for (const ActivationKind kind : {ActivationKind::relu, ActivationKind::sigmoid}) {
      CaseBuilder block(fmt::format("pattern.linear_bias_{}_{}", name_of(kind), p.name));
      const ValueId x = block.input({p.rows, p.depth});
      const ValueId w = block.parameter({p.outputs, p.depth}), b = block.parameter({p.outputs});
      const ValueId linear = block.node(OpKind::bias, {block.node(OpKind::linear, {x, w}), b});
      block.node(OpKind::activation, {linear}, ActivationAttributes{.kind = kind});
      cases.push_back(block.done(p.big));
    }

    CaseBuilder backward("pattern.activation_backward_bias_linear_backward_" + p.name);
    const ValueId diff_dst = backward.input({p.rows, p.outputs});
    const ValueId dst = backward.input({p.rows, p.outputs}, Data::activated);
    const ValueId kept = backward.input({p.rows, p.depth});
    const ValueId filters = backward.parameter({p.outputs, p.depth});
    const ValueId diff = backward.node(OpKind::activation_backward, {diff_dst, dst}, kRelu);
    backward.node(OpKind::bias_backward, {diff});
    backward.node(OpKind::linear_backward_weights, {kept, diff});
    backward.node(OpKind::linear_backward_data, {diff, filters});
    cases.push_back(backward.done(p.big));
  }
}

void add_norm_patterns(std::vector<OpCase>& cases) {
  for (const bool residual : {false, true}) {
    CaseBuilder builder(residual ? "pattern.conv_bn_add_relu" : "pattern.conv_bn_relu");
    const ValueId src = builder.input({3, 5, 6, 7});
    const ValueId other = residual ? builder.input({3, 11, 6, 7}) : kNoValue;
    const ValueId weights = builder.parameter({11, 5, 3, 3});
    const ValueId scale = builder.parameter({11}), shift = builder.parameter({11});
    const ValueId running_mean = builder.state({11}, Role::statistics);
    const ValueId running_variance = builder.state({11}, Role::statistics, Data::positive);
    const ValueId conv =
        builder.node(OpKind::conv2d, {src, weights}, Conv2dAttributes(kernel(3, 3).pad(1)));
    const ValueId mean = builder.node(OpKind::bn_statistics, {conv}, BatchNormAttributes{});
    builder.node(OpKind::bn_update_running, {running_mean, running_variance, mean, mean + 1},
                 BatchNormAttributes{.count = 3 * 6 * 7});
    ValueId dst =
        builder.node(OpKind::bn_apply, {conv, mean, mean + 1, scale, shift}, BatchNormAttributes{});
    if (residual) dst = builder.node(OpKind::add, {dst, other});
    builder.node(OpKind::activation, {dst}, kRelu);
    cases.push_back(builder.done());
  }

  // Smooth behind the normalisation, so that the gradient check covers the way through statistics.
  for (const Shape& shape : {Shape{3, 5, 4, 3}, Shape{6, 3}}) {
    CaseBuilder builder("pattern.bn_tanh_rank_" + std::to_string(shape.rank()));
    const ValueId src = builder.input(shape);
    const ValueId scale = builder.parameter({shape[1]}), shift = builder.parameter({shape[1]});
    const ValueId mean = builder.node(OpKind::bn_statistics, {src}, BatchNormAttributes{});
    const ValueId dst =
        builder.node(OpKind::bn_apply, {src, mean, mean + 1, scale, shift}, BatchNormAttributes{});
    builder.node(OpKind::activation, {dst}, ActivationAttributes{.kind = ActivationKind::tanh});
    cases.push_back(builder.done());
  }

  // The gradients alone, as behind a convolution.
  CaseBuilder alone("pattern.bn_backward");
  const ValueId diff_alone = alone.input({3, 11, 6, 7}), src_alone = alone.input({3, 11, 6, 7});
  const ValueId scale_alone = alone.parameter({11});
  const ValueId mean_alone = alone.state({11}, Role::statistics);
  const ValueId variance_alone = alone.state({11}, Role::statistics, Data::positive);
  const ValueId sums_alone =
      alone.node(OpKind::bn_backward_reduce, {diff_alone, src_alone, mean_alone, variance_alone},
                 BatchNormAttributes{});
  alone.node(
      OpKind::bn_backward_apply,
      {diff_alone, src_alone, mean_alone, variance_alone, scale_alone, sums_alone, sums_alone + 1},
      BatchNormAttributes{});
  alone.keep(sums_alone);
  alone.keep(sums_alone + 1);
  cases.push_back(alone.done());
  CaseBuilder backward("pattern.activation_backward_bn_backward");
  const Shape shape = {3, 11, 6, 7};
  const ValueId diff_dst = backward.input(shape), dst = backward.input(shape, Data::activated);
  const ValueId src = backward.input(shape), scale = backward.parameter({11});
  const ValueId mean = backward.state({11}, Role::statistics);
  const ValueId variance = backward.state({11}, Role::statistics, Data::positive);
  const ValueId diff = backward.node(OpKind::activation_backward, {diff_dst, dst}, kRelu);
  const ValueId sums =
      backward.node(OpKind::bn_backward_reduce, {diff, src, mean, variance}, BatchNormAttributes{});
  backward.node(OpKind::bn_backward_apply, {diff, src, mean, variance, scale, sums, sums + 1},
                BatchNormAttributes{});
  backward.keep(sums);
  backward.keep(sums + 1);
  cases.push_back(backward.done());
}

// A product and what follows it, one piece less than in the blocks above.
void add_short_chains(std::vector<OpCase>& cases) {
  for (const bool biased : {false, true}) {
    CaseBuilder conv(biased ? "pattern.conv_bias" : "pattern.conv_activation");
    const ValueId image = conv.input({3, 5, 7, 9}), filters = conv.parameter({13, 5, 3, 3});
    const ValueId shift = biased ? conv.parameter({13}) : kNoValue;
    const ValueId product =
        conv.node(OpKind::conv2d, {image, filters}, Conv2dAttributes(kernel(3, 3).pad(1)));
    if (biased) {
      conv.node(OpKind::bias, {product, shift});
    } else {
      conv.node(OpKind::activation, {product}, kRelu);
    }
    cases.push_back(conv.done());
  }
  CaseBuilder linear("pattern.linear_activation");
  const ValueId rows = linear.input({7, 19}), weights = linear.parameter({11, 19});
  linear.node(OpKind::activation, {linear.node(OpKind::linear, {rows, weights})}, kRelu);
  cases.push_back(linear.done());
}

// With statistics of the batch or, as in evaluation, with given ones.
void add_norm_chains(std::vector<OpCase>& cases) {
  for (const bool given : {false, true}) {
    for (const bool residual : {false, true}) {
      CaseBuilder builder(
          fmt::format("pattern.{}bn_{}", given ? "given_" : "", residual ? "add" : "relu_alone"));
      const Shape shape = {3, 16, 6, 7};
      const ValueId src = builder.input(shape);
      const ValueId other = residual ? builder.input(shape) : kNoValue;
      const ValueId scale = builder.parameter({16}), shift = builder.parameter({16});
      ValueId mean = kNoValue, variance = kNoValue;
      if (given) {
        mean = builder.state({16}, Role::statistics);
        variance = builder.state({16}, Role::statistics, Data::positive);
      } else {
        mean = builder.node(OpKind::bn_statistics, {src}, BatchNormAttributes{});
        variance = mean + 1;
      }
      const ValueId dst = builder.node(OpKind::bn_apply, {src, mean, variance, scale, shift},
                                       BatchNormAttributes{});
      if (residual) {
        builder.node(OpKind::add, {dst, other});
      } else {
        builder.node(OpKind::activation, {dst}, kRelu);
      }
      cases.push_back(builder.done());
    }
  }
}

// Two gradients meet, as behind a residual block, and go on through what lies before.
void add_backward_joins(std::vector<OpCase>& cases) {
  const Shape shape = {3, 11, 6, 7};
  for (const std::string chain : {"activation", "activation_bias", "activation_bn", "bn"}) {
    CaseBuilder builder("pattern.add_" + chain + "_backward");
    const ValueId first = builder.input(shape), second = builder.input(shape);
    const ValueId kept = chain != "bn" ? builder.input(shape, Data::activated) : kNoValue;
    const bool norm = chain.ends_with("bn"), biased = chain.ends_with("bias");
    const ValueId src = norm || biased ? builder.input(shape) : kNoValue;
    const ValueId scale = norm ? builder.parameter({11}) : kNoValue;
    const ValueId mean = norm ? builder.state({11}, Role::statistics) : kNoValue;
    const ValueId variance =
        norm ? builder.state({11}, Role::statistics, Data::positive) : kNoValue;
    ValueId diff = builder.node(OpKind::add, {first, second});
    if (kept != kNoValue) diff = builder.node(OpKind::activation_backward, {diff, kept}, kRelu);
    if (biased) {
      builder.node(OpKind::bias_backward, {diff});
      builder.node(OpKind::conv2d_backward_weights, {src, diff},
                   Conv2dAttributes(kernel(3, 3).pad(1)));
    }
    if (norm) {
      const ValueId sums = builder.node(OpKind::bn_backward_reduce, {diff, src, mean, variance},
                                        BatchNormAttributes{});
      builder.node(OpKind::bn_backward_apply, {diff, src, mean, variance, scale, sums, sums + 1},
                   BatchNormAttributes{});
      builder.keep(sums);
      builder.keep(sums + 1);
    }
    builder.keep(diff);
    cases.push_back(builder.done());
  }
  CaseBuilder pooled("pattern.pool_backward_activation_backward");
  const ValueId diff_pool = pooled.input({3, 11, 3, 3});
  const ValueId positions = pooled.input({3, 11, 3, 3}, Data::positions, DType::u8);
  const ValueId kept = pooled.input(shape, Data::activated);
  const ValueId diff = pooled.node(OpKind::pool_backward, {diff_pool, positions},
                                   PoolAttributes(max_window(2, 2).stride(2).src(6, 7)));
  pooled.node(OpKind::activation_backward, {diff, kept}, kRelu);
  cases.push_back(pooled.done());
}

// What the end of a step does to all parameters, and all norms, at once.
void add_update_patterns(std::vector<OpCase>& cases) {
  const std::vector<Shape> shapes = {{13, 5, 3, 3}, {13}, {7, 19}};
  CaseBuilder adam("pattern.adam_all");
  adam.step().optimizer_step = 3;
  std::vector<std::vector<ValueId>> inputs;
  for (const Shape& shape : shapes) {
    inputs.push_back({adam.parameter(shape), adam.state(shape, Role::gradient),
                      adam.state(shape, Role::optimizer_state),
                      adam.state(shape, Role::optimizer_state, Data::positive)});
  }
  for (const auto& each : inputs) adam.node(OpKind::adam, each, AdamAttributes{});
  cases.push_back(adam.done());

  CaseBuilder running("pattern.bn_update_running_all");
  inputs.clear();
  for (const std::int64_t channels : {5, 11}) {
    inputs.push_back({});
    for (const Data data : {Data::normal, Data::positive, Data::normal, Data::positive}) {
      inputs.back().push_back(running.state({channels}, Role::statistics, data));
    }
  }
  for (const auto& each : inputs) {
    running.node(OpKind::bn_update_running, each,
                 BatchNormAttributes{.momentum = 0.3, .count = 42});
  }
  cases.push_back(running.done());
}

void add_join_patterns(std::vector<OpCase>& cases) {
  CaseBuilder add_relu("pattern.add_relu");
  const ValueId a = add_relu.input({2, 17, 5, 3});
  const ValueId sum = add_relu.node(OpKind::add, {a, add_relu.input({2, 17, 5, 3})});
  add_relu.node(OpKind::activation, {sum}, kRelu);
  cases.push_back(add_relu.done());

  CaseBuilder loss("pattern.linear_bias_loss_backward");
  const ValueId src = loss.input({7, 19}), labels = loss.input({7}, Data::labels, DType::i32);
  const ValueId weights = loss.parameter({10, 19}), bias = loss.parameter({10});
  const ValueId logits = loss.node(OpKind::bias, {loss.node(OpKind::linear, {src, weights}), bias});
  const ValueId made = loss.node(OpKind::softmax_cross_entropy, {logits, labels}, LossAttributes{});
  loss.node(OpKind::softmax_cross_entropy_backward, {made + 1, labels}, LossAttributes{});
  cases.push_back(loss.done());

  CaseBuilder silu_gate("pattern.value_used_twice");
  const ValueId x = silu_gate.input({2, 3, 4, 5});
  const ValueId hidden =
      silu_gate.node(OpKind::activation, {x}, ActivationAttributes{.kind = ActivationKind::silu});
  const ValueId gate = silu_gate.node(OpKind::activation, {hidden},
                                      ActivationAttributes{.kind = ActivationKind::sigmoid});
  silu_gate.node(OpKind::concat, {hidden, silu_gate.node(OpKind::add, {hidden, gate})});
  cases.push_back(silu_gate.done());
}

// Where a step begins: labels, and pixels with their normalisation or plain features.
struct StepInput {
  ValueId src = kNoValue, labels = kNoValue, totals = kNoValue;
};

StepInput add_pixels(CaseBuilder& builder, const Shape& shape) {
  return {builder.input(shape, Data::pixels, DType::u8),
          builder.input({shape[0]}, Data::labels, DType::i32),
          builder.state({4}, Role::metric, Data::positive, DType::f64)};
}

ValueId normalize(CaseBuilder& builder, const StepInput& input) {
  return builder.node(OpKind::normalize, {input.src},
                      NormalizeAttributes{.mean = {0.13}, .deviation = {0.31}});
}

ValueId add_linear(CaseBuilder& builder, ValueId src, ValueId weights, ValueId bias) {
  return builder.node(OpKind::bias, {builder.node(OpKind::linear, {src, weights}), bias});
}

// The loss, the metrics where there are totals, all gradients and the updates.
void finish_step(CaseBuilder& builder, const StepInput& input, ValueId logits,
                 const std::vector<ValueId>& parameters, double smoothing = 0.0) {
  const ValueId loss = builder.node(OpKind::softmax_cross_entropy, {logits, input.labels},
                                    LossAttributes{.label_smoothing = smoothing});
  if (input.totals != kNoValue) {
    builder.node(OpKind::metrics, {input.totals, loss, logits, input.labels});
  }
  builder.keep(loss);
  const Seed seed = {.value = loss, .gradient = kNoValue};
  const std::vector<ValueId> gradients = differentiate(builder.graph(), {&seed, 1}, parameters);
  for (std::size_t i = 0; i < parameters.size(); ++i) {
    builder.node(OpKind::sgd, {parameters[i], gradients[i]}, SgdAttributes{});
  }
}

// A whole training step of the two-layer perceptron, updates included.
void add_mlp_step(std::vector<OpCase>& cases, const std::string& name, std::int64_t rows,
                  std::int64_t features, std::int64_t hidden, std::int64_t classes) {
  CaseBuilder builder("pattern.mlp_step_" + name);
  const ValueId src = builder.input({rows, features});
  const StepInput input = {src, builder.input({rows}, Data::labels, DType::i32), kNoValue};
  const std::vector<ValueId> parameters = {
      builder.parameter({hidden, features}), builder.parameter({hidden}),
      builder.parameter({classes, hidden}), builder.parameter({classes})};
  ValueId value = add_linear(builder, src, parameters[0], parameters[1]);
  value = builder.node(OpKind::activation, {value}, kRelu);
  value = add_linear(builder, value, parameters[2], parameters[3]);
  finish_step(builder, input, value, parameters);
  cases.push_back(builder.done());
}

// The same from pixels, with totals; the last `spare` rows count nothing.
struct PixelMlp {
  std::string name;
  Shape images;
  std::int64_t hidden, classes;
  ActivationKind activation = ActivationKind::relu;
  std::int64_t spare = 0;
  double smoothing = 0.0;
};

void add_pixel_mlp_step(std::vector<OpCase>& cases, const PixelMlp& p) {
  CaseBuilder builder("pattern.mlp_step_pixels_" + p.name);
  const std::int64_t rows = p.images[0], features = p.images.elements() / rows;
  const StepInput input = add_pixels(builder, p.images);
  const std::vector<ValueId> parameters = {
      builder.parameter({p.hidden, features}), builder.parameter({p.hidden}),
      builder.parameter({p.classes, p.hidden}), builder.parameter({p.classes})};
  ValueId value = builder.node(OpKind::reshape, {normalize(builder, input)},
                               ReshapeAttributes{Shape{rows, features}});
  value = add_linear(builder, value, parameters[0], parameters[1]);
  value = builder.node(OpKind::activation, {value}, ActivationAttributes{.kind = p.activation});
  value = add_linear(builder, value, parameters[2], parameters[3]);
  finish_step(builder, input, value, parameters, p.smoothing);
  builder.step().valid_rows = rows - p.spare;
  cases.push_back(builder.done());
}

// A whole training step of the small convolutional network: two convolutions with ReLU and 2x2 max
// pooling, two dense layers.
struct SmallCnn {
  std::string name;
  Shape images;
  std::int64_t kernel, filters1, filters2, hidden, classes;
  std::int64_t spare = 0;
};

void add_small_cnn_step(std::vector<OpCase>& cases, const SmallCnn& p) {
  CaseBuilder builder("pattern.small_cnn_step_" + p.name);
  const StepInput input = add_pixels(builder, p.images);
  const auto pooled = [&](std::int64_t size) { return (size - p.kernel + 1) / 2; };
  const std::int64_t features =
      p.filters2 * pooled(pooled(p.images[2])) * pooled(pooled(p.images[3]));
  const std::vector<ValueId> parameters = {
      builder.parameter({p.filters1, 1, p.kernel, p.kernel}),
      builder.parameter({p.filters1}),
      builder.parameter({p.filters2, p.filters1, p.kernel, p.kernel}),
      builder.parameter({p.filters2}),
      builder.parameter({p.hidden, features}),
      builder.parameter({p.hidden}),
      builder.parameter({p.classes, p.hidden}),
      builder.parameter({p.classes})};
  ValueId value = normalize(builder, input);
  for (std::size_t i = 0; i < 4; i += 2) {
    value = builder.node(OpKind::conv2d, {value, parameters[i]},
                         Conv2dAttributes(kernel(p.kernel, p.kernel)));
    value = builder.node(OpKind::bias, {value, parameters[i + 1]});
    value = builder.node(OpKind::activation, {value}, kRelu);
    value = builder.node(OpKind::pool, {value}, PoolAttributes(max_window(2, 2).stride(2)));
  }
  value = builder.node(OpKind::reshape, {value}, ReshapeAttributes{Shape{p.images[0], features}});
  value = add_linear(builder, value, parameters[4], parameters[5]);
  value = builder.node(OpKind::activation, {value}, kRelu);
  value = add_linear(builder, value, parameters[6], parameters[7]);
  finish_step(builder, input, value, parameters);
  builder.step().valid_rows = p.images[0] - p.spare;
  cases.push_back(builder.done());
}

void add_step_patterns(std::vector<OpCase>& cases) {
  add_mlp_step(cases, "tiny", 5, 13, 7, 3);
  add_mlp_step(cases, "mnist_batch_37", 37, 784, 10, 10);
  add_mlp_step(cases, "wide", 9, 130, 61, 29);
  add_pixel_mlp_step(cases, {"odd", {5, 1, 3, 7}, 7, 3, ActivationKind::tanh, 1, 0.1});
  add_pixel_mlp_step(cases, {"small", {70, 1, 4, 8}, 3, 17, ActivationKind::leaky_relu});
  add_pixel_mlp_step(cases, {"mnist_batch_150", {150, 1, 28, 28}, 10, 10, ActivationKind::relu, 9});
  // More tiles of rows, or groups of samples, than a GPU computes at once.
  add_pixel_mlp_step(cases, {"many_rows", {40000, 1, 4, 4}, 4, 3, ActivationKind::sigmoid, 77});
  add_small_cnn_step(cases, {"many_samples", {1203, 1, 12, 12}, 3, 3, 5, 7, 4, 5});
  add_small_cnn_step(cases, {"small", {5, 1, 12, 12}, 3, 3, 5, 7, 4, 1});
  add_small_cnn_step(cases, {"kernel_5", {3, 1, 19, 24}, 5, 5, 6, 19, 3});
  add_small_cnn_step(cases, {"mnist_batch_9", {9, 1, 28, 28}, 3, 8, 16, 128, 10, 2});
}

}  // namespace

void add_pattern_cases(std::vector<OpCase>& cases) {
  for (const ConvBlock& block : conv_blocks()) {
    add_conv_forward(cases, block);
    for (const bool pooled : {false, true}) {
      for (const bool data : {false, true}) add_conv_backward(cases, block, pooled, data);
    }
  }
  add_linear_patterns(cases);
  add_norm_patterns(cases);
  add_short_chains(cases);
  add_norm_chains(cases);
  add_backward_joins(cases);
  add_update_patterns(cases);
  add_join_patterns(cases);
  add_step_patterns(cases);
}

}  // namespace ridgeline::testing
