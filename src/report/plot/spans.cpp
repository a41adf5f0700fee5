// A timeline: spans on tracks.

#include <fmt/core.h>

#include <algorithm>
#include <cmath>

#include "report/plot/frame.h"
#include "report/plot/text_size.h"

namespace ridgeline::report::plot {
namespace {

constexpr double kLane = 30.0, kNameSize = 10.0, kTrackNames = 180.0, kLeastNamed = 30.0;

// Spans of a track that overlap lie on lanes of their own.
struct Track {
  std::string name;
  std::vector<double> lanes = {};         // until when each is taken
  std::vector<std::size_t> spans = {};    // by their begins
  std::vector<std::size_t> lane_of = {};  // of each of them
};

std::vector<Track> tracks_of(const Figure& figure) {
  std::vector<Track> tracks;
  for (std::size_t i = 0; i < figure.spans.size(); ++i) {
    const Span& span = figure.spans[i];
    if (!std::isfinite(span.begin) || !std::isfinite(span.end)) continue;
    auto track = std::ranges::find(tracks, span.track, &Track::name);
    if (track == tracks.end()) track = tracks.insert(track, {span.track});
    track->spans.push_back(i);
  }
  for (Track& track : tracks) {
    // Longer ones first: what they contain goes below them.
    std::ranges::stable_sort(track.spans, [&](std::size_t a, std::size_t b) {
      const Span &first = figure.spans[a], &second = figure.spans[b];
      return std::pair(first.begin, -first.end) < std::pair(second.begin, -second.end);
    });
    for (const std::size_t index : track.spans) {
      const Span& span = figure.spans[index];
      // Clocks may disagree by a rounding.
      const double begin = span.begin + 1e-9 * std::abs(span.begin);
      const auto lane = static_cast<std::size_t>(
          std::ranges::find_if(track.lanes, [&](double until) { return until <= begin; }) -
          track.lanes.begin());
      if (lane == track.lanes.size()) track.lanes.push_back(0.0);
      track.lanes[lane] = std::max(span.begin, span.end);
      track.lane_of.push_back(lane);
    }
  }
  return tracks;
}

// The middles of all rows, in lanes from the top: tracks have some air between them.
struct Rows {
  std::vector<double> middle;
  std::vector<std::size_t> first;  // of each track
  double lanes = 0.0;
};
Rows rows_of(const std::vector<Track>& tracks) {
  Rows rows;
  for (const Track& track : tracks) {
    rows.first.push_back(rows.middle.size());
    for (std::size_t lane = 0; lane < track.lanes.size(); ++lane) {
      rows.middle.push_back(rows.lanes + static_cast<double>(lane) + 0.5);
    }
    rows.lanes += static_cast<double>(track.lanes.size()) + 0.25;
  }
  if (rows.lanes == 0.0) rows.lanes = 1.0;
  return rows;
}

// All spans of a group as one path. Neighbours are told apart by a gap, and those that are too
// narrow to tell apart are drawn once.
struct GroupPath {
  std::string d;
  std::size_t spans = 0;
  std::vector<double> until = {};  // by rows, in pixels

  void add(std::size_t row, double left, double right, const Box& lane) {
    ++spans;
    if (until.size() <= row) until.resize(row + 1, -1e9);
    if (right - until[row] < 0.4) return;
    const double width = std::max(0.8, right - left > 4.0 ? right - left - 0.6 : right - left);
    d += fmt::format("M{} {}h{}V{}h-{}z", px(left), px(lane.top), px(width), px(lane.bottom),
                     px(width));
    until[row] = std::max(right, left + 0.8);
  }
};

Scale times_of(const Figure& figure, const std::vector<Track>& tracks) {
  Range times;
  for (const Track& track : tracks) {
    for (const std::size_t index : track.spans) {
      times.add(figure.spans[index].begin);
      times.add(figure.spans[index].end);
    }
  }
  Axis axis = figure.x;
  axis.logarithmic = false;
  Scale x = scale_of(axis, times, false);
  if (times.low() < times.high()) {
    x.low = figure.x.low.value_or(times.low());
    x.high = figure.x.high.value_or(times.high());
  }
  return x;
}

class SpanPainter {
 public:
  SpanPainter(Svg& svg, const Figure& figure, const Colours& colours, const Box& frame,
              const Scale& x, double half)
      : svg_(svg), colours_(colours), frame_(frame), x_(x), half_(half) {
    groups_ = groups_of(figure);
    paths_.resize(groups_.size());
  }

