#pragma once

// How much room text takes in a picture, before anybody has drawn it: near enough to lay things out
// without overlaps. Sizes are in pixels.

#include <string>
#include <string_view>
#include <vector>

namespace ridgeline::report::plot {

[[nodiscard]] double text_width(std::string_view text, double size);

// Cut to fit, with an ellipsis where something is missing.
[[nodiscard]] std::string shortened(std::string_view text, double width, double size);

// Lines that fit, broken between words where that is possible; the last of `most` lines is
// shortened.
[[nodiscard]] std::vector<std::string> wrapped(std::string_view text, double width, double size,
                                               std::size_t most = 100);

}  // namespace ridgeline::report::plot
