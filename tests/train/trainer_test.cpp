#include "train/trainer.h"

#include <gtest/gtest.h>

#include <algorithm>
#include <chrono>
#include <cmath>
#include <thread>

#include "backends/registry.h"
#include "base/error.h"
#include "data/synthetic.h"
#include "support/allocations.h"
#include "support/queued_device.h"

namespace ridgeline {
namespace {

constexpr std::int64_t kTrainerSide = 8;

Split small_data(std::int64_t train, std::int64_t test) {
  return make_synthetic({.channels = 1,
                         .height = kTrainerSide,
                         .width = kTrainerSide,
                         .classes = 4,
                         .count = train,
                         .test_count = test,
                         .seed = 3});
}

TrainConfig small_config(std::int64_t batch) {
  TrainConfig config;
  config.step.model.name = "mlp";
  config.step.model.height = config.step.model.width = kTrainerSide;
  config.step.model.classes = 4;
  config.step.batch = batch;
  config.step.optimizer = SgdAttributes{.momentum = 0.9};
  config.plan.backend = "reference";
  config.learning_rate = 0.05;
  config.epochs = 2;
  config.seed = 1;
  return config;
}

TrainResult train(const TrainConfig& config, const Split& data) {
  TrainObserver silent;
  return Trainer(config, data, make_cpu_device()).train(silent);
}

std::vector<float> parameters_after(Trainer& trainer) {
  TrainObserver silent;
  (void)trainer.train(silent);
  std::vector<float> all;
  for (const Parameter& parameter : trainer.runner().parameters()) {
    std::vector<float> values(static_cast<std::size_t>(parameter.shape.elements()));
    trainer.runner().session().read(parameter.name, std::as_writable_bytes(std::span(values)));
    all.insert(all.end(), values.begin(), values.end());
  }
  return all;
}

std::string error_of(const TrainConfig& config, const Split& data, ErrorKind kind) {
  try {
    (void)train(config, data);
  } catch (const Error& error) {
    EXPECT_EQ(error.kind(), kind) << error.what();
    return error.what();
  }
  ADD_FAILURE() << "nothing was thrown";
  return {};
}

bool contains(const std::string& text, const std::string& part) {
  return text.find(part) != std::string::npos;
}

TEST(Trainer, LastBatchPolicyDecidesHowManyRowsCount) {
  const Split data = small_data(23, 8);
  const struct {
    LastBatch policy;
    std::int64_t steps, rows;
  } cases[] = {{LastBatch::smaller, 5, 23}, {LastBatch::drop, 4, 20}, {LastBatch::repeat, 5, 25}};
  for (const auto& expected : cases) {
    TrainConfig config = small_config(5);
    config.last_batch = expected.policy;
    const TrainResult result = train(config, data);
    EXPECT_EQ(result.steps, 2 * expected.steps);
    ASSERT_EQ(result.epochs.size(), 2U);
    // The very first step is timed apart, with its rows.
    EXPECT_EQ(result.epochs[0].samples, expected.rows - 5);
    EXPECT_EQ(result.epochs[1].samples, expected.rows);
  }
}

TEST(Trainer, EvaluationCountsEverySampleOnceWhateverTheBatch) {
  const Split data = small_data(20, 17);
  std::optional<Evaluation> first;
  for (const std::int64_t batch : {1, 5, 16, 17, 64}) {
    TrainConfig config = small_config(4);
    config.eval_batch = batch;
    Trainer trainer(config, data, make_cpu_device());
    ConfusionMatrix confusion(4);
    const Evaluation result = trainer.evaluate(confusion);
    EXPECT_EQ(result.samples, 17);
    EXPECT_EQ(confusion.total(), 17);
    std::int64_t right = 0;
    for (std::int64_t label = 0; label < 4; ++label) right += confusion.count(label, label);
    EXPECT_DOUBLE_EQ(result.accuracy, static_cast<double>(right) / 17.0);
    if (!first) first = result;
    EXPECT_EQ(result.accuracy, first->accuracy);
    EXPECT_NEAR(result.loss, first->loss, 1e-6);
  }
}

class TrainerOnBackend : public ::testing::TestWithParam<const char*> {
 protected:
  void SetUp() override {
    for (const Backend* backend : all_backends()) {
      if (backend->name == GetParam() && !backend->unavailable().empty()) {
        GTEST_SKIP() << backend->unavailable();
      }
    }
  }
};

TEST_P(TrainerOnBackend, TheSameSeedGivesTheSameBits) {
  const Split data = small_data(50, 10);
  TrainConfig config = small_config(16);
  config.plan.backend = GetParam();
  Trainer a(config, data, make_cpu_device()), b(config, data, make_cpu_device());
  const std::vector<float> once = parameters_after(a);
  EXPECT_EQ(once, parameters_after(b));
  config.seed = 2;
  Trainer other(config, data, make_cpu_device());
  EXPECT_NE(once, parameters_after(other));
}

TEST_P(TrainerOnBackend, AQueuedDeviceGivesTheSameBitsAsTheHost) {
  const Split data = small_data(50, 10);
  TrainConfig config = small_config(16);
  config.plan.backend = GetParam();
  Trainer host(config, data, make_cpu_device()), queued(config, data, make_queued_device());
  EXPECT_EQ(parameters_after(host), parameters_after(queued));
}

INSTANTIATE_TEST_SUITE_P(Backends, TrainerOnBackend,
                         ::testing::Values("reference", "native", "onednn"),
                         [](const auto& instance) { return std::string(instance.param); });

// Notes the number of allocations after every step.
class AllocationObserver final : public TrainObserver {
 public:
  void on_step(const StepProgress& step) override {
    if (used < counts.size()) counts[used++] = {step.epoch, testing::allocation_count()};
  }
  struct Count {
    std::int64_t epoch = 0, allocations = 0;
  };
  std::vector<Count> counts = std::vector<Count>(1000);
  std::size_t used = 0;
};

TEST(Trainer, NothingIsAllocatedAfterTheFirstStep) {
  const Split data = make_synthetic(
      {.height = 12, .width = 12, .classes = 4, .count = 90, .test_count = 20, .seed = 3});
  // oneDNN allocates inside its own calls.
  for (const auto& [model, backend] :
       {std::pair("mlp", "native"), std::pair("mlp", "reference"), std::pair("mnist_cnn", "native"),
        std::pair("mnist_cnn", "reference")}) {
    TrainConfig config = small_config(16);
    config.step.model.name = model;
    config.step.model.height = config.step.model.width = 12;
    config.plan.backend = backend;
    config.epochs = 4;
    Trainer trainer(config, data, make_cpu_device());
    AllocationObserver observer;
    (void)trainer.train(observer);
    ASSERT_EQ(observer.used, 4U * 6U);
    for (std::size_t i = 1; i < observer.used; ++i) {
      const auto &before = observer.counts[i - 1], &now = observer.counts[i];
      // After the first epoch alarms are looked for, with memory of their own.
      if (before.epoch == 1 && now.epoch == 2) continue;
      EXPECT_EQ(now.allocations, before.allocations)
          << model << " on " << backend << ", step " << i + 1;
    }
  }
}

// Batch norms' outputs computed again in the backward pass: the same training in less memory.
TEST(Trainer, RecomputingChangesMemoryNotResults) {
  const Split data = make_synthetic({.channels = 3,
                                     .height = 32,
                                     .width = 32,
                                     .classes = 4,
                                     .count = 8,
                                     .test_count = 4,
                                     .seed = 3});
  TrainConfig config = small_config(4);
  config.step.model = default_config("mobilenet_v2");
  config.step.model.height = config.step.model.width = 32;
  config.step.model.classes = 4;
  config.epochs = 1;
  Trainer keeps(config, data, make_cpu_device());
  config.step.recompute = true;
  Trainer recomputes(config, data, make_cpu_device());
  const Plan& less = recomputes.runner().session().plan(recomputes.training_plan());
  const Plan& more = keeps.runner().session().plan(keeps.training_plan());
  EXPECT_LT(less.scratch_bytes, more.scratch_bytes * 4 / 5);
  EXPECT_EQ(parameters_after(keeps), parameters_after(recomputes));
}

TEST(Trainer, FullBatchIsUndisturbedByEvaluations) {
  const Split data = small_data(60, 25);
  TrainConfig config = small_config(1);
  config.full_batch = true;
  config.epochs = 12;
  config.eval_every = 3;
  Trainer often(config, data, make_cpu_device());
  config.eval_every = 12;
  Trainer once(config, data, make_cpu_device());
  EXPECT_EQ(parameters_after(often), parameters_after(once));
}

TEST(Trainer, FullBatchReportsAtItsPaceAndEndsWithTheLastIteration) {
  const Split data = small_data(60, 25);
  TrainConfig config = small_config(1);
  config.full_batch = true;
  config.epochs = 10;
  config.eval_every = 4;
  const TrainResult result = train(config, data);
  ASSERT_EQ(result.epochs.size(), 3U);
  EXPECT_EQ(result.epochs[0].epoch, 4);
  EXPECT_EQ(result.epochs[1].epoch, 8);
  EXPECT_EQ(result.epochs[2].epoch, 10);
  EXPECT_EQ(result.epochs[1].samples, 4 * 60);
  EXPECT_EQ(result.steps, 10);
  for (const EpochResult& epoch : result.epochs) EXPECT_TRUE(epoch.test_accuracy.has_value());
}

TEST(Trainer, LearnsAndStaysSilent) {
  const Split data = small_data(400, 80);
  TrainConfig config = small_config(16);
  config.epochs = 10;
  const TrainResult result = train(config, data);
  EXPECT_GT(result.final_test_accuracy.value(), 0.9);
  EXPECT_LT(result.epochs.back().train_loss, result.epochs.front().train_loss);
  EXPECT_TRUE(result.warnings.empty()) << result.warnings.front();
}

TEST(Trainer, StopsAtTheTargetAccuracy) {
  const Split data = small_data(400, 80);
  TrainConfig config = small_config(16);
  config.epochs = 50;
  config.target_accuracy = 0.8;
  const TrainResult result = train(config, data);
  ASSERT_TRUE(result.target.has_value());
  EXPECT_LT(result.epochs.size(), 50U);
  EXPECT_EQ(result.target->epoch, result.epochs.back().epoch);
  EXPECT_GE(result.epochs.back().test_accuracy.value(), 0.8);
  EXPECT_GT(result.target->training_seconds, 0.0);
}

TEST(Trainer, ANonFiniteLossStopsWithStepAndLikelyCause) {
  const Split data = small_data(64, 16);
  TrainConfig config = small_config(16);
  config.learning_rate = 1e30;
  const std::string message = error_of(config, data, ErrorKind::failure);
  EXPECT_TRUE(contains(message, "step ")) << message;
  EXPECT_TRUE(contains(message, "epoch ")) << message;
  EXPECT_TRUE(contains(message, "learning rate 1e+30 is likely too high")) << message;
}

TEST(Trainer, ANonFiniteFirstLossBlamesTheInput) {
  const Split data = small_data(64, 16);
  TrainConfig config = small_config(16);
  config.step.mean = {0.5};
  config.step.deviation = {1e-40};
  const std::string message = error_of(config, data, ErrorKind::failure);
  EXPECT_TRUE(contains(message, "step 1 ")) << message;
  EXPECT_TRUE(contains(message, "normalisation")) << message;
}

TEST(Trainer, AccuracyAtChanceIsReported) {
  Split data = small_data(64, 40);
  std::fill(data.train.pixels.begin(), data.train.pixels.end(), std::uint8_t{128});
  std::fill(data.test.pixels.begin(), data.test.pixels.end(), std::uint8_t{128});
  const TrainResult result = train(small_config(16), data);
  ASSERT_FALSE(result.warnings.empty());
  EXPECT_TRUE(contains(result.warnings[0], "no better than chance (25.00%)")) << result.warnings[0];
}

TEST(Trainer, ParametersThatNeverChangedAreNamed) {
  // Black images: the first layer's weights get no gradient, its bias does.
  Split data = small_data(64, 40);
  std::fill(data.train.pixels.begin(), data.train.pixels.end(), std::uint8_t{0});
  const TrainResult result = train(small_config(16), data);
  const std::string expected = "never changed up to epoch 2: fc1.weight";
  bool found = false;
  for (const std::string& warning : result.warnings) found = found || warning.ends_with(expected);
  EXPECT_TRUE(found) << ::testing::PrintToString(result.warnings);
}

class StopAfter final : public TrainObserver {
 public:
  explicit StopAfter(std::int64_t steps) : steps_(steps) {}
  void on_step(const StepProgress& step) override { done_ = step.done; }
  void on_epoch(const EpochResult&) override { ++epochs; }
  [[nodiscard]] bool stop() override { return done_ >= steps_; }
  int epochs = 0;

