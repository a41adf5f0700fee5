// The memory of a plan over its steps: known answers, and what the planner itself says.

#include "measure/profile/memory_timeline.h"

#include <gtest/gtest.h>

#include <algorithm>
#include <nlohmann/json.hpp>
#include <numeric>

#include "backends/registry.h"
#include "base/error.h"
#include "graph/builder.h"
#include "inspect/complexity.h"
#include "plan/memory.h"
#include "support/toy_networks.h"

namespace ridgeline {
namespace {

using Json = nlohmann::json;

std::int64_t of(const LiveBytes& live, Role role) {
  return live.by_role[static_cast<std::size_t>(role)];
}

class MemoryTimelineTest : public ::testing::Test {
 protected:
  [[nodiscard]] Plan plan_of(const char* model, std::int64_t batch, const char* backend = "native",
                             std::int64_t image = 0) {
    StepSpec spec;
    spec.model = default_config(model);
    if (image > 0) spec.model.height = spec.model.width = image;
    spec.batch = batch;
    spec.optimizer = SgdAttributes{.momentum = 0.9};
    PlanRequest request;
    request.backend = backend;
    return dry_plan(spec, request, *cpu);
  }
  std::unique_ptr<Device> cpu = make_cpu_device();
};

// x -> relu a -> relu b -> relu c; each of 100 floats, 448 bytes in units of a cache line. On
// native, without overwriting: a and b live together, then b and c.
TEST_F(MemoryTimelineTest, AChainHasTwoLinksAlive) {
  Graph graph;
  ValueId value = graph.add_value("x", {{1, 100}, DType::f32}, Role::input);
  for (const char* layer : {"a", "b", "c"}) {
    value = graph.add_node(OpKind::activation, ActivationAttributes{}, {value}, layer,
                           Phase::forward)[0];
  }
  graph.mark_output(value);
  const Plan plan = make_plan(std::move(graph), {.providers = providers_of("native"),
                                                 .preferred = {},
                                                 .disabled_passes = {"inplace", "fusion"}});
  const MemoryTimeline timeline = timeline_of(plan);
  constexpr std::int64_t kBytes = 448;
  ASSERT_EQ(timeline.positions.size(), 3u);
  const std::array<std::int64_t, 3> activations = {kBytes, 2 * kBytes, 2 * kBytes};
  for (std::size_t s = 0; s < 3; ++s) {
    const LiveBytes& live = timeline.positions[s].live;
    EXPECT_EQ(live.step, static_cast<std::int64_t>(s));
    EXPECT_EQ(of(live, Role::input), kBytes);
    EXPECT_EQ(of(live, Role::activation), activations[s]);
    EXPECT_EQ(total_of(live), kBytes + activations[s]);
  }
  EXPECT_EQ(timeline.positions[1].layer, "b");
  EXPECT_EQ(timeline.positions[1].phase, "forward");
  EXPECT_EQ(timeline.peak_step, 1);
  EXPECT_EQ(timeline.peak_bytes, 3 * kBytes);
  EXPECT_EQ(timeline.state_bytes, kBytes);
  EXPECT_EQ(timeline.scratch_bytes, 2 * kBytes);
  EXPECT_EQ(timeline.scratch_live_bytes, 2 * kBytes);
  EXPECT_EQ(timeline.gap_bytes(), 0);
  ASSERT_EQ(timeline.at_peak.size(), 3u);
  EXPECT_EQ(timeline.at_peak[0], (LiveValue{.name = "x",
                                            .layer = "a",
                                            .role = Role::input,
                                            .bytes = kBytes,
                                            .first_step = 0,
                                            .last_step = 2}));
  EXPECT_EQ(timeline.at_peak[1].layer, "a");
  EXPECT_EQ(timeline.at_peak[1].role, Role::activation);
  EXPECT_EQ(timeline.at_peak[1].first_step, 0);
  EXPECT_EQ(timeline.at_peak[1].last_step, 1);
  EXPECT_EQ(timeline.at_peak[2].layer, "b");
  EXPECT_THROW((void)alive_at(plan, 3), Error);
  EXPECT_THROW((void)alive_at(plan, -1), Error);
}

TEST_F(MemoryTimelineTest, ThePeakIsWhatThePlannerSays) {
  std::vector<Plan> plans;
  for (const char* backend : {"reference", "native", "onednn"}) {
    for (const char* model : {"mlp", "mnist_cnn"}) plans.push_back(plan_of(model, 5, backend));
    plans.push_back(plan_of("squeezenet1_1", 2, backend, 64));
  }
  for (const ToyNetwork& network : toy_networks()) {
    StepGraph step = training_graph(network.spec, network.build);
    plans.push_back(
        make_plan(std::move(step.graph),
                  {.providers = providers_of("native"), .preferred = {}, .disabled_passes = {}}));
  }
  for (const Plan& plan : plans) {
    const MemoryTimeline timeline = timeline_of(plan);
    const MemoryUse use = plan.memory();
    ASSERT_EQ(timeline.positions.size(), plan.steps.size());
    EXPECT_EQ(timeline.peak_bytes,
              std::accumulate(use.by_role.begin(), use.by_role.end(), std::int64_t{0}));
    EXPECT_EQ(timeline.scratch_bytes, use.scratch_peak);
    EXPECT_GE(timeline.gap_bytes(), 0);
    const LiveBytes& peak = timeline.positions[static_cast<std::size_t>(timeline.peak_step)].live;
    EXPECT_EQ(total_of(peak), timeline.peak_bytes);
    std::int64_t fullest = 0;
    for (const LiveBytes& live : timeline.live()) {
      for (const std::int64_t bytes : live.by_role) EXPECT_GE(bytes, 0);
      EXPECT_GE(total_of(live), timeline.state_bytes);
      EXPECT_EQ(of(live, Role::parameter), of(peak, Role::parameter));
      fullest = std::max(fullest, total_of(live));
    }
    EXPECT_EQ(fullest, timeline.peak_bytes);
  }
}

// The list of what lives adds up, by owner, at every step.
TEST_F(MemoryTimelineTest, WhatLivesAddsUpToTheTimeline) {
  for (const char* backend : {"native", "onednn"}) {
    const Plan plan = plan_of("mnist_cnn", 4, backend);
    for (const LiveBytes& live : memory_timeline(plan)) {
      std::array<std::int64_t, kRoles> sums{};
      std::int64_t before = std::numeric_limits<std::int64_t>::max();
      for (const LiveValue& value : alive_at(plan, live.step)) {
        sums[static_cast<std::size_t>(value.role)] += value.bytes;
        EXPECT_LE(value.bytes, before);
        EXPECT_LE(value.first_step, live.step);
        EXPECT_GE(value.last_step, live.step);
        EXPECT_FALSE(value.name.empty());
        before = value.bytes;
      }
      EXPECT_EQ(sums, live.by_role) << backend << " step " << live.step;
    }
  }
}

TEST_F(MemoryTimelineTest, MeasuredMemoryStandsBesideIt) {
  const std::vector<Reading> readings = {{0.0, "cpu", "rss_bytes", 3e8},
                                         {0.1, "cpu", "load", 1.0},
                                         {0.2, "cuda:0", "gpu_memory_used_bytes", 5e9},
                                         {0.3, "cpu", "rss_bytes", 2e8},
                                         {0.4, "cpu", "rss_bytes", 4e8}};
  const std::vector<MeasuredMemory> measured = measured_memory(readings);
  ASSERT_EQ(measured.size(), 2u);
  EXPECT_EQ(measured[0].sensor, "rss_bytes");
  EXPECT_EQ(measured[0].low, 2e8);
  EXPECT_EQ(measured[0].high, 4e8);
  EXPECT_EQ(measured[0].readings, 3);
  EXPECT_EQ(measured[1].device, "cuda:0");

  const MemoryTimeline timeline = timeline_of(plan_of("mlp", 4));
  const std::string text = memory_timeline_text(timeline, readings);
  EXPECT_NE(text.find("measured: resident memory of the whole process: 190.7 MiB to 381.5 MiB"),
            std::string::npos)
      << text;
  EXPECT_NE(memory_timeline_text(timeline, {}).find("measured: n/a"), std::string::npos);
}

TEST_F(MemoryTimelineTest, TheTextShowsThePeakHoweverFewRows) {
  const MemoryTimeline timeline = timeline_of(plan_of("mnist_cnn", 64));
  for (const std::size_t rows : {1u, 2u, 5u, 1000u}) {
    const std::string text = memory_timeline_text(timeline, {}, {.stretches = rows, .most = 3});
    // Under the header and its line, up to the words on the rows.
    const auto bars = static_cast<std::size_t>(std::count(text.begin(), text.end(), '\n'));
    EXPECT_GE(bars, std::min(rows, timeline.positions.size())) << text;
    // The longest bar is as long as it may be.
    EXPECT_NE(text.find(" peak\n"), std::string::npos) << text;
    EXPECT_NE(text.find(fmt::format("peak: "), 0), std::string::npos) << text;
    EXPECT_NE(text.find(fmt::format("{} more", timeline.at_peak.size() - 3)), std::string::npos)
        << text;
  }
  EXPECT_EQ(memory_timeline_text({}, {}), "memory: the plan has no steps\n");
}

TEST_F(MemoryTimelineTest, TheJsonHoldsAllOfIt) {
  const MemoryTimeline timeline = timeline_of(plan_of("mnist_cnn", 4));
  const Json json = Json::parse(memory_timeline_json(timeline, {}));
  ASSERT_EQ(json.at("steps").size(), timeline.positions.size());
  for (std::size_t s = 0; s < timeline.positions.size(); ++s) {
    const Json& step = json.at("steps")[s];
    std::int64_t sum = 0;
    for (const Json& bytes : step.at("by_owner")) sum += bytes.get<std::int64_t>();
    EXPECT_EQ(step.at("bytes"), sum);
    EXPECT_EQ(step.at("layer"), timeline.positions[s].layer);
  }
  std::int64_t alive = 0;
  for (const Json& value : json.at("peak").at("alive"))
    alive += value.at("bytes").get<std::int64_t>();
  EXPECT_EQ(json.at("peak").at("bytes"), alive);
  EXPECT_EQ(json.at("peak").at("step"), timeline.peak_step);
  EXPECT_EQ(json.at("planned").at("gap_bytes"), timeline.gap_bytes());
  EXPECT_TRUE(json.at("measured").empty());
  EXPECT_TRUE(Json::parse(memory_timeline_json({}, {})).at("peak").at("bytes").is_null());
}

}  // namespace
}  // namespace ridgeline
