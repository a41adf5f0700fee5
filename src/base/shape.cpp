#include "base/shape.h"

#include "base/error.h"

namespace ridgeline {

Shape::Shape(std::initializer_list<std::int64_t> dims) {
  for (const std::int64_t dim : dims) append(dim);
}

void Shape::append(std::int64_t dim) {
  ensure(rank_ < kMaxRank, "a shape has at most {} dimensions", kMaxRank);
  ensure(dim >= 0, "a dimension cannot be negative: {}", dim);
  dims_[static_cast<std::size_t>(rank_++)] = dim;
}

std::int64_t Shape::elements() const {
  std::int64_t count = 1;
  for (int axis = 0; axis < rank_; ++axis) count *= (*this)[axis];
  return count;
}

std::string Shape::text() const {
  if (rank_ == 0) return "scalar";
  std::string text;
  for (int axis = 0; axis < rank_; ++axis) {
    if (axis > 0) text += 'x';
    text += std::to_string((*this)[axis]);
  }
  return text;
}

}  // namespace ridgeline
