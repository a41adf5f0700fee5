// The steps of a plan with their times: every figure is the plan's own.

#include "measure/step_times.h"

#include <gtest/gtest.h>

#include <algorithm>

#include "inspect/complexity.h"
#include "ops/conv2d_touched.h"
#include "plan/measure.h"

namespace ridgeline {
namespace {

StepSpec spec_of(const std::string& model, std::int64_t batch, std::int64_t image = 0) {
  StepSpec spec;
  spec.model = default_config(model);
  if (image > 0) spec.model.height = spec.model.width = image;
  spec.batch = batch;
  spec.optimizer = SgdAttributes{.momentum = 0.9};
  return spec;
}

PlanRequest request(const char* backend) {
  PlanRequest made;
  made.backend = backend;
  return made;
}

// A device of which only the kind counts.
class NamedDevice final : public Device {
 public:
  [[nodiscard]] std::string name() const override { return "cuda:0"; }
  [[nodiscard]] std::string kind() const override { return "cuda"; }
  [[nodiscard]] std::string description() const override { return "none"; }
  [[nodiscard]] std::string refuse(Precision) const override { return {}; }
  [[nodiscard]] std::size_t available_memory() const override { return 0; }
  [[nodiscard]] std::byte* allocate(std::size_t) override { return nullptr; }
  void release(std::byte*, std::size_t) noexcept override {}
  void upload(std::byte*, const void*, std::size_t) override {}
  void stage(std::byte*, const void*, std::size_t) override {}
  void download(void*, const std::byte*, std::size_t) override {}
  void fill(std::byte*, std::byte, std::size_t) override {}
  void launch(const Kernel&, const KernelArgs&) override {}
  void synchronize() override {}
  [[nodiscard]] double time(const std::function<void()>&) override { return 0.0; }
};

class StepTimes : public ::testing::Test {
 protected:
  [[nodiscard]] Plan plan_of(const StepSpec& spec, const char* backend = "native") {
    return dry_plan(spec, request(backend), *cpu);
  }
  [[nodiscard]] std::vector<StepTime> times_of(const Plan& plan) const {
    return step_times(plan, *cpu, std::vector<double>(plan.steps.size(), 1e-3));
  }
  std::unique_ptr<Device> cpu = make_cpu_device();
};

const StepTime* find(const std::vector<StepTime>& times, const std::string& layer,
                     const std::string& phase) {
  for (const StepTime& time : times) {
    if (time.layer == layer && time.phase == phase && time.ops.starts_with("conv2d")) return &time;
  }
  return nullptr;
}

TEST_F(StepTimes, SumUpToThePlan) {
  const Plan plan = plan_of(spec_of("mnist_cnn", 8));
  const std::vector<StepTime> times = times_of(plan);
  ASSERT_EQ(times.size(), plan.steps.size());
  std::int64_t work = 0, bytes = 0;
  for (std::size_t s = 0; s < times.size(); ++s) {
    work += times[s].work_flops;
    bytes += times[s].bytes_read + times[s].bytes_written;
    EXPECT_EQ(times[s].index, static_cast<std::int64_t>(s));
    EXPECT_EQ(times[s].flops, plan.steps[s].boundary.flops);
    EXPECT_EQ(times[s].kernel, plan.steps[s].kernel_name());
    EXPECT_EQ(times[s].unit, "fp32");
    EXPECT_GT(times[s].working_set_bytes, 0) << times[s].layer << " " << times[s].ops;
  }
  EXPECT_EQ(work, plan.work().flops);
  EXPECT_EQ(bytes, work_of(plan).moved_bytes);
}

TEST_F(StepTimes, TellEveryOpThatTheyCover) {
  const Plan plan = plan_of(spec_of("mnist_cnn", 2));
  const std::vector<StepTime> times = times_of(plan);
  bool fused = false;
  for (std::size_t s = 0; s < times.size(); ++s) {
    std::string told;
    for (const NodeId id : plan.steps[s].nodes) {
      const Node& node = plan.graph->node(id);
      if (!told.empty()) told += "; ";
      told += std::string(name_of(node.phase)) + ' ';
      told += std::string(name_of(node.kind)) + ' ' + node.layer;
    }
    EXPECT_EQ(times[s].covers, told);
    fused = fused || told.find("; ") != std::string::npos;
  }
  EXPECT_TRUE(fused);
}

TEST_F(StepTimes, CountABufferThatIsUpdatedInPlaceOnce) {
  const Plan plan = plan_of(spec_of("mlp", 4));
  std::size_t updates = 0;
  for (const Step& step : plan.steps) {
    const bool sgd = !step.is_reorder() && plan.graph->node(step.nodes[0]).kind == OpKind::sgd;
    if (!sgd) continue;
    ++updates;
    // Parameter and velocity are read and written, the gradient read: three buffers, five ways.
    EXPECT_EQ(working_set_of(plan, step),
              3 * (step.boundary.bytes_read + step.boundary.bytes_written) / 5);
  }
  EXPECT_GT(updates, 0u);
}

TEST_F(StepTimes, LeaveOutPixelsThatAStridedConvolutionJumpsOver) {
  const Plan plan = plan_of(spec_of("resnet18", 1, 64));
  const std::vector<StepTime> times = times_of(plan);
  const StepTime* half = find(times, "layer2.0.downsample.0", "forward");
  ASSERT_NE(half, nullptr);
  // 64 channels of 16x16 pixels, of which every second row and column is read; 128x64 weights.
  EXPECT_EQ(half->bytes_read, 64 * 8 * 8 * 4 + 128 * 64 * 4);
  const StepTime* whole = find(times, "layer1.0.conv1", "forward");
  ASSERT_NE(whole, nullptr);
  EXPECT_EQ(whole->bytes_read, 64 * 16 * 16 * 4 + 64 * 64 * 9 * 4);
}

TEST_F(StepTimes, OfDoublesAreHeldAgainstFp64) {
  StepSpec spec = spec_of("mnist_cnn", 2);
  spec.dtype = DType::f64;
  const std::vector<StepTime> times = times_of(plan_of(spec, "reference"));
  EXPECT_TRUE(std::any_of(times.begin(), times.end(), [](const StepTime& time) {
    return time.ops.starts_with("conv2d") && time.unit == "fp64";
  }));
}

TEST_F(StepTimes, OnTensorCoresAreProductsAlone) {
  StepGraph step = training_graph(spec_of("mobilenet_v2", 2, 64));
  step.graph.allow_tf32(true);
  const Plan plan = plan_for(std::move(step.graph), request("native"), *cpu);
  const NamedDevice cuda;
  std::size_t tensor = 0, depthwise = 0;
  for (const Step& s : plan.steps) {
    const std::string unit = unit_of(plan, s, cuda);
    const std::string ops = ops_of(plan, s);
    if (s.kernel->implementation == "depthwise") {
      ++depthwise;
      EXPECT_EQ(unit, "fp32") << s.layer;
    } else if (ops.starts_with("conv2d") || ops.starts_with("linear")) {
      ++tensor;
      EXPECT_EQ(unit, "tensor tf32") << s.layer << " " << ops;
    } else {
      EXPECT_EQ(unit, "fp32") << s.layer << " " << ops;
    }
    EXPECT_EQ(unit_of(plan, s, *cpu), "fp32");
  }
  EXPECT_GT(tensor, 50u);
  EXPECT_GT(depthwise, 30u);
}

TEST_F(StepTimes, SplitIntoPhasesAddsUp) {
  const Plan plan = plan_of(spec_of("mnist_cnn", 2), "reference");
  const std::vector<StepTime> times = times_of(plan);
  const PhaseSeconds split = split_of(times);
  EXPECT_NEAR(split.sum(), 1e-3 * static_cast<double>(times.size()), 1e-12);
  EXPECT_GT(split.forward, 0.0);
  EXPECT_GT(split.backward, split.forward);
  EXPECT_GT(split.optimizer, 0.0);
  EXPECT_EQ(split.joint, 0.0);
}

TEST_F(StepTimes, OfAKernelThatComputesAllPhasesAreNeverSplit) {
  StepTime whole;
  whole.phase = "input+forward+backward-data+optimizer";
  whole.seconds = 0.25;
  const PhaseSeconds split = split_of({&whole, 1});
  EXPECT_DOUBLE_EQ(split.joint, 0.25);
  EXPECT_DOUBLE_EQ(split.sum(), 0.25);
}

TEST_F(StepTimes, AreMeasuredInPlaceAndLeaveTheWeights) {
  Session session(*cpu);
  const StepSpec spec = spec_of("mnist_cnn", 4);
  const Session::PlanId id =
      session.add(plan_for(training_graph(spec).graph, request("native"), *cpu));
  session.prepare();
  fill_for_timing(session, id);
  session.step_state().learning_rate = 0.5;
  const ValueId weights = session.plan(id).graph->find("conv1.weight");
  ASSERT_NE(weights, kNoValue);
  const std::vector<double> before = session.read_value(id, weights);
  const StepMeasurement measured = measure_steps(session, id, {.fewest = 3, .most = 3});
  EXPECT_EQ(measured.passes, 3);
  ASSERT_EQ(measured.seconds.size(), session.plan(id).steps.size());
  for (const double seconds : measured.seconds) EXPECT_GT(seconds, 0.0);
  EXPECT_GT(measured.share_of_whole, 0.0);
  EXPECT_GT(measured.sum(), 0.0);
  EXPECT_EQ(session.read_value(id, weights), before);
  EXPECT_DOUBLE_EQ(session.step_state().learning_rate, 0.5);
}

TEST(ConvTouched, TapsOnPaddingAreNotInside) {
  const Conv2dAttributes same{
      .kernel_h = 3, .kernel_w = 3, .pad_top = 1, .pad_left = 1, .pad_bottom = 1, .pad_right = 1};
  // Of 3 taps of each of 2 pixels, one lies outside: 2/3 in each direction.
  EXPECT_DOUBLE_EQ(taps_inside(same, {1, 1, 2, 2}, {1, 1, 2, 2}), 4.0 / 9.0);
  EXPECT_DOUBLE_EQ(src_pixels_read(same, {1, 1, 2, 2}, {1, 1, 2, 2}), 1.0);
  const Conv2dAttributes valid{.kernel_h = 3, .kernel_w = 3};
  EXPECT_DOUBLE_EQ(taps_inside(valid, {1, 1, 5, 5}, {1, 1, 3, 3}), 1.0);
}

TEST(ConvTouched, AStrideBeyondTheKernelLeavesPixelsUnread) {
  const Conv2dAttributes half{.kernel_h = 1, .kernel_w = 1, .stride_h = 2, .stride_w = 2};
  EXPECT_DOUBLE_EQ(src_pixels_read(half, {1, 1, 4, 4}, {1, 1, 2, 2}), 0.25);
  EXPECT_DOUBLE_EQ(src_pixels_read(half, {1, 1, 5, 5}, {1, 1, 3, 3}), 9.0 / 25.0);
}

}  // namespace
}  // namespace ridgeline
