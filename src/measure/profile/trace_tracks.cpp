#include "measure/profile/trace_tracks.h"

#include <algorithm>
#include <cmath>
#include <map>
#include <optional>
#include <set>
#include <tuple>

#include "base/error.h"
#include "base/parse.h"

namespace ridgeline {
namespace {

std::int64_t rounded(double seconds) {
  ensure(std::isfinite(seconds), "a profile's event has no finite time");
  return std::llround(seconds * 1e9);
}

// 7 of "stream 7".
std::optional<std::int64_t> number_after(std::string_view prefix, std::string_view text) {
  if (!text.starts_with(prefix)) return std::nullopt;
  const auto number = number_in<std::int64_t>(text.substr(prefix.size()));
  return number && *number >= 0 ? number : std::nullopt;
}

// Spans that lie in one row of a trace without overlapping in part.
class Lane {
 public:
  explicit Lane(bool nests) : nests_(nests) {}

  // Takes a span that begins no earlier than those before, if it fits.
  bool take(const TraceSpan& span) {
    while (!open_.empty() && open_.back() <= span.begin) open_.pop_back();
    if (!open_.empty() && (!nests_ || open_.back() < span.end)) return false;
    open_.push_back(span.end);
    return true;
  }

 private:
  bool nests_;
  std::vector<std::int64_t> open_;  // ends of what encloses the next span, the innermost last
};

// Gives out thread ids that are free in their process.
class ThreadIds {
 public:
  // `wanted`, or the next free one.
  std::int64_t give(std::int64_t pid, std::int64_t wanted) {
    while (!taken_.emplace(pid, wanted).second) ++wanted;
    return wanted;
  }

 private:
  std::set<std::pair<std::int64_t, std::int64_t>> taken_;
};

// The host's tracks in the order: host, threads by their numbers, others by name; then streams.
auto order_of(const std::string& name, bool on_device) {
  const auto number = number_after(on_device ? "stream " : "thread ", name);
  const int group = name == "host" ? 0 : number ? 1 : 2;
  return std::tuple(on_device, group, number.value_or(0), name);
}

}  // namespace

std::int64_t device_index(const std::string& device) {
  const std::size_t colon = device.find(':');
  if (colon == std::string::npos) return 0;
  return number_after(":", std::string_view(device).substr(colon)).value_or(0);
}

std::int64_t TraceTracks::nanoseconds(double profile_seconds) const {
  return rounded(profile_seconds) - beginning;
}

TraceTracks trace_tracks(const Profile& profile, const TraceProcess& process) {
  TraceTracks all;
  all.rank = process.rank;
  all.ranks = process.ranks;
  all.host_pid = process.host_pid;
  all.device_pid = device_index(profile.executor.device);
  if (all.ranks > 1) {
    constexpr std::int64_t kRank = 1'000'000, kDevices = 500'000;
    all.host_pid = kRank * (all.rank + 1);
    all.device_pid += all.host_pid + kDevices;
  }
  for (const ProfileEvent& event : profile.events) {
    all.beginning = std::min(all.beginning, rounded(event.begin));
  }
  for (const Reading& reading : profile.readings) {
    all.beginning = std::min(all.beginning, rounded(reading.at_seconds));
  }

  all.beginning -= process.earlier;

  std::map<decltype(order_of({}, false)), std::vector<TraceSpan>> by_track;
  for (const ProfileEvent& event : profile.events) {
    const std::int64_t begin = all.nanoseconds(event.begin);
    const std::int64_t end = std::max(begin, all.nanoseconds(event.end));
    by_track[order_of(event.track, is_on_device(event.activity))].push_back({&event, begin, end});
    all.last = std::max(all.last, end);
  }

  ThreadIds ids;
  for (auto& [order, spans] : by_track) {
    const auto& [on_device, group, number, name] = order;
    std::stable_sort(spans.begin(), spans.end(), [](const TraceSpan& a, const TraceSpan& b) {
      return std::tuple(a.begin, -a.end, a.event->activity) <
             std::tuple(b.begin, -b.end, b.event->activity);
    });
    const std::int64_t pid = on_device ? all.device_pid : all.host_pid;
    const bool numbered = group == 1;
    // A thread 0 of parallel loops stands beside the host's own track: both are the process's first
    // thread, but only one can have its id.
    const std::int64_t wanted = on_device ? (numbered ? number : 0) : all.host_pid + number;
    std::vector<std::pair<Lane, std::vector<TraceSpan>>> lanes;
    for (const TraceSpan& span : spans) {
      auto lane = std::find_if(lanes.begin(), lanes.end(),
                               [&](auto& candidate) { return candidate.first.take(span); });
      if (lane == lanes.end()) {
        lanes.emplace_back(Lane(!on_device), std::vector<TraceSpan>{});
        lane = std::prev(lanes.end());
        lane->first.take(span);
      }
      lane->second.push_back(span);
    }
    for (std::size_t lane = 0; lane < lanes.size(); ++lane) {
      // Far from the ids of other tracks.
      constexpr std::int64_t kNextLane = 100'000'000;
      TraceTrack track{.pid = pid,
                       .tid = ids.give(pid, wanted + static_cast<std::int64_t>(lane) * kNextLane),
                       .name = lane == 0 ? name : fmt::format("{} ({})", name, lane + 1),
                       .on_device = on_device,
                       .stream = on_device && numbered ? number : -1};
      for (TraceSpan span : lanes[lane].second) {
        span.track = all.tracks.size();
        all.spans.push_back(span);
      }
      all.tracks.push_back(std::move(track));
    }
  }
  return all;
}

}  // namespace ridgeline
