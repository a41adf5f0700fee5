#pragma once

#include <string>
#include <string_view>

namespace ridgeline {

// Text in lines up to column `width`, broken at spaces. The first line begins at column `first`,
// where the caller stands already, the others with `indent` spaces. "[default: 64]" stays whole.
[[nodiscard]] std::string wrapped(std::string_view text, std::size_t first, std::size_t indent,
                                  std::size_t width);

// Each line of a text wrapped, the lines that continue it indented by four more than it is. Width
// 0: the text as it is.
[[nodiscard]] std::string folded(std::string_view text, std::size_t width);

}  // namespace ridgeline
