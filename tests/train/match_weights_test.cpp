#include "train/match_weights.h"

#include <gtest/gtest.h>

#include "support/weight_files.h"
#include "train/step_runner.h"

namespace ridgeline {
namespace {

using testing::expect_contains;
using testing::refusal;

// A file in memory: tensors of ones, one after the other.
class WeightsInMemory {
 public:
  void add(const std::string& name, const std::vector<std::int64_t>& dims, float value = 1.0F,
           WeightType type = WeightType::f32) {
    const auto count = static_cast<std::size_t>(*checked_elements(dims));
    std::vector<std::byte>& bytes = file.owned.emplace_back(count * size_of(type));
    if (type == WeightType::f32) {
      std::fill_n(reinterpret_cast<float*>(bytes.data()), count, value);
    }
    file.tensors.push_back({name, type, dims, bytes});
  }
  WeightFile file{
      .path = "memory", .format = {}, .tensors = {}, .metadata = {}, .mapping = {}, .owned = {}};
};

std::vector<Parameter> small_network() {
  return {{"features.conv.weight", {8, 3, 3, 3}, Role::parameter, {}},
          {"features.norm.weight", {8}, Role::parameter, {}},
          {"features.norm.bias", {8}, Role::parameter, {}},
          {"features.norm.running_mean", {8}, Role::statistics, {}},
          {"features.norm.running_var", {8}, Role::statistics, {}},
          {"classifier.weight", {10, 8}, Role::parameter, {}},
          {"classifier.bias", {10}, Role::parameter, {}}};
}

WeightsInMemory weights_for(const std::vector<Parameter>& parameters,
                            const std::string& prefix = "") {
  WeightsInMemory weights;
  for (const Parameter& parameter : parameters) {
    std::vector<std::int64_t> dims;
    for (int axis = 0; axis < parameter.shape.rank(); ++axis) dims.push_back(parameter.shape[axis]);
    weights.add(prefix + parameter.name, dims);
  }
  return weights;
}

TEST(MatchWeights, OldNamesAreUnderstood) {
  EXPECT_EQ(modern_name("module.conv1.weight"), "conv1.weight");
  EXPECT_EQ(modern_name("features.denseblock1.denselayer12.norm.1.weight"),
            "features.denseblock1.denselayer12.norm1.weight");
  EXPECT_EQ(modern_name("module.features.denseblock1.denselayer2.conv.2.weight"),
            "features.denseblock1.denselayer2.conv2.weight");
  EXPECT_EQ(modern_name("features.denseblock1.denselayer2.norm2.running_mean"),
            "features.denseblock1.denselayer2.norm2.running_mean");
  EXPECT_EQ(modern_name("features.conv.1.weight"), "features.conv.1.weight");
  EXPECT_EQ(modern_name("_orig_mod.conv1.weight"), "conv1.weight");
  EXPECT_EQ(modern_name("module._orig_mod.conv1.weight"), "conv1.weight");
  EXPECT_EQ(modern_name("_orig_mod.module.conv1.weight"), "conv1.weight");
}

TEST(MatchWeights, EveryParameterFindsItsTensor) {
  const std::vector<Parameter> network = small_network();
  WeightsInMemory weights = weights_for(network, "module.");
  weights.add("module.features.norm.num_batches_tracked", {}, 0, WeightType::i64);
  const WeightMatch match = match_weights(network, weights.file, {.model = "small"});
  EXPECT_EQ(match.pairs.size(), network.size());
  EXPECT_TRUE(match.kept.empty());
}

TEST(MatchWeights, EverythingWrongIsListedAtOnce) {
  const std::vector<Parameter> network = small_network();
  WeightsInMemory weights;
  weights.add("features.conv.weight", {8, 3, 5, 5});
  weights.add("features.norm.weight", {8}, 0, WeightType::i32);
  weights.add("features.norm.bias", {8});
  weights.add("features.norm.running_mean", {8});
  weights.add("classifier.weight", {12, 8});
  weights.add("classifier.bias", {12});
  weights.add("aux.weight", {4, 4});
  const std::string message =
      refusal([&] { (void)match_weights(network, weights.file, {.model = "small"}); });
  expect_contains(message,
                  {"do not fit small", "nothing was loaded", "features.conv.weight", "8x3x5x5",
                   "8x3x3x3", "missing", "features.norm.running_var", "no weights", "unexpected",
                   "aux.weight", "4x4", "classifier.weight", "12x8", "10x8", "classifier.bias"});
}

TEST(MatchWeights, ANewHeadKeepsItsInitialValuesWhenTheClassesDiffer) {
  const std::vector<Parameter> network = small_network();
  EXPECT_EQ(head_layer(network), "classifier");
  std::vector<Parameter> other = network;
  other[5].shape = {1000, 8};
  other[6].shape = {1000};
  const WeightsInMemory weights = weights_for(other);
  const WeightMatch match =
      match_weights(network, weights.file, {.model = "small", .new_head = true});
  EXPECT_EQ(match.pairs.size(), 5U);
  ASSERT_EQ(match.kept.size(), 2U);
  EXPECT_EQ(match.kept[0], "classifier.weight (1000x8 in the file, 10x8 here)");
  // The same classes: the head is loaded too.
  const WeightsInMemory same = weights_for(network);
  EXPECT_TRUE(match_weights(network, same.file, {.model = "small", .new_head = true}).kept.empty());
  // Another width is another network.
  other[5].shape = {1000, 9};
  const WeightsInMemory wide = weights_for(other);
  expect_contains(refusal([&] {
                    (void)match_weights(network, wide.file, {.model = "small", .new_head = true});
                  }),
                  {"classifier.weight", "1000x9"});
}

TEST(MatchWeights, WeightsOfAnotherModelGetAHint) {
  StepSpec spec;
  spec.model.name = "mlp";
  const WeightsInMemory weights = weights_for(evaluation_graph(spec).parameters);
  spec.model.name = "mnist_cnn";
  const std::vector<Parameter> network = evaluation_graph(spec).parameters;
  expect_contains(
      refusal([&] { (void)match_weights(network, weights.file, {.model = "mnist_cnn"}); }),
      {"These weights belong to mlp"});
}

TEST(MatchWeights, TwoNamesForOneParameterAreRefused) {
  const std::vector<Parameter> network = small_network();
  WeightsInMemory weights = weights_for(network);
  weights.add("module.classifier.bias", {10});
  expect_contains(refusal([&] { (void)match_weights(network, weights.file, {.model = "small"}); }),
                  {"module.classifier.bias", "two names"});
}

TEST(MatchWeights, ARunnerTakesWeightsAndGivesThemBack) {
  const std::unique_ptr<Device> device = make_cpu_device();
  StepSpec spec;
  spec.model.name = "mlp";
  spec.batch = 2;
  spec.optimizer = AdamAttributes{};
  StepRunner runner(*device, {.backend = "reference", .disabled_passes = {}, .cache = {}});
  (void)runner.add_training(spec);
  runner.prepare(1);
  WeightsInMemory weights = weights_for(runner.parameters());
  runner.load(match_weights(runner.parameters(), weights.file, {.model = "mlp"}));
  const auto read = runner.read_weights();
  ASSERT_EQ(read.size(), runner.parameters().size());
  for (const StepRunner::NamedTensor& tensor : read) {
    std::vector<float> values(tensor.bytes.size() / sizeof(float));
    std::memcpy(values.data(), tensor.bytes.data(), tensor.bytes.size());
    for (const float value : values) ASSERT_EQ(value, 1.0F) << tensor.name;
  }
  // Adam keeps two values for each parameter.
  EXPECT_EQ(runner.read_state().size(), 3 * read.size());
  EXPECT_EQ(runner.unchanged_parameters().size(), read.size());
}

TEST(MatchWeights, CountersOfAveragedWeightsAreIgnored) {
  const std::vector<Parameter> network = small_network();
  WeightsInMemory weights = weights_for(network, "module.");
  weights.add("n_averaged", {}, 0, WeightType::i64);
  EXPECT_EQ(match_weights(network, weights.file, {.model = "small"}).pairs.size(), network.size());
}

TEST(MatchWeights, ALongListOfTroublesEndsAfterTen) {
  WeightsInMemory weights;
  for (int i = 0; i < 25; ++i) weights.add(fmt::format("other{:02}.weight", i), {4});
  const std::string message =
      refusal([&] { (void)match_weights(small_network(), weights.file, {.model = "small"}); });
  expect_contains(message, {"features.conv.weight", "and 22 more"});
  EXPECT_EQ(message.find("other24"), std::string::npos);
  EXPECT_LE(std::count(message.begin(), message.end(), '\n'), 15);
}

TEST(MatchWeights, WeightsThatAreNotFiniteAreNamed) {
  WeightsInMemory weights = weights_for(small_network());
  EXPECT_NO_THROW(check_finite(weights.file));
  weights.add("features.bad.weight", {3}, std::numeric_limits<float>::quiet_NaN());
  expect_contains(refusal([&] { check_finite(weights.file); }),
                  {"'features.bad.weight'", "3 of 3 values", "not finite"});
}

}  // namespace
}  // namespace ridgeline
