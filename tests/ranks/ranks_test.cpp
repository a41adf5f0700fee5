// Several processes that train together, joined by the MPI that is installed: the same results as
// one process, and an end with a reason when one of them fails.

#include "ranks/ranks.h"

#include <gtest/gtest.h>

#include <cmath>
#include <nlohmann/json.hpp>

#include "data/synthetic.h"
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

class Ranks : public testing::RankTest {
 protected:
  // The state of the last checkpoint in a folder.
  [[nodiscard]] std::string state_in(const std::string& folder) const {
    std::string last = contents_of(folder_ / folder / "LAST");
    last.resize(std::min(last.find_first_of(" \n"), last.size()));
    return contents_of(folder_ / folder / last / "state.safetensors");
  }

  // Of the last one, on the test part and on the training part.
  static std::pair<double, double> losses_of(const Outcome& outcome) {
    const auto json = nlohmann::json::parse(outcome.out);
    const auto& epoch = json["epochs"].back();
    return {epoch["train_loss"].get<double>(), json["final_test_accuracy"].get<double>()};
  }
};

// ---- In float64: what the worker below trains as one of several ranks, one process trains alone.

struct RankCase {
  const char* name;
  const char* model;
  std::int64_t side, batch, samples, epochs;
  double learning_rate;
  LastBatch last_batch;
  bool synchronise;
  std::int64_t micro_batch, bucket;
};

// 50 samples in batches of 12 leave 2, of which two of four ranks have none. Shufflenet's last
// statistics are over 8 values: their rounding is magnified from layer to layer, and with the usual
// learning rate from step to step as well.
constexpr RankCase kRankCases[] = {
    {"mlp", "mlp", 12, 12, 50, 4, 0.01, LastBatch::smaller, false, 0, kBucketBytes},
    {"small_buckets", "mnist_cnn", 12, 12, 50, 4, 0.01, LastBatch::smaller, false, 0, 1},
    {"passes", "mnist_cnn", 12, 12, 50, 4, 0.01, LastBatch::smaller, false, 2, 5000},
    {"synchronised_norms", "shufflenet_v2_x0_5", 32, 8, 40, 1, 1e-5, LastBatch::drop, true, 0,
     kBucketBytes},
};

// Losses of the epochs, then all weights and running statistics.
std::vector<double> trained(const RankCase& p, ridgeline::Ranks* ranks) {
  const Split data = make_synthetic({.channels = 3,
                                     .height = p.side,
                                     .width = p.side,
                                     .classes = 4,
                                     .count = p.samples,
                                     .test_count = 7,
                                     .seed = 3});
  TrainConfig config;
  config.step.model.name = p.model;
  config.step.model.channels = 3;
  config.step.model.height = config.step.model.width = p.side;
  config.step.model.classes = 4;
  config.step.batch = p.batch;
  config.step.dtype = DType::f64;
  config.step.optimizer = SgdAttributes{.momentum = 0.9};
  config.plan.backend = "reference";
  config.learning_rate = p.learning_rate;
  config.epochs = p.epochs;
  config.eval_every = p.epochs;
  config.last_batch = p.last_batch;
  config.seed = 1;
  config.ranks = ranks;
  config.synchronise_norms = p.synchronise;
  config.micro_batch = ranks != nullptr ? p.micro_batch : 0;
  config.bucket_bytes = p.bucket;
  Trainer trainer(config, data, make_cpu_device());
  TrainObserver silent;
  const TrainResult result = trainer.train(silent);
  EXPECT_EQ(result.steps, 5 * p.epochs);
  std::vector<double> numbers = {*result.final_test_loss, *result.final_test_accuracy};
  for (const EpochResult& epoch : result.epochs) numbers.push_back(epoch.train_loss);
  for (const StepRunner::NamedTensor& tensor : trainer.runner().read_weights()) {
    const auto* values = reinterpret_cast<const double*>(tensor.bytes.data());
    numbers.insert(numbers.end(), values, values + tensor.bytes.size() / sizeof(double));
  }
  return numbers;
}

// Started by the test below as one of several ranks.
TEST(RankWorker, DISABLED_Trains) {
  join_ranks();
  ridgeline::Ranks& ranks = *joined_ranks();
  for (const RankCase& p : kRankCases) {
    const std::vector<double> numbers = trained(p, &ranks);
    const std::string own(reinterpret_cast<const char*>(numbers.data()),
                          numbers.size() * sizeof(double));
    const std::vector<std::string> all = ranks.gather(own);
    for (const std::string& other : all) EXPECT_EQ(other == own, true) << "ranks differ";
    if (ranks.first()) std::ofstream(p.name, std::ios::binary) << own;
  }
  ranks.finish();
}

