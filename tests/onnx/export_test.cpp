// A network that is exported and imported again is the same network with the same weights.

#include "onnx/export.h"

#include <gtest/gtest.h>

#include <algorithm>
#include <set>

#include "base/error.h"
#include "onnx/network.h"
#include "support/onnx_models.h"
#include "support/perturbed_weights.h"
#include "support/worst_difference.h"
#include "train/export_onnx.h"
#include "train/inference_runner.h"

namespace ridgeline {
namespace {

using testing::OnnxFolder;
using testing::OnnxMaker;
using testing::worst_difference;

// A network that no file and no zoo has.
class ToySource final : public NetworkSource {
 public:
  using Build = ValueId (*)(NetworkBuilder&, ValueId, const ModelConfig&);
  explicit ToySource(Build made) : build_(made) {}
  ValueId build(NetworkBuilder& builder, ValueId image, const ModelConfig& config) const override {
    return build_(builder, image, config);
  }
  [[nodiscard]] const std::string& path() const override { return name_; }
  [[nodiscard]] const std::string& hash() const override { return name_; }
  [[nodiscard]] std::span<const ModelOption> options() const override { return {}; }
  [[nodiscard]] std::vector<std::string> class_names() const override { return {}; }

 private:
  Build build_;
  std::string name_ = "toy";
};

ModelConfig toy(ToySource::Build build, std::int64_t size) {
  ModelConfig config;
  config.name = "toy";
  config.source = std::make_shared<const ToySource>(build);
  config.channels = 3;
  config.height = config.width = size;
  config.classes = 5;
  return config;
}

struct Built {
  std::string text;
  std::vector<Parameter> parameters;
};

Built build(const ModelConfig& config, bool training) {
  Graph graph;
  const ValueId image = graph.add_value(
      "images", {Shape{3, config.channels, config.height, config.width}, DType::f32}, Role::input);
  NetworkBuilder builder(graph, training, config.init, DType::f32);
  (void)build_network(builder, image, config);
  return {graph.text(), builder.parameters()};
}

StateDict perturbed(const ModelConfig& config) {
  StateDict dict;
  for (const Parameter& parameter : build(config, false).parameters) {
    const std::vector<double> values = testing::perturbed_weights(parameter);
    const std::vector<float> floats(values.begin(), values.end());
    std::vector<std::byte>& bytes = dict.owned.emplace_back(floats.size() * sizeof(float));
    std::memcpy(bytes.data(), floats.data(), bytes.size());
    WeightTensor tensor{parameter.name, WeightType::f32, {}, bytes};
    for (int axis = 0; axis < parameter.file_shape.rank(); ++axis) {
      tensor.dims.push_back(parameter.file_shape[axis]);
    }
    dict.tensors.push_back(std::move(tensor));
  }
  return dict;
}

// Logits of the reference in double for one random batch.
std::vector<double> logits(const ModelConfig& config, const StateDict* weights) {
  StepSpec spec;
  spec.model = config;
  spec.batch = 2;
  spec.dtype = DType::f64;
  const std::unique_ptr<Device> device = make_device("cpu");
  InferenceRunner runner(*device, {.backend = "reference", .disabled_passes = {}, .cache = {}},
                         spec);
  runner.prepare(1);
  if (weights != nullptr) {
    runner.write_weights([&](const Parameter& parameter) {
      const auto found =
          std::find_if(weights->tensors.begin(), weights->tensors.end(),
                       [&](const WeightTensor& tensor) { return tensor.name == parameter.name; });
      const std::vector<float> floats = found->to_float();
      return std::vector<double>(floats.begin(), floats.end());
    });
  }
  runner.write_batch(testing::random_pixels(spec));
  runner.run();
  return runner.logits();
}

// Exports, imports, and compares graphs and weights.
void expect_round_trip(const ModelConfig& config, const OnnxFolder& folder) {
  SCOPED_TRACE(config.name);
  const StateDict weights = perturbed(config);
  const std::filesystem::path path = folder / "n.onnx";
  write_onnx({.model = config, .weights = &weights}, path);
  std::set<std::string> names;
  for (const onnx::OpNode& node : onnx::read_model(path).nodes) {
    EXPECT_TRUE(names.insert(node.name).second) << "two nodes named " << node.name;
  }
  ModelConfig again = onnx::named_config(path);
  EXPECT_EQ(again.classes, config.classes);
  EXPECT_EQ(again.height, config.height);
  // The weight of an auxiliary head's loss is not in the file; graphs do not have it either.
  for (const bool training : {false, true}) {
    EXPECT_EQ(build(again, training).text, build(config, training).text);
  }
  const std::vector<Parameter> parameters = build(again, false).parameters;
  ASSERT_EQ(parameters.size(), weights.tensors.size());
  for (std::size_t i = 0; i < parameters.size(); ++i) {
    EXPECT_EQ(parameters[i].name, weights.tensors[i].name);
    const std::vector<float> floats = weights.tensors[i].to_float();
    EXPECT_EQ(initial_values(parameters[i], 1), std::vector<double>(floats.begin(), floats.end()))
        << parameters[i].name;
  }
}

TEST(SlowOnnxExport, NetworksOfTheZooComeBackAsTheyWere) {
  const OnnxFolder folder;
  for (const char* name : {"mlp", "mnist_cnn", "resnet18", "mobilenet_v2", "mobilenet_v3_small",
                           "squeezenet1_1", "shufflenet_v2_x0_5", "efficientnet_b0",
                           "regnet_y_400mf", "densenet121", "googlenet", "mnasnet0_5"}) {
    ModelConfig config = default_config(name);
    if (config.height > 64) config.height = config.width = 64;
    config.classes = 7;
    expect_round_trip(config, folder);
  }
}

ValueId every_op(NetworkBuilder& builder, ValueId image, const ModelConfig& config) {
  using Kind = ActivationKind;
  ConvOptions wide;
  wide.window = Conv2dAttributes{.kernel_h = 3,
                                 .kernel_w = 2,
                                 .stride_h = 1,
                                 .stride_w = 1,
                                 .pad_top = 1,
                                 .pad_left = 0,
                                 .pad_bottom = 1,
                                 .pad_right = 1,
                                 .dilation_h = 1,
                                 .dilation_w = 1,
                                 .groups = 1};
  ValueId value = builder.conv2d(image, 8, wide, "stem");
  int number = 0;
  for (const Kind kind :
       {Kind::relu, Kind::relu6, Kind::leaky_relu, Kind::sigmoid, Kind::tanh, Kind::silu,
        Kind::hard_sigmoid, Kind::hard_swish, Kind::gelu, Kind::gelu_tanh}) {
    const std::string layer = "block" + std::to_string(number++);
    value = builder.conv2d(value, 8, {.groups = 2}, layer + ".conv");
    value = builder.activation(value, {.kind = kind, .slope = 0.2}, layer + ".act");
  }
  value = builder.layer_norm(value, "norm1", 1e-6);
  value = builder.group_norm(value, 4, "norm2");
  value = builder.layer_scale(value, 0.1, "block.layer_scale");
  value = builder.shuffle(value, 4, "shuffle");
  const std::vector<ValueId> parts = builder.split(value, {3, 5}, "split");
  const ValueId first = builder.slice(parts[1], 1, 3, "slice");
  value = builder.add(parts[0], first, "add");
  value = builder.concat({value, parts[1]}, "cat");
  value = builder.pad(value, 1, 2, 0, -1, "pad");
  value = builder.resize(value, 7, 13, "resize");
  value = builder.stochastic_depth(value, 0.2, "depth");
  value = builder.dropout(value, 0.3, "drop");
  value = builder.average_pool(value, {.kernel = 2, .stride = 1}, "average");
  value = builder.adaptive_average_pool(value, 4, 5, "adaptive");
  value = builder.flatten(value, "flatten");
  value = builder.linear(value, 6, "fc1", {}, false);
  return builder.linear(builder.relu(value, "relu"), config.classes, "fc2");
}

TEST(OnnxExport, EveryOpComesBackAsItWas) {
  const OnnxFolder folder;
  expect_round_trip(toy(every_op, 12), folder);
}

TEST(SlowOnnxExport, FoldedNormsGiveTheSameOutputs) {
  const OnnxFolder folder;
  for (const char* name : {"resnet18", "densenet121", "googlenet"}) {
    ModelConfig config = default_config(name);
    config.height = config.width = 64;
    config.classes = 7;
    const StateDict weights = perturbed(config);
    write_onnx({.model = config, .weights = &weights, .fold_norms = true}, folder / "n.onnx");
    const ModelConfig again = onnx::named_config(folder / "n.onnx");
    const std::string text = build(again, true).text;
    EXPECT_EQ(text.find("dropout"), std::string::npos);
    if (std::string(name) == "resnet18") {
      EXPECT_EQ(text.find("bn_"), std::string::npos);
    }
    const std::vector<double> expected = logits(config, &weights), got = logits(again, nullptr);
    double largest = 0.0;
    for (const double value : expected) largest = std::max(largest, std::abs(value));
    EXPECT_LE(worst_difference(got, expected), 1e-5 * largest) << name;
  }
}

TEST(OnnxExport, ClassNamesComeBack) {
  const OnnxFolder folder;
  ModelConfig config = default_config("mnist_cnn");
  config.classes = 3;
  const StateDict weights = perturbed(config);
  const std::vector<std::string> names = {"cat", "\"dog\"", "émeu"};
  write_onnx({.model = config, .weights = &weights, .class_names = names}, folder / "n.onnx");
  EXPECT_EQ(onnx::named_config(folder / "n.onnx").source->class_names(), names);
}

TEST(OnnxExport, AFileOfAnotherExporterIsWrittenAgain) {
  const OnnxFolder folder;
  OnnxMaker maker({3, 8, 8});
  std::string value =
      maker.node("Sub", {"image", maker.numbers("mean", {3, 1, 1}, {0.4, 0.5, 0.6})}, {}, "minus");
  value = maker.node("Mul", {value, maker.number(4)}, {}, "times");
  value = maker.conv(value, "c", {4, 3, 3, 3});
  maker.classify(maker.node("Relu", {maker.norm(value, "bn", 4)}, {}, "relu"), 4);
  const ModelConfig config = onnx::named_config(maker.write(folder / "first.onnx"));
  const Built first = build(config, true);
  const StateDict weights = state_dict(first.parameters, config.name, nullptr, 1, 0);
  write_onnx({.model = config, .weights = &weights}, folder / "second.onnx");
  const ModelConfig again = onnx::named_config(folder / "second.onnx");
  EXPECT_EQ(build(again, true).text, first.text);
  EXPECT_EQ(logits(again, nullptr), logits(config, nullptr));
}

}  // namespace
}  // namespace ridgeline
