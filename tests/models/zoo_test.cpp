// The zoo against facts of torchvision: parameters, names and shapes of the state dict, forward
// multiply-accumulates at several image sizes. tests/parity/zoo_names_test.py asks torchvision
// itself where it is installed.

#include <gtest/gtest.h>

#include <algorithm>
#include <set>

#include "backends/registry.h"
#include "base/error.h"
#include "base/hash.h"
#include "base/text.h"
#include "models/zoo_facts.h"
#include "plan/plan.h"
#include "train/step_runner.h"

namespace ridgeline {
namespace {

using testing::kZooFacts, testing::kZooSizes, testing::ZooDrops, testing::ZooFact, testing::ZooSize;

StepSpec spec_of(const std::string& model, ZooSize size, std::int64_t batch = 1) {
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

class Zoo : public ::testing::TestWithParam<ZooFact> {};

TEST_P(Zoo, HasTorchvisionsParameters) {
  const StepGraph step = evaluation_graph(spec_of(GetParam().model, kZooSizes[0]));
  EXPECT_EQ(count_parameters(step.parameters), GetParam().parameters);
}

TEST_P(Zoo, HasTorchvisionsStateDict) {
  const StepGraph step = evaluation_graph(spec_of(GetParam().model, kZooSizes[0]));
  std::vector<std::string> lines;
  std::int64_t entries = 0;
  for (const Parameter& parameter : step.parameters) {
    lines.push_back(parameter.name + ' ' + parameter.file_shape.text());
    ++entries;
    // PyTorch keeps one counter more for each batch norm.
    if (parameter.name.ends_with(".running_mean")) ++entries;
  }
  std::sort(lines.begin(), lines.end());
  EXPECT_EQ(entries, GetParam().state_entries);
  EXPECT_EQ(hash_of(joined(lines, "\n")), GetParam().state_hash) << joined(lines, "\n");
}

TEST_P(Zoo, HasTorchvisionsForwardMacsAtEverySize) {
  for (std::size_t i = 0; i < kZooSizes.size(); ++i) {
    const Graph graph = evaluation_graph(spec_of(GetParam().model, kZooSizes[i])).graph;
    EXPECT_EQ(macs_of(graph), GetParam().forward_macs[i])
        << kZooSizes[i].height << 'x' << kZooSizes[i].width;
  }
}

// Sums over the forward nodes of a training step.
struct Constants {
  double epsilons = 0.0, momenta = 0.0;
  ZooDrops dropout{}, stochastic_depth{};
};

Constants constants_of(const Graph& graph) {
  Constants sums;
  for (const Node& node : graph.nodes()) {
    if (node.phase != Phase::forward) continue;
    if (const auto* norm = std::get_if<LayerNormAttributes>(&node.attributes)) {
      sums.epsilons += norm->epsilon;
    } else if (node.kind == OpKind::bn_apply) {
      sums.epsilons += std::get<BatchNormAttributes>(node.attributes).epsilon;
    } else if (node.kind == OpKind::bn_update_running) {
      sums.momenta += std::get<BatchNormAttributes>(node.attributes).momentum;
    } else if (const auto* drop = std::get_if<DropoutAttributes>(&node.attributes)) {
      ZooDrops& drops = drop->per_sample ? sums.stochastic_depth : sums.dropout;
      ++drops.layers;
      drops.probabilities += drop->probability;
    }
  }
  return sums;
}

TEST_P(Zoo, HasTorchvisionsNormsAndDropouts) {
  const ZooFact& fact = GetParam();
  StepSpec spec = spec_of(fact.model, kZooSizes[2], 2);
  const Constants usual = constants_of(training_graph(spec).graph);
  EXPECT_NEAR(usual.epsilons, fact.epsilons, 1e-9 * fact.epsilons);
  EXPECT_NEAR(usual.momenta, fact.momenta, 1e-9 * fact.momenta);
  EXPECT_EQ(usual.dropout.layers, fact.dropout.layers);
  EXPECT_NEAR(usual.dropout.probabilities, fact.dropout.probabilities, 1e-9);
  EXPECT_EQ(usual.stochastic_depth.layers, fact.stochastic_depth.layers);
  EXPECT_NEAR(usual.stochastic_depth.probabilities, fact.stochastic_depth.probabilities, 1e-9);

  drop_nothing(spec.model);
  const Constants nothing = constants_of(training_graph(spec).graph);
  EXPECT_EQ(nothing.dropout.probabilities, 0.0);
  EXPECT_EQ(nothing.stochastic_depth.probabilities, 0.0);
}

TEST_P(Zoo, ClassesChangeTheHeadsAlone) {
  StepSpec spec = spec_of(GetParam().model, {96, 96}, 3);
  const std::vector<Parameter> usual = evaluation_graph(spec).parameters;
  spec.model.classes = 37;
  const StepGraph step = evaluation_graph(spec);
  EXPECT_EQ(step.graph.value(step.logits).spec.shape, (Shape{3, 37}));
  ASSERT_EQ(step.parameters.size(), usual.size());
  for (std::size_t i = 0; i < usual.size(); ++i) {
    const bool of_head = i + 2 >= usual.size() || usual[i].auxiliary_head;
    EXPECT_EQ(step.parameters[i].name, usual[i].name);
    EXPECT_EQ(step.parameters[i].shape != usual[i].shape, of_head) << usual[i].name;
    if (of_head) {
      EXPECT_EQ(step.parameters[i].shape[0], 37);
    }
  }
}

INSTANTIATE_TEST_SUITE_P(Torchvision, Zoo, ::testing::ValuesIn(kZooFacts),
                         [](const auto& test) { return std::string(test.param.model); });

class ZooPlan : public ::testing::TestWithParam<const char*> {};

// Concatenations and their gradients are slices of one buffer: no step of the plan only copies.
TEST_P(ZooPlan, CopiesNothingOnNative) {
  const Plan plan =
      make_plan(training_graph(spec_of(GetParam(), {64, 64}, 2)).graph,
                {.providers = providers_of("native"), .preferred = {}, .disabled_passes = {}});
  for (const Step& step : plan.steps) {
    const bool copies = step.is_reorder() ||
                        plan.graph->node(step.nodes[0]).kind == OpKind::concat ||
                        plan.graph->node(step.nodes[0]).kind == OpKind::slice;
    EXPECT_FALSE(copies) << step.layer << ' ' << name_of(step.phase) << ' ' << step.row << ' '
                         << plan.graph->value(plan.form(step.inputs[0]).value).name;
  }
}

INSTANTIATE_TEST_SUITE_P(Torchvision, ZooPlan,
                         ::testing::Values("resnet18", "resnet34", "resnet50", "resnet101",
                                           "resnet152", "mobilenet_v2", "squeezenet1_0",
                                           "squeezenet1_1", "densenet121", "densenet161",
                                           "densenet169", "densenet201"),
                         [](const auto& test) { return std::string(test.param); });

TEST(ZooNames, AreTorchvisions) {
  const auto has = [](const char* model, std::initializer_list<const char*> names) {
    const Graph graph = evaluation_graph(spec_of(model, kZooSizes[0])).graph;
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

TEST(ZooNames, AreEachListedOnce) {
  std::set<std::string_view> names, families;
  std::string_view family;
  for (const ModelInfo& model : all_models()) {
    EXPECT_TRUE(names.insert(model.name).second) << model.name;
    if (model.family != family) {
      EXPECT_TRUE(families.insert(model.family).second) << model.family;
    }
    family = model.family;
  }
  for (const ZooFact& fact : kZooFacts) EXPECT_TRUE(names.contains(fact.model)) << fact.model;
  EXPECT_EQ(names.size(), kZooFacts.size() + 2);  // mlp and mnist_cnn are our own
}

// Auxiliary heads: parameters in both modes, nodes in training alone.
TEST(ZooHeads, AreAbsentInEvaluation) {
  const auto expect_head = [](const char* model, const char* layer, double weight) {
    const StepGraph training = training_graph(spec_of(model, {299, 299}, 2));
    const StepGraph evaluation = evaluation_graph(spec_of(model, {96, 96}, 2));
    const auto is_of_head = [&](const auto& named) { return named.layer.starts_with(layer); };
    EXPECT_TRUE(std::ranges::any_of(training.graph.nodes(), is_of_head)) << model;
    EXPECT_FALSE(std::ranges::any_of(evaluation.graph.nodes(), is_of_head)) << model;
    EXPECT_EQ(count_parameters(training.parameters), count_parameters(evaluation.parameters));
    EXPECT_TRUE(std::ranges::any_of(training.graph.nodes(), [&](const Node& node) {
      const auto* loss = std::get_if<LossAttributes>(&node.attributes);
      return loss != nullptr && loss->weight == weight;
    })) << model;
  };
  expect_head("googlenet", "aux1.", 0.3);
  expect_head("googlenet", "aux2.", 0.3);
  expect_head("inception_v3", "AuxLogits.", 0.4);
}

TEST(ZooHeads, InceptionTrainsOnImagesLargeEnoughForItsHead) {
  EXPECT_THROW((void)training_graph(spec_of("inception_v3", {298, 298}, 2)), Error);
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
