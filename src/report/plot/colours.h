#pragma once

// Colours that people who see fewer of them can tell apart (after Okabe and Ito), on white.

#include <map>
#include <string>

namespace ridgeline::report::plot {

inline constexpr const char* kInk = "#222222";      // text
inline constexpr const char* kSoftInk = "#5f6368";  // text beside the point: notes, details
inline constexpr const char* kFrame = "#8a8f98";    // axes
inline constexpr const char* kGrid = "#e6e8eb";

// The colour of the nth series. Those beyond the palette are lighter, then darker ones.
[[nodiscard]] std::string colour(std::size_t index);

// Between the colour and white: 0 is the colour, 1 is white.
[[nodiscard]] std::string lighter(const std::string& colour, double share);

// Whether black text is easier to read on it than white.
[[nodiscard]] bool is_light(const std::string& colour);

// Gives each name a colour of its own, in the order of asking.
class Colours {
 public:
  const std::string& of(const std::string& name);

 private:
  std::map<std::string, std::string> known_;
};

}  // namespace ridgeline::report::plot
