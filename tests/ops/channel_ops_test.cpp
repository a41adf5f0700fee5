// Numbers of the ops that norm, scale, move and resample channels and pixels, against values worked
// out by hand from PyTorch's definitions.

#include <gtest/gtest.h>

#include <cmath>

#include "base/error.h"
#include "graph/autodiff.h"
#include "support/op_values.h"

namespace ridgeline::testing {
namespace {

TEST(Multiply, BroadcastsOverPixelsAndOverSamples) {
  const Given a = {{2, 2, 1, 2}, {1, 2, 3, 4, 5, 6, 7, 8}};
  expect_near(run(OpKind::multiply, {}, {a, {{2, 2, 1, 1}, {1, 10, 100, 1000}}})[0],
              {1, 2, 30, 40, 500, 600, 7000, 8000});
  expect_near(run(OpKind::multiply, {}, {a, {{2}, {1, 10}}})[0], {1, 2, 30, 40, 5, 6, 70, 80});
  expect_near(run(OpKind::multiply, {}, {a, a})[0], {1, 4, 9, 16, 25, 36, 49, 64});
}

TEST(Multiply, GradientsSumOverWhatAFactorServes) {
  const Given diff = {{2, 2, 1, 2}, {1, 1, 1, 1, 1, 1, 1, 2}};
  const Given a = {{2, 2, 1, 2}, {1, 2, 3, 4, 5, 6, 7, 8}};
  expect_near(run(OpKind::multiply_backward, MultiplyAttributes{Broadcast::image}, {diff, a})[0],
              {3, 7, 11, 23});
  expect_near(run(OpKind::multiply_backward, MultiplyAttributes{Broadcast::channel}, {diff, a})[0],
              {14, 30});
}

TEST(Multiply, RefusesOtherShapes) {
  EXPECT_THROW((void)broadcast_of({2, 3, 4, 4}, {2, 3, 4, 1}), Error);
  EXPECT_THROW((void)broadcast_of({2, 3, 4, 4}, {1, 3, 1, 1}), Error);
  EXPECT_THROW((void)broadcast_of({2, 3}, {2}), Error);
}

TEST(LayerNorm, NormsTheChannelsOfEachPixel) {
  // Two pixels of two channels: (1, 3) and (5, 5).
  const auto result = run(OpKind::layer_norm, LayerNormAttributes{.epsilon = 3.0},
                          {{{1, 2, 1, 2}, {1, 5, 3, 5}}, {{2}, {10, 100}}, {{2}, {0, 1}}});
  expect_near(result[0], {-5, 0, 51, 1});
  expect_near(result[1], {2, 5});
  expect_near(result[2], {0.5, 1 / std::sqrt(3.0)});
}

TEST(LayerNorm, GroupsNormWholeImages) {
  const auto result =
      run(OpKind::layer_norm, LayerNormAttributes{.groups = 2, .epsilon = 0.0},
          {{{1, 4, 1, 1}, {1, 3, 10, 30}}, {{4}, {1, 1, 1, 2}}, {{4}, {0, 0, 0, 0}}});
  expect_near(result[0], {-1, 1, -1, 2});
  expect_near(result[1], {2, 20});
  expect_near(result[2], {1, 0.1});
}

TEST(Shuffle, TransposesTheGroups) {
  const Given src = {{1, 6, 1, 1}, {0, 1, 2, 3, 4, 5}};
  const auto dst = run(OpKind::shuffle, ShuffleAttributes{2}, {src});
  expect_near(dst[0], {0, 3, 1, 4, 2, 5});
  expect_near(run(OpKind::shuffle, ShuffleAttributes{3}, {{{1, 6, 1, 1}, dst[0]}})[0], src.numbers);
}

TEST(Split, GivesTheChannelsInOrder) {
  const auto parts = run(OpKind::split, SplitAttributes{{1, 2}}, {{{2, 3}, {1, 2, 3, 4, 5, 6}}});
  expect_near(parts[0], {1, 4});
  expect_near(parts[1], {2, 3, 5, 6});
}

// A part that nothing uses has no gradient; the other's must come back at its own channels.
TEST(Split, APartWithoutGradientCountsAsZeros) {
  Graph graph;
  const ValueId src = graph.add_value("src", {{1, 3}, DType::f64}, Role::parameter);
  const ValueId seed = graph.add_value("seed", {{1, 2}, DType::f64}, Role::input);
  const auto parts =
      graph.add_node(OpKind::split, SplitAttributes{{1, 2}}, {src}, "", Phase::forward);
  const Seed end{parts[1], seed};
  const auto gradients = differentiate(graph, {&end, 1}, std::vector{src});
  ASSERT_NE(gradients[0], kNoValue);
  HostValues values(graph.values().size());
  values[0] = HostValue(graph.value(src).spec);
  values[1] = HostValue(graph.value(seed).spec);
  values[1].set(0, 7);
  values[1].set(1, 8);
  run_reference(graph, values, {});
  const HostValue& gradient = values[static_cast<std::size_t>(gradients[0])];
  expect_near({gradient.at(0), gradient.at(1), gradient.at(2)}, {0, 7, 8});
}

TEST(Pad, PutsZerosAroundAndCutsOff) {
  const Given src = {{1, 1, 2, 2}, {1, 2, 3, 4}};
  expect_near(run(OpKind::pad, PadAttributes{.top = 1, .right = 1}, {src})[0],
              {0, 0, 0, 1, 2, 0, 3, 4, 0});
  expect_near(run(OpKind::pad, PadAttributes{.left = -1, .bottom = -1}, {src})[0], {2});
  expect_near(
      run(OpKind::pad, PadAttributes{.channels_before = 1, .channels_behind = -1}, {src})[0],
      {0, 0, 0, 0});
}

TEST(Resize, TakesTheNearestPixelBelow) {
  const auto larger = run(OpKind::resize, ResizeAttributes{1, 5}, {{{1, 1, 1, 3}, {1, 2, 3}}});
  expect_near(larger[0], {1, 1, 2, 2, 3});
  const auto back =
      run(OpKind::resize_backward, ResizeAttributes{1, 5, 1, 3}, {{{1, 1, 1, 5}, {1, 2, 3, 4, 5}}});
  expect_near(back[0], {3, 7, 5});
  const auto smaller =
      run(OpKind::resize, ResizeAttributes{1, 2}, {{{1, 1, 1, 5}, {1, 2, 3, 4, 5}}});
  expect_near(smaller[0], {1, 3});
}

// torch.nn.AdaptiveAvgPool2d((1, 2)) of five pixels: [0, 3) and [2, 5).
TEST(AdaptivePool, WindowsShareThePixelInTheMiddle) {
  const PoolAttributes two{
      .kind = PoolKind::adaptive_average, .src_h = 1, .src_w = 5, .dst_h = 1, .dst_w = 2};
  expect_near(run(OpKind::pool, two, {{{1, 1, 1, 5}, {1, 2, 6, 4, 5}}})[0], {3, 5});
  expect_near(run(OpKind::pool_backward, two, {{{1, 1, 1, 2}, {3, 6}}})[0], {1, 1, 3, 2, 2});
}

}  // namespace
}  // namespace ridgeline::testing
