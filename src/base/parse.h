#pragma once

// Numbers and parts in text.

#include <charconv>
#include <cmath>
#include <concepts>
#include <optional>
#include <string_view>
#include <vector>

namespace ridgeline {

// The number that the whole text is; nothing where it is none, out of range or not finite.
template <typename Number>
[[nodiscard]] std::optional<Number> number_in(std::string_view text) {
  Number number{};
  const char* last = text.data() + text.size();
  const auto [end, error] = std::from_chars(text.data(), last, number);
  if (error != std::errc() || end != last) return std::nullopt;
  if constexpr (std::floating_point<Number>) {
    if (!std::isfinite(number)) return std::nullopt;
  }
  return number;
}

// The parts between the separators: "a,,b" has three, "" has one. REQUIRES: a separator.
[[nodiscard]] inline std::vector<std::string_view> pieces_of(std::string_view text,
                                                             std::string_view separator) {
  std::vector<std::string_view> pieces;
  for (;;) {
    const std::size_t end = text.find(separator);
    pieces.push_back(text.substr(0, end));
    if (end == std::string_view::npos) return pieces;
    text.remove_prefix(end + separator.size());
  }
}

}  // namespace ridgeline
