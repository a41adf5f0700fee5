// Activations are recognised in whatever way they are written down, and nothing else is.

#include "onnx/pointwise.h"

#include <gtest/gtest.h>

#include <numbers>

#include "support/onnx_models.h"

namespace ridgeline::onnx {
namespace {

using ridgeline::testing::attribute;

Pointwise apply(const Pointwise& of, const char* type, std::vector<Attribute> attributes = {}) {
  OpNode node;
  node.type = type;
  node.attributes = std::move(attributes);
  return of.then(node, {}).value();
}
Pointwise join(const char* type, const Pointwise& a, const Pointwise& b) {
  return Pointwise::joined(type, a, b).value();
}
Pointwise number(double value) { return Pointwise::constant(value); }

const Pointwise x;

std::string name(const Pointwise& function) {
  const auto found = function.activation();
  return found ? std::string(name_of(found->kind)) : "none";
}

Pointwise clipped(const Pointwise& of, double least, double most) {
  return join("Min", join("Max", of, number(least)), number(most));
}

TEST(OnnxPointwise, GeluInEveryOrder) {
  // As PyTorch 1 and 2 write it, with the float next to the root of 2.
  const Pointwise erf = apply(join("Div", x, number(1.4142135381698608F)), "Erf");
  const Pointwise sum = join("Add", erf, number(1.0));
  EXPECT_EQ(name(join("Mul", join("Mul", x, sum), number(0.5))), "gelu");
  EXPECT_EQ(name(join("Mul", x, join("Mul", number(0.5), sum))), "gelu");
  EXPECT_EQ(name(join("Mul", join("Mul", x, number(0.5)), sum)), "gelu");
  const Pointwise inner =
      join("Mul", number(0.7978846),
           join("Add", x, join("Mul", number(0.044715), join("Pow", x, number(3.0)))));
  const Pointwise by_tanh =
      join("Mul", join("Mul", number(0.5), x), join("Add", apply(inner, "Tanh"), number(1.0)));
  EXPECT_EQ(name(by_tanh), "gelu_tanh");
  EXPECT_EQ(name(apply(x, "Gelu")), "gelu");
  EXPECT_EQ(name(apply(x, "Gelu", {attribute("approximate", "tanh")})), "gelu_tanh");
}

TEST(OnnxPointwise, OtherActivationsAndTheirParts) {
  EXPECT_EQ(name(join("Mul", x, apply(x, "Sigmoid"))), "silu");
  const Pointwise six = clipped(join("Add", x, number(3.0)), 0.0, 6.0);
  EXPECT_EQ(name(join("Div", six, number(6.0))), "hard_sigmoid");
  EXPECT_EQ(name(join("Mul", x, join("Div", six, number(6.0)))), "hard_swish");
  EXPECT_EQ(name(join("Div", join("Mul", x, six), number(6.0))), "hard_swish");
  EXPECT_EQ(name(apply(x, "HardSigmoid", {attribute("alpha", 1.0 / 6.0)})), "hard_sigmoid");
  EXPECT_EQ(name(clipped(x, 0.0, 6.0)), "relu6");
  EXPECT_EQ(name(join("Max", x, number(0.0))), "relu");
  EXPECT_EQ(name(apply(x, "Tanh")), "tanh");
  const auto leaky = apply(x, "LeakyRelu", {attribute("alpha", 0.2)}).activation();
  ASSERT_TRUE(leaky.has_value());
  EXPECT_EQ(leaky->kind, ActivationKind::leaky_relu);
  EXPECT_NEAR(leaky->slope, 0.2, 1e-7);
}

TEST(OnnxPointwise, WhatIsNearlyAnActivationIsNone) {
  EXPECT_EQ(name(clipped(x, 0.0, 5.9)), "none");
  EXPECT_EQ(name(clipped(x, 0.0, 1000.0)), "none");  // of a ReLU too large inputs tell
  EXPECT_EQ(name(apply(x, "HardSigmoid")), "none");  // ONNX's own slope is 0.2
  EXPECT_EQ(name(join("Mul", x, apply(join("Mul", x, number(1.702)), "Sigmoid"))), "none");
  EXPECT_EQ(name(apply(x, "Elu")), "none");
  EXPECT_EQ(name(apply(x, "Exp")), "none");
  EXPECT_EQ(name(join("Mul", x, number(0.5))), "none");
}

TEST(OnnxPointwise, LinesAndTheNumberItself) {
  EXPECT_TRUE(join("Add", x, number(0.0)).is_identity());
  EXPECT_FALSE(join("Add", x, number(0.01)).is_identity());
  const auto line = join("Add", join("Mul", x, number(0.458)), number(-0.03)).line();
  ASSERT_TRUE(line.has_value());
  EXPECT_NEAR(line->factor, 0.458, 1e-12);
  EXPECT_NEAR(line->shift, -0.03, 1e-12);
  EXPECT_FALSE(apply(x, "Relu").line().has_value());
}

}  // namespace
}  // namespace ridgeline::onnx
