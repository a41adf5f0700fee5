#include "report/analysis/places.h"

#include <algorithm>
#include <set>

#include "report/analysis/ratios.h"
#include "store/identity_fields.h"

namespace ridgeline::report {
namespace {

std::vector<std::string_view> axis_fields(const Work& work, const std::string& axis) {
  if (is_of_networks(axis)) return {"model", "settings", "image", "classes"};
  // More ranks are joined where one is not.
  if (axis == "ranks") return {"ranks", "nodes", "transport", "bucket_bytes"};
  const bool samples = axis == "samples";
  if (axis == "batch" || (samples && work.full_batch)) return batch_fields(work);
  const IdentityField* field = find_identity_field(samples ? "data_samples" : axis);
  if (field == nullptr) return {};
  return {field->name};
}

}  // namespace

std::vector<Runs> by_work(const Runs& runs) {
  std::vector<Runs> groups;
  for (const RunView* run : runs) {
    const auto group = std::ranges::find_if(
        groups, [&](const auto& each) { return comparable(*each.front(), *run); });
    if (group == groups.end()) {
      groups.push_back({run});
    } else {
      group->push_back(run);
    }
  }
  return groups;
}

bool is_of_networks(const std::string& axis) {
  return axis == "training_flops" || axis == "forward_flops" || axis == "parameters";
}

RunView off_axis(const RunView& run, const std::string& axis) {
  RunView off;
  off.machine = run.machine;
  off.run.command = run.run.command;
  off.run.work = run.run.work;
  off.run.executor = run.run.executor;
  off.run.work.settings.erase(axis);
  for (const std::string_view field : axis_fields(run.run.work, axis)) {
    identity_field(field).clear(off.run);
  }
  return off;
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

const RunView* fastest_of(const Runs& runs) {
  const RunView* best = nullptr;
  for (const RunView* run : runs) {
    if (!run->seconds) continue;
    if (best == nullptr || run->seconds->value < best->seconds->value) best = run;
  }
  return best;
}

}  // namespace ridgeline::report
