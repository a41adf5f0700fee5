#pragma once

// Sensors beside the measuring: gives each candidate the readings of its own turns, and tells what
// energy it took and what the readings show.

#include <functional>
#include <memory>
#include <string>
#include <vector>

#include "measure/iterations/measurement.h"
#include "measure/telemetry/telemetry.h"

namespace ridgeline {

// Hands all events on, with readings, energy and findings added.
class TelemetryWatch final : public MeasureSink {
 public:
  // REQUIRES: `next` outlives the watch, and the sampler's start is zero of the measuring's clock.
  TelemetryWatch(MeasureSink& next, std::unique_ptr<TelemetrySampler> sampler,
                 std::vector<Subject> subjects);

  void group_begun(double now) override;
  void begun(std::size_t candidate) override { next_.begun(candidate); }
  void prepared(std::size_t candidate, const Preparation& preparation) override {
    next_.prepared(candidate, preparation);
  }
  void measured(std::size_t candidate, std::span<const Sample> samples) override;
  void ended(std::size_t candidate, const Ending& ending) override;

  [[nodiscard]] TelemetryOverhead overhead() const { return sampler_->overhead(); }
  [[nodiscard]] std::vector<MissingSensor> missing() const { return sampler_->missing(); }

 private:
  struct Turn {
    double from = 0.0, to = 0.0;
    std::int64_t iterations = 0;  // re-warming ones too: all of them take energy
  };
  // Of one candidate in this group; turns with nothing of others in between are one.
  struct Track {
    std::size_t candidate = 0;
    std::vector<Turn> turns;
  };
  Track& track(std::size_t candidate);
  void take();
  [[nodiscard]] std::vector<Reading> readings_around(const Track& track) const;
  void add_energy(const Track& track, StepDetails& details) const;

  MeasureSink& next_;
  std::unique_ptr<TelemetrySampler> sampler_;
  std::vector<Subject> subjects_;
  double group_start_ = 0.0;
  std::vector<Reading> all_;                 // of this group, counted from its start
  std::size_t given_ = 0;                    // of them, to candidates
  double round_ = 0.0, round_before_ = 0.0;  // when the last given reading was taken, and before it
  std::vector<Track> tracks_;
  std::optional<std::size_t> last_;  // the candidate of the turn before
};

}  // namespace ridgeline
