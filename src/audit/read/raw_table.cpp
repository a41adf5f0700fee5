#include "audit/read/raw_table.h"

#include <fmt/core.h>

#include <algorithm>
#include <array>
#include <cctype>
#include <optional>

#include "base/parse.h"

namespace ridgeline::audit {
namespace {

// What people write where there is nothing.
constexpr std::array<std::string_view, 9> kAbsent = {"-",   "n/a", "na", "none", "null",
                                                     "nil", "–",   "—",  "?"};

bool is_blank(char c) { return c == ' ' || c == '\t'; }

bool is_absent(std::string_view text) {
  if (text.size() > 4) return false;
  std::string lower(text);
  for (char& c : lower) c = static_cast<char>(std::tolower(static_cast<unsigned char>(c)));
  return std::ranges::find(kAbsent, lower) != kAbsent.end();
}

bool all_digits(std::string_view text) {
  return !text.empty() && std::ranges::all_of(text, [](char c) { return c >= '0' && c <= '9'; });
}

// "1,234,567.8": groups of three digits behind the first one.
std::optional<double> grouped_number(std::string_view text) {
  const bool negative = text.starts_with('-');
  if (negative) text.remove_prefix(1);
  const std::vector<std::string_view> parts = pieces_of(text, ",");
  if (parts.size() < 2 || !all_digits(parts.front()) || parts.front().size() > 3) {
    return std::nullopt;
  }
  std::string digits(parts.front());
  for (std::size_t i = 1; i < parts.size(); ++i) {
    std::string_view group = parts[i];
    if (i + 1 == parts.size()) group = group.substr(0, group.find('.'));
    if (group.size() != 3 || !all_digits(group)) return std::nullopt;
    digits += parts[i];
  }
  const std::optional<double> number = number_in<double>(digits);
  if (number && negative) return -*number;
  return number;
}

std::optional<double> comma_number(std::string_view text) {
  if (std::ranges::count(text, ',') != 1 || text.find('.') != std::string_view::npos) {
    return std::nullopt;
  }
  std::string point(text);
  point[point.find(',')] = '.';
  return number_in<double>(point);
}

}  // namespace

void RawColumn::add_number(double number) {
  numbers_.push_back(number);
  codes_.push_back(kNumber);
  ++number_count_;
}

void RawColumn::add_empty() {
  numbers_.push_back(kNothing);
  codes_.push_back(kEmpty);
}

void RawColumn::add_words(std::string_view words) {
  auto found = index_.find(words);
  if (found == index_.end()) {
    found = index_.emplace(words, static_cast<std::uint32_t>(dictionary_.size())).first;
    dictionary_.emplace_back(words);
  }
  numbers_.push_back(kNothing);
  codes_.push_back(found->second + kWords);
  ++word_count_;
}

std::string_view RawColumn::words(std::size_t row) const {
  return codes_[row] < kWords ? std::string_view() : dictionary_[codes_[row] - kWords];
}

std::string RawColumn::text(std::size_t row) const {
  return is_number(row) ? fmt::format("{}", numbers_[row]) : std::string(words(row));
}

void add_cell(RawColumn& column, std::string_view text, bool decimal_comma) {
  while (!text.empty() && is_blank(text.front())) text.remove_prefix(1);
  while (!text.empty() && is_blank(text.back())) text.remove_suffix(1);
  if (text.empty()) return column.add_empty();
  const char first = text.front();
  const bool numeric = (first >= '0' && first <= '9') || first == '-' || first == '.' ||
                       (first == '+' && text.size() > 1);
  if (numeric) {
    const std::string_view digits = first == '+' ? text.substr(1) : text;
    if (const auto number = number_in<double>(digits)) return column.add_number(*number);
    if (text.find(',') != std::string_view::npos) {
      const auto number = decimal_comma ? comma_number(digits) : grouped_number(digits);
      if (number) return column.add_number(*number);
    }
  }
  if (is_absent(text)) return column.add_empty();
  column.add_words(text);
}

}  // namespace ridgeline::audit
