// bf16 on the CPU: every unit that the processor has, and none.

#include <gtest/gtest.h>

#include <cmath>
#include <cstdlib>

#include "backends/registry.h"
#include "base/bf16_unit.h"
#include "data/synthetic.h"
#include "devices/device.h"
#include "support/case_names.h"
#include "support/program.h"
#include "support/toy_networks.h"
#include "train/trainer.h"

namespace ridgeline {
namespace {

class Bf16 : public ::testing::TestWithParam<Bf16Unit> {
 protected:
  void SetUp() override {
    limit_bf16_unit(GetParam());
    if (bf16_unit() != GetParam()) GTEST_SKIP() << "no " << name_of(GetParam()) << " here";
  }
  void TearDown() override { limit_bf16_unit(Bf16Unit::amx); }

  static ToyNetwork narrow(std::size_t index) {
    ToyNetwork network = toy_networks()[index];
    network.spec.precision = Precision::bf16;
    return network;
  }

  std::unique_ptr<Device> device_ = make_cpu_device();
};

TEST_P(Bf16, TheFirstLossIsThatOfTheReference) {
  for (std::size_t i = 0; i < toy_networks().size(); ++i) {
    const double expected = train_losses(toy_networks()[i], reference_backend, *device_, 1)[0];
    const double loss = train_losses(narrow(i), native_backend, *device_, 1)[0];
    EXPECT_NEAR(loss, expected, 3e-2 * expected) << toy_networks()[i].name;
  }
}

TEST_P(Bf16, NetworksLearnTheirBatch) {
  for (std::size_t i = 0; i < toy_networks().size(); ++i) {
    const std::vector<double> losses = train_losses(narrow(i), native_backend, *device_, 8);
    EXPECT_LT(losses.back(), losses.front()) << toy_networks()[i].name;
  }
}

TEST_P(Bf16, TwoRunsAreBitwiseEqual) {
  for (std::size_t i = 0; i < toy_networks().size(); ++i) {
    EXPECT_EQ(train_losses(narrow(i), native_backend, *device_, 5),
              train_losses(narrow(i), native_backend, *device_, 5))
        << toy_networks()[i].name;
  }
}

TEST_P(Bf16, AnEpochEndsWhereFp32Does) {
  const Split data = make_synthetic({.channels = 1,
                                     .height = 16,
                                     .width = 16,
                                     .classes = 4,
                                     .count = 512,
                                     .test_count = 256,
                                     .seed = 3});
  const auto accuracy = [&](Precision precision) {
    TrainConfig config;
    config.step.model.name = "mnist_cnn";
    config.step.model.height = config.step.model.width = 16;
    config.step.model.classes = 4;
    config.step.batch = 32;
    config.step.precision = precision;
    config.step.optimizer = SgdAttributes{.momentum = 0.9};
    config.plan.backend = "native";
    config.learning_rate = 0.02;
    config.epochs = 4;
    TrainObserver silent;
    Trainer trainer(config, data, make_cpu_device());
    return trainer.train(silent).epochs.back().test_accuracy.value_or(0.0);
  };
  EXPECT_NEAR(accuracy(Precision::bf16), accuracy(Precision::fp32), 0.02);
}

INSTANTIATE_TEST_SUITE_P(Units, Bf16, ::testing::Values(Bf16Unit::avx512, Bf16Unit::amx),
                         [](const auto& instance) {
                           return testing::test_name(std::string(name_of(instance.param)));
                         });

TEST(Bf16Refusal, SaysWhatTheProcessorLacks) {
  limit_bf16_unit(Bf16Unit::none);
  const std::string refusal = make_cpu_device()->refuse(Precision::bf16);
  const std::string fp32 = make_cpu_device()->refuse(Precision::fp32);
  limit_bf16_unit(Bf16Unit::amx);
  EXPECT_NE(refusal.find("AVX512-BF16"), std::string::npos) << refusal;
  EXPECT_EQ(fp32, "");
  EXPECT_NE(make_cpu_device()->refuse(Precision::fp16), "");
}

// The program on the units that the environment leaves it.
class Bf16Program : public testing::ProgramTest {
 protected:
  [[nodiscard]] testing::Outcome run_with(const char* units) const {
    setenv("RIDGELINE_CPU_UNITS", units, 1);
    testing::Outcome outcome = run("describe mlp --precision bf16 --backend native --json");
    unsetenv("RIDGELINE_CPU_UNITS");
    return outcome;
  }
};

TEST_F(Bf16Program, RefusesWhatTheEnvironmentForbids) {
  const testing::Outcome none = run_with("none");
  EXPECT_EQ(none.code, 2);
  EXPECT_NE(none.err.find("AVX512-BF16"), std::string::npos) << none.err;
  const testing::Outcome wrong = run_with("amx");
  EXPECT_EQ(wrong.code, 2);
  EXPECT_NE(wrong.err.find("RIDGELINE_CPU_UNITS"), std::string::npos) << wrong.err;
}

TEST_F(Bf16Program, RunsOnEachUnitAlone) {
  if (bf16_unit() == Bf16Unit::none) GTEST_SKIP() << refuse_bf16();
  EXPECT_EQ(run_with("avx512_bf16").code, 0);
  EXPECT_EQ(run_with("avx512_bf16,amx_bf16").code, 0);
}

}  // namespace
}  // namespace ridgeline
