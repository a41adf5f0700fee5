#include "base/text.h"

#include <algorithm>
#include <array>
#include <cmath>
#include <span>

#include "base/error.h"

namespace ridgeline {
namespace {

// Columns on a terminal: UTF-8 continuation bytes take none.
std::size_t width_of(const std::string& cell) {
  std::size_t width = 0;
  for (const char c : cell) width += (static_cast<unsigned char>(c) & 0xC0U) != 0x80U ? 1 : 0;
  return width;
}

}  // namespace

TextTable::TextTable(std::vector<std::string> header, std::string alignment)
    : alignment_(std::move(alignment)) {
  ensure(header.size() == alignment_.size(), "a table needs one alignment for each column");
  rows_.push_back(std::move(header));
}

void TextTable::add_row(std::vector<std::string> cells) {
  ensure(cells.size() == alignment_.size(), "a row has {} cells, the table {} columns",
         cells.size(), alignment_.size());
  rows_.push_back(std::move(cells));
}

std::string TextTable::text() const {
  std::vector<std::size_t> widths(alignment_.size());
  for (const auto& row : rows_) {
    for (std::size_t c = 0; c < row.size(); ++c) widths[c] = std::max(widths[c], width_of(row[c]));
  }
  std::string text;
  for (std::size_t r = 0; r < rows_.size(); ++r) {
    std::string line;
    for (std::size_t c = 0; c < widths.size(); ++c) {
      const std::string padding(widths[c] - width_of(rows_[r][c]), ' ');
      if (c > 0) line += "  ";
      line += alignment_[c] == 'r' ? padding + rows_[r][c] : rows_[r][c] + padding;
    }
    line.erase(line.find_last_not_of(' ') + 1);
    text += line + '\n';
    if (r == 0) {
      for (std::size_t c = 0; c < widths.size(); ++c) {
        if (c > 0) text += "  ";
        text += std::string(widths[c], '-');
      }
      text += '\n';
    }
  }
  return text;
}

std::string bytes_text(std::int64_t bytes) {
  static constexpr std::array<const char*, 5> kUnits = {"B", "KiB", "MiB", "GiB", "TiB"};
  auto amount = static_cast<double>(bytes);
  std::size_t unit = 0;
  while (std::abs(amount) >= 1024.0 && unit + 1 < kUnits.size()) {
    amount /= 1024.0;
    ++unit;
  }
  return unit == 0 ? fmt::format("{} B", bytes) : fmt::format("{:.1f} {}", amount, kUnits[unit]);
}

std::string duration_text(double seconds) {
  if (seconds < 1e-3) return fmt::format("{:.1f} us", seconds * 1e6);
  if (seconds < 1.0) return fmt::format("{:.2f} ms", seconds * 1e3);
  if (seconds < 60.0) return fmt::format("{:.2f} s", seconds);
  const auto whole = static_cast<std::int64_t>(std::llround(seconds));
  if (whole < 3600) return fmt::format("{} min {:02} s", whole / 60, whole % 60);
  return fmt::format("{} h {:02} min", whole / 3600, whole % 3600 / 60);
}

std::string count_text(std::int64_t count) {
  const std::string digits = fmt::format("{}", count);
  std::string text;
  for (std::size_t i = 0; i < digits.size(); ++i) {
    const std::size_t left = digits.size() - i;
    if (left % 3 == 0 && i > 0 && digits[i - 1] != '-') text += ',';
    text += digits[i];
  }
  return text;
}

std::string listed(const std::vector<std::string>& items, std::string_view separator) {
  const std::size_t shown = std::min(items.size(), kMostListed);
  std::string text = joined(std::span(items).first(shown), separator);
  if (items.size() > shown) {
    text += fmt::format("{}and {} more", separator == ", " ? " " : separator, items.size() - shown);
  }
  return text;
}

}  // namespace ridgeline
