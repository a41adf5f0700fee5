#include "data/image_transform.h"

#include <algorithm>
#include <cmath>

#include "base/error.h"
#include "base/philox.h"

namespace ridgeline {
namespace {

constexpr double kLeastArea = 0.08;
constexpr double kLeastRatio = 3.0 / 4.0, kMostRatio = 4.0 / 3.0;
constexpr int kTries = 10;
constexpr double kResizeRatio = 256.0 / 224.0;

// Numbers for one sample in one epoch. Mirroring has the counter (sample, epoch); here the upper
// half of the first word counts on.
class CropRandom {
 public:
  CropRandom(std::uint64_t seed, std::int64_t epoch, std::int32_t sample)
      : key_(stream_key(seed, RandomStream::augmentation)),
        epoch_(static_cast<std::uint64_t>(epoch)),
        sample_(static_cast<std::uint64_t>(sample)) {}

  double uniform(double low, double high) {
    const auto bits = (std::uint64_t{next()} << 32 | next()) >> 11;
    return low + (high - low) * (static_cast<double>(bits) * 0x1p-53);
  }
  // From 0 to count - 1.
  int below(int count) {
    return static_cast<int>(std::uint64_t{next()} * static_cast<std::uint64_t>(count) >> 32);
  }

 private:
  std::uint32_t next() {
    if (used_ == 4) {
      block_ = philox(key_, ++blocks_ << 32 | sample_, epoch_);
      used_ = 0;
    }
    return block_[static_cast<std::size_t>(used_++)];
  }

