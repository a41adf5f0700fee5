#include "measure/profile/breakdown.h"

#include <algorithm>
#include <array>
#include <numeric>
#include <optional>
#include <set>

#include "base/error.h"

namespace ridgeline {
namespace {

// In order of precedence.
enum class Part { kernel, copy, runtime, data, idle, cpu };

double& part_of(TimeBreakdown& breakdown, Part part) {
  switch (part) {
    case Part::kernel:
      return breakdown.kernel;
    case Part::copy:
      return breakdown.copy;
    case Part::runtime:
      return breakdown.runtime;
    case Part::data:
      return breakdown.data;
    case Part::idle:
      return breakdown.idle;
    case Part::cpu:
      return breakdown.cpu;
  }
  fail("unknown part of the time");
}

bool waits(const ProfileEvent& call) { return call.name.find("Synchronize") != std::string::npos; }

// What an event has a claim to; nothing where it tells of nothing by itself.
std::optional<Part> claim_of(const ProfileEvent& event, bool host_computes) {
  switch (event.activity) {
    case Activity::kernel:
      return Part::kernel;
    case Activity::copy:
    case Activity::fill:
      return Part::copy;
    case Activity::runtime:
      return waits(event) ? Part::idle : Part::runtime;
    case Activity::data_wait:
      return Part::data;
    case Activity::upload:
      return host_computes ? Part::copy : Part::data;
    case Activity::step:
      return host_computes ? std::optional(Part::kernel) : std::nullopt;
    case Activity::exchange:
      // What it hides behind steps belongs to them: the rest is waited for.
      return Part::idle;
    case Activity::iteration:
    case Activity::body:
      return std::nullopt;
  }
  return std::nullopt;
}

struct Claim {
  Part part;
  double begin, end;
  std::int64_t step;
};

struct Edge {
  double at;
  bool opens;
  std::size_t claim;
};

// Goes over the edges of all claims in order of time and gives each stretch between two of them to
// the first claim that is open there.
void share_out(const ProfileEvent& iteration, const std::vector<Claim>& claims, double weight,
               SharedTime& shared) {
  std::vector<Edge> edges;
  edges.reserve(2 * claims.size());
  for (std::size_t c = 0; c < claims.size(); ++c) {
    edges.push_back({claims[c].begin, true, c});
    edges.push_back({claims[c].end, false, c});
  }
  std::stable_sort(edges.begin(), edges.end(),
                   [](const Edge& a, const Edge& b) { return a.at < b.at; });
  std::set<std::pair<Part, std::size_t>> open;
  double now = iteration.begin;
  const auto give = [&](double until) {
    const double seconds = weight * (until - now);
    const Claim* owner = open.empty() ? nullptr : &claims[open.begin()->second];
    const Part part = owner == nullptr ? Part::cpu : owner->part;
    part_of(shared.breakdown, part) += seconds;
    if (owner != nullptr && owner->step >= 0) {
      shared.steps[static_cast<std::size_t>(owner->step)] += seconds;
    } else {
      part_of(shared.outside, part) += seconds;
    }
    now = until;
  };
  for (const Edge& edge : edges) {
    if (edge.at > now) give(edge.at);
    const std::pair key{claims[edge.claim].part, edge.claim};
    if (edge.opens) {
      open.insert(key);
    } else {
      open.erase(key);
    }
  }
  give(iteration.end);
}

}  // namespace

std::vector<std::size_t> middle_of(std::span<const double> wall_seconds) {
  std::vector<std::size_t> order(wall_seconds.size());
  std::iota(order.begin(), order.end(), std::size_t{0});
  std::stable_sort(order.begin(), order.end(),
                   [&](std::size_t a, std::size_t b) { return wall_seconds[a] < wall_seconds[b]; });
  const auto outer = static_cast<std::ptrdiff_t>(3 * order.size() / 8);
  return {order.begin() + outer, order.end() - outer};
}

double middle_mean(std::span<const double> wall_seconds) {
  const std::vector<std::size_t> middle = middle_of(wall_seconds);
  double sum = 0.0;
  for (const std::size_t i : middle) sum += wall_seconds[i];
  return sum / static_cast<double>(middle.size());
}

SharedTime share_time(std::span<const ProfileEvent> events, std::size_t steps, bool host_computes) {
  std::vector<const ProfileEvent*> iterations;
  std::vector<double> walls;
  for (const ProfileEvent& event : events) {
    if (event.activity != Activity::iteration) continue;
    iterations.push_back(&event);
    walls.push_back(event.end - event.begin);
  }
  ensure(!iterations.empty(), "a profile without iterations");
  const std::vector<std::size_t> middle = middle_of(walls);
  const double weight = 1.0 / static_cast<double>(middle.size());
  SharedTime shared;
  shared.steps.assign(steps, 0.0);
  for (const std::size_t i : middle) {
    const ProfileEvent& iteration = *iterations[i];
    std::vector<Claim> claims;
    for (const ProfileEvent& event : events) {
      if (event.iteration != iteration.iteration) continue;
      const std::optional<Part> part = claim_of(event, host_computes);
      const double begin = std::max(event.begin, iteration.begin);
      const double end = std::min(event.end, iteration.end);
      if (!part || begin >= end) continue;
      ensure(event.step < static_cast<std::int64_t>(steps), "step {} of {}", event.step, steps);
      // A call of the runtime belongs to the host, whatever it started.
      const bool of_step =
          *part == Part::kernel || *part == Part::copy || event.activity == Activity::exchange;
      claims.push_back({*part, begin, end, of_step ? event.step : -1});
    }
    share_out(iteration, claims, weight, shared);
    shared.wall += weight * walls[i];
  }
  return shared;
}

SharedTime share_time(std::span<const double> wall_seconds, std::span<const double> step_seconds) {
  SharedTime shared;
  shared.wall = middle_mean(wall_seconds);
  shared.steps.assign(step_seconds.begin(), step_seconds.end());
  double sum = std::accumulate(step_seconds.begin(), step_seconds.end(), 0.0);
  // Passes of their own may have been slower than the iterations: steps cannot take longer than
  // the iteration that they are in.
  if (sum > shared.wall) {
    for (double& seconds : shared.steps) seconds *= shared.wall / sum;
    sum = shared.wall;
  }
  shared.breakdown.kernel = sum;
  shared.breakdown.idle = shared.outside.idle = shared.wall - sum;
  return shared;
}

}  // namespace ridgeline
