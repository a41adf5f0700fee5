// Steps on many ranks: exchanges by hand-counted times, links by name, whole predictions.

#include "predict/ranks.h"

#include <gtest/gtest.h>

#include <cmath>

#include "base/error.h"
#include "lab/options.h"
#include "predict/shipped.h"

namespace ridgeline::predict {
namespace {

constexpr double kGiga = 1e9, kMicro = 1e-6;

Link link_of(double gb_per_s, double latency_us) {
  return {.name = "a link",
          .bytes_per_second = gb_per_s * kGiga,
          .latency_seconds = latency_us * kMicro,
          .measured = true,
          .source = "planted"};
}

Network flat(double gb_per_s, double latency_us) {
  return {link_of(gb_per_s, latency_us), std::nullopt, 1};
}

TEST(PredictLinks, AllReducesAreRingsOrTrees) {
  EXPECT_EQ(all_reduce_seconds(1e9, 1, 1e9, 1e-6), 0.0);
  // Two ranks send half of it each, twice.
  EXPECT_DOUBLE_EQ(all_reduce_seconds(1e9, 2, 1e9, 1e-6), 2.0 * (1e-6 + 0.5));
  // Large messages go round the ring, small ones up and down the tree.
  EXPECT_DOUBLE_EQ(all_reduce_seconds(1e9, 64, 1e9, 1e-6), 2.0 * 63.0 * (1e-6 + 1.0 / 64.0));
  EXPECT_DOUBLE_EQ(all_reduce_seconds(8.0, 64, 1e9, 1e-6), 2.0 * (6.0 * 1e-6 + 8e-9));
}

TEST(PredictLinks, MachinesOfSeveralRanksExchangeWithinFirst) {
  const Network network(link_of(10.0, 2.0), link_of(100.0, 1.0), 8);
  EXPECT_EQ(network.nodes(8), 1);
  EXPECT_EQ(network.nodes(9), 2);
  EXPECT_EQ(network.nodes(64), 8);
  EXPECT_TRUE(network.within_one_node(8));
  EXPECT_DOUBLE_EQ(network.seconds(1e8, 8, 1), all_reduce_seconds(1e8, 8, 1e11, 1e-6));
  EXPECT_DOUBLE_EQ(network.seconds(1e8, 64, 1),
                   2.0 * 7.0 * (1e-6 + 1e8 / 8.0 / 1e11) + all_reduce_seconds(1e8, 8, 1e10, 2e-6));
  EXPECT_GT(network.seconds(1e8, 64, 0), network.seconds(1e8, 64, 1));
  EXPECT_EQ(network.seconds(1e8, 1, 1), 0.0);
}

TEST(PredictLinks, MeasuredOnesAreReadBetweenTheSizes) {
  std::vector<Ceiling> ceilings;
  const auto timed = [&](const char* device, std::int64_t bytes, double seconds) {
    Ceiling one;
    one.device = device;
    one.kind = "latency";
    one.subject = "all-reduce";
    one.unit = "s";
    one.value = seconds;
    one.low = 0.9 * seconds;
    one.high = 1.2 * seconds;
    one.capacity_bytes = bytes;
    ceilings.push_back(one);
  };
  timed("ranks:2", 1000, 1e-5);
  timed("ranks:2", 1'000'000, 1e-3);
  timed("cpu", 64, 1e-6);
  const Network network(ceilings);
  EXPECT_DOUBLE_EQ(network.seconds(10, 2, 1), 1e-5);
  EXPECT_DOUBLE_EQ(network.seconds(1'000'000, 2, 1), 1e-3);
  EXPECT_NEAR(network.seconds(500'500, 2, 1), (1e-5 + 1e-3) / 2.0, 1e-9);
  EXPECT_DOUBLE_EQ(network.seconds(3'000'000, 2, 1), 3e-3);
  EXPECT_DOUBLE_EQ(network.seconds(1'000'000, 2, 0), 1.2e-3);
  EXPECT_DOUBLE_EQ(network.seconds(1'000'000, 2, 2), 0.9e-3);
  EXPECT_GT(network.seconds(1'000'000, 8, 1), 1e-3);
  EXPECT_THROW(Network(std::vector<Ceiling>()), Error);
}

TEST(PredictLinks, NamesAsPeopleWriteThem) {
  const KnownHardware known = known_hardware();
  EXPECT_EQ(link_named(known, "nvlink 4").name, "NVLink 4");
  EXPECT_EQ(link_named(known, "NDR").name, "InfiniBand NDR");
  EXPECT_EQ(link_named(known, "100gbe").bytes_per_second, 12.5e9);
  for (const char* wrong : {"InfiniBand HDX", "InfiniBand", ""}) {
    try {
      (void)link_named(known, wrong);
      FAIL() << wrong;
    } catch (const Error& error) {
      EXPECT_EQ(error.kind(), ErrorKind::bad_input);
      EXPECT_NE(std::string(error.what()).find("known: NVLink 4"), std::string::npos);
    }
  }
  KnownHardware read;
  for (const char* wrong : {"[[link]]\nname = \"x\"\nsource = \"y\"\nlatency_us = 1\n",
                            "[[link]]\nname = \"x\"\nsource = \"y\"\ngb_per_s = 1\n",
                            "[[link]]\nname = \"x\"\nsource = \"y\"\ngb_per_s = -1\n"
                            "latency_us = 1\n"}) {
    EXPECT_THROW(parse_hardware(wrong, "n.toml", read), Error) << wrong;
  }
}

// Three steps of 10 ms; what the first one made travels while the second computes.
std::vector<RankStep> three_steps(double bytes) {
  return {{.seconds = 0.01},
          {.bytes = bytes, .beside = true, .needed_by = 3},
          {.seconds = 0.01},
          {.seconds = 0.01}};
}

TEST(PredictRanks, ExchangesHideBehindWhatDoesNotNeedThem) {
  const Network network = flat(1.0, 0.0);  // two ranks: a byte takes a nanosecond
  const RankedStep hidden = simulate(three_steps(8e6), network, 2, 1, 1.0, true);
  EXPECT_NEAR(hidden.seconds, 0.03, 1e-9);
  EXPECT_NEAR(hidden.exchange, 0.008, 1e-9);
  EXPECT_NEAR(hidden.exposed, 0.0, 1e-9);
  const RankedStep late = simulate(three_steps(25e6), network, 2, 1, 1.0, true);
  EXPECT_NEAR(late.seconds, 0.045, 1e-9);
  EXPECT_NEAR(late.exposed, 0.015, 1e-9);
  const RankedStep in_turns = simulate(three_steps(8e6), network, 2, 1, 1.0, false);
  EXPECT_NEAR(in_turns.seconds, 0.038, 1e-9);
  // Slower computing hides more.
  EXPECT_NEAR(simulate(three_steps(25e6), network, 2, 1, 2.0, true).exposed, 0.005, 1e-9);
}

TEST(PredictRanks, ExchangesWaitForEachOther) {
  const std::vector<RankStep> steps = {{.seconds = 0.01},
                                       {.bytes = 10e6, .beside = true, .needed_by = 3},
                                       {.bytes = 10e6, .beside = true, .needed_by = 4},
                                       {.seconds = 0.01},
                                       {.seconds = 0.01}};
  EXPECT_NEAR(simulate(steps, flat(1.0, 0.0), 2, 1, 1.0, true).seconds, 0.04, 1e-9);
}

class PredictScaling : public ::testing::Test {
 protected:
  static Question question(const char* model, std::int64_t batch) {
    Question asked;
    asked.work.step.model = default_config(model);
    asked.work.step.batch = batch;
    asked.work.step.precision = Precision::bf16;
    asked.work.step.optimizer = optimizer_attributes({});
    asked.target = Targets(known_hardware(), nullptr).find("H100 SXM").front();
    asked.largest_batch = false;
    return asked;
  }

  Knowledge knowledge_{shipped_efficiencies(), {}};
  Predictor predictor_{knowledge_};
};

TEST_F(PredictScaling, AllGradientsTravelAndNothingElse) {
  const Question vgg = question("alexnet", 8);
  const DividedWork divided = predict::divided(vgg.work, Family::gpu, 4);
  double bytes = 0.0;
  for (const double each : divided.exchanged_bytes) bytes += each;
  EXPECT_EQ(bytes, 4.0 * 61'100'840);  // parameters
  for (std::size_t i = 0; i < divided.steps.size(); ++i) {
    if (divided.exchanged_bytes[i] > 0.0) {
      EXPECT_GT(divided.needed_by[i], static_cast<int>(i));
    }
  }
}

TEST_F(PredictScaling, LinksDecideTheEfficiency) {
  const Question asked = question("resnet50", 64);
  const RankPrediction fast = predict_ranks(predictor_, asked, flat(1e6, 0.0), 8, Scaling::weak);
  EXPECT_NEAR(fast.efficiency, 1.0, 1e-3);
  const RankPrediction slow = predict_ranks(predictor_, asked, flat(1.0, 10.0), 8, Scaling::weak);
  EXPECT_LT(slow.efficiency, 0.5);
  EXPECT_GT(slow.exposed_seconds, 0.0);
  for (const RankPrediction* one : {&fast, &slow}) {
    EXPECT_LE(one->efficiency_range.low, one->efficiency);
    EXPECT_GE(one->efficiency_range.high, one->efficiency);
    EXPECT_LE(one->range.low, one->seconds);
    EXPECT_GE(one->range.high, one->seconds);
    EXPECT_LE(one->efficiency_range.high, 1.0 + 1e-9);
  }
  EXPECT_EQ(predict_ranks(predictor_, asked, flat(1.0, 10.0), 1, Scaling::weak).efficiency, 1.0);
}

TEST_F(PredictScaling, StrongScalingDividesTheBatch) {
  const Question asked = question("resnet50", 64);
  const Network network = flat(50.0, 2.0);
  const RankPrediction strong = predict_ranks(predictor_, asked, network, 8, Scaling::strong);
  const RankPrediction weak = predict_ranks(predictor_, asked, network, 8, Scaling::weak);
  EXPECT_EQ(strong.rank_batch, 8);
  EXPECT_EQ(weak.rank_batch, 64);
  EXPECT_LT(strong.efficiency, weak.efficiency);
  EXPECT_LT(strong.seconds, weak.seconds);
  EXPECT_THROW((void)predict_ranks(predictor_, asked, network, 48, Scaling::strong), Error);
  Question inference = asked;
  inference.work.inference = true;
  EXPECT_THROW((void)predict_ranks(predictor_, inference, network, 8, Scaling::weak), Error);
}

}  // namespace
}  // namespace ridgeline::predict
