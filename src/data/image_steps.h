#pragma once

// The last steps of decoding a JPEG image, in numbers: inverse transform of its blocks, colours at
// full size, resizing. Whatever computes them, the host or a device, the bits are those of
// libjpeg-turbo and of Resizer. What libjpeg-turbo does is told in its documentation: its accurate
// integer transform (Loeffler, Ligtenberg and Moschytz with 11 multiplications) and its triangle
// filter for colours.

#include <cstddef>
#include <cstdint>

#include "data/resize_axis.h"

namespace ridgeline {

inline constexpr int kBlockSide = 8;
inline constexpr int kBlockPixels = 64;

// A colour channel of a JPEG image, as far as an area needs it.
struct BlockChannel {
  std::int32_t first_x = 0, first_y = 0;      // of its blocks
  std::int32_t columns = 0, rows = 0;         // of blocks
  std::int32_t samples_x = 0, samples_y = 0;  // of the whole channel
  std::int32_t shift_x = 0, shift_y = 0;      // 1: half as many samples as the image has pixels
  std::int32_t first_block = 0;               // among the blocks of all channels
  std::int32_t reserved = 0;
  std::uint64_t plane = 0;  // where its samples lie; a plane's row has 8 * columns bytes
  std::uint16_t quantisation[kBlockPixels] = {};

