#pragma once

// Says what a run is: the one place where options and specifications become the identity that the
// store keeps. Every command that measures, trains or evaluates asks here.

#include <optional>
#include <string>

#include "backends/auto.h"
#include "data/dataset.h"
#include "peers/peer_name.h"
#include "store/identity_fields.h"
#include "train/trainer.h"

namespace ridgeline {

// All that decides what is computed and who computes it.
struct RunSpec {
  std::string kind = "training";  // or "inference", "evaluation"
  StepSpec step;
  PlanRequest plan;                   // backend, passes, determinism
  std::optional<PeerName> peer = {};  // computes in the place of the plan's backend
  std::string device = "cpu";
  int threads = 1;
  double learning_rate = 0.0;
  std::string data = "synthetic";
  std::int64_t data_samples = 0;  // of the data set that batches are drawn from
  std::int64_t test_samples = 0;
  bool full_batch = false;
  bool loader = false;  // else one batch lies on the device
  int workers = 0;      // of the loader
  Decoder decoder = Decoder::cpu;
  // Ranks that share single steps; a training has its own below.
  int ranks = 1;
  bool connected = true;  // they exchange gradients
  std::int64_t bucket_bytes = 0;
  DType wire = DType::f32;
  bool synchronise_norms = false;
  bool crop = false;         // random resized crops
  std::string weights = {};  // the file that the weights come from; empty: none
  // A whole training: its epochs, schedule and the like; null: an iteration again and again.
  const TrainConfig* training = nullptr;
  std::int64_t first_epoch = 0;  // that were done before, of a training that is resumed
};

[[nodiscard]] Identity describe_run(const RunSpec& spec);

// Of a training, which also evaluates.
[[nodiscard]] Identity describe_training(const TrainConfig& config, const Split& data,
                                         const std::string& device, const std::string& weights,
                                         std::int64_t first_epoch);

}  // namespace ridgeline
