// Predictions: that learning finds planted truth, that plans of absent devices are those of the
// real ones, that what cannot be told is refused.

#include "predict/predict.h"

#include <gtest/gtest.h>

#include <cmath>
#include <filesystem>
#include <fstream>
#include <random>
#include <set>

#include "base/error.h"
#include "inspect/complexity.h"
#include "lab/options.h"
#include "predict/dry_gpu.h"
#include "predict/shipped.h"

namespace ridgeline::predict {
namespace {

const std::map<Kind, double> kTruth = {{"conv2d wide | plain", 1.6},
                                       {"conv2d narrow | memory", 2.5},
                                       {"norm | memory", 1.2},
                                       {"norm backward | memory", 1.9},
                                       {"elements | cache", 3.0}};
constexpr double kTrueStep = 8e-6;

// Iterations of networks that differ in what they demand. A network's own factor is what kinds do
// not explain.
class Planted {
 public:
  explicit Planted(double network_noise, double device_noise = 0.0)
      : network_noise_(network_noise), device_noise_(device_noise) {}

  std::vector<Observation> seen(int devices, int networks) {
    std::vector<Observation> all;
    for (int d = 0; d < devices; ++d) {
      const double speed = std::pow(2.0, d), off = std::exp(device_noise_ * normal());
      for (int n = 0; n < networks; ++n) {
        const double own = std::exp(network_noise_ * normal());
        std::vector<double> mix;
        for (std::size_t k = 0; k < kTruth.size(); ++k) mix.push_back(0.2 + uniform());
        for (const int batch : {16, 32, 64, 128}) {
          all.push_back(one(fmt::format("device {}", d), fmt::format("network {}", n), batch, speed,
                            own * off, mix));
        }
      }
    }
    return all;
  }

 private:
  double uniform() { return std::uniform_real_distribution<double>(0.0, 1.0)(random_); }
  double normal() { return std::normal_distribution<double>()(random_); }

  static Observation one(const std::string& device, const std::string& network, int batch,
                         double speed, double factor, const std::vector<double>& mix) {
    Observation seen;
    seen.device = device;
    seen.backend = "native";
    seen.model = seen.network = network;
    seen.precision = "fp32";
    seen.batch = batch;
    std::size_t place = 0;
    for (const auto& [kind, slowdown] : kTruth) {
      const Part part{1e-4 * mix[place++] * batch / speed, 200.0};
      seen.demand[kind] = part;
      seen.seconds += factor * (slowdown * part.least_seconds + kTrueStep * part.steps);
    }
    return seen;
  }

