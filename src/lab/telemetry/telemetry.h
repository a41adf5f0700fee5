#pragma once

// Sensors read while something runs, on a thread of their own.

#include <chrono>
#include <functional>
#include <memory>
#include <string>
#include <vector>

#include "lab/store/records.h"

namespace ridgeline {

// A sensor that cannot be read here, and why: shown as "n/a", never as zero.
struct MissingSensor {
  std::string device, sensor, reason;
};

// Where readings come from; tests put their own in its place.
class SensorSource {
 public:
  virtual ~SensorSource() = default;
  // All sensors that can be read now. Rates (utilisation, context switches a second) are over the
  // time since the call before; the first call gives none of them. `at_seconds` is filled in by
  // the sampler.
  virtual void read(std::vector<Reading>& into) = 0;
  [[nodiscard]] virtual std::vector<MissingSensor> missing() const = 0;
};

// Processor, memory and process of this system; and, through NVML, the graphics processors.
[[nodiscard]] std::unique_ptr<SensorSource> system_sensors();
[[nodiscard]] std::unique_ptr<SensorSource> gpu_sensors();
[[nodiscard]] std::unique_ptr<SensorSource> all_sensors();

struct TelemetryOverhead {
  double cpu_seconds = 0.0;   // that the sampling thread used
  double share = 0.0;         // of one core, over the time of sampling
  std::int64_t readings = 0;  // rounds
};

// Samples from construction until stop().
class TelemetrySampler {
 public:
  using Clock = std::chrono::steady_clock;
  TelemetrySampler(std::unique_ptr<SensorSource> source, double rate_hz, Clock::time_point start);
  ~TelemetrySampler();
  TelemetrySampler(const TelemetrySampler&) = delete;
  TelemetrySampler& operator=(const TelemetrySampler&) = delete;

  void stop();  // takes a last reading; once
  // What was read since the last call, in order of time; may be called while sampling goes on.
  [[nodiscard]] std::vector<Reading> take();
  [[nodiscard]] std::vector<MissingSensor> missing() const;
  [[nodiscard]] TelemetryOverhead overhead() const;

 private:
  struct State;
  std::unique_ptr<State> state_;
};

// What a run's readings show, with evidence: thermal and power throttling, a falling clock, memory
// pressure, swapping, a noisy neighbour (steal time).
[[nodiscard]] std::vector<Finding> findings_of(const std::vector<Reading>& readings);

// Joules between two times from the energy counters, or from power over time where there are none;
// nothing where neither was read.
[[nodiscard]] std::optional<double> energy_between(const std::vector<Reading>& readings,
                                                   const std::string& device, double from,
                                                   double to);

}  // namespace ridgeline
