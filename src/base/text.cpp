#include "base/text.h"

#include <algorithm>
#include <array>
#include <cmath>
#include <span>

#include "base/error.h"
#include "base/wrap.h"

namespace ridgeline {
namespace {

constexpr std::size_t kGap = 2;        // between two columns
constexpr std::size_t kShortest = 16;  // of a text that is shortened
constexpr double kTextShare = 0.3;     // of the width, for one text

// In `width` columns: sentences lose their end; names, and lists such as "batch 64, sgd: native",
// lose their middle.
std::string shortened(const std::string& text, std::size_t width) {
  if (display_width(text) <= width) return text;
  const auto prefix = [&](std::size_t columns) {
    std::size_t bytes = 0;
    for (std::size_t taken = 0; bytes < text.size() && taken < columns; ++taken) {
      ++bytes;
      while (bytes < text.size() && (static_cast<unsigned char>(text[bytes]) & 0xC0U) == 0x80U) {
        ++bytes;
      }
    }
    return bytes;
  };
  if (text.find(' ') != std::string::npos && text.find(": ") == std::string::npos)
    return text.substr(0, prefix(width - 1)) + "…";
  const std::size_t tail = (width - 1) / 2;
  return text.substr(0, prefix(width - 1 - tail)) + "…" +
         text.substr(prefix(display_width(text) - tail));
}

bool same_start(std::string_view text, std::string_view start) {
  if (text.size() < start.size()) return false;
  return std::equal(start.begin(), start.end(), text.begin(), [](char a, char b) {
    return std::tolower(static_cast<unsigned char>(a)) ==
           std::tolower(static_cast<unsigned char>(b));
  });
}

}  // namespace

std::size_t display_width(std::string_view text) {
  // UTF-8 continuation bytes take no column.
  std::size_t width = 0;
  for (const char c : text) width += (static_cast<unsigned char>(c) & 0xC0U) != 0x80U ? 1 : 0;
  return width;
}

std::optional<std::size_t> column_named(const std::vector<std::string>& titles,
                                        std::string_view name) {
  std::optional<std::size_t> begins;
  for (std::size_t i = titles.size(); i-- > 0;) {
    if (name.empty() || !same_start(titles[i], name)) continue;
    if (titles[i].size() == name.size()) return i;
    begins = i;
  }
  return begins;
}

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

std::vector<std::size_t> TextTable::natural_widths() const {
  std::vector<std::size_t> widths(alignment_.size());
  for (const auto& row : rows_) {
    for (std::size_t c = 0; c < row.size(); ++c) {
      widths[c] = std::max(widths[c], display_width(row[c]));
    }
  }
  return widths;
}

std::vector<std::size_t> TextTable::by_importance() const {
  std::vector<std::size_t> order;
  const auto add = [&](std::size_t column) {
    if (std::find(order.begin(), order.end(), column) == order.end()) order.push_back(column);
  };
  for (const std::string& title : important_) {
    const auto found = std::find(rows_[0].begin(), rows_[0].end(), title);
    if (found != rows_[0].end()) add(static_cast<std::size_t>(found - rows_[0].begin()));
  }
  for (std::size_t c = 0; c < alignment_.size(); ++c) add(c);
  return order;
}

std::vector<TextTable::Shown> TextTable::fitted(std::size_t width) const {
  const std::vector<std::size_t> natural = natural_widths();
  // Numbers are shown whole or not at all.
  std::vector<std::size_t> least = natural;
  const auto longest_text =
      std::max(kShortest, static_cast<std::size_t>(kTextShare * static_cast<double>(width)));
  for (std::size_t c = 0; c < least.size(); ++c) {
    const std::size_t title = display_width(rows_[0][c]);
    if (alignment_[c] == 'l') least[c] = std::min(natural[c], std::max(longest_text, title));
  }
  std::vector<std::size_t> kept = by_importance();
  const auto total = [&](const std::vector<std::size_t>& widths) {
    std::size_t sum = kept.empty() ? 0 : kGap * (kept.size() - 1);
    for (const std::size_t c : kept) sum += widths[c];
    return sum;
  };
  while (kept.size() > 1 && total(least) > width) kept.pop_back();
  std::sort(kept.begin(), kept.end());
  // The widest text gives way first.
  std::vector<std::size_t> widths = natural;
  while (total(widths) > width) {
    std::optional<std::size_t> widest;
    for (const std::size_t c : kept) {
      if (widths[c] > least[c] && (!widest || widths[c] > widths[*widest])) widest = c;
    }
    if (!widest) break;
    --widths[*widest];
  }
  std::vector<Shown> shown;
  for (const std::size_t c : kept) shown.push_back({c, widths[c]});
  return shown;
}

std::vector<TextTable::Shown> TextTable::chosen(const std::vector<std::string>& names) const {
  const std::vector<std::size_t> natural = natural_widths();
  std::vector<Shown> shown;
  for (const std::string& name : names) {
    if (const auto column = column_named(rows_[0], name)) {
      shown.push_back({*column, natural[*column]});
    }
  }
  return shown;
}

std::string TextTable::text() const {
  const std::vector<std::size_t> widths = natural_widths();
  std::vector<Shown> shown;
  for (std::size_t c = 0; c < widths.size(); ++c) shown.push_back({c, widths[c]});
  return text(shown);
}

std::string TextTable::text(const TableView& view) const {
  // A table may lack all that was chosen: it then is no less of use whole.
  if (const std::vector<Shown> some = chosen(view.columns); !some.empty()) return text(some);
  if (view.width == 0) return text();
  const std::vector<Shown> shown = fitted(view.width);
  const std::vector<std::size_t> natural = natural_widths();
  std::vector<std::string> hidden = rows_[0], cut;
  for (const Shown& each : shown) {
    if (each.width < natural[each.column]) cut.push_back(rows_[0][each.column]);
    hidden[each.column].clear();
  }
  std::erase(hidden, "");
  if (hidden.empty() && cut.empty()) return text(shown);
  std::string line;
  if (!hidden.empty()) line = "not shown: " + joined(hidden, ", ");
  if (!cut.empty()) line += (line.empty() ? "shortened: " : "; shortened: ") + joined(cut, ", ");
  return text(shown) +
         wrapped(fmt::format("({}{})", line, view.hint.empty() ? "" : "; " + view.hint), 0, 1,
                 view.width) +
         '\n';
}

std::string TextTable::text(const std::vector<Shown>& shown) const {
  std::string text;
  for (std::size_t r = 0; r < rows_.size(); ++r) {
    std::string line, rule;
    for (const Shown& each : shown) {
      const std::string cell = shortened(rows_[r][each.column], each.width);
      const std::string padding(each.width - display_width(cell), ' ');
      const char* gap = rule.empty() ? "" : "  ";
      line += gap + (alignment_[each.column] == 'r' ? padding + cell : cell + padding);
      rule += gap + std::string(each.width, '-');
    }
    line.erase(line.find_last_not_of(' ') + 1);
    text += line + '\n';
    if (r == 0) text += rule + '\n';
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
