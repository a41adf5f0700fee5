#include "base/utf8.h"

namespace ridgeline {
namespace {

constexpr char32_t kReplacement = 0xfffd;

}  // namespace

char32_t take_character(std::string_view& text) {
  const auto first = static_cast<unsigned char>(text[0]);
  text.remove_prefix(1);
  if (first < 0x80U) return first;
  const std::size_t more = first >= 0xf0U ? 3 : first >= 0xe0U ? 2 : 1;
  if (first < 0xc2U || first > 0xf4U || text.size() < more) return kReplacement;
  char32_t character = first & (0x3fU >> more);
  for (std::size_t i = 0; i < more; ++i) {
    const auto next = static_cast<unsigned char>(text[i]);
    if ((next & 0xc0U) != 0x80U) return kReplacement;
    character = character << 6U | (next & 0x3fU);
  }
  constexpr char32_t kLeast[] = {0x80, 0x800, 0x10000};
  const bool surrogate = character >= 0xd800 && character < 0xe000;
  if (character < kLeast[more - 1] || character > 0x10ffff || surrogate) return kReplacement;
  text.remove_prefix(more);
  return character;
}

void append_utf8(std::string& text, char32_t character) {
  const auto byte = [&](char32_t bits) { text += static_cast<char>(bits); };
  if (character < 0x80) {
    byte(character);
  } else if (character < 0x800) {
    byte(0xc0 | character >> 6);
    byte(0x80 | (character & 0x3f));
  } else if (character < 0x10000) {
    byte(0xe0 | character >> 12);
    byte(0x80 | (character >> 6 & 0x3f));
    byte(0x80 | (character & 0x3f));
  } else {
    byte(0xf0 | character >> 18);
    byte(0x80 | (character >> 12 & 0x3f));
    byte(0x80 | (character >> 6 & 0x3f));
    byte(0x80 | (character & 0x3f));
  }
}

std::string valid_utf8(std::string_view text) {
  std::string valid;
  while (!text.empty()) append_utf8(valid, take_character(text));
  return valid;
}

std::string printable(std::string_view text, std::size_t most) {
  std::string line;
  for (std::size_t count = 0; !text.empty(); ++count) {
    if (count == most) return line + "...";
    const char32_t character = take_character(text);
    const bool control = character < ' ' || (character >= 0x7f && character < 0xa0);
    append_utf8(line, control ? U'?' : character);
  }
  return line;
}

}  // namespace ridgeline
