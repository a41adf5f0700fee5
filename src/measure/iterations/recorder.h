#pragma once

// Writes what is measured to the store, turn by turn.

#include <chrono>
#include <string>
#include <vector>

#include "measure/iterations/result.h"
#include "store/store.h"

namespace ridgeline {

struct RecorderConfig {
  std::vector<RunRecord> runs;  // one for each candidate, as they begin
  std::int64_t processes = 1;   // in which each candidate is measured
};

// A store that cannot be written any more (a full disk) does not end the measuring: trouble() tells
// of it, and nothing more is written, except that the runs have failed. So have those that have
// begun and not ended when the recorder goes away.
class StoreRecorder final : public MeasureSink {
 public:
  // REQUIRES: the store outlives the recorder; `results` collects the same events, each before this
  // one sees it.
  StoreRecorder(Store& store, RecorderConfig config, const ResultCollector& results);
  ~StoreRecorder();
  StoreRecorder(const StoreRecorder&) = delete;
  StoreRecorder& operator=(const StoreRecorder&) = delete;

  void begun(std::size_t candidate) override;
  void measured(std::size_t candidate, std::span<const Sample> samples) override;
  void readings(std::size_t candidate, std::span<const Reading> readings) override;
  void ended(std::size_t candidate, const Ending& ending) override;

  // Those that have begun and not ended, when no more is to come: why.
  void close(RunStatus status, const std::string& error);

  [[nodiscard]] const std::string& trouble() const { return trouble_; }
  [[nodiscard]] double seconds() const { return seconds_; }  // spent on writing
  [[nodiscard]] RunId run(std::size_t candidate) const { return runs_[candidate].id; }  // 0: none
  [[nodiscard]] const std::string& uuid(std::size_t candidate) const;

 private:
  struct Run {
    RunId id = 0;
    std::int64_t ends = 0;
    bool finished = false;
  };
  template <typename Body>
  void writing(Body body);
  void finish(std::size_t candidate, RunStatus status, const std::string& error);
  void give_up(std::size_t candidate) noexcept;

  Store& store_;
  RecorderConfig config_;
  const ResultCollector& results_;
  std::vector<Run> runs_;
  std::string trouble_;
  double seconds_ = 0.0;
  std::chrono::steady_clock::time_point start_ = std::chrono::steady_clock::now();
};

}  // namespace ridgeline
