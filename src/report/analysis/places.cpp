#include "report/analysis/places.h"

#include <algorithm>
#include <set>

#include "report/analysis/ratios.h"

namespace ridgeline::report {

std::vector<std::vector<const RunView*>> by_work(const std::vector<const RunView*>& runs) {
  std::vector<std::vector<const RunView*>> groups;
  for (const RunView* run : runs) {
    const auto group = std::find_if(groups.begin(), groups.end(), [&](const auto& each) {
      return comparable(*each.front(), *run);
    });
    if (group == groups.end()) {
      groups.push_back({run});
    } else {
      group->push_back(run);
    }
  }
  return groups;
}

Place place_of(const RunView& run) { return {run.machine, run.run.executor.device}; }

std::string place_text(const Data& data, const Place& place) {
  std::set<std::string> devices;
  for (const RunView& run : data.runs()) {
    if (run.machine == place.machine) devices.insert(run.run.executor.device);
  }
  const std::string& machine = data.machines()[place.machine].name;
  if (devices.size() < 2) return machine;
  return data.machines().size() < 2 ? place.device : machine + " " + place.device;
}

bool is_far_from_roofs(const RooflinePoint& point) {
  const bool roof = point.bound == Bound::memory || point.bound == Bound::compute;
  return roof && point.efficiency().value_or(0.0) < kFarFromRoofs;
}

const RunView* fastest_of(const std::vector<const RunView*>& runs) {
  const RunView* best = nullptr;
  for (const RunView* run : runs) {
    if (!run->seconds) continue;
    if (best == nullptr || run->seconds->value < best->seconds->value) best = run;
  }
  return best;
}

}  // namespace ridgeline::report
