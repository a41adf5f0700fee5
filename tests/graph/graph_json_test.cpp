// Networks as documents: what a reader needs to compute the same is there, by name.

#include "graph/graph_json.h"

#include <gtest/gtest.h>

#include <algorithm>
#include <functional>
#include <nlohmann/json.hpp>
#include <set>

#include "base/error.h"
#include "inspect/network_document.h"

namespace ridgeline {
namespace {

using Json = nlohmann::ordered_json;

class GraphJson : public ::testing::Test {
 protected:
  [[nodiscard]] Json document(ValueId logits) const {
    return graph_json(graph_, {.parameters = net_.parameters(), .image = image_, .logits = logits});
  }
  // The attributes of the node that a layer ends with.
  [[nodiscard]] Json attributes(ValueId value) const {
    return document(value).at("nodes").back().at("attributes");
  }

  Graph graph_;
  NetworkBuilder net_{graph_, true, InitScheme::pytorch, DType::f32, {"frozen.*"}};
  ValueId image_ = graph_.add_value("images", {Shape{2, 6, 9, 7}, DType::f32}, Role::input);
};

TEST_F(GraphJson, NamesItsVersionItsEndsAndItsParameters) {
  const ValueId conv = net_.conv2d(image_, 4, {.file_shape = {4, 6}}, "frozen");
  const ValueId logits = net_.linear(net_.flatten(conv, "flatten"), 5, "fc");
  const Json made = document(logits);
  EXPECT_EQ(made.at("ridgeline_graph"), kGraphVersion);
  EXPECT_EQ(made.at("image"), "images");
  EXPECT_EQ(made.at("logits"), graph_.value(logits).name);
  EXPECT_EQ(made.at("auxiliary"), Json::array());
  ASSERT_EQ(made.at("parameters").size(), 4u);
  const Json& weights = made.at("parameters")[0];
  EXPECT_EQ(weights.at("name"), "frozen.weight");
  EXPECT_EQ(weights.at("file_shape"), (std::vector<int>{4, 6}));
  EXPECT_EQ(weights.at("frozen"), true);
  EXPECT_EQ(weights.at("init").at("kind"), "uniform");
  EXPECT_EQ(made.at("parameters")[2].at("frozen"), false);
  const Json& image = made.at("values")[0];
  EXPECT_EQ(
      image,
      (Json{{"name", "images"}, {"shape", {2, 6, 9, 7}}, {"dtype", "f32"}, {"role", "input"}}));
  const Json& node = made.at("nodes")[0];
  EXPECT_EQ(node.at("op"), "conv2d");
  EXPECT_EQ(node.at("layer"), "frozen");
  EXPECT_EQ(node.at("inputs"), (std::vector<std::string>{"images", "frozen.weight"}));
}

TEST_F(GraphJson, HasEveryAttributeOfAnOp) {
  const Conv2dAttributes window{.kernel_h = 3,
                                .kernel_w = 2,
                                .stride_h = 2,
                                .stride_w = 1,
                                .pad_top = 1,
                                .pad_left = 0,
                                .pad_bottom = 2,
                                .pad_right = 3,
                                .dilation_h = 1,
                                .dilation_w = 2,
                                .groups = 2};
  EXPECT_EQ(attributes(net_.conv2d(image_, 4, {.bias = false, .window = window}, "conv")),
            (Json{{"kernel_h", 3},
                  {"kernel_w", 2},
                  {"stride_h", 2},
                  {"stride_w", 1},
                  {"pad_top", 1},
                  {"pad_left", 0},
                  {"pad_bottom", 2},
                  {"pad_right", 3},
                  {"dilation_h", 1},
                  {"dilation_w", 2},
                  {"groups", 2}}));
  const Json max = attributes(net_.max_pool(image_, {.kernel = 3, .ceil_mode = true}, "max"));
  EXPECT_EQ(max.at("kind"), "max");
  EXPECT_EQ(max.at("kernel_h"), 3);
  EXPECT_EQ(max.at("ceil_mode"), true);
  EXPECT_FALSE(max.contains("count_include_pad"));
  EXPECT_EQ(attributes(net_.average_pool(image_, {}, "average")).at("count_include_pad"), true);
  EXPECT_EQ(attributes(net_.adaptive_average_pool(image_, 4, 3, "adaptive")),
            (Json{{"kind", "adaptive_average"}, {"dst_h", 4}, {"dst_w", 3}}));
  EXPECT_EQ(attributes(net_.activation(image_, {.kind = ActivationKind::leaky_relu, .slope = 0.2},
                                       "leaky")),
            (Json{{"kind", "leaky_relu"}, {"slope", 0.2}}));
  EXPECT_EQ(attributes(net_.activation(image_, {.kind = ActivationKind::gelu_tanh}, "gelu")),
            (Json{{"kind", "gelu_tanh"}}));
  EXPECT_EQ(attributes(net_.batch_norm(image_, "bn", {.epsilon = 1e-3, .momentum = 0.01})),
            (Json{{"epsilon", 1e-3}, {"momentum", 0.01}}));
  EXPECT_EQ(attributes(net_.group_norm(image_, 3, "gn")), (Json{{"groups", 3}, {"epsilon", 1e-5}}));
  EXPECT_EQ(attributes(net_.layer_scale(image_, 1e-6, "scale")), Json::object());
  EXPECT_EQ(attributes(net_.slice(image_, 2, 3, "slice")), (Json{{"begin", 2}, {"channels", 3}}));
  EXPECT_EQ(attributes(net_.split(image_, {1, 5}, "split")[0]), (Json{{"channels", {1, 5}}}));
  EXPECT_EQ(attributes(net_.shuffle(image_, 2, "shuffle")), (Json{{"groups", 2}}));
  const PadAttributes pad{.top = 1, .left = 2, .bottom = 3, .right = 4, .channels_behind = 5};
  EXPECT_EQ(attributes(net_.pad(image_, pad, "pad")), (Json{{"top", 1},
                                                            {"left", 2},
                                                            {"bottom", 3},
                                                            {"right", 4},
                                                            {"channels_before", 0},
                                                            {"channels_behind", 5}}));
  EXPECT_EQ(attributes(net_.resize(image_, 18, 14, "resize")),
            (Json{{"dst_h", 18}, {"dst_w", 14}}));
  EXPECT_EQ(attributes(net_.stochastic_depth(image_, 0.25, "depth")),
            (Json{{"probability", 0.25}, {"per_sample", true}}));
  EXPECT_EQ(attributes(net_.flatten(image_, "flatten")), (Json{{"shape", {2, 378}}}));
}

TEST_F(GraphJson, RefusesWhatIsNoPartOfANetwork) {
  const ValueId pixels = graph_.add_value("pixels", {Shape{2, 6, 9, 7}, DType::u8}, Role::input);
  const NormalizeAttributes normalize{.mean = std::vector<double>(6, 0.0),
                                      .deviation = std::vector<double>(6, 1.0)};
  const ValueId dst =
      graph_.add_node(OpKind::normalize, normalize, {pixels}, "input", Phase::input)[0];
  EXPECT_THROW((void)document(dst), Error);
}

// Every name that is read was written or is a value of its own, also through new versions.
TEST(SlowNetworkDocument, OfEveryModelIsClosed) {
  for (const ModelInfo& model : all_models()) {
    const Json made = network_document(default_config(model.name), {.batch = 2});
    std::set<std::string> known;
    for (const Json& value : made.at("values")) known.insert(value.at("name"));
    for (const Json& node : made.at("nodes")) {
      for (const char* side : {"inputs", "outputs"}) {
        for (const Json& name : node.at(side)) EXPECT_TRUE(known.contains(name)) << name;
      }
    }
    EXPECT_TRUE(known.contains(made.at("logits"))) << model.name;
    EXPECT_EQ(made.at("model"), model.name);
  }
}

TEST(NetworkDocument, HasTheSettingsAndTheForm) {
  ModelConfig config = default_config("mobilenet_v2");
  config.options = {{"dropout", "0.5"}};
  const auto ops = [&](const NetworkForm& form) {
    std::multiset<std::string> names;
    const Json made = network_document(config, form);
    EXPECT_EQ(made.at("settings"), (Json{{"dropout", "0.5"}}));
    for (const Json& node : made.at("nodes")) names.insert(node.at("op"));
    return names;
  };
  EXPECT_EQ(ops({.batch = 2}).count("dropout"), 1u);
  EXPECT_EQ(ops({.batch = 2, .training = false}).count("dropout"), 0u);
  EXPECT_EQ(ops({.batch = 2, .training = false}).count("bn_statistics"), 0u);
  EXPECT_EQ(ops({.batch = 2, .freeze = {"*"}}).count("bn_statistics"), 0u);
  config.options = {{"width", "2"}};
  EXPECT_THROW((void)network_document(config, {.batch = 2}), Error);
}

}  // namespace
}  // namespace ridgeline
