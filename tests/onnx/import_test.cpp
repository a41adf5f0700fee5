// Networks of files are the graphs that a builder of the zoo would make, op by op and name by name.

#include <gtest/gtest.h>

#include <cmath>
#include <functional>

#include "base/error.h"
#include "onnx/network.h"
#include "support/onnx_models.h"
#include "train/step_graph.h"

namespace ridgeline::onnx {
namespace {

using ridgeline::testing::attribute;
using ridgeline::testing::OnnxFolder;
using ridgeline::testing::OnnxMaker;

constexpr std::int64_t kClasses = 5;
const Dims kPadded = {1, 1, 1, 1};

using Build = std::function<ValueId(NetworkBuilder&, ValueId image)>;

std::string graph_of(const ModelConfig& config, std::int64_t batch, bool training,
                     const Build& build, std::vector<Parameter>* parameters = nullptr) {
  Graph graph;
  const ValueId image = graph.add_value(
      "images", {Shape{batch, config.channels, config.height, config.width}, DType::f32},
      Role::input);
  NetworkBuilder builder(graph, training, InitScheme::pytorch, DType::f32);
  (void)build(builder, image);
  if (parameters != nullptr) *parameters = builder.parameters();
  return graph.text();
}

class OnnxImport : public ::testing::Test {
 protected:
  ModelConfig config(OnnxMaker& maker) { return named_config(maker.write(folder_ / "n.onnx")); }

  // The file's network is the same as what `build` adds, in evaluation and in training.
  void expect_same(OnnxMaker& maker, const Build& build) {
    const ModelConfig model = config(maker);
    for (const bool training : {false, true}) {
      for (const std::int64_t batch : {1, 3}) {
        const auto imported = [&](NetworkBuilder& builder, ValueId image) {
          return build_network(builder, image, model);
        };
        EXPECT_EQ(graph_of(model, batch, training, imported),
                  graph_of(model, batch, training, build));
      }
    }
  }

  std::string message(OnnxMaker& maker) {
    try {
      (void)config(maker);
    } catch (const Error& error) {
      EXPECT_EQ(error.kind(), ErrorKind::bad_input);
      return error.what();
    }
    return "nothing is wrong";
  }
  std::vector<Refusal> refusals(OnnxMaker& maker) {
    return survey_file(maker.write(folder_ / "n.onnx")).refusals;
  }

  std::vector<Parameter> parameters(const ModelConfig& model) {
    std::vector<Parameter> made;
    (void)graph_of(
        model, 2, false,
        [&](NetworkBuilder& builder, ValueId image) {
          return build_network(builder, image, model);
        },
        &made);
    return made;
  }

