#include "report/plot/text_size.h"

#include <algorithm>

namespace ridgeline::report::plot {
namespace {

// Widths of DejaVu Sans over its size, by kinds of letters.
double letter_width(std::string_view letter) {
  if (letter.size() > 2) return letter[0] == '\xe2' ? 0.7 : 1.05;  // dashes and arrows; else wide
  if (letter.size() == 2) return 0.64;
  const char c = letter[0];
  const auto is_in = [c](std::string_view letters) {
    return letters.find(c) != std::string_view::npos;
  };
  if (is_in("ijl'|I")) return 0.29;
  if (is_in(" .,:;!/\\")) return 0.33;
  if (is_in("frt()[]-\"`")) return 0.40;
  if (is_in("mMwW%@")) return 0.94;
  if (is_in("+=<>#~^")) return 0.83;
  if (c >= 'A' && c <= 'Z') return 0.71;
  return 0.63;
}

std::size_t letter_bytes(std::string_view text, std::size_t at) {
  std::size_t end = at + 1;
  while (end < text.size() && (static_cast<unsigned char>(text[end]) & 0xc0U) == 0x80U) ++end;
  return end - at;
}

}  // namespace

double text_width(std::string_view text, double size) {
  double width = 0.0;
  for (std::size_t at = 0; at < text.size();) {
    const std::size_t bytes = letter_bytes(text, at);
    width += letter_width(text.substr(at, bytes));
    at += bytes;
  }
  return width * size;
}

std::string shortened(std::string_view text, double width, double size) {
  if (text_width(text, size) <= width) return std::string(text);
  double used = size;  // of the ellipsis
  std::size_t end = 0;
  while (end < text.size()) {
    const std::size_t bytes = letter_bytes(text, end);
    used += letter_width(text.substr(end, bytes)) * size;
    if (used > width) break;
    end += bytes;
  }
  return end == 0 ? std::string() : std::string(text.substr(0, end)) + "…";
}

std::vector<std::string> wrapped(std::string_view text, double width, double size,
                                 std::size_t most) {
  std::vector<std::string> lines;
  while (!text.empty()) {
    if (lines.size() + 1 == most || text_width(text, size) <= width) {
      lines.push_back(shortened(text, width, size));
      break;
    }
    std::size_t end = 0, space = 0;
    for (double used = 0.0; end < text.size();) {
      const std::size_t bytes = letter_bytes(text, end);
      used += letter_width(text.substr(end, bytes)) * size;
      if (used > width) break;
      if (text[end] == ' ') space = end;
      end += bytes;
    }
    if (space > 0) end = space;
    end = std::max<std::size_t>(end, letter_bytes(text, 0));
    lines.emplace_back(text.substr(0, end));
    text.remove_prefix(end);
    while (text.starts_with(' ')) text.remove_prefix(1);
  }
  return lines;
}

}  // namespace ridgeline::report::plot
