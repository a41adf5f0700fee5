// A timeline: spans on tracks.

#include <fmt/core.h>

#include <algorithm>
#include <cmath>

#include "report/plot/draw.h"
#include "report/plot/sheet.h"
#include "report/plot/text_size.h"

namespace ridgeline::report::plot {
namespace {

constexpr double kLane = 30.0;

// Spans of a track that overlap lie on lanes of their own.
struct Track {
  std::string name;
  std::vector<double> lanes;                               // until when each is taken
  std::vector<std::pair<const Span*, std::size_t>> spans;  // with their lanes
};

std::vector<Track> tracks_of(const Figure& figure) {
  std::vector<Track> tracks;
  for (const Span& span : figure.spans) {
    if (!std::isfinite(span.begin) || !std::isfinite(span.end)) continue;
    auto track = std::find_if(tracks.begin(), tracks.end(),
                              [&](const Track& each) { return each.name == span.track; });
    if (track == tracks.end()) track = tracks.insert(track, {span.track, {}, {}});
    track->spans.emplace_back(&span, 0);
  }
  for (Track& track : tracks) {
    std::stable_sort(track.spans.begin(), track.spans.end(),
                     [](const auto& a, const auto& b) { return a.first->begin < b.first->begin; });
    for (auto& [span, lane] : track.spans) {
      // Clocks may disagree by a rounding.
      const double begin = span->begin + 1e-9 * std::abs(span->begin);
      lane = static_cast<std::size_t>(std::find_if(track.lanes.begin(), track.lanes.end(),
                                                   [&](double until) { return until <= begin; }) -
                                      track.lanes.begin());
      if (lane == track.lanes.size()) track.lanes.push_back(0.0);
      track.lanes[lane] = std::max(span->begin, span->end);
    }
  }
  return tracks;
}

// Neighbours are told apart by a white border, which would hide what is narrower than itself.
void plot_boxes(Canvas& canvas, const std::vector<std::vector<double>>& boxes,
                const std::string& colour, const Scale& x) {
  std::vector<std::vector<double>> narrow, wide;
  for (const std::vector<double>& box : boxes) {
    (x.pixel(box[3]) - x.pixel(box[2]) < 3.0 ? narrow : wide).push_back(box);
  }
  if (!narrow.empty()) {
    canvas.plot(canvas.data(narrow),
                fmt::format("using 1:2:3:4:5:6 with boxxyerror fc rgb '{0}' fs "
                            "solid 1 border lc rgb '{0}' lw 0.3",
                            colour));
  }
  if (!wide.empty()) {
    canvas.plot(canvas.data(wide), fmt::format("using 1:2:3:4:5:6 with boxxyerror fc rgb '{}' fs "
                                               "solid 1 border lc rgb '#ffffff' lw 0.5",
                                               colour));
  }
}

}  // namespace

Drawing draw_spans(const Figure& figure, const Colours& colours) {
  const std::vector<Track> tracks = tracks_of(figure);
  Range times;
  double lanes = 0.0, left = 0.0;
  std::vector<Entry> legend;
  std::map<std::string, std::vector<std::vector<double>>> boxes;
  for (const Track& track : tracks) {
    left = std::max(left, text_width(shortened(track.name, 180.0, kSmall), kSmall));
    for (const auto& [span, lane] : track.spans) {
      times.add(span->begin);
      times.add(span->end);
      if (!boxes.contains(span->group)) {
        legend.push_back({span->group, colours.of(span->group), false, 0, 1});
      }
      const double top = lanes + static_cast<double>(lane);
      boxes[span->group].push_back(
          {span->begin, top + 0.5, span->begin, span->end, top + 0.08, top + 0.92});
    }
    lanes += static_cast<double>(track.lanes.size()) + 0.25;
  }
  if (lanes == 0.0) lanes = 1.0;

  const double lane_height = std::clamp(900.0 / lanes, 12.0, kLane);
  auto [canvas, body] = sheet_of(figure, legend, {}, lane_height * lanes + 56.0);
  const Box frame = frame_of(canvas, body, title_of(figure.x), "", left, 20.0);
  Axis axis = figure.x;
  axis.logarithmic = false;
  Scale x = scale_of(axis, times, false);
  if (times.low() < times.high()) {
    x.low = figure.x.low.value_or(times.low());
    x.high = figure.x.high.value_or(times.high());
  }
  Scale y{lanes, 0.0};
  canvas.axes(frame, x, y);
  canvas.ticks('x', ticks_of(x, 9));
  for (const Entry& entry : legend) plot_boxes(canvas, boxes[entry.name], entry.colour, x);

  double top = 0.0;
  for (const Track& track : tracks) {
    const double size = static_cast<double>(track.lanes.size());
    canvas.text(frame.left - 8.0, y.pixel(top + size / 2.0), shortened(track.name, 180.0, kSmall),
                {.size = kSmall, .align = 'r'});
    for (const auto& [span, lane] : track.spans) {
      const double from = std::max(x.pixel(span->begin), frame.left);
      const double to = std::min(x.pixel(span->end), frame.right);
      if (text_width(span->name, kSmall - 2.0) > to - from - 6.0 || lane_height < 13.0) continue;
      canvas.text((from + to) / 2.0, y.pixel(top + static_cast<double>(lane) + 0.5), span->name,
                  {.size = kSmall - 2.0,
                   .colour = is_light(colours.of(span->group)) ? kInk : "#ffffff",
                   .align = 'c'});
    }
    top += size + 0.25;
  }
  return std::move(canvas).drawing();
}

}  // namespace ridgeline::report::plot
