#pragma once

#include <optional>
#include <span>
#include <string>
#include <string_view>

namespace ridgeline {

// The candidate a mistyped name most likely meant: the smallest edit distance, letter case ignored,
// the first of equals. Nothing when even that one is too far to be a typing error.
[[nodiscard]] std::optional<std::string_view> nearest(std::string_view name,
                                                      std::span<const std::string_view> candidates);

// The end of an error message: "; did you mean 'onednn'?", or nothing when no candidate is near.
[[nodiscard]] std::string did_you_mean(std::string_view name,
                                       std::span<const std::string_view> candidates);

}  // namespace ridgeline
