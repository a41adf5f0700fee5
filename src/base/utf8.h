#pragma once

// Text that may hold anything, as characters.

#include <string>
#include <string_view>

namespace ridgeline {

// Takes the first character off a text that is not empty. Bytes that are no UTF-8 become U+FFFD.
[[nodiscard]] char32_t take_character(std::string_view& text);

void append_utf8(std::string& text, char32_t character);

[[nodiscard]] std::string valid_utf8(std::string_view text);

}  // namespace ridgeline
