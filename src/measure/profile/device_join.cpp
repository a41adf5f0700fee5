#include "measure/profile/device_join.h"

#include <algorithm>
#include <array>
#include <set>
#include <string_view>

#include "base/error.h"
#include "measure/profile/kernel_name.h"

namespace ridgeline {
namespace {

// Questions that take next to no time and would fill a timeline.
constexpr std::array<std::string_view, 8> kQuestions = {
    "cudaGetLastError",      "cudaPeekAtLastError", "cudaGetDevice",   "cudaSetDevice",
    "cudaStreamIsCapturing", "cudaEventQuery",      "cuCtxGetCurrent", "cuCtxSetCurrent"};

bool is_question(const CallRecord& call) {
  return std::any_of(kQuestions.begin(), kQuestions.end(),
                     [&](std::string_view name) { return call.name.starts_with(name); });
}

bool starts_replay(const CallRecord& call) {
  return call.name.find("GraphLaunch") != std::string::npos;
}

// Calls after which the device does something.
bool starts_work(const CallRecord& call) {
  constexpr std::array<std::string_view, 7> kBeginnings = {
      "cudaLaunchKernel", "cudaLaunchCooperativeKernel", "cudaMemcpyAsync", "cudaMemsetAsync",
      "cuLaunchKernel",   "cuLaunchCooperativeKernel",   "cudaGraphLaunch"};
  return !call.failed &&
         std::any_of(kBeginnings.begin(), kBeginnings.end(),
                     [&](std::string_view name) { return call.name.starts_with(name); });
}

bool by_begin(const CallRecord& a, const CallRecord& b) {
  return a.begin != b.begin ? a.begin < b.begin : a.end > b.end;
}

// The runtime's calls stand on the driver's, which are recorded, too: only the outermost are kept.
// What started within one counts as started by it.
struct OuterCalls {
  std::vector<CallRecord> kept;
  std::map<std::uint32_t, std::uint32_t> outer;  // correlations of inner calls

  [[nodiscard]] std::uint32_t correlation(std::uint32_t inner) const {
    const auto found = outer.find(inner);
    return found == outer.end() ? inner : found->second;
  }
};

OuterCalls outer_calls(std::vector<CallRecord> calls) {
  std::stable_sort(calls.begin(), calls.end(), by_begin);
  OuterCalls result;
  std::map<std::uint32_t, std::size_t> last;  // of each thread, in kept
  for (CallRecord& call : calls) {
    const auto found = last.find(call.thread);
    if (found != last.end()) {
      const CallRecord& outer = result.kept[found->second];
      if (call.end <= outer.end) {
        if (call.correlation != outer.correlation) {
          result.outer[call.correlation] = outer.correlation;
        }
        continue;
      }
    }
    last[call.thread] = result.kept.size();
    result.kept.push_back(std::move(call));
  }
  return result;
}

struct Expected {
  std::int64_t step;
  Activity activity;
};

std::vector<Expected> in_order(const RecordedSteps& recorded) {
  std::vector<Expected> list;
  for (std::size_t step = 0; step < recorded.size(); ++step) {
    for (const Activity activity : recorded[step]) {
      list.push_back({static_cast<std::int64_t>(step), activity});
    }
  }
  return list;
}

using Replay = std::vector<const DeviceRecord*>;

// The steps of replays' activities, and how many replays did not agree with what was recorded.
class ReplayJoin {
 public:
  explicit ReplayJoin(const RecordedSteps& recorded) : expected_(in_order(recorded)) {}

  void join(std::vector<Replay> replays) {
    for (Replay& replay : replays) {
      std::stable_sort(replay.begin(), replay.end(),
                       [](const DeviceRecord* a, const DeviceRecord* b) {
                         return a->begin != b->begin ? a->begin < b->begin : a->node < b->node;
                       });
    }
    // First those that agree: their nodes then help with the others.
    std::vector<const Replay*> others;
    for (const Replay& replay : replays) {
      if (agrees(replay)) {
        assign(replay);
      } else {
        others.push_back(&replay);
      }
    }
    for (const Replay* replay : others) assign_by_nodes(*replay);
    count_ = replays.size();
  }