  std::uint64_t key_, epoch_, sample_, blocks_ = 0;
  PhiloxBlock block_{};
  int used_ = 4;
};

int rounded(double value) { return static_cast<int>(std::nearbyint(value)); }

// The whole image, or the largest part of it with an allowed ratio.
PixelArea central_crop(FrameSize image) {
  const double ratio = static_cast<double>(image.width) / image.height;
  int width = image.width, height = image.height;
  if (ratio < kLeastRatio) height = std::max(1, rounded(width / kLeastRatio));
  if (ratio > kMostRatio) width = std::max(1, rounded(height * kMostRatio));
  return {(image.width - width) / 2, (image.height - height) / 2, width, height};
}

// The same transform of an image that is stored turned: EXIF's orientation, from shown to stored.
// `shown` is the size of the shown image.
Resize as_stored(const Resize& r, int orientation, FrameSize shown) {
  if (orientation == 1) return r;
  const bool mirror_x =
      orientation == 2 || orientation == 3 || orientation == 6 || orientation == 7;
  const bool mirror_y =
      orientation == 3 || orientation == 4 || orientation == 7 || orientation == 8;
  Resize s = r;
  if (mirror_x) {
    s.box.x = shown.width - (r.box.x + r.box.width);
    s.x = r.resized_width - (r.x + r.width);
  }
  if (mirror_y) {
    s.box.y = shown.height - (r.box.y + r.box.height);
    s.y = r.resized_height - (r.y + r.height);
  }
  if (orientation >= 5) {
    std::swap(s.box.x, s.box.y);
    std::swap(s.box.width, s.box.height);
    std::swap(s.resized_width, s.resized_height);
    std::swap(s.x, s.y);
    std::swap(s.width, s.height);
  }
  return s;
}

// The smallest scale that leaves the box at least as large as what it is resized to. Only these
// scales have vector code in libjpeg-turbo; the others are slower than full size.
int eighths_for(const Resize& resize) {
  for (const int eighths : {1, 2, 4}) {
    if (resize.box.width * eighths >= 8.0 * resize.resized_width &&
        resize.box.height * eighths >= 8.0 * resize.resized_height) {
      return eighths;
    }
  }
  return 8;
}

Resize transform_of(FrameSize image, const TransformRequest& request) {
  if (!request.crop) return evaluation_transform(image, request.target);
  return crop_transform(random_crop(image, request.seed, request.epoch, request.sample),
                        request.target);
}

// Pixels as they are: nothing is moved, only put into planes.
bool takes_all(const Resize& r) {
  return r.box.x == 0.0 && r.box.y == 0.0 && r.box.width == r.width && r.box.height == r.height &&
         r.resized_width == r.width && r.resized_height == r.height;
}

void transform_decoded(Resizer& resizer, const StoredImage& image, const TransformRequest& request,
                       std::vector<std::uint8_t>& scratch, std::span<std::uint8_t> pixels) {
  const Resize resize = transform_of({image.height, image.width}, request);
  if (takes_all(resize) && image.channels == request.channels) {
    std::copy(image.bytes.begin(), image.bytes.end(), pixels.begin());
    return;
  }
  const PixelView view =
      from_planes(image.bytes, image.channels, image.height, image.width, scratch);
  to_planes(resizer.run(view, resize), 1, request.channels, pixels);
}

}  // namespace

PixelArea random_crop(FrameSize image, std::uint64_t seed, std::int64_t epoch,
                      std::int32_t sample) {
  CropRandom random(seed, epoch, sample);
  const double area = static_cast<double>(image.width) * image.height;
  for (int i = 0; i < kTries; ++i) {
    const double part = area * random.uniform(kLeastArea, 1.0);
    const double ratio = std::exp(random.uniform(std::log(kLeastRatio), std::log(kMostRatio)));
    const int width = rounded(std::sqrt(part * ratio)), height = rounded(std::sqrt(part / ratio));
    if (width < 1 || height < 1 || width > image.width || height > image.height) continue;
    const int y = random.below(image.height - height + 1);
    const int x = random.below(image.width - width + 1);
    return {x, y, width, height};
  }
  return central_crop(image);
}

Resize crop_transform(const PixelArea& crop, FrameSize target) {
  return {.box = {static_cast<double>(crop.x), static_cast<double>(crop.y),
                  static_cast<double>(crop.width), static_cast<double>(crop.height)},
          .resized_width = target.width,
          .resized_height = target.height,
          .x = 0,
          .y = 0,
          .width = target.width,
          .height = target.height};
}

Resize evaluation_transform(FrameSize image, FrameSize target) {
  Resize resize = crop_transform({0, 0, image.width, image.height}, target);
  if (image.width == target.width && image.height == target.height) return resize;
  const int height = rounded(target.height * kResizeRatio);
  const int width = rounded(target.width * kResizeRatio);
  // The side that is short in relation to the target gets its size, the other one follows, cut to
  // whole pixels.
  const auto follow = [](int size, int longer, int shorter) {
    return static_cast<int>(std::int64_t{size} * longer / shorter);
  };
  if (std::int64_t{image.width} * height <= std::int64_t{image.height} * width) {
    resize.resized_width = width;
    resize.resized_height = std::max(target.height, follow(width, image.height, image.width));
  } else {
    resize.resized_height = height;
    resize.resized_width = std::max(target.width, follow(height, image.width, image.height));
  }
  resize.x = rounded((resize.resized_width - target.width) / 2.0);
  resize.y = rounded((resize.resized_height - target.height) / 2.0);
  return resize;
}

StoredTransform stored_transform(const ImageHeader& header, const TransformRequest& request) {
  const bool turned = header.orientation >= 5;
  const FrameSize shown = {turned ? header.width : header.height,
                           turned ? header.height : header.width};
  StoredTransform transform{as_stored(transform_of(shown, request), header.orientation, shown), 8};
  if (header.format == ImageFormat::jpeg && request.crop) {
    transform.eighths = eighths_for(transform.resize);
  }
  return transform;
}

void transform_image(ImageDecoder& decoder, Resizer& resizer, const StoredImage& image,
                     const std::string& name, const TransformRequest& request,
                     std::vector<std::uint8_t>& scratch, std::span<std::uint8_t> pixels) {
  if (image.decoded) return transform_decoded(resizer, image, request, scratch, pixels);
  const ImageHeader header = decoder.open(image.bytes, name);
  auto [resize, eighths] = stored_transform(header, request);
  const DecodedArea area = decoder.decode(resize.needed(), eighths);
  const double scale = area.eighths / 8.0;
  resize.box = {resize.box.x * scale - area.x, resize.box.y * scale - area.y,
                resize.box.width * scale, resize.box.height * scale};
  to_planes(resizer.run(area.pixels, resize), header.orientation, request.channels, pixels);
}

}  // namespace ridgeline
