#include "data/huffman.h"

#include <algorithm>
#include <cstring>

namespace ridgeline {
namespace {

constexpr int kMostDcBits = 11, kMostAcBits = 10;  // of 8-bit baseline images
constexpr std::uint8_t kMarker = 0xFF;
// More zeros than a block can take, so that its end need not be looked for in between.
constexpr std::size_t kPadding = 512;

// Of coefficients in the order of the file: their positions in rows. Behind the last one follows
// room for what a damaged file may count to.
constexpr std::array<std::uint8_t, 256> kZigzag = {
    0,  1,  8,  16, 9,  2,  3,  10, 17, 24, 32, 25, 18, 11, 4,  5,  12, 19, 26, 33, 40, 48,
    41, 34, 27, 20, 13, 6,  7,  14, 21, 28, 35, 42, 49, 56, 57, 50, 43, 36, 29, 22, 15, 23,
    30, 37, 44, 51, 58, 59, 52, 45, 38, 31, 39, 46, 53, 60, 61, 54, 47, 55, 62, 63};

std::uint32_t coefficient(std::int32_t value, std::uint32_t position) {
  return static_cast<std::uint32_t>(value) << 16 | position;
}

// Numbers that begin with 0 are negative.
std::int32_t signed_number(std::uint32_t bits, int size) {
  const auto value = static_cast<std::int32_t>(bits);
  return value < 1 << (size - 1) ? value - (1 << size) + 1 : value;
}

}  // namespace

// Into the tables by the next bits.
void HuffmanTable::note_symbol(std::uint32_t code, int length, std::uint8_t symbol) {
  if (length > kLookBits) return;
  const int rest = kLookBits - length;
  const std::uint32_t first = code << rest;
  const int size = symbol & 15, run = symbol >> 4;
  for (std::uint32_t i = 0; i < 1U << rest; ++i) {
    symbols_[first + i] = static_cast<std::uint16_t>(length << 8 | symbol);
    Coded& coded = coefficients_[first + i];
    if (size == 0) {
      if (symbol != 0 && symbol != 0xF0) continue;
      coded = {static_cast<std::uint8_t>(length),
               static_cast<std::uint8_t>(symbol == 0 ? kEndOfBlock : run + 1), 0};
    } else if (size <= rest && size <= kMostAcBits) {
      coded = {static_cast<std::uint8_t>(length + size), static_cast<std::uint8_t>(run + 1),
               static_cast<std::int16_t>(signed_number(i >> (rest - size), size))};
    }
  }
}

bool HuffmanTable::set(const std::uint8_t* counts, const std::uint8_t* symbols, int most) {
  int total = 0;
  for (int i = 0; i < kMostBits; ++i) total += counts[i];
  if (total == 0 || total > 256) return false;
  if (std::equal(counts_.begin(), counts_.end(), counts) &&
      std::equal(symbols, symbols + total, all_.begin())) {
    return true;
  }
  counts_.fill(0);  // a table that is refused is none
  coefficients_.fill({});
  symbols_.fill(0);
  std::copy_n(symbols, total, all_.begin());
  std::uint32_t code = 0;
  std::int32_t place = 0;
  for (int length = 1; length <= kMostBits; ++length, code <<= 1) {
    const auto l = static_cast<std::size_t>(length);
    to_place_[l] = place - static_cast<std::int32_t>(code);
    for (int i = 0; i < counts[length - 1]; ++i, ++code, ++place) {
      if (code >= 1U << length || symbols[place] > most) return false;
      note_symbol(code, length, symbols[place]);
    }
    // As libjpeg: no code is all ones.
    if (counts[length - 1] > 0 && code >= 1U << length) return false;
    above_[l] = code << (kMostBits - length);
  }
  above_[kMostBits + 1] = ~0U;
  std::copy_n(counts, kMostBits, counts_.begin());
  return true;
}

ScanDecoder::ScanDecoder(std::span<const std::uint8_t> bytes, std::vector<std::uint8_t>& buffer)
    : rest_(bytes), buffer_(buffer) {
  take_segment();
}

// The bytes up to the next marker. A 0xFF that is none is followed by a zero.
void ScanDecoder::take_segment() {
  if (buffer_.size() < rest_.size() + kPadding) buffer_.resize(rest_.size() + kPadding);
  std::uint8_t* to = buffer_.data();
  const std::uint8_t* from = rest_.data();
  const std::uint8_t* const end = from + rest_.size();
  while (from < end) {
    const void* found = std::memchr(from, kMarker, static_cast<std::size_t>(end - from));
    const std::uint8_t* marker = found != nullptr ? static_cast<const std::uint8_t*>(found) : end;
    std::memcpy(to, from, static_cast<std::size_t>(marker - from));
    to += marker - from;
    from = marker;
    if (end - from < 2 || from[1] != 0) break;
    *to++ = kMarker;
    from += 2;
  }
  rest_ = {from, end};
  std::memset(to, 0, kPadding);
  at_ = buffer_.data();
  end_ = to;
  bits_ = 0;
  count_ = 0;
}

inline void ScanDecoder::fill() {
  std::uint64_t bytes = 0;
  std::memcpy(&bytes, at_, sizeof(bytes));
  bits_ |= __builtin_bswap64(bytes) >> count_;
  at_ += (63 - count_) >> 3;
  count_ |= 56;
}

// REQUIRES: after fill().
inline int ScanDecoder::symbol(const HuffmanTable& table) {
  const std::uint16_t found = table.symbols_[bits_ >> (64 - HuffmanTable::kLookBits)];
  if (found != 0) {
    pass(found >> 8);
    return found & 0xFF;
  }
  const auto next = static_cast<std::uint32_t>(bits_ >> (64 - HuffmanTable::kMostBits));
  int length = HuffmanTable::kLookBits + 1;
  while (next >= table.above_[static_cast<std::size_t>(length)]) ++length;
  if (length > HuffmanTable::kMostBits) return -1;
  const auto code = static_cast<std::int32_t>(next >> (HuffmanTable::kMostBits - length));
  const std::int32_t place = code + table.to_place_[static_cast<std::size_t>(length)];
  pass(length);
  return table.all_[static_cast<std::size_t>(place & 0xFF)];
}

// REQUIRES: bits > 0.
inline std::int32_t ScanDecoder::number(int bits) {
  const auto value = static_cast<std::uint32_t>(bits_ >> (64 - bits));
  pass(bits);
  return signed_number(value, bits);
}

int ScanDecoder::block(const HuffmanTable& dc, const HuffmanTable& ac, std::int32_t& predicted,
                       std::uint32_t* to) {
  std::uint32_t* const begin = to;
  fill();
  const int size = symbol(dc);
  if (size < 0 || size > kMostDcBits) return -1;
  if (size > 0) {
    // A damaged scan may add up to anything.
    predicted = static_cast<std::int32_t>(static_cast<std::uint32_t>(predicted) +
                                          static_cast<std::uint32_t>(number(size)));
  }
  *to = coefficient(predicted, 0);
  to += predicted != 0;
  std::uint32_t k = 0;
  while (k < kBlock - 1) {
    fill();
    const HuffmanTable::Coded coded = ac.coefficients_[bits_ >> (64 - HuffmanTable::kLookBits)];
    if (coded.bits != 0) [[likely]] {
      pass(coded.bits);
      k += coded.advance;
      *to = coefficient(coded.value, kZigzag[k]);
      to += coded.value != 0;
      continue;
    }
    const int symbol_of = symbol(ac);
    if (symbol_of < 0) return -1;
    const int bits = symbol_of & 15;
    if (bits > kMostAcBits || (bits == 0 && symbol_of != 0 && symbol_of != 0xF0)) return -1;
    k +=
        symbol_of == 0 ? HuffmanTable::kEndOfBlock : static_cast<std::uint32_t>(symbol_of >> 4) + 1;
    if (bits == 0) continue;
    *to++ = coefficient(number(bits), kZigzag[k]);
  }
  const bool beyond = k >= kBlock && k < HuffmanTable::kEndOfBlock;
  // What was taken beyond the end, as bits of the buffer that were passed.
  if (beyond || (at_ - end_) * 8 > count_) return -1;
  return static_cast<int>(to - begin);
}

bool ScanDecoder::restart(int number) {
  while (rest_.size() >= 2 && rest_[0] == kMarker && rest_[1] == kMarker) rest_ = rest_.subspan(1);
  // At most a byte's rest may be left over.
  const bool at_end = (end_ - at_) * 8 + count_ < 8;
  if (!at_end || rest_.size() < 2 || rest_[0] != kMarker || rest_[1] != 0xD0 + number) return false;
  rest_ = rest_.subspan(2);
  take_segment();
  return true;
}

}  // namespace ridgeline
