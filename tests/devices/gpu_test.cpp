// Training on a GPU: what the op cases cannot show. Skipped where there is none.

#include <gtest/gtest.h>

#include <algorithm>
#include <cmath>
#include <numeric>
#include <set>

#include "backends/registry.h"
#include "base/error.h"
#include "data/synthetic.h"
#include "inspect/verify.h"
#include "measure/profile/device_profiler.h"
#include "support/perturbed_weights.h"
#include "support/toy_networks.h"
#include "train/evaluator.h"
#include "train/step_runner.h"
#include "train/trainer.h"

namespace ridgeline {
namespace {

struct Param {
  const Backend* backend;
  Precision precision;
};

std::vector<Param> params() {
  std::vector<Param> list;
  for (const Backend* backend : usable_backends()) {
    if (backend->device != "cuda") continue;
    for (const Precision precision :
         {Precision::fp32, Precision::tf32, Precision::bf16, Precision::fp16}) {
      list.push_back({backend, precision});
    }
  }
  return list;
}

class Gpu : public ::testing::TestWithParam<Param> {
 protected:
  void SetUp() override {
    device_ = make_device("cuda:0");
    const std::string refusal = device_->refuse(GetParam().precision);
    if (!refusal.empty()) GTEST_SKIP() << refusal;
  }

  [[nodiscard]] ToyNetwork network(std::size_t index) const {
    ToyNetwork network = toy_networks()[index];
    network.spec.precision = GetParam().precision;
    return network;
  }

  // Relative error of a first loss: products are rounded once, losses are averages.
  [[nodiscard]] double loss_tolerance() const {
    switch (GetParam().precision) {
      case Precision::fp32:
        return 1e-5;
      case Precision::tf32:
      case Precision::fp16:
        return 5e-3;
      case Precision::bf16:
        return 3e-2;
    }
    return 0.0;
  }

  // Relative error of logits: every layer rounds its result, tens of them in a row.
  [[nodiscard]] double logits_tolerance() const {
    switch (GetParam().precision) {
      case Precision::fp32:
        return 1e-4;
      case Precision::tf32:
      case Precision::fp16:
        return 2e-2;
      case Precision::bf16:
        return 1e-1;
    }
    return 0.0;
  }

