#pragma once

// Single ops on numbers written down in a test.

#include <gtest/gtest.h>

#include <limits>
#include <string>
#include <vector>

#include "support/host_values.h"

namespace ridgeline::testing {

using Numbers = std::vector<double>;

inline const double kNaN = std::numeric_limits<double>::quiet_NaN();

struct Given {
  Shape shape;
  Numbers numbers;
  DType dtype = DType::f64;
};

// Runs one op's reference loops in double; returns the outputs.
inline std::vector<Numbers> run(OpKind kind, const Attributes& attributes,
                                const std::vector<Given>& given, const StepState& state = {}) {
  Graph graph;
  std::vector<ValueId> inputs;
  HostValues values;
  for (const Given& g : given) {
    inputs.push_back(
        graph.add_value("v" + std::to_string(values.size()), {g.shape, g.dtype}, Role::input));
    values.emplace_back(TensorSpec{g.shape, g.dtype});
    for (std::size_t i = 0; i < g.numbers.size(); ++i) {
      values.back().set(static_cast<std::int64_t>(i), g.numbers[i]);
    }
  }
  const std::vector<ValueId> outputs = graph.add_node(kind, attributes, inputs, "", Phase::forward);
  values.resize(graph.values().size());
  run_reference(graph, values, state);
  std::vector<Numbers> results;
  for (const ValueId output : outputs) {
    const HostValue& value = values[static_cast<std::size_t>(output)];
    results.emplace_back();
    for (std::int64_t i = 0; i < value.elements(); ++i) results.back().push_back(value.at(i));
  }
  return results;
}

inline void expect_near(const Numbers& got, const Numbers& expected, double tolerance = 1e-12) {
  ASSERT_EQ(got.size(), expected.size());
  for (std::size_t i = 0; i < got.size(); ++i) {
    EXPECT_NEAR(got[i], expected[i], tolerance) << "element " << i;
  }
}

}  // namespace ridgeline::testing
