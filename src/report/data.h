#pragma once

// What reports are made from: the store, read once. Every table, figure and sentence takes its
// numbers from here, so that the same number is the same everywhere.

#include <functional>
#include <map>
#include <memory>
#include <optional>
#include <span>
#include <string>
#include <vector>

#include "analysis/roofline/points.h"
#include "analysis/roofline/roofs.h"
#include "store/store.h"
#include "study/study.h"

namespace ridgeline::report {

// A number with its 95% interval; of fewer than six samples, which have none, with their range.
struct Estimate {
  double value = 0.0, low = 0.0, high = 0.0;
  std::int64_t samples = 0;  // that it was made from

  [[nodiscard]] bool sound() const { return samples >= 6; }
};

// B over A of two that do not depend on each other: relative distances to the ends of the intervals
// add as squares.
[[nodiscard]] Estimate ratio_of(const Estimate& b, const Estimate& a);

// One computer, whatever builds of the program measured on it.
struct Machine {
  std::string name = {};               // the user's label, or host and processor; unique
  std::vector<std::string> keys = {};  // of its environments, the newest last
  EnvironmentRecord environment = {};  // the newest
  std::vector<Ceiling> ceilings = {};  // of each device the newest ones
};

// What one sensor read over a run.
struct SensorSummary {
  std::int64_t readings = 0;
  double mean = 0.0, low = 0.0, high = 0.0;
};

// One run as reports see it.
struct RunView {
  RunRecord run;
  std::size_t machine = 0;  // of Data::machines
  std::string part;         // of its study; empty: none
  std::string substitute;   // what took the place of missing data; empty: nothing
  std::vector<EpochRecord> epochs;
  std::vector<Finding> findings;
  // Wall time of an iteration (of a training: of its steady epochs, by iteration), and samples a
  // second. Nothing where nothing was measured.
  std::optional<Estimate> seconds, rate;
  std::optional<double> flops_per_second;  // algorithmic FLOPs of the iteration over its time

  // "native", "auto on cuda:0 in bf16", "torch-cpu (channels_last)": what tells executors apart.
  // `more` is said beside its options: "4 threads".
  [[nodiscard]] std::string executor(const std::string& more = {}) const;
  // "resumed after epoch 3"; empty: it was not.
  [[nodiscard]] std::string resumed() const;
  // The value of an axis, as a word and as a number: a field of the run's identity by its name, the
  // samples of its data set ("samples"), the epochs that were done ("epochs"), a number of the run
  // ("training_flops"), or an option of the model ("depth", "activation"). Empty: it has none.
  [[nodiscard]] std::string word(const std::string& axis) const;
  [[nodiscard]] std::optional<double> number(const std::string& axis) const;
};

using Runs = std::vector<const RunView*>;

// The last epoch that ended with a test; null: none did.
[[nodiscard]] const EpochRecord* last_tested(const RunView& run);

// A study with its runs on all machines.
struct StudyView {
  study::Definition definition;
  std::map<std::string, std::string> parts;  // their titles, by id
  std::vector<StudyRecord> records;          // one for each machine and scale
  std::vector<StudyItemRecord> items;        // of all of them
  Runs runs;                                 // of items that are done; oldest first
};

class HeldRuns;
class Ratios;

class Data {
 public:
  // Reads all runs that are complete, and those that are not for the list of them. `store` must
  // outlive it. Only the newest record of a study counts for a machine and a scale, and only the
  // fullest scale of a machine: `full` before `small`.
  explicit Data(const Store& store);
  ~Data();
  Data(const Data&) = delete;
  Data& operator=(const Data&) = delete;

  [[nodiscard]] const std::vector<Machine>& machines() const { return machines_; }
  [[nodiscard]] const std::vector<RunView>& runs() const { return runs_; }
  [[nodiscard]] const std::vector<StudyView>& studies() const { return studies_; }
  // Complete runs that belong to no study.
  [[nodiscard]] Runs other_runs() const;
  // Runs that were interrupted, failed, or are still going.
  [[nodiscard]] const std::vector<RunRecord>& unfinished() const { return unfinished_; }
  [[nodiscard]] const Machine& machine_of(const RunView& run) const {
    return machines_[run.machine];
  }
  // The one with an environment of that key; null: unknown.
  [[nodiscard]] const Machine* find_machine(const std::string& environment) const;
  [[nodiscard]] const RunView* find(RunId run) const;

  // How many times as fast one run is as another; verdicts are kept (analysis/ratios.h).
  [[nodiscard]] Ratios& ratios() const;
  // How well the runs predict each other (analysis/held_runs.h); made when first asked for.
  [[nodiscard]] const HeldRuns& held_runs() const;

  // The rows of a run. Read anew at each call.
  [[nodiscard]] const Store& store() const { return store_; }

  // The roofs that the run's device has; empty ones where its ceilings were not measured.
  [[nodiscard]] Roofs roofs(const RunView& run) const;
  // The whole iteration under its roofs; nothing without step times or without roofs.
  [[nodiscard]] std::optional<RooflinePoint> point(const RunView& run) const;
  // Of the run's own device, or of the processor for sensors of the host; nothing: not read.
  [[nodiscard]] std::optional<SensorSummary> sensor(const RunView& run,
                                                    const std::string& name) const;
  // Most memory that the run had: on its device, and of the process. Nothing: not measured.
  [[nodiscard]] std::optional<double> device_memory_bytes(const RunView& run) const;
  [[nodiscard]] std::optional<double> process_memory_bytes(const RunView& run) const;

 private:
  void read_machines();
  void read_runs();
  void read_studies();

  const Store& store_;
  std::vector<Machine> machines_;
  std::map<std::string, std::size_t> machine_of_key_;
  std::vector<RunView> runs_;
  std::vector<RunRecord> unfinished_;
  std::vector<StudyView> studies_;
  // Asked for by several tables and figures.
  mutable std::map<RunId, std::optional<RooflinePoint>> points_;
  mutable std::map<RunId, std::vector<Reading>> readings_;
  mutable std::unique_ptr<Ratios> ratios_;
  mutable std::unique_ptr<HeldRuns> held_runs_;
};

}  // namespace ridgeline::report
