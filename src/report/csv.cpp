#include "report/csv.h"

#include <fmt/core.h>

#include <algorithm>

#include "report/contents.h"

namespace ridgeline::report {
namespace {

std::string in_quotes(const std::string& text) {
  // Spaces at the ends are part of a cell, but many readers take them off.
  const bool plain = text.find_first_of(",\"\r\n") == std::string::npos && !text.starts_with(' ') &&
                     !text.ends_with(' ');
  if (plain) return text;
  std::string result = "\"";
  for (const char c : text) {
    if (c == '"') result += c;
    result += c;
  }
  return result + '"';
}

// The shortest text that reads back as the same number.
std::string number_cell(const std::optional<double>& value) {
  return value ? fmt::format("{}", *value) : std::string();
}

// Columns that a column of the table has beside itself.
struct Beside {
  bool intervals = false, notes = false;
};
Beside beside(const Table& table, std::size_t column) {
  Beside found;
  for (const std::vector<Cell>& row : table.rows) {
    found.intervals |= row[column].low || row[column].high;
    found.notes |= !row[column].notes.empty();
  }
  return found;
}

std::string value_cell(const TableColumn& column, const Cell& cell) {
  if (column.number && cell.value) return number_cell(cell.value);
  return cell.text == "n/a" ? std::string() : cell.text;
}

std::string notes_cell(const Table& table, const Cell& cell) {
  std::string text;
  for (const std::size_t note : cell.notes) text += (text.empty() ? "" : "; ") + table.notes[note];
  return text;
}

std::string line_of(const std::vector<std::string>& cells) {
  std::string line;
  for (const std::string& cell : cells) {
    if (&cell != &cells.front()) line += ',';
    line += in_quotes(cell);
  }
  // A line with nothing in it would be no record.
  return (line.empty() ? "\"\"" : line) + "\r\n";
}

}  // namespace

std::string csv_table(const Table& table) {
  std::vector<std::string> header;
  std::vector<Beside> others;
  for (std::size_t i = 0; i < table.columns.size(); ++i) {
    const TableColumn& column = table.columns[i];
    header.push_back(heading_of(column));
    others.push_back(beside(table, i));
    for (const char* end : {" low", " high"}) {
      if (!others.back().intervals) break;
      TableColumn named = column;
      named.title += end;
      header.push_back(heading_of(named));
    }
    if (others.back().notes) header.push_back(column.title + " notes");
  }
  std::string text = line_of(header);
  for (const std::vector<Cell>& row : table.rows) {
    std::vector<std::string> cells;
    for (std::size_t i = 0; i < table.columns.size(); ++i) {
      cells.push_back(value_cell(table.columns[i], row[i]));
      if (others[i].intervals) {
        cells.push_back(number_cell(row[i].low));
        cells.push_back(number_cell(row[i].high));
      }
      if (others[i].notes) cells.push_back(notes_cell(table, row[i]));
    }
    text += line_of(cells);
  }
  return text;
}

}  // namespace ridgeline::report
