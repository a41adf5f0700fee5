#include "measure/profile/trace_events.h"

#include <algorithm>
#include <array>
#include <cmath>
#include <map>
#include <nlohmann/json.hpp>

#include "base/error.h"
#include "base/json_text.h"

namespace ridgeline {
namespace {

std::string_view category_of(Activity activity) {
  switch (activity) {
    case Activity::iteration:
    case Activity::data_wait:
      return "user_annotation";
    case Activity::step:
    case Activity::body:
    case Activity::upload:
    case Activity::exchange:
      return "cpu_op";
    case Activity::runtime:
      return "cuda_runtime";
    case Activity::kernel:
      return "kernel";
    case Activity::copy:
      return "gpu_memcpy";
    case Activity::fill:
      return "gpu_memset";
  }
  return "?";
}

bool is_graphics(const std::string& device) { return device.starts_with("cuda"); }

// What is known of the step that an event belongs to.
const StepTime* step_of(const Profile& profile, const ProfileEvent& event) {
  const auto index = static_cast<std::size_t>(event.step);
  return event.step >= 0 && index < profile.steps.size() ? &profile.steps[index] : nullptr;
}

// Analyses tell copies from kernels, and their directions, by the first letters of their names.
std::string copy_name(const std::string& name) {
  if (name.starts_with("Memcpy")) return name;
  if (name == "copy from host to device") return "Memcpy HtoD";
  if (name == "copy from device to host") return "Memcpy DtoH";
  if (name == "copy from device to device") return "Memcpy DtoD";
  return fmt::format("Memcpy ({})", name);
}

std::string name_of(const Profile& profile, const ProfileEvent& event) {
  // Analyses find the iterations by this name.
  if (event.activity == Activity::iteration) {
    return fmt::format("ProfilerStep#{}", std::max<std::int64_t>(event.iteration, 0));
  }
  if (event.activity == Activity::copy) return copy_name(event.name);
  if (event.activity == Activity::fill) return "Memset (Device)";
  const StepTime* step = step_of(profile, event);
  const bool by_ops = event.activity == Activity::step || event.activity == Activity::body ||
                      event.activity == Activity::exchange;
  if (by_ops && step != nullptr && !step->ops.empty()) return step->ops;
  return event.name;
}

// The members of an object, written one after another.
class Members {
 public:
  void add(std::string_view key, std::string_view text) {
    if (!text.empty()) raw(key, json_string(text));
  }
  void add(std::string_view key, std::int64_t number) { raw(key, fmt::format("{}", number)); }
  void raw(std::string_view key, const std::string& json) {
    if (!text_.empty()) text_ += ',';
    text_ += fmt::format("\"{}\":{}", key, json);
  }
  [[nodiscard]] bool empty() const { return text_.empty(); }
  [[nodiscard]] std::string object() const { return '{' + text_ + '}'; }

