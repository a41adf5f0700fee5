#pragma once

// The colours of figures: people who see fewer colours can tell them apart. A name has one colour
// in all figures of a report.

#include <map>
#include <span>
#include <string>
#include <vector>

#include "report/figure.h"

namespace ridgeline::report::plot {

struct Paint {
  std::string colour;
  double shade = 1.0;   // opacity: tells those of one colour apart
  std::string on = {};  // text on it
};

class Colours {
 public:
  // Each name takes the colour that fewest of the names beside it have, in the order of the
  // figures.
  explicit Colours(std::span<const Figure* const> figures);

  // "var(--c3)", and the colour of text on it.
  [[nodiscard]] std::string of(const std::string& name) const;
  [[nodiscard]] std::string on(const std::string& name) const;
  // One a series: of its group, or of its own.
  [[nodiscard]] std::vector<Paint> of(const std::vector<Series>& series) const;

 private:
  [[nodiscard]] std::size_t index(const std::string& name) const;

  std::map<std::string, std::size_t> known_;
};

// The groups of a figure's spans, or of its boxes, in the order of the legend.
[[nodiscard]] std::vector<std::string> groups_of(const Figure& figure);

}  // namespace ridgeline::report::plot
