#include "measure/iterations/telemetry_watch.h"

#include <algorithm>
#include <set>

#include "base/error.h"
#include "measure/iterations/blocks.h"

namespace ridgeline {
namespace {

// Seconds; what is shorter tells nothing.
constexpr double kShortestForEnergy = 0.05;
constexpr double kMostOf = 0.9;  // the distance of two readings

}  // namespace

TelemetryWatch::TelemetryWatch(MeasureSink& next, std::unique_ptr<TelemetrySampler> sampler,
                               std::vector<Subject> subjects)
    : next_(next), sampler_(std::move(sampler)), subjects_(std::move(subjects)) {}

void TelemetryWatch::group_begun(double now) {
  group_start_ = now;
  (void)sampler_->take();
  all_.clear();
  given_ = 0;
  round_ = round_before_ = 0.0;
  tracks_.clear();
  last_.reset();
  next_.group_begun(now);
}

TelemetryWatch::Track& TelemetryWatch::track(std::size_t candidate) {
  for (Track& known : tracks_) {
    if (known.candidate == candidate) return known;
  }
  tracks_.push_back({.candidate = candidate, .turns = {}});
  return tracks_.back();
}

void TelemetryWatch::take() {
  for (Reading& reading : sampler_->take()) {
    reading.at_seconds -= group_start_;
    all_.push_back(std::move(reading));
  }
}

void TelemetryWatch::measured(std::size_t candidate, std::span<const Sample> samples) {
  next_.measured(candidate, samples);
  if (samples.empty()) return;
  Turn turn{samples.front().at_seconds, 0.0, 0};
  for (const Sample& sample : samples) {
    const std::int64_t iterations = sample.kind == SampleKind::queued ? kQueued : 1;
    turn.iterations += iterations;
    turn.to = std::max(turn.to,
                       sample.at_seconds + static_cast<double>(iterations) * sample.wall_seconds);
  }
  Track& track_of = track(candidate);
  const bool split = samples.front().kind == SampleKind::split;
  if (!split && last_ == candidate && !track_of.turns.empty()) {
    track_of.turns.back().to = turn.to;
    track_of.turns.back().iterations += turn.iterations;
  } else if (!split) {
    track_of.turns.push_back(turn);
  }
  const bool goes_on = last_ == candidate && !track_of.turns.empty();
  const double since = goes_on ? track_of.turns.back().from : turn.from;
  last_ = candidate;
  take();
  std::vector<Reading> during;
  for (; given_ < all_.size(); ++given_) {
    const Reading& reading = all_[given_];
    if (reading.at_seconds > round_) {
      round_before_ = round_;
      round_ = reading.at_seconds;
    }
    // Rates are over the time since the reading before: that must have been this candidate's.
    const double most = kMostOf * (reading.at_seconds - round_before_);
    if (reading.at_seconds - most >= since && reading.at_seconds <= turn.to) {
      during.push_back(reading);
    }
  }
  if (during.empty()) return;
  next_.readings(candidate, during);
}

void TelemetryWatch::add_energy(const Track& of, StepDetails& details) const {
  // The host and the device that computes: other GPUs of the host do something else.
  const std::set<std::string> devices = {"cpu", subjects_[of.candidate].executor.device};
  double total = 0.0, seconds = 0.0;
  std::int64_t iterations = 0;
  bool any = false;
  for (const std::string& device : devices) {
    double joules = 0.0, device_seconds = 0.0;
    std::int64_t device_iterations = 0;
    for (const Turn& turn : of.turns) {
      if (turn.to - turn.from < kShortestForEnergy) continue;
      const auto energy = energy_between(all_, device, turn.from, turn.to);
      if (!energy) continue;
      joules += *energy;
      device_seconds += turn.to - turn.from;
      device_iterations += turn.iterations;
    }
    if (device_iterations == 0) continue;
    any = true;
    total += joules;
    seconds = std::max(seconds, device_seconds);
    iterations = std::max(iterations, device_iterations);
    details.numbers[device == "cpu" ? "cpu_energy_joules" : "gpu_energy_joules"] += joules;
  }
  if (!any) return;
  const auto samples = static_cast<double>(iterations * subjects_[of.candidate].work.batch);
  details.numbers["energy_joules"] = total;
  details.numbers["energy_joules_per_sample"] = total / samples;
  details.numbers["mean_power_watts"] = total / seconds;
}

// From its first turn to its last one: what happens to the machine in the turns of others happens
// to all that are measured side by side.
std::vector<Reading> TelemetryWatch::readings_around(const Track& of) const {
  std::vector<Reading> around;
  if (of.turns.empty()) return around;
  for (const Reading& reading : all_) {
    if (reading.at_seconds >= of.turns.front().from && reading.at_seconds <= of.turns.back().to) {
      around.push_back(reading);
    }
  }
  return around;
}

void TelemetryWatch::ended(std::size_t candidate, const Ending& ending) {
  take();
  Ending with = ending;
  const Track& of = track(candidate);
  add_energy(of, with.details);
  for (Finding& finding : findings_of(readings_around(of))) {
    with.details.findings.push_back(std::move(finding));
  }
  const TelemetryOverhead overhead = sampler_->overhead();
  with.details.numbers["telemetry_rate_hz"] = overhead.rate_hz;
  with.details.numbers["telemetry_overhead_share"] = overhead.share;
  std::string missing;
  for (const MissingSensor& sensor : sampler_->missing()) {
    missing += fmt::format("{}{} {}: {}", missing.empty() ? "" : "; ", sensor.device, sensor.sensor,
                           sensor.reason);
  }
  if (!missing.empty()) with.details.notes["missing_sensors"] = missing;
  next_.ended(candidate, with);
}

}  // namespace ridgeline
