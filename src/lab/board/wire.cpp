#include "lab/board/wire.h"

#include <array>
#include <bit>

namespace ridgeline {
namespace {

// Wire types of protocol buffers.
constexpr int kVarint = 0, kFixed64 = 1, kLengthDelimited = 2, kFixed32 = 5;

constexpr std::uint32_t kCastagnoli = 0x82F63B78;  // reflected
constexpr std::uint32_t kMask = 0xA282EAD8;

constexpr std::array<std::uint32_t, 256> make_table() {
  std::array<std::uint32_t, 256> table{};
  for (std::uint32_t byte = 0; byte < table.size(); ++byte) {
    std::uint32_t rest = byte;
    for (int bit = 0; bit < 8; ++bit) rest = (rest >> 1) ^ ((rest & 1) != 0 ? kCastagnoli : 0);
    table[byte] = rest;
  }
  return table;
}

// Lowest byte first, whatever the machine does.
template <typename Number>
void append_fixed(std::string& text, Number value) {
  for (std::size_t i = 0; i < sizeof(Number); ++i) {
    text += static_cast<char>((value >> (8 * i)) & 0xFF);
  }
}

}  // namespace

std::uint32_t crc32c(std::string_view bytes) {
  static constexpr std::array<std::uint32_t, 256> kTable = make_table();
  std::uint32_t crc = ~std::uint32_t{0};
  for (const char byte : bytes) {
    crc = (crc >> 8) ^ kTable[(crc ^ static_cast<unsigned char>(byte)) & 0xFF];
  }
  return ~crc;
}

std::uint32_t masked_crc32c(std::string_view bytes) { return std::rotr(crc32c(bytes), 15) + kMask; }

void WireMessage::varint(std::uint64_t value) {
  for (; value >= 0x80; value >>= 7) text_ += static_cast<char>((value & 0x7F) | 0x80);
  text_ += static_cast<char>(value);
}

void WireMessage::tag(int field, int wire_type) {
  varint(static_cast<std::uint64_t>(field * 8 + wire_type));
}

WireMessage& WireMessage::integer(int field, std::int64_t value) {
  tag(field, kVarint);
  varint(static_cast<std::uint64_t>(value));
  return *this;
}

WireMessage& WireMessage::real64(int field, double value) {
  tag(field, kFixed64);
  append_fixed(text_, std::bit_cast<std::uint64_t>(value));
  return *this;
}

WireMessage& WireMessage::real32(int field, float value) {
  tag(field, kFixed32);
  append_fixed(text_, std::bit_cast<std::uint32_t>(value));
  return *this;
}

WireMessage& WireMessage::bytes(int field, std::string_view value) {
  tag(field, kLengthDelimited);
  varint(value.size());
  text_ += value;
  return *this;
}

std::string framed(std::string_view data) {
  std::string record;
  append_fixed(record, static_cast<std::uint64_t>(data.size()));
  append_fixed(record, masked_crc32c(record));
  record += data;
  append_fixed(record, masked_crc32c(data));
  return record;
}

}  // namespace ridgeline
