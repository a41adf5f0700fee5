// Traces, read back with an independent JSON reader.

#include "measure/profile/trace.h"

#include <gtest/gtest.h>
#include <unistd.h>

#include <cmath>
#include <filesystem>
#include <fstream>
#include <map>
#include <nlohmann/json.hpp>
#include <set>

#include "base/error.h"
#include "base/gzip.h"
#include "base/text_file.h"
#include "data/file.h"
#include "support/sample_profiles.h"

namespace ridgeline {
namespace {

using Json = nlohmann::json;
using testing::made_up_gpu_profile;
using testing::stepped_profile;

constexpr std::int64_t kProcess = 4321;

Json trace_of(const Profile& profile) {
  return Json::parse(
      trace_json(profile, {.process = {.host_pid = kProcess}, .name = "t.json", .gpu = {}}));
}

std::vector<Json> events_of(const Json& trace, const std::string& phase) {
  std::vector<Json> events;
  for (const Json& event : trace.at("traceEvents")) {
    if (event.at("ph") == phase) events.push_back(event);
  }
  return events;
}

std::vector<Json> with_category(const Json& trace, const std::string& category) {
  std::vector<Json> events;
  for (const Json& event : events_of(trace, "X")) {
    if (event.at("cat") == category) events.push_back(event);
  }
  return events;
}

std::int64_t nanoseconds(const Json& microseconds) {
  return std::llround(microseconds.get<double>() * 1e3);
}

// Everything that holds of any trace.
void expect_sound(const Json& trace) {
  EXPECT_EQ(trace.at("schemaVersion"), 1);
  EXPECT_TRUE(trace.at("deviceProperties").is_array());
  EXPECT_EQ(trace.at("distributedInfo").at("rank"), 0);
  EXPECT_EQ(trace.at("distributedInfo").at("world_size"), 1);
  EXPECT_EQ(trace.at("traceName"), "t.json");
  EXPECT_EQ(trace.at("displayTimeUnit"), "ms");
  EXPECT_TRUE(trace.at("baseTimeNanoseconds").is_number_integer());

  using Place = std::pair<std::string, std::string>;
  std::map<Place, std::vector<std::int64_t>> open;
  std::map<Place, std::int64_t> last;
  std::set<Place> named;
  for (const Json& event : trace.at("traceEvents")) {
    const std::string phase = event.at("ph");
    EXPECT_TRUE(event.at("name").is_string());
    EXPECT_GE(event.at("ts").get<double>(), 0.0) << event;
    const Place place(event.at("pid").dump(), event.at("tid").dump());
    if (phase == "M" && event.at("name") == "thread_name") named.insert(place);
    if (phase != "X") continue;
    EXPECT_TRUE(event.at("cat").is_string());
    const std::int64_t begin = nanoseconds(event.at("ts")), length = nanoseconds(event.at("dur"));
    EXPECT_GE(length, 0) << event;
    // In order of time, and either inside what is open or after it.
    EXPECT_GE(begin, last[place]) << event;
    last[place] = begin;
    std::vector<std::int64_t>& ends = open[place];
    while (!ends.empty() && ends.back() <= begin) ends.pop_back();
    if (!ends.empty()) {
      EXPECT_LE(begin + length, ends.back()) << event;
    }
    ends.push_back(begin + length);
    if (event.at("cat") != "Trace") {
      EXPECT_TRUE(named.contains(place)) << event;
    }
  }

  std::map<std::uint64_t, std::int64_t> started, finished;
  for (const Json& event : events_of(trace, "s")) {
    EXPECT_EQ(event.at("cat"), "ac2g");
    EXPECT_TRUE(started.emplace(event.at("id"), nanoseconds(event.at("ts"))).second) << event;
  }
  for (const Json& event : events_of(trace, "f")) {
    EXPECT_EQ(event.at("bp"), "e");
    EXPECT_TRUE(finished.emplace(event.at("id"), nanoseconds(event.at("ts"))).second) << event;
  }
  EXPECT_EQ(started.size(), finished.size());
  for (const auto& [id, begin] : started) {
    ASSERT_TRUE(finished.contains(id)) << id;
    EXPECT_LE(begin, finished.at(id)) << id;
  }
}

TEST(Trace, ACpuRunHasItsStepsInsideItsIterations) {
  const Profile profile = stepped_profile("mlp", 8, 2);
  const Json trace = trace_of(profile);
  expect_sound(trace);
  const std::vector<Json> iterations = with_category(trace, "user_annotation");
  ASSERT_EQ(iterations.size(), 2u);
  EXPECT_EQ(iterations[0].at("name"), "ProfilerStep#0");
  EXPECT_EQ(iterations[1].at("name"), "ProfilerStep#1");
  const std::vector<Json> steps = with_category(trace, "cpu_op");
  ASSERT_EQ(steps.size(), 2 * profile.steps.size());
  for (std::size_t s = 0; s < steps.size(); ++s) {
    const StepTime& expected = profile.steps[s % profile.steps.size()];
    const Json& iteration = iterations[s / profile.steps.size()];
    EXPECT_EQ(steps[s].at("name"), expected.ops);
    EXPECT_EQ(steps[s].at("pid"), kProcess);
    EXPECT_EQ(steps[s].at("tid"), iteration.at("tid"));
    EXPECT_GE(nanoseconds(steps[s].at("ts")), nanoseconds(iteration.at("ts")));
    const Json& arguments = steps[s].at("args");
    EXPECT_EQ(arguments.at("layer"), expected.layer);
    EXPECT_EQ(arguments.at("phase"), expected.phase);
    EXPECT_EQ(arguments.at("kernel"), expected.kernel);
    EXPECT_EQ(arguments.at("stream"), 0);
    EXPECT_EQ(arguments.at("flops"), expected.flops);
    EXPECT_EQ(arguments.at("bytes read"), expected.bytes_read);
  }
  EXPECT_TRUE(events_of(trace, "s").empty());
}

TEST(Trace, MemoryAndTelemetryAreCounters) {
  const Profile profile = stepped_profile("mlp", 8, 1);
  std::int64_t readings = 0, memory = 0;
  for (const Json& event : events_of(trace_of(profile), "C")) {
    EXPECT_EQ(event.at("pid"), kProcess);
    if (event.at("name") == "cpu rss_bytes") {
      ++readings;
      EXPECT_EQ(event.at("args").at("value"), 1e8);
    } else {
      ++memory;
      EXPECT_EQ(event.at("name"), "live bytes (planned)");
      EXPECT_EQ(event.at("args").at("parameter"),
                profile.memory[0].by_role[static_cast<std::size_t>(Role::parameter)]);
    }
  }
  EXPECT_EQ(readings, 1);
  EXPECT_GT(memory, 1);
}

TEST(Trace, AGpuRunJoinsItsCallsToWhatTheyStart) {
  const Profile profile = made_up_gpu_profile(2, 10, 3);
  const Json trace = trace_of(profile);
  expect_sound(trace);
  EXPECT_EQ(trace.at("baseTimeNanoseconds"), 1'700'000'000'000'000'000);
  const std::vector<Json> kernels = with_category(trace, "kernel");
  ASSERT_EQ(kernels.size(), 60u);
  for (const Json& kernel : kernels) {
    EXPECT_EQ(kernel.at("pid"), 0);
    EXPECT_EQ(kernel.at("tid"), 7);
    EXPECT_EQ(kernel.at("args").at("device"), 0);
    EXPECT_EQ(kernel.at("args").at("stream"), 7);
    EXPECT_GT(kernel.at("args").at("correlation"), 0);
    EXPECT_FALSE(kernel.at("args").at("layer").get<std::string>().empty());
  }
  const std::vector<Json> copies = with_category(trace, "gpu_memcpy");
  ASSERT_EQ(copies.size(), 2u);
  EXPECT_EQ(copies[0].at("name"), "Memcpy HtoD");
  EXPECT_EQ(copies[0].at("tid"), 13);
  EXPECT_EQ(copies[0].at("args").at("bytes"), 602'112);
  EXPECT_NEAR(copies[0].at("args").at("memory bandwidth (GB/s)").get<double>(), 12.042, 0.01);
  EXPECT_EQ(with_category(trace, "gpu_memset").size(), 2u);
  // A launch for each of them, two waits more.
  EXPECT_EQ(with_category(trace, "cuda_runtime").size(), 60u + 2u + 2u + 2u);
  EXPECT_EQ(events_of(trace, "s").size(), 64u);

  // Kernels lead to their step on the host.
  std::map<std::int64_t, std::string> layers;
  for (const Json& step : with_category(trace, "cpu_op")) {
    if (step.value("args", Json::object()).contains("External id")) {
      layers[step.at("args").at("External id")] = step.at("args").at("layer");
    }
  }
  EXPECT_EQ(layers.size(), 20u);
  for (const Json& kernel : kernels) {
    const Json& arguments = kernel.at("args");
    EXPECT_EQ(layers.at(arguments.at("External id")), arguments.at("layer"));
  }
}

// One launch of a recording starts all kernels of an iteration; the host sees no steps.
TEST(Trace, ARecordedStepHasItsLayersOnTheDevice) {
  const Profile profile = made_up_gpu_profile(2, 10, 3, testing::Launching::recorded);
  const Json trace = trace_of(profile);
  expect_sound(trace);
  EXPECT_EQ(with_category(trace, "cuda_runtime").size(), 8u);
  EXPECT_EQ(events_of(trace, "s").size(), 6u);
  const std::vector<Json> kernels = with_category(trace, "kernel");
  ASSERT_EQ(kernels.size(), 60u);
  for (std::size_t k = 0; k < kernels.size(); ++k) {
    const StepTime& step = profile.steps[k / 3 % 10];
    EXPECT_EQ(kernels[k].at("args").at("layer"), step.layer);
    EXPECT_EQ(kernels[k].at("args").at("ops"), step.ops);
  }
  std::size_t memory = 0;
  for (const Json& event : events_of(trace, "C")) {
    if (event.at("name") != "live bytes (planned)") continue;
    EXPECT_EQ(event.at("pid"), 0);
    ++memory;
  }
  EXPECT_GE(memory, 10u);
}

TEST(Trace, ProcessesAndTracksHaveNames) {
  std::map<std::string, std::vector<std::string>> named;
  for (const Json& event : events_of(trace_of(made_up_gpu_profile(1, 2, 1)), "M")) {
    named[event.at("name")].push_back(event.at("args").begin()->dump());
  }
  EXPECT_EQ(named["process_labels"], (std::vector<std::string>{"\"CPU\"", "\"GPU 0\""}));
  EXPECT_EQ(named["thread_name"],
            (std::vector<std::string>{"\"host\"", "\"thread 0\"", "\"thread 1\"", "\"stream 7\"",
                                      "\"stream 13\""}));
  EXPECT_EQ(named["process_sort_index"].size(), 2u);
  EXPECT_EQ(named["thread_sort_index"].size(), 5u);
}

// A launch of a recorded graph starts many kernels, and the clocks of host and device differ.
TEST(Trace, OneArrowForACallAndNoneBackInTime) {
  Profile profile;
  profile.executor.device = "cuda:1";
  const auto add = [&](Activity activity, const char* track, double begin, double end,
                       std::uint64_t correlation) {
    profile.events.push_back({.activity = activity,
                              .name = "x",
                              .track = track,
                              .begin = begin,
                              .end = end,
                              .correlation = correlation,
                              .bytes = {}});
  };
  add(Activity::runtime, "host", 0.0, 0.1, 5);
  add(Activity::kernel, "stream 7", 0.3, 0.4, 5);
  add(Activity::kernel, "stream 7", 0.2, 0.3, 5);
  add(Activity::runtime, "host", 0.5, 0.6, 6);
  add(Activity::kernel, "stream 7", 0.499, 0.55, 6);
  add(Activity::kernel, "stream 7", 0.6, 0.7, 9);  // its call was not seen
  add(Activity::runtime, "host", 0.7, 0.8, 10);    // started nothing
  const Json trace = trace_of(profile);
  expect_sound(trace);
  const std::vector<Json> ends = events_of(trace, "f");
  ASSERT_EQ(ends.size(), 1u);
  EXPECT_EQ(ends[0].at("id"), 5);
  EXPECT_EQ(ends[0].at("pid"), 1);
  EXPECT_EQ(nanoseconds(ends[0].at("ts")), 200'000'000);
}

TEST(Trace, WhatOverlapsInPartGetsALaneOfItsOwn) {
  Profile profile;
  profile.executor.device = "cuda:0";
  const auto add = [&](Activity activity, const char* track, double begin, double end) {
    profile.events.push_back({.activity = activity,
                              .name = "x",
                              .track = track,
                              .begin = begin,
                              .end = end,
                              .bytes = {}});
  };
  add(Activity::kernel, "stream 7", 0.0, 0.4);
  add(Activity::kernel, "stream 7", 0.1, 0.2);  // inside: on a device it runs beside, not within
  add(Activity::kernel, "stream 7", 0.3, 0.5);
  add(Activity::step, "host", 0.0, 0.4);
  add(Activity::runtime, "host", 0.1, 0.2);
  add(Activity::runtime, "host", 0.3, 0.5);
  const Json trace = trace_of(profile);
  expect_sound(trace);
  std::map<std::int64_t, int> on_stream, on_host;
  for (const Json& event : with_category(trace, "kernel")) {
    ++on_stream[event.at("tid")];
    EXPECT_EQ(event.at("args").at("stream"), 7);
  }
  for (const char* category : {"cpu_op", "cuda_runtime"}) {
    for (const Json& event : with_category(trace, category)) ++on_host[event.at("tid")];
  }
  ASSERT_EQ(on_stream.size(), 2u);
  EXPECT_EQ(on_stream.at(7), 1);
  ASSERT_EQ(on_host.size(), 2u);
  EXPECT_EQ(on_host.at(kProcess), 2);
}

TEST(Trace, TimesBeforeTheProfilesZeroMoveTheBeginning) {
  Profile profile = made_up_gpu_profile(1, 2, 1);
  profile.readings.push_back({-0.25, "cpu", "rss_bytes", 1e9});
  profile.readings.push_back({0.0, "cpu", "load", std::nan("")});
  const Json trace = trace_of(profile);
  expect_sound(trace);
  EXPECT_EQ(trace.at("baseTimeNanoseconds"), 1'700'000'000'000'000'000 - 250'000'000);
  EXPECT_EQ(nanoseconds(with_category(trace, "user_annotation")[0].at("ts")), 251'000'000);
  for (const Json& event : events_of(trace, "C")) EXPECT_NE(event.at("name"), "cpu load");
}

TEST(Trace, AnyNameIsSafe) {
  Profile profile;
  profile.executor.device = "cpu";
  const std::vector<std::string> names = {"say \"conv\" \\ / \b\f\n\r\t", std::string("a\0b", 3),
                                          "\x01\x1f\x7f",
                                          "gr\xc3\xb6\xc3\x9f"
                                          "e"};
  for (const std::string& name : names) {
    profile.events.push_back({.activity = Activity::step,
                              .name = name,
                              .track = "track \"" + name,
                              .begin = 0.0,
                              .end = 1.0,
                              .bytes = {}});
  }
  profile.events.push_back({.activity = Activity::step,
                            .name = "bad \xff\xc3( utf-8",
                            .track = "\xfe",
                            .begin = 0.0,
                            .end = 1.0,
                            .bytes = {}});
  const Json trace = trace_of(profile);
  expect_sound(trace);
  std::set<std::string> found;
  for (const Json& event : with_category(trace, "cpu_op")) found.insert(event.at("name"));
  for (const std::string& name : names) EXPECT_TRUE(found.contains(name)) << name;
  EXPECT_TRUE(found.contains("bad \xef\xbf\xbd\xef\xbf\xbd( utf-8"));
}

TEST(Trace, AnEmptyProfileIsATrace) {
  const Json trace = trace_of({});
  expect_sound(trace);
  EXPECT_TRUE(with_category(trace, "cpu_op").empty());
}

class TraceFile : public ::testing::Test {
 protected:
  void SetUp() override { std::filesystem::create_directories(folder); }
  void TearDown() override { std::filesystem::remove_all(folder); }
  [[nodiscard]] std::string text_of(const char* name) const { return read_text(folder / name); }
  std::filesystem::path folder =
      std::filesystem::path(::testing::TempDir()) / fmt::format("ridgeline_trace_{}", getpid());
};

TEST_F(TraceFile, CompressedAndPlainHoldTheSame) {
  const Profile profile = made_up_gpu_profile(2, 20, 2);
  write_trace(profile, folder / "a.json");
  write_trace(profile, folder / "a.json.gz");
  const std::string packed = text_of("a.json.gz");
  ASSERT_GT(packed.size(), 2u);
  EXPECT_EQ(packed.substr(0, 2), "\x1f\x8b");
  EXPECT_LT(packed.size() * 4, text_of("a.json").size());
  const std::vector<std::uint8_t> unpacked = read_file(folder / "a.json.gz");
  Json plain = Json::parse(text_of("a.json")), same = Json::parse(unpacked);
  EXPECT_EQ(plain.at("traceName"), "a.json");
  EXPECT_EQ(same.at("traceName"), "a.json.gz");
  plain.erase("traceName");
  same.erase("traceName");
  EXPECT_EQ(plain, same);
}

TEST_F(TraceFile, GzipKeepsEveryByte) {
  std::string noise;
  std::uint32_t state = 1;
  for (int i = 0; i < 300'000; ++i) {
    state = state * 1664525U + 1013904223U;
    noise += static_cast<char>(state >> 24U);
  }
  for (const std::string& text : {std::string(), std::string("x"), noise}) {
    const std::string packed = gzipped(text);
    std::ofstream(folder / "x.gz", std::ios::binary) << packed;
    const std::vector<std::uint8_t> unpacked = read_file(folder / "x.gz");
    EXPECT_EQ(std::string(unpacked.begin(), unpacked.end()), text);
  }
}

TEST_F(TraceFile, WhereNothingCanBeWrittenNothingIsLeft) {
  EXPECT_THROW(write_trace({}, folder / "missing" / "a.json"), Error);
  std::filesystem::create_directory(folder / "taken.json");
  EXPECT_THROW(write_trace({}, folder / "taken.json"), Error);
  std::size_t left = 0;
  for ([[maybe_unused]] const auto& entry : std::filesystem::directory_iterator(folder)) ++left;
  EXPECT_EQ(left, 1u);
}

// A training step of ResNet50 has some 330 steps and, on CUDA, up to three kernels in each.
TEST_F(TraceFile, AStepOfResNet50IsSmall) {
  const Profile profile = made_up_gpu_profile(1, 330, 3);
  write_trace(profile, folder / "r.json");
  write_trace(profile, folder / "r.json.gz");
  EXPECT_LT(std::filesystem::file_size(folder / "r.json"), 2'000'000u);
  EXPECT_LT(std::filesystem::file_size(folder / "r.json.gz"), 200'000u);
}

}  // namespace
}  // namespace ridgeline
