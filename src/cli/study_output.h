#pragma once

// A study's plan, its progress and its outcome, for people and for programs.

#include <span>
#include <string>
#include <vector>

#include "base/clock.h"
#include "cli/interrupt.h"
#include "documents/study.h"

namespace ridgeline::cli {

// The items with estimates, what is left out, what is substituted.
[[nodiscard]] std::string study_plan_text(const StudySummary& summary);
// How it ended.
[[nodiscard]] std::string study_outcome_text(const StudySummary& summary);
// Why nothing could be done, in one line. REQUIRES: every item was left out.
[[nodiscard]] std::string study_idle_text(const StudySummary& summary);
// Of the built-in ones.
[[nodiscard]] std::string study_list_text();

// Tells each item as it begins and ends; on a terminal one line with the overall progress. What is
// left is estimated from how long finished items took against their estimates.
class StudyProgress final : public study::StudyObserver {
 public:
  explicit StudyProgress(std::span<const StudyItemRecord> items);
  ~StudyProgress() override;
  void begun(const StudyItemRecord& item) override;
  void ended(const StudyItemRecord& item) override;
  [[nodiscard]] bool go_on() override;
  [[nodiscard]] int signal() const { return interrupt_.signal(); }
  [[nodiscard]] double seconds() const;

 private:
  [[nodiscard]] std::string standing() const;
  void draw();
  void clear();

  InterruptGuard interrupt_;
  bool terminal_, drawn_ = false, told_ = false;
  Clock::time_point start_ = Clock::now(), item_start_ = start_, last_;
  std::size_t total_ = 0, finished_ = 0;             // items
  double left_estimate_ = 0.0;                       // of what has not begun
  double done_estimate_ = 0.0, done_seconds_ = 0.0;  // of what has ended in this call
  StudyItemRecord current_;
};

}  // namespace ridgeline::cli
