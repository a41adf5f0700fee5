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

// Fields of one half. What every run must be told by comes first, then what comes with a network or
// a machine.
std::vector<const IdentityField*> fields_of(bool of_work) {
  std::vector<const IdentityField*> fields;
  for (const Scope scope : {Scope::all, Scope::network, Scope::machine}) {
    for (const IdentityField& field : identity_fields()) {
      if (field.of_work == of_work && field.scope == scope) fields.push_back(&field);
    }
  }
  return fields;
}

std::string executor_key(const RunView& run) {
  return fmt::format("\n{}\n{}", run.machine, run.executor());
}

std::string with_details(const std::string& name, const std::string& details) {
  return details.empty() ? name : fmt::format("{} ({})", name, details);
}

}  // namespace

Wording::Wording(const Runs& among) {
  std::map<const RunView*, std::string> said;
  for (const RunView* run : among) said[run] = run->run.work.model;
  for (const bool of_work : {true, false}) {
    for (const IdentityField* field : fields_of(of_work)) {
      std::map<std::string, std::set<std::string>> phrases;
      for (const auto& [run, words] : said) phrases[words].insert(field->phrase(run->run));
      for (const auto& [words, different] : phrases) {
        if (different.size() > 1) telling_.emplace(words, field);
      }
      for (auto& [run, words] : said) {
        if (telling_.contains({words, field})) words += "\n" + field->phrase(run->run);
      }
    }
    for (auto& [run, words] : said) words += executor_key(*run);
  }
}

std::string Wording::phrases(const RunView& run, bool of_work, const FieldNames& except) const {
  std::string said = run.run.work.model;
  std::vector<std::string> told;
  for (const bool half : {true, false}) {
    for (const IdentityField* field : fields_of(half)) {
      if (!telling_.contains({said, field})) continue;
      const std::string phrase = field->phrase(run.run);
      said += "\n" + phrase;
      const bool elsewhere = has(except, field->name);
      if (half == of_work && !elsewhere && !phrase.empty()) told.push_back(phrase);
    }
    said += executor_key(run);
  }
  return joined(told, ", ");
}

std::string Wording::details(const RunView& run, const FieldNames& except) const {
  return phrases(run, true, except);
}

std::string Wording::executor(const RunView& run) const {
  return run.executor(phrases(run, false, {}));
}

std::string Wording::work(const RunView& run) const {
  return with_details(run.run.work.model, details(run, {}));
}

std::string Wording::run(const RunView& run, FieldNames except) const {
  except.push_back("precision");
  return fmt::format("{} with {}", with_details(run.run.work.model, details(run, except)),
                     executor(run));
}

std::vector<RunId> ids_of(const Runs& runs) {
  std::vector<RunId> ids;
  for (const RunView* run : runs) ids.push_back(run->run.id);
  return ids;
}

}  // namespace ridgeline::report
