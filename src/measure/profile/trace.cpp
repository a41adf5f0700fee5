#include "measure/profile/trace.h"

#include <unistd.h>

#include <cstdlib>
#include <filesystem>
#include <nlohmann/json.hpp>

#include "base/durable_file.h"
#include "base/error.h"
#include "base/gzip.h"
#include "base/json_text.h"
#include "measure/profile/trace_events.h"
#include "store/identity_fields.h"

namespace ridgeline {
namespace {

using Json = nlohmann::ordered_json;

bool on_graphics(const Profile& profile) { return profile.executor.device.starts_with("cuda"); }

// "9.0" -> 9 and 0
Json device_json(const Profile& profile, const GpuInfo& gpu) {
  const std::size_t dot = gpu.capability.find('.');
  Json json = {{"id", device_index(profile.executor.device)},
               {"name", gpu.name},
               {"totalGlobalMem", gpu.memory_bytes},
               {"numSms", gpu.multiprocessors}};
  if (dot != std::string::npos) {
    json["computeMajor"] = std::atoi(gpu.capability.substr(0, dot).c_str());
    json["computeMinor"] = std::atoi(gpu.capability.substr(dot + 1).c_str());
  }
  return json;
}

// What was profiled, for a reader who has nothing but the trace.
Json description_of(const Profile& profile) {
  const auto milliseconds = [](double seconds) {
    return seconds > 0.0 ? Json(seconds * 1e3) : Json(nullptr);
  };
  Json missing = Json::array(), findings = Json::array();
  for (const Missing& gap : profile.missing) {
    missing.push_back({{"what", gap.what}, {"reason", gap.reason}});
  }
  for (const Finding& finding : profile.findings) {
    findings.push_back(
        {{"name", finding.name}, {"severity", finding.severity}, {"evidence", finding.evidence}});
  }
  Json json = to_json(profile.work);
  json.update(to_json(profile.executor));
  json.update({{"profiled_step_ms", milliseconds(profile.profiled_seconds)},
               {"unprofiled_step_ms", milliseconds(profile.unprofiled_seconds)},
               {"missing", std::move(missing)},
               {"findings", std::move(findings)}});
  return json;
}

}  // namespace

std::string trace_events(const Profile& profile, const TraceProcess& process) {
  const TraceTracks tracks = trace_tracks(profile, process);
  std::string text;
  for (const std::vector<std::string>& lines :
       {metadata_lines(tracks), span_lines(profile, tracks), flow_lines(tracks),
        counter_lines(profile, tracks)}) {
    for (const std::string& line : lines) text += (text.empty() ? "" : ",\n") + line;
  }
  return text;
}

std::string trace_json(const Profile& profile, const TraceDetails& details,
                       const std::string& others) {
  const TraceTracks tracks = trace_tracks(profile, details.process);
  Json devices = Json::array();
  if (details.gpu) devices.push_back(device_json(profile, *details.gpu));
  // HolisticTraceAnalysis looks for the rank with a pattern that wants a blank after the colon.
  std::string text = fmt::format(
      "{{\n\"schemaVersion\": 1,\n\"deviceProperties\": {},\n"
      "\"distributedInfo\": {{\"backend\": \"{}\", \"rank\": {}, \"world_size\": {}}},\n"
      "\"ridgeline\": {},\n\"traceName\": {},\n\"displayTimeUnit\": \"ms\",\n"
      "\"baseTimeNanoseconds\": {},\n\"traceEvents\": [\n",
      json_text(devices),
      tracks.ranks == 1      ? "none"
      : on_graphics(profile) ? "nccl"
                             : "mpi",
      tracks.rank, tracks.ranks, json_text(description_of(profile)), json_string(details.name),
      profile.began_unix_nanoseconds > 0 ? profile.began_unix_nanoseconds + tracks.beginning : 0);
  text += trace_events(profile, details.process);
  if (!others.empty()) text += ",\n" + others;
  for (const std::string& line : window_lines(tracks)) text += ",\n" + line;
  return text + "\n]\n}\n";
}

namespace {

TraceDetails details_of(const Profile& profile, const std::string& path) {
  TraceDetails details;
  details.process.host_pid = getpid();
  details.name = std::filesystem::path(path).filename().string();
  if (on_graphics(profile)) {
    const std::vector<GpuInfo> gpus = cuda_devices();
    const auto index = static_cast<std::size_t>(device_index(profile.executor.device));
    if (index < gpus.size()) details.gpu = gpus[index];
  }
  return details;
}

void write_text(const std::string& path, const std::string& text) {
  DurableFile file(path);
  file.write(path.ends_with(".gz") ? gzipped(text) : text);
  file.commit();
}

}  // namespace

void write_trace(const Profile& profile, const std::string& path) {
  write_text(path, trace_json(profile, details_of(profile, path)));
}

void write_trace(const Profile& profile, const std::string& path, Ranks& ranks) {
  TraceDetails details = details_of(profile, path);
  TraceProcess& process = details.process;
  process.rank = ranks.rank();
  process.ranks = ranks.size();
  // Each profile counts from a moment of its own; the earliest beginning is that of the trace.
  const std::int64_t own =
      profile.began_unix_nanoseconds + trace_tracks(profile, process).beginning;
  std::int64_t earliest = -own;
  ranks.all_reduce({&earliest, 1}, Ranks::Reduction::maximum);
  process.earlier = own + earliest;
  const std::vector<std::string> all =
      ranks.gather(ranks.first() ? std::string() : trace_events(profile, process));
  if (!ranks.first()) return;
  std::string others;
  for (const std::string& events : all) {
    if (!events.empty()) others += (others.empty() ? "" : ",\n") + events;
  }
  write_text(path, trace_json(profile, details, others));
}

}  // namespace ridgeline
