#pragma once

// What was measured of each candidate, collected, and its summary.

#include <optional>
#include <vector>

#include "analysis/stats/summary.h"
#include "measure/iterations/measurement.h"

namespace ridgeline {

struct Measured {
  Subject subject;
  bool begun = false, ended = false;
  Preparation preparation;
  std::vector<Sample> samples;  // all kinds, in the order of measuring
  std::vector<Reading> readings;
  Ending ending;
};

// Collects; with several processes a candidate is begun and ended in each of them.
class ResultCollector final : public MeasureSink {
 public:
  explicit ResultCollector(std::vector<Subject> subjects);
  void begun(std::size_t candidate) override { results_[candidate].begun = true; }
  void prepared(std::size_t candidate, const Preparation& preparation) override;
  void measured(std::size_t candidate, std::span<const Sample> samples) override;
  void readings(std::size_t candidate, std::span<const Reading> readings) override;
  void ended(std::size_t candidate, const Ending& ending) override;

  [[nodiscard]] const std::vector<Measured>& results() const { return results_; }

 private:
  std::vector<Measured> results_;
};

// REQUIRES: at least one measured sample (`has_samples`).
struct MeasuredSummary {
  Summary wall;             // of the measured iterations
  MedianInterval interval;  // of their median, by blocks
  double p50 = 0.0, p90 = 0.0, p99 = 0.0;
  std::optional<MedianInterval> queued;  // iterations queued, by the device's clock
  std::optional<double> device_seconds;  // median of single iterations by the device's clock
  // Of an iteration where the host does not wait for each: queued where the device queues, else the
  // median.
  double seconds_per_iteration = 0.0;
  double samples_per_second = 0.0;
  double first_seconds = 0.0;  // of the very first iteration
  std::int64_t warmup_iterations = 0;
  double warmup_seconds = 0.0;
  std::int64_t blocks = 0;
  std::optional<double> data_wait_seconds, upload_seconds;  // medians
  std::optional<double> exchange_seconds, exposed_seconds;  // of several ranks
  std::optional<double> forward_seconds, backward_seconds, optimizer_seconds;
  std::vector<Finding> findings;  // from the samples alone
};
[[nodiscard]] bool has_samples(const Measured& measured);
[[nodiscard]] MeasuredSummary summarise(const Measured& measured);
// The same as numbers and notes of a run, under the store's names.
void add_to(std::map<std::string, double>& numbers, std::map<std::string, std::string>& notes,
            const Measured& measured, const MeasuredSummary& summary);

}  // namespace ridgeline
