// What is computed at import: shapes, and what exporters reckon with them.

#include "onnx/constants.h"

#include <gtest/gtest.h>

#include "base/error.h"
#include "support/onnx_models.h"

namespace ridgeline::onnx {
namespace {

using ridgeline::testing::attribute;

Array wholes(Dims dims, Dims values) { return make_integers("w", std::move(dims), values); }

std::vector<Array> computed(const char* type, std::vector<Array> inputs,
                            std::vector<Attribute> attributes = {}, std::size_t outputs = 1) {
  OpNode node;
  node.type = type;
  node.attributes = std::move(attributes);
  for (std::size_t i = 0; i < outputs; ++i) node.outputs.push_back("o" + std::to_string(i));
  std::vector<const Array*> pointers;
  for (const Array& array : inputs) pointers.push_back(&array);
  FoldBudget budget;
  EXPECT_TRUE(can_fold(node)) << type;
  return fold(node, pointers, budget);
}

TEST(OnnxConstants, ShapesAndTheirParts) {
  const Array data = make_array("d", ElementType::float32, {2, 3, 4}, std::vector<double>(24, 0.0));
  EXPECT_EQ(computed("Shape", {data})[0].integers(), (Dims{2, 3, 4}));
  EXPECT_EQ(computed("Shape", {data}, {attribute("start", std::int64_t{-2})})[0].integers(),
            (Dims{3, 4}));
  EXPECT_EQ(computed("Size", {data})[0].integers(), (Dims{24}));
  const Array shape = wholes({3}, {2, 3, 4});
  EXPECT_EQ(computed("Gather", {shape, wholes({}, {-1})})[0].integers(), (Dims{4}));
  EXPECT_TRUE(computed("Gather", {shape, wholes({}, {1})})[0].dims.empty());
  EXPECT_EQ(computed("Concat", {shape, wholes({1}, {9})}, {attribute("axis", std::int64_t{0})})[0]
                .integers(),
            (Dims{2, 3, 4, 9}));
  const std::int64_t end = std::numeric_limits<std::int64_t>::max();
  EXPECT_EQ(computed("Slice", {shape, wholes({1}, {1}), wholes({1}, {end})})[0].integers(),
            (Dims{3, 4}));
  EXPECT_EQ(computed("Slice", {shape, wholes({1}, {-1}), wholes({1}, {-end}), wholes({1}, {0}),
                               wholes({1}, {-1})})[0]
                .integers(),
            (Dims{4, 3, 2}));
}

TEST(OnnxConstants, ArithmeticIsThatOfTheType) {
  EXPECT_EQ(computed("Div", {wholes({2}, {7, -7}), wholes({}, {2})})[0].integers(), (Dims{3, -3}));
  EXPECT_EQ(computed("Mul", {wholes({2, 1}, {2, 3}), wholes({2}, {5, 7})})[0].integers(),
            (Dims{10, 14, 15, 21}));
  const Array tenth = make_array("t", ElementType::float32, {}, {{0.1}});
  EXPECT_EQ(computed("Add", {tenth, tenth})[0].numbers()[0], static_cast<double>(0.1F + 0.1F));
  EXPECT_EQ(computed("Cast", {wholes({2}, {0, 5})}, {attribute("to", std::int64_t{9})})[0].type,
            ElementType::boolean);
  EXPECT_EQ(computed("Where", {computed("Equal", {wholes({2}, {-1, 4}), wholes({}, {-1})})[0],
                               wholes({}, {1}), wholes({2}, {-1, 4})})[0]
                .integers(),
            (Dims{1, 4}));
}

TEST(OnnxConstants, WeightsAreTurned) {
  const Array weights = make_array("fc.weight", ElementType::float32, {2, 3}, {{1, 2, 3, 4, 5, 6}});
  const Array turned = computed("Transpose", {weights}, {attribute("perm", Dims{1, 0})})[0];
  EXPECT_EQ(turned.dims, (Dims{3, 2}));
  EXPECT_EQ(turned.numbers(), (std::vector<double>{1, 4, 2, 5, 3, 6}));
  EXPECT_EQ(turned.name, "fc.weight");
  const auto parts = computed("Split", {weights}, {attribute("axis", std::int64_t{1})}, 3);
  EXPECT_EQ(parts[1].numbers(), (std::vector<double>{2, 5}));
}

TEST(OnnxConstants, ReshapesThatDoNotFitAreRefused) {
  EXPECT_EQ(reshaped(Dims{2, 12}, Dims{0, 3, -1}, false), (Dims{2, 3, 4}));
  EXPECT_THROW((void)reshaped(Dims{2, 12}, Dims{-1, -1}, false), Error);
  EXPECT_THROW((void)reshaped(Dims{2, 12}, Dims{5, -1}, false), Error);
  EXPECT_THROW((void)reshaped(Dims{2, 12}, Dims{2, 12, 0}, false), Error);
  EXPECT_THROW((void)reshaped(Dims{2, 12}, Dims{std::int64_t{1} << 62, 4}, false), Error);
  EXPECT_THROW((void)reshaped(Dims{2, 12}, Dims{-3, -8}, false), Error);
}

TEST(OnnxConstants, AFileCannotAskForEndlessNumbers) {
  OpNode node;
  node.type = "ConstantOfShape";
  node.outputs = {"o"};
  const Array million = wholes({1}, {1 << 20});
  const std::vector<const Array*> inputs = {&million};
  FoldBudget budget;
  int made = 0;
  EXPECT_THROW(
      for (;;) {
        (void)fold(node, inputs, budget);
        ASSERT_LT(++made, 100);
      },
      Error);
  const Array huge = wholes({2}, {std::int64_t{1} << 40, std::int64_t{1} << 40});
  EXPECT_THROW((void)fold(node, std::vector<const Array*>{&huge}, budget), Error);
  node.type = "Expand";
  const Array one = wholes({}, {1});
  EXPECT_THROW((void)fold(node, std::vector<const Array*>{&one, &huge}, budget), Error);
  node.type = "Range";
  const Array zero = wholes({}, {0}), far = wholes({}, {std::int64_t{1} << 50});
  EXPECT_THROW((void)fold(node, std::vector<const Array*>{&zero, &far, &one}, budget), Error);
  EXPECT_THROW((void)fold(node, std::vector<const Array*>{&zero, &far, &zero}, budget), Error);
}

TEST(OnnxConstants, PartsOfASliceStayWithinTheAxis) {
  OpNode node;
  node.type = "Slice";
  const auto range = [&](std::int64_t begin, std::int64_t end, std::int64_t step) {
    const Array b = wholes({1}, {begin}), e = wholes({1}, {end}), a = wholes({1}, {1}),
                s = wholes({1}, {step});
    const std::vector<const Array*> constants = {&b, &e, &a, &s};
    return slice_ranges(node, {2, 10}, constants)[0];
  };
  EXPECT_EQ(range(2, 5, 1).count, 3);
  EXPECT_EQ(range(-3, 100, 1).begin, 7);
  EXPECT_EQ(range(0, 10, 3).count, 4);
  EXPECT_EQ(range(5, 2, 1).count, 0);
  constexpr std::int64_t least = std::numeric_limits<std::int64_t>::min();
  EXPECT_EQ(range(9, least, -1).count, 10);
  EXPECT_EQ(range(9, least, least).count, 1);
  EXPECT_THROW((void)range(0, 10, 0), Error);
}

}  // namespace
}  // namespace ridgeline::onnx
