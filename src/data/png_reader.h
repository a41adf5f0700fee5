#pragma once

// PNG through libpng; the half of ImageDecoder that its header does not show.

#include <cstdint>
#include <memory>
#include <span>
#include <string>
#include <vector>

#include "data/image_decoder.h"

namespace ridgeline {

class PngReader {
 public:
  PngReader();
  ~PngReader();
  PngReader(const PngReader&) = delete;
  PngReader& operator=(const PngReader&) = delete;

  ImageHeader open(std::span<const std::uint8_t> bytes, const std::string& name);
  // The whole image: rows depend on the ones above.
  DecodedArea decode(std::vector<std::uint8_t>& buffer);

 private:
  struct State;
  std::unique_ptr<State> state_;
};

}  // namespace ridgeline
