#pragma once

// Writes a training into the store as it goes: its run, its epochs with their energy, the readings
// of sensors, and at the end what they show.

#include <memory>
#include <optional>
#include <string>
#include <vector>

#include "cli/store_options.h"
#include "lab/telemetry/telemetry.h"
#include "train/trainer.h"

namespace ridgeline::cli {

struct TrainRecordOptions {
  StoreOptions store;
  double telemetry_hz = kTelemetryHz;  // 0: none
};
// --store, --label, --env-label, --telemetry.
void add_train_record_options(CLI::App& command, TrainRecordOptions& options);
// What can be checked before the data is loaded.
void check(const TrainRecordOptions& options);

// A store that cannot be written any more does not end the training: trouble() tells of it.
class TrainRecord {
 public:
  // Begins the run. REQUIRES: the trainer outlives the record.
  TrainRecord(const TrainRecordOptions& options, Trainer& trainer, const Split& data,
              const std::string& backend, const std::string& precision);
  ~TrainRecord();

  // Joules that the devices used for the epoch; nothing where none of them tells.
  void add(const EpochResult& epoch);
  // Ends the run; gives what the reader must be warned of.
  [[nodiscard]] std::vector<Finding> finish(const TrainResult& result, const std::string& error);

  [[nodiscard]] const std::string& trouble() const { return trouble_; }
  // Of all epochs so far, by sample; nothing where no device tells.
  [[nodiscard]] std::optional<double> joules_per_sample() const;

 private:
  [[nodiscard]] double now() const;
  [[nodiscard]] std::optional<double> energy(double from, double to) const;
  void take_readings();
  template <typename Body>
  void writing(Body body);

  std::optional<Store> store_;
  RunId run_ = 0;
  TelemetrySampler::Clock::time_point start_;
  std::unique_ptr<TelemetrySampler> sampler_;
  double rate_hz_;
  std::vector<Reading> readings_;
  std::vector<EpochRecord> epochs_;
  std::map<std::string, double> numbers_;
  std::string trouble_;
};

}  // namespace ridgeline::cli