 private:
  std::int64_t steps_, done_ = 0;
};

TEST(Trainer, AnInterruptionKeepsWhatWasReached) {
  const Split data = small_data(64, 16);
  Trainer trainer(small_config(16), data, make_cpu_device());
  StopAfter observer(6);
  const TrainResult result = trainer.train(observer);
  EXPECT_TRUE(result.interrupted);
  EXPECT_EQ(result.steps, 6);
  ASSERT_EQ(result.epochs.size(), 2U);
  EXPECT_TRUE(result.epochs[0].complete);
  EXPECT_FALSE(result.epochs[1].complete);
  EXPECT_EQ(result.epochs[1].samples, 32);
  EXPECT_EQ(observer.epochs, 2);
}

class SlowSaver final : public TrainObserver {
 public:
  void on_checkpoint(const TrainProgress& progress) override {
    std::this_thread::sleep_for(std::chrono::milliseconds(20));
    training_seconds.push_back(progress.result.training_seconds);
  }
  std::vector<double> training_seconds;
};

TEST(Trainer, WritingCheckpointsIsTimedApart) {
  const Split data = small_data(64, 16);
  for (const bool full_batch : {false, true}) {
    SCOPED_TRACE(full_batch);
    TrainConfig config = small_config(16);
    config.full_batch = full_batch;
    config.epochs = full_batch ? 6 : 2;
    config.eval_every = full_batch ? 3 : 1;
    config.checkpoint_every = 1;
    Trainer trainer(config, data, make_cpu_device());
    SlowSaver observer;
    const auto begin = std::chrono::steady_clock::now();
    const TrainResult result = trainer.train(observer);
    const double wall =
        std::chrono::duration<double>(std::chrono::steady_clock::now() - begin).count();
    EXPECT_GE(result.checkpoint_seconds,
              0.02 * static_cast<double>(observer.training_seconds.size()));
    EXPECT_LE(result.total_seconds + result.checkpoint_seconds, wall);
    double epochs = 0.0;
    for (const EpochResult& epoch : result.epochs) {
      EXPECT_GE(epoch.checkpoint_seconds, 0.02);
      epochs += epoch.seconds;
    }
    EXPECT_LE(epochs, result.training_seconds);
    EXPECT_LT(result.training_seconds, result.total_seconds);
    // A training that is killed within an epoch has lost no time of it.
    EXPECT_GT(observer.training_seconds.front(), 0.0);
    EXPECT_TRUE(std::is_sorted(observer.training_seconds.begin(), observer.training_seconds.end()));
  }
}

TEST(Trainer, BadConfigurationsAreRefused) {
  const Split data = small_data(20, 8);
  const auto refused = [&](auto change, const char* part) {
    TrainConfig config = small_config(4);
    change(config);
    const std::string message = error_of(config, data, ErrorKind::bad_input);
    EXPECT_TRUE(contains(message, part)) << message;
  };
  refused([](TrainConfig& c) { c.epochs = 0; }, "epochs 0");
  refused([](TrainConfig& c) { c.step.batch = 0; }, "batch 0");
  refused([](TrainConfig& c) { c.step.batch = 21; }, "between 1 and 20");
  refused([](TrainConfig& c) { c.learning_rate = -0.1; }, "learning rate -0.1");
  refused([](TrainConfig& c) { c.learning_rate = std::nan(""); }, "learning rate");
  refused([](TrainConfig& c) { c.step.optimizer = SgdAttributes{.momentum = -1.0}; },
          "momentum -1");
  refused([](TrainConfig& c) { c.step.optimizer = AdamAttributes{.weight_decay = -1.0}; },
          "weight decay -1");
  refused([](TrainConfig& c) { c.step.label_smoothing = 2.0; }, "label smoothing 2");
  refused([](TrainConfig& c) { c.step.mean = {0.1, 0.2}; }, "2 channels");
  refused([](TrainConfig& c) { c.target_accuracy = 1.5; }, "target accuracy 1.5");
  refused([](TrainConfig& c) { c.plan.backend = "refrence"; }, "did you mean 'reference'");
}

// The host's memory, of which only little is left.
class SmallDevice final : public Device {
 public:
  explicit SmallDevice(std::size_t bytes) : bytes_(bytes) {}
  [[nodiscard]] std::string name() const override { return cpu_->name(); }
  [[nodiscard]] std::string kind() const override { return cpu_->kind(); }
  [[nodiscard]] std::string description() const override { return cpu_->description(); }
  [[nodiscard]] std::string refuse(Precision precision) const override {
    return cpu_->refuse(precision);
  }
  [[nodiscard]] std::size_t available_memory() const override { return bytes_; }
  [[nodiscard]] std::byte* allocate(std::size_t bytes) override {
    EXPECT_LE(bytes, bytes_);
    return cpu_->allocate(bytes);
  }
  void release(std::byte* memory, std::size_t bytes) noexcept override {
    cpu_->release(memory, bytes);
  }
  void upload(std::byte* dst, const void* src, std::size_t bytes) override {
    cpu_->upload(dst, src, bytes);
  }
  void stage(std::byte* dst, const void* src, std::size_t bytes) override {
    cpu_->stage(dst, src, bytes);
  }
  void download(void* dst, const std::byte* src, std::size_t bytes) override {
    cpu_->download(dst, src, bytes);
  }
  void fill(std::byte* dst, std::byte value, std::size_t bytes) override {
    cpu_->fill(dst, value, bytes);
  }
  void launch(const Kernel& kernel, const KernelArgs& args) override { cpu_->launch(kernel, args); }
  void synchronize() override { cpu_->synchronize(); }
  [[nodiscard]] double time(const std::function<void()>& launches) override {
    return cpu_->time(launches);
  }

