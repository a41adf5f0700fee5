#pragma once

// Sensors read while something runs, on a thread of their own, and what their readings show.

#include <chrono>
#include <cstdint>
#include <memory>
#include <optional>
#include <span>
#include <string>
#include <vector>

#include "store/records.h"

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
  // time since the call before; the first call gives none of them. Costly sensors (clocks of many
  // processors, child processes) are read about once a second. `at_seconds` is filled in by the
  // sampler.
  virtual void read(std::vector<Reading>& into) = 0;
  [[nodiscard]] virtual std::vector<MissingSensor> missing() const = 0;
};

// Processor, memory and process of this system; and, through NVML, the graphics processors.
[[nodiscard]] std::unique_ptr<SensorSource> system_sensors();
[[nodiscard]] std::unique_ptr<SensorSource> gpu_sensors();
[[nodiscard]] std::unique_ptr<SensorSource> all_sensors();

inline constexpr double kTelemetryHz = 10.0;

struct TelemetryOverhead {
  double cpu_seconds = 0.0;   // that rounds between the first and the last used
  double share = 0.0;         // of one core, over the time of sampling
  double rate_hz = 0.0;       // of the rounds, as far as sensors are fast enough for what was asked
  std::int64_t readings = 0;  // rounds
};

// Samples from construction, which takes the first reading, until stop(). The beats lie on a grid
// from the first reading on: a late round does not delay the next ones, a missed one is left out.
// Where a round takes long, beats are left out so that reading takes no more than 2% of a core.
// Throws bad_input for a rate that is not above 0 and at most 1000.
class TelemetrySampler {
 public:
  using Clock = std::chrono::steady_clock;
  TelemetrySampler(std::unique_ptr<SensorSource> source, double rate_hz, Clock::time_point start);
  ~TelemetrySampler();
  TelemetrySampler(const TelemetrySampler&) = delete;
  TelemetrySampler& operator=(const TelemetrySampler&) = delete;

  void stop();  // takes a last reading; calls after the first do nothing
  // What was read since the last call, in order of time; may be called while sampling goes on.
  [[nodiscard]] std::vector<Reading> take();
  [[nodiscard]] std::vector<MissingSensor> missing() const;
  [[nodiscard]] TelemetryOverhead overhead() const;

 private:
  struct State;
  std::unique_ptr<State> state_;
};

// What a run's readings show, with evidence: thermal and power throttling, a falling clock, memory
// pressure, swapping, a noisy neighbour (steal time, other programs).
[[nodiscard]] std::vector<Finding> findings_of(const std::vector<Reading>& readings);

// Whether the measured steps waited for their data: "loader-bound" when waiting is a good part of
// all time, "loader stalls" when it is a few long waits. `wall_seconds` of a sample has the wait
// in it. Samples without a wait time say nothing.
[[nodiscard]] std::vector<Finding> loader_findings(std::span<const Sample> samples);

// Joules between two times from the energy counters, or from power over time where there are none;
// nothing where neither was read, or not over the whole time.
[[nodiscard]] std::optional<double> energy_between(const std::vector<Reading>& readings,
                                                   const std::string& device, double from,
                                                   double to);

// One sensor over a run. The mean is over time: each reading counts for the time around it.
struct SensorSummary {
  std::string device, sensor;
  std::int64_t readings = 0;
  double mean = 0.0, min = 0.0, max = 0.0, first = 0.0, last = 0.0;
};
// In the order in which the sensors first appear.
[[nodiscard]] std::vector<SensorSummary> summaries_of(const std::vector<Reading>& readings);

// All sensors of this machine: what each reads now, or why it cannot be read. Takes a quarter of a
// second, since rates need two readings.
struct SensorState {
  std::vector<Reading> readings;
  std::vector<MissingSensor> missing;
  std::vector<std::string> gpus;  // what each is, with its limits
};
[[nodiscard]] SensorState read_sensors();
// As a table, "n/a" and the reason for what is missing.
[[nodiscard]] std::string sensors_text(const SensorState& state);

}  // namespace ridgeline
