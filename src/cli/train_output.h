#pragma once

// What `train` tells: header, table, summary, and the same for machines.

#include <optional>
#include <string>

#include "cli/progress.h"
#include "lab/measure/provider_shares.h"
#include "train/trainer.h"

namespace ridgeline::cli {

// All that is known when a training has ended, however it ended.
struct TrainReport {
  const TrainConfig* config = nullptr;
  const Split* data = nullptr;
  std::int64_t parameters = 0;
  std::string device, precision;
  int threads = 1;
  double load_seconds = 0.0, setup_seconds = 0.0;
  std::int64_t state_bytes = 0, scratch_bytes = 0;
  std::vector<std::string> kernels;  // of the training step, in order
  TrainResult result;
  std::string error;                         // why it failed; empty: it did not
  std::optional<ConfusionMatrix> confusion;  // where asked for
  ProviderShares providers;                  // of the training step's time
  std::optional<double> joules_per_sample;   // of training; nothing where no device tells
  std::string story;                         // what was loaded before; lines, or nothing
};

[[nodiscard]] std::string header_text(const TrainReport& report);
[[nodiscard]] std::string table_header(const TrainConfig& config);
[[nodiscard]] std::string table_row(const TrainConfig& config, const EpochResult& epoch);
[[nodiscard]] std::string summary_text(const TrainReport& report);
[[nodiscard]] std::string train_json(const TrainReport& report);
[[nodiscard]] std::string train_csv(const TrainReport& report);

}  // namespace ridgeline::cli