 private:
  std::unique_ptr<Device> cpu_ = make_cpu_device();
  std::size_t bytes_;
};

TEST(Trainer, TooLittleMemoryNamesTheLargestBatchThatFits) {
  const Split data = small_data(512, 16);
  constexpr std::size_t kBytes = 200'000;
  const auto make = [&](std::int64_t batch) {
    Trainer trainer(small_config(batch), data, std::make_unique<SmallDevice>(kBytes));
  };
  std::string message;
  try {
    make(512);
    FAIL() << "a batch of 512 must not fit";
  } catch (const Error& error) {
    EXPECT_EQ(error.kind(), ErrorKind::lacks_memory);
    EXPECT_EQ(error.exit_code(), 2);
    message = error.what();
  }
  EXPECT_TRUE(contains(message, "needed")) << message;
  EXPECT_TRUE(contains(message, "195.3 KiB available")) << message;
  const std::string before = "the largest batch that fits is ";
  ASSERT_TRUE(contains(message, before)) << message;
  const std::int64_t fits = std::stoll(message.substr(message.find(before) + before.size()));
  EXPECT_GT(fits, 1);
  EXPECT_NO_THROW(make(fits));
  EXPECT_THROW(make(fits + 1), Error);
}

TEST(Metrics, ConfusionGivesPrecisionAndRecall) {
  ConfusionMatrix confusion(3);
  const std::vector<double> logits = {9, 1, 0,  //
                                      9, 1, 0,  //
                                      0, 5, 5,  //
                                      0, 0, 1};
  const std::vector<std::int32_t> labels = {0, 1, 1, 1};
  confusion.add(logits, labels);
  EXPECT_EQ(confusion.count(1, 1), 1);  // of equal logits the first counts
  EXPECT_DOUBLE_EQ(confusion.precision(0).value(), 0.5);
  EXPECT_DOUBLE_EQ(confusion.recall(1).value(), 1.0 / 3.0);
  EXPECT_DOUBLE_EQ(confusion.precision(2).value(), 0.0);
  EXPECT_FALSE(confusion.recall(2).has_value());
}

TEST(Metrics, ChanceLeavesRoomForScatter) {
  EXPECT_TRUE(at_chance(0.1, 0.1, 10'000));
  EXPECT_TRUE(at_chance(0.105, 0.1, 10'000));
  EXPECT_FALSE(at_chance(0.12, 0.1, 10'000));
  EXPECT_TRUE(at_chance(0.12, 0.1, 100));
  EXPECT_FALSE(at_chance(1.0, 1.0, 1)) << "one class tells nothing";
  EXPECT_FALSE(at_chance(0.5, 0.5, 4)) << "even 100% would be within chance";
  const std::vector<std::int32_t> labels = {0, 1, 1, 1};
  EXPECT_DOUBLE_EQ(majority_share(labels, 2), 0.75);
}

TEST(Trainer, OfEqualAccuraciesTheLowerLossIsBest) {
  const TrainProgress::Best first{1, 0.9, 0.30};
  EXPECT_TRUE((TrainProgress::Best{2, 0.9, 0.25}).better_than(first));
  EXPECT_FALSE((TrainProgress::Best{2, 0.9, 0.30}).better_than(first));
  EXPECT_TRUE((TrainProgress::Best{2, 0.91, 0.5}).better_than(first));
  EXPECT_FALSE((TrainProgress::Best{2, 0.89, 0.1}).better_than(first));
}

}  // namespace
}  // namespace ridgeline
