#pragma once

// An SVG picture, written down element by element in pixels from the top left corner. Colours are
// variables of the page's palette ("var(--c0)"), so that one drawing serves light and dark pages;
// light_colours() puts the values in their place for files.

#include <string>
#include <string_view>

namespace ridgeline::report::plot {

inline constexpr const char* kInk = "var(--ink)";    // text
inline constexpr const char* kSoft = "var(--soft)";  // text beside the point: notes, details
inline constexpr const char* kPaper = "var(--paper)";
inline constexpr const char* kRoof = "var(--roof)";  // roofs of no group

// Text that says nothing else is small and in ink.
inline constexpr double kSmall = 12.0;
inline constexpr const char* kTextDefaults = "font-size=\"12\" fill=\"var(--ink)\"";

// As the text of an element or the value of an attribute.
[[nodiscard]] std::string escaped(std::string_view text);

// "12.3": a coordinate, to a tenth of a pixel.
[[nodiscard]] std::string px(double value);

// Attributes for filling and for drawing along a path. `shade`: opacity.
[[nodiscard]] std::string filled(const std::string& colour, double shade = 1.0);
[[nodiscard]] std::string stroked(const std::string& colour, double width, double shade = 1.0,
                                  int dash = 0);

// The nth mark around a point, as part of a path. `radius`: half its width, about.
[[nodiscard]] std::string mark_path(int marker, double x, double y, double radius);

struct TextStyle {
  double size = 13.0;
  std::string colour = kInk;
  char align = 'l';     // l, c, r
  double rotate = 0.0;  // degrees, against the clock
  bool bold = false;
  bool halo = false;  // readable across lines
};

struct Box {
  double left = 0.0, top = 0.0, right = 0.0, bottom = 0.0;
};

// `more`: further attributes.
class Svg {
 public:
  // `y` is the middle of the letters. Nothing for an empty text.
  void text(double x, double y, std::string_view text, const TextStyle& style,
            std::string_view more = {});
  void box(const Box& box, std::string_view more);
  void line(double x1, double y1, double x2, double y2, std::string_view more);
  void path(std::string_view d, std::string_view more);
  void append(Svg other) { text_ += other.text_; }
  // A group of elements.
  void open(std::string_view more);
  void close() { text_ += "</g>"; }
  // What is drawn until unclip() is cut at the box.
  void clip(const Box& box);
  void unclip() { text_ += "</svg>"; }

  [[nodiscard]] std::string text() && { return std::move(text_); }

 private:
  std::string text_;
};

// The picture with the page's light colours.
[[nodiscard]] std::string light_colours(std::string_view svg);

}  // namespace ridgeline::report::plot
