#pragma once

#include <chrono>
#include <cstdint>
#include <string>

namespace ridgeline::cli {

// A progress bar on standard error: only on a terminal, only for work of more than a second.
class ProgressBar {
 public:
  ProgressBar();
  ~ProgressBar() { clear(); }
  ProgressBar(const ProgressBar&) = delete;
  ProgressBar& operator=(const ProgressBar&) = delete;

  // Cheap: draws ten times a second at most.
  void show(std::int64_t done, std::int64_t total, const char* what);
  // Takes the bar away, for other output.
  void clear();

 private:
  bool terminal_, drawn_ = false;
  std::int64_t first_ = -1;  // what was done when it was first shown
  std::chrono::steady_clock::time_point start_, last_;
};

}  // namespace ridgeline::cli
