#include "measure/profile/gains.h"

#include <algorithm>

namespace ridgeline {

std::vector<Gain> gains_of(const ProfileTable& table) {
  std::vector<Gain> gains;
  for (const TableRow& row : table.rows) {
    if (!row.point || !row.point->least_seconds) continue;
    const RooflinePoint& point = *row.point;
    Gain gain;
    gain.name = row.name;
    if (table.by == TableBy::step) gain.name += ' ' + point.ops + ' ' + point.phase;
    gain.bound = point.bound_text();
    gain.seconds = row.seconds;
    gain.least_seconds = *point.least_seconds;
    gain.lost_seconds = std::max(0.0, row.seconds - gain.least_seconds);
    gain.step_seconds = table.seconds - gain.lost_seconds;
    gains.push_back(std::move(gain));
  }
  std::stable_sort(gains.begin(), gains.end(),
                   [](const Gain& a, const Gain& b) { return a.lost_seconds > b.lost_seconds; });
  return gains;
}

}  // namespace ridgeline
