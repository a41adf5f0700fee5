#pragma once

// How a file sees a value of ours. Reshape, Transpose, Squeeze and the like move no numbers at
// import: they change the view. What a view means (a flatten, a channel shuffle, channels last) is
// asked when an op reads the value.

#include <cstdint>
#include <optional>
#include <span>
#include <vector>

#include "base/shape.h"
#include "onnx/array.h"

namespace ridgeline::onnx {

class View {
 public:
  View() = default;
  // The value as it is.
  explicit View(const Shape& shape);
  // (N, H, W, C) of a value (N, C, H, W).
  [[nodiscard]] static View channels_last(const Shape& shape);

  [[nodiscard]] const Dims& dims() const { return dims_; }

  // Nothing where an axis would have to be cut at a place that divides none of its factors.
  // REQUIRES: as many elements.
  [[nodiscard]] std::optional<View> reshaped(Dims dims) const;
  // REQUIRES: a permutation of the axes.
  [[nodiscard]] View transposed(std::span<const std::size_t> order) const;
  // The same view of a value of another shape. REQUIRES: every axis of the view is one of the
  // value's own.
  [[nodiscard]] View on(const Shape& shape) const;

  // Whether the elements lie in the value's own order, whatever the axes.
  [[nodiscard]] bool is_in_order() const;
  // Whether an axis of the view is one of the value's own, whole.
  [[nodiscard]] bool is_own_axis(std::size_t axis, int own) const;
  // The axis of the view that is the channels; nothing where they are cut or joined.
  [[nodiscard]] std::optional<std::size_t> channels() const;
  // Where the view is (N, C, H, W) with the channels dealt out anew: in how many groups.
  [[nodiscard]] std::optional<std::int64_t> shuffled() const;
  // Where the view is (N, groups, all the rest of a sample): how many groups of channels.
  [[nodiscard]] std::optional<std::int64_t> grouped() const;

  friend bool operator==(const View&, const View&) = default;

 private:
  // A part of one of the value's own axes: `size` strides of `step` elements along it.
  struct Factor {
    int axis = 0;
    std::int64_t step = 1, size = 1;
    friend bool operator==(const Factor&, const Factor&) = default;
  };
  using Factors = std::vector<Factor>;

  [[nodiscard]] Factors flat() const;

  Shape shape_;  // of the value
  Dims dims_;
  std::vector<Factors> axes_;  // of the view; factors of size 1 are left out
};

}  // namespace ridgeline::onnx
