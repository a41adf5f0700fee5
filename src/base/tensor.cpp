#include "base/tensor.h"

#include "base/error.h"

namespace ridgeline {

Strides dense_strides(const Shape& shape, LayoutKind layout) {
  Strides strides{};
  if (layout == LayoutKind::nhwc) {
    ensure(shape.rank() == 4, "nhwc needs four dimensions, not {}", shape.text());
    strides = {shape[1] * shape[2] * shape[3], 1, shape[1] * shape[3], shape[1]};
    return strides;
  }
  std::int64_t stride = 1;
  for (int axis = shape.rank() - 1; axis >= 0; --axis) {
    strides[static_cast<std::size_t>(axis)] = stride;
    stride *= shape[axis];
  }
  return strides;
}

bool Tensor::dense() const {
  if (layout.kind() == LayoutKind::own) return true;
  const Strides expected = dense_strides(spec.shape, layout.kind());
  for (int axis = 0; axis < spec.shape.rank(); ++axis) {
    const auto a = static_cast<std::size_t>(axis);
    if (spec.shape[axis] > 1 && strides[a] != expected[a]) return false;
  }
  return true;
}

}  // namespace ridgeline
