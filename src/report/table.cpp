#include "report/table.h"

#include <fmt/format.h>

#include <algorithm>
#include <cmath>
#include <map>
#include <set>

namespace ridgeline::report {
namespace {

// Digits in threes, from the point to the left.
std::string separated(std::string digits) {
  const std::size_t first = digits.starts_with('-') ? 1 : 0;
  std::size_t end = digits.find('.');
  if (end == std::string::npos) end = digits.size();
  for (std::size_t place = end; place > first + 3;) {
    place -= 3;
    digits.insert(place, ",");
  }
  return digits;
}

}  // namespace

std::string group_text(const Table& table, const std::vector<Cell>& row) {
  std::string text;
  for (std::size_t i = 0; i < table.columns.size(); ++i) {
    const std::string& value = row[i].text;
    if (table.columns[i].shown != Shown::heading || value == "–" || value.empty()) continue;
    const std::string& title = table.columns[i].title;
    if (value == "no") continue;
    text += text.empty() ? "" : ", ";
    text += value == "yes" ? title : table.columns[i].number ? title + ' ' + value : value;
  }
  return text;
}

void group_rows(Table& table) {
  const auto headings = [&] {
    std::map<std::string, std::size_t> order;
    for (const std::vector<Cell>& row : table.rows) {
      order.emplace(group_text(table, row), order.size());
    }
    return order;
  };
  std::vector<std::pair<std::size_t, std::size_t>> candidates;  // number of values, column
  for (std::size_t i = 0; i < table.heads; ++i) {
    std::set<std::string> values;
    for (const std::vector<Cell>& row : table.rows) values.insert(row[i].text);
    candidates.emplace_back(values.size(), i);
  }
  std::ranges::sort(candidates);
  if (!candidates.empty()) candidates.pop_back();  // one stays
  for (const auto& [values, column] : candidates) {
    table.columns[column].shown = Shown::heading;
    const std::size_t count = headings().size();
    if (count > 1 && 2 * count > table.rows.size()) table.columns[column].shown = Shown::column;
  }
  const std::map<std::string, std::size_t> order = headings();
  std::ranges::stable_sort(table.rows, {}, [&](const std::vector<Cell>& row) {
    return order.at(group_text(table, row));
  });
}

std::size_t note_index(Table& table, const std::string& note) {
  const auto found = std::ranges::find(table.notes, note);
  const auto index = static_cast<std::size_t>(found - table.notes.begin());
  if (found == table.notes.end()) table.notes.push_back(note);
  return index;
}

Cell noted(Table& table, Cell cell, const std::string& note) {
  const std::size_t index = note_index(table, note);
  const auto place = std::ranges::lower_bound(cell.notes, index);
  if (place == cell.notes.end() || *place != index) cell.notes.insert(place, index);
  return cell;
}

Cell missing(Table& table, const std::string& why) { return noted(table, {}, why); }

std::string number_text(double value, int significant) {
  if (!std::isfinite(value)) return "n/a";
  if (value == 0.0) return "0";
  const double size = std::abs(value);
  if (size >= 1e15 || size < 1e-6) return fmt::format("{:.{}g}", value, significant);
  // Rounding may carry: 999.6 has four digits before the point.
  const double scale =
      std::pow(10.0, static_cast<double>(significant - 1) - std::floor(std::log10(size)));
  const double rounded = std::round(value * scale) / scale;
  const int places =
      std::max(0, significant - 1 - static_cast<int>(std::floor(std::log10(std::abs(rounded)))));
  return separated(fmt::format("{:.{}f}", places > 0 ? rounded : value, places));
}

Cell number(double value, std::vector<RunId> runs) {
  if (!std::isfinite(value)) return {.runs = std::move(runs)};
  return {.text = number_text(value), .value = value, .runs = std::move(runs)};
}

Cell interval(double value, double low, double high, std::vector<RunId> runs) {
  Cell cell = number(value, std::move(runs));
  if (!cell.value || !std::isfinite(low) || !std::isfinite(high)) return cell;
  cell.low = low;
  cell.high = high;
  cell.text += fmt::format(" [{}–{}]", number_text(low), number_text(high));
  return cell;
}

}  // namespace ridgeline::report
