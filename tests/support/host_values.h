#pragma once

// Values of a graph in host memory, and the reference's answer to a case in double.

#include <optional>
#include <vector>

#include "base/error.h"
#include "base/half.h"
#include "base/precision.h"
#include "support/op_cases.h"

namespace ridgeline::testing {

// One value, plain and dense.
struct HostValue {
  TensorSpec spec;
  std::vector<std::byte> bytes;

  HostValue() = default;
  explicit HostValue(const TensorSpec& of)
      : spec(of), bytes(static_cast<std::size_t>(of.bytes())) {}

  [[nodiscard]] Tensor tensor();
  [[nodiscard]] std::int64_t elements() const { return spec.shape.elements(); }
  // Elements as numbers, whatever their type.
  [[nodiscard]] double at(std::int64_t index) const;
  void set(std::int64_t index, double number);
};

inline double HostValue::at(std::int64_t index) const {
  const std::byte* element = bytes.data() + static_cast<std::size_t>(index) * size_of(spec.dtype);
  switch (spec.dtype) {
    case DType::f64:
      return *reinterpret_cast<const double*>(element);
    case DType::f32:
      return *reinterpret_cast<const float*>(element);
    case DType::i32:
      return *reinterpret_cast<const std::int32_t*>(element);
    case DType::u8:
      return *reinterpret_cast<const std::uint8_t*>(element);
    case DType::bf16:
      return widened(*reinterpret_cast<const BFloat16*>(element));
    case DType::f16:
      return widened(*reinterpret_cast<const Float16*>(element));
  }
  fail("unknown element type");
}

inline void HostValue::set(std::int64_t index, double number) {
  std::byte* element = bytes.data() + static_cast<std::size_t>(index) * size_of(spec.dtype);
  switch (spec.dtype) {
    case DType::f64:
      *reinterpret_cast<double*>(element) = number;
      return;
    case DType::f32:
      *reinterpret_cast<float*>(element) = static_cast<float>(number);
      return;
    case DType::i32:
      *reinterpret_cast<std::int32_t*>(element) = static_cast<std::int32_t>(number);
      return;
    case DType::u8:
      *reinterpret_cast<std::uint8_t*>(element) = static_cast<std::uint8_t>(number);
      return;
    case DType::bf16:
      *reinterpret_cast<BFloat16*>(element) = narrowed<BFloat16>(number);
      return;
    case DType::f16:
      *reinterpret_cast<Float16*>(element) = narrowed<Float16>(number);
      return;
  }
}

// By value id. Values not computed yet have no bytes.
using HostValues = std::vector<HostValue>;

// The same graph with f64 in place of all other float types; ids stay the same.
[[nodiscard]] Graph in_double(const Graph& graph);
// The same graph without the mark on one output, which then is not read.
[[nodiscard]] Graph without_output(const Graph& graph, ValueId output);

// The case's inputs, deterministic from its name, in the types of `graph`. Numbers are rounded to
// the case's own types first, so that all start from the same ones.
[[nodiscard]] HostValues make_inputs(const OpCase& op_case, const Graph& graph);
// The values that no node produces, in the types of `graph`; the others are left empty.
[[nodiscard]] HostValues inputs_as(const HostValues& values, const Graph& graph);

// Computes what the nodes produce from what is there; returns what they make of the state.
StepState run_reference(const Graph& graph, HostValues& values, StepState state);
void run_reference_node(const Graph& graph, NodeId node, HostValues& values, StepState& state);

// What a result is compared with: the exact values and, for each element, how large it would be had
// nothing cancelled. A rounding error is in proportion to the latter.
struct Expected {
  HostValues values, magnitudes;
  StepState state;
};
[[nodiscard]] Expected expected_of(const OpCase& op_case);

// The case in another precision: given images and gradients are narrow, weights are cast. Nothing
// when its answer would hang on a rounding: which of two near equals is the maximum, say.
[[nodiscard]] std::optional<OpCase> in_precision(const OpCase& op_case, Precision precision);

}  // namespace ridgeline::testing
