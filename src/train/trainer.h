#pragma once

// Trains a model on a dataset and evaluates it. The trainer prints nothing: an observer sees what
// happens. All plans are made and all memory is allocated in the constructor; training then
// allocates nothing from step to step.

#include <memory>
#include <optional>
#include <string>
#include <vector>

#include "data/dataset.h"
#include "data/loader.h"
#include "devices/image_place.h"
#include "ranks/ranks.h"
#include "train/evaluator.h"
#include "train/metrics.h"
#include "train/schedule.h"
#include "train/step_runner.h"

namespace ridgeline {

struct TrainConfig {
  // In full-batch mode its batch is the number of training samples; with ranks it is that of all.
  StepSpec step;
  PlanRequest plan;
  std::int64_t epochs = 10;
  // The whole training set is one batch that stays on the device: an epoch is one iteration.
  bool full_batch = false;
  double learning_rate = 0.01;
  Schedule schedule;
  std::uint64_t seed = 0;
  LastBatch last_batch = LastBatch::smaller;
  int workers = 1;                 // threads that decode images
  Decoder decoder = Decoder::cpu;  // of JPEG images
  bool crop = false;               // training sees random resized crops
  bool strict_images = false;      // a broken image ends the training instead of being replaced
  std::int64_t eval_batch = 0;     // 0: as in training
  // Epochs between two evaluations; the last epoch is always evaluated. In full-batch mode results
  // are reported at the same pace.
  std::int64_t eval_every = 1;
  std::optional<double> target_accuracy;  // training ends when a test reaches it
  double first_loss_scale = ridgeline::first_loss_scale(Precision::fp16);  // in fp16
  // Steps between two calls of on_checkpoint within an epoch; 0: only between epochs.
  std::int64_t checkpoint_every = 0;
  // The most rows that are computed at a time; a batch of more takes several passes, whose
  // gradients are accumulated. 0: a whole batch at once.
  std::int64_t micro_batch = 0;
  Ranks* ranks = nullptr;  // that share the batches; null: there are no others
  bool synchronise_norms = false;
  std::int64_t bucket_bytes = kBucketBytes;
  DType wire = DType::f32;  // how gradients travel: f32, bf16 or f16

  [[nodiscard]] int rank() const { return ranks != nullptr ? ranks->rank() : 0; }
  [[nodiscard]] int rank_count() const { return ranks != nullptr ? ranks->size() : 1; }
};

// Throws bad_input for what no training can be done with.
void check_train_config(const TrainConfig& config, const Split& data);

// One epoch, or in full-batch mode the iterations since the last report.
struct EpochResult {
  std::int64_t epoch = 0;  // from 1
  double learning_rate = 0.0;
  double train_loss = 0.0, train_accuracy = 0.0;  // full batch: of the last iteration alone
  std::optional<double> test_loss = {}, test_accuracy = {};
  std::int64_t samples = 0;  // trained in `seconds`
  double seconds = 0.0;      // training alone, without the very first step
  double data_wait_seconds = 0.0;
  double checkpoint_seconds = 0.0;  // saving it before its test
  double evaluation_seconds = 0.0;
  bool complete = true;  // false when training was interrupted in it

  [[nodiscard]] double samples_per_second() const {
    return seconds > 0.0 ? static_cast<double>(samples) / seconds : 0.0;
  }
};

struct TargetReached {
  std::int64_t epoch = 0;
  double training_seconds = 0.0;  // first step included, evaluations and checkpoints not
  double total_seconds = 0.0;     // evaluations included
};

// Dynamic loss scaling so far.
struct LossScaling {
  double scale = 1.0;
  std::int64_t overflows = 0;       // steps that were skipped
  std::int64_t steps_in_range = 0;  // since the scale last changed
};

struct TrainResult {
  std::vector<EpochResult> epochs;
  std::int64_t steps = 0;
  double first_step_seconds = 0.0;  // since the training began or was resumed
  // From the very beginning, whatever the number of parts. The total has evaluations too.
  double training_seconds = 0.0, total_seconds = 0.0;
  double checkpoint_seconds = 0.0;  // beside the total
  std::optional<double> final_test_loss, final_test_accuracy;
  std::optional<TargetReached> target;
  bool interrupted = false;
  std::vector<std::string> warnings;
  std::optional<LossScaling> scaling;      // in fp16
  std::vector<std::string> broken_images;  // that were replaced, with the reason
};

// Where a training stands between two steps: with the session's state, all that it takes to go on.
struct TrainProgress {
  std::int64_t epoch = 0;          // complete ones; in full-batch mode iterations
  std::int64_t step_in_epoch = 0;  // steps done of the epoch under way
  TrainResult result;              // so far
  MetricTotals totals;             // of the epoch under way
  double loss = 0.0;               // of the last step
  struct Best {
    std::int64_t epoch = 0;
    double accuracy = 0.0, loss = 0.0;  // on the test part
    [[nodiscard]] bool better_than(const Best& other) const {
      return accuracy > other.accuracy || (accuracy == other.accuracy && loss < other.loss);
    }
  };
  std::optional<Best> best;
  // An epoch that was trained to its end and is yet to be tested.
  std::optional<EpochResult> untested;
  bool still_unchanged = true;  // parameters were found to be so, or not yet looked at
  // What was not as before when the training was resumed, a text for each time: "after 12 steps
  // threads: 2 in the checkpoint, 1 now".
  std::vector<std::string> changes;
};

struct StepProgress {
  std::int64_t epoch = 0;                     // from 1
  std::int64_t step = 0, steps_in_epoch = 0;  // from 1
  std::int64_t done = 0, total = 0;           // steps of the whole training
  double loss = 0.0;
};

// Something is wrong with the training itself: "accuracy at chance", "parameters never change",
// "loss is not a number".
struct TrainAlarm {
  std::string name, evidence;
  std::int64_t epoch = 0;  // when it was seen
  bool fatal = false;      // the training fails for it, with words of its own
};

class TrainObserver {
 public:
  virtual ~TrainObserver() = default;
  virtual void on_step(const StepProgress&) {}
  virtual void on_epoch(const EpochResult&) {}
  virtual void on_warning(const std::string&) {}
  // After the first report, and after the last one where it lasts.
  virtual void on_alarm(const TrainAlarm& alarm) {
    if (!alarm.fatal) on_warning(alarm.evidence);
  }
  // The state may be saved here: after every epoch, before and after its test, every
  // `checkpoint_every` steps, and when the training is interrupted.
  virtual void on_checkpoint(const TrainProgress&) {}
  // Asked before every batch of trainings and tests, and on the host within them: true ends the
  // training there. A batch that is left in the middle counts as not begun.
  [[nodiscard]] virtual bool stop() { return false; }
};

class Trainer {
 public:
  // REQUIRES: `data` outlives the trainer. An empty test part means no evaluation.
  Trainer(TrainConfig config, const Split& data, std::unique_ptr<Device> device);

