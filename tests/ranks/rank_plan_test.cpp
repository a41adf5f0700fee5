// The Plan of one of several ranks, with ranks that live in the test.

#include <gtest/gtest.h>

#include <algorithm>
#include <cmath>
#include <map>

#include "backends/auto.h"
#include "base/half.h"
#include "data/synthetic.h"
#include "ranks/ranks.h"
#include "train/trainer.h"

namespace ridgeline {
namespace {

// Two ranks of which the other always has the same values.
class TwinRanks final : public Ranks {
 public:
  TwinRanks() {
    size_ = 2;
    use_ranks(this);
  }
  ~TwinRanks() override { use_ranks(nullptr); }

  void all_reduce(std::span<float> values, Reduction reduction) override {
    twice(values, reduction);
  }
  void all_reduce(std::span<double> values, Reduction reduction) override {
    twice(values, reduction);
  }
  void all_reduce(std::span<std::int64_t> values, Reduction reduction) override {
    twice(values, reduction);
  }
  void all_gather(std::span<const std::byte> mine, std::span<std::byte> all) override {
    std::copy(mine.begin(), mine.end(), all.begin());
    std::copy(mine.begin(), mine.end(), all.begin() + static_cast<std::ptrdiff_t>(mine.size()));
  }
  void all_to_all(std::span<const std::byte> mine, std::span<std::byte> all) override {
    // The other rank sends what this one sends itself.
    const auto half = static_cast<std::ptrdiff_t>(mine.size() / 2);
    std::copy(mine.begin(), mine.begin() + half, all.begin());
    std::copy(mine.begin(), mine.begin() + half, all.begin() + half);
  }
  [[noreturn]] void abort(int code) override { std::_Exit(code); }
  void finish() override {}
  [[nodiscard]] std::string missing() override { return {}; }

  std::size_t calls = 0;

