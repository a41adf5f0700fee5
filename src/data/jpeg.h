#pragma once

// JPEG through libjpeg-turbo; the half of ImageDecoder that its header does not show.

#include <array>
#include <cstdint>
#include <memory>
#include <span>
#include <string>
#include <vector>

#include "data/image_decoder.h"
#include "data/image_steps.h"

namespace ridgeline {

// An area of a JPEG image with its entropy coding undone: what is left of decoding is arithmetic
// (image_steps.h).
struct JpegBlocks {
  // The area, which holds what was asked for and begins where decode() would begin.
  int x = 0, y = 0, width = 0, height = 0;
  int channels = 0;  // 1: grey
  std::array<BlockChannel, 3> channel;
  // Of all blocks, channel by channel; see ImageJob.
  std::vector<std::uint32_t> starts, coefficients;
  std::size_t coefficient_count = 0;  // the rest is room
};

struct ScanChannel;

class JpegReader {
 public:
  JpegReader();
  ~JpegReader();
  JpegReader(const JpegReader&) = delete;
  JpegReader& operator=(const JpegReader&) = delete;

  ImageHeader open(std::span<const std::uint8_t> bytes, const std::string& name);
  DecodedArea decode(const PixelArea& area, int eighths, std::vector<std::uint8_t>& buffer);
  [[nodiscard]] int warnings() const;

  // Whether the opened image is of the usual kind: 8 bits, baseline, one scan, grey or YCbCr with
  // colours at full size, at half the width, or at half the width and height.
  [[nodiscard]] bool usual() const;
  // Reads what decode() would decode at full size. False for what is damaged in any way.
  // REQUIRES: the opened image is a usual one.
  [[nodiscard]] bool read_blocks(const PixelArea& area, JpegBlocks& blocks);

 private:
  void lay_out(const PixelArea& area, JpegBlocks& blocks) const;
  [[nodiscard]] bool read_scan(std::span<ScanChannel> scan, JpegBlocks& blocks);

  struct State;
  std::unique_ptr<State> state_;
};

}  // namespace ridgeline
