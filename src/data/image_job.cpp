#include "data/image_job.h"

#include <algorithm>
#include <array>
#include <cstring>

#include "base/error.h"

namespace ridgeline {
namespace {

constexpr std::uint64_t kScratchAlignment = 256;
constexpr int kFileBytesOfPixel = 3;

std::uint64_t rounded_up(std::uint64_t bytes, std::uint64_t alignment) {
  return (bytes + alignment - 1) / alignment * alignment;
}

std::size_t part_room(std::size_t bytes) {
  return rounded_up(bytes, ImageJobMaker::kPartAlignment);
}

template <typename Number>
std::size_t part_room(const std::vector<Number>& numbers) {
  return part_room(numbers.size() * sizeof(Number));
}

std::size_t axis_room(const ResizeAxis& axis) {
  return part_room((2 * axis.first.size() + axis.weights.size()) * sizeof(std::int32_t));
}

// Other decoders may not notice that a file is cut off.
bool has_end(std::span<const std::uint8_t> file) {
  constexpr std::size_t kLast = 64;
  constexpr std::array<std::uint8_t, 2> kEnd = {0xFF, 0xD9};
  const auto last = file.last(std::min(kLast, file.size()));
  return std::search(last.begin(), last.end(), kEnd.begin(), kEnd.end()) != last.end();
}

bool begins_as_jpeg(std::span<const std::uint8_t> file) {
  return file.size() > 2 && file[0] == 0xFF && file[1] == 0xD8;
}

// Writes parts one after the other and tells where each begins.
class PartWriter {
 public:
  PartWriter(std::uint8_t* parts, std::uint64_t at) : parts_(parts), at_(at) {}
  std::uint64_t write(const void* from, std::size_t bytes) {
    const std::uint64_t begin = at_;
    std::memcpy(parts_ + at_, from, bytes);
    at_ += part_room(bytes);
    return begin;
  }
  template <typename Number>
  std::uint64_t write(const std::vector<Number>& numbers) {
    return write(numbers.data(), numbers.size() * sizeof(Number));
  }
  std::uint64_t write(const ResizeAxis& axis) {
    const std::uint64_t begin = at_;
    std::uint8_t* to = parts_ + at_;
    for (const auto* numbers : {&axis.first, &axis.count, &axis.weights}) {
      std::memcpy(to, numbers->data(), numbers->size() * sizeof(std::int32_t));
      to += numbers->size() * sizeof(std::int32_t);
    }
    at_ += axis_room(axis);
    return begin;
  }

 private:
  std::uint8_t* parts_;
  std::uint64_t at_;
};

}  // namespace

bool ImageJobMaker::make(const StoredImage& image, const TransformRequest& request,
                         ImageForm form) {
  if (image.decoded || !begins_as_jpeg(image.bytes)) return false;
  ImageHeader header;
  try {
    header = reader_.open(image.bytes, "image");
  } catch (const Error&) {
    return false;  // the host will say what is wrong
  }
  auto [resize, eighths] = stored_transform(header, request);
  if (!reader_.usual() || eighths != 8) return false;
  job_ = {};
  job_.form = form;
  job_.orientation = header.orientation;
  file_ = image.bytes;
  if (!prepare(resize.needed(), header)) return false;
  columns_.fill(resize.box.x - job_.area_x, resize.box.width, resize.resized_width, resize.x,
                resize.width, job_.area_width);
  rows_.fill(resize.box.y - job_.area_y, resize.box.height, resize.resized_height, resize.y,
             resize.height, job_.area_height);
  job_.width = resize.width;
  job_.height = resize.height;
  job_.most_x = columns_.most;
  job_.most_y = rows_.most;
  job_.first_row = rows_.begin;
  job_.kept_rows = rows_.end - rows_.begin;
  part_bytes_ = axis_room(columns_) + axis_room(rows_);
  part_bytes_ +=
      form == ImageForm::blocks
          ? part_room(blocks_.starts) + part_room(blocks_.coefficient_count * sizeof(std::uint32_t))
          : part_room(file_.size());
  return true;
}

// Of the image, what the window needs: its blocks, or all of it.
bool ImageJobMaker::prepare(const PixelArea& needed, const ImageHeader& header) {
  if (job_.form == ImageForm::pixels) {
    job_.area_width = header.width;
    job_.area_height = header.height;
    return has_end(file_) && std::int64_t{header.width} * header.height <= kMostAreaPixels;
  }
  if (std::int64_t{needed.width} * needed.height > kMostAreaPixels) return false;
  if (!reader_.read_blocks(needed, blocks_)) return false;
  job_.channels = blocks_.channels;
  job_.blocks = static_cast<std::int32_t>(blocks_.starts.size());
  std::copy(blocks_.channel.begin(), blocks_.channel.end(), job_.channel);
  job_.area_x = blocks_.x;
  job_.area_y = blocks_.y;
  job_.area_width = blocks_.width;
  job_.area_height = blocks_.height;
  return true;
}

ImageJob ImageJobMaker::put(std::uint8_t* parts, std::uint64_t offset) const {
  ImageJob job = job_;
  PartWriter writer(parts, offset);
  job.axis_x = writer.write(columns_);
  job.axis_y = writer.write(rows_);
  if (job.form == ImageForm::blocks) {
    job.starts = writer.write(blocks_.starts);
    job.coefficients = writer.write(blocks_.coefficients.data(),
                                    blocks_.coefficient_count * sizeof(std::uint32_t));
  } else {
    job.file_bytes = file_.size();
    job.file = writer.write(file_.data(), file_.size());
  }
  return job;
}

std::uint64_t place_in_scratch(ImageJob& job, std::uint64_t at) {
  const auto take = [&](std::uint64_t bytes) {
    const std::uint64_t begin = rounded_up(at, kScratchAlignment);
    at = begin + bytes;
    return begin;
  };
  const auto area = [](std::int32_t width, std::int32_t height, int bytes) {
    return static_cast<std::uint64_t>(width) * static_cast<std::uint64_t>(height) *
           static_cast<std::uint64_t>(bytes);
  };
  if (job.form == ImageForm::blocks) {
    for (int c = 0; c < job.channels; ++c) {
      BlockChannel& channel = job.channel[c];
      channel.plane = take(area(channel.columns, channel.rows, kBlockPixels));
    }
  }
  job.pixel_bytes = job.form == ImageForm::blocks ? 4 : kFileBytesOfPixel;
  job.pixel_stride = area(job.area_width, 1, job.pixel_bytes);
  job.pixels = take(job.pixel_stride * static_cast<std::uint64_t>(job.area_height));
  job.between = take(area(job.width, job.kept_rows, 4));
  return at;
}

}  // namespace ridgeline
