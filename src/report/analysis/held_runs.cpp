#include "report/analysis/held_runs.h"

#include <map>
#include <set>

#include "base/error.h"
#include "measure/ceilings/hardware.h"

namespace ridgeline::report {
namespace {

std::vector<predict::Observation> seen_in(const Store& store) {
  std::vector<std::string> left_out;
  return predict::stored_observations(store, known_hardware(), left_out);
}

}  // namespace

HeldRuns::HeldRuns(const Store& store) : seen_(seen_in(store)), held_(predict::hold_back(seen_)) {}

std::vector<predict::HeldBack> HeldRuns::of(const Runs& runs) const {
  std::set<RunId> wanted;
  for (const RunView* run : runs) wanted.insert(run->run.id);
  std::map<std::pair<std::string, predict::Unknown>, std::vector<predict::HeldBack>> groups;
  for (const predict::HeldBack& one : held_) {
    if (!wanted.contains(one.observation->run)) continue;
    groups[{backend_words(one), one.unknown}].push_back(one);
  }
  std::vector<predict::HeldBack> enough;
  for (const auto& [key, group] : groups) {
    if (group.size() < kFewestHeld) continue;
    enough.insert(enough.end(), group.begin(), group.end());
  }
  return enough;
}

std::string backend_words(const predict::HeldBack& held) {
  return fmt::format("{} on {}", held.observation->backend,
                     held.observation->family == predict::Family::gpu ? "GPU" : "CPU");
}

}  // namespace ridgeline::report
