#pragma once

#include <array>
#include <cstddef>
#include <cstdint>

#include "base/dtype.h"
#include "base/layout.h"
#include "base/shape.h"

namespace ridgeline {

// What a value is, wherever it lies.
struct TensorSpec {
  Shape shape;
  DType dtype = DType::f32;

  [[nodiscard]] std::int64_t bytes() const {
    return shape.elements() * static_cast<std::int64_t>(size_of(dtype));
  }
  friend bool operator==(const TensorSpec&, const TensorSpec&) = default;
};

// Element strides in the order of the logical axes. Meaningless for a provider's own layout.
using Strides = std::array<std::int64_t, Shape::kMaxRank>;

[[nodiscard]] Strides dense_strides(const Shape& shape, LayoutKind layout);

// A value at its place, as a kernel sees it. `data` is null for an output that is not read: the
// kernel then leaves it out.
struct Tensor {
  std::byte* data = nullptr;
  TensorSpec spec;
  Layout layout;
  Strides strides{};

  [[nodiscard]] const Shape& shape() const { return spec.shape; }
  template <typename T>
  [[nodiscard]] T* as() const {
    return reinterpret_cast<T*>(data);
  }
  // True when the elements lie without gaps, as opposed to a slice of a wider value.
  [[nodiscard]] bool dense() const;
};

}  // namespace ridgeline
