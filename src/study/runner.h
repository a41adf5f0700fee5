#pragma once

// Carries a plan out: one command after another, written down in the store as it goes, so that it
// can go on after whatever ended it.

#include <filesystem>
#include <functional>
#include <memory>
#include <string>
#include <vector>

#include "store/store.h"
#include "study/plan.h"
#include "study/study_lock.h"

namespace ridgeline::study {

struct StudyCall {
  std::filesystem::path store;
  std::string program;            // that knows the commands: this one
  std::string environment;        // key; the store has it
  std::string environment_label;  // the user's
  std::string options;            // what was chosen beside the scale, in words
  bool restart = false;           // begin anew, though a former one could go on
};

// Hears what happens, and says whether to go on.
class StudyObserver {
 public:
  virtual ~StudyObserver() = default;
  virtual void begun(const StudyItemRecord& item) = 0;
  virtual void ended(const StudyItemRecord& item) = 0;
  // Asked several times a second while a command runs.
  [[nodiscard]] virtual bool go_on() = 0;
};

class StudyRun {
 public:
  // Goes on with the newest record of the same study, scale, definition, options and machine that
  // is not finished, or begins a new one. Items that are done stay so, by whatever build.
  StudyRun(const Study& study, Scale scale, std::vector<PlannedItem> plan, StudyCall call);

  [[nodiscard]] const StudyRecord& record() const { return record_; }
  [[nodiscard]] bool resumed() const { return resumed_; }
  // As they stand now, in the order of the plan.
  [[nodiscard]] std::vector<StudyItemRecord> items() const;

  // Everything that waits or failed before. False when the observer ended it.
  bool run(StudyObserver& observer);

 private:
  void open(const StudyRecord& wanted);
  void take_over(const std::vector<StudyItemRecord>& former);
  // False when the observer ended it.
  bool run_item(std::size_t index, StudyObserver& observer);
  void remove_runs(const std::string& key);
  [[nodiscard]] bool ceilings_known(const std::string& device) const;

  StudyCall call_;
  Store store_;
  StudyRecord record_;
  bool resumed_ = false;
  std::vector<PlannedItem> plan_;
  std::vector<StudyItemRecord> further_;  // that commands left out by themselves
  std::unique_ptr<StudyLock> lock_;
};

}  // namespace ridgeline::study
