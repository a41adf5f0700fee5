#include "measure/telemetry/series.h"

#include <algorithm>

namespace ridgeline {
namespace {

bool by_time(const SensorPoint& a, const SensorPoint& b) { return a.at < b.at; }
bool by_value(const SensorPoint& a, const SensorPoint& b) { return a.value < b.value; }

}  // namespace

SensorTable::SensorTable(const std::vector<Reading>& readings) {
  for (const Reading& reading : readings) {
    const auto [found, is_new] = series_.try_emplace({reading.device, reading.sensor});
    if (is_new) {
      sensors_.emplace_back(reading.device, reading.sensor);
      if (std::find(devices_.begin(), devices_.end(), reading.device) == devices_.end()) {
        devices_.push_back(reading.device);
      }
    }
    found->second.push_back({reading.at_seconds, reading.value});
  }
  for (auto& [key, series] : series_) std::stable_sort(series.begin(), series.end(), by_time);
}

const SensorSeries& SensorTable::of(const std::string& device, const std::string& sensor) const {
  static const SensorSeries kNone;
  const auto found = series_.find({device, sensor});
  return found == series_.end() ? kNone : found->second;
}

SensorSeries series_of(const std::vector<Reading>& readings, std::string_view device,
                       std::string_view sensor) {
  SensorSeries series;
  for (const Reading& reading : readings) {
    if (reading.sensor == sensor && reading.device == device) {
      series.push_back({reading.at_seconds, reading.value});
    }
  }
  std::stable_sort(series.begin(), series.end(), by_time);
  return series;
}

double value_at(const SensorSeries& series, double at) {
  const auto after = std::upper_bound(series.begin(), series.end(), SensorPoint{at, 0.0}, by_time);
  if (after == series.begin()) return series.front().value;
  if (after == series.end()) return series.back().value;
  const SensorPoint &left = *(after - 1), &right = *after;
  return left.value + (right.value - left.value) * (at - left.at) / (right.at - left.at);
}

double integral(const SensorSeries& series, double from, double to) {
  double area = 0.0;
  SensorPoint left{from, value_at(series, from)};
  const auto add = [&](SensorPoint right) {
    area += 0.5 * (left.value + right.value) * (right.at - left.at);
    left = right;
  };
  for (const SensorPoint& point : series) {
    if (point.at > from && point.at < to) add(point);
  }
  add({to, value_at(series, to)});
  return area;
}

double mean_over_time(const SensorSeries& series) {
  const double from = series.front().at, to = series.back().at;
  return to > from ? integral(series, from, to) / (to - from) : series.front().value;
}

SensorPoint largest(const SensorSeries& series) {
  return *std::max_element(series.begin(), series.end(), by_value);
}

SensorPoint smallest(const SensorSeries& series) {
  return *std::min_element(series.begin(), series.end(), by_value);
}

}  // namespace ridgeline
