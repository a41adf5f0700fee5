#pragma once

// Helpers for the reference loops: element access by logical index, and the choice of the element
// type. Nothing here is fast; everything is meant to be read. Sums are taken in double whatever the
// element type, because other kernels are judged by these results.

#include "base/error.h"
#include "base/half.h"
#include "ops/op.h"

namespace ridgeline {

// A tensor's elements by logical index, whatever its strides.
template <typename T>
class Elements {
 public:
  explicit Elements(const Tensor& tensor)
      : tensor_(&tensor), data_(tensor.as<T>()), dense_(tensor.dense()) {}

  T& operator()(std::int64_t a) const { return data_[a * stride(0)]; }
  T& operator()(std::int64_t a, std::int64_t b) const {
    return data_[a * stride(0) + b * stride(1)];
  }
  T& operator()(std::int64_t a, std::int64_t b, std::int64_t c, std::int64_t d) const {
    return data_[a * stride(0) + b * stride(1) + c * stride(2) + d * stride(3)];
  }
  // By position in row-major logical order.
  T& flat(std::int64_t index) const {
    if (dense_) return data_[index];
    std::int64_t offset = 0;
    for (int axis = tensor_->shape().rank() - 1; axis >= 0; --axis) {
      offset += index % tensor_->shape()[axis] * tensor_->strides[static_cast<std::size_t>(axis)];
      index /= tensor_->shape()[axis];
    }
    return data_[offset];
  }

 private:
  [[nodiscard]] std::int64_t stride(std::size_t axis) const { return tensor_->strides[axis]; }

  const Tensor* tensor_;
  T* data_;
  bool dense_;
};

// Calls body(n, c, h, w) for every element of an image value. Rows of features have h = w = 0.
template <typename Body>
void for_each_index(const Shape& shape, Body&& body) {
  for (std::int64_t n = 0; n < shape[0]; ++n) {
    for (std::int64_t c = 0; c < shape[1]; ++c) {
      for (std::int64_t h = 0; h < shape.height(); ++h) {
        for (std::int64_t w = 0; w < shape.width(); ++w) body(n, c, h, w);
      }
    }
  }
}

// The same for the elements of one channel.
template <typename Body>
void for_each_in_channel(const Shape& shape, std::int64_t c, Body&& body) {
  for (std::int64_t n = 0; n < shape[0]; ++n) {
    for (std::int64_t h = 0; h < shape.height(); ++h) {
      for (std::int64_t w = 0; w < shape.width(); ++w) body(n, c, h, w);
    }
  }
}

// Calls body with a value of the element type: float or double.
template <typename Body>
void with_float_type(DType dtype, Body&& body) {
  if (dtype == DType::f32) {
    body(float{});
  } else if (dtype == DType::f64) {
    body(double{});
  } else {
    fail("the reference loops compute in f32 and f64, not {}", name_of(dtype));
  }
}

// The same for every float type: the 16-bit ones are read with widened, written with narrowed.
template <typename Body>
void with_any_float_type(DType dtype, Body&& body) {
  if (dtype == DType::bf16) {
    body(BFloat16{});
  } else if (dtype == DType::f16) {
    body(Float16{});
  } else {
    with_float_type(dtype, std::forward<Body>(body));
  }
}

}  // namespace ridgeline
