// From a study to the calls of commands on a machine, real or made up.

#include <gtest/gtest.h>

#include <algorithm>
#include <map>

#include "base/error.h"
#include "study/expand.h"
#include "study/plan.h"

namespace ridgeline::study {
namespace {

// A machine as a test wants it.
class MadeUpMachine final : public Capabilities {
 public:
  std::string refuse(const ExecutorName& executor) override {
    if (executor.device.starts_with("cuda") && !gpu) return "no GPU: none is made up";
    const auto found = refused.find(executor.backend);
    return found == refused.end() ? std::string() : found->second;
  }
  std::string refuse_precision(const ExecutorName& executor, Precision precision) override {
    const bool can = executor.device != "cpu" || precision == Precision::fp32;
    return can ? "" : "the cpu computes in fp32";
  }
  std::string refuse_ranks() override { return no_ranks; }
  int processors() override { return 4; }
  std::vector<std::string> devices() override {
    return gpu ? std::vector<std::string>{"cpu", "cuda:0"} : std::vector<std::string>{"cpu"};
  }
  std::optional<std::string> find_data(const std::string& name) override {
    if (name.starts_with("synthetic")) return name;
    const auto found = data.find(name);
    return found == data.end() ? std::nullopt : std::optional(found->second);
  }
  std::optional<std::string> find_weights(const std::string& name) override {
    return find_data(name);
  }
  std::optional<std::int64_t> memory_bytes(const std::string&) override { return memory; }
  DeviceSpeed speed(const std::string&) override { return {1e11, 1e10}; }
  bool ceilings_known(const std::string&) override { return ceilings; }

