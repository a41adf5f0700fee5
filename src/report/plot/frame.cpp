#include "report/plot/frame.h"

#include <fmt/core.h>

#include <algorithm>

#include "report/plot/text_size.h"

namespace ridgeline::report::plot {
namespace {

// Lines across the plot: faint ones at ticks without labels.
class Grid {
 public:
  void add(const Tick& tick, const std::string& line) {
    (tick.label.empty() ? faint_ : strong_) += line;
  }
  void draw(Svg& svg) const {
    if (!faint_.empty()) svg.path(faint_, stroked("var(--faint)", 1.0));
    if (!strong_.empty()) svg.path(strong_, stroked("var(--line)", 1.0));
  }

 private:
  std::string strong_, faint_;
};

double widest(const std::vector<Tick>& ticks) {
  double width = 0.0;
  for (const Tick& tick : ticks) width = std::max(width, text_width(tick.label, kSmall));
  return width;
}

// Labels that would touch the one before are left out.
void draw_x_ticks(Svg& svg, const std::vector<Tick>& ticks, const Scale& x, const Box& frame) {
  svg.open(R"(class="x-ticks")");
  Grid grid;
  double free = -1e9;
  for (const Tick& tick : ticks) {
    const double at = x.pixel(tick.value), half = 0.5 * text_width(tick.label, kSmall);
    grid.add(tick, fmt::format("M{} {}V{}", px(at), px(frame.top), px(frame.bottom)));
    const double place = std::min(at, kWidth - half);
    if (tick.label.empty() || place - half < free) continue;
    svg.text(place, frame.bottom + 12.0, tick.label, {.size = kSmall, .align = 'c'});
    free = place + half + 6.0;
  }
  grid.draw(svg);
  svg.close();
}

void draw_y_ticks(Svg& svg, const std::vector<Tick>& ticks, const Scale& y, const Box& frame) {
  Grid grid;
  for (const Tick& tick : ticks) {
    const double at = y.pixel(tick.value);
    grid.add(tick, fmt::format("M{} {}H{}", px(frame.left), px(at), px(frame.right)));
    svg.text(frame.left - 7.0, at, tick.label, {.size = kSmall, .align = 'r'});
  }
  grid.draw(svg);
}

std::string data_of(char name, const Scale& scale) {
  return fmt::format(R"(data-{}="{} {} {} {} {}")", name, scale.low, scale.high,
                     scale.logarithmic ? 1 : 0, px(scale.from), px(scale.to));
}

}  // namespace

Box draw_frame(Svg& svg, const FrameRequest& request, Scale& x, Scale& y) {
  const double under = request.x.title.empty() ? 4.0 : 24.0;
  const double beside = request.y.title.empty() ? 0.0 : 22.0;
  const double left = std::max(request.left, widest(request.y.ticks));
  const Box frame{beside + left + 10.0, 8.0, kWidth - 14.0,
                  request.height - under - request.bottom - 8.0};
  x.from = frame.left;
  x.to = frame.right;
  y.from = frame.bottom;
  y.to = frame.top;
  svg.open(R"(class="axes" aria-hidden="true")");
  draw_x_ticks(svg, request.x.ticks, x, frame);
  draw_y_ticks(svg, request.y.ticks, y, frame);
  svg.path(
      fmt::format("M{} {}V{}H{}", px(frame.left), px(frame.top), px(frame.bottom), px(frame.right)),
      stroked(kSoft, 1.0));
  svg.text((frame.left + frame.right) / 2.0, request.height - 11.0,
           shortened(request.x.title, frame.right - frame.left, 13.0), {.align = 'c'});
  svg.text(7.0, (frame.top + frame.bottom) / 2.0,
           shortened(request.y.title, frame.bottom - frame.top, 13.0),
           {.align = 'c', .rotate = 90.0});
  svg.close();
  return frame;
}

std::string scale_data(const Scale& x, const Scale& y) {
  return data_of('x', x) + ' ' + data_of('y', y);
}

std::string series_group(const Figure& figure, std::size_t series, std::size_t points,
                         const char* name) {
  return fmt::format(R"(class="{}" data-series="{}" data-points="{}"{})", name, series, points,
                     figure.series[series].hidden ? R"( display="none")" : "");
}

void note_left_out(std::vector<std::string>& notes, std::size_t count) {
  if (count == 0) return;
  notes.push_back(
      fmt::format("{} of zero or below {} no place on a logarithmic axis.",
                  count == 1 ? std::string("One value") : fmt::format("{} values", count),
                  count == 1 ? "has" : "have"));
}

std::string whisker(double at, double low, double high, bool upright) {
  const std::string from = px(at - 3.5), a = px(low), b = px(high), middle = px(at);
  return upright ? fmt::format("M{0} {1}h7M{0} {2}h7M{3} {1}V{2}", from, a, b, middle)
                 : fmt::format("M{1} {0}v7M{2} {0}v7M{1} {3}H{2}", from, a, b, middle);
}

}  // namespace ridgeline::report::plot
