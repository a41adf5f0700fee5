#include "onnx/view.h"

#include <gtest/gtest.h>

namespace ridgeline::onnx {
namespace {

constexpr std::size_t kRank5[] = {0, 2, 1, 3, 4};

TEST(OnnxView, AReshapeThereAndBackIsTheValueItself) {
  const View image(Shape{2, 12, 5, 7});
  const View cut = *image.reshaped({2, 3, 4, 5, 7});
  EXPECT_TRUE(cut.is_in_order());
  EXPECT_EQ(*cut.reshaped({2, 12, 5, 7}), image);
  EXPECT_EQ(cut.reshaped({2, 12 * 5 * 7})->dims(), (Dims{2, 420}));
  EXPECT_TRUE(cut.reshaped({2, 420})->is_in_order());
}

TEST(OnnxView, AChannelShuffleIsToldByItsGroups) {
  const View image(Shape{2, 12, 5, 7});
  const View dealt = *image.reshaped({2, 3, 4, 5, 7})->transposed(kRank5).reshaped({2, 12, 5, 7});
  EXPECT_EQ(dealt.shuffled(), 3);
  EXPECT_FALSE(dealt.is_in_order());
  // The same once more with the other number of groups leads back.
  const View back = *dealt.reshaped({2, 4, 3, 5, 7})->transposed(kRank5).reshaped({2, 12, 5, 7});
  EXPECT_EQ(back, image);
}

TEST(OnnxView, ATransposedImageIsNoShuffle) {
  const View image(Shape{2, 12, 5, 7});
  static constexpr std::size_t kTurned[] = {0, 1, 3, 2};
  EXPECT_EQ(image.transposed(kTurned).shuffled(), std::nullopt);
  EXPECT_FALSE(image.transposed(kTurned).is_in_order());
}

TEST(OnnxView, ChannelsAreFoundWhereTheyAre) {
  const Shape shape{2, 12, 5, 7};
  EXPECT_EQ(View(shape).channels(), 1U);
  EXPECT_EQ(View::channels_last(shape).channels(), 3U);
  EXPECT_EQ(View(shape).reshaped({2, 3, 4, 5, 7})->channels(), std::nullopt);
  EXPECT_EQ(View(Shape{2, 1, 5, 7}).channels(), 1U);
  EXPECT_EQ(View::channels_last(Shape{2, 1, 5, 7}).channels(), 3U);
  EXPECT_EQ(View::channels_last(shape).on(Shape{2, 30, 5, 7}).dims(), (Dims{2, 5, 7, 30}));
}

TEST(OnnxView, AxesOfSizeOneComeAndGo) {
  const View pooled(Shape{2, 12, 1, 1});
  EXPECT_EQ(pooled.reshaped({2, 12})->dims(), (Dims{2, 12}));
  EXPECT_TRUE(pooled.reshaped({2, 1, 12})->is_in_order());
  EXPECT_EQ(*pooled.reshaped({2, 12})->reshaped({2, 12, 1, 1}), pooled);
}

TEST(OnnxView, GroupsOfChannels) {
  const View image(Shape{2, 12, 5, 7});
  EXPECT_EQ(image.reshaped({2, 4, 105})->grouped(), 4);
  EXPECT_EQ(image.reshaped({2, 4, 3, 35})->grouped(), std::nullopt);
  EXPECT_EQ(image.reshaped({2, 60, 7})->grouped(), std::nullopt);
}

TEST(OnnxView, ACutThatDividesNothingIsNone) {
  EXPECT_EQ(View(Shape{2, 6, 5, 5}).reshaped({2, 4, 75 / 2, 1}), std::nullopt);
  EXPECT_EQ(View::channels_last(Shape{2, 6, 5, 5}).reshaped({2, 15, 10}), std::nullopt);
}

}  // namespace
}  // namespace ridgeline::onnx
