#pragma once

// One run in TensorBoard: its scalars, its settings, and what sensors read while it went on.

#include <filesystem>
#include <map>
#include <span>
#include <string>
#include <utility>
#include <vector>

#include "lab/board/event_file.h"
#include "store/records.h"

namespace ridgeline {

// A row of the settings: name and value.
using Setting = std::pair<std::string, std::string>;
// What was computed and by whom, fields that say nothing left out.
[[nodiscard]] std::vector<Setting> settings_of(const Work& work, const Executor& executor);

// Times are seconds since the run began.
class RunBoard {
 public:
  // `wall_time`: when the run began, in seconds since 1970.
  RunBoard(const std::filesystem::path& folder, double wall_time);

  void settings(std::span<const Setting> settings);  // the text "hyperparameters"
  void scalar(std::string_view tag, std::int64_t step, double at_seconds, double value);
  // Readings stand at the last step that had ended when they were read, as telemetry/DEVICE/SENSOR.
  void step_ended(std::int64_t step, double at_seconds);
  void readings(std::span<const Reading> readings);
  void flush() { file_.flush(); }

  [[nodiscard]] const std::string& trouble() const { return file_.trouble(); }

 private:
  EventFile file_;
  double wall_time_;
  // Ends of steps since the last readings, and the one before: time and step.
  std::map<double, std::int64_t> steps_ = {{0.0, 0}};
};

}  // namespace ridgeline
