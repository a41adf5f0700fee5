// Roofs and points of known answers. Units are FLOP, bytes and seconds throughout.

#include <gtest/gtest.h>

#include <numeric>

#include "analysis/roofline/points.h"
#include "analysis/roofline/roofs.h"
#include "analysis/roofline/stored.h"
#include "store/identity_fields.h"
#include "support/vary_identity.h"

namespace ridgeline {
namespace {

constexpr double kGiga = 1e9;
constexpr std::int64_t kKiB = 1024, kMiB = 1024 * kKiB;

Ceiling ceiling(const char* kind, const char* subject, const char* path, const char* scope,
                double value, std::int64_t capacity = 0) {
  Ceiling made;
  made.device = "cpu";
  made.kind = kind;
  made.subject = subject;
  made.path = path;
  made.scope = scope;
  made.value = made.low = made.high = value;
  made.capacity_bytes = capacity;
  return made;
}

// Two cores: 100 GFLOP/s, L1 400 GB/s, L2 200 GB/s, memory 20 GB/s. Ridges at 0.25, 0.5 and 5
// FLOP/byte.
std::vector<Ceiling> two_cores() {
  return {
      ceiling("compute", "fp32", "scalar", "all cores", 5 * kGiga),
      ceiling("compute", "fp32", "avx512", "all cores", 100 * kGiga),
      ceiling("compute", "fp32", "avx512", "one core", 60 * kGiga),
      ceiling("compute", "fp64", "avx512", "all cores", 50 * kGiga),
      ceiling("bandwidth", "memory", "read", "all cores", 20 * kGiga),
      ceiling("bandwidth", "memory", "triad", "all cores", 15 * kGiga),
      ceiling("bandwidth", "memory", "read", "one core", 12 * kGiga),
      ceiling("bandwidth", "L2", "read", "all cores", 200 * kGiga, 2 * kMiB),
      ceiling("bandwidth", "L2", "read", "one core", 100 * kGiga, 1 * kMiB),
      ceiling("bandwidth", "L1", "copy", "all cores", 400 * kGiga, 64 * kKiB),
      ceiling("bandwidth", "L1", "copy", "one core", 200 * kGiga, 32 * kKiB),
      ceiling("latency", "fork-join", "", "all cores", 10e-6),
  };
}

StepTime step(double seconds, std::int64_t flops, std::int64_t bytes) {
  StepTime made;
  made.layer = "conv1";
  made.ops = "conv2d";
  made.phase = "forward";
  made.kernel = "native:conv2d";
  made.seconds = seconds;
  made.flops = made.work_flops = flops;
  made.bytes_read = bytes / 2;
  made.bytes_written = bytes - bytes / 2;
  made.working_set_bytes = bytes;
  made.unit = "fp32";
  return made;
}

constexpr std::int64_t kLarge = 2000 * kMiB;  // what no cache has a say in

TEST(Roofs, TakeTheFastestPathAndGiveRidgePointsInFlopPerByte) {
  const Roofs roofs = roofs_of(two_cores(), "cpu", 2);
  ASSERT_EQ(roofs.compute.size(), 2u);
  EXPECT_EQ(roofs.compute[0].unit, "fp32");
  EXPECT_EQ(roofs.compute[0].path, "avx512");
  EXPECT_DOUBLE_EQ(roofs.compute[0].flops_per_second, 100 * kGiga);
  ASSERT_EQ(roofs.memory.size(), 3u);
  EXPECT_EQ(roofs.memory[0].level, "L1");
  EXPECT_EQ(roofs.memory[2].level, "memory");
  EXPECT_EQ(roofs.memory[2].path, "read");
  EXPECT_DOUBLE_EQ(ridge_point(roofs.compute[0], roofs.memory[2]), 5.0);
  EXPECT_DOUBLE_EQ(ridge_point(roofs.compute[0], roofs.memory[0]), 0.25);
  EXPECT_EQ(roofs.scope, "all cores");
}

TEST(Roofs, OfTheRepeatsTheBestCounts) {
  std::vector<Ceiling> ceilings = two_cores();
  ceilings[1].high = 104 * kGiga;
  const Roofs roofs = roofs_of(ceilings, "cpu", 2);
  EXPECT_DOUBLE_EQ(roofs.find_compute("fp32")->flops_per_second, 104 * kGiga);
}

TEST(Roofs, OfOneThreadAreThoseOfOneCore) {
  const Roofs roofs = roofs_of(two_cores(), "cpu", 1);
  EXPECT_EQ(roofs.scope, "one core");
  EXPECT_DOUBLE_EQ(roofs.find_compute("fp32")->flops_per_second, 60 * kGiga);
  EXPECT_DOUBLE_EQ(roofs.memory[2].bytes_per_second, 12 * kGiga);
  EXPECT_EQ(roofs.memory[0].capacity_bytes, 32 * kKiB);
  // No thread is woken.
  EXPECT_FALSE(roofs.latency_seconds.has_value());
}

TEST(Roofs, OfSeveralThreadsAreCappedByAllCores) {
  std::vector<Ceiling> ceilings = two_cores();
  for (Ceiling& c : ceilings) {
    if (c.scope == "all cores" && c.kind != "latency") c.value = c.low = c.high = 4 * c.value;
    if (c.scope == "all cores") c.capacity_bytes *= 4;
  }
  const Roofs roofs = roofs_of(ceilings, "cpu", 2);
  EXPECT_DOUBLE_EQ(roofs.find_compute("fp32")->flops_per_second, 120 * kGiga);
  EXPECT_DOUBLE_EQ(roofs.memory[2].bytes_per_second, 24 * kGiga);
  EXPECT_EQ(roofs.memory[1].capacity_bytes, 2 * kMiB);
  EXPECT_EQ(roofs.scope, "one core x 2, at most all cores");
}

TEST(Roofs, OfAnotherDeviceAreNotMixedIn) {
  std::vector<Ceiling> ceilings = two_cores();
  ceilings.push_back(ceiling("compute", "bf16", "tensor", "device", 900e12));
  ceilings.back().device = "cuda:0";
  EXPECT_EQ(roofs_of(ceilings, "cpu", 2).find_compute("tensor bf16"), nullptr);
  const Roofs gpu = roofs_of(ceilings, "cuda:0", 0);
  ASSERT_NE(gpu.find_compute("tensor bf16"), nullptr);
  EXPECT_EQ(gpu.find_compute("fp32"), nullptr);
  EXPECT_TRUE(gpu.memory.empty());
  EXPECT_TRUE(gpu.empty());
  EXPECT_TRUE(roofs_of(ceilings, "cuda:1", 0).empty());
}

TEST(Roofs, ChooseTheFastestLevelThatHoldsTheWorkingSet) {
  const Roofs roofs = roofs_of(two_cores(), "cpu", 2);
  EXPECT_EQ(roofs.level_for(64 * kKiB).level, "L1");
  EXPECT_EQ(roofs.level_for(64 * kKiB + 1).level, "L2");
  EXPECT_EQ(roofs.level_for(2 * kMiB).level, "L2");
  EXPECT_EQ(roofs.level_for(2 * kMiB + 1).level, "memory");
}

TEST(RooflinePoint, HasIntensityInFlopPerByteNotGigaPerMega) {
  // 3.64 GFLOP on 100 MB is 36.4 FLOP/byte, not 0.0364 and not 36,400.
  const RooflinePoint point =
      point_of(step(0.1, 3'640'000'000, 100'000'000), roofs_of(two_cores(), "cpu", 2));
  EXPECT_DOUBLE_EQ(*point.intensity(), 36.4);
  EXPECT_DOUBLE_EQ(point.flops_per_second(), 36.4 * kGiga);
  EXPECT_DOUBLE_EQ(point.bytes_per_second(), 1 * kGiga);
}

TEST(RooflinePoint, BeyondTheRidgeIsBoundByCompute) {
  // 10 GFLOP at 100 GFLOP/s is 0.1 s; its bytes take 0.05 s.
  const RooflinePoint point =
      point_of(step(0.2, 10'000'000'000, 1'000'000'000), roofs_of(two_cores(), "cpu", 2));
  EXPECT_EQ(point.bound, Bound::compute);
  EXPECT_DOUBLE_EQ(*point.efficiency(), 0.5);
  EXPECT_DOUBLE_EQ(*point.attainable_flops_per_second(), 100 * kGiga);
}

TEST(RooflinePoint, BelowTheRidgeIsBoundByMemory) {
  const RooflinePoint point = point_of(step(1.0, kLarge, kLarge), roofs_of(two_cores(), "cpu", 2));
  EXPECT_EQ(point.bound, Bound::memory);
  EXPECT_EQ(point.bound_text(), "memory");
  // 1 FLOP/byte under 20 GB/s, but for the one part in a thousand that may lie in the cache.
  EXPECT_NEAR(*point.attainable_flops_per_second(), 20 * kGiga, 0.0011 * 20 * kGiga);
  EXPECT_NEAR(*point.memory_seconds, static_cast<double>(kLarge) / (20 * kGiga), 2e-4);
}

TEST(RooflinePoint, WhoseTensorsFitACacheIsHeldAgainstThatCache) {
  const Roofs roofs = roofs_of(two_cores(), "cpu", 2);
  const std::int64_t in_l1 = 64 * kKiB;
  const RooflinePoint first = point_of(step(1e-3, 0, in_l1), roofs);
  EXPECT_EQ(first.bound_text(), "memory (L1)");
  EXPECT_DOUBLE_EQ(*first.memory_seconds, static_cast<double>(in_l1) / (400 * kGiga));
  // At 2 MiB L2 delivers all but what L1 may have kept: 1 - 1/32.
  const std::int64_t in_l2 = 2 * kMiB;
  const RooflinePoint second = point_of(step(1e-3, 0, in_l2), roofs);
  EXPECT_EQ(second.bound_text(), "memory (L2)");
  EXPECT_DOUBLE_EQ(second.level_share, 31.0 / 32.0);
  EXPECT_DOUBLE_EQ(*second.memory_seconds,
                   31.0 / 32.0 * static_cast<double>(in_l2) / (200 * kGiga));
}

TEST(RooflinePoint, ALittleTooLargeForACacheMayStillFindMostOfItsBytesThere) {
  // Of 2.2 MiB a tenth or so must come from memory: half the time that L2 needs for all of it.
  const std::int64_t bytes = 2 * kMiB + kMiB / 16;
  const Roofs roofs = roofs_of(two_cores(), "cpu", 2);
  const RooflinePoint point = point_of(step(1e-3, 0, bytes), roofs);
  const double from_memory = static_cast<double>(kMiB / 16) / (20 * kGiga);
  const double from_l2 = static_cast<double>(bytes - 64 * kKiB) / (200 * kGiga);
  EXPECT_DOUBLE_EQ(*point.memory_seconds, std::max(from_memory, from_l2));
  EXPECT_EQ(point.level, "L2");
}

TEST(RooflinePoint, WithoutFlopsHasAMemoryRoofOnly) {
  const RooflinePoint point = point_of(step(1.0, 0, kLarge), roofs_of(two_cores(), "cpu", 2));
  EXPECT_EQ(point.bound, Bound::memory);
  EXPECT_DOUBLE_EQ(*point.intensity(), 0.0);
  EXPECT_FALSE(point.attainable_flops_per_second().has_value());
  EXPECT_TRUE(point.efficiency().has_value());
}

TEST(RooflinePoint, ShorterThanAFewStartsIsBoundByLaunch) {
  const Roofs roofs = roofs_of(two_cores(), "cpu", 2);  // waking the threads takes 10 us
  EXPECT_EQ(point_of(step(30e-6, 100, 1000), roofs).bound, Bound::launch);
  // The same work in a millisecond is slow for another reason.
  EXPECT_EQ(point_of(step(1e-3, 100, 1000), roofs).bound, Bound::memory);
  // As short, but this is what its bytes need.
  EXPECT_EQ(point_of(step(30e-6, 1'500'000, 1'000), roofs).bound, Bound::compute);
  // One thread alone is not woken.
  EXPECT_EQ(point_of(step(30e-6, 100, 1000), roofs_of(two_cores(), "cpu", 1)).bound, Bound::memory);
}

TEST(RooflinePoint, WithoutARoofForItsUnitHasNoEfficiency) {
  StepTime bf16 = step(1.0, 1000, 1000);
  bf16.unit = "tensor bf16";
  const RooflinePoint point = point_of(bf16, roofs_of(two_cores(), "cpu", 2));
  EXPECT_EQ(point.bound_text(), "n/a");
  EXPECT_FALSE(point.efficiency().has_value());
  EXPECT_TRUE(above_roof({&point, 1}).empty());
}

TEST(RooflinePoint, NamesAnAlgorithmOfFewerOperationsAndHoldsWhatItExecutes) {
  const Roofs roofs = roofs_of(two_cores(), "cpu", 2);
  StepTime winograd = step(0.05, 4'400'000'000, 1'000'000);
  winograd.work_flops = 10'000'000'000;  // 200 GFLOP/s of these would be twice the roof
  winograd.flop_factor = 0.44;
  winograd.kernel = "onednn:conv2d/jit_wino:avx512_core";
  const RooflinePoint point = point_of(winograd, roofs);
  EXPECT_EQ(point.remark, "winograd: executes 0.44 of the operations");
  EXPECT_DOUBLE_EQ(*point.efficiency(), 0.88);
  EXPECT_TRUE(above_roof({&point, 1}).empty());
  winograd.kernel = "onednn:conv2d/jit:avx512_core";
  EXPECT_EQ(point_of(winograd, roofs).remark, "padding left out: executes 0.44 of the operations");
  winograd.flop_factor = 1.0;
  EXPECT_EQ(point_of(winograd, roofs).remark, "");
}

TEST(RooflinePoint, AboveItsRoofIsAnErrorOfTheTool) {
  const Roofs roofs = roofs_of(two_cores(), "cpu", 2);
  std::vector<RooflinePoint> points = {
      point_of(step(0.1, 10'000'000'000, 1'000'000), roofs),    // on the roof
      point_of(step(0.092, 10'000'000'000, 1'000'000), roofs),  // within what clocks can tell
      point_of(step(0.05, 10'000'000'000, 1'000'000), roofs),   // twice as fast as can be
      point_of(step(0.01, 1, kLarge), roofs),                   // 200 GB/s from memory
  };
  const std::vector<Finding> findings = above_roof(points);
  ASSERT_EQ(findings.size(), 2u);
  EXPECT_EQ(findings[0].severity, "error");
  EXPECT_NE(findings[0].evidence.find("fp32 peak"), std::string::npos) << findings[0].evidence;
  EXPECT_NE(findings[0].evidence.find("200% of the roof"), std::string::npos)
      << findings[0].evidence;
  EXPECT_NE(findings[1].evidence.find("memory bandwidth"), std::string::npos)
      << findings[1].evidence;
}

TEST(RooflinePoint, ShowsIntensityByCountedBytesToo) {
  StepTime counted = step(1.0, 1000, 100);
  EXPECT_FALSE(point_of(counted, roofs_of(two_cores(), "cpu", 2)).counted_intensity());
  counted.counted_bytes = 500.0;
  EXPECT_DOUBLE_EQ(*point_of(counted, roofs_of(two_cores(), "cpu", 2)).counted_intensity(), 2.0);
}

std::vector<StepTime> small_network() {
  std::vector<StepTime> steps = {step(0.2, 10'000'000'000, 1'000'000), step(0.3, 0, kLarge),
                                 step(0.1, 5'000'000'000, 1'000'000)};
  steps[1].ops = "reorder";
  steps[2].layer = "conv2";
  for (std::size_t i = 0; i < steps.size(); ++i) steps[i].index = static_cast<std::int64_t>(i);
  return steps;
}

TEST(RooflinePoints, OfGroupsAddUp) {
  const std::vector<StepTime> steps = small_network();
  const Roofs roofs = roofs_of(two_cores(), "cpu", 2);
  const auto by_step = points_of(steps, roofs, Grouping::step);
  for (const Grouping by : {Grouping::network, Grouping::layer, Grouping::op}) {
    const auto points = points_of(steps, roofs, by);
    double seconds = 0.0, least = 0.0, flops = 0.0, bytes = 0.0;
    std::int64_t count = 0;
    for (const RooflinePoint& point : points) {
      seconds += point.seconds;
      least += *point.least_seconds;
      flops += point.flops;
      bytes += point.bytes;
      count += point.steps;
    }
    EXPECT_EQ(count, 3);
    EXPECT_NEAR(seconds, 0.6, 1e-12);
    EXPECT_DOUBLE_EQ(flops, 15'000'000'000.0);
    EXPECT_DOUBLE_EQ(bytes, static_cast<double>(kLarge) + 2'000'000.0);
    EXPECT_NEAR(least,
                *by_step[0].least_seconds + *by_step[1].least_seconds + *by_step[2].least_seconds,
                1e-12);
  }
  const auto layers = points_of(steps, roofs, Grouping::layer);
  ASSERT_EQ(layers.size(), 2u);
  EXPECT_EQ(layers[0].name, "conv1");
  EXPECT_EQ(layers[0].steps, 2);
  // 0.3 of its 0.5 seconds are bound by memory.
  EXPECT_EQ(layers[0].bound, Bound::memory);
  EXPECT_DOUBLE_EQ(layers[0].bound_share, 0.6);
  EXPECT_EQ(layers[0].unit, "fp32");
  const auto ops = points_of(steps, roofs, Grouping::op);
  ASSERT_EQ(ops.size(), 2u);
  EXPECT_EQ(ops[0].name, "conv2d");
  EXPECT_EQ(ops[0].bound, Bound::compute);
}

TEST(RooflinePoints, OfMixedUnitsSaySo) {
  std::vector<StepTime> steps = small_network();
  steps[2].unit = "fp64";
  const auto network = points_of(steps, roofs_of(two_cores(), "cpu", 2), Grouping::network);
  ASSERT_EQ(network.size(), 1u);
  EXPECT_EQ(network[0].unit, "several");
}

TEST(NetworkPoint, IsTimedByWholeIterations) {
  const std::vector<StepTime> steps = small_network();
  const Roofs roofs = roofs_of(two_cores(), "cpu", 2);
  const RooflinePoint point = network_point("small", steps, roofs, {0.75, std::nullopt});
  EXPECT_EQ(point.name, "small");
  EXPECT_DOUBLE_EQ(point.seconds, 0.75);
  EXPECT_DOUBLE_EQ(point.flops_per_second(), 20 * kGiga);
}

TEST(NetworkPoint, ThatWaitsForItsBatchIsBoundByData) {
  const std::vector<StepTime> steps = small_network();
  const Roofs roofs = roofs_of(two_cores(), "cpu", 2);
  EXPECT_EQ(network_point("n", steps, roofs, {1.6, 1.0}).bound, Bound::data);
  EXPECT_NE(network_point("n", steps, roofs, {0.8, 0.2}).bound, Bound::data);
}

TEST(NetworkPoint, WhoseStepsStandFarApartIsBoundByLaunch) {
  const std::vector<StepTime> steps = small_network();
  const Roofs roofs = roofs_of(two_cores(), "cpu", 2);
  EXPECT_EQ(network_point("n", steps, roofs, {1.5, 0.1}).bound, Bound::launch);
}

RunRoofline with_batch(std::int64_t batch, bool full_batch = false) {
  RunRoofline made;
  made.run.work.batch = batch;
  made.run.work.full_batch = full_batch;
  if (full_batch) made.run.work.data_samples = batch;
  return made;
}

TEST(Trajectories, AreOfRunsThatDifferByTheBatchAlone) {
  RooflineGroup group;
  group.runs = {with_batch(64), with_batch(16), with_batch(32)};
  const auto ways = trajectories(group);
  ASSERT_EQ(ways.size(), 1U);
  ASSERT_EQ(ways[0].size(), 3U);
  EXPECT_EQ(ways[0].front()->run.work.batch, 16);
  // A full batch is all samples.
  group.runs = {with_batch(64, true), with_batch(256, true)};
  EXPECT_EQ(trajectories(group).size(), 1U);
  for (const IdentityField& field : identity_fields()) {
    if (field.name == "batch") continue;
    group.runs = {with_batch(16), with_batch(64)};
    testing::vary(group.runs[1].run, field.name);
    EXPECT_TRUE(trajectories(group).empty()) << field.name;
  }
}

}  // namespace
}  // namespace ridgeline
