#include "data/png_reader.h"

#include <png.h>

#include <cstring>
#include <new>

#include "base/error.h"
#include "data/exif.h"

namespace ridgeline {
namespace {

// Deflate gives at most 1032 bytes for one, so that a file that claims more is cut off or hostile.
constexpr std::uint64_t kMostInflation = 1032;
constexpr png_alloc_size_t kLargestChunk = 8 << 20;  // of a text or a profile

}  // namespace

struct PngReader::State {
  png_structp png = nullptr;
  png_infop info = nullptr;
  std::span<const std::uint8_t> rest;
  std::string name;
  char message[256]{};
  std::vector<png_bytep> rows;

  void close() { png_destroy_read_struct(&png, &info, nullptr); }
  [[noreturn]] void refuse() {
    close();
    // What libpng says where it gets no memory.
    if (std::strstr(message, "nsufficient memory") || std::strstr(message, "ut of memory")) {
      throw std::bad_alloc();
    }
    bad_input("{}: is not a valid PNG image: {}", name, message);
  }

  static void on_error(png_structp png, png_const_charp text) {
    auto& state = *static_cast<State*>(png_get_error_ptr(png));
    std::strncpy(state.message, text, sizeof(state.message) - 1);
    png_longjmp(png, 1);
  }
  static void on_warning(png_structp, png_const_charp) {}
  static void on_read(png_structp png, png_bytep to, std::size_t count) {
    auto& state = *static_cast<State*>(png_get_io_ptr(png));
    if (count > state.rest.size()) png_error(png, "truncated: the file ends too early");
    std::memcpy(to, state.rest.data(), count);
    state.rest = state.rest.subspan(count);
  }
};

PngReader::PngReader() : state_(std::make_unique<State>()) {}
PngReader::~PngReader() { state_->close(); }

ImageHeader PngReader::open(std::span<const std::uint8_t> bytes, const std::string& name) {
  State& s = *state_;
  s.close();
  s.name = name;
  s.rest = bytes;
  s.png = png_create_read_struct(PNG_LIBPNG_VER_STRING, &s, State::on_error, State::on_warning);
  if (s.png != nullptr) s.info = png_create_info_struct(s.png);
  if (s.info == nullptr) throw std::bad_alloc();
  if (setjmp(png_jmpbuf(s.png)) != 0) s.refuse();
  png_set_chunk_malloc_max(s.png, kLargestChunk);
  png_set_user_limits(s.png, static_cast<png_uint_32>(kMostPixels),
                      static_cast<png_uint_32>(kMostPixels));
  png_set_read_fn(s.png, &s, State::on_read);
  png_read_info(s.png, s.info);
  const std::int64_t width = png_get_image_width(s.png, s.info);
  const std::int64_t height = png_get_image_height(s.png, s.info);
  if (width * height > kMostPixels) {
    bad_input("{}: {}x{} pixels are more than {} can be", name, width, height, kMostPixels);
  }
  const std::uint64_t inflated =
      std::uint64_t{png_get_rowbytes(s.png, s.info)} * static_cast<std::uint64_t>(height);
  if (inflated > kMostInflation * bytes.size()) {
    bad_input("{}: is not a valid PNG image: {} bytes cannot hold {}x{} pixels", name, bytes.size(),
              width, height);
  }
  int orientation = 1;
  png_uint_32 exif_bytes = 0;
  png_bytep exif = nullptr;
  if (png_get_eXIf_1(s.png, s.info, &exif_bytes, &exif) != 0 && exif != nullptr) {
    orientation = exif_orientation({exif, exif_bytes});
  }
  return {.format = ImageFormat::png,
          .width = static_cast<int>(width),
          .height = static_cast<int>(height),
          .orientation = orientation};
}

DecodedArea PngReader::decode(std::vector<std::uint8_t>& buffer) {
  State& s = *state_;
  if (setjmp(png_jmpbuf(s.png)) != 0) s.refuse();
  // Everything becomes four bytes a pixel. Transparency is dropped, not blended, and of 16 bits
  // the upper 8 are taken, as Pillow does when it converts to RGB.
  const int colour = png_get_color_type(s.png, s.info);
  if (colour == PNG_COLOR_TYPE_PALETTE) png_set_palette_to_rgb(s.png);
  if ((colour & PNG_COLOR_MASK_COLOR) == 0) {
    if (png_get_bit_depth(s.png, s.info) < 8) png_set_expand_gray_1_2_4_to_8(s.png);
    png_set_gray_to_rgb(s.png);
  }
  png_set_strip_16(s.png);
  png_set_strip_alpha(s.png);
  png_set_filler(s.png, 0xFF, PNG_FILLER_AFTER);
  png_set_interlace_handling(s.png);
  png_read_update_info(s.png, s.info);
  const std::size_t width = png_get_image_width(s.png, s.info);
  const std::size_t height = png_get_image_height(s.png, s.info);
  const std::size_t stride = 4 * width;
  if (png_get_rowbytes(s.png, s.info) != stride) {
    png_error(s.png, "a kind of pixels that is not known");
  }
  if (buffer.size() < stride * height) buffer.resize(stride * height);
  s.rows.resize(height);
  for (std::size_t y = 0; y < height; ++y) s.rows[y] = buffer.data() + y * stride;
  png_read_image(s.png, s.rows.data());
  png_read_end(s.png, nullptr);
  s.close();
  return {.pixels = {.data = buffer.data(),
                     .stride = stride,
                     .width = static_cast<int>(width),
                     .height = static_cast<int>(height)}};
}

}  // namespace ridgeline