  [[nodiscard]] std::int64_t step(const DeviceRecord& record) const {
    const auto found = steps_.find(&record);
    return found == steps_.end() ? -1 : found->second;
  }

  void tell(std::vector<Missing>& missing) const {
    if (differing_ == 0) return;
    missing.push_back(
        {"activities of some replays",
         fmt::format("{} of {} replays did not do what was recorded: {}; {} of their activities "
                     "were found by their nodes, {} belong to no known step",
                     differing_, count_, difference_, found_, lost_)});
  }

 private:
  // As many of each kind in each step, and the same kernels as in the first replay that agreed.
  bool agrees(const Replay& replay) {
    if (replay.size() != expected_.size()) {
      return note(fmt::format("{} activities instead of {}", replay.size(), expected_.size()));
    }
    for (std::size_t begin = 0, end = 0; begin < replay.size(); begin = end) {
      while (end < replay.size() && expected_[end].step == expected_[begin].step) ++end;
      if (!same_kinds(replay, begin, end)) {
        return note(
            fmt::format("step {} recorded other kinds of activities than {} and what follows",
                        expected_[begin].step, replay[begin]->name));
      }
    }
    for (std::size_t i = 0; i < replay.size(); ++i) {
      if (!model_.empty() && replay[i]->name != model_[i]) {
        return note(fmt::format("activity {} of {} is {} instead of {}", i + 1, replay.size(),
                                replay[i]->name, model_[i]));
      }
    }
    return true;
  }

  // In whatever order: a recording tells its nodes in no certain one.
  bool same_kinds(const Replay& replay, std::size_t begin, std::size_t end) const {
    std::vector<Activity> done, wanted;
    for (std::size_t i = begin; i < end; ++i) {
      done.push_back(replay[i]->activity);
      wanted.push_back(expected_[i].activity);
    }
    return std::is_permutation(done.begin(), done.end(), wanted.begin());
  }

  bool note(std::string difference) {
    ++differing_;
    if (difference_.empty()) difference_ = std::move(difference);
    return false;
  }

  void assign(const Replay& replay) {
    const bool is_first = model_.empty();
    for (std::size_t i = 0; i < replay.size(); ++i) {
      steps_[replay[i]] = expected_[i].step;
      if (!is_first) continue;
      model_.push_back(replay[i]->name);
      if (replay[i]->node != 0) nodes_[replay[i]->node] = i;
    }
  }

  void assign_by_nodes(const Replay& replay) {
    for (const DeviceRecord* record : replay) {
      const auto found = nodes_.find(record->node);
      if (found != nodes_.end() && model_[found->second] == record->name) {
        steps_[record] = expected_[found->second].step;
        ++found_;
      } else {
        ++lost_;
      }
    }
  }

