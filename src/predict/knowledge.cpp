#include "predict/knowledge.h"

#include <algorithm>
#include <cmath>
#include <set>

namespace ridgeline::predict {
namespace {

// Runs differ by a few percent from one another, networks from what their kinds explain by four
// times that.
constexpr double kDoubt = 0.06;

// Other batches of the same network on the same device tell what the kinds do not: their mean
// error is taken off, less so where there are few.
double correction_of(const std::vector<const Observation*>& own, const Observation& step,
                     const Efficiencies& efficiencies) {
  double logs = 0.0, count = 0.0;
  for (const Observation* one : own) {
    if (one->part || one->network != step.network || one->precision != step.precision) continue;
    logs += std::log(one->seconds / efficiencies.seconds(one->demand));
    count += 1.0;
  }
  return std::exp(logs / (count + kDoubt));
}

double unseen_share(const Observation& step, const Efficiencies& efficiencies) {
  double unseen = 0.0;
  for (const auto& [kind, part] : step.demand) {
    if (!efficiencies.knows(kind)) unseen += efficiencies.seconds(kind, part);
  }
  return unseen / efficiencies.seconds(step.demand);
}

}  // namespace

std::string_view name_of(Unknown unknown) {
  switch (unknown) {
    case Unknown::batch:
      return "batch";
    case Unknown::network:
      return "network";
    case Unknown::device:
      return "device";
  }
  return "device";
}

const Shipped* Knowledge::shipped(Family family, const std::string& backend) const {
  for (const Shipped& one : shipped_) {
    if (one.family == family && one.backend == backend) return &one;
  }
  return nullptr;
}

std::vector<std::string> Knowledge::backends(Family family) const {
  std::set<std::string> names;
  for (const Shipped& one : shipped_) {
    if (one.family == family) names.insert(one.backend);
  }
  for (const Observation& one : seen_) {
    if (one.family == family) names.insert(one.backend);
  }
  return {names.begin(), names.end()};
}

std::optional<Estimate> Knowledge::estimate(
    const Observation& step, const std::function<bool(const Observation&)>& leave_out) const {
  std::vector<const Observation*> family, own;
  for (const Observation& one : seen_) {
    if (one.family != step.family || one.backend != step.backend) continue;
    if (leave_out && leave_out(one)) continue;
    family.push_back(&one);
    if (one.device == step.device) own.push_back(&one);
  }
  const Shipped* start = shipped(step.family, step.backend);
  if (start == nullptr && family.empty()) return std::nullopt;

  Estimate estimate;
  estimate.shipped = start != nullptr;
  estimate.runs = family.size();
  if (start != nullptr) estimate.efficiencies = start->efficiencies;
  if (!family.empty()) {
    estimate.efficiencies = learn(family, start != nullptr ? &start->efficiencies : nullptr);
  }
  const bool has_others = own.size() < family.size() || start != nullptr;
  if (!own.empty() && has_others) estimate.efficiencies = learn(own, &estimate.efficiencies);
  const auto same_network = [&](const Observation* one) {
    return !one->part && one->network == step.network && one->precision == step.precision;
  };
  const bool known_device =
      !own.empty() ||
      (start != nullptr && std::ranges::find(start->devices, step.device) != start->devices.end());
  estimate.unknown = std::ranges::any_of(own, same_network) ? Unknown::batch
                     : known_device                         ? Unknown::network
                                                            : Unknown::device;
  estimate.correction = correction_of(own, step, estimate.efficiencies);
  estimate.unseen_share = unseen_share(step, estimate.efficiencies);
  estimate.seconds = estimate.efficiencies.seconds(step.demand) * estimate.correction;
  return estimate;
}

}  // namespace ridgeline::predict
