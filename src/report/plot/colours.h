#pragma once

// The colours of figures, as the page has them on white: people who see fewer colours can tell them
// apart (after Okabe and Ito). A name has one colour in all figures of a report.

#include <map>
#include <span>
#include <string>
#include <vector>

#include "report/figure.h"

namespace ridgeline::report::plot {

inline constexpr const char* kInk = "#222222";      // text
inline constexpr const char* kSoftInk = "#5f6368";  // text beside the point: notes, details
inline constexpr const char* kFrame = "#8a8f98";    // axes
inline constexpr const char* kGrid = "#e6e8eb";
inline constexpr const char* kRoof = "#6b7785";  // roofs of no group

// Between the colour and white: 0 is the colour, 1 is white.
[[nodiscard]] std::string lighter(const std::string& colour, double share);

// Whether black text is easier to read on it than white.
[[nodiscard]] bool is_light(const std::string& colour);

class Colours {
 public:
  // Each name takes the colour that fewest of the names beside it have, in the order of the
  // figures: the rule of the page.
  explicit Colours(std::span<const Figure* const> figures);

  [[nodiscard]] const std::string& of(const std::string& name) const;
  // One a series: of its group, or of its own. Those that share one for lack of more get lighter,
  // unless they share it on purpose.
  [[nodiscard]] std::vector<std::string> of(const std::vector<const Series*>& series) const;

 private:
  std::map<std::string, std::string> known_;
};

}  // namespace ridgeline::report::plot
