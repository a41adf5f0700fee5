// Ranks that compute on GPUs, joined by NCCL. Skipped where there is no GPU. Where there are fewer
// GPUs than ranks they share one, which is slow and right.

#include <gtest/gtest.h>

#include <cmath>
#include <cstring>
#include <nlohmann/json.hpp>

#include "backends/nccl/backend.h"
#include "base/error.h"
#include "data/synthetic.h"
#include "lab/rank_device.h"
#include "support/program.h"
#include "support/rank_jobs.h"
#include "train/trainer.h"

namespace ridgeline {
namespace {

using testing::contains;
using testing::contents_of;
using testing::count_of;
using testing::mpirun;
using testing::Outcome;
using testing::processes_in;
namespace fs = std::filesystem;

class GpuRanks : public testing::RankTest {
 protected:
  void SetUp() override {
    RankTest::SetUp();
    if (IsSkipped()) return;
    if (const std::string reason = nccl::unavailable(); !reason.empty()) GTEST_SKIP() << reason;
    (void)setenv(kShareGpu, "1", 1);
  }
  void TearDown() override {
    (void)unsetenv(kShareGpu);
    RankTest::TearDown();
  }
};

// ---- Through the library: what the worker below trains as one of two ranks, one process trains
// alone.

struct GpuCase {
  const char* name;
  const char* model;
  std::int64_t side;
  Precision precision;
  DType wire;
  bool synchronise;
  std::int64_t micro_batch;
  double clip_norm, learning_rate;
  // Relative, of losses and of what all steps together have changed the weights by.
  double loss_tolerance, change_tolerance;
};

// A bucket of 64 KiB makes several of them. Norms over few samples magnify rounding from step to
// step: those networks hardly move. Without synchronised norms a rank sees other statistics than
// one process does.
constexpr double kRate = 0.005, kSmallRate = 1e-5;
constexpr auto kFp32 = Precision::fp32, kBf16 = Precision::bf16, kFp16 = Precision::fp16;
constexpr GpuCase kGpuCases[] = {
    {"mlp", "mlp", 12, kFp32, DType::f32, false, 0, 0.0, kRate, 1e-5, 1e-3},
    {"cnn", "mnist_cnn", 28, kFp32, DType::f32, false, 0, 0.0, kRate, 1e-5, 1e-3},
    {"cnn_bf16", "mnist_cnn", 28, kBf16, DType::f32, false, 0, 0.0, kRate, 2e-2, 0.2},
    {"cnn_fp16", "mnist_cnn", 28, kFp16, DType::f32, false, 0, 0.0, kRate, 1e-2, 0.1},
    {"cnn_to_bf16", "mnist_cnn", 28, kFp32, DType::bf16, false, 0, 0.0, kRate, 1e-2, 0.1},
    {"cnn_to_fp16", "mnist_cnn", 28, kBf16, DType::f16, false, 0, 0.0, kRate, 2e-2, 0.2},
    {"cnn_passes", "mnist_cnn", 28, kFp32, DType::f32, false, 4, 0.5, kRate, 1e-5, 1e-3},
    {"resnet", "resnet18", 32, kFp32, DType::f32, true, 0, 0.0, kSmallRate, 1e-3, 2e-2},
    {"resnet_bf16", "resnet18", 32, kBf16, DType::f32, true, 0, 0.0, kSmallRate, 5e-2, 0.4},
    {"resnet_plain", "resnet18", 32, kBf16, DType::f32, false, 0, 0.0, kSmallRate, 0.5, 1.5},
};

struct GpuResult {
  std::vector<double> losses;  // of the epochs, and of the test
  std::string weights;         // all bytes, running statistics too
  std::vector<float> change;   // of the weights alone
  bool recorded = false;
};

// The weights alone, as f32, one behind the other.
std::vector<float> weights_of(Trainer& trainer) {
  std::vector<float> all;
  for (const StepRunner::NamedTensor& tensor : trainer.runner().read_weights()) {
    if (contains(tensor.name, "running_")) continue;
    const auto* values = reinterpret_cast<const float*>(tensor.bytes.data());
    all.insert(all.end(), values, values + tensor.bytes.size() / sizeof(float));
  }
  return all;
}

double norm_of(const std::vector<float>& values) {
  double squares = 0.0;
  for (const float value : values) squares += double{value} * double{value};
  return std::sqrt(squares);
}

GpuResult trained(const GpuCase& p, Ranks* ranks) {
  const Split data = make_synthetic({.channels = 3,
                                     .height = p.side,
                                     .width = p.side,
                                     .classes = 4,
                                     .count = 65,  // the last batch has 1, and one rank none
                                     .test_count = 7,
                                     .seed = 3});
  TrainConfig config;
  config.step.model.name = p.model;
  config.step.model.channels = 3;
  config.step.model.height = config.step.model.width = p.side;
  config.step.model.classes = 4;
  config.step.batch = 16;
  config.step.precision = p.precision;
  config.step.optimizer = SgdAttributes{.momentum = 0.9};
  config.step.clip_norm = p.clip_norm;
  config.plan.backend = "cuda";
  config.learning_rate = p.learning_rate;
  if (p.side == 32) config.last_batch = LastBatch::drop;
  config.epochs = 3;
  config.seed = 1;
  config.ranks = ranks;
  config.synchronise_norms = ranks != nullptr && p.synchronise;
  config.micro_batch = p.micro_batch;
  config.bucket_bytes = 64 << 10;
  config.wire = ranks != nullptr ? p.wire : DType::f32;
  static const std::string device =
      ranks != nullptr ? device_of_rank("cuda", *ranks) : std::string("cuda:0");
  Trainer trainer(config, data, ranks != nullptr ? make_rank_device(device) : make_device(device));
  GpuResult found;
  found.change = weights_of(trainer);
  TrainObserver silent;
  const TrainResult result = trainer.train(silent);
  const std::vector<float> after = weights_of(trainer);
  for (std::size_t i = 0; i < after.size(); ++i) found.change[i] = after[i] - found.change[i];
  for (const EpochResult& epoch : result.epochs) found.losses.push_back(epoch.train_loss);
  found.losses.push_back(*result.final_test_loss);
  for (const StepRunner::NamedTensor& tensor : trainer.runner().read_weights()) {
    found.weights.append(reinterpret_cast<const char*>(tensor.bytes.data()), tensor.bytes.size());
  }
  found.recorded = trainer.runner().session().is_recorded(trainer.training_plan());
  return found;
}

// Started by the test below as one of two ranks. Rank 0 writes a line of losses for each case.
TEST(GpuRankWorker, DISABLED_Trains) {
  join_ranks();
  Ranks& ranks = *joined_ranks();
  std::ofstream losses;
  if (ranks.first()) losses.open("losses");
  for (const GpuCase& p : kGpuCases) {
    const GpuResult once = trained(p, &ranks), again = trained(p, &ranks);
    EXPECT_EQ(once.recorded, nccl::can_be_recorded()) << p.name;
    EXPECT_TRUE(once.weights == again.weights) << p.name << " does not repeat";
    EXPECT_EQ(once.losses, again.losses) << p.name;
    for (const std::string& other : ranks.gather(once.weights)) {
      EXPECT_TRUE(other == once.weights) << p.name << ": ranks differ";
    }
    for (const double loss : once.losses) losses << fmt::format("{:.17g} ", loss);
    losses << std::endl;
    if (!ranks.first()) continue;
    std::ofstream(p.name, std::ios::binary)
        .write(reinterpret_cast<const char*>(once.change.data()),
               static_cast<std::streamsize>(once.change.size() * sizeof(float)));
  }
  ranks.finish();
}

TEST_F(GpuRanks, TrainAsOneProcessDoes) {
  const std::string worker = fs::read_symlink("/proc/self/exe").string() +
                             " --gtest_also_run_disabled_tests --gtest_filter=GpuRankWorker.*";
  const Outcome outcome =
      shell(mpirun(2) + " env -u GTEST_TOTAL_SHARDS -u GTEST_SHARD_INDEX " + worker);
  ASSERT_EQ(outcome.code, 0) << outcome.out << outcome.err;
  std::ifstream losses(folder_ / "losses");
  for (const GpuCase& p : kGpuCases) {
    const GpuResult alone = trained(p, nullptr);
    for (const double expected : alone.losses) {
      double loss = 0.0;
      ASSERT_TRUE(losses >> loss) << p.name;
      EXPECT_NEAR(loss, expected, p.loss_tolerance * expected) << p.name;
    }
    const std::string bytes = contents_of(folder_ / p.name);
    ASSERT_EQ(bytes.size(), alone.change.size() * sizeof(float)) << p.name;
    std::vector<float> difference(alone.change.size());
    std::memcpy(difference.data(), bytes.data(), bytes.size());
    for (std::size_t i = 0; i < difference.size(); ++i) difference[i] -= alone.change[i];
    EXPECT_LT(norm_of(difference), p.change_tolerance * norm_of(alone.change)) << p.name;
    EXPECT_GT(norm_of(alone.change), 0.0) << p.name;
  }
}

// ---- The program.

const char* const kTraining =
    "train mnist_cnn --data synthetic:1x12x12:4:96 --image 12x12 --batch 16 --lr 0.05 --no-store "
    "--threads 1 --json --device cuda ";

std::string state_of(const fs::path& folder) {
  std::string last = contents_of(folder / "LAST");
  last.resize(std::min(last.find_first_of(" \n"), last.size()));
  return contents_of(folder / last / "state.safetensors");
}

double last_loss(const Outcome& outcome) {
  return nlohmann::json::parse(outcome.out)["epochs"].back()["train_loss"].get<double>();
}

TEST_F(GpuRanks, RepeatResumeAndTellWhatJoinsThem) {
  const Outcome one = run(std::string(kTraining) + "--epochs 2 --backend cuda");
  ASSERT_EQ(one.code, 0) << one.err;
  for (const char* name : {"a", "b"}) {
    const Outcome two =
        run(std::string(kTraining) + "--epochs 2 --ranks 2 --checkpoint " + std::string(name));
    ASSERT_EQ(two.code, 0) << two.err;
    EXPECT_NEAR(last_loss(two), last_loss(one), 1e-4);
    const auto json = nlohmann::json::parse(two.out);
    EXPECT_EQ(json["recorded_step"], nccl::can_be_recorded());
    EXPECT_TRUE(contains(json["executor"]["transport"], nccl::version_text())) << json["executor"];
    EXPECT_TRUE(contains(json["kernels"].dump(), "nccl:all_reduce"));
  }
  EXPECT_EQ(state_of(folder_ / "a"), state_of(folder_ / "b"));
  const Outcome longer = run(std::string(kTraining) + "--epochs 3 --backend cuda");
  const Outcome resumed =
      run(std::string(kTraining) + "--epochs 3 --backend cuda --checkpoint a --resume");
  ASSERT_EQ(resumed.code, 0) << resumed.err;
  EXPECT_NEAR(last_loss(resumed), last_loss(longer), 1e-4);
}

TEST_F(GpuRanks, MoreRanksThanGpusAreRefused) {
  (void)unsetenv(kShareGpu);
  const auto ranks = std::to_string(cuda_devices().size() + 1);
  const Outcome outcome = run(std::string(kTraining) + "--epochs 1 --batch 720 --ranks " + ranks);
  EXPECT_EQ(outcome.code, 2) << outcome.err;
  EXPECT_TRUE(contains(outcome.err, "ranks")) << outcome.err;
  EXPECT_TRUE(contains(outcome.err, "GPU")) << outcome.err;
  EXPECT_EQ(count_of(outcome.err, "ridgeline: "), 1U) << outcome.err;
  const Outcome measured = run("env --measure --device cuda --store s.db --ranks " + ranks);
  EXPECT_EQ(measured.code, 2) << measured.err;
  EXPECT_EQ(count_of(measured.err, "ridgeline: "), 1U) << measured.err;
  EXPECT_TRUE(processes_in(folder_).empty());
}

TEST_F(GpuRanks, AnNcclThatCannotBeUsedIsOneLine) {
  fs::create_directory(folder_ / "none");
  std::ofstream(folder_ / "none/libnccl.so.2") << "no library";
  std::vector<std::pair<std::string, const char*>> found = {
      {(folder_ / "none").string(), "NCCL cannot be opened"}};
  const fs::path old = fs::path(testing::program()).replace_filename("old_nccl");
  if (fs::exists(old)) found.emplace_back(old.string(), "NCCL 2.6.4 is too old");
  for (const auto& [folder, reason] : found) {
    const Outcome outcome = shell("env LD_LIBRARY_PATH=" + folder + ":$LD_LIBRARY_PATH " +
                                  testing::program() + " " + kTraining + "--epochs 1 --ranks 2");
    EXPECT_EQ(outcome.code, 2) << outcome.err;
    EXPECT_TRUE(contains(outcome.err, reason)) << outcome.err;
    EXPECT_EQ(count_of(outcome.err, "ridgeline: "), 1U) << outcome.err;
  }
}

void signal_rank_one(const fs::path& folder, int signal) {
  for (const auto& [pid, rank] : processes_in(folder)) {
    if (rank == 1) kill(pid, signal);
  }
}

TEST_F(GpuRanks, AKilledRankEndsTheJobWhichGoesOnFromItsCheckpoint) {
  const std::string call = std::string(kTraining) + "--ranks 2 --epochs 6 ";
  const Outcome whole = run(call + "--checkpoint whole");
  ASSERT_EQ(whole.code, 0) << whole.err;
  testing::Child job(call + "--checkpoint-every 1 --restarts 1 --checkpoint killed", folder_);
  while (!fs::exists(folder_ / "killed" / "LAST")) usleep(1000);
  signal_rank_one(folder_, SIGKILL);
  const Outcome outcome = job.finish();
  EXPECT_EQ(outcome.code, 0) << outcome.err;
  EXPECT_TRUE(contains(outcome.err, "the ranks have failed")) << outcome.err;
  EXPECT_EQ(state_of(folder_ / "killed"), state_of(folder_ / "whole"));
  EXPECT_TRUE(processes_in(folder_).empty());
}

TEST_F(GpuRanks, ASilentRankIsNamed) {
  testing::Child job(
      std::string(kTraining) + "--ranks 2 --epochs 100000 --rank-timeout 3 --checkpoint silent",
      folder_);
  while (!fs::exists(folder_ / "silent" / "LAST")) usleep(1000);
  signal_rank_one(folder_, SIGSTOP);
  const Outcome outcome = job.finish();
  EXPECT_EQ(outcome.code, 1) << outcome.err;
  EXPECT_TRUE(contains(outcome.err, "did not answer within 3 s")) << outcome.err;
  EXPECT_TRUE(processes_in(folder_).empty());
}

TEST_F(GpuRanks, LinksAndStepsAreMeasured) {
  const Outcome links = run("env --measure --ranks 2 --device cuda --json --store s.db");
  ASSERT_EQ(links.code, 0) << links.err;
  const auto json = nlohmann::json::parse(links.out);
  EXPECT_GE(json["ceilings"].size(), 30U);
  for (const auto& ceiling : json["ceilings"]) EXPECT_EQ(ceiling["device"], "gpu-ranks:2");
  const Outcome bench =
      run("bench mlp --image 12 --batch 16 --device cuda:0 --ranks 1,2 --scaling weak --warmup 1 "
          "--iterations 12 --telemetry 0 --json --store s.db");
  ASSERT_EQ(bench.code, 0) << bench.err;
  const auto results = nlohmann::json::parse(bench.out)["results"];
  ASSERT_EQ(results.size(), 2U);
  EXPECT_EQ(results[1]["ranks"], 2);
  EXPECT_EQ(results[1]["backend"], "cuda");
  EXPECT_TRUE(results[1]["exchange_ms"].is_null()) << "the host cannot see it";
}

}  // namespace
}  // namespace ridgeline
