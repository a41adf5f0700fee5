#include "cli/study_output.h"

#include <unistd.h>

#include <algorithm>
#include <map>

#include "base/clock.h"
#include "base/error.h"
#include "base/text.h"
#include "cli/output.h"
#include "cli/tables.h"
#include "store/fields.h"

namespace ridgeline::cli {
namespace {

bool runs(const StudyItemRecord& item) { return item.status != ItemStatus::left_out; }
bool waits(const StudyItemRecord& item) {
  return item.status == ItemStatus::waiting || item.status == ItemStatus::failed;
}

std::string plural(std::size_t count, const char* word) {
  return fmt::format("{} {}{}", count, word, count == 1 ? "" : "s");
}

// Seconds, rounded.
std::string about(double seconds) {
  if (seconds < 1.0) return "a moment";
  if (seconds < 90.0) return fmt::format("{:.0f} s", seconds);
  if (seconds < 5400.0) return fmt::format("{:.0f} min", seconds / 60.0);
  return fmt::format("{:.1f} h", seconds / 3600.0);
}

// What is left out by its reasons, in the order in which they come.
using Reasons = std::vector<std::pair<std::string, std::vector<std::string>>>;
Reasons left_out_of(std::span<const StudyItemRecord> items) {
  Reasons reasons;
  for (const StudyItemRecord& item : items) {
    if (item.status != ItemStatus::left_out) continue;
    auto known = std::find_if(reasons.begin(), reasons.end(),
                              [&](const auto& each) { return each.first == item.reason; });
    if (known == reasons.end()) known = reasons.insert(known, {item.reason, {}});
    known->second.push_back(item.key);
  }
  return reasons;
}

std::string left_out_text(std::span<const StudyItemRecord> items) {
  const Reasons reasons = left_out_of(items);
  std::string text = reasons.empty() ? "" : "\nLeft out\n";
  for (const auto& [reason, keys] : reasons) {
    text += fmt::format("  {}\n    because {}\n", joined(keys, ", "), reason);
  }
  return text;
}

// Substituted data and weights, each with its parts.
std::string substitutes_text(std::span<const StudyItemRecord> items) {
  std::map<std::string, std::vector<std::string>> parts;
  for (const StudyItemRecord& item : items) {
    if (item.substitute.empty() || !runs(item)) continue;
    std::vector<std::string>& names = parts[item.substitute];
    const std::string part = study::part_of(item);
    if (std::find(names.begin(), names.end(), part) == names.end()) names.push_back(part);
  }
  if (parts.empty()) return {};
  std::string text = "\nSubstituted data and weights\n";
  for (const auto& [what, names] : parts) {
    text += fmt::format("  {}: {}\n", joined(names, ", "), what);
  }
  return text;
}

}  // namespace

std::string study_plan_text(const StudySummary& summary) {
  const study::Definition& definition = summary.study->definition;
  std::size_t count = 0, done = 0;
  double seconds = 0.0;
  TextTable table({"part", "item", "estimate"}, "llr");
  table.important({"item", "estimate"});
  for (const StudyItemRecord& item : summary.items) {
    if (!runs(item)) continue;
    ++count;
    done += item.status == ItemStatus::done ? 1 : 0;
    if (waits(item)) seconds += item.estimated_seconds;
    table.add_row({study::part_of(item), item.title + (item.substitute.empty() ? "" : " *"),
                   item.status == ItemStatus::done ? "done"
                   : item.estimated_seconds > 0.0  ? about(item.estimated_seconds)
                                                   : "none"});
  }
  std::string text = fmt::format("{}: {}, scale {}\n\n", definition.name, definition.title,
                                 name_of(summary.scale));
  if (count > 0) text += shown(table);
  const std::string substitutes = substitutes_text(summary.items);
  text += fitted(left_out_text(summary.items) + substitutes);
  text += fitted(fmt::format(
      "\n{}{}, about {} in all, estimated from the work and the speed of the hardware{}\n",
      plural(count, "item"), done > 0 ? fmt::format(", {} already done", done) : "", about(seconds),
      substitutes.empty() ? "" : ". *: with substituted data or weights"));
  return text;
}

std::string study_outcome_text(const StudySummary& summary) {
  std::map<ItemStatus, std::size_t> counts;
  for (const StudyItemRecord& item : summary.items) ++counts[item.status];
  std::string text = "\n";
  for (const StudyItemRecord& item : summary.items) {
    if (item.status != ItemStatus::failed) continue;
    text += fmt::format("failed: {}\n  {}\n  ridgeline {}\n", item.key, item.reason, item.command);
  }
  text += fmt::format("{} done, {} left out, {} failed", counts[ItemStatus::done],
                      counts[ItemStatus::left_out], counts[ItemStatus::failed]);
  if (counts[ItemStatus::waiting] > 0) {
    text += fmt::format(", {} waiting", counts[ItemStatus::waiting]);
  }
  text += fmt::format("; {}, stored in {}\n", duration_text(summary.seconds), summary.store);
  if (summary.interrupted) {
    text += "interrupted; the same command continues the study\n";
  } else if (counts[ItemStatus::failed] > 0) {
    text += "the same command runs the failed items again\n";
  }
  return text;
}

std::string study_idle_text(const StudySummary& summary) {
  std::vector<std::string> reasons;
  for (const auto& [reason, keys] : left_out_of(summary.items)) reasons.push_back(reason);
  return fmt::format("study {}: this machine cannot run any item: {}",
                     summary.study->definition.name,
                     reasons.empty() ? fmt::format("no part has scale {}", name_of(summary.scale))
                                     : joined(reasons, "; "));
}

std::string study_list_text() {
  TextTable table({"study", "title"}, "ll");
  for (const std::string& name : study::built_in_studies()) {
    table.add_row({name, study::find_study(name).definition.title});
  }
  return shown(table);
}

StudyProgress::StudyProgress(std::span<const StudyItemRecord> items)
    : terminal_(isatty(STDERR_FILENO) != 0) {
  for (const StudyItemRecord& item : items) {
    total_ += runs(item) ? 1 : 0;
    finished_ += item.status == ItemStatus::done ? 1 : 0;
    if (waits(item)) left_estimate_ += item.estimated_seconds;
  }
}

StudyProgress::~StudyProgress() { clear(); }

double StudyProgress::seconds() const { return seconds_since(start_); }

// "7 of 20 items finished in 2 min, about 6 min left"
std::string StudyProgress::standing() const {
  // Estimates count little until some of them could be compared with the clock.
  constexpr double kTrust = 10.0;
  const double pace = (done_seconds_ + kTrust) / (done_estimate_ + kTrust);
  const double item = seconds_since(item_start_);
  const double left = pace * left_estimate_ +
                      (told_ ? 0.0 : std::max(0.0, pace * current_.estimated_seconds - item));
  return fmt::format("{} of {} items finished in {}, about {} left", finished_, total_,
                     about(seconds()), about(left));
}

void StudyProgress::clear() {
  if (drawn_) message("\r\033[K");
  drawn_ = false;
}

void StudyProgress::draw() {
  if (!terminal_ || told_) return;
  const Clock::time_point now = Clock::now();
  if (drawn_ && now - last_ < std::chrono::milliseconds(500)) return;
  last_ = now;
  drawn_ = true;
  message(fmt::format("\r\033[K{}: {}", current_.key, standing()));
}

void StudyProgress::begun(const StudyItemRecord& item) {
  current_ = item;
  told_ = false;
  item_start_ = Clock::now();
  left_estimate_ = std::max(0.0, left_estimate_ - item.estimated_seconds);
  draw();
}

void StudyProgress::ended(const StudyItemRecord& item) {
  clear();
  told_ = true;
  ++finished_;  // done, failed or left out: the total stays
  done_estimate_ += item.estimated_seconds;
  done_seconds_ += item.seconds.value_or(0.0);
  std::string outcome =
      fmt::format("{} after {}", name_of(item.status), duration_text(item.seconds.value_or(0.0)));
  if (!item.reason.empty()) outcome += ": " + item.reason;
  message(fmt::format("{}  {}  ({})\n", item.key, outcome, standing()));
}

bool StudyProgress::go_on() {
  draw();
  return !interrupt_.raised();
}

}  // namespace ridgeline::cli
