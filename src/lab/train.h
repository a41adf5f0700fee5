#pragma once

// Trains a model and evaluates it, with checkpoints and a record in the store: what
// `ridgeline train` does.

#include <memory>
#include <optional>
#include <string>
#include <vector>

#include "base/error.h"
#include "lab/listener.h"
#include "lab/options.h"
#include "lab/train_checkpoint.h"
#include "lab/train_record.h"
#include "measure/iterations/provider_shares.h"
#include "train/metrics.h"

namespace ridgeline {

// Of a training by several processes. This one joins the others where it was started with them.
struct RankOptions {
  std::optional<std::int64_t> count;  // that were asked for; nothing: as many as were started
  double timeout = 300.0;             // seconds that a rank waits for another
  std::optional<double> bucket_mib;   // nothing: by the measured links
  bool synchronise_norms = false;
  std::string reduce = "fp32";  // how gradients travel
};

struct TrainRequest {
  RunOptions run;
  OptimizerOptions optimizer;
  ScheduleOptions schedule;
  CheckpointOptions checkpoint;
  TrainRecordOptions record;
  std::string data = "fashion-mnist";
  std::shared_ptr<const Split> given = {};  // samples in memory, in place of `data`
  std::string validation;  // a number of samples or a share; empty: the dataset's own test part
  std::optional<std::int64_t> limit;
  std::int64_t epochs = 10, iterations = 500;
  bool full_batch = false;
  std::optional<std::int64_t> eval_batch, eval_every;
  std::string last_batch = "smaller";
  std::string normalize;  // empty: what is usual for the data
  std::string image;      // HxW; empty: what is usual for the data
  std::string augment;    // empty: what is usual for the data
  int workers = 0;        // 0: one for each usable processor
  std::string decoder = "auto";
  bool strict = false;
  bool flip = false, confusion = false;
  std::string target_accuracy;
  std::optional<double> loss_scale;
  std::optional<std::int64_t> micro_batch;
  std::optional<double> clip_norm;
  RankOptions ranks;
};

// All that is known when a training has ended, however it ended.
struct TrainReport {
  TrainConfig config;
  Identity identity;
  std::shared_ptr<const Split> data;
  std::int64_t parameters = 0;
  double load_seconds = 0.0, setup_seconds = 0.0;
  std::int64_t state_bytes = 0, scratch_bytes = 0;
  std::vector<std::string> kernels;  // of the training step, in order
  bool recorded = false;             // the device replayed it as a whole: a CUDA graph
  TrainResult result;
  std::string error;  // why it failed; empty: it did not
  ErrorKind error_kind = ErrorKind::failure;
  std::optional<ConfusionMatrix> confusion;  // where asked for
  ProviderShares providers;                  // of the training step's time
  std::optional<double> joules_per_sample;   // of training; nothing where no device tells
  std::string story;                         // what was loaded before; lines, or nothing
  std::string store_trouble;                 // why the store lacks something; empty: it does not
  bool checkpoint_failed = false;            // the last one
};

class TrainListener : public CallListener {
 public:
  // All is planned and loaded; `former` are the epochs of the training that is resumed.
  virtual void begun(const TrainReport& report, const std::vector<EpochResult>& former) {
    (void)report, (void)former;
  }
  virtual void epoch(const EpochResult& result) { (void)result; }
  virtual void warning(const std::string& text) { note("warning: " + text); }
};

// Throws bad_input before it begins. A training that fails gives a report with the error.
[[nodiscard]] TrainReport run_train(const TrainRequest& request, TrainListener& listener);

}  // namespace ridgeline
