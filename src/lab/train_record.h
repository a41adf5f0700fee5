#pragma once

// Writes a training into the store, and for TensorBoard, as it goes: its run, its epochs with their
// energy, the readings of sensors, and at the end what they show.

#include <memory>
#include <optional>
#include <string>
#include <vector>

#include "lab/board/run_board.h"
#include "lab/store_options.h"
#include "measure/telemetry/telemetry.h"
#include "store/identity_fields.h"
#include "train/trainer.h"

namespace ridgeline {

struct TrainRecordOptions {
  StoreOptions store;
  double telemetry_hz = kTelemetryHz;  // 0: none
  std::string tensorboard;             // folder of event files; empty: none
  std::int64_t tensorboard_every = 10;
};
// What can be checked before the data is loaded.
void check(const TrainRecordOptions& options);

// A store or an event file that cannot be written any more does not end the training: trouble() and
// board_trouble() tell of it. A run that has begun and was not finished has failed when the record
// goes away.
class TrainRecord {
 public:
  // Begins the run. REQUIRES: the trainer outlives the record.
  TrainRecord(const TrainRecordOptions& options, Trainer& trainer, const Split& data,
              const Identity& identity);
  ~TrainRecord();

  void add(const StepProgress& step);
  void add(const EpochResult& epoch);
  void add(const TrainAlarm& alarm) { alarms_.push_back(alarm); }
  // Ends the run; gives what the sensors warn of. Alarms that lasted to the end are stored with it.
  [[nodiscard]] std::vector<Finding> finish(const TrainResult& result, const std::string& error);

  [[nodiscard]] const std::string& trouble() const { return trouble_; }
  [[nodiscard]] std::string board_trouble() const { return board_ ? board_->trouble() : ""; }
  // Of all epochs so far, by sample; nothing where no device tells.
  [[nodiscard]] std::optional<double> joules_per_sample() const;

 private:
  [[nodiscard]] double now() const;
  [[nodiscard]] std::optional<double> energy(double from, double to) const;
  void take_readings();
  void show(const EpochResult& epoch);
  [[nodiscard]] std::vector<Finding> lasting_alarms() const;
  [[nodiscard]] std::vector<Finding> waiting() const;
  void count(const TrainResult& result, bool failed);
  template <typename Body>
  void writing(Body body);
  void give_up() noexcept;

  std::optional<Store> store_;
  RunId run_ = 0;
  std::string device_;  // that the training runs on
  bool finished_ = false;
  TelemetrySampler::Clock::time_point start_;
  std::unique_ptr<TelemetrySampler> sampler_;
  std::optional<RunBoard> board_;
  std::int64_t board_every_;
  double readings_taken_ = 0.0;  // when
  double rate_hz_;
  std::vector<Reading> readings_;
  std::vector<EpochRecord> epochs_;
  std::vector<TrainAlarm> alarms_;
  std::map<std::string, double> numbers_;
  std::string trouble_;
};

}  // namespace ridgeline
