#pragma once

// Measures candidates side by side: prepares them, warms them up, lets them take turns in blocks of
// random order until enough is known, then asks each for its details. What is measured goes to a
// sink at once, turn by turn, so that nothing is lost when the program ends early.

#include <functional>
#include <memory>
#include <span>
#include <string>
#include <vector>

#include "measure/iterations/measured_step.h"
#include "measure/iterations/stopping.h"
#include "measure/iterations/warmup.h"

namespace ridgeline {

struct MeasureOptions {
  WarmupRule warmup;
  StoppingRule stopping;
  std::uint64_t seed = 0;    // of the order of the turns
  std::int64_t process = 0;  // which of several
  bool split = true;         // a few iterations with the phases apart
  bool step_times = true;    // the time of each step of the plan
  // Turns of candidates side by side are too short for sensors: after them each gets so long for
  // itself alone.
  double watch_seconds = 0.0;
};

// How the measuring of a candidate ended.
struct Ending {
  RunStatus status = RunStatus::complete;
  std::string error;  // why it failed
  StopReason reason = StopReason::none;
  std::string warmup;  // why the warm-up ended
  StepDetails details;
};

// Candidates by their index. For each: begun, prepared, then samples as turns end, at last ended,
// which comes early when something fails.
class MeasureSink {
 public:
  virtual ~MeasureSink() = default;
  // Before the candidates of a group: `at_seconds` of their samples count from here.
  virtual void group_begun(double now) { (void)now; }
  virtual void begun(std::size_t candidate) { (void)candidate; }
  virtual void prepared(std::size_t candidate, const Preparation& preparation) {
    (void)candidate, (void)preparation;
  }
  // Of the warm-up, of a turn, of the time for sensors, or of the split pass.
  virtual void measured(std::size_t candidate, std::span<const Sample> samples) {
    (void)candidate, (void)samples;
  }
  // Of sensors, during turns of the candidate.
  virtual void readings(std::size_t candidate, std::span<const Reading> readings) {
    (void)candidate, (void)readings;
  }
  virtual void ended(std::size_t candidate, const Ending& ending) { (void)candidate, (void)ending; }
};

// The total stays as it is from the first call on.
struct MeasureProgress {
  std::int64_t done = 0, total = 0;
  const char* unit = "iteration";  // or "second", where the number of iterations is open
};

// The world outside; tests put their own in its place.
struct MeasureControl {
  std::function<double()> now;  // seconds of a clock that never goes back
  // Asked after each iteration: false ends the measuring. Each candidate that was prepared then
  // still gets one sample, so that no result is empty.
  std::function<bool(const MeasureProgress&)> go_on;
  // Called before one of several candidates runs, with the processor time that all of them have
  // used: waits until those before it compute no more. Empty: there is no waiting.
  std::function<void(const std::function<double()>& used)> settle = {};
};

using StepList = std::vector<std::unique_ptr<MeasuredStep>>;

// Groups are measured one after another, the candidates of each side by side. Failures of a
// candidate end that candidate alone. False when it was interrupted.
bool measure(const StepList& steps, const std::vector<std::vector<std::size_t>>& groups,
             const MeasureOptions& options, const MeasureControl& control, MeasureSink& sink);

}  // namespace ridgeline
