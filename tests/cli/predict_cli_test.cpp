// ridgeline predict as a user starts it: exit codes, formats, what it learns from a store.

#include <gtest/gtest.h>

#include <fstream>
#include <nlohmann/json.hpp>

#include "store/store.h"
#include "support/program.h"

namespace ridgeline {
namespace {

class SlowPredictCli : public testing::ProgramTest {
 protected:
  void put(const std::string& name, const std::string& text) const {
    std::ofstream(folder_ / name, std::ios::binary) << text;
  }

  // One run: a training step of so many seconds.
  static void add_run(Store& store, const std::string& environment, const std::string& model,
                      std::int64_t batch, double seconds) {
    RunRecord run;
    run.environment = environment;
    run.command = "bench";
    run.work.model = model;
    if (model == "squeezenet1_1") run.work.settings = {{"dropout", "0.5"}};
    run.work.image = {3, 64, 64};
    run.work.classes = 10;
    run.work.batch = batch;
    run.work.optimizer = "sgd";
    run.executor = {.backend = "native", .device = "cpu", .threads = 2};
    const RunId id = store.begin(run);
    std::vector<Sample> samples(10);
    for (std::size_t i = 0; i < samples.size(); ++i) {
      samples[i].iteration = static_cast<std::int64_t>(i);
      samples[i].wall_seconds = seconds;
    }
    store.add(id, samples);
    store.finish(id, RunStatus::complete, "", {}, {});
  }

