#include "onnx/view.h"

#include <array>

#include "base/error.h"

namespace ridgeline::onnx {

View::View(const Shape& shape) : shape_(shape) {
  for (int axis = 0; axis < shape.rank(); ++axis) {
    dims_.push_back(shape[axis]);
    axes_.push_back(shape[axis] == 1 ? Factors() : Factors{{axis, 1, shape[axis]}});
  }
}

View View::channels_last(const Shape& shape) {
  static constexpr std::array<std::size_t, 4> kOrder = {0, 2, 3, 1};
  return View(shape).transposed(kOrder);
}

// Neighbours that follow each other within one axis become one factor.
View::Factors View::flat() const {
  Factors joined;
  for (const Factors& axis : axes_) {
    for (const Factor& factor : axis) {
      Factor* last = joined.empty() ? nullptr : &joined.back();
      if (last != nullptr && last->axis == factor.axis && last->step == factor.step * factor.size) {
        *last = {factor.axis, factor.step, last->size * factor.size};
      } else {
        joined.push_back(factor);
      }
    }
  }
  return joined;
}

std::optional<View> View::reshaped(Dims dims) const {
  Factors left = flat();
  View made;
  made.shape_ = shape_;
  std::size_t next = 0;
  for (const std::int64_t dim : dims) {
    Factors& axis = made.axes_.emplace_back();
    std::int64_t wanted = dim;
    while (wanted > 1) {
      if (next == left.size()) return std::nullopt;
      Factor& factor = left[next];
      if (wanted % factor.size == 0) {
        axis.push_back(factor);
        wanted /= factor.size;
        ++next;
      } else if (factor.size % wanted == 0) {
        const std::int64_t rest = factor.size / wanted;
        axis.push_back({factor.axis, factor.step * rest, wanted});
        factor.size = rest;
        wanted = 1;
      } else {
        return std::nullopt;
      }
    }
  }
  if (next != left.size()) return std::nullopt;
  made.dims_ = std::move(dims);
  return made;
}

View View::transposed(std::span<const std::size_t> order) const {
  View made;
  made.shape_ = shape_;
  for (const std::size_t axis : order) {
    made.dims_.push_back(dims_[axis]);
    made.axes_.push_back(axes_[axis]);
  }
  return made;
}

View View::on(const Shape& shape) const {
  // Axes of size 1 look alike; the two usual orders are known as a whole.
  if (*this == View(shape_)) return View(shape);
  if (shape_.rank() == 4 && *this == channels_last(shape_)) return channels_last(shape);
  View made;
  made.shape_ = shape;
  std::vector<bool> used(static_cast<std::size_t>(shape.rank()), false);
  for (std::size_t axis = 0; axis < dims_.size(); ++axis) {
    int own = 0;
    while (own < shape.rank() && (used[static_cast<std::size_t>(own)] || !is_own_axis(axis, own))) {
      ++own;
    }
    ensure(own < shape.rank(), "an axis of a view is none of the value's own");
    used[static_cast<std::size_t>(own)] = true;
    made.dims_.push_back(shape[own]);
    made.axes_.push_back(shape[own] == 1 ? Factors() : Factors{{own, 1, shape[own]}});
  }
  return made;
}

bool View::is_in_order() const { return flat() == View(shape_).flat(); }

bool View::is_own_axis(std::size_t axis, int own) const {
  const std::int64_t size = shape_[own];
  if (size == 1) return axes_[axis].empty();
  return axes_[axis].size() == 1 && axes_[axis][0] == Factor{own, 1, size};
}

std::optional<std::size_t> View::channels() const {
  if (shape_.rank() < 2) return std::nullopt;
  for (std::size_t axis = 0; axis < dims_.size(); ++axis) {
    if (shape_[1] != 1 && is_own_axis(axis, 1)) return axis;
  }
  // One channel looks like any axis of size 1: it is where the order of the others leaves it.
  if (shape_[1] != 1) return std::nullopt;
  if (*this == View(shape_)) return 1;
  if (shape_.rank() == 4 && *this == channels_last(shape_)) return 3;
  return std::nullopt;
}

std::optional<std::int64_t> View::shuffled() const {
  if (shape_.rank() != 4 || dims_.size() != 4) return std::nullopt;
  for (const int own : {0, 2, 3}) {
    if (!is_own_axis(static_cast<std::size_t>(own), own)) return std::nullopt;
  }
  const Factors& channels = axes_[1];
  if (channels.size() != 2 || channels[0].axis != 1 || channels[1].axis != 1) return std::nullopt;
  // The inner factor first, then the groups.
  const std::int64_t inner = channels[0].size, groups = channels[1].size;
  if (channels[0].step != 1 || channels[1].step != inner || inner * groups != shape_[1]) {
    return std::nullopt;
  }
  return groups;
}

std::optional<std::int64_t> View::grouped() const {
  if (dims_.size() < 3 || !is_in_order() || dims_[0] != shape_[0]) return std::nullopt;
  const std::int64_t groups = dims_[1];
  if (groups < 1 || shape_[1] % groups != 0) return std::nullopt;
  for (std::size_t axis = 3; axis < dims_.size(); ++axis) {
    if (dims_[axis] != 1) return std::nullopt;
  }
  return groups;
}

}  // namespace ridgeline::onnx