  std::mt19937 random_{7};
  double network_noise_, device_noise_;
};

std::vector<const Observation*> pointers(const std::vector<Observation>& seen) {
  std::vector<const Observation*> all;
  for (const Observation& one : seen) all.push_back(&one);
  return all;
}

double median_error(const std::vector<HeldBack>& held, Unknown unknown) {
  for (const CheckRow& row : check_rows(held)) {
    if (row.unknown == unknown) return row.median_error;
  }
  return -1.0;
}

StepSpec spec_of(const char* model, std::int64_t batch, Precision precision) {
  StepSpec spec;
  spec.model = default_config(model);
  spec.batch = batch;
  spec.precision = precision;
  spec.optimizer = optimizer_attributes({});
  return spec;
}

TEST(PredictLearn, FindsPlantedSlowdowns) {
  const std::vector<Observation> seen = Planted(0.0).seen(2, 60);
  const Efficiencies found = learn(pointers(seen), nullptr);
  for (const auto& [kind, slowdown] : kTruth) {
    EXPECT_NEAR(found.of(kind) / slowdown, 1.0, 0.05) << kind;
  }
  EXPECT_NEAR(found.step_seconds / kTrueStep, 1.0, 0.1);
  EXPECT_EQ(found.of("pool | memory"), found.usual);
}

TEST(PredictLearn, TimesOfStepsTellKindsApartBetterThanIterations) {
  std::vector<Observation> seen = Planted(0.0).seen(1, 8);
  const auto worst = [&] {
    const Efficiencies found = learn(pointers(seen), nullptr);
    double largest = 0.0;
    for (const auto& [kind, slowdown] : kTruth) {
      largest = std::max(largest, std::abs(std::log(found.of(kind) / slowdown)));
    }
    return largest;
  };
  const double by_iterations = worst();
  for (Observation& one : seen) {
    for (const auto& [kind, part] : one.demand) {
      one.kind_seconds[kind] = kTruth.at(kind) * part.least_seconds + kTrueStep * part.steps;
    }
  }
  EXPECT_LT(worst(), 0.5 * by_iterations);
  EXPECT_LT(worst(), 0.1);
}

TEST(PredictLearn, WhatIsNotSeenStaysAsItWasKnownBefore) {
  Efficiencies before;
  before.usual = 2.0;
  before.step_seconds = 1e-6;
  before.slowdown["pool | memory"] = 4.0;
  const std::vector<Observation> seen = Planted(0.0).seen(1, 5);
  EXPECT_EQ(learn(pointers(seen), &before).of("pool | memory"), 4.0);
}

TEST(PredictCheck, HeldBackRunsArePredictedWhereKindsExplainEverything) {
  const std::vector<Observation> seen = Planted(0.0).seen(3, 8);
  const std::vector<HeldBack> held = hold_back(seen);
  EXPECT_EQ(held.size(), 3 * seen.size());
  for (const Unknown unknown : {Unknown::batch, Unknown::network, Unknown::device}) {
    EXPECT_LT(median_error(held, unknown), 0.03) << name_of(unknown);
  }
}

TEST(PredictCheck, TheMoreIsUnknownTheLargerIsTheError) {
  const std::vector<Observation> seen = Planted(0.15, 0.4).seen(4, 10);
  const std::vector<HeldBack> held = hold_back(seen);
  const double batch = median_error(held, Unknown::batch);
  const double network = median_error(held, Unknown::network);
  const double device = median_error(held, Unknown::device);
  EXPECT_LT(batch, network);
  EXPECT_LT(network, device);
  EXPECT_NEAR(network, 0.10, 0.05);  // the median of |N(0, 0.15)|
  for (const CheckRow& row : check_rows(held)) EXPECT_GT(*row.inside_share, 0.75);
}

TEST(PredictCheck, OneDeviceCannotBeHeldBack) {
  const std::vector<Observation> seen = Planted(0.1).seen(1, 3);
  for (const HeldBack& one : hold_back(seen)) EXPECT_NE(one.unknown, Unknown::device);
  EXPECT_TRUE(hold_back({}).empty());
}

TEST(PredictCheck, FewErrorsStretchTheRange) {
  EXPECT_DOUBLE_EQ(spread_of({0.1, -0.2}), 0.3);
  std::vector<double> many(100);
  for (std::size_t i = 0; i < many.size(); ++i) many[i] = 0.01 * static_cast<double>(i);
  EXPECT_NEAR(spread_of(many), 0.89, 0.01);
}

TEST(PredictKnowledge, BackendsAreLearntApart) {
  const Knowledge knowledge({}, Planted(0.0).seen(1, 3));
  Observation step = knowledge.seen().front();
  EXPECT_EQ(knowledge.estimate(step)->unknown, Unknown::batch);
  step.network = "another";
  EXPECT_EQ(knowledge.estimate(step)->unknown, Unknown::network);
  step.device = "another";
  EXPECT_EQ(knowledge.estimate(step)->unknown, Unknown::device);
  step.backend = "onednn";
  EXPECT_FALSE(knowledge.estimate(step).has_value());
}

TEST(PredictPlan, AbsentGpusGetPlansOfTheSameWork) {
  const std::unique_ptr<Device> cpu = make_cpu_device();
  for (const char* model : {"resnet18", "mobilenet_v2", "densenet121", "squeezenet1_1",
                            "efficientnet_b0", "convnext_tiny", "shufflenet_v2_x1_0"}) {
    const StepSpec spec = spec_of(model, 2, Precision::fp32);
    const StepWork native = work_of(dry_plan(spec, PlanRequest{}, *cpu));
    const StepWork gpu = work_of(dry_gpu_plan(spec, false));
    EXPECT_EQ(gpu.total.flops, native.total.flops) << model;
    EXPECT_NEAR(static_cast<double>(gpu.moved_bytes) / static_cast<double>(native.moved_bytes), 1.0,
                0.35)
        << model;
  }
}

// The cuda backend computes them as a whole: one kernel, and the updates.
TEST(PredictPlan, SmallNetworksAreOneStep) {
  for (const char* model : {"mlp", "mnist_cnn"}) {
    const StepSpec spec = spec_of(model, 64, Precision::fp32);
    const PlannedWork gpu = planned({spec, false}, Family::gpu);
    EXPECT_LE(gpu.steps.size(), 2U) << model;
    EXPECT_EQ(op_group(gpu.steps.front()), "whole network");
    const std::unique_ptr<Device> cpu = make_cpu_device();
    EXPECT_EQ(work_of(dry_gpu_plan(spec, false)).total.flops,
              work_of(dry_plan(spec, PlanRequest{}, *cpu)).total.flops);
    EXPECT_GT(planned({spec_of(model, 64, Precision::bf16), false}, Family::gpu).steps.size(), 5U);
    EXPECT_GT(planned({spec, true}, Family::gpu).steps.size(), 2U);
  }
}

// Shares of tensor units are carried relative to the geometric mean of both rates: twice the
// units at the same bandwidth promise 1.41 times the speed. What roofs allow is told as it is.
TEST(PredictPlan, TensorUnitsThatAreFasterThanTheirMemoryAreFedLess) {
  const auto demand = [](double flops, Family family) {
    Target target;
    target.name = "one";
    target.family = family;
    target.roofs.compute = {{"tensor fp16", "data sheet", flops}, {"fp32", "data sheet", 1e13}};
    target.roofs.memory = {{"memory", "data sheet", 1e12, 0}};
    const PlannedWork work = planned({spec_of("vgg11", 32, Precision::fp16), false}, Family::gpu);
    return demand_of(work.steps, target).at("conv2d wide | tensor");
  };
  const Part slow = demand(5e13, Family::gpu), fast = demand(1e14, Family::gpu);
  EXPECT_NEAR(slow.roof_seconds / fast.roof_seconds, 2.0, 1e-9);
  EXPECT_NEAR(slow.least_seconds / fast.least_seconds, std::sqrt(2.0), 1e-9);
  const Part cpu = demand(1e14, Family::cpu);
  EXPECT_EQ(cpu.least_seconds, cpu.roof_seconds);
}

TEST(PredictPlan, WinogradIsAKindOfItsOwn) {
  Work work{spec_of("vgg11_bn", 4, Precision::fp32), false};
  const auto kinds = [&] {
    std::set<std::string> groups;
    for (const StepTime& step : planned(work, Family::cpu).steps) groups.insert(op_group(step));
    return groups;
  };
  EXPECT_TRUE(kinds().contains("conv2d winograd"));
  work.disabled_passes = {"winograd"};
  EXPECT_FALSE(kinds().contains("conv2d winograd"));
  EXPECT_TRUE(kinds().contains("conv2d wide"));
}

// The dry plan has the layouts of the cuda backend, whose optimizers take gradients in any.
TEST(PlanLayouts, KeptGradientsLieInStateAsTheyAreRead) {
  StepSpec spec = spec_of("resnet18", 2, Precision::fp32);
  const auto in_plain_state = [](const Plan& plan) {
    std::int64_t gradients = 0, plain = 0;
    for (ValueId id = 0; id < std::ssize(plan.graph->values()); ++id) {
      const Value& value = plan.graph->values()[static_cast<std::size_t>(id)];
      if (value.role != Role::gradient || !value.name.ends_with("t.grad")) continue;
      const FormId form = plan.form_of(id);
      if (form == kNoForm) continue;
      ++gradients;
      plain += plan.form(form).layout == Layout::plain() && plan.in_state(plan.root(form).form);
    }
    EXPECT_EQ(gradients, 41);  // of 20 convolutions, 20 batch norms and the linear layer
    return plain;
  };
  EXPECT_LT(in_plain_state(dry_gpu_plan(spec, false)), 41);
  spec.keep_gradients = true;
  EXPECT_EQ(in_plain_state(dry_gpu_plan(spec, false)), 41);
}

TEST(PredictPlan, NarrowNumbersMoveAboutHalfTheBytesOnTensorUnits) {
  const Work wide{spec_of("resnet50", 8, Precision::fp32), false};
  for (const Precision precision : {Precision::bf16, Precision::fp16}) {
    const Work narrow{spec_of("resnet50", 8, precision), false};
    const PlannedWork a = planned(wide, Family::gpu), b = planned(narrow, Family::gpu);
    double wide_bytes = 0.0, narrow_bytes = 0.0, on_tensor_units = 0.0, flops = 0.0;
    for (const StepTime& step : a.steps) {
      wide_bytes += static_cast<double>(step.bytes_read + step.bytes_written);
      EXPECT_EQ(step.unit.find("tensor"), std::string::npos);
    }
    for (const StepTime& step : b.steps) {
      narrow_bytes += static_cast<double>(step.bytes_read + step.bytes_written);
      flops += static_cast<double>(step.flops);
      if (step.unit.starts_with("tensor")) on_tensor_units += static_cast<double>(step.flops);
    }
    EXPECT_LT(narrow_bytes, 0.62 * wide_bytes);
    EXPECT_GT(on_tensor_units, 0.95 * flops);
    EXPECT_LT(b.memory_bytes, 0.65 * static_cast<double>(a.memory_bytes));
  }
}

// bench/results/gpu_zoo_h200.md: 5,746 MB and 11,194 MB, libraries' workspaces included.
TEST(PredictPlan, MemoryIsThatOfTheRealDevice) {
  const auto megabytes = [](Precision precision) {
    return static_cast<double>(
               planned({spec_of("resnet50", 128, precision), false}, Family::gpu).memory_bytes) /
           1e6;
  };
  EXPECT_NEAR(megabytes(Precision::bf16) / 5746.0, 1.0, 0.1);
  EXPECT_NEAR(megabytes(Precision::tf32) / 11194.0, 1.0, 0.1);
}

TEST(PredictPlan, InferenceIsLessThanTraining) {
  const StepSpec spec = spec_of("resnet18", 16, Precision::fp32);
  for (const Family family : {Family::cpu, Family::gpu}) {
    const PlannedWork training = planned({spec, false}, family);
    const PlannedWork inference = planned({spec, true}, family);
    EXPECT_LT(inference.steps.size(), training.steps.size());
    EXPECT_LT(inference.memory_bytes, training.memory_bytes);
  }
}

TEST(PredictPlan, TheLargestBatchFitsAndTheNextDoesNot) {
  Work work{spec_of("squeezenet1_1", 8, Precision::bf16), false};
  constexpr std::int64_t kRoom = 1'000'000'000;
  work.step.batch = largest_batch_within(work, Family::gpu, kRoom);
  EXPECT_GT(work.step.batch, 8);
  EXPECT_LE(planned(work, Family::gpu).memory_bytes, kRoom);
  ++work.step.batch;
  EXPECT_GT(planned(work, Family::gpu).memory_bytes, kRoom);
}

TEST(PredictTargets, NamesAsPeopleWriteThem) {
  Targets targets(known_hardware(), nullptr);
  EXPECT_EQ(targets.find("T4").size(), 1U);
  EXPECT_EQ(targets.find("A100").size(), 4U);
  EXPECT_EQ(targets.find("rtx 4090").front().name, "GeForce RTX 4090");
  EXPECT_EQ(targets.find("H200").front().family, Family::gpu);
  const Target epyc = targets.find("EPYC 7763").front();
  EXPECT_EQ(epyc.family, Family::cpu);
  EXPECT_NEAR(epyc.roofs.find_compute("fp32")->flops_per_second, 64 * 2.45e9 * 32, 1e9);
  for (const char* name :
       {"T4", "V100", "A100", "RTX 3060", "RTX 4080", "RTX 4090", "RTX 5090", "A6000", "L4", "H100",
        "H200", "B200", "MI300X", "M1", "M2", "M3", "M4", "Xeon Platinum 8480+", "EPYC 9654"}) {
    EXPECT_FALSE(targets.find(name).empty()) << name;
  }
}

TEST(PredictTargets, UnknownNamesGiveTheNearest) {
  Targets targets(known_hardware(), nullptr);
  try {
    (void)targets.find("Tesla T44");
    FAIL();
  } catch (const Error& error) {
    EXPECT_EQ(error.kind(), ErrorKind::bad_input);
    EXPECT_NE(std::string(error.what()).find("did you mean 'Tesla T4'"), std::string::npos)
        << error.what();
  }
}

class PredictShipped : public ::testing::Test {
 protected:
  Question question(const char* on, Precision precision) {
    Question asked;
    asked.work = {spec_of("resnet50", 32, precision), false};
    asked.target = targets_.find(on).front();
    return asked;
  }

