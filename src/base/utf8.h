#pragma once

// Text that may hold anything, as characters.

#include <string>
#include <string_view>

namespace ridgeline {

// Takes the first character off a text that is not empty. Bytes that are no UTF-8 become U+FFFD.
[[nodiscard]] char32_t take_character(std::string_view& text);

void append_utf8(std::string& text, char32_t character);

[[nodiscard]] std::string valid_utf8(std::string_view text);

// Text from a file, fit for one line of a terminal: control characters become '?', and what follows
// after `most` characters "...".
[[nodiscard]] std::string printable(std::string_view text, std::size_t most = 2000);

}  // namespace ridgeline