TEST_F(Ranks, TrainAsOneProcessDoes) {
  const std::string worker = fs::read_symlink("/proc/self/exe").string() +
                             " --gtest_also_run_disabled_tests --gtest_filter=RankWorker.*";
  std::vector<std::vector<double>> alone;
  for (const RankCase& p : kRankCases) alone.push_back(trained(p, nullptr));
  for (const int ranks : {2, 4}) {
    // The ranks run this one test, whichever share of the tests this process has.
    const Outcome outcome =
        shell(mpirun(ranks) + " env -u GTEST_TOTAL_SHARDS -u GTEST_SHARD_INDEX OMP_NUM_THREADS=1 " +
              worker);
    ASSERT_EQ(outcome.code, 0) << outcome.out << outcome.err;
    for (std::size_t i = 0; i < std::size(kRankCases); ++i) {
      const std::string bytes = contents_of(folder_ / kRankCases[i].name);
      ASSERT_EQ(bytes.size(), alone[i].size() * sizeof(double)) << kRankCases[i].name;
      const auto* together = reinterpret_cast<const double*>(bytes.data());
      double largest = 0.0;
      for (std::size_t n = 0; n < alone[i].size(); ++n) {
        const double difference = std::abs(together[n] - alone[i][n]);
        largest = std::max(largest, difference / std::max(1.0, std::abs(alone[i][n])));
      }
      EXPECT_LT(largest, 1e-10) << kRankCases[i].name << ", " << ranks << " ranks";
      EXPECT_GT(largest, 0.0) << kRankCases[i].name << ": the same sums in another order?";
    }
  }
}

// ---- The program.

const char* const kTraining =
    "train mnist_cnn --data synthetic:1x12x12:4:96 --image 12x12 --batch 16 --lr 0.05 --no-store "
    "--threads 1 --json ";

TEST_F(Ranks, RepeatBitForBitAndResumeWithAnotherNumber) {
  const Outcome one = run(std::string(kTraining) + "--epochs 2");
  ASSERT_EQ(one.code, 0) << one.err;
  for (const char* name : {"a", "b"}) {
    const Outcome two =
        run(std::string(kTraining) + "--epochs 2 --ranks 2 --checkpoint " + std::string(name));
    ASSERT_EQ(two.code, 0) << two.err;
    EXPECT_NEAR(losses_of(two).first, losses_of(one).first, 1e-4);
    EXPECT_EQ(losses_of(two).second, losses_of(one).second);
  }
  EXPECT_EQ(state_in("a"), state_in("b"));
  ASSERT_FALSE(state_in("a").empty());

  const Outcome longer = run(std::string(kTraining) + "--epochs 3");
  const Outcome resumed = run(std::string(kTraining) + "--epochs 3 --checkpoint a --resume");
  ASSERT_EQ(resumed.code, 0) << resumed.err;
  EXPECT_TRUE(contains(resumed.err, "ranks: 2 in the checkpoint, 1 now")) << resumed.err;
  EXPECT_NEAR(losses_of(resumed).first, losses_of(longer).first, 1e-4);
}

// Half the bytes, sums in f32: nearly the same losses, and still the same bits in every run.
TEST_F(Ranks, NarrowGradientsTrainNearlyTheSame) {
  const std::string call = std::string(kTraining) + "--ranks 2 --epochs 4 ";  // 24 steps
  const Outcome wide = run(call + "--checkpoint wide");
  ASSERT_EQ(wide.code, 0) << wide.err;
  for (const char* type : {"bf16", "fp16"}) {
    for (const char* again : {"", "2"}) {
      const Outcome narrow = run(call + "--reduce " + type + " --checkpoint " + type + again);
      ASSERT_EQ(narrow.code, 0) << narrow.err;
      EXPECT_NEAR(losses_of(narrow).first, losses_of(wide).first, 1e-2) << type;
      EXPECT_NE(losses_of(narrow).first, losses_of(wide).first) << type << " changed nothing";
    }
    EXPECT_EQ(state_in(type), state_in(std::string(type) + "2"));
    EXPECT_NE(state_in(type), state_in("wide"));
  }
}

TEST_F(Ranks, APlanShowsWhatTravels) {
  const Outcome outcome = run(std::string(kTraining) + "--epochs 1 --ranks 2 --print-plan");
  ASSERT_EQ(outcome.code, 0) << outcome.err;
  EXPECT_TRUE(contains(outcome.err, "mpi:all_reduce")) << outcome.err;
  const Outcome alone = run(std::string(kTraining) + "--epochs 1 --print-plan");
  EXPECT_FALSE(contains(alone.err, "all_reduce")) << alone.err;
}

