// One iteration along time, and what lives in memory along its steps.

#include <algorithm>
#include <map>

#include "base/error.h"
#include "base/text.h"
#include "report/exhibits/figure_kinds.h"
#include "report/exhibits/figure_runs.h"
#include "report/exhibits/figure_values.h"

namespace ridgeline::report {
namespace {

constexpr std::size_t kMostSpans = 4000;
constexpr std::size_t kMostPositions = 400;

// "forward", "backward", … of a step of the plan.
std::string phase_group(const std::string& phase) {
  if (phase.starts_with("backward") || phase == "recompute") return "backward";
  return phase.find('+') == std::string::npos ? phase : "whole step in one kernel";
}

// What an entry is and where it is drawn. Calls of the runtime lie within steps: they have a track
// of their own, so that spans of a track follow each other.
Span span_of(const TimelineEntry& entry, const std::map<std::int64_t, std::string>& phases) {
  Span span{entry.track, entry.name, entry.activity, entry.begin_seconds, entry.end_seconds};
  const auto phase = phases.find(entry.step);
  if (entry.activity == "iteration") {
    span.track = "iteration";
  } else if (entry.activity == "runtime") {
    span.track = entry.track + ", runtime calls";
    span.group = "runtime call";
  } else if (entry.activity == "data_wait" || entry.activity == "upload") {
    span.track = entry.track + ", data";
    span.group = "data";
  } else if (entry.activity == "fill") {
    span.group = "copy";
  } else if (phase != phases.end() && entry.activity != "copy") {
    span.group = phase_group(phase->second);
  }
  return span;
}

// Spans that overlap others of their track in part move to a second lane. REQUIRES: in order of
// their beginnings.
void separate(std::vector<Span>& spans) {
  std::map<std::string, std::vector<double>> ends;  // of each lane of a track
  for (Span& span : spans) {
    std::vector<double>& lanes = ends[span.track];
    std::size_t lane = 0;
    while (lane < lanes.size() && lanes[lane] > span.begin) ++lane;
    if (lane == lanes.size()) lanes.push_back(0.0);
    lanes[lane] = span.end;
    if (lane > 0) span.track += fmt::format(" ({})", lane + 1);
  }
}

// The iteration first, then the host, threads, and the device's streams.
int order_of(const std::string& track) {
  if (track == "iteration") return 0;
  if (track.starts_with("host")) return 1;
  return track.starts_with("thread") ? 2 : 3;
}

Figure step_timeline(const ExhibitInput& input, const RunView& run, const std::string& what) {
  Figure figure = new_figure(input, "One iteration", what);
  figure.kind = FigureKind::spans;
  std::map<std::int64_t, std::string> phases;
  for (const StepTime& step : input.data.store().steps(run.run.id)) {
    phases[step.index] = step.phase;
  }
  for (const TimelineEntry& entry : input.data.store().timeline(run.run.id)) {
    figure.spans.push_back(span_of(entry, phases));
  }
  std::ranges::stable_sort(figure.spans, {}, &Span::begin);
  separate(figure.spans);
  std::ranges::stable_sort(figure.spans, [](const Span& a, const Span& b) {
    return std::pair(order_of(a.track), a.track) < std::pair(order_of(b.track), b.track);
  });
  const std::size_t joined = merge_shortest(figure.spans, kMostSpans);
  double end = 0.0;
  for (const Span& span : figure.spans) end = std::max(end, span.end);
  const DisplayUnit scale = seconds_unit(end);
  figure.x = {.title = "time since the iteration began", .unit = scale.unit};
  for (Span& span : figure.spans) {
    span.begin = rounded(span.begin * scale.factor, 6);
    span.end = rounded(span.end * scale.factor, 6);
  }
  figure.caption = fmt::format(
      "{}, batch {}, {}: the watched iteration of middle length, on each track what happened when. "
      "Gaps on a device's track are times in which it computes nothing.",
      run.run.work.model, count_text(run.run.work.batch), run.executor());
  if (joined > 0) {
    figure.notes.push_back(
        fmt::format("{} of the shortest spans are drawn together with their neighbours.",
                    count_text(static_cast<std::int64_t>(joined))));
  }
  return figure;
}

// Of each stretch of steps the fullest one.
std::vector<std::int64_t> positions_of(const std::map<std::int64_t, std::int64_t>& totals) {
  std::vector<std::int64_t> positions;
  const std::size_t stretches = std::min(totals.size(), kMostPositions);
  auto place = totals.begin();
  for (std::size_t stretch = 0; stretch < stretches; ++stretch) {
    const std::size_t first = stretch * totals.size() / stretches;
    const std::size_t end = (stretch + 1) * totals.size() / stretches;
    auto fullest = place;
    for (std::size_t i = first; i < end; ++i, ++place) {
      if (place->second > fullest->second) fullest = place;
    }
    positions.push_back(fullest->first);
  }
  return positions;
}

using Bytes = std::map<std::string, std::map<std::int64_t, std::int64_t>>;

// Owners that never have more than `least` bytes become one.
void join_small(Bytes& bytes, std::vector<std::string>& categories, double least) {
  std::map<std::int64_t, std::int64_t> small;
  const auto is_small = [&](const std::string& category) {
    return std::ranges::all_of(bytes[category], [&](const auto& entry) {
      return static_cast<double>(entry.second) < least;
    });
  };
  const auto first = std::stable_partition(categories.begin(), categories.end(),
                                           [&](const auto& each) { return !is_small(each); });
  for (auto category = first; category != categories.end(); ++category) {
    for (const auto& [step, amount] : bytes[*category]) small[step] += amount;
  }
  categories.erase(first, categories.end());
  if (small.empty()) return;
  categories.push_back("others");
  bytes["others"] = std::move(small);
}

Figure memory_timeline(const ExhibitInput& input, const RunView& run, const std::string& what) {
  Figure figure = new_figure(input, "What lives in memory", what);
  figure.kind = FigureKind::area;
  std::map<std::int64_t, std::int64_t> totals;
  Bytes bytes;
  std::vector<std::string> categories;
  for (const LiveEntry& entry : input.data.store().live_bytes(run.run.id)) {
    totals[entry.step] += entry.bytes;
    if (!bytes.contains(entry.category)) categories.push_back(entry.category);
    bytes[entry.category][entry.step] += entry.bytes;
  }
  if (totals.empty()) return figure;
  const auto peak = std::ranges::max_element(
      totals, [](const auto& a, const auto& b) { return a.second < b.second; });
  std::string where = fmt::format("step {}", peak->first);
  for (const StepTime& step : input.data.store().steps(run.run.id)) {
    if (step.index == peak->first) {
      where = fmt::format("step {} ({} {}, {})", step.index, step.layer, step.ops, step.phase);
    }
  }
  join_small(bytes, categories, static_cast<double>(peak->second) / 100.0);
  const DisplayUnit scale = bytes_unit(static_cast<double>(peak->second));
  const std::vector<std::int64_t> positions = positions_of(totals);
  for (const std::string& category : categories) {
    Series& series = series_named(figure, category, SeriesStyle::line);
    for (const std::int64_t step : positions) {
      const auto found = bytes[category].find(step);
      const double value =
          found == bytes[category].end() ? 0.0 : static_cast<double>(found->second);
      series.points.push_back({.x = static_cast<double>(step), .y = value * scale.factor});
    }
  }
  // The peak is named on top of the stack.
  for (Point& point : figure.series.back().points) {
    if (point.x == static_cast<double>(peak->first)) point.label = "peak";
  }
  figure.x.title = "step of the plan";
  figure.y = {.title = "alive", .unit = scale.unit, .low = 0.0};
  figure.caption = fmt::format(
      "{}, batch {}, {}: planned bytes that are alive while each step of the plan runs, by owner. "
      "Most are alive at {}: {}.",
      run.run.work.model, count_text(run.run.work.batch), run.executor(), where,
      bytes_text(peak->second));
  if (positions.size() < totals.size()) {
    figure.notes.push_back(fmt::format("Of {} steps {} are drawn: of each stretch the fullest.",
                                       totals.size(), positions.size()));
  }
  return figure;
}

// One figure for each network and executor, at its largest batch.
template <typename Make>
std::vector<Figure> one_each(const ExhibitInput& input, Make&& make) {
  std::vector<Figure> figures;
  const Runs profiles = chosen(input.runs, [&](const RunView& run) {
    return !input.data.store().live_bytes(run.run.id).empty() ||
           !input.data.store().timeline(run.run.id).empty();
  });
  const Runs runs = largest_batches(profiles);
  const Names names(input.data, runs);
  for (const RunView* run : runs) {
    Figure figure = make(input, *run, runs.size() > 1 ? names.of(*run) : std::string());
    Notes notes(input.data);
    notes.add(*run, run->executor());
    notes.write(figure);
    put(figures, std::move(figure));
  }
  return figures;
}

}  // namespace

std::vector<Figure> step_timeline_figures(const ExhibitInput& input) {
  return one_each(input, step_timeline);
}

std::vector<Figure> memory_timeline_figures(const ExhibitInput& input) {
  return one_each(input, memory_timeline);
}

}  // namespace ridgeline::report
