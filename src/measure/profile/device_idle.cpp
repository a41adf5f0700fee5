#include "measure/profile/device_idle.h"

#include <algorithm>
#include <limits>
#include <map>
#include <vector>

namespace ridgeline {
namespace {

struct Stretch {
  double begin = 0.0, end = 0.0;
};

bool is_on_device(const ProfileEvent& event) {
  return event.activity == Activity::kernel || event.activity == Activity::copy ||
         event.activity == Activity::fill;
}

double overlap(const Stretch& a, const Stretch& b) {
  return std::max(0.0, std::min(a.end, b.end) - std::max(a.begin, b.begin));
}

// Without overlaps, in order.
std::vector<Stretch> stretches_of(std::span<const ProfileEvent> events, Activity activity) {
  std::vector<Stretch> all;
  for (const ProfileEvent& event : events) {
    if (event.activity == activity) all.push_back({event.begin, event.end});
  }
  std::sort(all.begin(), all.end(),
            [](const Stretch& a, const Stretch& b) { return a.begin < b.begin; });
  std::vector<Stretch> merged;
  for (const Stretch& stretch : all) {
    if (!merged.empty() && stretch.begin <= merged.back().end) {
      merged.back().end = std::max(merged.back().end, stretch.end);
    } else {
      merged.push_back(stretch);
    }
  }
  return merged;
}

// A stretch in which no stream had work, and what ended it; null: nothing did.
struct Gap {
  Stretch time;
  const ProfileEvent* before = nullptr;
  const ProfileEvent* next = nullptr;
};

std::vector<Gap> gaps_of(std::span<const ProfileEvent> events) {
  std::vector<const ProfileEvent*> work;
  for (const ProfileEvent& event : events) {
    if (is_on_device(event)) work.push_back(&event);
  }
  std::sort(work.begin(), work.end(),
            [](const ProfileEvent* a, const ProfileEvent* b) { return a->begin < b->begin; });
  constexpr double kInfinity = std::numeric_limits<double>::infinity();
  std::vector<Gap> gaps;
  Gap gap{{-kInfinity, 0.0}, nullptr, nullptr};
  for (const ProfileEvent* event : work) {
    if (event->begin > gap.time.begin) {
      gap.time.end = event->begin;
      gap.next = event;
      gaps.push_back(gap);
    }
    if (event->end > gap.time.begin) gap = {{event->end, 0.0}, event, nullptr};
  }
  gap.time.end = kInfinity;
  gaps.push_back(gap);
  return gaps;
}

using Calls = std::map<std::uint64_t, const ProfileEvent*>;  // by correlation

Calls calls_of(std::span<const ProfileEvent> events) {
  Calls calls;
  for (const ProfileEvent& event : events) {
    if (event.activity == Activity::runtime && event.correlation != 0) {
      calls.emplace(event.correlation, &event);
    }
  }
  return calls;
}

enum class Cause { host, dependency, unknown };

Cause cause_of(const Gap& gap, const Calls& calls) {
  if (gap.next == nullptr) return Cause::host;  // it had nothing more to launch
  const std::uint64_t correlation = gap.next->correlation;
  if (correlation != 0 && gap.before != nullptr && gap.before->correlation == correlation) {
    return Cause::dependency;  // within a replay
  }
  const auto call = calls.find(correlation);
  if (call == calls.end()) return Cause::unknown;
  return call->second->begin > gap.time.begin ? Cause::host : Cause::dependency;
}

}  // namespace

DeviceIdle attribute_idle(std::span<const ProfileEvent> events) {
  DeviceIdle idle;
  const std::vector<Gap> gaps = gaps_of(events);
  if (gaps.size() < 2) return idle;  // nothing ran there at all
  std::vector<Stretch> windows = stretches_of(events, Activity::iteration);
  if (windows.empty()) windows = {{gaps.front().time.end, gaps.back().time.begin}};
  const std::vector<Stretch> waits = stretches_of(events, Activity::data_wait);
  const Calls calls = calls_of(events);
  for (const Gap& gap : gaps) {
    const Cause cause = cause_of(gap, calls);
    for (const Stretch& window : windows) {
      const Stretch part{std::max(gap.time.begin, window.begin),
                         std::min(gap.time.end, window.end)};
      const double seconds = part.end - part.begin;
      if (seconds <= 0.0) continue;
      double waited = 0.0;
      for (const Stretch& wait : waits) waited += overlap(part, wait);
      if (cause == Cause::unknown) idle.unknown += seconds;
      if (cause == Cause::dependency) idle.dependency += seconds;
      if (cause == Cause::host) {
        idle.data += waited;
        idle.host_late += seconds - waited;
      }
    }
  }
  return idle;
}

}  // namespace ridgeline
