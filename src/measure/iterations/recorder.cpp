#include "measure/iterations/recorder.h"

#include "base/clock.h"
#include "base/error.h"
#include "base/reason.h"

namespace ridgeline {
StoreRecorder::StoreRecorder(Store& store, RecorderConfig config, const ResultCollector& results)
    : store_(store), config_(std::move(config)), results_(results), runs_(config_.runs.size()) {}

template <typename Body>
void StoreRecorder::writing(Body body) {
  if (!trouble_.empty()) return;
  const Clock::time_point start = Clock::now();
  try {
    body();
  } catch (const std::exception& error) {
    trouble_ = reason_of(error);
  }
  seconds_ += seconds_since(start);
}

const std::string& StoreRecorder::uuid(std::size_t candidate) const {
  return config_.runs[candidate].uuid;
}

void StoreRecorder::begun(std::size_t candidate) {
  if (runs_[candidate].id != 0) return;
  writing([&] { runs_[candidate].id = store_.begin(config_.runs[candidate]); });
}

void StoreRecorder::measured(std::size_t candidate, std::span<const Sample> samples) {
  if (samples.empty()) return;
  writing([&] { store_.add(runs_[candidate].id, samples); });
}

void StoreRecorder::readings(std::size_t candidate, std::span<const Reading> readings) {
  if (readings.empty()) return;
  writing([&] { store_.add(runs_[candidate].id, readings); });
}

void StoreRecorder::ended(std::size_t candidate, const Ending& ending) {
  Run& run = runs_[candidate];
  if (run.id == 0) return;
  // Of several processes the first one's details are kept, as in the results.
  if (run.ends++ == 0) {
    writing([&] {
      if (!ending.details.steps.empty()) store_.add(run.id, std::span(ending.details.steps));
      if (!ending.details.memory.empty()) store_.add(run.id, std::span(ending.details.memory));
    });
  }
  if (run.ends < config_.processes) return;
  const Ending& whole = results_.results()[candidate].ending;
  finish(candidate, whole.status, whole.error);
}

void StoreRecorder::finish(std::size_t candidate, RunStatus status, const std::string& error) {
  const Measured& measured = results_.results()[candidate];
  std::map<std::string, double> numbers = measured.ending.details.numbers;
  std::map<std::string, std::string> notes = measured.ending.details.notes;
  std::vector<Finding> findings = measured.ending.details.findings;
  if (has_samples(measured)) {
    const MeasuredSummary summary = summarise(measured);
    add_to(numbers, notes, measured, summary);
    findings.insert(findings.end(), summary.findings.begin(), summary.findings.end());
  }
  numbers["recording_overhead_share"] = seconds_ / seconds_since(start_);
  writing([&] {
    if (!findings.empty()) store_.add(runs_[candidate].id, std::span<const Finding>(findings));
    store_.finish(runs_[candidate].id, status, error, numbers, notes);
  });
  if (!trouble_.empty()) give_up(candidate);
  runs_[candidate].finished = true;
}

// A run that is not whole in the store must not look as if it went on.
void StoreRecorder::give_up(std::size_t candidate) noexcept {
  try {
    store_.finish(runs_[candidate].id, RunStatus::failed,
                  trouble_.empty() ? "the measurement ended early" : trouble_, {}, {});
  } catch (const std::exception&) {
    // It cannot be written at all, of which trouble() tells.
  }
}

StoreRecorder::~StoreRecorder() {
  for (std::size_t i = 0; i < runs_.size(); ++i) {
    if (runs_[i].id != 0 && !runs_[i].finished) give_up(i);
  }
}

void StoreRecorder::close(RunStatus status, const std::string& error) {
  for (std::size_t i = 0; i < runs_.size(); ++i) {
    if (runs_[i].id != 0 && !runs_[i].finished) finish(i, status, error);
  }
}

}  // namespace ridgeline
