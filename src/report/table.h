#pragma once

// A table before it is written. Every cell carries its text as shown and, where it is a number, the
// number itself: sorting, CSV and tests use that one.

#include <optional>
#include <string>
#include <vector>

#include "store/records.h"

namespace ridgeline::report {

struct Cell {
  std::string text = "n/a";          // as shown, in the column's unit
  std::optional<double> value = {};  // in the column's unit; nothing: words, or not measured
  std::optional<double> low = {}, high = {};  // its 95% interval
  std::vector<std::size_t> notes = {};        // indices of the table's notes that concern it
  std::vector<RunId> runs = {};               // what it rests on
};

// Where a column is shown: beside the numbers, in headings above the rows that share its values, or
// only in files for other programs, which have all columns.
enum class Shown { column, heading, file };

struct TableColumn {
  std::string title;
  std::string unit = {};     // "img/s"; empty: none
  bool number = false;       // aligned to the right, sorted as numbers
  std::string meaning = {};  // one sentence, shown when pointed at
  Shown shown = Shown::column;
};

struct Table {
  std::string id;       // unique in the document, a file name: letters, digits, hyphens
  std::string title;    // "Throughput by model and environment"
  std::string caption;  // what to know to read it; may be empty
  std::vector<TableColumn> columns;
  std::vector<std::vector<Cell>> rows = {};  // each with one cell a column
  std::vector<std::string> notes = {};       // footnotes: substitutes, unlike work, why n/a
  std::size_t heads = 0;                     // columns in front that tell the rows apart
};

// Moves what rows share into headings: of the columns in front, those with few values, as long as a
// heading stands for two rows or more on average. Brings the rows of a heading together.
void group_rows(Table& table);
// What the headings say of the row: "resnet18, batch 64"; empty: nothing.
[[nodiscard]] std::string group_text(const Table& table, const std::vector<Cell>& row);

// The index of the note, which is added where the table does not have it yet.
[[nodiscard]] std::size_t note_index(Table& table, const std::string& note);

// The cell with a footnote more. Footnotes of a cell stand in their order, each once.
[[nodiscard]] Cell noted(Table& table, Cell cell, const std::string& note);

[[nodiscard]] inline Cell words(std::string text) { return {.text = std::move(text)}; }
// "n/a", with a footnote that says why.
[[nodiscard]] Cell missing(Table& table, const std::string& why);
// Three significant digits, thousands separated: "1,107", "0.0315". `runs`: what it rests on.
[[nodiscard]] Cell number(double value, std::vector<RunId> runs = {});
// The same with its interval: "1,107 [1,098–1,115]".
[[nodiscard]] Cell interval(double value, double low, double high, std::vector<RunId> runs = {});
// "3.2", "1,234,567"; never in exponents unless beyond 1e15 or below 1e-6.
[[nodiscard]] std::string number_text(double value, int significant = 3);

}  // namespace ridgeline::report
