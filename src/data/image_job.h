#pragma once

// Brings image files as far as the host takes them where a device makes the pixels.

#include <cstddef>
#include <cstdint>

#include "data/image_transform.h"
#include "data/jpeg.h"
#include "data/resize_axis.h"

namespace ridgeline {

// For one thread; buffers are kept.
class ImageJobMaker {
 public:
  // Prepares an image as blocks, or as a file whose pixels another decoder makes. False for what is
  // not a usual JPEG image without any fault, is decoded at a smaller scale by the host, or needs
  // more than kMostAreaPixels.
  [[nodiscard]] bool make(const StoredImage& image, const TransformRequest& request,
                          ImageForm form);

  // Of the image made last: the room that its parts take, and their way there, after which the job
  // tells where they are. REQUIRES: `offset` is a multiple of kPartAlignment.
  [[nodiscard]] std::size_t part_bytes() const { return part_bytes_; }
  [[nodiscard]] ImageJob put(std::uint8_t* parts, std::uint64_t offset) const;

  static constexpr std::size_t kPartAlignment = 16;
  static constexpr std::int64_t kMostAreaPixels = std::int64_t{1} << 22;

 private:
  [[nodiscard]] bool prepare(const PixelArea& needed, const ImageHeader& header);

  JpegReader reader_;
  JpegBlocks blocks_;
  ResizeAxis columns_, rows_;
  std::span<const std::uint8_t> file_;
  ImageJob job_;
  std::size_t part_bytes_ = 0;
};

// Gives the job its places in the scratch memory from `at` on; returns their end.
std::uint64_t place_in_scratch(ImageJob& job, std::uint64_t at);

}  // namespace ridgeline
