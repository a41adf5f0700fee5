// What sensors read while runs went on.

#include <algorithm>
#include <functional>
#include <map>

#include "base/error.h"
#include "report/analysis/prose.h"
#include "report/exhibits/figure_kinds.h"
#include "report/exhibits/figure_runs.h"
#include "report/exhibits/figure_values.h"

namespace ridgeline::report {
namespace {

constexpr std::size_t kMostReadings = 300;
// Runs whose lengths differ by more do not share an axis.
constexpr double kAlike = 8.0;
// Each may have two sensors for a quantity.
constexpr std::size_t kMostTraces = kMostSeries / 2;

struct Sensor {
  const char *name, *of;  // "gpu_power_watts", "GPU"
  bool host = false;      // also of interest where a graphics processor computes
  bool counter = false;   // differences over time are drawn
};
struct QuantityKind {
  const char *title, *axis, *unit;
  std::vector<Sensor> sensors;
};

const std::vector<QuantityKind>& quantities() {
  static const std::vector<QuantityKind> kinds = {
      {"Utilisation",
       "utilisation",
       "%",
       {{"cpu_utilisation_percent", "CPU", true}, {"gpu_utilisation_percent", "GPU"}}},
      {"Memory controller",
       "time in which memory was read or written",
       "%",
       {{"gpu_memory_utilisation_percent", "GPU"}}},
      {"Clock", "clock", "MHz", {{"cpu_mhz", "CPU"}, {"gpu_sm_mhz", "GPU"}}},
      {"Temperature",
       "temperature",
       "°C",
       {{"cpu_temperature_celsius", "CPU"}, {"gpu_temperature_celsius", "GPU"}}},
      {"Power",
       "power",
       "W",
       {{"cpu_energy_joules", "CPU", false, true}, {"gpu_power_watts", "GPU"}}},
      {"Memory in use",
       "memory",
       "",
       {{"rss_bytes", "process", true}, {"gpu_memory_used_bytes", "GPU"}}}};
  return kinds;
}

// Of a counter, what it grew by in a second.
std::vector<Point> points_of(const std::vector<Reading>& readings, const Sensor& sensor) {
  std::vector<Point> points;
  std::optional<Reading> before;
  for (const Reading& reading : readings) {
    if (reading.sensor != sensor.name) continue;
    if (!sensor.counter) {
      points.push_back({.x = reading.at_seconds, .y = reading.value});
    } else if (before && reading.at_seconds > before->at_seconds &&
               reading.value >= before->value) {
      points.push_back(
          {.x = reading.at_seconds,
           .y = (reading.value - before->value) / (reading.at_seconds - before->at_seconds)});
    }
    before = reading;
  }
  return points;
}

bool concerns(const Sensor& sensor, const RunView& run) {
  const bool of_gpu = std::string_view(sensor.name).starts_with("gpu_");
  return sensor.host || of_gpu == (run.run.executor.device != "cpu");
}

struct Watched {
  const RunView* run;
  std::vector<Reading> readings;
  double seconds = 0.0;  // that they cover
};

// The longest runs of each machine, as many as a figure can hold; the number of the others.
std::size_t keep_longest(std::vector<Watched>& watched) {
  std::ranges::stable_sort(watched, std::greater{}, &Watched::seconds);
  std::map<std::size_t, std::size_t> kept;
  for (const Watched& each : watched) kept[each.run->machine] = 0;
  const std::size_t quota =
      std::max<std::size_t>(1, kMostTraces / std::max<std::size_t>(1, kept.size()));
  return std::erase_if(watched,
                       [&](const Watched& each) { return ++kept[each.run->machine] > quota; });
}

// Nine of ten values lie near the middle one, or there are but a few: nothing to see.
bool is_flat(const Series& series) {
  constexpr std::size_t kFew = 4;
  if (series.points.size() < kFew) return true;
  std::vector<double> values;
  for (const Point& point : series.points) values.push_back(point.y);
  std::ranges::sort(values);
  const std::size_t edge = values.size() / 20;
  const double middle = values[values.size() / 2];
  return values[values.size() - 1 - edge] - values[edge] <= 0.05 * middle;
}

// "native, CPU: 98.1 (91.0 to 100)"
std::string means_text(const Figure& figure) {
  constexpr std::size_t kTold = 4;
  std::vector<std::string> told;
  for (const Series& series : figure.series) {
    double sum = 0.0, low = series.points.front().y, high = low;
    for (const Point& point : series.points) {
      sum += point.y;
      low = std::min(low, point.y);
      high = std::max(high, point.y);
    }
    told.push_back(fmt::format("{} {} ({} to {})", series.name,
                               number_text(sum / static_cast<double>(series.points.size())),
                               number_text(low), number_text(high)));
  }
  return fmt::format("Mean and range in {}: {}.", figure.y.unit, list_text(told, kTold));
}

struct Drawing {
  const QuantityKind& kind;
  std::string what;  // machines that it shows; empty: all
  Names names;
  std::size_t left_out;  // runs
};

void draw(const ExhibitInput& input, const Drawing& drawing, const std::vector<Watched>& watched,
          std::vector<Figure>& figures) {
  const QuantityKind& kind = drawing.kind;
  const Names& names = drawing.names;
  Figure figure =
      new_figure(input, "", drawing.what.empty() ? kind.title : kind.title + (", " + drawing.what));
  Notes notes(input.data);
  double longest = 0.0, most = 0.0;
  for (const Watched& each : watched) {
    const std::string name = names.of(*each.run);
    bool any = false;
    for (const Sensor& sensor : kind.sensors) {
      if (!concerns(sensor, *each.run)) continue;
      std::vector<Point> points = points_of(each.readings, sensor);
      if (points.empty()) continue;
      for (const Point& point : points) most = std::max(most, point.y);
      for (Point& point : points) point.x -= each.readings.front().at_seconds;
      longest = std::max(longest, points.back().x);
      Series& series = series_named(figure, name + ", " + sensor.of, SeriesStyle::line);
      series.points = thinned(std::move(points), kMostReadings);
      any = true;
    }
    if (!any) {
      notes.add("n/a: no such sensor", name);
      continue;
    }
    notes.add(*each.run, name);
  }
  const DisplayUnit time = seconds_unit(std::max(longest, 1.0));
  const DisplayUnit bytes = bytes_unit(most);
  const double factor = *kind.unit == '\0' ? bytes.factor : 1.0;
  for (Series& series : figure.series) {
    for (Point& point : series.points) {
      point.x = rounded(point.x * time.factor, 4);
      point.y = rounded(point.y * factor, 4);
    }
  }
  figure.x = {.title = "time since the first reading", .unit = time.unit};
  figure.y = {.title = kind.axis, .unit = *kind.unit == '\0' ? bytes.unit : kind.unit, .low = 0.0};
  if (figure.y.unit == "%") figure.y.high = 100.0;
  figure.caption =
      fmt::format("{} as the sensors told it while the runs went on, start and warm-up included.{}",
                  kind.title, names.common());
  if (drawing.left_out > 0) {
    figure.notes.push_back(fmt::format(
        "The longest runs of each machine are shown, {} are left out.", drawing.left_out));
  }
  notes.write(figure);
  if (figure.empty()) return;
  figure.reading = means_text(figure);
  figure.plain = std::ranges::all_of(figure.series, is_flat);
  put(figures, std::move(figure));
}

}  // namespace

std::vector<Figure> telemetry_figures(const ExhibitInput& input) {
  std::vector<Watched> watched;
  for (const RunView* run : newest_of(input.runs)) {
    Watched each{run, input.data.store().readings(run->run.id), 0.0};
    if (each.readings.empty()) continue;
    each.seconds = each.readings.back().at_seconds - each.readings.front().at_seconds;
    watched.push_back(std::move(each));
  }
  const std::size_t left_out = keep_longest(watched);
  Runs shown;
  for (const Watched& each : watched) shown.push_back(each.run);
  // Runs of seconds and of hours need axes of their own.
  const bool apart = !watched.empty() && watched.front().seconds > kAlike * watched.back().seconds;
  const std::vector<Share> shares =
      apart ? split(input.data, shown, {"machine"}, {}) : split(input.data, shown, {}, {});
  std::vector<Figure> figures;
  for (const QuantityKind& kind : quantities()) {
    for (const Share& share : shares) {
      std::vector<Watched> some;
      for (const Watched& each : watched) {
        if (has(share.runs, each.run)) {
          some.push_back(each);
        }
      }
      draw(input, {kind, share.title, Names(input.data, share.runs), left_out}, some, figures);
    }
  }
  return figures;
}

}  // namespace ridgeline::report
