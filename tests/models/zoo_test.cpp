// The zoo against facts of torchvision 0.14: parameters, names and shapes of the state dict,
// forward multiply-accumulates at several image sizes. tests/parity/zoo_names_test.py asks
// torchvision itself where it is installed.

#include <gtest/gtest.h>

#include <array>

#include "backends/registry.h"
#include "base/error.h"
#include "base/hash.h"
#include "plan/plan.h"
#include "train/step_runner.h"

namespace ridgeline {
namespace {

struct Fact {
  const char* model;
  std::int64_t parameters;
  std::size_t state_entries;                 // num_batches_tracked included
  std::uint64_t state_hash;                  // of "name shape" lines, num_batches_tracked left out
  std::array<std::int64_t, 4> forward_macs;  // for kSizes
};

struct Size {
  std::int64_t height, width;
};
constexpr std::array<Size, 4> kSizes = {{{224, 224}, {64, 64}, {96, 160}, {320, 320}}};

constexpr std::array<Fact, 12> kFacts = {{
    {"resnet18", 11689512, 122, 0xbe5dff77f4e2bb9c, {1814073344, 148557824, 555683840, 3701657600}},
    {"resnet34",
     21797672,
     218,
     0x9c849186ea6e9548,
     {3663761408, 299552768, 1121914880, 7476531200}},
    {"resnet50",
     25557032,
     320,
     0xa46d5a32ec3ed6f3,
     {4089184256, 335691776, 1253212160, 8343142400}},
    {"resnet101",
     44549160,
     626,
     0x38c5c8f0bae22a0e,
     {7801405440, 638730240, 2389606400, 15919104000}},
    {"resnet152",
     60192808,
     932,
     0xed62078f3f02812c,
     {11513626624, 941768704, 3526000640, 23495065600}},
    {"mobilenet_v2", 3504872, 314, 0x06f4560663b113af, {300774272, 25728512, 92961920, 612492800}},
    {"squeezenet1_0",
     1248424,
     52,
     0xf1e7669bd13d7c8b,
     {818924576, 53970976, 233164832, 1712597024}},
    {"squeezenet1_1", 1235496, 52, 0xbf26890ee1b7b048, {349151936, 21584576, 97274560, 735419072}},
    {"densenet121",
     7978856,
     727,
     0xc8a4a9d53d5fe5cf,
     {2834161664, 232300544, 868311040, 5782937600}},
    {"densenet161",
     28681000,
     967,
     0x85c4a9a63f0702a4,
     {7727907072, 632877312, 2367217920, 15768940800}},
    {"densenet169",
     14149480,
     1015,
     0x9e8912007aacd3c9,
     {3359843328, 275801088, 1029678080, 6855091200}},
    {"densenet201",
     20013928,
     1207,
     0xba87262e7c216aa5,
     {4291365888, 352078848, 1315015680, 8755891200}},
}};

StepSpec spec_of(const std::string& model, Size size, std::int64_t batch = 1) {
  StepSpec spec;
  spec.model = default_config(model);
  spec.model.height = size.height;
  spec.model.width = size.width;
  spec.batch = batch;
  return spec;
}

std::int64_t macs_of(const Graph& graph) {
  std::int64_t macs = 0;
  for (std::size_t id = 0; id < graph.nodes().size(); ++id) {
    macs += graph.cost(static_cast<NodeId>(id)).macs;
  }
  return macs;
}

class Zoo : public testing::TestWithParam<Fact> {};

TEST_P(Zoo, HasTorchvisionsParameters) {
  const StepGraph step = evaluation_graph(spec_of(GetParam().model, kSizes[0]));
  EXPECT_EQ(count_parameters(step.parameters), GetParam().parameters);
}

TEST_P(Zoo, HasTorchvisionsStateDict) {
  const StepGraph step = evaluation_graph(spec_of(GetParam().model, kSizes[0]));
  std::string lines;
  std::size_t entries = 0;
  for (const Parameter& parameter : step.parameters) {
    if (!lines.empty()) lines += '\n';
    lines += parameter.name + ' ' + parameter.shape.text();
    ++entries;
    // PyTorch keeps one counter more for each batch norm.
    if (parameter.name.ends_with(".running_mean")) ++entries;
  }
  EXPECT_EQ(entries, GetParam().state_entries);
  EXPECT_EQ(hash_of(lines), GetParam().state_hash) << lines;
}

TEST_P(Zoo, HasTorchvisionsForwardMacsAtEverySize) {
  for (std::size_t i = 0; i < kSizes.size(); ++i) {
    const Graph graph = evaluation_graph(spec_of(GetParam().model, kSizes[i])).graph;
    EXPECT_EQ(macs_of(graph), GetParam().forward_macs[i])
        << kSizes[i].height << 'x' << kSizes[i].width;
  }
}

TEST_P(Zoo, ClassesChangeTheLastLayerAlone) {
  StepSpec spec = spec_of(GetParam().model, {64, 64}, 3);
  const std::vector<Parameter> usual = evaluation_graph(spec).parameters;
  spec.model.classes = 37;
  const StepGraph step = evaluation_graph(spec);
  EXPECT_EQ(step.graph.value(step.logits).spec.shape, (Shape{3, 37}));
  ASSERT_EQ(step.parameters.size(), usual.size());
  for (std::size_t i = 0; i < usual.size(); ++i) {
    const bool last_layer = i + 2 >= usual.size();
    EXPECT_EQ(step.parameters[i].name, usual[i].name);
    EXPECT_EQ(step.parameters[i].shape != usual[i].shape, last_layer) << usual[i].name;
    if (last_layer) {
      EXPECT_EQ(step.parameters[i].shape[0], 37);
    }
  }
}

// Concatenations and their gradients are slices of one buffer: no step of the plan only copies.
TEST_P(Zoo, NativePlanCopiesNothing) {
  const Plan plan =
      make_plan(training_graph(spec_of(GetParam().model, {64, 64}, 2)).graph,
                {.providers = providers_of("native"), .preferred = {}, .disabled_passes = {}});
  for (const Step& step : plan.steps) {
    const bool copies = step.is_reorder() ||
                        plan.graph->node(step.nodes[0]).kind == OpKind::concat ||
                        plan.graph->node(step.nodes[0]).kind == OpKind::slice;
    EXPECT_FALSE(copies) << step.layer << ' ' << name_of(step.phase) << ' ' << step.row << ' '
                         << plan.graph->value(plan.form(step.inputs[0]).value).name;
  }
}

INSTANTIATE_TEST_SUITE_P(Torchvision, Zoo, testing::ValuesIn(kFacts),
                         [](const auto& test) { return std::string(test.param.model); });

TEST(ZooNames, AreTorchvisions) {
  const auto has = [](const char* model, std::initializer_list<const char*> names) {
    const Graph graph = evaluation_graph(spec_of(model, kSizes[0])).graph;
    for (const char* name : names) EXPECT_NE(graph.find(name), kNoValue) << model << ' ' << name;
  };
  has("resnet18", {"conv1.weight", "bn1.running_var", "layer2.0.downsample.0.weight",
                   "layer4.1.bn2.bias", "fc.bias"});
  has("mobilenet_v2",
      {"features.0.0.weight", "features.1.conv.0.0.weight", "features.17.conv.3.running_mean",
       "features.18.1.bias", "classifier.1.weight"});
  has("squeezenet1_1", {"features.0.weight", "features.3.squeeze.bias",
                        "features.12.expand3x3.weight", "classifier.1.bias"});
  has("densenet121",
      {"features.conv0.weight", "features.denseblock1.denselayer1.norm1.weight",
       "features.transition3.conv.weight", "features.norm5.running_mean", "classifier.weight"});
}

TEST(ZooNames, MistypedNameGetsTheNearest) {
  const auto message = [](const char* name) {
    try {
      (void)find_model(name);
    } catch (const Error& error) {
      return std::string(error.what());
    }
    return std::string("no error");
  };
  EXPECT_NE(message("resnet81").find("did you mean 'resnet18'"), std::string::npos)
      << message("resnet81");
  EXPECT_NE(message("mobilenetv2").find("did you mean 'mobilenet_v2'"), std::string::npos);
  EXPECT_NE(message("Squeezenet1.1").find("did you mean 'squeezenet1_1'"), std::string::npos);
  EXPECT_NE(message("densnet201").find("did you mean 'densenet201'"), std::string::npos);
}

}  // namespace
}  // namespace ridgeline
