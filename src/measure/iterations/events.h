#pragma once

// The events of a measuring as lines of JSON, from one process to another.

#include <functional>
#include <string>
#include <string_view>

#include "measure/iterations/measurement.h"

namespace ridgeline {

// Writes each event as one line.
class EventWriter final : public MeasureSink {
 public:
  explicit EventWriter(std::function<void(const std::string& line)> write)
      : write_(std::move(write)) {}
  void begun(std::size_t candidate) override;
  void prepared(std::size_t candidate, const Preparation& preparation) override;
  void measured(std::size_t candidate, std::span<const Sample> samples) override;
  void readings(std::size_t candidate, std::span<const Reading> readings) override;
  void ended(std::size_t candidate, const Ending& ending) override;

 private:
  std::function<void(const std::string& line)> write_;
};

// Hands the event of a line on; times of samples and readings are moved by `shift_seconds`. Throws
// a failure for a line that is none, or that speaks of candidates beyond `candidates`.
void replay_event(std::string_view line, std::size_t candidates, double shift_seconds,
                  MeasureSink& sink);

}  // namespace ridgeline
