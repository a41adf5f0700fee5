#pragma once

// Documents that the writers of reports are tried with.

#include <string>

#include "report/document.h"

namespace ridgeline::testing {

// One that has a bit of everything: every kind of block, of table and of figure. Its numbers are
// made up.
[[nodiscard]] report::Document demo_document();

// Words that mean something to HTML, Markdown, LaTeX, CSV or SVG, and must be shown as text.
[[nodiscard]] const std::string& hostile_name();

// The same kinds of blocks with hostile names everywhere, and with figures at the edge: missing
// values, empty series, single points, zeros on logarithmic axes, one category, no height.
[[nodiscard]] report::Document hostile_document();

// A network of blocks with residual connections, as ResNet's: 5 + 2 * blocks convolutions or so.
[[nodiscard]] report::Figure residual_network(const std::string& id, int blocks);

// How often a part stands in a text.
[[nodiscard]] inline std::size_t count(const std::string& text, const std::string& part) {
  std::size_t found = 0;
  for (std::size_t at = text.find(part); at != std::string::npos; at = text.find(part, at + 1)) {
    ++found;
  }
  return found;
}

}  // namespace ridgeline::testing