  void add(const Span& span, std::size_t row, double middle) {
    const double left = x_.pixel(span.begin), right = std::max(left, x_.pixel(span.end));
    const std::size_t group = index_of(span);
    paths_[group].add(row, left, right, {left, middle - half_, right, middle + half_});
    const double from = std::max(left, frame_.left), to = std::min(right, frame_.right);
    if (half_ < 6.0 || to - from < kLeastNamed) return;
    names_.text((from + to) / 2.0, middle, shortened(span.name, to - from - 6.0, kNameSize),
                {.size = kNameSize, .colour = colours_.on(span.group), .align = 'c'},
                fmt::format(R"(data-series="{}")", group));
  }

  void finish() {
    svg_.clip({frame_.left, frame_.top, frame_.right + 1.0, frame_.bottom});
    for (std::size_t i = 0; i < groups_.size(); ++i) {
      svg_.path(paths_[i].d, fmt::format(R"(class="span" data-series="{}" data-spans="{}" {})", i,
                                         paths_[i].spans, filled(colours_.of(groups_[i]))));
    }
    svg_.open(R"(class="span-names")");
    svg_.append(std::move(names_));
    svg_.close();
    svg_.unclip();
  }

 private:
  [[nodiscard]] std::size_t index_of(const Span& span) const {
    return static_cast<std::size_t>(std::ranges::find(groups_, span.group) - groups_.begin());
  }

  Svg& svg_;
  const Colours& colours_;
  Box frame_;
  const Scale& x_;
  double half_;  // of the height of a lane
  std::vector<std::string> groups_;
  std::vector<GroupPath> paths_;
  Svg names_;
};

}  // namespace

std::vector<std::optional<std::size_t>> span_rows(const Figure& figure) {
  const std::vector<Track> tracks = tracks_of(figure);
  const Rows rows = rows_of(tracks);
  std::vector<std::optional<std::size_t>> row_of(figure.spans.size());
  for (std::size_t t = 0; t < tracks.size(); ++t) {
    for (std::size_t i = 0; i < tracks[t].spans.size(); ++i) {
      row_of[tracks[t].spans[i]] = rows.first[t] + tracks[t].lane_of[i];
    }
  }
  return row_of;
}

Drawing draw_spans(const Figure& figure, const Colours& colours) {
  const std::vector<Track> tracks = tracks_of(figure);
  const Rows rows = rows_of(tracks);
  double left = 0.0;
  for (const Track& track : tracks) {
    left = std::max(left, text_width(shortened(track.name, kTrackNames, kSmall), kSmall));
  }
  const double lane = std::clamp(900.0 / rows.lanes, 12.0, kLane);
  Drawing drawing{.height = lane * rows.lanes + 56.0};
  Scale x = times_of(figure, tracks), y{rows.lanes, 0.0};
  Svg svg;
  const Box frame = draw_frame(
      svg,
      {.height = drawing.height, .x = {title_of(figure.x), ticks_of(x, 9)}, .y = {}, .left = left},
      x, y);
  SpanPainter painter(svg, figure, colours, frame, x, 0.42 * lane);
  for (std::size_t t = 0; t < tracks.size(); ++t) {
    const Track& track = tracks[t];
    const double size = static_cast<double>(track.lanes.size());
    svg.text(frame.left - 8.0, y.pixel(rows.middle[rows.first[t]] - 0.5 + size / 2.0),
             shortened(track.name, kTrackNames, kSmall), {.size = kSmall, .align = 'r'});
    for (std::size_t i = 0; i < track.spans.size(); ++i) {
      const std::size_t row = rows.first[t] + track.lane_of[i];
      painter.add(figure.spans[track.spans[i]], row, y.pixel(rows.middle[row]));
    }
  }
  painter.finish();
  drawing.data = scale_data(x, y) + fmt::format(R"( data-lane="{}" data-rows=")", px(0.84 * lane));
  for (const double middle : rows.middle) drawing.data += px(y.pixel(middle)) + ' ';
  drawing.data += '"';
  for (const std::string& group : groups_of(figure)) {
    drawing.legend.push_back({.name = group, .paint = {colours.of(group)}});
  }
  drawing.elements = std::move(svg).text();
  return drawing;
}

}  // namespace ridgeline::report::plot