  bool gpu = false, ceilings = false;
  std::int64_t memory = std::int64_t{64} << 30;
  std::map<std::string, std::string> refused, data;
  std::string no_ranks;
};

Study study_of(const std::string& parts) {
  return parse_study("name = \"x\"\ntitle = \"t\"\nquestion = \"q\"\n" + parts, "my.toml");
}

std::vector<std::string> keys_of(const std::vector<PlannedItem>& plan, ItemStatus status) {
  std::vector<std::string> keys;
  for (const PlannedItem& item : plan) {
    if (item.record.status == status) keys.push_back(item.record.key);
  }
  return keys;
}

const PlannedItem& item_of(const std::vector<PlannedItem>& plan, const std::string& key) {
  const auto found = std::find_if(plan.begin(), plan.end(),
                                  [&](const PlannedItem& item) { return item.record.key == key; });
  if (found == plan.end()) throw std::runtime_error("no item " + key);
  return *found;
}

using Keys = std::vector<std::string>;

constexpr const char* kBench =
    "[[part]]\nid = \"speed\"\ncommand = \"bench\"\nmodels = [\"mlp\", \"mnist_cnn\"]\nbackends = "
    "[\"native\", \"cuda\", \"auto\", \"numpy\", \"torch-cpu\"]\nbatches = [8, 16]\nmomentum = "
    "0.9\n";

TEST(StudyPlan, RanksTakeTurnsInOneCallAsFarAsThereAreProcessors) {
  const Study study = study_of(
      "[[part]]\nid = \"links\"\ncommand = \"ceilings\"\nranks = [2, 8]\n[[part]]\nid = "
      "\"weak\"\ncommand = \"bench\"\nmodels = [\"mlp\"]\nbackends = [\"native\"]\nbatches = "
      "[8]\nranks = [1, 2, 8]\nscaling = \"weak\"\nreduce = \"bf16\"\nunconnected = true\n");
  MadeUpMachine machine;
  const auto plan = plan_study(study, {}, machine);
  EXPECT_EQ(keys_of(plan, ItemStatus::waiting), (Keys{"links/ranks=2", "weak/mlp/batch=8"}));
  EXPECT_EQ(keys_of(plan, ItemStatus::left_out), (Keys{"links/ranks=8", "weak/ranks=8"}));
  EXPECT_EQ(item_of(plan, "weak/ranks=8").record.reason, "this machine has 4 processors");
  EXPECT_EQ(item_of(plan, "links/ranks=2").record.command, "env --measure --ranks 2");
  EXPECT_EQ(item_of(plan, "weak/mlp/batch=8").record.command,
            "bench mlp --backend native --batch 8 --ranks 1,2 --scaling weak --reduce bf16 "
            "--unconnected");
  machine.no_ranks = "there is no MPI";
  const auto without = plan_study(study, {}, machine);
  EXPECT_EQ(keys_of(without, ItemStatus::left_out), (Keys{"links/ranks", "weak/ranks"}));
  EXPECT_EQ(item_of(without, "weak/ranks").record.reason, "there is no MPI");
}

TEST(StudyPlan, BackendsOfTheSameWorkShareACall) {
  MadeUpMachine machine;
  machine.gpu = true;
  const auto plan = plan_study(study_of(kBench), {}, machine);
  EXPECT_EQ(keys_of(plan, ItemStatus::waiting),
            (Keys{"speed/mlp/batch=8", "speed/mlp/batch=16", "speed/mnist_cnn/batch=8",
                  "speed/mnist_cnn/batch=16"}));
  EXPECT_EQ(item_of(plan, "speed/mlp/batch=8").record.command,
            "bench mlp --backend native,cuda,auto@cpu,auto@cuda:0,numpy,torch-cpu --batch 8 "
            "--momentum 0.9");
  // A peer that does not compute the network is left out of that alone.
  EXPECT_EQ(item_of(plan, "speed/mnist_cnn/batch=16").record.command,
            "bench mnist_cnn --backend native,cuda,auto@cpu,auto@cuda:0,torch-cpu --batch 16 "
            "--momentum 0.9");
  EXPECT_EQ(keys_of(plan, ItemStatus::left_out),
            (Keys{"speed/mnist_cnn/batch=8/numpy", "speed/mnist_cnn/batch=16/numpy"}));
  EXPECT_EQ(item_of(plan, "speed/mnist_cnn/batch=8/numpy").record.reason,
            "numpy computes mlp only");
  for (const PlannedItem& item : plan) {
    if (item.record.status == ItemStatus::waiting) {
      EXPECT_GT(item.record.estimated_seconds, 0.0) << item.record.key;
    }
  }
}

TEST(StudyPlan, ABackendCanBeWantedOnOneDeviceAlone) {
  MadeUpMachine machine;
  const Study study = study_of(
      "[[part]]\nid = \"p\"\ncommand = \"bench\"\nmodels = \"mlp\"\nbackends = [\"native\", "
      "\"auto@cuda\"]\n");
  const auto plan = plan_study(study, {}, machine);
  EXPECT_EQ(keys_of(plan, ItemStatus::waiting), (Keys{"p/mlp"}));
  EXPECT_EQ(keys_of(plan, ItemStatus::left_out), (Keys{"p/auto@cuda:0"}));
  machine.gpu = true;
  EXPECT_EQ(plan_study(study, {}, machine).at(0).record.command,
            "bench mlp --backend native,auto@cuda:0");
}

TEST(StudyPlan, OptionsOfAPartReachItsCommand) {
  MadeUpMachine machine;
  const Study study = study_of(
      "[[part]]\nid = \"p\"\ncommand = \"profile\"\nmodels = \"mlp\"\nbackends = \"native\"\n"
      "freeze = \"fc1.*\"\nno_pass = [\"fusion\", \"inplace\"]\niterations = 5\n");
  EXPECT_EQ(plan_study(study, {}, machine).at(0).record.command,
            "profile mlp --backend native --device cpu --freeze 'fc1.*' --no-pass fusion --no-pass "
            "inplace --steps 5");
}

TEST(StudyPlan, WhatAMachineCannotDoIsLeftOutOnceWithItsReason) {
  MadeUpMachine machine;
  machine.refused["torch-cpu"] = "PyTorch is not installed";
  const auto plan = plan_study(study_of(kBench), {}, machine);
  EXPECT_EQ(keys_of(plan, ItemStatus::waiting).size(), 4U);
  EXPECT_EQ(item_of(plan, "speed/cuda").record.reason, "no GPU: none is made up");
  EXPECT_EQ(item_of(plan, "speed/auto@cuda:0").record.reason, "no GPU: none is made up");
  EXPECT_EQ(item_of(plan, "speed/torch-cpu").record.reason, "PyTorch is not installed");
  EXPECT_EQ(keys_of(plan, ItemStatus::left_out).size(), 5U);
  EXPECT_TRUE(item_of(plan, "speed/cuda").words.empty());
}

TEST(StudyPlan, PrecisionsThatADeviceHasNotAreLeftOut) {
  MadeUpMachine machine;
  machine.gpu = true;
  const auto plan =
      plan_study(study_of("[[part]]\nid = \"p\"\ncommand = \"bench\"\nmodels = \"mlp\"\nbackends = "
                          "[\"native\", \"cuda\"]\nprecisions = [\"fp32\", \"bf16\"]\n"),
                 {}, machine);
  EXPECT_EQ(keys_of(plan, ItemStatus::waiting), (Keys{"p/mlp/fp32", "p/mlp/bf16"}));
  EXPECT_EQ(item_of(plan, "p/mlp/bf16").record.command,
            "bench mlp --backend cuda --precision bf16");
  EXPECT_EQ(item_of(plan, "p/bf16/native").record.reason, "the cpu computes in fp32");
}

TEST(StudyPlan, TooLittleMemoryIsToldBeforehand) {
  MadeUpMachine machine;
  machine.memory = std::int64_t{100} << 20;
  const auto plan = plan_study(
      study_of("[[part]]\nid = \"p\"\ncommand = \"bench\"\nmodels = \"resnet18\"\nbackends = "
               "\"native\"\nbatches = [2, 64]\nimages = \"3x32x32\"\n"),
      {}, machine);
  EXPECT_NE(item_of(plan, "p/resnet18/batch=64/native").record.reason.find("not enough memory"),
            std::string::npos);
}

constexpr const char* kTrain =
    "[[part]]\nid = \"t\"\ncommand = \"train\"\nmodels = \"mnist_cnn\"\nbackends = [\"native\", "
    "\"onednn\"]\ndata = [\"mnist\", \"digit-recognizer\"]\nsubstitute = [\"fashion-mnist\", "
    "\"synthetic:1x28x28:10:1000\"]\nepochs = 2\nsamples = 500\n";

TEST(StudyPlan, TheFirstDataThatIsHereIsTaken) {
  MadeUpMachine machine;
  machine.data["digit-recognizer"] = "/data/train.csv";
  const auto plan = plan_study(study_of(kTrain), {}, machine);
  EXPECT_EQ(keys_of(plan, ItemStatus::waiting), (Keys{"t/mnist_cnn/native", "t/mnist_cnn/onednn"}));
  const StudyItemRecord& item = item_of(plan, "t/mnist_cnn/native").record;
  EXPECT_EQ(item.command,
            "train mnist_cnn --backend native --device cpu --limit 500 --data /data/train.csv "
            "--epochs 2");
  EXPECT_EQ(item.substitute, "");
}

TEST(StudyPlan, SubstitutesAreMarked) {
  MadeUpMachine machine;
  const auto synthetic = plan_study(study_of(kTrain), {}, machine);
  EXPECT_EQ(item_of(synthetic, "t/mnist_cnn/native").record.substitute,
            "synthetic images (synthetic:1x28x28:10:1000) in place of mnist");
  machine.data["fashion-mnist"] = "fashion-mnist";
  const auto clothes = plan_study(study_of(kTrain), {}, machine);
  EXPECT_EQ(item_of(clothes, "t/mnist_cnn/native").record.substitute,
            "fashion-mnist in place of mnist");
}

TEST(StudyPlan, DataWithoutSubstituteIsLeftOut) {
  MadeUpMachine machine;
  const auto plan = plan_study(
      study_of("[[part]]\nid = \"t\"\ncommand = \"train\"\nmodels = \"mlp\"\ndata = \"mnist\"\n"),
      {}, machine);
  ASSERT_EQ(plan.size(), 1U);
  EXPECT_EQ(plan[0].record.status, ItemStatus::left_out);
  EXPECT_NE(plan[0].record.reason.find("mnist is not here"), std::string::npos);
}

TEST(StudyPlan, WeightsThatAreMissingAreMarked) {
  MadeUpMachine machine;
  const Study study = study_of(
      "[[part]]\nid = \"t\"\ncommand = \"train\"\nmodels = \"mlp\"\nbackends = \"native\"\nweights "
      "= \"mlp-trained\"\n");
  EXPECT_NE(plan_study(study, {}, machine)[0].record.substitute.find("random weights"),
            std::string::npos);
  machine.data["mlp-trained"] = "/w.safetensors";
  const auto plan = plan_study(study, {}, machine);
  EXPECT_EQ(plan[0].record.substitute, "");
  EXPECT_NE(plan[0].record.command.find("--weights /w.safetensors"), std::string::npos);
}

TEST(StudyPlan, APartThatRequiresItsWeightsIsLeftOutWithoutThem) {
  MadeUpMachine machine;
  const Study study = study_of(
      "[[part]]\nid = \"t\"\ncommand = \"train\"\nmodels = \"mlp\"\nbackends = \"native\"\nweights "
      "= \"mlp-trained\"\nweights_required = true\n");
  const auto without = plan_study(study, {}, machine);
  ASSERT_EQ(without.size(), 1U);
  EXPECT_EQ(without[0].record.status, ItemStatus::left_out);
  EXPECT_EQ(without[0].record.key, "t/weights");
  EXPECT_NE(without[0].record.reason.find("mlp-trained.safetensors"), std::string::npos);
  machine.data["mlp-trained"] = "/w.safetensors";
  const auto with = plan_study(study, {}, machine);
  EXPECT_EQ(with[0].record.status, ItemStatus::waiting);
  EXPECT_NE(with[0].record.command.find("--weights /w.safetensors"), std::string::npos);
}

TEST(StudyPlan, TheBestDeviceIsTheGpuWhereThereIsOne) {
  const Study study = study_of(
      "[[part]]\nid = \"t\"\ncommand = \"train\"\nmodels = \"mlp\"\nbackends = [\"native\", "
      "\"auto\"]\ndevices = \"best\"\n");
  MadeUpMachine machine;
  EXPECT_EQ(keys_of(plan_study(study, {}, machine), ItemStatus::waiting), (Keys{"t/mlp/native"}));
  machine.gpu = true;
  EXPECT_EQ(keys_of(plan_study(study, {}, machine), ItemStatus::waiting),
            (Keys{"t/mlp/auto@cuda:0"}));
}

TEST(StudyPlan, OneAtATimeAroundTheFirstValues) {
  const Study study = study_of(
      "[[part]]\nid = \"v\"\ncommand = \"train\"\nmodels = [\"mlp\", \"mnist_cnn\"]\nbackends = "
      "\"native\"\nlearning_rates = [0.01, 0.1]\nbatches = [512, 64, 128]\noptimizers = [\"sgd\", "
      "\"adam lr=0.001\"]\nsettings = {activation = [\"relu\", \"tanh\"]}\nmomentum = "
      "0.9\none_at_a_time = [\"learning_rates\", \"batches\", \"optimizers\", \"activation\"]\n");
  const std::vector<Configuration> all = expand(study.small.at(0));
  ASSERT_EQ(all.size(), 2U * (1 + 1 + 2 + 1 + 1));
  EXPECT_EQ(all[0].text(), "mlp, activation relu, batch 512, sgd, rate 0.01");
  std::size_t differing = 0;
  for (const Configuration& each : all) {
    differing = static_cast<std::size_t>(each.batches.at(0) != 512) +
                static_cast<std::size_t>(each.settings.at("activation") != "relu") +
                static_cast<std::size_t>(each.optimizer != "sgd" || each.learning_rate != 0.01);
    EXPECT_LE(differing, 1U) << each.text();
  }
  MadeUpMachine machine;
  const auto plan = plan_study(study, {}, machine);
  const std::string& adam =
      item_of(plan, "v/mlp/activation=relu/batch=512/adam/lr=0.001/native").record.command;
  EXPECT_NE(adam.find("--optimizer adam --lr 0.001"), std::string::npos);
  // Momentum is SGD's.
  EXPECT_EQ(adam.find("--momentum"), std::string::npos);
}

TEST(StudyPlan, InferenceMeasuresAllBatchesInOneCall) {
  MadeUpMachine machine;
  const auto plan = plan_study(
      study_of("[[part]]\nid = \"i\"\ncommand = \"inference\"\nmodels = \"mlp\"\nbackends = "
               "\"native\"\nbatches = [1, 64]\n"),
      {}, machine);
  ASSERT_EQ(plan.size(), 1U);
  EXPECT_EQ(plan[0].record.command, "bench mlp --inference --backend native --batch 1,64");
}

TEST(StudyPlan, InferenceOfAllTheDataBesideOtherBatches) {
  MadeUpMachine machine;
  const auto plan = plan_study(
      study_of("[[part]]\nid = \"i\"\ncommand = \"inference\"\nmodels = \"mlp\"\nbackends = "
               "\"native\"\nbatches = [1, \"full\"]\nsamples = 100\n"),
      {}, machine);
  ASSERT_EQ(plan.size(), 1U);
  EXPECT_EQ(plan[0].record.command,
            "bench mlp --inference --backend native --batch 1,full --samples 100");
}

TEST(StudyPlan, OnlySomeParts) {
  MadeUpMachine machine;
  const Study study = study_of(
      "[[part]]\nid = \"ceilings\"\ncommand = \"ceilings\"\n[[part]]\nid = \"b\"\ncommand = "
      "\"profile\"\nmodels = \"mlp\"\nbackends = \"native\"\niterations = 3\n");
  const auto plan = plan_study(study, {.only = {"b"}, .threads = 2}, machine);
  ASSERT_EQ(plan.size(), 1U);
  EXPECT_EQ(plan[0].record.command,
            "profile mlp --backend native --device cpu --steps 3 --threads 2");
  EXPECT_EQ(plan_study(study, {.only = {"ceilings"}}, machine).at(0).record.command,
            "env --measure --device cpu");
  try {
    (void)plan_study(study, {.only = {"bb"}}, machine);
    FAIL();
  } catch (const Error& error) {
    EXPECT_NE(std::string(error.what()).find("There are: ceilings, b"), std::string::npos);
  }
}

TEST(StudyPlan, WordsForAShell) {
  EXPECT_EQ(shell_text({"train", "--freeze", "features.*", "--data", "it's", ""}),
            "train --freeze 'features.*' --data 'it'\\''s' ''");
}

// Networks of all parts can be built, on a machine with everything and on one with nothing.
TEST(SlowStudyPlan, BuiltInStudiesCanBePlannedEverywhere) {
  for (const std::string& name : built_in_studies()) {
    const Study study = find_study(name);
    for (const Scale scale : {Scale::small, Scale::full}) {
      for (const bool everything : {false, true}) {
        MadeUpMachine machine;
        machine.gpu = everything;
        machine.memory = std::int64_t{512} << 30;
        if (everything) {
          for (const char* data : {"mnist", "fashion-mnist", "tiny-imagenet", "imagenette",
                                   "cats-dogs", "densenet121"}) {
            machine.data[data] = data;
          }
        }
        const auto plan = plan_study(study, {.scale = scale}, machine);
        EXPECT_FALSE(keys_of(plan, ItemStatus::waiting).empty()) << name;
        for (const PlannedItem& item : plan) {
          if (everything) {
            EXPECT_EQ(item.record.substitute, "") << item.record.key;
          }
        }
      }
    }
  }
}

}  // namespace
}  // namespace ridgeline::study