  std::unique_ptr<Device> device_;
};

TEST_P(Gpu, TheFirstLossIsTheCpus) {
  const std::unique_ptr<Device> cpu = make_cpu_device();
  for (std::size_t i = 0; i < toy_networks().size(); ++i) {
    const double expected = train_losses(toy_networks()[i], reference_backend, *cpu, 1)[0];
    const double loss = train_losses(network(i), *GetParam().backend, *device_, 1)[0];
    EXPECT_NEAR(loss, expected, loss_tolerance() * expected) << toy_networks()[i].name;
  }
}

TEST_P(Gpu, NetworksLearnTheirBatch) {
  for (std::size_t i = 0; i < toy_networks().size(); ++i) {
    const std::vector<double> losses = train_losses(network(i), *GetParam().backend, *device_, 8);
    EXPECT_LT(losses.back(), losses.front()) << toy_networks()[i].name;
  }
}

TEST_P(Gpu, TwoRunsAreBitwiseEqual) {
  for (std::size_t i = 0; i < toy_networks().size(); ++i) {
    EXPECT_EQ(train_losses(network(i), *GetParam().backend, *device_, 5),
              train_losses(network(i), *GetParam().backend, *device_, 5));
  }
}

// The first run of a plan is launched kernel by kernel, later ones are replayed as a whole.
TEST_P(Gpu, AReplayedStepDoesWhatTheLaunchedOneDid) {
  const ToyNetwork toy = network(0);
  const StepGraph step = training_graph(toy.spec, toy.build);
  Session session(*device_);
  PlanOptions options;
  options.providers = providers_of(GetParam().backend->name);
  const Session::PlanId id = session.add(make_plan(step.graph, options));
  session.prepare();
  std::vector<double> losses;
  for (int run = 0; run < 4; ++run) {
    fill_state(session, step, toy.spec, 1);
    session.run(id);
    losses.push_back(session.read_value(id, step.loss)[0]);
  }
  for (const double loss : losses) EXPECT_EQ(loss, losses[0]);
}

// Batch norms folded in double on the host, then cast; the second run is recorded, the third is
// replayed.
TEST_P(Gpu, FoldedLogitsAreTheCpus) {
  const std::unique_ptr<Device> cpu = make_cpu_device();
  for (const char* model : {"resnet18", "mobilenet_v2"}) {
    StepSpec spec = testing::small_spec(model);
    const std::vector<double> expected = testing::evaluated_logits(*cpu, "native", spec);
    spec.precision = GetParam().precision;
    PlanRequest request;
    request.backend = GetParam().backend->name;
    InferenceRunner runner(*device_, request, spec);
    runner.session().prepare();
    runner.write_weights(testing::perturbed_weights);
    runner.write_batch(testing::random_pixels(spec));
    std::vector<double> first;
    for (int run = 0; run < 3; ++run) {
      runner.run();
      const std::vector<double> logits = runner.logits();
      EXPECT_LT(testing::relative_error(logits, expected), logits_tolerance()) << model;
      if (run == 0) first = logits;
      EXPECT_EQ(logits, first) << model;
    }
    EXPECT_EQ(
        std::count_if(runner.plan().graph->nodes().begin(), runner.plan().graph->nodes().end(),
                      [](const Node& node) { return node.kind == OpKind::bn_apply; }),
        0);
    // Narrow weights are cast once, not in every run.
    for (const Step& step : runner.plan().steps) {
      if (step.is_reorder()) continue;
      EXPECT_NE(runner.plan().graph->node(step.nodes[0]).kind, OpKind::cast) << step.layer;
    }
  }
}

INSTANTIATE_TEST_SUITE_P(Backends, Gpu, ::testing::ValuesIn(params()), [](const auto& instance) {
  return std::string(instance.param.backend->name) + "_" +
         std::string(name_of(instance.param.precision));
});
GTEST_ALLOW_UNINSTANTIATED_PARAMETERIZED_TEST(Gpu);

Split small_data() {
  return make_synthetic({.channels = 1,
                         .height = 16,
                         .width = 16,
                         .classes = 4,
                         .count = 256,
                         .test_count = 64,
                         .seed = 3});
}

TrainConfig small_config(Precision precision) {
  TrainConfig config;
  config.step.model.name = "mnist_cnn";
  config.step.model.height = config.step.model.width = 16;
  config.step.model.classes = 4;
  config.step.batch = 32;
  config.step.precision = precision;
  config.step.optimizer = SgdAttributes{.momentum = 0.9};
  config.plan.backend = "cuda";
  config.learning_rate = 0.02;
  config.epochs = 4;
  return config;
}

TEST(GpuTraining, Fp16SurvivesAnOverflow) {
  if (const std::string reason = cuda_unavailable(); !reason.empty()) GTEST_SKIP() << reason;
  const Split data = small_data();
  TrainConfig config = small_config(Precision::fp16);
  config.first_loss_scale = 0x1p30;
  TrainObserver silent;
  Trainer trainer(config, data, make_device("cuda:0"));
  const TrainResult result = trainer.train(silent);
  ASSERT_TRUE(result.scaling.has_value());
  EXPECT_GT(result.scaling->overflows, 5);
  EXPECT_LT(result.scaling->scale, 0x1p25);
  EXPECT_LT(result.epochs.back().train_loss, result.epochs.front().train_loss);
  EXPECT_TRUE(std::isfinite(result.epochs.back().train_loss));
}

// What commands take where no backend is named.
TEST(GpuTraining, AutoTrainsAndEvaluates) {
  if (const std::string reason = cuda_unavailable(); !reason.empty()) GTEST_SKIP() << reason;
  const Split data = small_data();
  TrainConfig config = small_config(Precision::bf16);
  config.plan.backend = "auto";
  TrainObserver silent;
  Trainer trainer(config, data, make_device("cuda:0"));
  const TrainResult result = trainer.train(silent);
  EXPECT_LT(result.epochs.back().train_loss, result.epochs.front().train_loss);
  EvaluatorConfig evaluation;
  evaluation.step = config.step;
  evaluation.plan = config.plan;
  Evaluator evaluator(evaluation, data.test, make_device("cuda:0"));
  EXPECT_EQ(evaluator.evaluate().samples, data.test.count());
}

TEST(GpuTraining, TooLittleMemoryNamesTheLargestBatch) {
  if (const std::string reason = cuda_unavailable(); !reason.empty()) GTEST_SKIP() << reason;
  StepSpec spec;
  spec.model = default_config("resnet50");
  spec.batch = 1 << 11;
  const std::unique_ptr<Device> device = make_device("cuda:0");
  std::vector<PlanRequest> requests(1);
  requests[0].backend = "cuda";
  try {
    check_training_memory(*device, spec, requests);
    FAIL() << "thousands of images of 224x224 cannot fit";
  } catch (const Error& error) {
    EXPECT_NE(std::string(error.what()).find("largest batch that fits"), std::string::npos)
        << error.what();
  }
}

TEST(GpuDevice, ASessionLeavesNothingBehind) {
  if (const std::string reason = cuda_unavailable(); !reason.empty()) GTEST_SKIP() << reason;
  const std::unique_ptr<Device> device = make_device("cuda:0");
  constexpr std::size_t kBytes = std::size_t{64} << 20, kHalf = kBytes / 2;
  const std::vector<std::byte> batch(kHalf);
  const auto stage_batches = [&] {
    const DeviceMemory arena(*device, kBytes);
    for (int time = 0; time < 3; ++time) device->stage(arena.data() + kHalf, batch.data(), kHalf);
    EXPECT_EQ(device->staging_memory({arena.data(), kHalf}), 0);
    EXPECT_EQ(device->staging_memory({arena.data(), kBytes}), 2 * kHalf);
    EXPECT_EQ(device->allocated_memory(), kBytes + 2 * kHalf);
  };
  stage_batches();
  const std::size_t free = device->available_memory();
  EXPECT_EQ(device->allocated_memory(), 0);
  for (int session = 0; session < 4; ++session) {
    const DeviceMemory beside(*device, 1);  // the next arena lies elsewhere
    device->stage(beside.data(), batch.data(), 1);
    const DeviceMemory arena(*device, kBytes);
    device->stage(arena.data() + static_cast<std::size_t>(session), batch.data(), kHalf);
  }
  EXPECT_EQ(device->allocated_memory(), 0);
  EXPECT_NEAR(static_cast<double>(device->available_memory()), static_cast<double>(free),
              static_cast<double>(kHalf));
}

// Iterations of a training step, watched.
struct Watched {
  DeviceActivity activity;
  std::vector<std::pair<double, double>> iterations;  // by the host's clock
  std::size_t steps = 0;
};

Watched watch(StepRunner& runner, Session::PlanId plan, const StepSpec& spec,
              DeviceProfiler& profiler) {
  using Clock = std::chrono::steady_clock;
  const std::vector<std::uint8_t> pixels = testing::random_pixels(spec);
  const std::vector<std::int32_t> labels(static_cast<std::size_t>(spec.batch), 1);
  std::vector<std::int32_t> samples(labels.size());
  std::iota(samples.begin(), samples.end(), 0);
  Session& session = runner.session();
  const auto iterate = [&] {
    runner.write_batch(
        {.pixels = pixels, .labels = labels, .samples = samples, .rows = spec.batch});
    session.step_state().learning_rate = 0.01;
    session.step_state().valid_rows = spec.batch;
    ++session.step_state().optimizer_step;
    session.run(plan);
    session.device().synchronize();
  };
  iterate();
  iterate();
  Watched watched;
  watched.steps = session.plan(plan).steps.size();
  const Clock::time_point zero = Clock::now();
  const auto now = [&] { return std::chrono::duration<double>(Clock::now() - zero).count(); };
  profiler.start(zero);
  for (int i = 0; i < 4; ++i) {
    const double begin = now();
    iterate();
    watched.iterations.emplace_back(begin, now());
  }
  watched.activity = profiler.stop();
  return watched;
}

// The activities of the device in one of the iterations.
std::vector<ProfileEvent> activities_in(const Watched& watched, std::size_t iteration) {
  constexpr double kClockError = 1e-4;
  const auto [begin, end] = watched.iterations[iteration];
  std::vector<ProfileEvent> events;
  for (const ProfileEvent& event : watched.activity.events) {
    if (event.activity != Activity::runtime && event.begin > begin - kClockError &&
        event.end < end + kClockError) {
      events.push_back(event);
    }
  }
  return events;
}

void expect_whole(const Watched& watched) {
  for (const Missing& missing : watched.activity.missing) {
    ADD_FAILURE() << missing.what << ": " << missing.reason;
  }
  // The first iteration records, the others replay.
  for (std::size_t i = 1; i < watched.iterations.size(); ++i) {
    std::set<std::int64_t> steps;
    bool copies_the_batch = false;
    for (const ProfileEvent& event : activities_in(watched, i)) {
      EXPECT_FALSE(event.name.empty());
      EXPECT_LE(event.begin, event.end);
      EXPECT_NE(event.correlation, 0U);
      if (event.step >= 0) steps.insert(event.step);
      copies_the_batch |= event.activity == Activity::copy && event.bytes.value_or(0) > 0;
    }
    EXPECT_EQ(steps.size(), watched.steps) << "in iteration " << i;
    EXPECT_TRUE(copies_the_batch);
  }
  // Over all iterations: one of them may be shorter than the clocks' error.
  double busy = 0.0;
  for (const ProfileEvent& event : watched.activity.events) {
    if (event.step >= 0) busy += event.end - event.begin;
  }
  EXPECT_LE(busy, watched.iterations.back().second - watched.iterations.front().first);
  EXPECT_EQ(std::count_if(watched.activity.events.begin(), watched.activity.events.end(),
                          [](const ProfileEvent& event) {
                            return event.name.starts_with("cudaGraphLaunch");
                          }),
            4);
}

TEST(GpuProfile, EveryStepOfAReplayHasItsActivities) {
  if (const std::string reason = cuda_unavailable(); !reason.empty()) GTEST_SKIP() << reason;
  for (const Backend* backend : usable_backends()) {
    if (backend->device != "cuda") continue;
    for (const char* model : {"mnist_cnn", "resnet18"}) {
      SCOPED_TRACE(std::string(backend->name) + " " + model);
      StepSpec spec;
      spec.model = default_config(model);
      if (std::string_view(model) == "resnet18") spec.model.height = spec.model.width = 64;
      spec.batch = 16;
      const std::unique_ptr<Device> device = make_device("cuda:0");
      PlanRequest request;
      request.backend = backend->name;
      StepRunner runner(*device, request);
      const Session::PlanId plan = runner.add_training(spec);
      runner.prepare(1);
      const DeviceProfilerOrReason made = make_device_profiler(runner.session(), plan);
      if (made.profiler == nullptr) GTEST_SKIP() << made.reason;
      expect_whole(watch(runner, plan, spec, *made.profiler));
    }
  }
}

// A kernel that cannot be recorded has the whole step launched kernel by kernel; so has a first
// run.
TEST(GpuProfile, LaunchedStepsHaveTheirActivitiesToo) {
  if (const std::string reason = cuda_unavailable(); !reason.empty()) GTEST_SKIP() << reason;
  const std::unique_ptr<Device> device = make_device("cuda:0");
  const ToyNetwork toy = toy_networks()[0];
  const StepGraph step = training_graph(toy.spec, toy.build);
  Session session(*device);
  PlanOptions options;
  options.providers = providers_of("cuda");
  const Session::PlanId id = session.add(make_plan(step.graph, options));
  session.prepare();
  fill_state(session, step, toy.spec, 1);
  device->synchronize();
  const DeviceProfilerOrReason made = make_device_profiler(session, id);
  if (made.profiler == nullptr) GTEST_SKIP() << made.reason;
  made.profiler->start(std::chrono::steady_clock::now());
  session.run(id);
  device->synchronize();
  const DeviceActivity activity = made.profiler->stop();
  for (const Missing& missing : activity.missing) {
    ADD_FAILURE() << missing.what << ": " << missing.reason;
  }
  std::set<std::int64_t> steps;
  for (const ProfileEvent& event : activity.events) {
    if (event.activity != Activity::runtime && event.step >= 0) steps.insert(event.step);
  }
  EXPECT_EQ(steps.size(), session.plan(id).steps.size());
}

}  // namespace
}  // namespace ridgeline
