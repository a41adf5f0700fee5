#include "train/checkpoint.h"

#include <gtest/gtest.h>

#include <algorithm>
#include <array>
#include <fstream>
#include <limits>
#include <set>

#include "backends/registry.h"
#include "data/synthetic.h"
#include "plan/choice_cache.h"
#include "support/data_files.h"
#include "support/small_disk.h"
#include "train/checkpoint_json.h"
#include "train/export_weights.h"

namespace ridgeline {
namespace {

namespace fs = std::filesystem;
using testing::expect_contains;
using testing::refusal;

constexpr std::int64_t kSide = 12;

Split small_data() {
  return make_synthetic({.channels = 1,
                         .height = kSide,
                         .width = kSide,
                         .classes = 4,
                         .count = 83,
                         .test_count = 20,
                         .seed = 3});
}

TrainConfig small_config(OptimizerAttributes optimizer) {
  TrainConfig config;
  config.step.model.name = "mnist_cnn";
  config.step.model.height = config.step.model.width = kSide;
  config.step.model.classes = 4;
  config.step.batch = 16;  // six steps in an epoch, the last one smaller
  config.step.optimizer = optimizer;
  config.step.flip = true;
  config.plan.backend = "native";
  config.learning_rate = 0.01;
  config.schedule = {.kind = Schedule::Kind::step, .step_size = 1, .gamma = 0.5};
  config.epochs = 3;
  config.seed = 5;
  return config;
}

// What a step depends on beside the session's state: dropout is keyed by seed and random_step.
struct StepKey {
  double learning_rate = 0.0;
  std::int64_t optimizer_step = 0, random_step = 0, epoch = 0, rows = 0;
  friend bool operator==(const StepKey&, const StepKey&) = default;
};

// Notes every step, saves every checkpoint it is offered, and stops after some steps.
class Recorder final : public TrainObserver {
 public:
  Recorder(Trainer& trainer, const Split& data, CheckpointWriter* writer, std::int64_t stop_after)
      : trainer_(trainer), data_(data), writer_(writer), stop_after_(stop_after) {}

  void on_step(const StepProgress& step) override {
    const StepState& state = trainer_.runner().session().step_state();
    keys.push_back({state.learning_rate, state.optimizer_step, state.random_step, state.epoch,
                    state.valid_rows});
    done_ = step.done;
  }
  void on_checkpoint(const TrainProgress& progress) override {
    if (writer_ != nullptr) writer_->write(trainer_, data_, progress);
  }
  [[nodiscard]] bool stop() override { return done_ == stop_after_; }

  std::vector<StepKey> keys;

 private:
  Trainer& trainer_;
  const Split& data_;
  CheckpointWriter* writer_;
  std::int64_t stop_after_, done_ = 0;
};

// Saves every checkpoint it is offered, and stops when it was asked so often.
class StopAtQuestion final : public TrainObserver {
 public:
  StopAtQuestion(Trainer& trainer, const Split& data, CheckpointWriter& writer, int stop_at)
      : trainer_(trainer), data_(data), writer_(writer), stop_at_(stop_at) {}

  void on_checkpoint(const TrainProgress& progress) override {
    writer_.write(trainer_, data_, progress);
    at_checkpoints.push_back(questions);
  }
  [[nodiscard]] bool stop() override { return ++questions >= stop_at_; }

  int questions = 0;
  std::vector<int> at_checkpoints;