  void make_store() const {
    Store store(folder_ / "runs.db");
    const auto ceiling = [](const char* kind, const char* subject, const char* unit, double value) {
      Ceiling made;
      made.device = "cpu";
      made.kind = kind;
      made.subject = subject;
      made.path = "avx2";
      made.scope = "all cores";
      made.unit = unit;
      made.value = made.low = made.high = value;
      return made;
    };
    store.add(EnvironmentRecord{"e1", "laboratory", "host", "a CPU", "", "{}"});
    const std::vector<Ceiling> ceilings = {ceiling("compute", "fp32", "FLOP/s", 2e11),
                                           ceiling("bandwidth", "memory", "B/s", 4e10)};
    store.replace_ceilings("e1", "cpu", ceilings);
    for (const std::int64_t batch : {8, 16, 32, 64}) {
      const auto samples = static_cast<double>(batch);
      add_run(store, "e1", "resnet18", batch, 0.004 * samples);
      add_run(store, "e1", "squeezenet1_1", batch, 0.0007 * samples);
      add_run(store, "e1", "mobilenet_v2", batch, 0.002 * samples);
    }
  }
};

TEST_F(SlowPredictCli, BadInputIsOneLineAndCodeTwo) {
  put("broken.toml", "[[gpu]]\nname = 3\n");
  put("cheap.toml", "[[price]]\nname = \"T4\"\nper_hour = 0\n");
  put("rows.csv", "device,ms\nT4,3\n");
  for (const char* wrong : {"predict",
                            "predict resnet18",
                            "predict resnet19 --on T4",
                            "predict resnet18 --on T5000",
                            "predict resnet18 --on T4 --batch 0",
                            "predict resnet18 --on T4 --batch many",
                            "predict resnet18 --on T4 --precision fp8",
                            "predict resnet18 --on T4 --precision bf16",
                            "predict resnet18 --on M4",
                            "predict resnet18 --on nowhere.toml",
                            "predict resnet18 --on broken.toml",
                            "predict resnet18 --on T4 --prices cheap.toml",
                            "predict resnet18 --on T4 --observed rows.csv",
                            "predict resnet18 --on T4 --samples 0",
                            "predict resnet18 --on T4 --epochs 3",
                            "predict resnet18 --on T4 --samples 100 --epochs 0",
                            "predict resnet18 --on T4 --draw f.svg",
                            "predict resnet18 --on T4 --samples 100 --draw f.jpg",
                            "predict resnet18 vgg16 --on T4 --samples 100 --draw f.svg",
                            "predict resnet18 --on T4 --ranks 8",
                            "predict resnet18 --on T4 --ranks 0 --network NDR",
                            "predict resnet18 --on T4 --ranks 8 --network NRD",
                            "predict resnet18 --on T4 --ranks 8 --network measured --no-store",
                            "predict resnet18 --on T4 --network NDR",
                            "predict resnet18 --on T4 --ranks 8 --network NDR --ranks-per-node 4",
                            "predict resnet18 --on T4 --ranks 8 --network broken.toml",
                            "predict resnet18 --on T4 --ranks 8 --network NDR --scaling sideways",
                            "predict resnet18 --on T4 --ranks 8 --network NDR --inference",
                            "predict resnet18 --on T4 --backend nobody",
                            "predict resnet18 --on T4 --no-shipped",
                            "predict resnet18 --on T4 --store none.db",
                            "predict --check",
                            "predict --check --no-store",
                            "predict resnet18 --on T4 --image none"}) {
    const testing::Outcome outcome = run(wrong);
    EXPECT_EQ(outcome.code, 2) << wrong << outcome.err;
    EXPECT_EQ(outcome.out, "") << wrong;
    EXPECT_EQ(std::count(outcome.err.begin(), outcome.err.end(), '\n'), 1) << outcome.err;
  }
}

TEST_F(SlowPredictCli, TextJsonAndCsvTellTheSame) {
  put("prices.toml", "currency = \"USD\"\n[[price]]\nname = \"T4\"\nper_hour = 0.5\n");
  const testing::Outcome outcome =
      run("predict resnet18 squeezenet1_1 --on T4,A100 --batch 32,64 --precision fp32,bf16 --json "
          "--prices prices.toml --samples 6400 --csv rows.csv");
  ASSERT_EQ(outcome.code, 0) << outcome.err;
  const nlohmann::json document = nlohmann::json::parse(outcome.out);
  // Two models, two batches; fp32 on five devices, bf16 on all but the T4.
  ASSERT_EQ(document.at("predictions").size(), 2 * 2 * (5 + 4));
  EXPECT_EQ(document.at("refused").size(), 4);
  const nlohmann::json& first = document.at("predictions").at(0);
  EXPECT_EQ(first.at("target"), "Tesla T4");
  EXPECT_LT(first.at("low_ms"), first.at("step_ms"));
  EXPECT_GT(first.at("high_ms"), first.at("step_ms"));
  const double steps = 6400 / 32;
  EXPECT_NEAR(first.at("epoch_cost").at("low").get<double>(),
              first.at("low_ms").get<double>() / 1e3 * steps / 3600 * 0.5, 1e-6);
  EXPECT_GT(first.at("largest_batch"), 64);
  EXPECT_FALSE(first.at("ops").empty());
  std::ifstream file(folder_ / "rows.csv");
  std::size_t lines = 0;
  for (std::string line; std::getline(file, line);) ++lines;
  EXPECT_EQ(lines, 37U);
  const testing::Outcome text = run("predict resnet18 --on T4");
  EXPECT_EQ(text.code, 0);
  EXPECT_NE(text.out.find("where the time goes"), std::string::npos);
}

TEST_F(SlowPredictCli, TrainingsHaveAFrontierThatIsDrawn) {
  const testing::Outcome outcome =
      run("predict resnet18 --on T4,H100 --batch 32,128 --precision fp16 --samples 6400 --epochs 3 "
          "--draw frontier.svg --json");
  ASSERT_EQ(outcome.code, 0) << outcome.err;
  const nlohmann::json rows = nlohmann::json::parse(outcome.out).at("predictions");
  int best = 0;
  for (const nlohmann::json& row : rows) {
    const nlohmann::json& training = row.at("training");
    EXPECT_NEAR(training.at("seconds").at("low").get<double>(),
                3.0 * row.at("epoch_seconds").at("low").get<double>(), 1e-6);
    best += training.at("frontier").get<bool>() ? 1 : 0;
  }
  EXPECT_GE(best, 1);
  EXPECT_LT(best, static_cast<int>(rows.size()));
  std::ifstream file(folder_ / "frontier.svg");
  const std::string svg((std::istreambuf_iterator<char>(file)), {});
  EXPECT_NE(svg.find("time and energy of training"), std::string::npos);
}

TEST_F(SlowPredictCli, RanksAreTextJsonAndCsv) {
  const std::string call =
      "predict resnet18 --on H100-SXM --batch 64 --precision bf16 --ranks 1,8 --network NDR";
  const testing::Outcome outcome = run(call + " --json --csv ranks.csv");
  ASSERT_EQ(outcome.code, 0) << outcome.err;
  const nlohmann::json rows = nlohmann::json::parse(outcome.out).at("ranks");
  ASSERT_EQ(rows.size(), 4U);  // weak and strong
  EXPECT_EQ(rows.at(1).at("scaling"), "weak");
  EXPECT_EQ(rows.at(1).at("ranks"), 8);
  EXPECT_GE(rows.at(1).at("exchange_bytes"), 4 * 11'689'512);  // gradients, and statistics
  EXPECT_LE(rows.at(1).at("efficiency"), 1.0);
  EXPECT_EQ(rows.at(3).at("rank_batch"), 8);
  EXPECT_TRUE(std::filesystem::exists(folder_ / "ranks.csv"));
  EXPECT_NE(run(call).out.find("efficiency"), std::string::npos);
}

TEST_F(SlowPredictCli, LearnsFromAStoreAndChecksItself) {
  make_store();
  const testing::Outcome known =
      run("predict mobilenet_v2 --image 64 --classes 10 --batch 128 --on laboratory "
          "--store runs.db --no-shipped --json");
  ASSERT_EQ(known.code, 0) << known.err;
  const nlohmann::json row = nlohmann::json::parse(known.out).at("predictions").at(0);
  // Times in proportion to the batch suit a network whose kernels are the same at every batch.
  EXPECT_NEAR(row.at("step_ms").get<double>(), 256.0, 30.0);
  EXPECT_EQ(row.at("basis"), "12 runs; new batch");
  // Stored options of a model that are its usual ones are the same network.
  const testing::Outcome usual = run(
      "predict squeezenet1_1 --image 64 --classes 10 --batch 128 --on laboratory --store runs.db "
      "--json");
  EXPECT_NE(usual.out.find("new batch"), std::string::npos) << usual.out << usual.err;
  const testing::Outcome check = run("predict --check --store runs.db --json");
  ASSERT_EQ(check.code, 0) << check.err;
  const nlohmann::json rows = nlohmann::json::parse(check.out).at("check");
  ASSERT_EQ(rows.size(), 2U);  // batches and networks; there is one device
  EXPECT_LT(rows.at(0).at("median_error"), 0.2);
  EXPECT_EQ(run("predict --store runs.db --learn mine.toml").code, 0);
  EXPECT_TRUE(std::filesystem::exists(folder_ / "mine.toml"));
}

}  // namespace
}  // namespace ridgeline
