#include "measure/profile/stored.h"

#include <algorithm>
#include <array>
#include <set>

namespace ridgeline {
namespace {

constexpr std::size_t kMostThreads = 8;

constexpr std::array<std::string_view, 10> kActivityNames = {
    "iteration", "step",   "body", "data_wait", "upload",
    "runtime",   "kernel", "copy", "fill",      "exchange"};

// The watched iteration of middle length.
const ProfileEvent* middle_of(const Profile& profile) {
  std::vector<const ProfileEvent*> iterations;
  for (const ProfileEvent& event : profile.events) {
    if (event.activity == Activity::iteration) iterations.push_back(&event);
  }
  if (iterations.empty()) return nullptr;
  const auto middle = iterations.begin() + static_cast<std::ptrdiff_t>(iterations.size() / 2);
  std::nth_element(iterations.begin(), middle, iterations.end(),
                   [](const ProfileEvent* a, const ProfileEvent* b) {
                     return a->end - a->begin < b->end - b->begin;
                   });
  return *middle;
}

}  // namespace

std::vector<LiveEntry> live_entries(const Profile& profile) {
  std::array<bool, kRoles> used{};
  for (const LiveBytes& live : profile.memory) {
    for (std::size_t role = 0; role < kRoles; ++role) used[role] |= live.by_role[role] > 0;
  }
  std::vector<LiveEntry> entries;
  for (const LiveBytes& live : profile.memory) {
    for (std::size_t role = 0; role < kRoles; ++role) {
      if (!used[role]) continue;
      entries.push_back(
          {live.step, std::string(name_of(static_cast<Role>(role))), live.by_role[role]});
    }
  }
  return entries;
}

std::vector<TimelineEntry> middle_iteration(const Profile& profile) {
  const ProfileEvent* iteration = middle_of(profile);
  if (iteration == nullptr) return {};
  const auto belongs = [&](const ProfileEvent& event) {
    return event.iteration == iteration->iteration;
  };
  std::set<std::string> threads;
  for (const ProfileEvent& event : profile.events) {
    if (event.activity == Activity::body && belongs(event)) threads.insert(event.track);
  }
  std::vector<TimelineEntry> entries;
  for (const ProfileEvent& event : profile.events) {
    if (!belongs(event)) continue;
    if (event.activity == Activity::body && threads.size() > kMostThreads) continue;
    entries.push_back({std::string(kActivityNames[static_cast<std::size_t>(event.activity)]),
                       event.name, event.track, event.begin - iteration->begin,
                       event.end - iteration->begin, event.step});
  }
  return entries;
}

}  // namespace ridgeline