 private:
  template <typename T>
  void twice(std::span<T> values, Reduction reduction) {
    ++calls;
    if (reduction == Reduction::sum) {
      for (T& value : values) value += value;
    }
  }
};

StepSpec spec_of(const char* model, bool synchronise) {
  StepSpec spec;
  spec.model.name = model;
  spec.model.channels = 3;
  spec.model.height = spec.model.width = 32;
  spec.batch = 4;
  spec.optimizer = SgdAttributes{.momentum = 0.9};
  spec.divide.part = {.rows = 4, .pass_rows = 8, .batch_rows = 8};
  spec.divide.ranks = 2;
  spec.divide.bucket_bytes = 10'000;
  spec.divide.synchronise_norms = synchronise;
  return spec;
}

Plan plan_of(const StepSpec& spec, const std::vector<std::string>& disabled = {}) {
  const std::unique_ptr<Device> device = make_cpu_device();
  return plan_for(training_graph(spec).graph,
                  {.backend = "native", .disabled_passes = disabled, .cache = {}}, *device);
}

std::vector<std::size_t> steps_beside(const Plan& plan) {
  std::vector<std::size_t> beside;
  for (std::size_t s = 0; s < plan.steps.size(); ++s) {
    if (plan.steps[s].runs_beside()) beside.push_back(s);
  }
  return beside;
}

TEST(RankPlan, GradientsTravelWhileTheBackwardPassGoesOn) {
  TwinRanks ranks;
  const Plan plan = plan_of(spec_of("resnet18", false));
  std::size_t buckets = 0, long_ones = 0;
  for (const std::size_t s : steps_beside(plan)) {
    const Step& step = plan.steps[s];
    EXPECT_EQ(step.kernel_name(), "mpi:all_reduce/all_reduce");
    EXPECT_GT(step.boundary.bytes_read, 0);
    if (!step.layer.starts_with("gradients.")) continue;
    ++buckets;
    if (step.needed_by > static_cast<std::int32_t>(s) + 10) ++long_ones;
    // No gradient waits for a later one's exchange.
    for (std::size_t next = s + 1; next < static_cast<std::size_t>(step.needed_by); ++next) {
      EXPECT_NE(plan.steps[next].phase, Phase::optimizer);
    }
  }
  EXPECT_GT(buckets, 10U);
  EXPECT_GT(long_ones, buckets / 2);
  EXPECT_TRUE(steps_beside(plan_of(spec_of("resnet18", false), {"overlap"})).empty());
}

// No other step touches what a step that runs beside others uses until it is joined.
TEST(RankPlan, NothingTakesTheMemoryOfAStepThatRunsBeside) {
  TwinRanks ranks;
  for (const bool synchronise : {false, true}) {
    const Plan plan = plan_of(spec_of("resnet18", synchronise));
    std::size_t compared = 0;
    for (const std::size_t s : steps_beside(plan)) {
      const Step& step = plan.steps[s];
      std::vector<FormId> own;
      for (const auto* forms : {&step.inputs, &step.outputs}) {
        for (const FormId id : *forms) own.push_back(plan.root(id).form);
      }
      for (std::size_t next = s + 1; next < static_cast<std::size_t>(step.needed_by); ++next) {
        for (const FormId id : plan.steps[next].outputs) {
          if (id == kNoForm) continue;
          const FormId written = plan.root(id).form;
          for (const FormId mine : own) {
            EXPECT_NE(written, mine) << step.layer << " and " << plan.steps[next].layer;
            if (plan.in_state(mine) || plan.in_state(written)) continue;
            const Form &a = plan.form(mine), &b = plan.form(written);
            EXPECT_TRUE(a.offset + a.bytes <= b.offset || b.offset + b.bytes <= a.offset);
            ++compared;
          }
        }
      }
    }
    EXPECT_GT(compared, 0U) << "statistics lie in scratch memory";
  }
}

TEST(RankPlan, OverlapChangesNoBit) {
  TwinRanks ranks;
  const Split data = make_synthetic(
      {.channels = 3, .height = 32, .width = 32, .classes = 10, .count = 24, .test_count = 0});
  std::vector<std::vector<std::byte>> weights;
  for (const bool overlap : {true, false}) {
    TrainConfig config;
    config.step = spec_of("shufflenet_v2_x0_5", false);
    config.step.divide = {};
    config.step.batch = 8;
    config.plan.backend = "native";
    if (!overlap) config.plan.disabled_passes = {"overlap"};
    config.epochs = 1;
    config.ranks = &ranks;
    config.bucket_bytes = 10'000;
    ranks.calls = 0;
    Trainer trainer(config, data, make_cpu_device());
    TrainObserver silent;
    (void)trainer.train(silent);
    EXPECT_GT(ranks.calls, 30U);
    std::vector<std::byte> all;
    for (const StepRunner::NamedTensor& tensor : trainer.runner().read_weights()) {
      all.insert(all.end(), tensor.bytes.begin(), tensor.bytes.end());
    }
    weights.push_back(std::move(all));
  }
  EXPECT_TRUE(weights[0] == weights[1]);
}

// Kernels that cover the loss and its gradient together, or a whole step, know that the gradient is
// that of a part of the batch.
TEST(RankPlan, EveryBackendComputesThePartsGradient) {
  TwinRanks ranks;
  const Split data = make_synthetic(
      {.channels = 3, .height = 12, .width = 12, .classes = 10, .count = 24, .test_count = 0});
  for (const char* model : {"mlp", "mnist_cnn"}) {
    std::map<std::string, std::vector<float>> weights;
    for (const char* backend : {"reference", "native", "onednn"}) {
      TrainConfig config;
      config.step.model.name = model;
      config.step.model.channels = 3;
      config.step.model.height = config.step.model.width = 12;
      config.step.batch = 8;
      config.plan.backend = backend;
      config.learning_rate = 0.1;
      config.epochs = 2;
      config.ranks = &ranks;
      Trainer trainer(config, data, make_cpu_device());
      TrainObserver silent;
      (void)trainer.train(silent);
      for (const StepRunner::NamedTensor& tensor : trainer.runner().read_weights()) {
        const auto* values = reinterpret_cast<const float*>(tensor.bytes.data());
        std::vector<float>& all = weights[backend];
        all.insert(all.end(), values, values + tensor.bytes.size() / sizeof(float));
      }
    }
    for (const auto& [backend, values] : weights) {
      float largest = 0.0F;
      for (std::size_t i = 0; i < values.size(); ++i) {
        largest = std::max(largest, std::abs(values[i] - weights["reference"][i]));
      }
      EXPECT_LT(largest, 1e-5F) << backend << ", " << model;
    }
  }
}

// Two ranks with the same gradients: twice what one has, rounded to the type that travels. Each
// adds its half of them; the twin, who only repeats what it is sent, gives the sums of the first
// one.
TEST(RankPlan, WhatTravelsNarrowIsAddedInFloats) {
  TwinRanks ranks;
  const std::unique_ptr<Device> device = make_cpu_device();
  constexpr std::size_t kElements = 37, kPart = 19;  // an odd number, so that the parts differ
  for (const DType wire : {DType::bf16, DType::f16}) {
    Graph graph;
    const ValueId value = graph.add_value("a", {Shape({kElements}), DType::f32}, Role::gradient);
    const std::vector<ValueId> sums = graph.add_node(
        OpKind::all_reduce, AllReduceAttributes{.ranks = 2, .in_place = true, .wire = wire},
        {value}, "gradients", Phase::backward_weights);
    graph.mark_output(sums[0]);
    Session session(*device);
    const Session::PlanId id = session.add(
        plan_for(graph, {.backend = "native", .disabled_passes = {}, .cache = {}}, *device));
    session.prepare();
    std::vector<float> values, sum(kElements);
    for (std::size_t i = 0; i < kElements; ++i) {
      values.push_back(0.37F * static_cast<float>(i + 1) * (i % 2 == 0 ? 1.0F : -1.0F));
    }
    session.write("a", std::as_bytes(std::span(values)));
    session.run(id);
    session.read("a", std::as_writable_bytes(std::span(sum)));
    for (std::size_t i = 0; i < kElements; ++i) {
      const float own = values[i % kPart];
      const double travels =
          wire == DType::bf16 ? widened(narrowed<BFloat16>(own)) : widened(narrowed<Float16>(own));
      EXPECT_EQ(sum[i], static_cast<float>(2.0 * travels)) << i;
    }
  }
}

}  // namespace
}  // namespace ridgeline
