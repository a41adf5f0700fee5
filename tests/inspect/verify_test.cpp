// What `verify` holds errors against.

#include "inspect/verify.h"

#include <gtest/gtest.h>

#include <cmath>

namespace ridgeline {
namespace {

struct Cancelling {
  Graph graph;
  ValueId src, diff, bias, weights, velocity;
};

// The gradients of a convolution's bias and weights, as in front of a batch norm.
Cancelling cancelling(const Shape& image) {
  Cancelling made;
  Graph& graph = made.graph;
  const auto input = [&](const char* name, const Shape& shape, Role role) {
    return graph.add_value(name, {shape, DType::f32}, role);
  };
  made.src = input("src", image, Role::input);
  made.diff = input("diff", image, Role::input);
  const ValueId parameter = input("bias", {image[1]}, Role::parameter);
  const ValueId state = input("bias.velocity", {image[1]}, Role::optimizer_state);
  made.bias =
      graph.add_node(OpKind::bias_backward, {}, {made.diff}, "a", Phase::backward_weights)[0];
  Conv2dAttributes conv;
  made.weights = graph.add_node(OpKind::conv2d_backward_weights, conv, {made.src, made.diff}, "a",
                                Phase::backward_weights)[0];
  made.velocity = graph.add_node(OpKind::sgd, SgdAttributes{.momentum = 0.9},
                                 {parameter, made.bias, state}, "a", Phase::optimizer)[1];
  return made;
}

const Sizes kSizes = {{"src", {4.0, 2.0}}, {"diff", {1.0, 0.5}}};

TEST(Verify, SumsThatCancelAreHeldAgainstTheirTerms) {
  const Cancelling made = cancelling({4, 8, 10, 10});
  const double root = std::sqrt(400.0);
  EXPECT_DOUBLE_EQ(least_yardstick(made.graph, made.bias, kSizes), 0.5 * root);
  EXPECT_DOUBLE_EQ(least_yardstick(made.graph, made.weights, kSizes), 2.0 * 0.5 * root);
  EXPECT_DOUBLE_EQ(least_yardstick(made.graph, made.velocity, kSizes), 0.5 * root);
  EXPECT_EQ(least_yardstick(made.graph, made.diff, kSizes), 0.0);
  EXPECT_EQ(least_yardstick(made.graph, made.bias, {}), 0.0) << "nothing is known of its terms";
  // A gradient that is zero but for rounding: 0 here, 1e-7 there.
  EXPECT_LT(deviation(std::vector<double>{1e-7}, std::vector<double>{0.0},
                      least_yardstick(made.graph, made.bias, kSizes))
                .max_relative,
            1e-7);
}

TEST(Verify, ManyTermsLeaveRoomForTheirRounding) {
  const Cancelling made = cancelling({64, 8, 64, 64});
  const double terms = 64.0 * 64.0 * 64.0, usual = 0.5 * std::sqrt(terms);
  const double yardstick = least_yardstick(made.graph, made.bias, kSizes);
  // Σ|terms| has √n units of rounding: n·√n·u·0.5, within 1e-4 of the yardstick.
  EXPECT_NEAR(1e-4 * yardstick, terms * usual * 0x1p-24, 1e-9 * yardstick);
  EXPECT_GT(yardstick, 100.0 * usual);
}

}  // namespace
}  // namespace ridgeline
