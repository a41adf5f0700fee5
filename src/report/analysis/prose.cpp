#include "report/analysis/prose.h"

#include <algorithm>
#include <array>
#include <cmath>
#include <map>
#include <set>
#include <utility>

#include "base/error.h"
#include "base/text.h"

namespace ridgeline::report {

Prose& Prose::say(std::string text) {
  pieces_.push_back({.text = std::move(text)});
  return *this;
}

Prose& Prose::say(std::string text, std::vector<RunId> runs) {
  pieces_.push_back({.text = std::move(text), .runs = std::move(runs)});
  return *this;
}

Prose& Prose::strong(std::string text) {
  pieces_.push_back({.text = std::move(text), .runs = {}, .strong = true});
  return *this;
}

Prose& Prose::add(const Prose& other) {
  if (!pieces_.empty() && !other.pieces_.empty()) pieces_.back().text += ' ';
  pieces_.insert(pieces_.end(), other.pieces_.begin(), other.pieces_.end());
  return *this;
}

std::string Prose::text() const {
  std::string text;
  for (const Piece& piece : pieces_) text += piece.text;
  return text;
}

std::optional<Paragraph> paragraph_of(const std::vector<Sentence>& sentences) {
  Prose all;
  for (const Sentence& sentence : sentences) {
    if (sentence) all.add(*sentence);
  }
  if (all.empty()) return std::nullopt;
  return Paragraph{all.pieces()};
}

std::string estimate_text(const Estimate& estimate) {
  if (estimate.low == estimate.high) return number_text(estimate.value);
  return interval(estimate.value, estimate.low, estimate.high).text;
}

std::string estimate_text(const Estimate& estimate, const std::string& unit) {
  return estimate_text(estimate) + " " + unit;
}

std::string percent_text(double share) {
  const double percent = 100.0 * share;
  if (percent > 0.0 && percent < 0.1) return "less than 0.1%";
  return number_text(percent, std::abs(percent) < 10.0 ? 2 : 3) + "%";
}

std::string limit_text(double share) { return fmt::format("{:g}%", 100.0 * share); }

std::string plain_text(double value) {
  return std::floor(value) == value && std::abs(value) < 1e15
             ? count_text(static_cast<std::int64_t>(value))
             : number_text(value);
}

namespace {

// The prefix under which the number has one to three digits before the point.
std::string with_prefix(double value, const char* unit) {
  constexpr std::array<const char*, 6> kPrefixes = {"", "k", "M", "G", "T", "P"};
  std::size_t prefix = 0;
  // Three digits are shown: what they round to 1,000 belongs to the next prefix.
  while (std::abs(value) >= 999.5 && prefix + 1 < kPrefixes.size()) {
    value /= 1000.0;
    ++prefix;
  }
  return fmt::format("{} {}{}", number_text(value), kPrefixes[prefix], unit);
}

}  // namespace

std::string bytes_words(double bytes) { return with_prefix(bytes, "B"); }
std::string rate_words(double value, const char* unit) { return with_prefix(value, unit); }

std::string list_text(const std::vector<std::string>& items, std::size_t most) {
  if (items.empty()) return {};
  std::vector<std::string> shown = items;
  if (items.size() > most + 1) {
    shown.resize(most);
    shown.push_back(fmt::format("{} more", items.size() - most));
  }
  const std::string last = shown.back();
  shown.pop_back();
  return shown.empty() ? last : joined(shown, ", ") + " and " + last;
}

std::string count_words(std::size_t count, const std::string& noun, const std::string& plural) {
  if (count == 1) return "one " + noun;
  return fmt::format("{} {}", count_text(static_cast<std::int64_t>(count)),
                     plural.empty() ? noun + "s" : plural);
}

std::string sentence_case(std::string text) {
  if (!text.empty() && text[0] >= 'a' && text[0] <= 'z') text[0] = static_cast<char>(text[0] - 32);
  return text;
}

namespace {

// What may tell works apart, and how it is said.
std::string aspect(const RunView& run, std::string_view name) {
  const Work& work = run.run.work;
  if (name == "kind") return work.kind == "inference" ? "inference" : "";
  if (name == "settings") return work.settings;
  if (name == "batch") return fmt::format("batch {}", work.batch);
  if (name == "image") return work.image;
  if (name == "optimizer") return work.optimizer;
  if (name == "learning rate") {
    return run.learning_rate ? fmt::format("lr {:g}", *run.learning_rate) : std::string{};
  }
  if (name == "data") return work.data;
  if (name == "samples") {
    // One batch of the data says no more than the batch.
    if (work.data_samples == work.batch) return {};
    return fmt::format("{} sample{}", count_text(work.data_samples),
                       work.data_samples == 1 ? "" : "s");
  }
  return work.variant;
}

}  // namespace

Wording::Wording(const std::vector<const RunView*>& among) {
  // What has been said of each run so far; runs that share it are not told apart yet.
  std::map<const RunView*, std::string> said;
  for (const RunView* run : among) said[run] = run->run.work.model;
  for (const char* name : {"kind", "settings", "batch", "learning rate", "image", "optimizer",
                           "data", "samples", "variant"}) {
    std::map<std::string, std::set<std::string>> values;
    for (const auto& [run, words] : said) values[words].insert(aspect(*run, name));
    if (std::none_of(values.begin(), values.end(),
                     [](const auto& entry) { return entry.second.size() > 1; })) {
      continue;
    }
    axes_.emplace_back(name);
    for (auto& [run, words] : said) words += "|" + aspect(*run, name);
  }
}

std::string Wording::work(const RunView& run) const {
  std::vector<std::string> aspects;
  for (const std::string& axis : axes_) {
    if (std::string value = aspect(run, axis); !value.empty()) aspects.push_back(std::move(value));
  }
  const std::string& model = run.run.work.model;
  return aspects.empty() ? model : fmt::format("{} ({})", model, joined(aspects, ", "));
}

std::vector<RunId> ids_of(const std::vector<const RunView*>& runs) {
  std::vector<RunId> ids;
  for (const RunView* run : runs) ids.push_back(run->run.id);
  return ids;
}

}  // namespace ridgeline::report
