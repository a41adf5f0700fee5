// Profiles of several ranks, and their common trace.

#include <gtest/gtest.h>

#include <algorithm>
#include <map>
#include <nlohmann/json.hpp>
#include <set>

#include "support/program.h"
#include "support/rank_jobs.h"

namespace ridgeline {
namespace {

using testing::contains;
using testing::contents_of;
using testing::count_of;
using testing::Outcome;
using testing::processes_in;
using Json = nlohmann::json;

class ProfileRanks : public testing::RankTest {};

const char* const kProfile =
    "profile resnet18 --image 32 --classes 4 --batch 16 --steps 3 --threads 1 --telemetry 0 "
    "--no-store ";

struct Span {
  double begin = 0.0, end = 0.0;
};

// What one process of a trace shows.
struct Process {
  std::string label;
  std::vector<Span> iterations, exchanges, backward;  // backward: steps of the host
};

std::map<std::int64_t, Process> processes_of(const Json& trace) {
  std::map<std::int64_t, Process> found;
  std::map<std::pair<std::int64_t, std::int64_t>, std::string> tracks;
  for (const Json& event : trace["traceEvents"]) {
    if (event["name"] == "process_labels") found[event["pid"]].label = event["args"]["labels"];
    if (event["name"] == "thread_name") {
      tracks[{event["pid"], event["tid"]}] = event["args"]["name"];
    }
    if (event["ph"] != "X" || !event["pid"].is_number()) continue;
    Process& process = found[event["pid"]];
    const double begin = event["ts"].get<double>();
    const Span span = {begin, begin + event["dur"].get<double>()};
    const std::string& track = tracks[{event["pid"], event["tid"]}];
    if (event["cat"] == "user_annotation") process.iterations.push_back(span);
    if (track == "exchange") process.exchanges.push_back(span);
    const std::string phase = event.value("args", Json::object()).value("phase", "");
    if (track == "host" && phase.starts_with("backward")) process.backward.push_back(span);
  }
  return found;
}

bool overlap(const Span& a, const Span& b) { return a.begin < b.end && b.begin < a.end; }

TEST_F(ProfileRanks, ATraceHasAProcessForEachWithItsExchangesBesideTheBackwardPass) {
  const Outcome outcome = run(std::string(kProfile) + "--ranks 2 --trace t.json --json");
  ASSERT_EQ(outcome.code, 0) << outcome.err;
  const Json profile = Json::parse(outcome.out);
  EXPECT_TRUE(contains(profile.dump(), "mpi:all_reduce"));
  const Json trace = Json::parse(contents_of(folder_ / "t.json"));
  EXPECT_EQ(trace["distributedInfo"]["world_size"], 2);
  EXPECT_EQ(trace["distributedInfo"]["backend"], "mpi");
  std::set<std::string> labels;
  std::vector<Process> all;
  for (const auto& [pid, process] : processes_of(trace)) {
    labels.insert(process.label);
    all.push_back(process);
    EXPECT_EQ(process.iterations.size(), 3U) << process.label;
    EXPECT_GT(process.exchanges.size(), 3U) << process.label;
    const auto hidden = std::count_if(
        process.exchanges.begin(), process.exchanges.end(), [&](const Span& exchange) {
          return std::any_of(process.backward.begin(), process.backward.end(),
                             [&](const Span& step) { return overlap(exchange, step); });
        });
    EXPECT_GT(hidden, 0) << process.label << ": nothing is exchanged while it computes";
  }
  EXPECT_EQ(labels, (std::set<std::string>{"rank 0, CPU", "rank 1, CPU"}));
  // By one clock: ranks meet in every step.
  ASSERT_EQ(all.size(), 2U);
  for (std::size_t i = 0; i < 3; ++i) {
    EXPECT_TRUE(overlap(all[0].iterations[i], all[1].iterations[i]));
  }
}

TEST_F(ProfileRanks, TheTableIsOneAndAddsUp) {
  const Outcome outcome = run(std::string(kProfile) + "--ranks 2 --by step --json");
  ASSERT_EQ(outcome.code, 0) << outcome.err;
  const Json profile = Json::parse(outcome.out);
  double sum = 0.0;
  for (const Json& row : profile["rows"]) sum += row["ms"].get<double>();
  EXPECT_NEAR(sum, profile["step_ms"].get<double>(), 1e-6 * sum);
  EXPECT_EQ(profile["ranks"], 2);
  EXPECT_FALSE(profile["transport"].get<std::string>().empty());
}

TEST_F(ProfileRanks, BadInputIsOneLine) {
  const std::pair<const char*, const char*> calls[] = {
      {"--ranks 0", "--ranks 0: must be a number, at least 1"},
      {"--ranks two", "--ranks two: must be a number"},
      {"--ranks 3", "batch 16 cannot be divided evenly among 3 ranks"},
      {"--ranks 2 --backend auto", "--backend auto: ranks would choose different kernels"},
      {"--ranks 2 --inference", "--ranks is for training steps"},
      {"--ranks 2 --steps 0", "--steps 0: must be between"},
      {"--ranks 2 --set nothing=1", "nothing"},
  };
  for (const auto& [words, reason] : calls) {
    const Outcome outcome = run(std::string(kProfile) + words);
    EXPECT_EQ(outcome.code, 2) << words << outcome.err;
    EXPECT_TRUE(contains(outcome.err, reason)) << outcome.err;
    EXPECT_EQ(count_of(outcome.err, "ridgeline: "), 1U) << words << outcome.err;
  }
  EXPECT_TRUE(processes_in(folder_).empty());
}

}  // namespace
}  // namespace ridgeline