TEST_F(Ranks, BadInputIsOneLineOfRankZero) {
  const std::pair<const char*, const char*> calls[] = {
      {"--ranks 3 --epochs 1", "batch 16 cannot be divided evenly among 3 ranks"},
      {"--ranks 2 --epochs 0", "epochs 0: must be at least 1"},
      {"--ranks 2 --epochs 1 --backend auto", "--backend auto: ranks would choose"},
      {"--ranks 0 --epochs 1", "--ranks 0: must be between 1 and"},
      {"--ranks 2 --epochs 1 --restarts 2", "--restarts needs --checkpoint DIR"},
      {"--epochs 1 --restarts 2", "--restarts belongs to --ranks"},
      {"--ranks 2 --epochs 1 --bucket 0", "--bucket 0: must be above 0 MiB"},
      {"--ranks 2 --epochs 1 --reduce int8", "--reduce: unknown value 'int8'"},
      {"--ranks 2 --epochs 1 --rank-timeout 0", "--rank-timeout 0: must be at least 1 second"},
  };
  for (const auto& [words, reason] : calls) {
    const Outcome outcome = run(std::string(kTraining) + words);
    EXPECT_EQ(outcome.code, 2) << words << outcome.err;
    EXPECT_TRUE(contains(outcome.err, reason)) << outcome.err;
    EXPECT_EQ(count_of(outcome.err, "ridgeline: "), 1U) << outcome.err;
  }
  EXPECT_TRUE(processes_in(folder_).empty());
}

TEST_F(Ranks, ALauncherThatIsMissingIsNamed) {
  const Outcome outcome =
      shell("env PATH=/nonexistent " + testing::program() + " " + kTraining + "--ranks 2");
  EXPECT_EQ(outcome.code, 2);
  EXPECT_EQ(outcome.err, "ridgeline: --ranks: mpirun is not installed (Debian: openmpi-bin)\n");
}

TEST_F(Ranks, AHostThatCannotBeReachedIsToldAsSuch) {
  if (!joined_by_open_mpi()) GTEST_SKIP() << "the host list and the agent are Open MPI's";
  std::ofstream(folder_ / "hosts") << "elsewhere.invalid slots=2\n";
  std::ofstream(folder_ / "agent") << "#!/bin/sh\nexit 255\n";  // as ssh ends
  fs::permissions(folder_ / "agent", fs::perms::owner_all);
  const Outcome outcome =
      shell("env OMPI_MCA_orte_default_hostfile=hosts OMPI_MCA_plm_rsh_agent=$PWD/agent " +
            testing::program() + " " + kTraining + "--epochs 1 --ranks 2");
  EXPECT_EQ(outcome.code, 2) << outcome.err;
  EXPECT_TRUE(contains(outcome.err, "mpirun could not start the ranks")) << outcome.err;
  EXPECT_EQ(count_of(outcome.err, "ridgeline: "), 1U) << outcome.err;
  EXPECT_TRUE(processes_in(folder_).empty());
}

TEST_F(Ranks, OtherOptionsOnOneRankAreNamed) {
  const std::string call = testing::program() + " " + kTraining + "--epochs 1 ";
  const Outcome outcome = shell(mpirun(1) + " " + call + " : -n 1 " + call + "--momentum 0.5");
  EXPECT_EQ(outcome.code, 2) << outcome.err;
  EXPECT_TRUE(contains(outcome.err, "rank 1 differs from rank 0: optimizer")) << outcome.err;
  EXPECT_EQ(count_of(outcome.err, "ridgeline: "), 1U) << outcome.err;
}

// The whole job ends, with the checkpoint whole; started again, it ends where it would have.
TEST_F(Ranks, AKilledRankEndsTheJobWhichGoesOnFromItsCheckpoint) {
  const std::string call = std::string(kTraining) + "--ranks 2 --epochs 60 ";
  const Outcome whole = run(call + "--checkpoint whole");
  ASSERT_EQ(whole.code, 0) << whole.err;
  testing::Child job(call + "--checkpoint-every 3 --restarts 1 --checkpoint killed", folder_);
  while (!fs::exists(folder_ / "killed" / "LAST")) usleep(1000);
  int killed = 0;
  for (const auto& [pid, rank] : processes_in(folder_)) {
    if (rank == 1 && kill(pid, SIGKILL) == 0) ++killed;
  }
  EXPECT_EQ(killed, 1);
  const Outcome outcome = job.finish();
  EXPECT_EQ(outcome.code, 0) << outcome.err;
  EXPECT_TRUE(contains(outcome.err, "the ranks have failed")) << outcome.err;
  EXPECT_EQ(state_in("killed"), state_in("whole"));
  EXPECT_TRUE(processes_in(folder_).empty());
}

TEST_F(Ranks, ASilentRankIsNamed) {
  testing::Child job(
      std::string(kTraining) + "--ranks 2 --epochs 100000 --rank-timeout 1 --checkpoint silent",
      folder_);
  while (!fs::exists(folder_ / "silent" / "LAST")) usleep(1000);
  for (const auto& [pid, rank] : processes_in(folder_)) {
    if (rank == 1) kill(pid, SIGSTOP);
  }
  const Outcome outcome = job.finish();
  EXPECT_EQ(outcome.code, 1) << outcome.err;
  EXPECT_TRUE(contains(outcome.err, "ridgeline: rank 0: rank 1 (")) << outcome.err;
  EXPECT_TRUE(contains(outcome.err, "did not answer within 1 s")) << outcome.err;
  EXPECT_TRUE(processes_in(folder_).empty());
}

}  // namespace
}  // namespace ridgeline
