// The thread that reads the sensors.

#include <algorithm>
#include <cmath>
#include <condition_variable>
#include <exception>
#include <iterator>
#include <mutex>
#include <thread>
#include <utility>

#include "base/error.h"
#include "base/processor_time.h"
#include "measure/telemetry/telemetry.h"

namespace ridgeline {
namespace {

// Of one core, for reading: slow sensors are read less often.
constexpr double kMostShare = 0.02;
// The first round may open files and libraries: it tells what the others take at most.
constexpr double kLongestFirstPause = 0.5;

double seconds_between(TelemetrySampler::Clock::time_point from,
                       TelemetrySampler::Clock::time_point to) {
  return std::chrono::duration<double>(to - from).count();
}

}  // namespace

struct TelemetrySampler::State {
  std::unique_ptr<SensorSource> source;  // used by one thread at a time
  Clock::time_point start, first;
  double period = 0.1;
  double pause = 0.0;  // that the last round asks for

  mutable std::mutex mutex;  // of everything below
  std::condition_variable changed;
  bool stopping = false;
  std::vector<Reading> readings;
  std::vector<MissingSensor> missing;
  TelemetryOverhead overhead;

  std::thread thread;

  // One round. A source that throws has nothing more to say: false. `all` asks again what is
  // missing.
  bool round(bool all) {
    const Clock::time_point now = Clock::now();
    std::vector<Reading> fresh;
    std::string failure;
    try {
      source->read(fresh);
    } catch (const std::exception& error) {
      failure = error.what();
    }
    for (Reading& reading : fresh) reading.at_seconds = seconds_between(start, now);
    std::vector<MissingSensor> gone;
    if (all || !failure.empty()) gone = source->missing();
    if (!failure.empty()) gone.push_back({"", "telemetry", failure});
    const std::lock_guard lock(mutex);
    readings.insert(readings.end(), std::make_move_iterator(fresh.begin()),
                    std::make_move_iterator(fresh.end()));
    if (all || !failure.empty()) missing = std::move(gone);
    ++overhead.readings;
    return failure.empty();
  }

  void count(double cpu_seconds) {
    const std::lock_guard lock(mutex);
    overhead.cpu_seconds += cpu_seconds;
    const double seconds = seconds_between(first, Clock::now());
    overhead.share = seconds > 0.0 ? overhead.cpu_seconds / seconds : 0.0;
    overhead.rate_hz = std::min(1.0 / period, static_cast<double>(overhead.readings - 1) / seconds);
  }

  // The next point of the grid that lies ahead, behind the pause.
  [[nodiscard]] Clock::time_point next_beat() const {
    const double passed = seconds_between(first, Clock::now()) + pause;
    const double beat = (std::floor(passed / period) + 1.0) * period;
    return first + std::chrono::duration_cast<Clock::duration>(std::chrono::duration<double>(beat));
  }

  // A thread may not throw: without memory the readings end.
  void work() noexcept {
    try {
      read_on();
    } catch (const std::exception&) {
    }
  }

  void read_on() {
    bool readable = true;
    for (bool stop = false; !stop && readable;) {
      {
        std::unique_lock lock(mutex);
        stop = changed.wait_until(lock, next_beat(), [this] { return stopping; });
      }
      const double before = thread_processor_seconds();
      readable = round(stop);
      const double used = thread_processor_seconds() - before;
      pause = used / kMostShare;
      // The first and the last one disturb no measurement.
      count(stop ? 0.0 : used);
    }
  }
};

TelemetrySampler::TelemetrySampler(std::unique_ptr<SensorSource> source, double rate_hz,
                                   Clock::time_point start)
    : state_(std::make_unique<State>()) {
  if (!(rate_hz > 0.0 && rate_hz <= 1000.0)) {
    bad_input("{} readings per second: telemetry takes a rate above 0 and at most 1000", rate_hz);
  }
  state_->source = std::move(source);
  state_->start = start;
  state_->first = Clock::now();
  state_->period = 1.0 / rate_hz;
  state_->overhead.rate_hz = rate_hz;
  const double before = thread_processor_seconds();
  const bool readable = state_->round(true);
  state_->pause = std::min((thread_processor_seconds() - before) / kMostShare, kLongestFirstPause);
  if (readable) state_->thread = std::thread([state = state_.get()] { state->work(); });
}

TelemetrySampler::~TelemetrySampler() { stop(); }

void TelemetrySampler::stop() {
  {
    const std::lock_guard lock(state_->mutex);
    state_->stopping = true;
  }
  state_->changed.notify_one();
  if (state_->thread.joinable()) state_->thread.join();
}

std::vector<Reading> TelemetrySampler::take() {
  const std::lock_guard lock(state_->mutex);
  return std::exchange(state_->readings, {});
}

std::vector<MissingSensor> TelemetrySampler::missing() const {
  const std::lock_guard lock(state_->mutex);
  return state_->missing;
}

TelemetryOverhead TelemetrySampler::overhead() const {
  const std::lock_guard lock(state_->mutex);
  return state_->overhead;
}

}  // namespace ridgeline
