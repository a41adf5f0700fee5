// What more ranks gain, the roof of their links, and the bucket that follows from it.

#include "analysis/compare/scaling.h"

#include <gtest/gtest.h>

#include "analysis/roofline/points.h"
#include "graph/divide.h"
#include "lab/bucket.h"

namespace ridgeline {
namespace {

// Ten turns of two steps that take so long.
ScalingRun run_of(int ranks, std::int64_t batch, double seconds, std::string transport) {
  ScalingRun run;
  run.work.model = "mlp";
  run.work.batch = batch;
  run.executor.backend = "native";
  run.executor.ranks = ranks;
  run.executor.transport = std::move(transport);
  run.executor.bucket_bytes = ranks > 1 ? 1000 : 0;
  run.call = "one";
  for (int i = 0; i < 20; ++i) {
    run.series.seconds.push_back(seconds * (1.0 + 1e-3 * (i % 3)));
    run.series.turn.push_back(1 + i / 2);
    run.series.process.push_back(0);
    run.series.at_seconds.push_back(i);
  }
  return run;
}

TEST(Scaling, WeakEfficiencyIsTheTimeOfOneOverThatOfMore) {
  const std::vector<ScalingRun> runs = {run_of(1, 16, 1.0, ""), run_of(2, 32, 1.25, "MPI"),
                                        run_of(2, 32, 1.0, kUnconnected)};
  const std::vector<ScalingPoint> points = scaling_points(runs);
  ASSERT_EQ(points.size(), 3U);
  EXPECT_EQ(points[0].run, 0U);
  EXPECT_EQ(points[0].base, 0U);
  EXPECT_EQ(points[0].efficiency.value, 1.0);
  EXPECT_EQ(points[1].run, 1U);
  EXPECT_EQ(points[1].base, 0U);
  EXPECT_TRUE(points[1].weak);
  EXPECT_NEAR(points[1].efficiency.value, 0.8, 1e-6);
  EXPECT_NEAR(points[1].speedup, 1.6, 1e-6);
  EXPECT_LE(points[1].efficiency.low, points[1].efficiency.value);
  EXPECT_GE(points[1].efficiency.high, points[1].efficiency.value);
  ASSERT_TRUE(points[1].of_unconnected.has_value());
  EXPECT_NEAR(points[1].of_unconnected->value, 0.8, 1e-6);
  EXPECT_NEAR(points[2].efficiency.value, 1.0, 1e-6);
  EXPECT_FALSE(points[2].of_unconnected.has_value());
}

TEST(Scaling, StrongEfficiencyCountsTheRanks) {
  const std::vector<ScalingRun> runs = {run_of(2, 32, 1.0, "MPI"), run_of(8, 32, 0.5, "MPI")};
  const std::vector<ScalingPoint> points = scaling_points(runs);
  ASSERT_EQ(points.size(), 2U);
  EXPECT_FALSE(points[1].weak);
  EXPECT_NEAR(points[1].speedup, 2.0, 1e-6);
  EXPECT_NEAR(points[1].efficiency.value, 0.5, 1e-6);
}

TEST(Scaling, UnlikeWorkIsNotHeldTogether) {
  std::vector<ScalingRun> runs = {run_of(1, 16, 1.0, ""), run_of(2, 48, 1.0, "MPI")};
  EXPECT_TRUE(scaling_points(runs).empty()) << "neither the same batch nor the same for each rank";
  runs[1] = run_of(2, 32, 1.0, "MPI");
  runs[1].executor.threads = 4;
  EXPECT_TRUE(scaling_points(runs).empty());
  runs = {run_of(1, 16, 1.0, ""), run_of(1, 32, 1.0, "")};
  EXPECT_TRUE(scaling_points(runs).empty());
}

Ceiling link(int ranks, std::int64_t bytes, double seconds) {
  Ceiling ceiling;
  ceiling.device = "ranks:" + std::to_string(ranks);
  ceiling.kind = "latency";
  ceiling.subject = "all-reduce";
  ceiling.unit = "s";
  ceiling.capacity_bytes = bytes;
  ceiling.value = ceiling.high = 2.0 * seconds;
  ceiling.low = seconds;
  return ceiling;
}

TEST(Scaling, LinksAreTheRoofOfAnAllReduce) {
  const std::vector<Ceiling> ceilings = {link(2, 1000, 1e-3), link(2, 3000, 2e-3),
                                         link(4, 1000, 7e-3)};
  const Roofs roofs = roofs_of(ceilings, "cpu", 1);
  EXPECT_DOUBLE_EQ(*roofs.all_reduce_seconds("2 ranks", 10.0), 1e-3);
  EXPECT_DOUBLE_EQ(*roofs.all_reduce_seconds("2 ranks", 2000.0), 1.5e-3);
  EXPECT_DOUBLE_EQ(*roofs.all_reduce_seconds("2 ranks", 6000.0), 4e-3);
  EXPECT_DOUBLE_EQ(*roofs.all_reduce_seconds("4 ranks", 1000.0), 7e-3);
  EXPECT_FALSE(roofs.all_reduce_seconds("3 ranks", 1000.0));

  StepTime step;
  step.unit = "2 ranks";
  step.seconds = 3e-3;
  step.flops = 500;
  step.bytes_read = step.bytes_written = 2000;
  const RooflinePoint point = point_of(step, roofs);
  EXPECT_EQ(point.bound, Bound::link);
  EXPECT_EQ(point.bound_text(), "link");
  EXPECT_NEAR(*point.efficiency(), 0.5, 1e-9);
}

// 10 us for each message and 1 GB/s: a tenth more than the best is reached at some 100 kB.
TEST(Scaling, TheBucketIsTheSmallestThatCostsLittle) {
  std::vector<Ceiling> ceilings;
  for (std::int64_t bytes = 1 << 10; bytes <= 64 << 20; bytes *= 4) {
    ceilings.push_back(link(2, bytes, 10e-6 + static_cast<double>(bytes) * 1e-9));
  }
  EXPECT_EQ(best_bucket(ceilings, 2, "cpu"), 128 << 10);
  EXPECT_EQ(best_bucket(ceilings, 4, "cpu"), kBucketBytes) << "nothing is known of four ranks";
  for (Ceiling& ceiling : ceilings) {
    ceiling.low += 1e-3;  // a slow network: a hundred times as large
  }
  EXPECT_EQ(best_bucket(ceilings, 2, "cpu"), 8 << 20);
}

}  // namespace
}  // namespace ridgeline
