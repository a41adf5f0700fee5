#pragma once

// JPEG through libjpeg-turbo; the half of ImageDecoder that its header does not show.

#include <cstdint>
#include <memory>
#include <span>
#include <string>
#include <vector>

#include "data/image_decoder.h"

namespace ridgeline {

class JpegReader {
 public:
  JpegReader();
  ~JpegReader();
  JpegReader(const JpegReader&) = delete;
  JpegReader& operator=(const JpegReader&) = delete;

  ImageHeader open(std::span<const std::uint8_t> bytes, const std::string& name);
  DecodedArea decode(const PixelArea& area, int eighths, std::vector<std::uint8_t>& buffer);
  [[nodiscard]] int warnings() const;

 private:
  struct State;
  std::unique_ptr<State> state_;
};

}  // namespace ridgeline
