#pragma once

#include <array>
#include <cstdint>
#include <initializer_list>
#include <string>

namespace ridgeline {

// A logical shape of up to four dimensions: (N, C, H, W) for images, (N, C) for rows of features,
// (O, I, H, W) for convolution weights. A scalar has rank 0 and one element.
class Shape {
 public:
  static constexpr int kMaxRank = 4;

  Shape() = default;
  Shape(std::initializer_list<std::int64_t> dims);

  [[nodiscard]] int rank() const { return rank_; }
  [[nodiscard]] std::int64_t operator[](int axis) const {
    return dims_[static_cast<std::size_t>(axis)];
  }
  [[nodiscard]] std::int64_t elements() const;
  // Height and width of an image value; 1 where the shape has no such axis.
  [[nodiscard]] std::int64_t height() const { return rank_ > 2 ? dims_[2] : 1; }
  [[nodiscard]] std::int64_t width() const { return rank_ > 3 ? dims_[3] : 1; }
  [[nodiscard]] std::string text() const;  // "512x8x26x26"; "scalar" for rank 0

  void append(std::int64_t dim);
  friend bool operator==(const Shape&, const Shape&) = default;

 private:
  std::array<std::int64_t, kMaxRank> dims_{};
  int rank_ = 0;
};

}  // namespace ridgeline