  [[nodiscard]] constexpr std::int32_t stride() const { return columns * kBlockSide; }
};

// How the pixels of an image come about.
enum class ImageForm : std::int32_t {
  finished,  // the host has made them
  blocks,    // from coefficients of its blocks
  pixels,    // from pixels of the whole image that another decoder has put there
};

// One image on its way into a batch. Places are offsets: those of `parts` from the beginning of
// what the host has sent, the others from the beginning of the scratch memory.
struct ImageJob {
  ImageForm form = ImageForm::finished;
  std::int32_t orientation = 1;
  std::int32_t channels = 0, blocks = 0;  // of the stored image
  BlockChannel channel[3];
  // Parts: which of the coefficients are each block's (see block_start), and the coefficients, of
  // which each is its value << 16 | its position.
  std::uint64_t starts = 0, coefficients = 0;
  // Or the file for another decoder (a part), which puts all pixels, three bytes each, where
  // `pixels` says. The area is the whole image then.
  std::uint64_t file = 0, file_bytes = 0;
  // The image's pixels that are needed.
  std::int32_t area_x = 0, area_y = 0, area_width = 0, area_height = 0;
  std::uint64_t pixels = 0, pixel_stride = 0;
  std::int32_t pixel_bytes = 4;
  // What they are resized to; the axes are parts.
  std::int32_t width = 0, height = 0;
  std::int32_t most_x = 0, most_y = 0;        // pixels that make up one
  std::int32_t first_row = 0, kept_rows = 0;  // that are resized along rows
  std::int32_t reserved = 0;
  std::uint64_t axis_x = 0, axis_y = 0, between = 0;
};

// The first of a block's coefficients and how many they are, up to 64.
constexpr std::uint32_t block_start(std::uint64_t first, std::int32_t count) {
  return static_cast<std::uint32_t>(first << 7) | static_cast<std::uint32_t>(count);
}
constexpr std::uint32_t block_begin(std::uint32_t start) { return start >> 7; }
constexpr std::uint32_t block_end(std::uint32_t start) { return (start >> 7) + (start & 127U); }

namespace image_steps {

constexpr std::uint8_t to_byte(std::int32_t value) {
  return static_cast<std::uint8_t>(value < 0 ? 0 : value > 255 ? 255 : value);
}

constexpr std::int32_t between(std::int32_t value, std::int32_t low, std::int32_t high) {
  return value < low ? low : value > high ? high : value;
}

// One column or row of the inverse transform: eight numbers, `step` apart, in place. Sums wrap
// around, so that hostile files do no harm.
template <int kShift>
constexpr void inverse_transform(std::int32_t* at, int step) {
  const auto in = [&](int i) { return static_cast<std::uint32_t>(at[i * step]); };
  const std::uint32_t even = (in(2) + in(6)) * 4433U;
  const std::uint32_t turned = even - in(6) * 15137U, kept = even + in(2) * 6270U;
  const std::uint32_t sum = (in(0) + in(4)) << 13, difference = (in(0) - in(4)) << 13;
  const std::uint32_t evens[4] = {sum + kept, difference + turned, difference - turned, sum - kept};

  const std::uint32_t z1 = (in(7) + in(1)) * 7373U, z2 = (in(5) + in(3)) * 20995U;
  const std::uint32_t z5 = (in(7) + in(3) + in(5) + in(1)) * 9633U;
  const std::uint32_t z3 = z5 - (in(7) + in(3)) * 16069U, z4 = z5 - (in(5) + in(1)) * 3196U;
  const std::uint32_t odds[4] = {in(1) * 12299U - z1 + z4, in(3) * 25172U - z2 + z3,
                                 in(5) * 16819U - z2 + z4, in(7) * 2446U - z1 + z3};

  const auto rounded = [](std::uint32_t value) {
    return static_cast<std::int32_t>(value + (1U << (kShift - 1))) >> kShift;
  };
  for (int i = 0; i < 4; ++i) {
    at[i * step] = rounded(evens[i] + odds[i]);
    at[(7 - i) * step] = rounded(evens[i] - odds[i]);
  }
}

inline constexpr int kColumnShift = 11, kRowShift = 18;

// A coefficient as it is stored, to its place in a block of 64 numbers in rows.
constexpr void put_coefficient(std::uint32_t coefficient, const std::uint16_t* quantisation,
                               std::int32_t* block) {
  const std::uint32_t position = coefficient & 63U;
  const auto value = static_cast<std::int16_t>(coefficient >> 16);
  block[position] = static_cast<std::int16_t>(value * std::int32_t{quantisation[position]});
}

// A sample of a channel at a pixel of the image, where channels of half the size grow by a triangle
// filter. `scratch` is where planes lie.
constexpr std::int32_t sample_at(const BlockChannel& channel, const std::uint8_t* scratch,
                                 std::int32_t x, std::int32_t y) {
  const std::uint8_t* plane = scratch + channel.plane;
  const std::int32_t left = channel.first_x * kBlockSide, top = channel.first_y * kBlockSide;
  const auto at = [&](std::int32_t column, std::int32_t row) -> std::int32_t {
    return plane[(between(row, 0, channel.samples_y - 1) - top) * channel.stride() +
                 between(column, 0, channel.samples_x - 1) - left];
  };
  if (channel.shift_x == 0) return at(x, y);
  const std::int32_t column = x >> 1, next = (x & 1) != 0 ? column + 1 : column - 1;
  if (channel.shift_y == 0) {
    return (3 * at(column, y) + at(next, y) + ((x & 1) != 0 ? 2 : 1)) >> 2;
  }
  const std::int32_t row = y >> 1, near = (y & 1) != 0 ? row + 1 : row - 1;
  const std::int32_t here = 3 * at(column, row) + at(column, near);
  const std::int32_t beside = 3 * at(next, row) + at(next, near);
  return (3 * here + beside + ((x & 1) != 0 ? 7 : 8)) >> 4;
}

// Pixel (x, y) of the image's area as red, green and blue.
constexpr void colour_at(const ImageJob& job, const std::uint8_t* scratch, std::int32_t x,
                         std::int32_t y, std::uint8_t* rgb) {
  x += job.area_x;
  y += job.area_y;
  const std::int32_t light = sample_at(job.channel[0], scratch, x, y);
  if (job.channels == 1) {
    rgb[0] = rgb[1] = rgb[2] = static_cast<std::uint8_t>(light);
    return;
  }
  constexpr std::int32_t kHalf = 1 << 15;
  const std::int32_t blue = sample_at(job.channel[1], scratch, x, y) - 128;
  const std::int32_t red = sample_at(job.channel[2], scratch, x, y) - 128;
  rgb[0] = to_byte(light + ((91881 * red + kHalf) >> 16));
  rgb[1] = to_byte(light + ((-22554 * blue - 46802 * red + kHalf) >> 16));
  rgb[2] = to_byte(light + ((116130 * blue + kHalf) >> 16));
}

// An axis of a resize as it lies in memory: firsts, counts, weights.
struct AxisView {
  const std::int32_t *first, *count, *weights;
  std::int32_t most;
};
constexpr AxisView axis_view(const std::int32_t* numbers, std::int32_t size, std::int32_t most) {
  return {numbers, numbers + size, numbers + 2 * size, most};
}

// Pixel `i` of the window along an axis: three bytes from pixels `step` bytes apart, of which
// `first` is the one with number `offset`.
constexpr void resize_pixel(const AxisView& axis, std::int32_t i, std::int32_t offset,
                            const std::uint8_t* first, std::size_t step, std::uint8_t* rgb) {
  std::int32_t sums[3] = {1 << (kResizeWeightBits - 1), 1 << (kResizeWeightBits - 1),
                          1 << (kResizeWeightBits - 1)};
  const std::uint8_t* pixel = first + static_cast<std::size_t>(axis.first[i] - offset) * step;
  const std::int32_t* weights = axis.weights + std::int64_t{i} * axis.most;
  for (std::int32_t k = 0; k < axis.count[i]; ++k, pixel += step) {
    for (int c = 0; c < 3; ++c) sums[c] += pixel[c] * weights[k];
  }
  for (int c = 0; c < 3; ++c) rgb[c] = to_byte(sums[c] >> kResizeWeightBits);
}

// Where pixel (x, y) of the stored window, of width x height, lies in a plane of the shown image.
constexpr std::size_t place_shown(std::int32_t orientation, std::int32_t x, std::int32_t y,
                                  std::int32_t width, std::int32_t height) {
  const ImageTurn turn = turn_of(orientation);
  const std::int32_t to_x = turn.mirrored_x ? width - 1 - x : x;
  const std::int32_t to_y = turn.mirrored_y ? height - 1 - y : y;
  return static_cast<std::size_t>(turn.transposed ? to_x * height + to_y : to_y * width + to_x);
}

}  // namespace image_steps
}  // namespace ridgeline
