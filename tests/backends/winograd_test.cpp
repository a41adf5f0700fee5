// Winograd's convolutions against dense ones and against sums in double, on every CPU shape: the
// rows refuse small problems, for which these kernels must be right as well.

#include <fmt/core.h>
#include <gtest/gtest.h>

#include <algorithm>
#include <cmath>
#include <memory>
#include <vector>

#include "backends/native/conv_dense.h"
#include "backends/native/conv_weights.h"
#include "backends/native/conv_winograd.h"
#include "backends/registry.h"
#include "base/parallel.h"
#include "base/philox.h"
#include "plan/plan.h"
#include "support/case_names.h"
#include "support/op_cases.h"

namespace ridgeline::native::conv {
namespace {

struct Case {
  std::int64_t images, src_channels, height, width, dst_channels;
  std::int64_t top = 1, left = 1, bottom = 1, right = 1;
};

class Numbers {
 public:
  Numbers(const Shape& shape, const Layout& layout, std::uint64_t seed)
      : floats_(static_cast<std::size_t>(shape.elements())) {
    PhiloxSequence random(seed, RandomStream::synthetic, 0);
    for (float& number : floats_) number = random.uniform() - 0.5F;
    tensor = {reinterpret_cast<std::byte*>(floats_.data()),
              {shape, DType::f32},
              layout,
              dense_strides(shape, layout.kind())};
  }
  [[nodiscard]] const std::vector<float>& floats() const { return floats_; }
  [[nodiscard]] float* data() { return floats_.data(); }

 private:
  std::vector<float> floats_;

 public:
  Tensor tensor;
};

// 64-byte aligned, and filled with NaN: what is read before it was written shows.
class Workspace {
 public:
  explicit Workspace(std::size_t bytes) : floats_(bytes / sizeof(float) + 32, std::nanf("")) {}
  [[nodiscard]] std::byte* get() {
    void* at = floats_.data();
    std::size_t room = floats_.size() * sizeof(float);
    return static_cast<std::byte*>(std::align(64, 1, at, room));
  }

 private:
  std::vector<float> floats_;
};

double worst(const std::vector<float>& tested, const std::vector<float>& other) {
  double difference = 0.0, largest = 0.1;
  for (std::size_t i = 0; i < other.size(); ++i) {
    const double gap = std::abs(static_cast<double>(tested[i]) - static_cast<double>(other[i]));
    if (!(gap <= difference)) difference = gap;
    largest = std::max(largest, std::abs(static_cast<double>(other[i])));
  }
  return difference / largest;
}

class WinogradShapes : public ::testing::TestWithParam<Case> {
 protected:
  void SetUp() override {
    const Case& c = GetParam();
    attributes_.kernel_h = attributes_.kernel_w = 3;
    attributes_.pad_top = c.top;
    attributes_.pad_left = c.left;
    attributes_.pad_bottom = c.bottom;
    attributes_.pad_right = c.right;
    src_ = {c.images, c.src_channels, c.height, c.width};
    dst_ = {c.images, c.dst_channels, c.height + c.top + c.bottom - 2,
            c.width + c.left + c.right - 2};
    weights_ = {c.dst_channels, c.src_channels, 3, 3};
    set_thread_count(3);
  }
  void TearDown() override { set_thread_count(0); }

  void compare_gather(const Geometry& geometry, const Shape& from, const Shape& to) {
    Numbers src(from, Layout::nhwc(), 1), weights(weights_, Layout::plain(), 2);
    Numbers bias({to[1]}, Layout::plain(), 3), dense(to, Layout::nhwc(), 4);
    Numbers tiled(to, Layout::nhwc(), 5);
    for (const auto kind : {ActivationKind::relu, ActivationKind::leaky_relu}) {
      const Epilogue epilogue = {
          .bias = bias.data(), .activate = true, .activation = kind, .slope = 0.5F};
      const DensePlan dense_plan = make_dense_plan(geometry, thread_count());
      const WinogradPlan plan = make_winograd_plan(geometry, thread_count());
      Workspace dense_space(dense_plan.workspace_bytes), space(plan.workspace_bytes);
      run_dense(dense_plan, src.tensor, weights.data(), dense.tensor, epilogue, dense_space.get());
      run_winograd(plan, src.tensor, weights.data(), tiled.tensor, epilogue, space.get());
      EXPECT_LT(worst(tiled.floats(), dense.floats()), 6e-6);
    }
  }

