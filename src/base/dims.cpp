#include "base/dims.h"

#include <fmt/core.h>

#include <limits>

namespace ridgeline {

std::string dims_text(std::span<const std::int64_t> dims) {
  if (dims.empty()) return "scalar";
  std::string text;
  for (const std::int64_t dim : dims) text += fmt::format("{}{}", text.empty() ? "" : "x", dim);
  return text;
}

std::optional<std::int64_t> checked_elements(std::span<const std::int64_t> dims) {
  std::int64_t elements = 1;
  for (const std::int64_t dim : dims) {
    if (dim < 0 || __builtin_mul_overflow(elements, dim, &elements)) return std::nullopt;
  }
  if (elements > std::numeric_limits<std::int64_t>::max() / 8) return std::nullopt;
  return elements;
}

}  // namespace ridgeline
