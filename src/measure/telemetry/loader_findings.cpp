// Whether steps waited for their data.

#include <algorithm>

#include "analysis/stats/summary.h"
#include "base/error.h"
#include "base/text.h"
#include "measure/telemetry/telemetry.h"

namespace ridgeline {
namespace {

constexpr double kBound = 0.10;       // of all time spent waiting: the loader sets the speed
constexpr double kStallShare = 0.01;  // of all time in a few long waits: worth saying
constexpr double kLongWait = 0.5;     // of a usual step's work: a stall

}  // namespace

std::vector<Finding> loader_findings(std::span<const Sample> samples) {
  std::vector<double> waits, work;
  double waited = 0.0, all = 0.0;
  const Sample* longest = nullptr;
  for (const Sample& sample : samples) {
    if (sample.kind != SampleKind::measured || !sample.data_wait_seconds) continue;
    waits.push_back(*sample.data_wait_seconds);
    work.push_back(sample.wall_seconds - *sample.data_wait_seconds);
    waited += waits.back();
    all += sample.wall_seconds;
    if (longest == nullptr || waits.back() > *longest->data_wait_seconds) longest = &sample;
  }
  if (waits.empty() || all <= 0.0) return {};
  const double share = waited / all, usual_wait = median_of(waits), usual_work = median_of(work);
  const auto stalls = std::count_if(waits.begin(), waits.end(), [&](double wait) {
    return wait > kLongWait * usual_work && wait > 2.0 * usual_wait;
  });
  const std::string worst =
      fmt::format("the longest wait was {} at {:.1f} s", duration_text(*longest->data_wait_seconds),
                  longest->at_seconds);
  // Few long waits among steps that hardly wait are another matter than a loader that is too slow.
  if (usual_wait < kBound * usual_work) {
    if (share < kStallShare || stalls == 0) return {};
    return {{"loader stalls", "warning",
             fmt::format("{} of {} steps stood still for data, in all {} or {:.1f}% of the time, "
                         "while most waited {}; {}",
                         stalls, waits.size(), duration_text(waited), 100.0 * share,
                         duration_text(usual_wait), worst)}};
  }
  if (share < kBound) return {};
  return {{"loader-bound", "warning",
           fmt::format("{} steps waited for data during {:.0f}% of their time: {} of {} in the "
                       "median; {}",
                       waits.size(), 100.0 * share, duration_text(usual_wait),
                       duration_text(usual_wait + usual_work), worst)}};
}

}  // namespace ridgeline
