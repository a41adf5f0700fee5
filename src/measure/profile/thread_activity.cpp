#include "measure/profile/thread_activity.h"

#include <algorithm>
#include <map>

namespace ridgeline {

ThreadActivity::ThreadActivity(int threads, std::size_t capacity)
    : lanes_(static_cast<std::size_t>(threads)), before_(parallel_observer) {
  for (Lane& lane : lanes_) lane.bodies.reserve(capacity);
  parallel_observer = this;
}

ThreadActivity::~ThreadActivity() { parallel_observer = before_; }

void ThreadActivity::begin(int thread, int threads) noexcept {
  const auto place = static_cast<std::size_t>(thread);
  if (place < lanes_.size()) {
    lanes_[place].begin = Clock::now();
  }
  if (thread == 0 && static_cast<std::size_t>(threads) > lanes_.size()) {
    unexpected_ += threads - static_cast<std::int64_t>(lanes_.size());
  }
}

void ThreadActivity::end(int thread) noexcept {
  if (static_cast<std::size_t>(thread) >= lanes_.size()) return;
  Lane& lane = lanes_[static_cast<std::size_t>(thread)];
  // Never allocates: a region must not wait for memory because it is watched.
  if (lane.bodies.size() == lane.bodies.capacity()) {
    ++lane.lost;
    return;
  }
  lane.bodies.push_back({step_, thread, lane.begin, Clock::now()});
}

std::vector<ThreadActivity::Body> ThreadActivity::take() {
  std::vector<Body> all;
  for (Lane& lane : lanes_) {
    all.insert(all.end(), lane.bodies.begin(), lane.bodies.end());
    lane.bodies.clear();
  }
  return all;
}

std::int64_t ThreadActivity::lost() const {
  std::int64_t lost = unexpected_;
  for (const Lane& lane : lanes_) lost += lane.lost;
  return lost;
}

std::vector<ThreadBalance> balance_of(std::span<const ProfileEvent> events, std::size_t steps) {
  std::vector<std::map<std::string, double>> busy(steps);
  std::vector<ThreadBalance> balances(steps);
  for (const ProfileEvent& event : events) {
    if (event.activity != Activity::body || event.step < 0) continue;
    const auto step = static_cast<std::size_t>(event.step);
    if (step >= steps) continue;
    busy[step][event.track] += event.end - event.begin;
    ++balances[step].bodies;
  }
  for (std::size_t s = 0; s < steps; ++s) {
    ThreadBalance& balance = balances[s];
    balance.threads = static_cast<std::int64_t>(busy[s].size());
    for (const auto& [track, seconds] : busy[s]) {
      balance.longest = std::max(balance.longest, seconds);
      balance.mean += seconds / static_cast<double>(balance.threads);
    }
  }
  return balances;
}

}  // namespace ridgeline
