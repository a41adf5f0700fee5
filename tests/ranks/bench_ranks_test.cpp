// Steps that several ranks share, measured beside each other, and the links between the ranks.

#include <gtest/gtest.h>

#include <map>
#include <nlohmann/json.hpp>

#include "measure/iterations/rank_step.h"
#include "store/store.h"
#include "support/program.h"
#include "support/rank_jobs.h"

namespace ridgeline {
namespace {

using testing::contains;
using testing::contents_of;
using testing::count_of;
using testing::Outcome;
using testing::processes_in;

class BenchRanks : public testing::RankTest {};

const char* const kBench =
    "bench mlp --image 12 --batch 16 --warmup 1 --iterations 12 --threads 1 --telemetry 0 ";

TEST_F(BenchRanks, EveryNumberIsMeasuredAndStored) {
  const Outcome outcome = run(std::string(kBench) +
                              "--ranks 1,2,4 --scaling weak --unconnected --json --csv rows.csv "
                              "--store s.db");
  ASSERT_EQ(outcome.code, 0) << outcome.err;
  const auto json = nlohmann::json::parse(outcome.out);
  std::map<std::pair<int, std::string>, std::int64_t> batches;
  for (const auto& result : json["results"]) {
    const int ranks = result["ranks"].get<int>();
    const auto transport = result["transport"].get<std::string>();
    const bool exchanges = ranks > 1 && transport != "unconnected";
    batches[{ranks, exchanges ? "mpi" : transport}] = result["batch"].get<std::int64_t>();
    EXPECT_EQ(result["samples"], 12);
    EXPECT_EQ(result["nodes"], 1);
    EXPECT_EQ(result["threads"], 1);
    EXPECT_EQ(result["bucket_bytes"].get<int>() > 0, exchanges);
    EXPECT_EQ(result["exchange_ms"].is_null(), !exchanges);
    if (exchanges) {
      EXPECT_FALSE(transport.empty());
      EXPECT_GT(result["exchange_ms"].get<double>(), 0.0);
      EXPECT_GT(result["exposed_ms"].get<double>(), 0.0);
    }
    // A step's work is that of all ranks; sums over ranks are little beside it.
    EXPECT_NEAR(
        result["training_flops"].get<double>() / json["results"][0]["training_flops"].get<double>(),
        ranks, 0.02 * ranks);
  }
  using Batches = std::map<std::pair<int, std::string>, std::int64_t>;
  EXPECT_EQ(batches, (Batches{{{1, ""}, 16},
                              {{2, "mpi"}, 32},
                              {{2, "unconnected"}, 32},
                              {{4, "mpi"}, 64},
                              {{4, "unconnected"}, 64}}));

  // One rank, then two and four, each joined and not.
  ASSERT_EQ(json["scaling"].size(), 5U);
  for (const auto& point : json["scaling"]) {
    EXPECT_EQ(point["scaling"], "weak");
    EXPECT_EQ(point["base_ranks"], 1);
    const double efficiency = point["efficiency"]["value"].get<double>();
    EXPECT_NEAR(point["speedup"].get<double>(), efficiency * point["ranks"].get<double>(), 1e-9);
    EXPECT_LE(point["efficiency"]["low"].get<double>(), efficiency);
    EXPECT_GE(point["efficiency"]["high"].get<double>(), efficiency);
    const bool exchanges = point["ranks"] > 1 && point["transport"] != "unconnected";
    EXPECT_EQ(point["of_unconnected"].is_null(), !exchanges);
  }
  const std::string rows = contents_of(folder_ / "rows.csv");
  EXPECT_TRUE(contains(rows, "exchange_ms,exposed_ms\n"));
  EXPECT_EQ(count_of(rows, "\n"), 1U + 5 * 12);

  const Store store = Store::open_existing((folder_ / "s.db").string());
  std::size_t joined = 0;
  for (const RunRecord& stored : store.runs()) {
    if (stored.executor.ranks == 1 || stored.executor.transport == kUnconnected) continue;
    ++joined;
    EXPECT_GT(stored.numbers.at("exchange_seconds"), 0.0);
    EXPECT_GE(stored.numbers.at("slow_rank_share"), 0.0);
    for (const Sample& sample : store.samples(stored.id)) {
      EXPECT_EQ(sample.exposed_seconds.has_value(), sample.kind != SampleKind::split);
    }
  }
  EXPECT_EQ(joined, 2U);
}

TEST_F(BenchRanks, TheTableSaysWhatItsWordsMean) {
  const Outcome outcome = run(std::string(kBench) + "--ranks 1,2 --no-store --wide");
  ASSERT_EQ(outcome.code, 0) << outcome.err;
  for (const char* words : {"strong", "speed-up: samples per second", "efficiency: the same for",
                            "exposed: the part in which they compute nothing", "slowest rank:"}) {
    EXPECT_TRUE(contains(outcome.out, words)) << words << '\n' << outcome.out;
  }
  EXPECT_FALSE(contains(outcome.out, "weak: "));
  EXPECT_FALSE(contains(outcome.out, "of unconnected: "));
  const Outcome alone = run(std::string(kBench) + "--no-store --wide");
  EXPECT_FALSE(contains(alone.out, "speed-up")) << alone.out;
}

TEST_F(BenchRanks, BadInputIsOneLine) {
  const std::pair<const char*, const char*> calls[] = {
      {"--ranks 0", "--ranks 0: must be a whole number from 1"},
      {"--ranks 3", "batch 16 cannot be divided evenly among 3 ranks"},
      {"--ranks 2 --inference", "--ranks is for training steps"},
      {"--ranks 2 --loader", "cannot be combined with --loader"},
      {"--ranks 2 --backend auto", "--backend auto: ranks would choose different kernels"},
      {"--ranks 2 --backend torch-cpu", "a peer computes in one process"},
      {"--ranks 2 --processes 2", "--processes cannot be combined with --ranks"},
      {"--ranks 2 --bucket 0", "--bucket 0: must be above 0 MiB"},
      // What the ranks themselves find.
      {"--ranks 2 --set hidden=no", "hidden"},
  };
  for (const auto& [words, reason] : calls) {
    const Outcome outcome = run(std::string(kBench) + "--no-store " + words);
    EXPECT_EQ(outcome.code, 2) << words << outcome.err;
    EXPECT_TRUE(contains(outcome.err, reason)) << outcome.err;
    EXPECT_EQ(count_of(outcome.err, "ridgeline: "), 1U) << outcome.err;
  }
  const Outcome without =
      shell("env PATH=/nonexistent " + testing::program() + " " + kBench + "--ranks 2 --no-store");
  EXPECT_EQ(without.code, 2) << without.err;
  EXPECT_TRUE(contains(without.err, "mpirun is not installed")) << without.err;
  EXPECT_TRUE(processes_in(folder_).empty());
}

TEST_F(BenchRanks, AKilledRankEndsItsConfigurationAlone) {
  testing::Child call(
      "bench mlp --image 12 --batch 16 --warmup 1 --max-seconds 2 --precision-target 0.001 "
      "--threads 1 --telemetry 0 --no-store --json --ranks 1,2",
      folder_);
  int killed = 0;
  while (killed == 0) {
    for (const auto& [pid, rank] : processes_in(folder_)) {
      if (rank == 1 && kill(pid, SIGKILL) == 0) ++killed;
    }
  }
  const Outcome outcome = call.finish();
  EXPECT_TRUE(contains(outcome.err + outcome.out, "the job of 2 ranks: ")) << outcome.err;
  EXPECT_TRUE(processes_in(folder_).empty());
}

TEST_F(BenchRanks, LinksAreMeasuredAndBoundTheExchange) {
  const Outcome outcome = run("env --measure --ranks 2 --json --store s.db");
  ASSERT_EQ(outcome.code, 0) << outcome.err;
  const auto json = nlohmann::json::parse(outcome.out);
  std::map<std::string, std::size_t> count;
  for (const auto& ceiling : json["ceilings"]) {
    EXPECT_EQ(ceiling["device"], "ranks:2");
    EXPECT_EQ(ceiling["subject"], "all-reduce");
    EXPECT_GT(ceiling["low"].get<double>(), 0.0);
    ++count[ceiling["kind"].get<std::string>() + ceiling["path"].get<std::string>()];
  }
  EXPECT_GE(count["latency"], 10U);
  EXPECT_EQ(count["linkalgorithm"], count["linkbus"]);
  const Store store = Store::open_existing((folder_ / "s.db").string());
  EXPECT_EQ(store.ceilings(json["environment_key"].get<std::string>()).size(),
            json["ceilings"].size());

  for (const char* wrong : {"1", "two", "2,"}) {
    const Outcome bad = run("env --measure --store s.db --ranks " + std::string(wrong));
    EXPECT_EQ(bad.code, 2) << bad.err;
    EXPECT_EQ(count_of(bad.err, "ridgeline: "), 1U) << bad.err;
  }
}

// ---- What a slow rank is.

std::vector<std::vector<double>> busy_of(const std::vector<double>& seconds) {
  std::vector<std::vector<double>> busy;
  for (const double each : seconds) {
    busy.emplace_back();
    for (int i = 0; i < 20; ++i) busy.back().push_back(each * (1.0 + 0.001 * (i % 3)));
  }
  return busy;
}

TEST(SlowRank, IsFoundWhereItIsSlowAgainAndAgain) {
  const std::vector<std::string> machines = {"a", "a", "b", "b"};
  const SlowRank slow = slow_rank(busy_of({1.0, 1.01, 1.3, 1.0}), machines);
  EXPECT_EQ(slow.rank, 2);
  EXPECT_NEAR(slow.share, 0.3, 0.01);
  ASSERT_TRUE(slow.finding.has_value());
  EXPECT_EQ(slow.finding->name, "slow rank");
  EXPECT_TRUE(contains(slow.finding->evidence, "rank 2 (b) computes 30% longer"))
      << slow.finding->evidence;
}

TEST(SlowRank, IsNoneWhereRanksAreAlikeOrTakeTurnsInBeingSlow) {
  const std::vector<std::string> machines = {"a", "a"};
  EXPECT_FALSE(slow_rank(busy_of({1.0, 1.05}), machines).finding);
  std::vector<std::vector<double>> turns = busy_of({1.0, 1.0});
  for (std::size_t i = 0; i < turns[0].size(); ++i) turns[i % 2][i] = 1.5;
  turns[1][0] = 1.6;
  EXPECT_FALSE(slow_rank(turns, machines).finding);
  EXPECT_FALSE(slow_rank({}, {}).finding);
}

}  // namespace
}  // namespace ridgeline
