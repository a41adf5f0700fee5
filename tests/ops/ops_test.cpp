// Shape rules, costs and numbers of the ops against values worked out by hand from PyTorch's
// definitions.

#include <gtest/gtest.h>

#include <cmath>
#include <limits>
#include <ostream>

#include "base/error.h"
#include "support/op_values.h"
#include "support/window.h"

namespace ridgeline::testing {
namespace {

Shape output_shape(OpKind kind, const Attributes& attributes,
                   const std::vector<TensorSpec>& inputs) {
  return op_def(kind).outputs(attributes, inputs)[0].spec.shape;
}

struct BadShape {
  std::string name;
  OpKind kind;
  Attributes attributes;
  std::vector<TensorSpec> inputs;
  std::string message;  // a part of what the error says
};

std::vector<BadShape> bad_shapes() {
  const auto f32 = [](Shape shape) { return TensorSpec{shape, DType::f32}; };
  const auto i32 = [](Shape shape) { return TensorSpec{shape, DType::i32}; };
  const auto u8 = [](Shape shape) { return TensorSpec{shape, DType::u8}; };
  const Conv2dAttributes conv3 = kernel(3, 3);
  const PoolAttributes pool3 = max_window(3, 3);
  const BatchNormAttributes bn;
  return {
      {"linear_depth", OpKind::linear, {}, {f32({2, 3}), f32({4, 5})}, "2x3"},
      {"linear_rank", OpKind::linear, {}, {f32({2, 3, 1, 1}), f32({4, 3})}, "2x3x1x1"},
      {"linear_backward_data", OpKind::linear_backward_data, {}, {f32({2, 3}), f32({4, 5})}, "2x3"},
      {"linear_backward_weights",
       OpKind::linear_backward_weights,
       {},
       {f32({2, 3}), f32({4, 5})},
       "4x5"},
      {"conv_channels",
       OpKind::conv2d,
       conv3,
       {f32({1, 4, 8, 8}), f32({2, 3, 3, 3})},
       "(N, 3, H, W)"},
      {"conv_groups",
       OpKind::conv2d,
       Conv2dAttributes(kernel(3, 3).groups(2)),
       {f32({1, 4, 8, 8}), f32({3, 2, 3, 3})},
       "multiple of groups 2"},
      {"conv_kernel_differs",
       OpKind::conv2d,
       conv3,
       {f32({1, 4, 8, 8}), f32({2, 4, 5, 5})},
       "2x4x5x5"},
      {"conv_kernel_beyond_image",
       OpKind::conv2d,
       conv3,
       {f32({1, 4, 2, 8}), f32({2, 4, 3, 3})},
       "larger than the padded image 2x8"},
      {"conv_stride_0",
       OpKind::conv2d,
       Conv2dAttributes(kernel(3, 3).stride(0)),
       {f32({1, 4, 8, 8}), f32({2, 4, 3, 3})},
       "stride 0x0"},
      {"conv_negative_padding",
       OpKind::conv2d,
       Conv2dAttributes(kernel(3, 3).pad(-1)),
       {f32({1, 4, 8, 8}), f32({2, 4, 3, 3})},
       "must not be negative"},
      {"conv_backward_data",
       OpKind::conv2d_backward_data,
       Conv2dAttributes(kernel(3, 3).src(8, 8)),
       {f32({1, 2, 5, 6}), f32({2, 4, 3, 3})},
       "must be 1x2x6x6"},
      {"conv_backward_weights",
       OpKind::conv2d_backward_weights,
       conv3,
       {f32({1, 4, 8, 8}), f32({1, 2, 8, 8})},
       "must be 1x2x6x6"},
      {"bias_channels", OpKind::bias, {}, {f32({2, 3}), f32({4})}, "bias 4"},
      {"bias_backward_rank", OpKind::bias_backward, {}, {f32({4})}, "no channels"},
      {"activation_backward",
       OpKind::activation_backward,
       ActivationAttributes{},
       {f32({2, 3}), f32({3, 2})},
       "3x2"},
      {"activation_slope",
       OpKind::activation,
       ActivationAttributes{ActivationKind::leaky_relu, -0.5},
       {f32({2, 3})},
       "-0.5"},
      {"pool_rank", OpKind::pool, pool3, {f32({2, 3})}, "(N, C, H, W)"},
      {"pool_beyond_image",
       OpKind::pool,
       pool3,
       {f32({1, 1, 2, 4})},
       "larger than the padded image"},
      {"pool_window_in_padding",
       OpKind::pool,
       PoolAttributes(max_window(2, 2).pad(2)),
       {f32({1, 1, 4, 4})},
       "use less padding"},
      {"pool_stride_0",
       OpKind::pool,
       PoolAttributes(max_window(2, 2).stride(0)),
       {f32({1, 1, 4, 4})},
       "stride 0"},
      {"pool_backward",
       OpKind::pool_backward,
       PoolAttributes(average_window(2, 2).stride(2).src(4, 4)),
       {f32({1, 1, 3, 3})},
       "must be 1x1x2x2"},
      {"pool_backward_positions",
       OpKind::pool_backward,
       PoolAttributes(max_window(2, 2).stride(2).src(4, 4)),
       {f32({1, 1, 2, 2}), i32({1, 1, 2, 2})},
       "u8"},
      {"bn_one_value", OpKind::bn_statistics, bn, {f32({1, 5, 1, 1})}, "one value per channel"},
      {"bn_update_one_value",
       OpKind::bn_update_running,
       bn,
       {f32({5}), f32({5}), f32({5}), f32({5})},
       "at least 2"},
      {"bn_apply_channels",
       OpKind::bn_apply,
       bn,
       {f32({2, 5}), f32({5}), f32({5}), f32({4}), f32({5})},
       "input 3"},
      {"bn_backward_shapes",
       OpKind::bn_backward_reduce,
       bn,
       {f32({2, 5}), f32({3, 5}), f32({5}), f32({5})},
       "same shape"},
      {"add", OpKind::add, {}, {f32({2, 3}), f32({3, 2})}, "2x3"},
      {"concat_images",
       OpKind::concat,
       {},
       {f32({2, 3, 4, 4}), f32({2, 3, 4, 5})},
       "channels only"},
      {"concat_nothing", OpKind::concat, {}, {}, "at least one"},
      {"slice", OpKind::slice, SliceAttributes{3, 4}, {f32({2, 6})}, "[3, 7)"},
      {"reshape", OpKind::reshape, ReshapeAttributes{{2, 7}}, {f32({3, 5})}, "15"},
      {"dropout", OpKind::dropout, DropoutAttributes{.probability = 1.5}, {f32({3, 5})}, "1.5"},
      {"loss_rows",
       OpKind::softmax_cross_entropy,
       LossAttributes{},
       {f32({3, 5}), i32({4})},
       "labels 4"},
      {"loss_label_type",
       OpKind::softmax_cross_entropy,
       LossAttributes{},
       {f32({3, 5}), u8({3})},
       "u8"},
      {"loss_smoothing",
       OpKind::softmax_cross_entropy,
       LossAttributes{.label_smoothing = 2.0},
       {f32({3, 5}), i32({3})},
       "between 0 and 1"},
      {"metrics_totals", OpKind::metrics, {}, {f32({4}), f32({}), f32({3, 5}), i32({3})}, "f64"},
      {"sgd_velocity_missing",
       OpKind::sgd,
       SgdAttributes{.momentum = 0.9},
       {f32({3}), f32({3})},
       "2 inputs where 3"},
      {"sgd_nesterov",
       OpKind::sgd,
       SgdAttributes{.nesterov = true},
       {f32({3}), f32({3})},
       "nesterov"},
      {"adam_shapes",
       OpKind::adam,
       AdamAttributes{},
       {f32({3}), f32({3}), f32({3}), f32({4})},
       "same shape"},
      {"adam_beta", OpKind::adam, AdamAttributes{.beta1 = 1.0}, {}, "[0, 1)"},
      {"normalize_means",
       OpKind::normalize,
       NormalizeAttributes{.mean = {0.1}, .deviation = {0.3}},
       {u8({2, 3, 4, 4})},
       "3 means"},
      {"normalize_type",
       OpKind::normalize,
       NormalizeAttributes{.mean = {0.1}, .deviation = {0.3}},
       {f32({2, 1, 4, 4})},
       "of u8"},
      {"normalize_samples",
       OpKind::normalize,
       NormalizeAttributes{.mean = {0.1}, .deviation = {0.3}, .flip = true},
       {u8({2, 1, 4, 4})},
       "sample numbers"},
  };
}

// GoogleTest prints a parameter with every failure.
void PrintTo(const BadShape& bad, std::ostream* out) { *out << bad.name; }

class BadShapes : public ::testing::TestWithParam<BadShape> {};

TEST_P(BadShapes, AreBadInputAndSayWhatIsWrong) {
  const BadShape& bad = GetParam();
  try {
    const auto outputs = op_def(bad.kind).outputs(bad.attributes, bad.inputs);
    FAIL() << "accepted, output " << outputs[0].spec.shape.text();
  } catch (const Error& error) {
    EXPECT_EQ(error.kind(), ErrorKind::bad_input);
    EXPECT_NE(std::string(error.what()).find(bad.message), std::string::npos) << error.what();
    EXPECT_TRUE(std::string(error.what()).starts_with(name_of(bad.kind))) << error.what();
  }
}

INSTANTIATE_TEST_SUITE_P(Ops, BadShapes, ::testing::ValuesIn(bad_shapes()),
                         [](const auto& p) { return p.param.name; });

TEST(OpCost, ConvolutionOfMnistCnn) {
  const std::vector<TensorSpec> inputs = {{{512, 1, 28, 28}}, {{8, 1, 3, 3}}};
  const Cost cost = cost_of(OpKind::conv2d, Conv2dAttributes(kernel(3, 3)), inputs);
  EXPECT_EQ(cost.macs, 512LL * 8 * 26 * 26 * 9);
  EXPECT_EQ(cost.flops, 2 * cost.macs);
  EXPECT_EQ(cost.bytes_read, 4LL * (512 * 784 + 72));
  EXPECT_EQ(cost.bytes_written, 4LL * 512 * 8 * 26 * 26);
}

TEST(OpCost, BothGradientsOfAConvolutionCostAsMuchAsItself) {
  const Conv2dAttributes conv = kernel(3, 3).stride(2).pad(1).groups(2).src(9, 9);
  const TensorSpec src = {{2, 6, 9, 9}}, weights = {{4, 3, 3, 3}}, dst = {{2, 4, 5, 5}};
  const std::int64_t macs = 2LL * 4 * 5 * 5 * 3 * 9;
  EXPECT_EQ(cost_of(OpKind::conv2d, conv, std::vector{src, weights}).macs, macs);
  EXPECT_EQ(cost_of(OpKind::conv2d_backward_data, conv, std::vector{dst, weights}).macs, macs);
  EXPECT_EQ(cost_of(OpKind::conv2d_backward_weights, conv, std::vector{src, dst}).macs, macs);
}

TEST(OpCost, DepthwiseConvolutionCountsOneChannelEach) {
  const std::vector<TensorSpec> inputs = {{{2, 8, 4, 4}}, {{8, 1, 3, 3}}};
  const Conv2dAttributes conv = kernel(3, 3).pad(1).groups(8);
  EXPECT_EQ(cost_of(OpKind::conv2d, conv, inputs).macs, 2LL * 8 * 16 * 9);
}

TEST(OpCost, LinearAndItsGradients) {
  const TensorSpec src = {{512, 400}}, weights = {{128, 400}}, dst = {{512, 128}};
  for (const Cost& cost : {cost_of(OpKind::linear, {}, std::vector{src, weights}),
                           cost_of(OpKind::linear_backward_data, {}, std::vector{dst, weights}),
                           cost_of(OpKind::linear_backward_weights, {}, std::vector{src, dst})}) {
    EXPECT_EQ(cost.macs, 512LL * 400 * 128);
    EXPECT_EQ(cost.flops, 2 * cost.macs);
    EXPECT_EQ(cost.bytes_read + cost.bytes_written, src.bytes() + weights.bytes() + dst.bytes());
  }
}

TEST(OpCost, OtherOpsCountEachElement) {
  const TensorSpec image = {{2, 3, 8, 8}};
  const std::int64_t elements = 2LL * 3 * 8 * 8;
  const auto flops = [](OpKind kind, const Attributes& attributes,
                        const std::vector<TensorSpec>& inputs) {
    const Cost cost = cost_of(kind, attributes, inputs);
    EXPECT_EQ(cost.macs, 0) << name_of(kind);
    return cost.flops;
  };
  const TensorSpec channels = {{3}};
  EXPECT_EQ(flops(OpKind::bias, {}, {image, channels}), elements);
  EXPECT_EQ(flops(OpKind::bias_backward, {}, {image}), elements);
  EXPECT_EQ(flops(OpKind::activation, ActivationAttributes{}, {image}), elements);
  EXPECT_EQ(flops(OpKind::add, {}, {image, image}), elements);
  EXPECT_EQ(flops(OpKind::reshape, ReshapeAttributes{{2, 192}}, {image}), 0);
  EXPECT_EQ(flops(OpKind::concat, {}, {image, image}), 0);
  EXPECT_EQ(flops(OpKind::pool, PoolAttributes(max_window(2, 2).stride(2)), {image}), elements);
  EXPECT_EQ(flops(OpKind::pool, PoolAttributes(average_window(8, 8)), {image}), 6 * 65);
  EXPECT_EQ(flops(OpKind::bn_statistics, BatchNormAttributes{}, {image}), 4 * elements);
  EXPECT_EQ(flops(OpKind::sgd, SgdAttributes{.momentum = 0.9}, {image, image, image}),
            5 * elements);
  EXPECT_EQ(flops(OpKind::adam, AdamAttributes{}, {image, image, image, image}), 14 * elements);
}

TEST(OpText, TellsAttributesApart) {
  EXPECT_EQ(text_of(OpKind::conv2d, Conv2dAttributes(kernel(3, 5).stride(2, 1).pad(0, 1, 2, 3))),
            "k3x5 s2x1 p0,1,2,3 d1x1 g1");
  EXPECT_EQ(text_of(OpKind::activation, ActivationAttributes{ActivationKind::leaky_relu, 0.2}),
            "leaky_relu 0.2");
  EXPECT_NE(text_of(OpKind::pool, PoolAttributes(average_window(2, 2))),
            text_of(OpKind::pool, PoolAttributes(average_window(2, 2).exclude_pad())));
  EXPECT_NE(text_of(OpKind::pool, PoolAttributes(max_window(2, 2))),
            text_of(OpKind::pool, PoolAttributes(max_window(2, 2).ceil())));
}

TEST(Conv2d, IsCrossCorrelation) {
  const auto dst = run(OpKind::conv2d, Conv2dAttributes(kernel(2, 2)),
                       {{{1, 1, 3, 3}, {1, 2, 3, 4, 5, 6, 7, 8, 9}}, {{1, 1, 2, 2}, {1, 2, 3, 4}}});
  expect_near(dst[0], {37, 47, 67, 77});
}

TEST(Conv2d, PadsWithZerosOnTheSidesAsked) {
  const auto dst = run(OpKind::conv2d, Conv2dAttributes(kernel(1, 2).pad(0, 1, 1, 0)),
                       {{{1, 1, 1, 2}, {5, 7}}, {{1, 1, 1, 2}, {1, 10}}});
  expect_near(dst[0], {50, 75, 0, 0});
}

TEST(Pool, OutputSizesFollowPyTorch) {
  const auto height = [](std::int64_t size, const PoolAttributes& attributes) {
    return output_shape(OpKind::pool, attributes, {{{1, 1, size, size}}})[2];
  };
  EXPECT_EQ(height(5, max_window(2, 2).stride(2)), 2);
  EXPECT_EQ(height(5, max_window(2, 2).stride(2).ceil()), 3);
  // A last window that would start beyond the image is dropped.
  EXPECT_EQ(height(2, max_window(1, 1).stride(3).ceil()), 1);
  EXPECT_EQ(height(4, max_window(2, 2).stride(3).pad(1).ceil()), 2);
  EXPECT_EQ(height(7, max_window(3, 3).stride(2).pad(1)), 4);
  EXPECT_EQ(height(7, max_window(3, 3).dilation(2, 2)), 3);
}

TEST(Pool, MaximumIgnoresPaddingAndNamesTheFirstOfEquals) {
  const auto dst = run(OpKind::pool, PoolAttributes(max_window(2, 2).stride(2).pad(1)),
                       {{{1, 1, 2, 2}, {-1, -2, -2, -2}}});
  expect_near(dst[0], {-1, -2, -2, -2});
  expect_near(dst[1], {3, 2, 1, 0});
  const auto equal =
      run(OpKind::pool, PoolAttributes(max_window(2, 2)), {{{1, 1, 2, 2}, {4, 4, 4, 4}}});
  expect_near(equal[1], {0});
}

TEST(Pool, NaNWinsAMaximum) {
  const auto dst =
      run(OpKind::pool, PoolAttributes(max_window(1, 3)), {{{1, 1, 1, 3}, {1, kNaN, 5}}});
  EXPECT_TRUE(std::isnan(dst[0][0]));
  EXPECT_EQ(dst[1][0], 1);
}

TEST(Pool, MinusInfinityHasAPosition) {
  const double inf = std::numeric_limits<double>::infinity();
  const auto dst = run(OpKind::pool, PoolAttributes(max_window(1, 2).pad(0, 1, 0, 0)),
                       {{{1, 1, 1, 2}, {-inf, -inf}}});
  EXPECT_EQ(dst[0], (Numbers{-inf, -inf}));
  EXPECT_EQ(dst[1], (Numbers{1, 0}));
}

TEST(Pool, AverageDividesByWhatPyTorchCounts) {
  const std::vector<Given> src = {{{1, 1, 1, 3}, {3, 6, 12}}};
  const auto padded = average_window(1, 2).stride(1, 2).pad(0, 1, 0, 1);
  expect_near(run(OpKind::pool, PoolAttributes(padded), src)[0], {1.5, 9});
  expect_near(run(OpKind::pool, PoolAttributes(padded.exclude_pad()), src)[0], {3, 9});
  // ceil_mode: the last window is cut off at the end of the image, and so is its divisor.
  const auto cut = average_window(1, 2).stride(1, 2).ceil();
  expect_near(run(OpKind::pool, PoolAttributes(cut), src)[0], {4.5, 12});
  // Padding on the right counts, what lies beyond it does not.
  const auto beyond = average_window(1, 3).stride(1, 2).pad(0, 1, 0, 1).ceil();
  expect_near(run(OpKind::pool, PoolAttributes(beyond), src)[0], {3, 6});
}

TEST(Pool, GradientsOfOverlappingWindowsAddUp) {
  const PoolAttributes window = max_window(1, 2).src(1, 3);
  const auto diff = run(OpKind::pool_backward, window,
                        {{{1, 1, 1, 2}, {10, 1}}, {{1, 1, 1, 2}, {1, 0}, DType::u8}});
  expect_near(diff[0], {0, 11, 0});
}

TEST(Activation, ValuesAndNaN) {
  const auto at = [](ActivationKind kind, double x) {
    return run(OpKind::activation, ActivationAttributes{kind, 0.1}, {{{1, 1}, {x}}})[0][0];
  };
  EXPECT_EQ(at(ActivationKind::relu, -2), 0);
  EXPECT_EQ(at(ActivationKind::relu6, 7), 6);
  EXPECT_DOUBLE_EQ(at(ActivationKind::leaky_relu, -2), -0.2);
  EXPECT_DOUBLE_EQ(at(ActivationKind::sigmoid, 0), 0.5);
  EXPECT_DOUBLE_EQ(at(ActivationKind::tanh, 1), std::tanh(1.0));
  EXPECT_DOUBLE_EQ(at(ActivationKind::silu, 1), 1 / (1 + std::exp(-1.0)));
  EXPECT_DOUBLE_EQ(at(ActivationKind::hard_sigmoid, 1.5), 0.75);
  EXPECT_EQ(at(ActivationKind::hard_sigmoid, -4), 0);
  EXPECT_EQ(at(ActivationKind::hard_swish, 5), 5);
  EXPECT_DOUBLE_EQ(at(ActivationKind::hard_swish, -1), -1.0 / 3);
  // torch.nn.functional.gelu(torch.tensor(1.0, dtype=torch.float64)), and with approximate="tanh".
  EXPECT_DOUBLE_EQ(at(ActivationKind::gelu, 1), 0.84134474606854293);
  EXPECT_NEAR(at(ActivationKind::gelu_tanh, 1), 0.84119199060827676, 1e-14);
  for (const ActivationKind kind :
       {ActivationKind::relu, ActivationKind::relu6, ActivationKind::leaky_relu,
        ActivationKind::silu, ActivationKind::hard_sigmoid, ActivationKind::hard_swish,
        ActivationKind::gelu, ActivationKind::gelu_tanh}) {
    EXPECT_TRUE(std::isnan(at(kind, kNaN))) << name_of(kind);
  }
  // Far out nothing overflows.
  EXPECT_EQ(at(ActivationKind::sigmoid, -1000), 0);
  EXPECT_EQ(at(ActivationKind::silu, 1000), 1000);
  EXPECT_EQ(at(ActivationKind::gelu_tanh, 1000), 1000);
  EXPECT_EQ(at(ActivationKind::gelu, -1000), 0);
}

TEST(Activation, ReluGradientIsZeroAtZeroEvenForInfiniteGradients) {
  const double inf = std::numeric_limits<double>::infinity();
  const auto diff = run(OpKind::activation_backward, ActivationAttributes{},
                        {{{1, 3}, {inf, 2, 3}}, {{1, 3}, {0, 0, 5}}});
  EXPECT_EQ(diff[0], (Numbers{0, 0, 3}));
}

TEST(BatchNorm, StatisticsAreBiasedAndRunningVarianceIsNot) {
  const auto statistics = run(OpKind::bn_statistics, BatchNormAttributes{}, {{{2, 1}, {1, 3}}});
  expect_near(statistics[0], {2});
  expect_near(statistics[1], {1});
  const std::vector<Given> inputs = {{{1}, {0}}, {{1}, {1}}, {{1}, {2}}, {{1}, {1}}};
  const BatchNormAttributes attributes{.count = 2};
  const auto running = run(OpKind::bn_update_running, attributes, inputs);
  expect_near(running[0], {0.2});
  expect_near(running[1], {0.9 + 0.1 * 2});
  const auto skipped = run(OpKind::bn_update_running, attributes, inputs, {.overflow = 1});
  expect_near(skipped[0], {0});
  expect_near(skipped[1], {1});
}

TEST(BatchNorm, ApplyPutsEpsilonUnderTheRoot) {
  const auto dst = run(OpKind::bn_apply, BatchNormAttributes{.epsilon = 3.0},
                       {{{2, 1}, {1, 3}}, {{1}, {2}}, {{1}, {1}}, {{1}, {10}}, {{1}, {5}}});
  expect_near(dst[0], {0, 10});
}

TEST(Concat, KeepsTheOrderOfChannels) {
  const auto dst = run(OpKind::concat, {}, {{{2, 1}, {1, 2}}, {{2, 2}, {3, 4, 5, 6}}});
  expect_near(dst[0], {1, 3, 4, 2, 5, 6});
  const auto slice = run(OpKind::slice, SliceAttributes{1, 2}, {{{2, 3}, dst[0]}});
  expect_near(slice[0], {3, 4, 5, 6});
}

TEST(Dropout, MaskDependsOnSeedStepLayerAndIndexOnly) {
  const DropoutAttributes quarter = {.probability = 0.25, .layer = 1};
  const DropoutAttributes other_layer = {.probability = 0.25, .layer = 2};
  int dropped = 0, same_step = 0, same_layer = 0, same_seed = 0;
  constexpr int kCount = 10000;
  for (int i = 0; i < kCount; ++i) {
    const float factor = dropout_factor(quarter, 1, 1, i);
    EXPECT_TRUE(factor == 0.0F || factor == 1.0F / 0.75F);
    dropped += factor == 0.0F ? 1 : 0;
    same_step += factor == dropout_factor(quarter, 1, 2, i) ? 1 : 0;
    same_layer += factor == dropout_factor(other_layer, 1, 1, i) ? 1 : 0;
    same_seed += factor == dropout_factor(quarter, 2, 1, i) ? 1 : 0;
  }
  // Independent masks agree with probability 0.25² + 0.75²; five deviations either side.
  EXPECT_NEAR(dropped, 0.25 * kCount, 220);
  for (const int same : {same_step, same_layer, same_seed}) EXPECT_NEAR(same, 0.625 * kCount, 245);
}

TEST(Dropout, PerSampleDropsAllOrNothingOfASample) {
  const DropoutAttributes attributes = {.probability = 0.5, .layer = 3, .per_sample = true};
  constexpr std::int64_t kSamples = 40, kChannels = 3;
  const auto dst = run(OpKind::dropout, attributes,
                       {{{kSamples, kChannels}, Numbers(kSamples * kChannels, 1.0)}}, {.seed = 5});
  int dropped = 0;
  for (std::int64_t n = 0; n < kSamples; ++n) {
    const double factor = dropout_factor(attributes, 5, 0, n);
    dropped += factor == 0.0 ? 1 : 0;
    for (std::int64_t c = 0; c < kChannels; ++c) {
      EXPECT_EQ(dst[0][static_cast<std::size_t>(n * kChannels + c)], factor) << n;
    }
  }
  EXPECT_GT(dropped, 0);
  EXPECT_LT(dropped, kSamples);
}

TEST(Dropout, ProbabilityOneDropsEverything) {
  const auto dst =
      run(OpKind::dropout, DropoutAttributes{.probability = 1.0}, {{{1, 3}, {1, 2, 3}}});
  expect_near(dst[0], {0, 0, 0});
}

TEST(SoftmaxCrossEntropy, LossAndProbabilities) {
  const StepState state = {.valid_rows = 1};
  const std::vector<Given> inputs = {{{1, 2}, {0, std::log(3.0)}}, {{1}, {1}, DType::i32}};
  const auto plain = run(OpKind::softmax_cross_entropy, LossAttributes{}, inputs, state);
  expect_near(plain[0], {-std::log(0.75)});
  expect_near(plain[1], {0.25, 0.75});
  const auto smooth = run(OpKind::softmax_cross_entropy, LossAttributes{0.2}, inputs, state);
  expect_near(smooth[0], {-0.8 * std::log(0.75) - 0.1 * (std::log(0.25) + std::log(0.75))});
}

TEST(SoftmaxCrossEntropy, TheWeightMultipliesLossAndGradient) {
  const StepState state = {.valid_rows = 1, .loss_scale = 2.0};
  const Given labels = {{1}, {1}, DType::i32};
  const LossAttributes weighted{.weight = 0.3};
  const auto loss =
      run(OpKind::softmax_cross_entropy, weighted, {{{1, 2}, {0, std::log(3.0)}}, labels}, state);
  expect_near(loss[0], {-0.3 * std::log(0.75)});
  expect_near(loss[1], {0.25, 0.75});
  const auto diff = run(OpKind::softmax_cross_entropy_backward, weighted,
                        {{{1, 2}, {0.25, 0.75}}, labels}, state);
  expect_near(diff[0], {0.3 * 2 * 0.25, -0.3 * 2 * 0.25});
}

TEST(SoftmaxCrossEntropy, LargeLogitsStayFinite) {
  const auto result = run(OpKind::softmax_cross_entropy, LossAttributes{},
                          {{{1, 2}, {1000, 0}}, {{1}, {1}, DType::i32}}, {.valid_rows = 1});
  expect_near(result[0], {1000});
  expect_near(result[1], {1, 0});
}

TEST(SoftmaxCrossEntropy, RowsBeyondTheValidOnesCountNothing) {
  const StepState state = {.valid_rows = 2, .loss_scale = 8.0};
  const Given labels = {{3}, {0, 1, 0}, DType::i32};
  const auto result = run(OpKind::softmax_cross_entropy, LossAttributes{},
                          {{{3, 2}, {0, 0, 0, 0, 50, -50}}, labels}, state);
  expect_near(result[0], {std::log(2.0)});
  const auto diff = run(OpKind::softmax_cross_entropy_backward, LossAttributes{},
                        {{{3, 2}, {0.5, 0.5, 0.25, 0.75, 0.5, 0.5}}, labels}, state);
  expect_near(diff[0], {-2, 2, 1, -1, 0, 0});
}

TEST(SoftmaxCrossEntropy, RefusesALabelOutsideTheClasses) {
  EXPECT_THROW(run(OpKind::softmax_cross_entropy, LossAttributes{},
                   {{{1, 2}, {0, 0}}, {{1}, {2}, DType::i32}}, {.valid_rows = 1}),
               Error);
}

TEST(Metrics, CountsRanksWithTiesAsArgmaxDoes) {
  const StepState state = {.valid_rows = 4};
  // Rank 0; a tie lost to the lower index; rank 5; a NaN; a row that does not count.
  const Numbers logits = {9, 1, 1, 1, 1, 1, 1,     //
                          3, 3, 0, 0, 0, 0, 0,     //
                          6, 5, 4, 3, 2, 1, 0,     //
                          0, 0, 0, 0, 0, 0, kNaN,  //
                          9, 0, 0, 0, 0, 0, 0};
  const auto totals = run(
      OpKind::metrics, {},
      {{{4}, {100, 10, 20, 30}}, {{}, {0.5}}, {{5, 7}, logits}, {{5}, {0, 1, 5, 6, 0}, DType::i32}},
      state);
  expect_near(totals[0], {102, 11, 22, 34});
}

TEST(Sgd, FollowsPyTorch) {
  const StepState state = {.learning_rate = 0.1, .gradient_scale = 4.0};
  const auto step = [&](const SgdAttributes& attributes, double velocity) {
    std::vector<Given> inputs = {{{1}, {1.0}}, {{1}, {2.0}}};  // an unscaled gradient of 0.5
    if (attributes.momentum > 0) inputs.push_back({{1}, {velocity}});
    return run(OpKind::sgd, attributes, inputs, state);
  };
  expect_near(step({}, 0)[0], {1 - 0.1 * 0.5});
  expect_near(step({.weight_decay = 0.1}, 0)[0], {1 - 0.1 * 0.6});
  const auto momentum = step({.momentum = 0.9, .weight_decay = 0.1}, 2.0);
  expect_near(momentum[1], {0.9 * 2 + 0.6});
  expect_near(momentum[0], {1 - 0.1 * 2.4});
  const auto nesterov = step({.momentum = 0.9, .weight_decay = 0.1, .nesterov = true}, 2.0);
  expect_near(nesterov[0], {1 - 0.1 * (0.6 + 0.9 * 2.4)});
}

TEST(Adam, FollowsPyTorch) {
  const auto step = [](const AdamAttributes& attributes, std::int64_t t, double m, double v) {
    return run(OpKind::adam, attributes, {{{1}, {1.0}}, {{1}, {2.0}}, {{1}, {m}}, {{1}, {v}}},
               {.learning_rate = 0.1, .optimizer_step = t});
  };
  // On the first step the corrections cancel the betas: m / c1 = g, sqrt(v / c2) = |g|.
  const auto first = step({.epsilon = 1.0}, 1, 0, 0);
  expect_near(first[0], {1 - 0.1 * 2 / (2 + 1.0)});
  expect_near(first[1], {0.2});
  expect_near(first[2], {0.004});
  // Epsilon is added to the corrected root.
  const auto second = step({.epsilon = 1.0}, 2, 0.2, 0.004);
  const double m = 0.9 * 0.2 + 0.2, v = 0.999 * 0.004 + 0.004;
  const double denominator = std::sqrt(v / (1 - 0.999 * 0.999)) + 1.0;
  expect_near(second[0], {1 - 0.1 * m / (1 - 0.81) / denominator});
  // Coupled decay goes through the moments, decoupled decay does not.
  expect_near(step({.weight_decay = 0.5}, 1, 0, 0)[1], {0.1 * 2.5});
  const auto decoupled = step({.epsilon = 1.0, .weight_decay = 0.5, .decoupled = true}, 1, 0, 0);
  expect_near(decoupled[1], {0.2});
  expect_near(decoupled[0], {1 - 0.1 * 0.5 - 0.1 * 2 / 3.0});
}

TEST(Optimizers, LeaveEverythingAsItIsOnOverflow) {
  const StepState state = {.learning_rate = 0.1, .overflow = 1};
  const auto sgd = run(OpKind::sgd, SgdAttributes{.momentum = 0.9, .weight_decay = 1},
                       {{{1}, {1}}, {{1}, {kNaN}}, {{1}, {3}}}, state);
  EXPECT_EQ(sgd, (std::vector<Numbers>{{1}, {3}}));
  const auto adam = run(OpKind::adam, AdamAttributes{.weight_decay = 1, .decoupled = true},
                        {{{1}, {1}}, {{1}, {kNaN}}, {{1}, {3}}, {{1}, {4}}}, state);
  EXPECT_EQ(adam, (std::vector<Numbers>{{1}, {3}, {4}}));
}

TEST(Normalize, ScalesAndFlips) {
  NormalizeAttributes attributes = {.mean = {0.1}, .deviation = {0.5}, .dtype = DType::f64};
  const Given pixels = {{1, 1, 1, 3}, {51, 255, 0}, DType::u8};
  expect_near(run(OpKind::normalize, attributes, {pixels})[0], {0.2, 1.8, -0.2});
  attributes.flip = true;
  std::int64_t sample = 0;
  while (!flips(0, 0, sample)) ++sample;
  const auto flipped = run(OpKind::normalize, attributes,
                           {pixels, {{1}, {static_cast<double>(sample)}, DType::i32}});
  expect_near(flipped[0], {-0.2, 1.8, 0.2});
}

TEST(Normalize, FlipsHalfOfTheSamplesAndOthersNextEpoch) {
  int flipped = 0, same = 0;
  constexpr int kCount = 10000;
  for (int sample = 0; sample < kCount; ++sample) {
    flipped += flips(7, 0, sample) ? 1 : 0;
    same += flips(7, 0, sample) == flips(7, 1, sample) ? 1 : 0;
  }
  EXPECT_NEAR(flipped, kCount / 2, 250);
  EXPECT_NEAR(same, kCount / 2, 250);
}

}  // namespace
}  // namespace ridgeline::testing
