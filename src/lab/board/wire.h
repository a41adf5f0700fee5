#pragma once

// What TensorBoard's event files are made of: messages in the wire format of protocol buffers, and
// records with check sums around them.

#include <cstdint>
#include <span>
#include <string>
#include <string_view>

namespace ridgeline {

// The check sum of Castagnoli, and the form in which records carry it.
[[nodiscard]] std::uint32_t crc32c(std::string_view bytes);
[[nodiscard]] std::uint32_t masked_crc32c(std::string_view bytes);

// One message, field by field; a message within another is one of its bytes fields.
class WireMessage {
 public:
  WireMessage& integer(int field, std::int64_t value);
  WireMessage& real64(int field, double value);
  WireMessage& real32(int field, float value);
  WireMessage& bytes(int field, std::string_view value);

  [[nodiscard]] const std::string& text() const { return text_; }

 private:
  void varint(std::uint64_t value);
  void tag(int field, int wire_type);

  std::string text_;
};

// Length, check sum of the length, data, check sum of the data.
[[nodiscard]] std::string framed(std::string_view data);

}  // namespace ridgeline
