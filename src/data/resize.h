#pragma once

// Resizes images with a triangle filter that widens when the image shrinks (bilinear with
// antialiasing), in the fixed-point arithmetic of Pillow: first along rows, then along columns,
// rounded to bytes in between. The results equal Pillow's bit for bit.

#include <cstdint>
#include <span>
#include <vector>

#include "data/image_decoder.h"
#include "data/resize_axis.h"

namespace ridgeline {

// A part of an image, in pixels; need not lie on whole ones.
struct Box {
  double x = 0.0, y = 0.0, width = 0.0, height = 0.0;
};

// `box` of an image is resized to resized_width x resized_height, of which only a window is wanted.
struct Resize {
  Box box;
  int resized_width = 0, resized_height = 0;
  int x = 0, y = 0, width = 0, height = 0;  // the window

  // The pixels of the image that have a weight in the window: within the box.
  [[nodiscard]] PixelArea needed() const;
};

// For one thread; buffers are kept.
class Resizer {
 public:
  // Returns the window, four bytes a pixel, valid until the next call.
  // REQUIRES: the image holds all needed pixels of the box.
  PixelView run(const PixelView& image, const Resize& resize);

 private:
  ResizeAxis columns_, rows_;
  std::vector<std::uint8_t> between_, result_;
};

// Four bytes a pixel to planes: channels x height x width. One channel takes red alone. The image
// is turned as an EXIF orientation says; the planes have the size of the turned image.
void to_planes(const PixelView& image, int orientation, int channels,
               std::span<std::uint8_t> planes);

// Planes to four bytes a pixel; one channel becomes grey.
PixelView from_planes(std::span<const std::uint8_t> planes, int channels, int height, int width,
                      std::vector<std::uint8_t>& buffer);

}  // namespace ridgeline
