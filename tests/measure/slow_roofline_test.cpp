// No step of any backend may lie above its roof: costs, times and ceilings must fit together.

#include <gtest/gtest.h>

#include <algorithm>

#include "analysis/roofline/points.h"
#include "backends/auto.h"
#include "base/parallel.h"
#include "measure/ceilings/ceilings.h"
#include "measure/step_times.h"
#include "plan/measure.h"
#include "train/step_graph.h"

namespace ridgeline {
namespace {

struct RoofCase {
  const char *model, *backend;
  std::int64_t batch, image;
};

// A machine that does something else meanwhile lowers ceilings and times alike, but not at the same
// moment: what lies above the roof is measured again, and ceilings keep the best they have reached.
constexpr int kAttempts = 4;

std::vector<Ceiling>& ceilings_so_far() {
  static std::vector<Ceiling> ceilings;
  return ceilings;
}

void measure_again() {
  const CeilingEffort quick{.repeats = 5, .repeat_seconds = 0.003, .memory_bytes = 0};
  keep_better(ceilings_so_far(), measure_ceilings("cpu", {}, quick));
}

class SlowRoofline : public ::testing::TestWithParam<RoofCase> {
 protected:
  static void SetUpTestSuite() {
    if (ceilings_so_far().empty()) measure_again();
  }
};

TEST_P(SlowRoofline, NoStepLiesAboveIt) {
  const RoofCase& wanted = GetParam();
  const std::unique_ptr<Device> cpu = make_cpu_device();
  StepSpec spec;
  spec.model = default_config(wanted.model);
  if (wanted.image > 0) spec.model.height = spec.model.width = wanted.image;
  spec.batch = wanted.batch;
  spec.optimizer = SgdAttributes{.momentum = 0.9};
  PlanRequest request;
  request.backend = wanted.backend;
  Session session(*cpu);
  const Session::PlanId id = session.add(plan_for(training_graph(spec).graph, request, *cpu));
  session.prepare();
  fill_for_timing(session, id);
  std::vector<Finding> above;
  for (int attempt = 0; attempt < kAttempts; ++attempt) {
    if (attempt > 0) measure_again();
    const StepMeasurement measured =
        measure_steps(session, id, {.fewest = 3, .most = 20, .patience_seconds = 0.2});
    const std::vector<StepTime> steps = step_times(session.plan(id), *cpu, measured.seconds);
    const Roofs roofs = roofs_of(ceilings_so_far(), "cpu", thread_count());
    const std::vector<RooflinePoint> points = points_of(steps, roofs, Grouping::step);
    for (const RooflinePoint& point : points) {
      EXPECT_TRUE(point.efficiency().has_value()) << point.name << " " << point.ops;
    }
    above = above_roof(points);
    if (above.empty()) return;
  }
  for (const Finding& finding : above) ADD_FAILURE() << finding.evidence;
}

INSTANTIATE_TEST_SUITE_P(Cpu, SlowRoofline,
                         ::testing::Values(RoofCase{"mlp", "reference", 64, 0},
                                           RoofCase{"mlp", "native", 512, 0},
                                           RoofCase{"mlp", "onednn", 512, 0},
                                           RoofCase{"mnist_cnn", "reference", 16, 0},
                                           RoofCase{"mnist_cnn", "native", 128, 0},
                                           RoofCase{"mnist_cnn", "onednn", 128, 0},
                                           RoofCase{"squeezenet1_1", "reference", 1, 64},
                                           RoofCase{"squeezenet1_1", "native", 8, 64},
                                           RoofCase{"squeezenet1_1", "onednn", 8, 64}),
                         [](const auto& tested) {
                           return std::string(tested.param.model) + "_" + tested.param.backend;
                         });

}  // namespace
}  // namespace ridgeline