  Targets targets_{known_hardware(), nullptr};
  Knowledge knowledge_{shipped_efficiencies(), {}};
  Predictor predictor_{knowledge_};
};

TEST_F(PredictShipped, FasterDevicesAreFasterAndRangesHoldTheMiddle) {
  const Prediction t4 = predictor_.predict(question("T4", Precision::fp16));
  const Prediction h100 = predictor_.predict(question("H100 SXM", Precision::fp16));
  EXPECT_GT(t4.seconds, 3.0 * h100.seconds);
  for (const Prediction* one : {&t4, &h100}) {
    EXPECT_LT(one->range.low, one->seconds);
    EXPECT_GT(one->range.high, one->seconds);
    double sum = 0.0;
    for (const Share& share : one->shares) sum += share.seconds;
    EXPECT_NEAR(sum, one->seconds, 1e-9);
    EXPECT_LT(one->joules->low, one->joules->high);
  }
  // The shipped runs were on an H200: there only the network is new.
  const Prediction h200 = predictor_.predict(question("H200", Precision::fp16));
  EXPECT_EQ(h200.estimate.unknown, Unknown::network);
  EXPECT_LT(h200.range.high / h200.range.low, t4.range.high / t4.range.low);
}

// bench/results/gpu_zoo_h200.md, 7,710 img/s at batch 128.
TEST_F(PredictShipped, TheH200IsWithinItsRange) {
  Question asked = question("H200", Precision::bf16);
  asked.work.step.batch = 128;
  const Prediction made = predictor_.predict(asked);
  EXPECT_GT(128 / made.range.low, 7710.0);
  EXPECT_LT(128 / made.range.high, 7710.0);
}

TEST_F(PredictShipped, RefusesWhatItHasNothingToStandOn) {
  const auto refusal = [&](const Question& asked) {
    try {
      (void)predictor_.predict(asked);
    } catch (const Error& error) {
      EXPECT_EQ(error.kind(), ErrorKind::bad_input);
      return std::string(error.what());
    }
    return std::string();
  };
  EXPECT_NE(refusal(question("T4", Precision::bf16)).find("no rate for tensor bf16"),
            std::string::npos);
  EXPECT_NE(refusal(question("M3", Precision::fp32)).find("no rate for fp32"), std::string::npos);
  Question other = question("T4", Precision::fp32);
  other.backend = "numba-cuda";
  EXPECT_NE(refusal(other).find("nothing is known of numba-cuda"), std::string::npos);
  const Knowledge nothing({}, {});
  Predictor empty(nothing);
  EXPECT_THROW((void)empty.predict(question("T4", Precision::fp32)), Error);
}

TEST(PredictFiles, EfficienciesSurviveTheirFile) {
  const std::vector<Shipped> learnt = learn_all(Planted(0.1).seen(2, 4), "planted");
  ASSERT_EQ(learnt.size(), 1U);
  const std::vector<Shipped> read = parse_efficiencies(efficiencies_toml(learnt), "f.toml");
  ASSERT_EQ(read.size(), 1U);
  EXPECT_EQ(read[0].devices, learnt[0].devices);
  for (const auto& [kind, slowdown] : learnt[0].efficiencies.slowdown) {
    EXPECT_NEAR(read[0].efficiencies.of(kind) / slowdown, 1.0, 1e-3);
  }
  EXPECT_EQ(read[0].spread.size(), 3U);
  for (const char* wrong : {"[[efficiency]]\nfamily = \"tpu\"\n", "[[other]]\n", "= 3",
                            "[[efficiency]]\nfamily = \"cpu\"\nbackend = \"x\"\nsource = \"y\"\n"
                            "usual = 2.0\nslowdown = {a = \"b\"}\n"}) {
    EXPECT_THROW((void)parse_efficiencies(wrong, "f.toml"), Error) << wrong;
  }
}

TEST(PredictFiles, PricesGoByTheLongestName) {
  const Prices prices(
      "currency = \"EUR\"\n[[price]]\nname = \"A100\"\nper_hour = 2.0\n"
      "[[price]]\nname = \"A100 SXM 80 GB\"\nper_hour = 3.0\n",
      "p.toml");
  EXPECT_EQ(prices.currency(), "EUR");
  EXPECT_EQ(prices.per_hour("A100 SXM 80 GB"), 3.0);
  EXPECT_EQ(prices.per_hour("A100 PCIe 40 GB"), 2.0);
  EXPECT_FALSE(prices.per_hour("Tesla T4").has_value());
  for (const char* wrong : {"", "[[price]]\nname = \"x\"\n",
                            "[[price]]\nname = \"x\"\nper_hour = -1\n", "rent = 2\n"}) {
    EXPECT_THROW(Prices(wrong, "p.toml"), Error) << wrong;
  }
}

}  // namespace
}  // namespace ridgeline::predict
