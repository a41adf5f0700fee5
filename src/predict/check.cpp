#include "predict/check.h"

#include <algorithm>
#include <cmath>

namespace ridgeline::predict {
namespace {

constexpr double kInside = 0.9;  // of the errors
// Fewer errors than this do not show the ninth decile: the largest is stretched.
constexpr std::size_t kEnough = 9;
constexpr double kStretch = 1.5;

using Key = std::tuple<Family, std::string, Unknown>;

bool left_out(const Observation& other, const Observation& held, Unknown unknown) {
  switch (unknown) {
    case Unknown::batch:
      return other.device == held.device && other.network == held.network &&
             other.precision == held.precision && other.batch == held.batch;
    case Unknown::network:
      return other.model == held.model;
    case Unknown::device:
      return other.device == held.device;
  }
  return true;
}

Key key_of(const HeldBack& one) {
  return {one.observation->family, one.observation->backend, one.unknown};
}

std::map<Key, std::vector<const HeldBack*>> grouped(const std::vector<HeldBack>& held) {
  std::map<Key, std::vector<const HeldBack*>> groups;
  for (const HeldBack& one : held) groups[key_of(one)].push_back(&one);
  return groups;
}

double quantile(std::vector<double> values, double share) {
  std::sort(values.begin(), values.end());
  const double place = share * static_cast<double>(values.size() - 1);
  const auto below = static_cast<std::size_t>(place);
  const std::size_t above = std::min(below + 1, values.size() - 1);
  const double rest = place - static_cast<double>(below);
  return values[below] * (1.0 - rest) + values[above] * rest;
}

// Of each run the range that the errors of the others give.
void add_spreads(std::vector<HeldBack>& held) {
  std::map<Key, std::vector<HeldBack*>> groups;
  for (HeldBack& one : held) groups[key_of(one)].push_back(&one);
  for (const auto& [key, group] : groups) {
    if (group.size() < 2) continue;
    for (HeldBack* one : group) {
      std::vector<double> others;
      for (const HeldBack* other : group) {
        if (other != one) others.push_back(other->log_error());
      }
      one->spread = spread_of(std::move(others));
    }
  }
}

std::optional<double> share_inside(const std::vector<const HeldBack*>& group) {
  double inside = 0.0;
  for (const HeldBack* one : group) {
    if (!one->spread) return std::nullopt;
    inside += std::abs(one->log_error()) <= *one->spread ? 1.0 : 0.0;
  }
  return inside / static_cast<double>(group.size());
}

}  // namespace

double HeldBack::log_error() const { return std::log(predicted_seconds / observation->seconds); }

double HeldBack::error() const { return std::abs(predicted_seconds / observation->seconds - 1.0); }

std::vector<HeldBack> hold_back(const std::vector<Observation>& seen) {
  const Knowledge knowledge({}, seen);
  std::vector<HeldBack> held;
  for (const Unknown unknown : {Unknown::batch, Unknown::network, Unknown::device}) {
    for (const Observation& one : seen) {
      if (one.part) continue;
      const auto estimate = knowledge.estimate(
          one, [&](const Observation& other) { return left_out(other, one, unknown); });
      // Without another batch of it, a network is unknown, and so on.
      if (estimate && estimate->unknown == unknown) {
        held.push_back({&one, unknown, estimate->seconds});
      }
    }
  }
  add_spreads(held);
  return held;
}

double spread_of(std::vector<double> log_errors) {
  for (double& error : log_errors) error = std::abs(error);
  if (log_errors.size() >= kEnough) return quantile(std::move(log_errors), kInside);
  return kStretch * *std::max_element(log_errors.begin(), log_errors.end());
}

std::vector<CheckRow> check_rows(const std::vector<HeldBack>& held) {
  std::vector<CheckRow> rows;
  for (const auto& [key, group] : grouped(held)) {
    std::vector<double> errors;
    for (const HeldBack* one : group) errors.push_back(one->error());
    CheckRow row;
    std::tie(row.family, row.backend, row.unknown) = key;
    row.runs = group.size();
    row.median_error = quantile(errors, 0.5);
    row.ninth_decile = quantile(errors, 0.9);
    row.inside_share = share_inside(group);
    rows.push_back(std::move(row));
  }
  return rows;
}

Spreads spreads_of(const std::vector<HeldBack>& held) {
  Spreads spreads;
  for (const auto& [key, group] : grouped(held)) {
    std::vector<double> errors;
    for (const HeldBack* one : group) errors.push_back(one->log_error());
    spreads[key] = spread_of(std::move(errors));
  }
  return spreads;
}

}  // namespace ridgeline::predict
