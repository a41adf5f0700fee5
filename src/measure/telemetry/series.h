#pragma once

// Readings of one sensor in order of time.

#include <map>
#include <string>
#include <string_view>
#include <utility>
#include <vector>

#include "store/records.h"

namespace ridgeline {

struct SensorPoint {
  double at = 0.0, value = 0.0;
};
using SensorSeries = std::vector<SensorPoint>;

class SensorTable {
 public:
  explicit SensorTable(const std::vector<Reading>& readings);

  [[nodiscard]] const std::vector<std::string>& devices() const { return devices_; }
  // Device and sensor, as they first appear.
  [[nodiscard]] const std::vector<std::pair<std::string, std::string>>& sensors() const {
    return sensors_;
  }
  // Empty when there is no such reading.
  [[nodiscard]] const SensorSeries& of(const std::string& device, const std::string& sensor) const;

 private:
  std::map<std::pair<std::string, std::string>, SensorSeries> series_;
  std::vector<std::string> devices_;
  std::vector<std::pair<std::string, std::string>> sensors_;
};

// Of one sensor alone.
[[nodiscard]] SensorSeries series_of(const std::vector<Reading>& readings, std::string_view device,
                                     std::string_view sensor);

// What the points say of a time: on the line between the neighbours, the nearest one outside.
// REQUIRES: at least one point.
[[nodiscard]] double value_at(const SensorSeries& series, double at);
// The area below the line through the points between two times; outside, the nearest value goes
// on. REQUIRES: at least one point, from <= to.
[[nodiscard]] double integral(const SensorSeries& series, double from, double to);
// Over the time of the points. REQUIRES: at least one point.
[[nodiscard]] double mean_over_time(const SensorSeries& series);
[[nodiscard]] SensorPoint largest(const SensorSeries& series);
[[nodiscard]] SensorPoint smallest(const SensorSeries& series);

}  // namespace ridgeline
