#pragma once

// What resizing is made of, for those who do it elsewhere than Resizer.

#include <cstdint>
#include <vector>

namespace ridgeline {

// 22 bits of a weight and 8 of a pixel leave two bits of a 32-bit sum.
inline constexpr int kResizeWeightBits = 22;

// The pixels that make up each pixel of a window along one axis, and their weights.
struct ResizeAxis {
  std::vector<std::int32_t> first, count;
  std::vector<std::int32_t> weights;  // `most` for each
  int most = 0;
  int begin = 0, end = 0;  // pixels of the image with a weight

  // A stretch of the image from `start` is resized to `resized` pixels, of which `size` from
  // `window` on are wanted. The image has `pixels`.
  void fill(double start, double length, int resized, int window, int size, int pixels);
};

// Orientations 5 to 8 of EXIF exchange rows and columns; the others mirror within the image.
struct ImageTurn {
  bool transposed, mirrored_x, mirrored_y;  // of the stored image's axes
};

constexpr ImageTurn turn_of(int orientation) {
  switch (orientation) {
    case 2:
      return {false, true, false};
    case 3:
      return {false, true, true};
    case 4:
      return {false, false, true};
    case 5:
      return {true, false, false};
    case 6:
      return {true, false, true};
    case 7:
      return {true, true, true};
    case 8:
      return {true, true, false};
    default:
      return {false, false, false};
  }
}

}  // namespace ridgeline