 private:
  std::string text_;
};

// What joins a step on the host to the runtime calls and kernels that belong to it.
void add_external_id(const Profile& profile, const ProfileEvent& event, Members& arguments) {
  if (event.step < 0 || event.iteration < 0) return;
  const auto steps = static_cast<std::int64_t>(profile.steps.size());
  if (event.step < steps) arguments.add("External id", event.iteration * steps + event.step + 1);
}

Members arguments_of(const Profile& profile, const TraceTracks& tracks, const TraceSpan& span) {
  const ProfileEvent& event = *span.event;
  const TraceTrack& track = tracks.tracks[span.track];
  const StepTime* step = step_of(profile, event);
  Members arguments;
  if (event.activity == Activity::iteration || event.activity == Activity::body) return arguments;
  add_external_id(profile, event, arguments);
  if (is_on_device(event.activity)) {
    arguments.add("device", tracks.device_pid);
    if (track.stream >= 0) arguments.add("stream", track.stream);
  }
  if (event.correlation != 0) arguments.raw("correlation", fmt::format("{}", event.correlation));
  if (event.bytes) {
    arguments.add("bytes", *event.bytes);
    const auto duration = static_cast<double>(span.end - span.begin);
    if (duration > 0.0) {
      arguments.raw("memory bandwidth (GB/s)",
                    fmt::format("{:.3f}", static_cast<double>(*event.bytes) / duration));
    }
  }
  if (step == nullptr || event.activity == Activity::runtime) return arguments;
  arguments.add("layer", step->layer);
  arguments.add("phase", step->phase);
  if (event.activity == Activity::step || event.activity == Activity::exchange) {
    arguments.add("kernel", step->kernel);
    // Where the host computes, its steps are the kernels: HolisticTraceAnalysis counts as computing
    // what has a stream.
    if (!is_graphics(profile.executor.device)) {
      arguments.add("stream", std::int64_t{event.activity == Activity::exchange ? 1 : 0});
    }
    arguments.add("flops", step->flops);
    arguments.add("bytes read", step->bytes_read);
    arguments.add("bytes written", step->bytes_written);
  } else {
    arguments.add("ops", step->ops);
  }
  return arguments;
}

std::string metadata_line(const char* name, std::int64_t pid, std::int64_t tid, const char* key,
                          const std::string& value) {
  return fmt::format(R"({{"ph":"M","name":"{}","pid":{},"tid":{},"ts":0.000,"args":{{"{}":{}}}}})",
                     name, pid, tid, key, value);
}

std::string flow_line(char phase, const TraceTracks& tracks, const TraceSpan& span) {
  const TraceTrack& track = tracks.tracks[span.track];
  // Runtimes of several ranks count alike.
  constexpr int kRankBits = 40;
  const auto rank = static_cast<std::uint64_t>(tracks.rank);
  return fmt::format(
      R"({{"ph":"{}","id":{},"pid":{},"tid":{},"ts":{},"cat":"ac2g","name":"ac2g"{}}})", phase,
      span.event->correlation + (rank << kRankBits), track.pid, track.tid, microseconds(span.begin),
      phase == 'f' ? R"(,"bp":"e")" : "");
}

std::string counter_line(const std::string& name, std::int64_t pid, std::int64_t at,
                         const Members& values) {
  return fmt::format(R"({{"ph":"C","name":{},"pid":{},"tid":0,"ts":{},"args":{}}})",
                     json_string(name), pid, microseconds(at), values.object());
}

void add_readings(const Profile& profile, const TraceTracks& tracks,
                  std::vector<std::string>& lines) {
  for (const Reading& reading : profile.readings) {
    if (!std::isfinite(reading.value)) continue;
    Members values;
    values.raw("value", fmt::format("{}", reading.value));
    const bool graphics = is_graphics(reading.device);
    const std::int64_t device = tracks.ranks > 1 ? tracks.device_pid : device_index(reading.device);
    lines.push_back(counter_line(reading.device + ' ' + reading.sensor,
                                 graphics ? device : tracks.host_pid,
                                 tracks.nanoseconds(reading.at_seconds), values));
  }
}

// Where steps begin: on the device where it has kernels of them, else on the host; in order of
// time.
std::vector<const TraceSpan*> step_beginnings(const TraceTracks& tracks) {
  const bool on_device =
      std::any_of(tracks.spans.begin(), tracks.spans.end(), [](const TraceSpan& span) {
        return span.event->activity == Activity::kernel && span.event->step >= 0;
      });
  const Activity wanted = on_device ? Activity::kernel : Activity::step;
  std::vector<const TraceSpan*> beginnings;
  for (const TraceSpan& span : tracks.spans) {
    if (span.event->activity == wanted && span.event->step >= 0) beginnings.push_back(&span);
  }
  std::stable_sort(beginnings.begin(), beginnings.end(),
                   [](const TraceSpan* a, const TraceSpan* b) { return a->begin < b->begin; });
  return beginnings;
}

void add_memory(const Profile& profile, const TraceTracks& tracks,
                std::vector<std::string>& lines) {
  std::map<std::int64_t, const LiveBytes*> by_step;
  std::array<bool, kRoles> used{};
  for (const LiveBytes& live : profile.memory) {
    by_step[live.step] = &live;
    for (std::size_t role = 0; role < live.by_role.size(); ++role) {
      used[role] = used[role] || live.by_role[role] != 0;
    }
  }
  const bool graphics = is_graphics(profile.executor.device);
  const LiveBytes* before = nullptr;
  for (const TraceSpan* span : step_beginnings(tracks)) {
    const auto found = by_step.find(span->event->step);
    if (found == by_step.end()) continue;
    const LiveBytes* live = found->second;
    if (before != nullptr && before->by_role == live->by_role) continue;
    before = live;
    Members values;
    for (std::size_t role = 0; role < live->by_role.size(); ++role) {
      if (used[role]) values.add(ridgeline::name_of(static_cast<Role>(role)), live->by_role[role]);
    }
    if (values.empty()) continue;
    lines.push_back(counter_line("live bytes (planned)",
                                 graphics ? tracks.device_pid : tracks.host_pid, span->begin,
                                 values));
  }
}

}  // namespace

std::string json_string(std::string_view text) {
  using Json = nlohmann::json;
  return json_text(Json(std::string(text)));
}

std::string microseconds(std::int64_t nanoseconds) {
  return fmt::format("{}.{:03}", nanoseconds / 1000, nanoseconds % 1000);
}

std::vector<std::string> metadata_lines(const TraceTracks& tracks) {
  constexpr std::int64_t kBelowTheHost = 0x1000000;
  std::vector<std::string> lines;
  const auto process = [&](std::int64_t pid, const std::string& label, std::int64_t place) {
    lines.push_back(metadata_line("process_name", pid, 0, "name", json_string("ridgeline")));
    lines.push_back(metadata_line("process_labels", pid, 0, "labels", json_string(label)));
    lines.push_back(
        metadata_line("process_sort_index", pid, 0, "sort_index", fmt::format("{}", place)));
  };
  const std::string whose = tracks.ranks > 1 ? fmt::format("rank {}, ", tracks.rank) : "";
  process(tracks.host_pid, whose + "CPU", tracks.host_pid);
  if (std::any_of(tracks.tracks.begin(), tracks.tracks.end(),
                  [](const TraceTrack& track) { return track.on_device; })) {
    const std::int64_t index =
        tracks.ranks > 1 ? tracks.device_pid - tracks.host_pid : tracks.device_pid;
    process(tracks.device_pid, fmt::format("{}GPU {}", whose, index % 1000),
            tracks.device_pid + (tracks.ranks > 1 ? 0 : kBelowTheHost));
  }
  std::int64_t place = 0;
  for (const TraceTrack& track : tracks.tracks) {
    lines.push_back(
        metadata_line("thread_name", track.pid, track.tid, "name", json_string(track.name)));
    lines.push_back(metadata_line("thread_sort_index", track.pid, track.tid, "sort_index",
                                  fmt::format("{}", place++)));
  }
  return lines;
}

std::vector<std::string> span_lines(const Profile& profile, const TraceTracks& tracks) {
  std::vector<std::string> lines;
  lines.reserve(tracks.spans.size());
  for (const TraceSpan& span : tracks.spans) {
    const TraceTrack& track = tracks.tracks[span.track];
    const Members arguments = arguments_of(profile, tracks, span);
    lines.push_back(fmt::format(
        R"({{"ph":"X","cat":"{}","name":{},"pid":{},"tid":{},"ts":{},"dur":{}{}}})",
        category_of(span.event->activity), json_string(name_of(profile, *span.event)), track.pid,
        track.tid, microseconds(span.begin), microseconds(span.end - span.begin),
        arguments.empty() ? std::string() : R"(,"args":)" + arguments.object()));
  }
  return lines;
}

std::vector<std::string> flow_lines(const TraceTracks& tracks) {
  struct Pair {
    const TraceSpan *call = nullptr, *started = nullptr;
  };
  std::map<std::uint64_t, Pair> pairs;
  for (const TraceSpan& span : tracks.spans) {
    if (span.event->correlation == 0) continue;
    const bool call = span.event->activity == Activity::runtime;
    if (!call && !is_on_device(span.event->activity)) continue;
    Pair& pair = pairs[span.event->correlation];
    const TraceSpan*& end = call ? pair.call : pair.started;
    if (end == nullptr || span.begin < end->begin) end = &span;
  }
  std::vector<std::string> lines;
  for (const auto& [correlation, pair] : pairs) {
    if (pair.call == nullptr || pair.started == nullptr) continue;
    if (pair.started->begin < pair.call->begin) continue;
    lines.push_back(flow_line('s', tracks, *pair.call));
    lines.push_back(flow_line('f', tracks, *pair.started));
  }
  return lines;
}

std::vector<std::string> counter_lines(const Profile& profile, const TraceTracks& tracks) {
  std::vector<std::string> lines;
  add_readings(profile, tracks, lines);
  add_memory(profile, tracks, lines);
  return lines;
}

std::vector<std::string> window_lines(const TraceTracks& tracks) {
  const std::string end = microseconds(tracks.last);
  return {fmt::format(R"({{"ph":"X","cat":"Trace","name":"Ridgeline","pid":"Spans",)"
                      R"("tid":"Ridgeline","ts":0.000,"dur":{},"args":{{"Op count":{}}}}})",
                      end, tracks.spans.size()),
          R"({"ph":"i","s":"g","name":"Iteration Start: Ridgeline","pid":"Traces",)"
          R"("tid":"Trace Ridgeline","ts":0.000})",
          fmt::format(
              R"({{"ph":"i","s":"g","name":"Record Window End","pid":"","tid":"","ts":{}}})", end)};
}

}  // namespace ridgeline