 private:
  Trainer& trainer_;
  const Split& data_;
  CheckpointWriter& writer_;
  int stop_at_;
};

struct Finished {
  std::vector<StepKey> keys;
  TrainResult result;
  std::vector<StepRunner::NamedTensor> state;
};

Finished finish(Trainer& trainer, const Split& data, CheckpointWriter* writer,
                std::int64_t stop_after = -1) {
  Recorder recorder(trainer, data, writer, stop_after);
  Finished finished;
  finished.result = trainer.train(recorder);
  finished.keys = std::move(recorder.keys);
  finished.state = trainer.runner().read_state();
  return finished;
}

void expect_same(const Finished& whole, const Finished& resumed) {
  ASSERT_EQ(resumed.state.size(), whole.state.size());
  for (std::size_t i = 0; i < whole.state.size(); ++i) {
    EXPECT_EQ(resumed.state[i].name, whole.state[i].name);
    EXPECT_EQ(resumed.state[i].bytes, whole.state[i].bytes) << whole.state[i].name;
  }
  ASSERT_EQ(resumed.result.epochs.size(), whole.result.epochs.size());
  for (std::size_t i = 0; i < whole.result.epochs.size(); ++i) {
    EXPECT_EQ(resumed.result.epochs[i].train_loss, whole.result.epochs[i].train_loss);
    EXPECT_EQ(resumed.result.epochs[i].train_accuracy, whole.result.epochs[i].train_accuracy);
    EXPECT_EQ(resumed.result.epochs[i].test_loss, whole.result.epochs[i].test_loss);
    EXPECT_EQ(resumed.result.epochs[i].test_accuracy, whole.result.epochs[i].test_accuracy);
    EXPECT_EQ(resumed.result.epochs[i].learning_rate, whole.result.epochs[i].learning_rate);
  }
  EXPECT_EQ(resumed.result.steps, whole.result.steps);
  EXPECT_EQ(resumed.result.final_test_accuracy, whole.result.final_test_accuracy);
}

class CheckpointTest : public testing::FileTest {
 protected:
  [[nodiscard]] std::vector<std::string> names() const {
    std::vector<std::string> list;
    for (const auto& entry : fs::directory_iterator(folder_ / "run")) {
      list.push_back(entry.path().filename().string());
    }
    std::sort(list.begin(), list.end());
    return list;
  }
  // A whole training, and how often it had asked by each of its checkpoints.
  struct Questioned : Finished {
    std::vector<int> at_checkpoints;
  };
  [[nodiscard]] Questioned questioned(const TrainConfig& config) const {
    Trainer trainer(config, data_, make_cpu_device());
    CheckpointWriter writer(folder_ / "whole");
    StopAtQuestion observer(trainer, data_, writer, std::numeric_limits<int>::max());
    Questioned whole;
    whole.result = trainer.train(observer);
    whole.state = trainer.runner().read_state();
    whole.at_checkpoints = observer.at_checkpoints;
    return whole;
  }
  // Gives the checkpoint that the interruption left.
  [[nodiscard]] Checkpoint interrupt_and_resume(const TrainConfig& config, const Finished& whole,
                                                int stop_at) const {
    const fs::path folder = folder_ / std::to_string(stop_at);
    {
      CheckpointWriter writer(folder);
      Trainer first(config, data_, make_cpu_device());
      StopAtQuestion observer(first, data_, writer, stop_at);
      EXPECT_TRUE(first.train(observer).interrupted);
      // It is asked once more where an epoch had just ended.
      EXPECT_LE(observer.questions, stop_at + 1);
    }
    Checkpoint last = read_last_checkpoint(folder);
    Trainer second(config, data_, make_cpu_device());
    restore(last, second);
    expect_same(whole, finish(second, data_, nullptr));
    return last;
  }
  const Split data_ = small_data();
};

TEST_F(CheckpointTest, AResumedTrainingEqualsAnUninterruptedOneBitForBit) {
  const std::vector<OptimizerAttributes> optimizers = {SgdAttributes{.momentum = 0.9},
                                                       AdamAttributes{}};
  int number = 0;
  for (const OptimizerAttributes& optimizer : optimizers) {
    const TrainConfig config = small_config(optimizer);
    Trainer uninterrupted(config, data_, make_cpu_device());
    const Finished whole = finish(uninterrupted, data_, nullptr);
    // In an epoch, at its last step, at the first step of all.
    for (const std::int64_t stop : {8, 12, 1}) {
      SCOPED_TRACE(stop);
      const fs::path folder = folder_ / std::to_string(number++);
      {
        CheckpointWriter writer(folder);
        Trainer first(config, data_, make_cpu_device());
        EXPECT_TRUE(finish(first, data_, &writer, stop).result.interrupted);
      }
      Trainer second(config, data_, make_cpu_device());
      restore(read_last_checkpoint(folder), second);
      const Finished resumed = finish(second, data_, nullptr);
      expect_same(whole, resumed);
      const auto rest = static_cast<std::ptrdiff_t>(whole.keys.size() - resumed.keys.size());
      EXPECT_EQ(rest, stop);
      EXPECT_TRUE(std::equal(whole.keys.begin() + rest, whole.keys.end(), resumed.keys.begin()));
    }
  }
}

// Before and within steps of training and of tests, with batch norms that have statistics.
TEST_F(CheckpointTest, InterruptedAtAnyMomentATrainingResumesBitForBit) {
  TrainConfig config = small_config(SgdAttributes{.momentum = 0.9});
  config.step.model.name = "mobilenet_v2";
  config.step.batch = 32;
  config.eval_batch = 8;
  config.epochs = 2;
  const Questioned whole = questioned(config);
  // Asked so often before each checkpoint: before and after the tests of the two epochs.
  ASSERT_EQ(whole.at_checkpoints.size(), 4U);
  const auto middle = [&](std::size_t i) {
    return (whole.at_checkpoints[i] + whole.at_checkpoints[i + 1]) / 2;
  };
  const int in_step = whole.at_checkpoints[0] / 2, in_test = middle(0), in_second = middle(1);
  for (const int stop_at : {in_step, in_test, in_second}) {
    SCOPED_TRACE(stop_at);
    const Checkpoint last = interrupt_and_resume(config, whole, stop_at);
    EXPECT_EQ(last.progress.untested.has_value(), stop_at == in_test);
    EXPECT_EQ(last.progress.step_in_epoch > 0, stop_at != in_test);
  }
}

TEST_F(CheckpointTest, FullBatchTrainingIsInterruptedAtAnyMoment) {
  TrainConfig config = small_config(AdamAttributes{});
  config.full_batch = true;
  config.epochs = 5;
  config.eval_every = 2;
  config.eval_batch = 8;
  const Questioned whole = questioned(config);
  const int last = whole.at_checkpoints.back();
  for (int stop_at = 1; stop_at < last; stop_at += last / 9) {
    SCOPED_TRACE(stop_at);
    (void)interrupt_and_resume(config, whole, stop_at);
  }
}

TEST_F(CheckpointTest, ATrainingGoesOnAfterItsLastEpochAndFromASavedStep) {
  TrainConfig config = small_config(SgdAttributes{.momentum = 0.9});
  Trainer uninterrupted(config, data_, make_cpu_device());
  const Finished whole = finish(uninterrupted, data_, nullptr);
  config.epochs = 2;
  config.checkpoint_every = 4;
  {
    CheckpointWriter writer(folder_ / "run");
    Trainer first(config, data_, make_cpu_device());
    (void)finish(first, data_, &writer);
  }
  config.epochs = 3;
  Trainer second(config, data_, make_cpu_device());
  const Checkpoint last = read_last_checkpoint(folder_ / "run");
  EXPECT_EQ(last.progress.epoch, 2);
  EXPECT_EQ(last.progress.step_in_epoch, 0);
  restore(last, second);
  expect_same(whole, finish(second, data_, nullptr));
}

TEST_F(CheckpointTest, FullBatchTrainingResumesAtItsIteration) {
  TrainConfig config = small_config(AdamAttributes{});
  config.full_batch = true;
  config.epochs = 10;
  config.eval_every = 4;
  Trainer uninterrupted(config, data_, make_cpu_device());
  const Finished whole = finish(uninterrupted, data_, nullptr);
  {
    CheckpointWriter writer(folder_ / "run");
    Trainer first(config, data_, make_cpu_device());
    (void)finish(first, data_, &writer, 6);
  }
  Trainer second(config, data_, make_cpu_device());
  restore(read_last_checkpoint(folder_ / "run"), second);
  expect_same(whole, finish(second, data_, nullptr));
}

TEST_F(CheckpointTest, OnlyTheLastAndTheBestAreKept) {
  static constexpr std::array kOwn = {"checkpoint-000001-keep", "checkpoint-000002.bak",
                                      "checkpoint-000003.part.old", "checkpoint-3",
                                      "checkpoint-best"};
  const TrainConfig config = small_config(SgdAttributes{.momentum = 0.9});
  Trainer trainer(config, data_, make_cpu_device());
  {
    CheckpointWriter writer(folder_ / "run");
    (void)finish(trainer, data_, &writer);
    // No other process may write there meanwhile.
    expect_contains(refusal([&] { CheckpointWriter other(folder_ / "run"); }),
                    {"another training"});
    // What a killed training left behind goes away with the next checkpoint.
    fs::create_directory(folder_ / "run" / "checkpoint-000077.part");
    // What the user put there stays.
    for (const char* own : kOwn) fs::create_directory(folder_ / "run" / own);
    TrainProgress worse = read_last_checkpoint(folder_ / "run").progress;
    worse.epoch = 4;
    writer.write(trainer, data_, worse);
  }
  const Checkpoint last = read_last_checkpoint(folder_ / "run");
  const Checkpoint best = read_best_checkpoint(folder_ / "run");
  EXPECT_EQ(best.folder.filename(), last.best);
  EXPECT_EQ(best.progress.epoch, last.progress.best->epoch);
  EXPECT_EQ(best.progress.result.epochs.back().test_accuracy, last.progress.best->accuracy);
  EXPECT_EQ(best.progress.result.epochs.back().test_loss, last.progress.best->loss);
  EXPECT_NE(best.folder, last.folder);
  std::vector<std::string> expected = {"LAST", "LOCK", best.folder.filename().string(),
                                       last.folder.filename().string()};
  expected.insert(expected.end(), kOwn.begin(), kOwn.end());
  std::sort(expected.begin(), expected.end());
  EXPECT_EQ(names(), expected);
}

TEST_F(CheckpointTest, AFullDiskLeavesTheFormerCheckpoint) {
  const TrainConfig config = small_config(SgdAttributes{.momentum = 0.9});
  Trainer trainer(config, data_, make_cpu_device());
  CheckpointWriter writer(folder_ / "run");
  writer.write(trainer, data_, {});
  const std::vector<std::string> before = names();
  TrainProgress later;
  later.epoch = 1;
  for (const rlim_t room : {0, 1000, 20'000}) {
    const testing::SmallDisk disk(room);
    EXPECT_THROW(writer.write(trainer, data_, later), Error);
  }
  EXPECT_EQ(names(), before);
  EXPECT_EQ(read_last_checkpoint(folder_ / "run").progress.epoch, 0);
  writer.write(trainer, data_, later);
  EXPECT_EQ(read_last_checkpoint(folder_ / "run").progress.epoch, 1);
}

TEST_F(CheckpointTest, BrokenCheckpointsAreRefused) {
  EXPECT_FALSE(has_checkpoint(folder_ / "run"));
  expect_contains(refusal([&] { (void)read_last_checkpoint(folder_ / "run"); }),
                  {"has no checkpoint"});
  const TrainConfig config = small_config(SgdAttributes{.momentum = 0.9});
  Trainer trainer(config, data_, make_cpu_device());
  CheckpointWriter(folder_ / "run").write(trainer, data_, {});
  const Checkpoint good = read_last_checkpoint(folder_ / "run");
  expect_contains(refusal([&] { (void)read_best_checkpoint(folder_ / "run"); }), {"no best"});
  // Another optimizer has other state.
  Trainer other(small_config(AdamAttributes{}), data_, make_cpu_device());
  expect_contains(refusal([&] { restore(good, other); }), {"conv1.weight.m", "missing"});
  const auto spoil = [&](const char* name, const std::string& text) {
    std::ofstream(good.folder / name) << text;
    return refusal([&] { (void)read_last_checkpoint(folder_ / "run"); });
  };
  expect_contains(spoil("state.json", "{\"format\": 1"), {"state.json", "broken checkpoint"});
  expect_contains(spoil("state.json", "{\"format\": 2}"), {"format 2"});
  expect_contains(spoil("state.json", "{\"format\": 1, \"model\": 3}"), {"broken checkpoint"});
  std::ofstream(folder_ / "run" / "LAST") << "../../etc\n";
  expect_contains(refusal([&] { (void)read_last_checkpoint(folder_ / "run"); }), {"LAST"});
}

TEST_F(CheckpointTest, EveryDifferentSettingIsNamed) {
  const TrainConfig config = small_config(SgdAttributes{.momentum = 0.9});
  const Settings saved = settings_of(config, data_);
  EXPECT_TRUE(differences(saved, settings_of(config, data_)).empty());
  TrainConfig other = config;
  other.step.model.name = "mlp";
  other.step.model.options["hidden"] = "20";
  other.step.batch = 32;
  other.step.optimizer = AdamAttributes{};
  other.seed = 6;
  other.schedule.kind = Schedule::Kind::cosine;
  Split changed = data_;
  changed.train.pixels[77] ^= 1;
  std::string all;
  for (const std::string& line : differences(saved, settings_of(other, changed)))
    all += line + '\n';
  expect_contains(all, {"model: mnist_cnn in the checkpoint, mlp now",
                        "option hidden: not set in the checkpoint, 20 now",
                        "batch: 16 in the checkpoint, 32 now", "optimizer: sgd, momentum 0.9",
                        "seed: 5", "schedule:", "contents of the data:"});
}

TEST_F(CheckpointTest, EachPrecisionIsASettingOfItsOwn) {
  std::set<std::string> names;
  for (const Precision precision :
       {Precision::fp32, Precision::tf32, Precision::bf16, Precision::fp16}) {
    TrainConfig config = small_config(SgdAttributes{.momentum = 0.9});
    config.step.precision = precision;
    names.insert(settings_of(config, data_).at("precision"));
  }
  EXPECT_EQ(names, (std::set<std::string>{"fp32", "tf32", "bf16", "fp16"}));
}

TEST_F(CheckpointTest, OfAnOldCheckpointOnlyFp16IsKnown) {
  const TrainConfig config = small_config(SgdAttributes{.momentum = 0.9});
  Trainer trainer(config, data_, make_cpu_device());
  Checkpoint old;
  old.settings = settings_of(config, data_);
  old.settings["precision"] = "f32";
  Checkpoint read = parse_checkpoint(checkpoint_text(old), "state.json");
  check_settings(read, config, data_);
  EXPECT_EQ(changes_since(read, trainer),
            std::vector<std::string>{"precision: unknown in the checkpoint, fp32 now"});
  old.progress.result.scaling = LossScaling{};
  read = parse_checkpoint(checkpoint_text(old), "state.json");
  expect_contains(refusal([&] { check_settings(read, config, data_); }),
                  {"precision: fp16 in the checkpoint, fp32 now"});
}

TEST_F(CheckpointTest, DeviceThreadsAndDeterminismMayChangeAndAreTold) {
  TrainConfig config = small_config(SgdAttributes{.momentum = 0.9});
  Trainer trainer(config, data_, make_cpu_device());
  CheckpointWriter(folder_ / "run").write(trainer, data_, {});
  Checkpoint checkpoint = read_last_checkpoint(folder_ / "run");
  EXPECT_TRUE(changes_since(checkpoint, trainer).empty());
  checkpoint.surroundings["device"] = "cuda:0 (a GPU)";
  config.plan.deterministic = true;
  check_settings(checkpoint, config, data_);
  Trainer other(config, data_, make_cpu_device());
  restore(checkpoint, other);
  const std::vector<std::string>& changes = other.beginning().changes;
  ASSERT_EQ(changes.size(), 1U);
  expect_contains(changes[0], {"after 0 steps", "deterministic: no in the checkpoint, yes now",
                               "device: cuda:0 (a GPU) in the checkpoint, cpu"});
  // What one part of a training did otherwise is known to all later ones.
  CheckpointWriter(folder_ / "later").write(other, data_, other.beginning());
  EXPECT_EQ(read_last_checkpoint(folder_ / "later").progress.changes, changes);
}

TEST_F(CheckpointTest, ChoicesOfAutoComeFromTheCheckpoint) {
  TrainConfig config = small_config(SgdAttributes{.momentum = 0.9});
  config.plan.backend = "auto";
  config.plan.choices = std::make_shared<PlanChoices>();
  Trainer first(config, data_, make_cpu_device());
  ASSERT_FALSE(config.plan.choices->empty());
  CheckpointWriter(folder_ / "run").write(first, data_, {});
  Checkpoint checkpoint = read_last_checkpoint(folder_ / "run");
  EXPECT_EQ(checkpoint.choices, *config.plan.choices);
  // Whatever was chosen is followed, not measured again.
  for (auto& [key, providers] : checkpoint.choices) {
    std::fill(providers.begin(), providers.end(), "native");
  }
  config.plan.choices = std::make_shared<PlanChoices>(checkpoint.choices);
  Trainer second(config, data_, make_cpu_device());
  for (const Step& step : second.runner().session().plan(second.training_plan()).steps) {
    EXPECT_EQ(step.provider, "native") << step.kernel_name();
  }
  EXPECT_EQ(*config.plan.choices, checkpoint.choices);
}

TEST_F(CheckpointTest, ChoicesOfLibrariesComeFromTheCheckpoint) {
  const std::string key = "a product | a GPU | a version";
  const std::vector<std::string> measured = {"eng62{2=0}", "0.001"};
  store_choice(folder_ / "here.json", key, measured);
  const TrainConfig config = small_config(SgdAttributes{.momentum = 0.9});
  Trainer trainer(config, data_, make_cpu_device());
  CheckpointWriter(folder_ / "run").write(trainer, data_, {});
  // Elsewhere something else was measured, or nothing yet.
  store_choice(folder_ / "elsewhere.json", key, {"eng5", "0.002"});
  prefer_choices(read_last_checkpoint(folder_ / "run").library_choices);
  EXPECT_EQ(load_choice(folder_ / "elsewhere.json", key), measured);
  EXPECT_EQ(load_choice({}, key), measured);
  EXPECT_TRUE(load_choice(folder_ / "elsewhere.json", "another product").empty());
  prefer_choices({});
  EXPECT_EQ(load_choice(folder_ / "elsewhere.json", key).at(0), "eng5");
}

TEST_F(CheckpointTest, OtherKernelsAreTold) {
  TrainConfig config = small_config(SgdAttributes{.momentum = 0.9});
  config.plan.backend = "auto";
  config.plan.choices = std::make_shared<PlanChoices>();
  Trainer first(config, data_, make_cpu_device());
  CheckpointWriter(folder_ / "run").write(first, data_, {});
  Checkpoint checkpoint = read_last_checkpoint(folder_ / "run");
  EXPECT_EQ(checkpoint.kernels, first.kernels());
  EXPECT_TRUE(changes_since(checkpoint, first).empty());
  // As where another machine measures otherwise.
  for (auto& [key, providers] : *config.plan.choices) {
    std::fill(providers.begin(), providers.end(), "native");
  }
  Trainer native(config, data_, make_cpu_device());
  CheckpointWriter(folder_ / "native").write(native, data_, {});
  for (auto& [key, providers] : *config.plan.choices) {
    std::fill(providers.begin(), providers.end(), "onednn");
  }
  Trainer other(config, data_, make_cpu_device());
  checkpoint = read_last_checkpoint(folder_ / "native");
  const std::vector<std::string> changes = changes_since(checkpoint, other);
  ASSERT_EQ(changes.size(), 1U);
  expect_contains(changes[0], {"kernels: ", "in the checkpoint", "now"});
  // One that an engine of a library took the place of.
  checkpoint.kernels = other.kernels();
  checkpoint.kernels[3] = "cudnn:conv2d/eng62{2=0}";
  expect_contains(changes_since(checkpoint, other).at(0),
                  {"1 of", "kernels: cudnn:conv2d/eng62{2=0} in the checkpoint, "});
  // A checkpoint of a former version does not tell.
  checkpoint.kernels.clear();
  EXPECT_TRUE(changes_since(checkpoint, other).empty());
}

TEST(ExportWeights, AStateDictHasTheCountersOfPyTorch) {
  const std::vector<Parameter> network = {{"bn.weight", {2}, Role::parameter, {}},
                                          {"bn.bias", {2}, Role::parameter, {}},
                                          {"bn.running_mean", {2}, Role::statistics, {}},
                                          {"bn.running_var", {2}, Role::statistics, {}},
                                          {"fc.weight", {3, 2}, Role::parameter, {}}};
  const StateDict dict = state_dict(network, "small", nullptr, 0, 7);
  std::vector<std::string> names;
  for (const WeightTensor& tensor : dict.tensors) names.push_back(tensor.name);
  EXPECT_EQ(names,
            (std::vector<std::string>{"bn.weight", "bn.bias", "bn.running_mean", "bn.running_var",
                                      "bn.num_batches_tracked", "fc.weight"}));
  EXPECT_EQ(dict.tensors[4].text(), "scalar i64");
  EXPECT_EQ(static_cast<int>(dict.tensors[4].bytes[0]), 7);
}

}  // namespace
}  // namespace ridgeline