  Conv2dAttributes attributes_;
  Shape src_, dst_, weights_;
};

TEST_P(WinogradShapes, ForwardIsTheDenseOne) {
  compare_gather(forward_geometry(attributes_, src_, dst_), src_, dst_);
}

TEST_P(WinogradShapes, BackwardDataIsTheDenseOne) {
  attributes_.src_h = src_[2];
  attributes_.src_w = src_[3];
  compare_gather(backward_data_geometry(attributes_, dst_, src_), dst_, src_);
}

TEST_P(WinogradShapes, BackwardWeightsAreTheDenseOnes) {
  const Geometry geometry = forward_geometry(attributes_, src_, dst_);
  Numbers src(src_, Layout::nhwc(), 1), diff(dst_, Layout::nhwc(), 2);
  Numbers dense(weights_, Layout::plain(), 3), tiled(weights_, Layout::plain(), 4);
  const WeightsPlan dense_plan = make_weights_plan(geometry, thread_count());
  const WinogradWeightsPlan plan = make_winograd_weights_plan(geometry, thread_count());
  Workspace dense_space(dense_plan.workspace_bytes), space(plan.workspace_bytes);
  run_weights(dense_plan, src.tensor, diff.tensor, dense.data(), dense_space.get());
  run_winograd_weights(plan, src.tensor, diff.tensor, tiled.data(), space.get());
  EXPECT_LT(worst(tiled.floats(), dense.floats()), 6e-6);
}

// One pixel; one tile; tiles over two edges; a row of tiles; panels of every width; few tiles with
// many channels, where weights are transformed late and sums are shared; several threads without
// work of their own.
INSTANTIATE_TEST_SUITE_P(
    Native, WinogradShapes,
    ::testing::Values(Case{1, 1, 1, 1, 1}, Case{1, 3, 4, 4, 5}, Case{2, 5, 5, 7, 17},
                      Case{3, 33, 2, 9, 8}, Case{1, 16, 13, 1, 49},
                      Case{2, 7, 6, 6, 65, 0, 2, 1, 0}, Case{1, 130, 5, 4, 140},
                      Case{1, 100, 9, 9, 180, 2, 0, 0, 2}, Case{5, 20, 19, 23, 40, 0, 0, 0, 0}),
    [](const auto& p) {
      const Case& c = p.param;
      return testing::test_name(fmt::format("{}x{}x{}x{}_to_{}", c.images, c.src_channels, c.height,
                                            c.width, c.dst_channels));
    });

// Errors against sums in double, and so the points that polynomials are evaluated at and the short
// chains of products: with 0, 1, -1, 2 and -2 they would be more than twice as large, with chains
// as long as the depth 1.85 times those of plain sums.
TEST(WinogradErrors, StayNearThoseOfPlainSums) {
  constexpr std::int64_t kChannels = 64, kSize = 8;
  Conv2dAttributes attributes;
  attributes.kernel_h = attributes.kernel_w = 3;
  const Shape src_shape = {1, kChannels, kSize + 2, kSize + 2}, dst_shape = {1, 16, kSize, kSize};
  const Shape weights_shape = {16, kChannels, 3, 3};
  Numbers src(src_shape, Layout::nhwc(), 1), weights(weights_shape, Layout::plain(), 2);
  Numbers dst(dst_shape, Layout::nhwc(), 3);
  const WinogradPlan plan =
      make_winograd_plan(forward_geometry(attributes, src_shape, dst_shape), 1);
  Workspace space(plan.workspace_bytes);
  run_winograd(plan, src.tensor, weights.data(), dst.tensor, {}, space.get());
  double error = 0.0, plain_error = 0.0;
  for (std::int64_t o = 0; o < 16; ++o) {
    for (std::int64_t y = 0; y < kSize; ++y) {
      for (std::int64_t x = 0; x < kSize; ++x) {
        double exact = 0.0;
        float plain = 0.0F;
        for (std::int64_t tap = 0; tap < 9; ++tap) {
          for (std::int64_t c = 0; c < kChannels; ++c) {
            const float a = src.data()[((y + tap / 3) * (kSize + 2) + x + tap % 3) * kChannels + c];
            const float b = weights.data()[(o * kChannels + c) * 9 + tap];
            exact += static_cast<double>(a) * static_cast<double>(b);
            plain += a * b;
          }
        }
        const double found = dst.data()[(y * kSize + x) * 16 + o];
        error += (found - exact) * (found - exact);
        plain_error += (static_cast<double>(plain) - exact) * (static_cast<double>(plain) - exact);
      }
    }
  }
  EXPECT_GT(error, 0.0);
  EXPECT_LT(std::sqrt(error / plain_error), 1.6);
}

// The rows' rule: what was measured to be faster, and nothing of another kind.
TEST(WinogradRule, TakesLargeConvolutionsOf3x3WithStride1) {
  const auto refusal = [](std::int64_t images, std::int64_t channels, std::int64_t size,
                          std::int64_t kernel, std::int64_t stride) {
    Conv2dAttributes a;
    a.kernel_h = a.kernel_w = kernel;
    a.stride_h = a.stride_w = stride;
    a.pad_top = a.pad_left = a.pad_bottom = a.pad_right = kernel / 2;
    const std::int64_t dst = (size - 1) / stride + 1;
    return refuse_winograd(
        forward_geometry(a, {images, channels, size, size}, {images, channels, dst, dst}));
  };
  EXPECT_EQ(refusal(16, 64, 56, 3, 1), "");
  EXPECT_EQ(refusal(32, 256, 4, 3, 1), "");
  EXPECT_NE(refusal(16, 64, 56, 3, 2), "");
  EXPECT_NE(refusal(16, 64, 56, 1, 1), "");
  EXPECT_NE(refusal(16, 64, 56, 5, 1), "");
  EXPECT_NE(refusal(16, 8, 56, 3, 1), "");
  EXPECT_NE(refusal(1, 512, 7, 3, 1), "");
  EXPECT_NE(refusal(32, 512, 2, 3, 1), "");
}

TEST(WinogradRule, ItsRowsAreLeftOutWhereTheyAreNotWanted) {
  const auto found =
      std::find_if(testing::op_cases().begin(), testing::op_cases().end(),
                   [](const auto& op_case) { return op_case.name == "conv2d.tiles_of_odd_shape"; });
  ASSERT_NE(found, testing::op_cases().end());
  const auto row_of = [&](const PlanOptions& options) {
    const Plan plan = make_plan(found->graph, options);
    const auto step = std::find_if(plan.steps.begin(), plan.steps.end(),
                                   [](const Step& each) { return !each.is_reorder(); });
    return step->row;
  };
  PlanOptions options;
  options.providers = providers_of("native");
  EXPECT_EQ(row_of(options), "winograd");
  options.without_passes = {true};
  EXPECT_EQ(row_of(options), "conv2d");
  options.without_passes = {};
  options.disabled_passes = {"winograd"};
  EXPECT_EQ(row_of(options), "conv2d");
}

}  // namespace
}  // namespace ridgeline::native::conv
