#include "report/plot/svg.h"

#include <array>
#include <cmath>
#include <map>

#include "base/embedded.h"
#include "base/error.h"
#include "base/utf8.h"

namespace ridgeline::report::plot {
namespace {

// "--c0" and its value: the first block of the page's style is the light palette.
std::map<std::string, std::string, std::less<>> light_palette() {
  const auto style = embedded_file("src/report/page/page.css");
  ensure(style.has_value(), "the program was built without the report's style");
  std::string_view block = style->substr(0, style->find('}'));
  std::map<std::string, std::string, std::less<>> palette;
  for (std::size_t at = block.find("--"); at != std::string_view::npos; at = block.find("--")) {
    block.remove_prefix(at);
    const std::size_t colon = block.find(": "), end = block.find(';');
    palette.emplace(block.substr(0, colon), block.substr(colon + 2, end - colon - 2));
    block.remove_prefix(end);
  }
  return palette;
}

}  // namespace

std::string escaped(std::string_view text) {
  std::string out;
  for (const char c : valid_utf8(text)) {
    switch (c) {
      case '<':
        out += "&lt;";
        break;
      case '>':
        out += "&gt;";
        break;
      case '&':
        out += "&amp;";
        break;
      case '"':
        out += "&quot;";
        break;
      default:
        out += static_cast<unsigned char>(c) < 0x20 || c == 0x7f ? ' ' : c;
    }
  }
  return out;
}

std::string px(double value) {
  std::string text = fmt::format("{:.1f}", value);
  if (text.ends_with(".0")) text.resize(text.size() - 2);
  return text == "-0" ? "0" : text;
}

std::string filled(const std::string& colour, double shade) {
  return fmt::format(R"(fill="{}")", colour) +
         (shade < 1.0 ? fmt::format(R"( fill-opacity="{:g}")", shade) : "");
}

std::string stroked(const std::string& colour, double width, double shade, int dash) {
  constexpr std::array<const char*, 4> kDashes = {"", "8 4", "2 3", "9 3 2 3"};
  std::string text = fmt::format(R"(fill="none" stroke="{}" stroke-width="{:g}")", colour, width);
  if (shade < 1.0) text += fmt::format(R"( stroke-opacity="{:g}")", shade);
  const char* pattern = kDashes[static_cast<std::size_t>(dash) % kDashes.size()];
  return *pattern == '\0' ? text : text + fmt::format(R"( stroke-dasharray="{}")", pattern);
}

std::string mark_path(int marker, double x, double y, double radius) {
  const auto at = [&](double right, double down) {
    return fmt::format("M{} {}", px(x + right * radius), px(y + down * radius));
  };
  const auto by = [&](double length) { return px(length * radius); };
  switch (marker % 6) {
    case 0:  // circle
      return fmt::format("{0}a{1} {1} 0 1 0 {2} 0a{1} {1} 0 1 0-{2} 0z", at(-1.0, 0.0), by(1.0),
                         by(2.0));
    case 1:  // square
      return fmt::format("{0}h{1}v{1}h-{1}z", at(-0.9, -0.9), by(1.8));
    case 2:  // triangle
      return fmt::format("{}l{} {}h-{}z", at(0.0, -1.2), by(1.15), by(2.0), by(2.3));
    case 3:  // diamond
      return fmt::format("{0}l{1} {1}l-{1} {1}l-{1}-{1}z", at(0.0, -1.25), by(1.25));
    case 4:  // triangle, point down
      return fmt::format("{}l{}-{}h-{}z", at(0.0, 1.2), by(1.15), by(2.0), by(2.3));
    default:  // plus
      return fmt::format("{0}h{1}v{1}h{1}v{1}h-{1}v{1}h-{1}v-{1}h-{1}v-{1}h{1}z", at(-0.4, -1.2),
                         by(0.8));
  }
}

void Svg::text(double x, double y, std::string_view text, const TextStyle& style,
               std::string_view more) {
  if (text.empty()) return;
  const std::string left = px(x), base = px(y + 0.35 * style.size);
  text_ += fmt::format(R"(<text x="{}" y="{}")", left, base);
  if (style.size != kSmall) text_ += fmt::format(R"( font-size="{:g}")", style.size);
  if (style.colour != kInk) text_ += fmt::format(R"( fill="{}")", style.colour);
  if (style.align != 'l') {
    text_ += fmt::format(R"( text-anchor="{}")", style.align == 'c' ? "middle" : "end");
  }
  if (style.bold) text_ += R"( font-weight="bold")";
  if (style.rotate != 0.0) {
    text_ += fmt::format(" transform=\"rotate({} {} {})\"", px(-style.rotate), px(x), px(y));
  }
  if (style.halo) {
    text_ += fmt::format(R"( stroke="{}" stroke-width="3" paint-order="stroke")", kPaper);
  }
  text_ += fmt::format("{}{}>{}</text>", more.empty() ? "" : " ", more, escaped(text));
}

void Svg::box(const Box& box, std::string_view more) {
  text_ += fmt::format(R"(<rect x="{}" y="{}" width="{}" height="{}" {}/>)", px(box.left),
                       px(box.top), px(box.right - box.left), px(box.bottom - box.top), more);
}

void Svg::line(double x1, double y1, double x2, double y2, std::string_view more) {
  path(fmt::format("M{} {}L{} {}", px(x1), px(y1), px(x2), px(y2)), more);
}

void Svg::path(std::string_view d, std::string_view more) {
  text_ += fmt::format(R"(<path d="{}" {}/>)", d, more);
}

void Svg::open(std::string_view more) { text_ += fmt::format("<g {}>", more); }

void Svg::clip(const Box& box) {
  const std::string left = px(box.left), top = px(box.top), width = px(box.right - box.left),
                    height = px(box.bottom - box.top);
  text_ += fmt::format(R"(<svg x="{0}" y="{1}" width="{2}" height="{3}" viewBox="{0} {1} {2} {3}" )"
                       R"(overflow="hidden">)",
                       left, top, width, height);
}

std::string light_colours(std::string_view svg) {
  static const auto palette = light_palette();
  constexpr std::string_view kOpen = "\"var(";
  std::string out;
  for (std::size_t at = svg.find(kOpen); at != std::string_view::npos; at = svg.find(kOpen)) {
    const std::size_t end = svg.find(')', at);
    const auto known = palette.find(svg.substr(at + kOpen.size(), end - at - kOpen.size()));
    ensure(known != palette.end(), "a colour of a figure is not in the page's palette");
    out += svg.substr(0, at + 1);
    out += known->second;
    svg.remove_prefix(end + 1);
  }
  return out += svg;
}

}  // namespace ridgeline::report::plot