  OnnxFolder folder_;
};

ValueId classify(NetworkBuilder& builder, ValueId value) {
  value = builder.global_average_pool(value, "avgpool");
  return builder.linear(builder.flatten(value, "flatten"), kClasses, "fc");
}

ConvOptions conv(std::int64_t kernel, std::int64_t padding, bool bias) {
  return {.kernel_h = kernel, .kernel_w = kernel, .padding = padding, .bias = bias};
}

TEST_F(OnnxImport, ConvolutionNormAndActivation) {
  OnnxMaker maker({3, 8, 8});
  std::string value =
      maker.conv("image", "conv1", {4, 3, 3, 3}, {attribute("pads", kPadded)}, false);
  value = maker.norm(value, "bn1", 4);
  value = maker.node("Relu", {value}, {}, "/relu/Relu");
  value = maker.node("MaxPool", {value},
                     {attribute("kernel_shape", Dims{2, 2}), attribute("strides", Dims{2, 2})},
                     "/maxpool/MaxPool");
  maker.classify(value, 4);
  expect_same(maker, [](NetworkBuilder& builder, ValueId image) {
    ValueId made = builder.conv2d(image, 4, conv(3, 1, false), "conv1");
    made = builder.relu(builder.batch_norm(made, "bn1"), "relu");
    return classify(builder, builder.max_pool(made, {.kernel = 2, .stride = 2}, "maxpool"));
  });
}

TEST_F(OnnxImport, WeightsAreThoseOfTheFile) {
  OnnxMaker maker({3, 8, 8});
  maker.classify(maker.norm(maker.conv("image", "conv1", {4, 3, 3, 3}), "bn1", 4), 4);
  const ModelConfig model = config(maker);
  EXPECT_EQ(model.name, "n");
  EXPECT_EQ(model.classes, kClasses);
  const std::vector<Parameter> made = parameters(model);
  ASSERT_EQ(made.size(), maker.model().constants.size());
  for (const Array& array : maker.model().constants) {
    const auto found = std::find_if(made.begin(), made.end(), [&](const Parameter& parameter) {
      return parameter.name == array.name;
    });
    ASSERT_NE(found, made.end()) << array.name;
    EXPECT_EQ(initial_values(*found, 1), array.numbers()) << array.name;
    EXPECT_EQ(initial_values(*found, 2), array.numbers()) << array.name;
  }
}

TEST_F(OnnxImport, ASqueezeAndExcitationWithHardSwishInPieces) {
  OnnxMaker maker({3, 8, 8});
  const std::string body = maker.conv("image", "c", {4, 3, 3, 3}, {attribute("pads", kPadded)});
  const auto hard_swish = [&](const std::string& x, const std::string& layer) {
    const std::string six = maker.node(
        "Clip", {maker.node("Add", {x, maker.number(3)}), maker.number(0), maker.number(6)});
    return maker.node("Mul", {x, maker.node("Div", {six, maker.number(6)})}, {}, layer);
  };
  const std::string active = hard_swish(body, "act");
  std::string gate = maker.node("GlobalAveragePool", {active}, {}, "pool");
  gate = maker.node("Relu", {maker.conv(gate, "fc1", {2, 4, 1, 1})}, {}, "relu");
  gate = maker.node("HardSigmoid", {maker.conv(gate, "fc2", {4, 2, 1, 1})},
                    {attribute("alpha", 0.16666667)}, "gate");
  maker.classify(maker.node("Mul", {gate, active}, {}, "scale"), 4);
  expect_same(maker, [](NetworkBuilder& builder, ValueId image) {
    const ValueId made = builder.activation(builder.conv2d(image, 4, conv(3, 1, true), "c"),
                                            {.kind = ActivationKind::hard_swish}, "act");
    ValueId se = builder.global_average_pool(made, "pool");
    se = builder.relu(builder.conv2d(se, 2, conv(1, 0, true), "fc1"), "relu");
    se = builder.activation(builder.conv2d(se, 4, conv(1, 0, true), "fc2"),
                            {.kind = ActivationKind::hard_sigmoid}, "gate");
    return classify(builder, builder.multiply(se, made, "scale"));
  });
}

TEST_F(OnnxImport, AShuffleFromShapesThatAreReckoned) {
  OnnxMaker maker({3, 8, 8});
  const std::string body = maker.conv("image", "c", {6, 3, 1, 1});
  const std::string shape = maker.node("Shape", {body});
  const auto axis = [&](std::int64_t index) {
    return maker.node("Gather", {shape, maker.integers({index})},
                      {attribute("axis", std::int64_t{0})});
  };
  const std::string batch = axis(0), h = axis(2), w = axis(3);
  const std::string cut = maker.node("Concat", {batch, maker.integers({2, 3}), h, w},
                                     {attribute("axis", std::int64_t{0})});
  const std::string joined = maker.node("Concat", {batch, maker.integers({6}), h, w},
                                        {attribute("axis", std::int64_t{0})});
  std::string value = maker.node("Reshape", {body, cut});
  value = maker.node("Transpose", {value}, {attribute("perm", Dims{0, 2, 1, 3, 4})});
  value = maker.node("Reshape", {value, joined}, {}, "shuffle");
  // Two halves as slices: a split.
  const std::string back = maker.node(
      "Slice", {value, maker.integers({3}), maker.integers({6}), maker.integers({1})}, {}, "split");
  const std::string front =
      maker.node("Slice", {value, maker.integers({0}), maker.integers({3}), maker.integers({1})});
  const std::string tail = maker.conv(back, "d", {3, 3, 1, 1});
  maker.classify(maker.node("Concat", {front, tail}, {attribute("axis", std::int64_t{1})}, "cat"),
                 6);
  expect_same(maker, [](NetworkBuilder& builder, ValueId image) {
    const ValueId made = builder.conv2d(image, 6, conv(1, 0, true), "c");
    const std::vector<ValueId> halves =
        builder.split(builder.shuffle(made, 2, "shuffle"), {3, 3}, "split");
    const ValueId second = builder.conv2d(halves[1], 3, conv(1, 0, true), "d");
    return classify(builder, builder.concat({halves[0], second}, "cat"));
  });
}

// As PyTorch's exporter for training writes it: the cube is two products.
TEST_F(OnnxImport, GeluByTanhOfACubeInTwoProducts) {
  OnnxMaker maker({3, 8, 8});
  const std::string x = maker.conv("image", "c", {4, 3, 1, 1});
  const auto mul = [&](const std::string& a, const std::string& b) {
    return maker.node("Mul", {a, b});
  };
  const std::string cube = mul(mul(x, x), x);
  const std::string inner = maker.node("Add", {x, mul(maker.number(0.044715), cube)});
  const std::string tanh =
      maker.node("Tanh", {mul(maker.number(std::sqrt(2.0 / std::acos(-1.0))), inner)});
  const std::string half = mul(maker.number(0.5), x);
  const std::string sum = maker.node("Add", {tanh, maker.number(1)});
  maker.classify(maker.node("Mul", {half, sum}, {}, "gelu"), 4);
  expect_same(maker, [](NetworkBuilder& builder, ValueId image) {
    const ValueId made = builder.conv2d(image, 4, conv(1, 0, true), "c");
    return classify(builder, builder.activation(made, {.kind = ActivationKind::gelu_tanh}, "gelu"));
  });
}

TEST_F(OnnxImport, TheLargestPixelOfEachChannel) {
  const auto network = [](const std::string& op, std::vector<Attribute> attributes) {
    OnnxMaker maker({3, 8, 8});
    const std::string x = maker.conv("image", "c", {4, 3, 1, 1});
    maker.classify(maker.node(op, {x}, std::move(attributes), "largest"), 4);
    return maker;
  };
  OnnxMaker pool = network("GlobalMaxPool", {});
  const ModelConfig same = config(pool);
  OnnxMaker maker = network("ReduceMax", {attribute("axes", Dims{-1, -2})});
  expect_same(maker, [&](NetworkBuilder& builder, ValueId image) {
    return build_network(builder, image, same);
  });
  OnnxMaker channels = network("ReduceMax", {attribute("axes", Dims{1})});
  EXPECT_NE(message(channels).find("over other axes than rows and columns"), std::string::npos);
}

TEST_F(OnnxImport, SquaresThatAreNoPartOfAnActivation) {
  OnnxMaker maker({3, 8, 8});
  const std::string x = maker.conv("image", "c", {4, 3, 1, 1});
  maker.classify(maker.node("Mul", {x, x}, {}, "square"), 4);
  expect_same(maker, [](NetworkBuilder& builder, ValueId image) {
    const ValueId made = builder.conv2d(image, 4, conv(1, 0, true), "c");
    return classify(builder, builder.multiply(made, made, "square"));
  });
}

// ConvNeXt's block: channels last, a layer norm, two linear layers, GELU, a scale.
std::string convnext(OnnxMaker& maker, bool decomposed) {
  std::string value = maker.conv("image", "stem", {4, 3, 3, 3}, {attribute("pads", kPadded)});
  const std::string past = value;
  value = maker.node("Transpose", {value}, {attribute("perm", Dims{0, 2, 3, 1})});
  const std::string scale = maker.weights("norm.weight", {4}),
                    shift = maker.weights("norm.bias", {4});
  if (decomposed) {
    const Attribute last = attribute("axes", Dims{-1});
    const std::string centred =
        maker.node("Sub", {value, maker.node("ReduceMean", {value}, {last}, "norm")});
    const std::string variance =
        maker.node("ReduceMean", {maker.node("Pow", {centred, maker.number(2)})}, {last});
    const std::string deviation =
        maker.node("Sqrt", {maker.node("Add", {variance, maker.number(1e-6)})});
    value = maker.node("Div", {centred, deviation});
    value = maker.node("Add", {maker.node("Mul", {value, scale}), shift});
  } else {
    value = maker.node("LayerNormalization", {value, scale, shift},
                       {attribute("axis", std::int64_t{-1}), attribute("epsilon", 1e-6)});
  }
  const auto linear = [&](const std::string& name, std::int64_t from, std::int64_t to) {
    const std::string turned =
        maker.node("Transpose", {maker.weights(name + ".weight", {to, from})},
                   {attribute("perm", Dims{1, 0})});
    const std::string product = maker.node("MatMul", {value, turned});
    return maker.node("Add", {maker.weights(name + ".bias", {to}), product});
  };
  value = linear("fc1", 4, 8);
  const std::string erf = maker.node("Erf", {maker.node("Div", {value, maker.number(1.4142135)})});
  value = maker.node("Mul", {value, maker.node("Add", {erf, maker.number(1)})});
  value = maker.node("Mul", {value, maker.number(0.5)}, {}, "gelu");
  value = linear("fc2", 8, 4);
  value = maker.node("Transpose", {value}, {attribute("perm", Dims{0, 3, 1, 2})});
  value = maker.node("Mul", {maker.weights("block.layer_scale", {4, 1, 1}), value});
  return maker.node("Add", {value, past}, {}, "add");
}

ValueId convnext(NetworkBuilder& builder, ValueId image) {
  const ValueId past = builder.conv2d(image, 4, conv(3, 1, true), "stem");
  ValueId made = builder.layer_norm(past, "norm", 1e-6);
  made = builder.conv2d(made, 8, conv(1, 0, true), "fc1");
  made = builder.activation(made, {.kind = ActivationKind::gelu}, "gelu");
  made = builder.conv2d(made, 4, conv(1, 0, true), "fc2");
  made = builder.layer_scale(made, 1.0, "block.layer_scale");
  return classify(builder, builder.add(made, past, "add"));
}

TEST_F(OnnxImport, LayersOfConvNeXtWithTheChannelsLast) {
  for (const bool decomposed : {false, true}) {
    OnnxMaker maker({3, 8, 8});
    maker.classify(convnext(maker, decomposed), 4);
    expect_same(maker,
                [](NetworkBuilder& builder, ValueId image) { return convnext(builder, image); });
    const std::vector<Parameter> made = parameters(config(maker));
    const auto found = std::find_if(made.begin(), made.end(), [](const Parameter& parameter) {
      return parameter.name == "fc1.weight";
    });
    ASSERT_NE(found, made.end());
    EXPECT_EQ(found->file_shape, (Shape{8, 4}));
  }
}

TEST_F(OnnxImport, AGroupNormAsPyTorchWritesIt) {
  OnnxMaker maker({3, 8, 8});
  const std::string body = maker.conv("image", "c", {6, 3, 1, 1});
  std::string value = maker.node("Reshape", {body, maker.integers({0, 2, -1})});
  value = maker.node("InstanceNormalization",
                     {value, maker.numbers("one", {2}, {1, 1}), maker.numbers("zero", {2}, {0, 0})},
                     {attribute("epsilon", 1e-5)});
  value = maker.node("Reshape", {value, maker.node("Shape", {body})});
  value = maker.node("Mul", {value, maker.weights("gn.weight", {6, 1, 1})});
  maker.classify(maker.node("Add", {value, maker.weights("gn.bias", {6, 1, 1})}), 6);
  expect_same(maker, [](NetworkBuilder& builder, ValueId image) {
    return classify(builder,
                    builder.group_norm(builder.conv2d(image, 6, conv(1, 0, true), "c"), 2, "gn"));
  });
}

TEST_F(OnnxImport, PaddingGoesIntoTheConvolutionWhereItCan) {
  OnnxMaker maker({3, 8, 8});
  const std::string padded =
      maker.node("Pad", {"image", maker.integers({0, 0, 0, 1, 0, 0, 1, 0})}, {}, "pad");
  const std::string value = maker.conv(padded, "c", {4, 3, 2, 2});
  // Zeros are no padding of a maximum.
  const std::string again =
      maker.node("Pad", {value, maker.integers({0, 0, 1, 1, 0, 0, 1, 1})}, {}, "pad2");
  maker.classify(maker.node("MaxPool", {again}, {attribute("kernel_shape", Dims{2, 2})}, "pool"),
                 4);
  expect_same(maker, [](NetworkBuilder& builder, ValueId image) {
    ConvOptions options;
    options.window = Conv2dAttributes{.kernel_h = 2, .kernel_w = 2, .pad_left = 1, .pad_bottom = 1};
    const ValueId made = builder.conv2d(image, 4, options, "c");
    return classify(builder, builder.max_pool(builder.pad(made, 1, 1, 1, 1, "pad2"),
                                              {.kernel = 2, .stride = 1}, "pool"));
  });
}

TEST_F(OnnxImport, DropoutAndStochasticDepthTrain) {
  OnnxMaker maker({3, 8, 8});
  const std::string body = maker.conv("image", "c", {3, 3, 1, 1});
  const std::string batch = maker.node("Gather", {maker.node("Shape", {body}), maker.integers({0})},
                                       {attribute("axis", std::int64_t{0})});
  const std::string rows = maker.node("Concat", {batch, maker.integers({1, 1, 1})},
                                      {attribute("axis", std::int64_t{0})});
  std::string mask = maker.node("RandomUniformLike", {maker.node("ConstantOfShape", {rows})});
  mask = maker.node("Cast", {maker.node("Less", {mask, maker.number(0.75)})},
                    {attribute("to", std::int64_t{1})});
  mask = maker.node("Div", {mask, maker.number(0.75)});
  std::string value = maker.node("Mul", {body, mask}, {}, "depth");
  value = maker.node("Add", {value, "image"}, {}, "add");
  value = maker.node("Dropout", {value, maker.number(0.4)}, {}, "drop");
  maker.classify(value, 3);
  expect_same(maker, [](NetworkBuilder& builder, ValueId image) {
    ValueId made = builder.conv2d(image, 3, conv(1, 0, true), "c");
    made = builder.add(builder.stochastic_depth(made, 0.25, "depth"), image, "add");
    return classify(builder, builder.dropout(made, 0.4, "drop"));
  });
  ModelConfig model = config(maker);
  drop_nothing(model);
  const std::string text = graph_of(model, 2, true, [&](NetworkBuilder& builder, ValueId image) {
    return build_network(builder, image, model);
  });
  EXPECT_EQ(text.find("dropout"), std::string::npos);
}

TEST_F(OnnxImport, ATensorThatServesSeveralLayersIsAParameterOfEach) {
  OnnxMaker maker({3, 8, 8});
  std::string value = maker.conv("image", "c", {4, 3, 1, 1});
  value = maker.norm(value, "bn1", 4);
  std::vector<std::string> inputs = maker.model().nodes.back().inputs;
  inputs[0] = value;
  value = maker.node("BatchNormalization", inputs, {}, "/layer/bn2/BatchNormalization");
  maker.classify(value, 4);
  const std::vector<Parameter> made = parameters(config(maker));
  const auto named = [&](const std::string& name) {
    return std::count_if(made.begin(), made.end(),
                         [&](const Parameter& parameter) { return parameter.name == name; });
  };
  EXPECT_EQ(named("bn1.running_var"), 1);
  EXPECT_EQ(named("layer.bn2.running_var"), 1);
}

TEST_F(OnnxImport, NamesWithoutReadableParametersComeFromTheNodes) {
  OnnxMaker maker({3, 8, 8});
  const std::string value = maker.node(
      "Conv",
      {"image", maker.weights("onnx::Conv_7", {4, 3, 1, 1}), maker.weights("onnx::Conv_8", {4})},
      {}, "/features/features.0/features.0.1/conv/Conv");
  maker.classify(value, 4);
  EXPECT_EQ(parameters(config(maker))[0].name, "features.0.1.conv.weight");
}

TEST_F(OnnxImport, AnotherNumberOfClassesGetsANewLastLayer) {
  OnnxMaker maker({3, 8, 8});
  maker.classify(maker.conv("image", "c", {4, 3, 1, 1}), 4);
  ModelConfig model = config(maker);
  model.classes = 7;
  for (const Parameter& parameter : parameters(model)) {
    const bool head = parameter.name.starts_with("fc.");
    EXPECT_EQ(parameter.init.kind == Init::Kind::given, !head) << parameter.name;
    if (head) {
      EXPECT_EQ(parameter.shape[0], 7);
    }
  }
}

TEST_F(OnnxImport, AFixedBatchAndAFixedReshapeServeEveryBatch) {
  OnnxMaker maker({3, 8, 8});
  maker.model().inputs[0].dims[0] = 4;
  const std::string pooled =
      maker.node("GlobalAveragePool", {maker.conv("image", "c", {4, 3, 1, 1})}, {}, "avgpool");
  const std::string flat = maker.node("Reshape", {pooled, maker.integers({4, 4})}, {}, "flatten");
  maker.output(maker.linear(flat, "fc", 4, kClasses));
  expect_same(maker, [](NetworkBuilder& builder, ValueId image) {
    return classify(builder, builder.conv2d(image, 4, conv(1, 0, true), "c"));
  });
}

TEST_F(OnnxImport, OtherImageSizesWorkWhereTheGraphAllowsThem) {
  OnnxMaker free({3, 8, 8});
  free.classify(free.conv("image", "c", {4, 3, 3, 3}), 4);
  ModelConfig model = config(free);
  model.height = model.width = 20;
  EXPECT_EQ(parameters(model).size(), 4U);

  OnnxMaker fixed({3, 8, 8});
  const std::string value = fixed.conv("image", "c", {4, 3, 3, 3});
  const std::string flat = fixed.node("Flatten", {value});
  fixed.output(fixed.linear(flat, "fc", 144, kClasses));
  fixed.write(folder_ / "fixed.onnx");
  model = named_config(folder_ / "fixed.onnx");
  model.height = model.width = 20;
  try {
    (void)parameters(model);
    FAIL() << "144 features are those of 8x8 images";
  } catch (const Error& error) {
    const std::string text = error.what();
    EXPECT_NE(text.find("its weights are for 144 features, and it gets 1296"), std::string::npos);
    EXPECT_NE(text.find("exported for images of 3x8x8"), std::string::npos);
  }
}

TEST_F(OnnxImport, ImagesWithTheChannelsLastAsTensorFlowHasThem) {
  OnnxMaker maker({8, 8, 3});
  const std::string turned =
      maker.node("Transpose", {"image"}, {attribute("perm", Dims{0, 3, 1, 2})});
  maker.classify(maker.conv(turned, "c", {4, 3, 1, 1}), 4);
  EXPECT_EQ(config(maker).channels, 3);
  expect_same(maker, [](NetworkBuilder& builder, ValueId image) {
    return classify(builder, builder.conv2d(image, 4, conv(1, 0, true), "c"));
  });
}

TEST_F(OnnxImport, WhatPreparesTheImageIsNotTrained) {
  OnnxMaker maker({3, 8, 8});
  std::string value = maker.node(
      "Sub", {"image", maker.numbers("mean", {1, 3, 1, 1}, {0.4, 0.5, 0.6})}, {}, "minus");
  value =
      maker.node("Div", {value, maker.numbers("std", {1, 3, 1, 1}, {0.2, 0.25, 0.5})}, {}, "by");
  value = maker.node("Mul", {value, maker.number(2)}, {}, "twice");
  maker.classify(maker.conv(value, "c", {4, 3, 1, 1}), 4);
  const std::vector<Parameter> made = parameters(config(maker));
  const auto values = [&](const std::string& name) {
    for (const Parameter& parameter : made) {
      if (parameter.name != name) continue;
      EXPECT_EQ(parameter.role, Role::statistics);
      return initial_values(parameter, 1);
    }
    return std::vector<double>();
  };
  ASSERT_EQ(values("by.scale").size(), 3U);
  EXPECT_NEAR(values("minus.shift")[2], -0.6, 1e-6);
  EXPECT_NEAR(values("by.scale")[0], 5.0, 1e-5);
  EXPECT_EQ(values("twice.scale"), std::vector<double>(3, 2.0));
}

TEST_F(OnnxImport, AnAuxiliaryHeadIsAnotherOutputWithItsOwnLayer) {
  OnnxMaker maker({3, 8, 8});
  const std::string body = maker.conv("image", "c", {4, 3, 1, 1});
  maker.classify(body, 4);
  const std::string flat = maker.node("Flatten", {maker.node("GlobalAveragePool", {body})});
  maker.output(maker.linear(flat, "aux", 4, kClasses));
  // What follows from the logits is no classifier of its own.
  maker.output(maker.node("Softmax", {maker.model().outputs[0].name}));
  ModelConfig model = config(maker);
  model.options["auxiliary"] = "0.4";
  Graph graph;
  const ValueId image = graph.add_value("images", {Shape{2, 3, 8, 8}, DType::f32}, Role::input);
  NetworkBuilder builder(graph, true, InitScheme::pytorch, DType::f32);
  (void)build_network(builder, image, model);
  ASSERT_EQ(builder.auxiliary_heads().size(), 1U);
  EXPECT_EQ(builder.auxiliary_heads()[0].loss_weight, 0.4);
}

TEST_F(OnnxImport, TheSoftmaxAtTheEndBelongsToTheLoss) {
  OnnxMaker maker({3, 8, 8});
  maker.classify(maker.conv("image", "c", {4, 3, 1, 1}), 4);
  const std::string logits = maker.model().outputs[0].name;
  maker.model().outputs.clear();
  maker.output(maker.node("Softmax", {logits}));
  expect_same(maker, [](NetworkBuilder& builder, ValueId image) {
    return classify(builder, builder.conv2d(image, 4, conv(1, 0, true), "c"));
  });
}

TEST_F(OnnxImport, EveryNodeThatIsNotSupportedIsTold) {
  OnnxMaker maker({3, 8, 8});
  std::string value = maker.conv("image", "c", {4, 3, 1, 1});
  value = maker.node("Einsum", {value}, {}, "first");
  value = maker.node("Relu", {value}, {}, "fine");
  value = maker.node("NonZero", {value}, {}, "second");
  maker.classify(value, 4);
  const std::vector<Refusal> told = refusals(maker);
  ASSERT_EQ(told.size(), 2U);
  EXPECT_EQ(told[0].node, "first");
  EXPECT_EQ(told[1].op, "NonZero");
  EXPECT_EQ(told[1].opset, 17);
  const std::string text = message(maker);
  EXPECT_NE(text.find("node 'first' (Einsum, opset 17)"), std::string::npos) << text;
  EXPECT_NE(text.find("Conv, "), std::string::npos) << "what is supported is not told";
  EXPECT_NE(text.find("and 1 more"), std::string::npos);
  EXPECT_EQ(text.find('\n'), std::string::npos);
}

TEST_F(OnnxImport, NetworksOfOtherKindsAreRefusedInOneLine) {
  const auto refused = [&](OnnxMaker& maker, const std::string& part) {
    const std::string text = message(maker);
    EXPECT_NE(text.find(part), std::string::npos) << text;
    EXPECT_EQ(text.find('\n'), std::string::npos) << text;
  };
  {
    OnnxMaker maker({3, 8});
    maker.classify(maker.node("Relu", {"image"}), 3);
    refused(maker, "is no image classifier: its input 'image' has 3 axes");
  }
  {
    OnnxMaker maker({3, 8, 8});
    maker.model().inputs.push_back(maker.model().inputs[0]);
    maker.model().inputs[1].name = "other";
    maker.classify(maker.conv("image", "c", {4, 3, 1, 1}), 4);
    refused(maker, "it takes 2 inputs");
  }
  {
    OnnxMaker maker({3, 8, 8});
    maker.output(maker.conv("image", "c", {4, 3, 1, 1}));
    refused(maker, "no image classifier, which gives a number for each class");
  }
  {
    OnnxMaker maker({3, 8, 8});
    maker.model().inputs[0].type = ElementType::uint8;
    maker.classify(maker.conv("image", "c", {4, 3, 1, 1}), 4);
    refused(maker, "takes images of type uint8");
  }
  {
    OnnxMaker maker({3, 8, 8}, 9);
    maker.classify(maker.conv("image", "c", {4, 3, 1, 1}), 4);
    refused(maker, "has opset 9; 11 to 21 are supported");
  }
  {
    OnnxMaker maker({3, 8, 8});
    std::string value = maker.node("QuantizeLinear", {"image", maker.number(0.1)}, {}, "q");
    value = maker.node("DequantizeLinear", {value, maker.number(0.1)});
    maker.classify(maker.conv(value, "c", {4, 3, 1, 1}), 4);
    refused(maker, "quantised networks are not supported");
    EXPECT_EQ(refusals(maker)[1].reason, refusals(maker)[0].reason);
    EXPECT_EQ(message(maker).find("Supported are"), std::string::npos);
  }
  {
    OnnxMaker maker({3, 8, 8});
    maker.classify(maker.conv(maker.node("Loop", {"image"}), "c", {4, 3, 1, 1}), 4);
    refused(maker, "loops and branches are not supported");
  }
  {
    OnnxMaker maker({3, 8, 8});
    std::string value = maker.node("FusedConv", {"image"});
    maker.model().nodes.back().domain = "com.microsoft";
    maker.classify(value, 3);
    refused(maker, "ops of domain com.microsoft");
  }
}

TEST_F(OnnxImport, GraphsThatHoldNoWaterAreRefused) {
  const auto refused = [&](OnnxMaker& maker, const std::string& part) {
    const std::string text = message(maker);
    EXPECT_NE(text.find(part), std::string::npos) << text;
  };
  {
    OnnxMaker maker({3, 8, 8});
    const std::string value = maker.node("Add", {"image", "later"});
    maker.model().nodes.push_back(maker.model().nodes.back());
    maker.model().nodes.back().inputs = {value};
    maker.model().nodes.back().type = "Relu";
    maker.model().nodes.back().outputs = {"later"};
    maker.classify(value, 3);
    refused(maker, "the file is incomplete or has a cycle");
  }
  {
    OnnxMaker maker({3, 8, 8});
    maker.output("nothing");
    refused(maker, "output 'nothing' is written by no node");
  }
  {
    OnnxMaker maker({3, 8, 8});
    std::string value = maker.conv("image", "c", {4, 3, 1, 1});
    for (int i = 0; i < 80; ++i) {
      value = maker.node("Concat", {value, value}, {attribute("axis", std::int64_t{1})});
    }
    maker.classify(value, 4);
    refused(maker, "makes a value of 2x");
  }
  {
    OnnxMaker maker({3, 8, 8});
    const std::string value = maker.conv("image", "c", {4, 3, 1, 1},
                                         {attribute("pads", Dims{std::int64_t{1} << 60, 0, 0, 0})});
    maker.classify(value, 4);
    refused(maker, "padding 1152921504606846976");
  }
  {
    OnnxMaker maker({3, 8, 8});
    maker.classify(maker.conv("image", "c", {4, 5, 1, 1}), 4);
    refused(maker, "its weights are for 5 channels, and it gets 3");
  }
  {
    OnnxMaker maker({3, 8, 8});
    std::string value = "image";
    for (int i = 0; i < 20000; ++i) value = maker.node("Exp", {value});
    maker.classify(maker.conv(value, "c", {4, 3, 1, 1}), 4);
    refused(maker, "ops on elements in a row");
  }
}

TEST_F(OnnxImport, AValueHasOneOrigin) {
  const auto written_by = [&](const std::string& value, const std::string& part) {
    OnnxMaker maker({3, 8, 8});
    maker.classify(maker.conv("image", "c", {4, 3, 1, 1}), 4);
    (void)maker.node("Relu", {"image"}, {}, "second");
    OpNode& node = maker.model().nodes.back();
    node.outputs = {value.empty() ? maker.model().nodes[0].outputs[0] : value};
    const std::string text = message(maker);
    EXPECT_NE(text.find(part), std::string::npos) << text;
    EXPECT_NE(text.find("node"), std::string::npos) << text;
  };
  written_by("", "and by node 'second' (Relu)");
  written_by("image", "which is an input of the network");
  written_by("c.weight", "which is a tensor of the file");
  OnnxMaker maker({3, 8, 8});
  maker.classify(maker.nodes("Split", {"image"}, 2)[0], 3);
  maker.model().nodes[0].outputs[1] = maker.model().nodes[0].outputs[0];
  EXPECT_NE(message(maker).find("is written twice"), std::string::npos) << message(maker);
}

TEST_F(OnnxImport, NamesDoNotSteerTheTerminal) {
  OnnxMaker maker({3, 8, 8});
  const std::string name = "a\n\x1b[2J\xc2\x9b" + std::string(5000, 'b');
  maker.classify(maker.node("Einsum", {"image"}, {}, name), 3);
  for (const std::string& text : {message(maker), refusals(maker)[0].node}) {
    EXPECT_NE(text.find("a??[2J?b"), std::string::npos) << text;
    EXPECT_LT(text.size(), 2000U);
  }
  maker.model().inputs[0].dims.pop_back();
  maker.model().inputs[0].name = name;
  EXPECT_NE(message(maker).find("'a??[2J?b"), std::string::npos) << message(maker);
}

TEST_F(OnnxImport, FilesOfOneNameAreToldApartByTheirContents) {
  OnnxMaker a({3, 8, 8}), b({3, 8, 8});
  a.classify(a.conv("image", "c", {4, 3, 1, 1}), 4);
  b.classify(b.conv("image", "d", {4, 3, 1, 1}), 4);
  std::filesystem::create_directories(folder_ / "other");
  const ModelConfig one = named_config(a.write(folder_ / "n.onnx"));
  const ModelConfig two = named_config(b.write(folder_ / "other/n.onnx"));
  EXPECT_EQ(one.name, two.name);
  EXPECT_NE(short_hash(*one.source), short_hash(*two.source));
  EXPECT_NE(key_of_model(folder_ / "n.onnx"), key_of_model(folder_ / "other/n.onnx"));
  EXPECT_EQ(key_of_model("resnet18"), "resnet18");
}

}  // namespace
}  // namespace ridgeline::onnx
