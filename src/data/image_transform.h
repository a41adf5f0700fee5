#pragma once

// Which part of an image a network sees: torchvision's random resized crop for training, its
// resize and centre crop for evaluation.

#include <cstdint>
#include <span>

#include "data/image_decoder.h"
#include "data/image_source.h"
#include "data/resize.h"

namespace ridgeline {

struct FrameSize {
  int height = 0, width = 0;
};

// A crop of 8% to 100% of the image's area with a ratio of sides of 3/4 to 4/3, at a random place:
// a pure function of its arguments. All of it is resized to the target.
[[nodiscard]] PixelArea random_crop(FrameSize image, std::uint64_t seed, std::int64_t epoch,
                                    std::int32_t sample);
[[nodiscard]] Resize crop_transform(const PixelArea& crop, FrameSize target);

// The image resized so that it covers 256/224 of the target, of which the centre is taken. An image
// that has the target's size already is taken as it is.
[[nodiscard]] Resize evaluation_transform(FrameSize image, FrameSize target);

struct TransformRequest {
  FrameSize target = {};
  int channels = 3;
  bool crop = false;  // else the transform of evaluation
  std::uint64_t seed = 0;
  std::int64_t epoch = 0;
  std::int32_t sample = 0;
};

// What of a stored image is decoded and what becomes of it: the transform as the stored, perhaps
// turned, image needs it, and the scale in eighths at which it is decoded.
struct StoredTransform {
  Resize resize;
  int eighths = 8;
};
[[nodiscard]] StoredTransform stored_transform(const ImageHeader& header,
                                               const TransformRequest& request);

// Decodes, crops and resizes one image into channels x height x width pixels. Training decodes
// JPEG at a half, a quarter or an eighth where the crop stays at least as large as the target;
// evaluation always decodes at full size.
void transform_image(ImageDecoder& decoder, Resizer& resizer, const StoredImage& image,
                     const std::string& name, const TransformRequest& request,
                     std::vector<std::uint8_t>& scratch, std::span<std::uint8_t> pixels);

}  // namespace ridgeline