  std::vector<Expected> expected_;
  std::vector<std::string> model_;              // names in a replay that agreed
  std::map<std::uint64_t, std::size_t> nodes_;  // of that replay, places in expected_
  std::map<const DeviceRecord*, std::int64_t> steps_;
  std::size_t count_ = 0, differing_ = 0, found_ = 0, lost_ = 0;
  std::string difference_;
};

void tell_lost(const DeviceRecords& records, const OuterCalls& calls, std::size_t untimed,
               std::vector<Missing>& missing) {
  if (records.dropped > 0) {
    missing.push_back({"records of the device",
                       fmt::format("{} were dropped for want of room", records.dropped)});
  }
  if (untimed > 0) {
    missing.push_back(
        {"times of activities", fmt::format("{} of {} were recorded without a begin and an end",
                                            untimed, records.activities.size())});
  }
  std::set<std::uint32_t> started;
  for (const DeviceRecord& record : records.activities) {
    started.insert(calls.correlation(record.correlation));
  }
  // A launch that was recorded runs in the replays only.
  std::set<std::uint32_t> recorded;
  for (const auto& [correlation, origin] : records.origins) {
    if (origin.recorded) recorded.insert(calls.correlation(correlation));
  }
  std::size_t launches = 0, without = 0;
  std::string name;
  for (const CallRecord& call : calls.kept) {
    if (!starts_work(call) || recorded.contains(call.correlation)) continue;
    ++launches;
    if (started.contains(call.correlation)) continue;
    if (without++ == 0) name = call.name;
  }
  if (without > 0) {
    missing.push_back({"records of launches",
                       fmt::format("{} of {} launches left no record of what they started, the "
                                   "first by {}",
                                   without, launches, name)});
  }
}

// Small uploads travel as arguments of a kernel that writes them down.
bool is_small_upload(const ProfileEvent& event) {
  return event.activity == Activity::kernel && event.step < 0 &&
         short_kernel_name(event.name) == "write_small";
}

// One thread drives the device; should another call, too, it has a track of its own.
std::string track_of(std::vector<std::uint32_t>& threads, std::uint32_t thread) {
  const auto found = std::find(threads.begin(), threads.end(), thread);
  const auto index = found - threads.begin();
  if (found == threads.end()) threads.push_back(thread);
  return index == 0 ? "host" : fmt::format("host thread {}", index + 1);
}

}  // namespace

DeviceActivity join_records(DeviceRecords records, const RecordedSteps& recorded,
                            const DeviceClock& clock) {
  const OuterCalls calls = outer_calls(std::move(records.calls));
  // The call that was told the step: an inner call knows what its outer call does not.
  const auto origin_of = [&](std::uint32_t correlation) {
    auto found = records.origins.find(correlation);
    if (found == records.origins.end()) {
      found = records.origins.find(calls.correlation(correlation));
    }
    return found == records.origins.end() ? CallOrigin{} : found->second;
  };

  std::set<std::uint32_t> replay_calls;
  for (const CallRecord& call : calls.kept) {
    if (starts_replay(call)) replay_calls.insert(call.correlation);
  }
  std::map<std::uint32_t, Replay> by_call;
  std::size_t untimed = 0;
  for (const DeviceRecord& record : records.activities) {
    if (record.begin == 0 && record.end == 0) {
      ++untimed;
      continue;
    }
    const std::uint32_t correlation = calls.correlation(record.correlation);
    if (record.node != 0 || replay_calls.contains(correlation)) {
      by_call[correlation].push_back(&record);
    }
  }
  std::vector<Replay> replays;
  for (auto& [correlation, replay] : by_call) replays.push_back(std::move(replay));
  ReplayJoin join(recorded);
  join.join(std::move(replays));

  DeviceActivity result;
  for (const DeviceRecord& record : records.activities) {
    if (record.begin == 0 && record.end == 0) continue;
    const std::int64_t launched = origin_of(record.correlation).step;
    result.events.push_back({.activity = record.activity,
                             .name = record.name,
                             .track = fmt::format("stream {}", record.stream),
                             .begin = clock.seconds(record.begin),
                             .end = clock.seconds(record.end),
                             .step = launched >= 0 ? launched : join.step(record),
                             .correlation = calls.correlation(record.correlation),
                             .bytes = record.bytes});
    if (is_small_upload(result.events.back())) result.events.back().activity = Activity::copy;
  }
  std::vector<std::uint32_t> threads;
  for (const CallRecord& call : calls.kept) {
    if (is_question(call)) continue;
    const CallOrigin origin = origin_of(call.correlation);
    result.events.push_back({.activity = Activity::runtime,
                             .name = call.name,
                             .track = track_of(threads, call.thread),
                             .begin = clock.seconds(call.begin),
                             .end = clock.seconds(call.end),
                             .step = origin.step,
                             .correlation = call.correlation,
                             .bytes = std::nullopt});
  }
  std::stable_sort(result.events.begin(), result.events.end(),
                   [](const ProfileEvent& a, const ProfileEvent& b) { return a.begin < b.begin; });
  tell_lost(records, calls, untimed, result.missing);
  join.tell(result.missing);
  return result;
}

}  // namespace ridgeline
