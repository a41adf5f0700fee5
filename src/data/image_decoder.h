#pragma once

// Decodes JPEG and PNG images to 8-bit RGB, as far as a part of the image is needed.

#include <cstddef>
#include <cstdint>
#include <memory>
#include <span>
#include <string>
#include <vector>

namespace ridgeline {

// More pixels than this are refused: 2^27, an image of 11,585 x 11,585.
inline constexpr std::int64_t kMostPixels = std::int64_t{1} << 27;

enum class ImageFormat : std::uint8_t { jpeg, png };

// What the header tells, before anything is decoded.
struct ImageHeader {
  ImageFormat format = ImageFormat::jpeg;
  int width = 0, height = 0;  // as stored
  int orientation = 1;        // EXIF's 1 to 8: how the stored image is turned when it is shown
};

// Four bytes a pixel: red, green, blue, and one without meaning.
struct PixelView {
  const std::uint8_t* data = nullptr;
  std::size_t stride = 0;  // bytes from row to row
  int width = 0, height = 0;
};

struct PixelArea {
  int x = 0, y = 0, width = 0, height = 0;
};

// Pixels that cover a part of the image. Pixel (0, 0) of the view is pixel (x, y) of the image
// scaled by eighths / 8.
struct DecodedArea {
  PixelView pixels;
  int x = 0, y = 0;
  int eighths = 8;
};

// For one thread. Buffers are kept from image to image. Errors are bad_input and begin with the
// name; after one the decoder is ready for the next image.
class ImageDecoder {
 public:
  ImageDecoder();
  ~ImageDecoder();
  ImageDecoder(ImageDecoder&&) noexcept;
  ImageDecoder& operator=(ImageDecoder&&) noexcept;

  // REQUIRES: `bytes` live until the image has been decoded.
  ImageHeader open(std::span<const std::uint8_t> bytes, const std::string& name);

  // The opened image's pixels in `area`, and perhaps some around it. JPEG is decoded at eighths / 8
  // of its size, PNG at its own. The view is valid until the next call.
  // REQUIRES: open() was called since the last decode; the area lies in the image; eighths is 1, 2,
  // 4 or 8.
  DecodedArea decode(const PixelArea& area, int eighths);

  // Damage that the last decode could work around; JPEG files only.
  [[nodiscard]] int warnings() const;

 private:
  struct State;
  std::unique_ptr<State> state_;
};

// Decodes the whole image at its own size; returns the number of warnings. The entry for checking
// files and for fuzzing.
int check_image(ImageDecoder& decoder, std::span<const std::uint8_t> bytes,
                const std::string& name);

}  // namespace ridgeline
