#include "lab/board/run_board.h"

#include <iterator>

#include "base/error.h"
#include "store/identity_fields.h"

namespace ridgeline {
namespace {

// A cell of a Markdown table: one line, and no bar that would end it.
std::string cell(const std::string& text) {
  std::string safe;
  for (const char letter : text) {
    if (letter == '|') safe += '\\';
    safe += letter == '\n' ? ' ' : letter;
  }
  return safe;
}

}  // namespace

std::vector<Setting> settings_of(const Work& work, const Executor& executor) {
  RunRecord run;
  run.work = work;
  run.executor = executor;
  std::vector<Setting> settings;
  for (const IdentityField& field : identity_fields()) {
    std::string value = field.text(run);
    if (!value.empty()) settings.emplace_back(field.name, std::move(value));
  }
  return settings;
}

RunBoard::RunBoard(const std::filesystem::path& folder, double wall_time)
    : file_(folder), wall_time_(wall_time) {}

void RunBoard::settings(std::span<const Setting> settings) {
  std::string table = "| name | value |\n|---|---|\n";
  for (const auto& [name, value] : settings) {
    table += fmt::format("| {} | {} |\n", cell(name), cell(value));
  }
  file_.text("hyperparameters", table);
}

void RunBoard::scalar(std::string_view tag, std::int64_t step, double at_seconds, double value) {
  file_.scalar(tag, step, wall_time_ + at_seconds, value);
}

void RunBoard::step_ended(std::int64_t step, double at_seconds) { steps_[at_seconds] = step; }

void RunBoard::readings(std::span<const Reading> readings) {
  if (readings.empty()) return;
  for (const Reading& reading : readings) {
    const auto after = steps_.upper_bound(reading.at_seconds);
    // The last step that had ended; before the first, that one; 0 where none has ended yet.
    const std::int64_t step = steps_.empty()            ? 0
                              : after == steps_.begin() ? after->second
                                                        : std::prev(after)->second;
    scalar("telemetry/" + reading.device + "/" + reading.sensor, step, reading.at_seconds,
           reading.value);
  }
  // Later readings lie after these.
  const auto after = steps_.upper_bound(readings.back().at_seconds);
  if (after != steps_.begin()) steps_.erase(steps_.begin(), std::prev(after));
}

}  // namespace ridgeline
