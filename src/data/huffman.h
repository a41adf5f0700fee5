#pragma once

// Undoes the Huffman coding of baseline JPEG scans, for those who need coefficients and no pixels.
// It gives up at anything that is not as it should be: libjpeg-turbo then looks at the file.

#include <array>
#include <cstddef>
#include <cstdint>
#include <span>
#include <vector>

namespace ridgeline {

// The codes of a table, as a JPEG file has them: how many there are of each length from 1 to 16,
// and their symbols in the order of the codes.
class HuffmanTable {
 public:
  // False for what is no prefix code, or has a symbol above `most`. Costs nothing where the table
  // is the one of before.
  [[nodiscard]] bool set(const std::uint8_t* counts, const std::uint8_t* symbols, int most);

 private:
  friend class ScanDecoder;
  static constexpr int kLookBits = 11, kMostBits = 16;
  static constexpr int kEndOfBlock = 128;  // as an advance

  // A coefficient behind the next kLookBits bits: code and number together take `bits` of them.
  // Bits 0: they are more.
  struct Coded {
    std::uint8_t bits = 0, advance = 0;
    std::int16_t value = 0;
  };
  void note_symbol(std::uint32_t code, int length, std::uint8_t symbol);

  std::array<Coded, 1 << kLookBits> coefficients_{};
  // Length of the code << 8 | symbol; 0: it is longer.
  std::array<std::uint16_t, 1 << kLookBits> symbols_{};
  // By length: the first code above those of this length, in kMostBits bits, and what leads from a
  // code to its symbol's place in `all_`.
  std::array<std::uint32_t, kMostBits + 2> above_{};
  std::array<std::int32_t, kMostBits + 1> to_place_{};
  std::array<std::uint8_t, kMostBits> counts_{};
  std::array<std::uint8_t, 256> all_{};
};

// One pass over the bits of a scan.
class ScanDecoder {
 public:
  static constexpr int kBlock = 64;

  // `buffer` is room that is kept from scan to scan.
  ScanDecoder(std::span<const std::uint8_t> bytes, std::vector<std::uint8_t>& buffer);

  // The next block's coefficients but zeros, as ImageJob has them. `predicted` is the first
  // coefficient of the channel's block before, and becomes this one's. REQUIRES: room for
  // kBlock. Returns their number; below 0 where the scan is damaged.
  int block(const HuffmanTable& dc, const HuffmanTable& ac, std::int32_t& predicted,
            std::uint32_t* to);
  // Whether a marker follows the bits, and not the end of a file that was cut off.
  [[nodiscard]] bool ends_with_marker() const { return rest_.size() >= 2; }
  // Passes restart marker `number` (0 to 7). False where it is not there.
  [[nodiscard]] bool restart(int number);

 private:
  void take_segment();
  void fill();
  void pass(int bits) {
    bits_ <<= bits;
    count_ -= bits;
  }
  [[nodiscard]] int symbol(const HuffmanTable& table);
  [[nodiscard]] std::int32_t number(int bits);

  std::span<const std::uint8_t> rest_;  // of the scan, from the marker that ended the segment
  std::vector<std::uint8_t>& buffer_;   // the segment without its stuffing, and zeros
  const std::uint8_t *at_ = nullptr, *end_ = nullptr;
  std::uint64_t bits_ = 0;  // the next ones first; behind the first `count_` they may be there too
  int count_ = 0;
};

}  // namespace ridgeline
