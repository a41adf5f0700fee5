#include "data/image_decoder.h"

#include <algorithm>
#include <array>

#include "base/error.h"
#include "data/jpeg.h"
#include "data/png_reader.h"

namespace ridgeline {
namespace {

constexpr std::array<std::uint8_t, 2> kJpegStart = {0xFF, 0xD8};
constexpr std::array<std::uint8_t, 8> kPngStart = {0x89, 'P', 'N', 'G', '\r', '\n', 0x1A, '\n'};

template <std::size_t size>
bool starts_with(std::span<const std::uint8_t> bytes, const std::array<std::uint8_t, size>& start) {
  return bytes.size() >= size && std::equal(start.begin(), start.end(), bytes.begin());
}

std::string first_bytes(std::span<const std::uint8_t> bytes) {
  std::string text;
  for (const std::uint8_t byte : bytes.first(std::min<std::size_t>(4, bytes.size()))) {
    text += fmt::format("{}{:02x}", text.empty() ? "" : " ", byte);
  }
  return text;
}

}  // namespace

struct ImageDecoder::State {
  JpegReader jpeg;
  PngReader png;
  ImageFormat format = ImageFormat::jpeg;
  std::vector<std::uint8_t> buffer;
};

ImageDecoder::ImageDecoder() : state_(std::make_unique<State>()) {}
ImageDecoder::~ImageDecoder() = default;
ImageDecoder::ImageDecoder(ImageDecoder&&) noexcept = default;
ImageDecoder& ImageDecoder::operator=(ImageDecoder&&) noexcept = default;

ImageHeader ImageDecoder::open(std::span<const std::uint8_t> bytes, const std::string& name) {
  ImageHeader header;
  if (starts_with(bytes, kJpegStart)) {
    header = state_->jpeg.open(bytes, name);
  } else if (starts_with(bytes, kPngStart)) {
    header = state_->png.open(bytes, name);
  } else if (bytes.empty()) {
    bad_input("{}: is empty", name);
  } else {
    bad_input("{}: is neither a JPEG nor a PNG image: it begins with the bytes {}", name,
              first_bytes(bytes));
  }
  state_->format = header.format;
  return header;
}

DecodedArea ImageDecoder::decode(const PixelArea& area, int eighths) {
  return state_->format == ImageFormat::jpeg ? state_->jpeg.decode(area, eighths, state_->buffer)
                                             : state_->png.decode(state_->buffer);
}

int ImageDecoder::warnings() const {
  return state_->format == ImageFormat::jpeg ? state_->jpeg.warnings() : 0;
}

int check_image(ImageDecoder& decoder, std::span<const std::uint8_t> bytes,
                const std::string& name) {
  const ImageHeader header = decoder.open(bytes, name);
  (void)decoder.decode({0, 0, header.width, header.height}, 8);
  return decoder.warnings();
}

}  // namespace ridgeline
