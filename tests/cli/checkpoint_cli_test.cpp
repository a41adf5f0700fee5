// Checkpoints, weights and export through the program itself: killed at any moment, interrupted,
// resumed, and read by PyTorch.

#include <gtest/gtest.h>

#include <chrono>
#include <fstream>
#include <nlohmann/json.hpp>
#include <thread>

#include "base/philox.h"
#include "base/text_file.h"
#include "store/store.h"
#include "support/data_files.h"
#include "support/program.h"
#include "train/checkpoint.h"

namespace ridgeline {
namespace {

namespace fs = std::filesystem;
using testing::Child;
using testing::expect_contains;
using testing::Outcome;

const std::string kTrain =
    "train mnist_cnn --threads 1 --data synthetic:1x12x12:4:960 --batch 16 --momentum 0.9 --flip ";

class CheckpointCli : public testing::FileTest {
 protected:
  [[nodiscard]] Outcome run(const std::string& arguments) const {
    return Child(arguments, folder_).finish();
  }
  // The bytes of every tensor in the last checkpoint.
  [[nodiscard]] std::map<std::string, std::vector<std::byte>> tensors(
      const std::string& name) const {
    const Checkpoint checkpoint = read_last_checkpoint(folder_ / name);
    std::map<std::string, std::vector<std::byte>> all;
    for (const WeightTensor& tensor : checkpoint.tensors.tensors) {
      all[tensor.name].assign(tensor.bytes.begin(), tensor.bytes.end());
    }
    return all;
  }
};

class SlowCheckpointCli : public CheckpointCli {};

TEST_F(SlowCheckpointCli, KilledAtAnyMomentTheCheckpointIsWholeAndTheEndTheSame) {
  const std::string training = kTrain + "--epochs 12 --checkpoint-every 3 --checkpoint ";
  ASSERT_EQ(run(training + "whole").code, 0);
  PhiloxSequence random(1, RandomStream::synthetic, 0);
  std::int64_t steps = 0;
  for (int i = 0; i < 10; ++i) {
    const bool there = has_checkpoint(folder_ / "killed");
    Child child(training + "killed" + (there ? " --resume" : ""), folder_);
    // Past the set-up, then at any moment.
    child.wait_for("train loss");
    std::this_thread::sleep_for(std::chrono::milliseconds(random.below(150)));
    child.send(SIGKILL);
    (void)child.finish();
    if (!has_checkpoint(folder_ / "killed")) continue;
    const Checkpoint last = read_last_checkpoint(folder_ / "killed");
    EXPECT_EQ(last.tensors.tensors.size(), 16U);
    EXPECT_GE(last.progress.result.steps, steps) << "progress was lost";
    steps = last.progress.result.steps;
  }
  ASSERT_TRUE(has_checkpoint(folder_ / "killed"));
  const Outcome outcome = run(training + "killed --resume");
  ASSERT_EQ(outcome.code, 0) << outcome.err;
  expect_contains(outcome.out, {"resumed    killed/checkpoint-"});
  EXPECT_EQ(tensors("killed"), tensors("whole"));
}

TEST_F(CheckpointCli, CtrlCAndSigtermSaveACheckpointThatResumes) {
  const std::string training = kTrain + "--epochs 4 --backend reference --checkpoint ";
  ASSERT_EQ(run(training + "whole").code, 0);
  for (const int signal : {SIGINT, SIGTERM}) {
    const std::string name = signal == SIGINT ? "int" : "term";
    Child child(training + name, folder_);
    child.wait_for("\n        1 ");
    child.send(signal);
    EXPECT_EQ(child.finish().code, 128 + signal);
    const Outcome outcome = run(training + name + " --resume --json");
    ASSERT_EQ(outcome.code, 0) << outcome.err;
    EXPECT_EQ(nlohmann::json::parse(outcome.out).at("epochs").size(), 4U);
    EXPECT_EQ(tensors(name), tensors("whole"));
  }
}

// The tests would take minutes, and so would a step: neither is waited for.
TEST_F(CheckpointCli, AnInterruptionIsObeyedWithinTestsAndSteps) {
  const std::string slow =
      "train resnet18 --backend reference --threads 1 --image 96x96 --data "
      "synthetic:3x96x96:4:2000 --checkpoint ";
  Child tested(slow + "test --batch 1 --limit 1 --eval-batch 64 --epochs 2", folder_);
  // The epoch is saved before it is tested.
  while (!has_checkpoint(folder_ / "test")) {
    std::this_thread::sleep_for(std::chrono::milliseconds(20));
  }
  tested.send(SIGTERM);
  const Outcome outcome = tested.finish();
  EXPECT_EQ(outcome.code, 128 + SIGTERM);
  expect_contains(outcome.out, {"n/a  interrupted", "interrupted: these are the results so far"});
  EXPECT_TRUE(read_last_checkpoint(folder_ / "test").progress.untested);

  Child stepping(slow + "step --batch 1000", folder_);
  stepping.wait_for("train loss");
  stepping.send(SIGTERM);
  EXPECT_EQ(stepping.finish().code, 128 + SIGTERM);
  EXPECT_EQ(read_last_checkpoint(folder_ / "step").progress.result.steps, 0);
}

TEST_F(CheckpointCli, WrongUseIsRefusedWithTheReason) {
  const auto expect_refused = [&](const std::string& arguments,
                                  const std::vector<std::string>& parts) {
    SCOPED_TRACE(arguments);
    const Outcome outcome = run(arguments);
    EXPECT_EQ(outcome.code, 2) << outcome.err;
    expect_contains(outcome.err, parts);
  };
  const std::string train =
      "train mlp --backend reference --threads 1 --data synthetic:1x8x8:4:64 --batch 16 --epochs "
      "1 ";
  ASSERT_EQ(run(train + "--checkpoint run").code, 0);
  expect_refused(train + "--checkpoint run", {"run: already has a checkpoint", "--resume"});
  expect_refused(train + "--checkpoint none --resume", {"no checkpoint to resume"});
  EXPECT_FALSE(fs::exists(folder_ / "none"));
  expect_refused(train + "--resume", {"--resume needs --checkpoint"});
  expect_refused(train + "--checkpoint-every 3", {"needs --checkpoint"});
  expect_refused(train + "--checkpoint run --resume --weights x", {"cannot be combined"});
  expect_refused(train + "--checkpoint run --resume --batch 8 --seed 3 --optimizer adam",
                 {"other settings", "batch: 16 in the checkpoint, 8 now", "seed: 0", "optimizer"});
  expect_refused(train + "--weights none.pth", {"none.pth", "cannot be opened"});
  expect_refused(train + "--schedule cosin", {"'cosine'"});
  expect_refused(train + "--gamma 0.5", {"--schedule step"});
  expect_refused(train + "--warmup 1", {"warm-up of 1"});
  expect_refused("export mlp", {"--out"});
  expect_refused("export mlp --best --out x", {"--best needs --checkpoint"});
  expect_refused("export mnist_cnn --checkpoint run --out x",
                 {"checkpoint of mlp, not of mnist_cnn"});
  expect_refused("export mlp --out none/x.safetensors", {"none/x.safetensors"});
}

TEST_F(CheckpointCli, ResumingChecksThePrecisionAndStoresWhatChanged) {
  const std::string train =
      "train mlp --backend reference --data synthetic:1x8x8:4:64 --batch 16 --checkpoint run ";
  ASSERT_EQ(run(train + "--epochs 1 --threads 1").code, 0);
  const fs::path state = read_last_checkpoint(folder_ / "run").folder / "state.json";
  const std::string text = read_text(state);
  const std::string entry = R"("precision": "fp32")";
  ASSERT_NE(text.find(entry), text.npos);
  std::ofstream(state) << std::string(text).replace(text.find(entry), entry.size(),
                                                    R"("precision": "bf16")");
  const Outcome refused = run(train + "--epochs 2 --threads 1 --resume");
  EXPECT_EQ(refused.code, 2);
  expect_contains(refused.err, {"precision: bf16 in the checkpoint, fp32 now"});
  std::ofstream(state) << text;
  const Outcome told = run(train + "--epochs 2 --threads 2 --deterministic --resume --store s.db");
  EXPECT_EQ(told.code, 0) << told.err;
  const std::string changes =
      "deterministic: no in the checkpoint, yes now; threads: 1 in the checkpoint, 2 now";
  expect_contains(told.out, {"changed    " + changes});
  const Store store(folder_ / "s.db");
  const RunRecord stored = store.runs().at(0);
  EXPECT_TRUE(stored.executor.deterministic);
  EXPECT_EQ(stored.executor.threads, 2);
  expect_contains(stored.notes.at("resumed_with_changes"),
                  {"after 4 steps deterministic: no", "threads: 1 in the checkpoint, 2 now"});
}

TEST_F(CheckpointCli, AResumedTrainingIsStoredAsAPartOfTheWhole) {
  const std::string train =
      "train mlp --backend reference --threads 1 --data synthetic:1x8x8:4:64 --batch 16 ";
  ASSERT_EQ(run("export mlp --image 8x8 --classes 4 --out mlp.safetensors").code, 0);
  ASSERT_EQ(run(train + "--checkpoint run --epochs 3 --store s.db --weights mlp.safetensors").code,
            0);
  const Outcome outcome = run(train + "--checkpoint run --epochs 5 --store s.db --resume");
  ASSERT_EQ(outcome.code, 0) << outcome.err;
  const Store store(folder_ / "s.db");
  const RunRecord first = store.runs().at(0), second = store.runs().at(1);
  EXPECT_EQ(first.work.first_epoch, 0);
  EXPECT_EQ(second.work.first_epoch, 3);
  EXPECT_FALSE(first.work.weights.empty());
  EXPECT_EQ(second.work.weights, first.work.weights);
  EXPECT_FALSE(first.numbers.contains("former_seconds"));
  EXPECT_EQ(second.numbers.at("former_seconds"), first.numbers.at("training_seconds"));
  EXPECT_EQ(second.numbers.at("former_best_test_accuracy"), first.numbers.at("best_test_accuracy"));
  EXPECT_GE(second.numbers.at("best_test_accuracy"), first.numbers.at("best_test_accuracy"));
  EXPECT_EQ(second.numbers.at("training_steps"), 20.0);
  double seconds = second.numbers.at("former_seconds") + second.numbers.at("first_step_seconds");
  for (const EpochRecord& epoch : store.epochs(second.id)) seconds += epoch.seconds;
  EXPECT_NEAR(second.numbers.at("training_seconds"), seconds, 1e-9);
  EXPECT_GT(second.numbers.at("total_seconds"), second.numbers.at("training_seconds"));
}

TEST_F(CheckpointCli, ExportedWeightsTrainOnAndGetANewHead) {
  const std::string train =
      "train mlp --backend reference --threads 1 --batch 16 --epochs 1 --data synthetic:1x8x8:";
  ASSERT_EQ(run(train + "4:64 --checkpoint run").code, 0);
  ASSERT_EQ(run("export --checkpoint run --best --out mlp.safetensors").code, 0);
  const Outcome same = run(train + "4:64 --weights mlp.safetensors");
  EXPECT_EQ(same.code, 0) << same.err;
  expect_contains(same.out, {"mlp.safetensors (safetensors), 4 tensors loaded"});
  EXPECT_EQ(same.out.find("new head"), std::string::npos);
  const Outcome other = run(train + "6:64 --weights mlp.safetensors");
  EXPECT_EQ(other.code, 0) << other.err;
  expect_contains(other.out,
                  {"2 tensors loaded", "new head", "fc2.weight (4x10 in the file, 6x10 here)"});
  const Outcome wrong = run(train + "4:64 --set hidden=20 --weights mlp.safetensors");
  EXPECT_EQ(wrong.code, 2);
  expect_contains(wrong.err, {"do not fit mlp", "fc1.weight", "10x64", "20x64"});
}

TEST_F(CheckpointCli, TheScheduleIsShownWhereTheRateChanges) {
  const std::string train =
      "train mlp --backend reference --threads 1 --batch 16 --epochs 3 --data "
      "synthetic:1x8x8:4:64 ";
  const Outcome constant = run(train);
  EXPECT_EQ(constant.out.find("  lr  "), std::string::npos);
  const Outcome stepped = run(train + "--schedule step --step-size 1 --gamma 0.1 --lr 0.5");
  expect_contains(stepped.out, {"        lr  ", "       0.5  ", "      0.05  ", "     0.005  ",
                                "schedule   times 0.1 every 1 epochs"});
  const auto document =
      nlohmann::json::parse(run(train + "--schedule cosine --warmup 1 --lr 1 --json").out);
  EXPECT_EQ(document.at("epochs")[0].at("learning_rate"), 0.01);
  EXPECT_EQ(document.at("epochs")[2].at("learning_rate"), 0.5);
}

class SlowExportPeer : public CheckpointCli {};

TEST_F(SlowExportPeer, PyTorchLoadsWhatWasExported) {
  if (std::system("/usr/bin/python3 -c 'import torch' >/dev/null 2>&1") != 0) {
    GTEST_SKIP() << "/usr/bin/python3 has no torch";
  }
  ASSERT_EQ(run("export mnist_cnn --seed 3 --out exported.safetensors").code, 0);
  std::ofstream(folder_ / "script.py") << R"(
import json, struct, torch

def read(path):
    data = open(path, 'rb').read()
    size, = struct.unpack('<Q', data[:8])
    header = json.loads(data[8:8 + size])
    types = {'F32': torch.float32, 'I64': torch.int64}
    state = {}
    for name, about in header.items():
        if name == '__metadata__': continue
        begin, end = about['data_offsets']
        piece = bytearray(data[8 + size + begin:8 + size + end])
        state[name] = torch.frombuffer(piece, dtype=types[about['dtype']]).reshape(about['shape'])
    return state

class Net(torch.nn.Module):
    def __init__(self):
        super().__init__()
        self.conv1 = torch.nn.Conv2d(1, 8, 3)
        self.conv2 = torch.nn.Conv2d(8, 16, 3)
        self.fc1 = torch.nn.Linear(400, 128)
        self.fc2 = torch.nn.Linear(128, 10)

net = Net()
net.load_state_dict(read('exported.safetensors'), strict=True)
# And back, as PyTorch writes it.
torch.save(net.state_dict(), 'back.pth')
)";
  const std::string command = "cd '" + folder_.string() + "' && /usr/bin/python3 script.py 2>&1";
  ASSERT_EQ(std::system(command.c_str()), 0);
  ASSERT_EQ(run("export mnist_cnn --weights back.pth --out again.safetensors").code, 0);
  const WeightFile first = open_weights(folder_ / "exported.safetensors");
  const WeightFile again = open_weights(folder_ / "again.safetensors");
  ASSERT_EQ(first.tensors.size(), 8U);
  for (const WeightTensor& tensor : first.tensors) {
    const WeightTensor* other = again.find(tensor.name);
    ASSERT_NE(other, nullptr) << tensor.name;
    EXPECT_EQ(other->dims, tensor.dims);
    EXPECT_EQ(other->to_float(), tensor.to_float());
  }
}

}  // namespace
}  // namespace ridgeline