  // Makes train() go on from there; the session's state must be what it was then.
  void go_on_from(const TrainProgress& progress) { progress_ = progress; }
  // Where train() begins.
  [[nodiscard]] const TrainProgress& beginning() const { return progress_; }

  // Trains once. Throws a failure when the loss is no finite number; the observer has seen all
  // epochs before.
  TrainResult train(TrainObserver& observer);

  // Every test sample counts exactly once. REQUIRES: the test part is not empty.
  Evaluation evaluate() { return evaluate(nullptr); }
  Evaluation evaluate(ConfusionMatrix& confusion) { return evaluate(&confusion); }

  [[nodiscard]] const TrainConfig& config() const { return config_; }
  [[nodiscard]] StepRunner& runner() { return *runner_; }
  // Of the last pass of a step, which ends with the update.
  [[nodiscard]] Session::PlanId training_plan() const { return plans_.train.passes.back().plan; }
  [[nodiscard]] std::optional<Session::PlanId> evaluation_plan() const {
    return plans_.eval ? std::optional(plans_.eval->full) : std::nullopt;
  }
  // Names of the kernels of a training step, in order, and of the last, smaller one's.
  [[nodiscard]] std::vector<std::string> kernels() const;
  // Of the former alone: of the smaller one, ranks may have more rows or fewer.
  [[nodiscard]] std::vector<std::string> whole_batch_kernels() const;
  [[nodiscard]] double setup_seconds() const { return setup_seconds_; }

 private:
  class Run;

  // A part of a batch that is computed at a time.
  struct Pass {
    Session::PlanId plan = 0;
    std::int64_t first = 0, rows = 0;  // of this rank's rows
  };
  // What a step is made of.
  struct StepPasses {
    std::int64_t first_row = 0;  // of this rank's rows in the batch
    std::vector<Pass> passes;
  };
  // The plans of a training; those for the rest where the batch leaves a smaller one at the end.
  struct Plans {
    StepPasses train, train_rest;
    std::optional<EvaluationPlans> eval;
  };

  void add_kernels(const StepPasses& step, std::vector<std::string>& names) const;
  Plans add_plans(StepRunner& runner, std::int64_t batch) const;
  [[nodiscard]] StepPasses add_passes(StepRunner& runner, std::int64_t batch, bool seldom) const;
  [[nodiscard]] std::int64_t eval_batch(std::int64_t batch) const;
  [[nodiscard]] LoaderOptions loader_options() const;
  [[nodiscard]] std::vector<std::string> broken_images() const;
  [[nodiscard]] std::int64_t host_bytes(std::int64_t batch) const;
  void check_memory_for_plans() const;
  // Of the full batch, to the device.
  void write_training_rows(std::int64_t rows);
  Evaluation evaluate(ConfusionMatrix* confusion);

  TrainConfig config_;
  const Split& data_;
  std::unique_ptr<Device> device_;
  std::unique_ptr<StepRunner> runner_;
  std::unique_ptr<Loader> loader_, test_loader_;
  std::vector<std::int32_t> sample_numbers_;  // of the full batch
  Plans plans_;
  TrainProgress progress_;
  double setup_seconds_ = 0.0;
};

}  // namespace ridgeline
