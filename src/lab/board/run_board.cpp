#include "lab/board/run_board.h"

#include <iterator>
#include <type_traits>

#include "base/error.h"
#include "lab/store/fields.h"

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
  std::vector<Setting> settings;
  const auto add = [&](const char* name, const auto& value) {
    if constexpr (std::is_arithmetic_v<std::remove_cvref_t<decltype(value)>>) {
      settings.emplace_back(name, fmt::format("{}", value));
    } else if (!value.empty()) {
      settings.emplace_back(name, value);
    }
  };
  visit_fields(work, add);
  visit_fields(executor, add);
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
    const std::int64_t step = after == steps_.begin() ? after->second : std::prev(after)->second;
    scalar("telemetry/" + reading.device + "/" + reading.sensor, step, reading.at_seconds,
           reading.value);
  }
  // Later readings lie after these.
  const auto after = steps_.upper_bound(readings.back().at_seconds);
  if (after != steps_.begin()) steps_.erase(steps_.begin(), std::prev(after));
}

}  // namespace ridgeline
