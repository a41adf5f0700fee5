#pragma once

// A table of results whose columns have a meaning, and what the user said about them.

#include <cstdint>
#include <optional>
#include <string>
#include <vector>

#include "audit/read/raw_table.h"
#include "audit/roles.h"

namespace ridgeline::audit {

// What --map says: the role of a column, and its unit.
struct ColumnRule {
  std::string column;
  Role role = Role::none;
  std::optional<Unit> unit;
};
// "COLUMN=ROLE[:UNIT]". Throws bad_input.
[[nodiscard]] ColumnRule parse_rule(const std::string& text);

// A cell that should be a number and is none: "NaN", "inf", "OOM".
struct BadCell {
  std::size_t row = 0;
  std::string text;
};

struct Column {
  std::string name;  // as in the file
  Role role = Role::none;
  std::string unit;  // as in the file; "FLOP" where it was not told but taken for granted
  std::string why;   // "name", "unit", "content", "--map"
  double scale = 1.0;
  std::vector<double> values;        // in base units, NaN: none; empty for words
  std::vector<std::uint32_t> codes;  // of words: which of `words`
  std::vector<std::string> words;    // the first one is ""
  std::vector<BadCell> bad = {};

  [[nodiscard]] bool is_words() const { return values.empty(); }
  [[nodiscard]] bool has(std::size_t row) const {
    return is_words() ? codes[row] != 0 : values[row] == values[row];
  }
  [[nodiscard]] double value(std::size_t row) const { return values[row]; }
  [[nodiscard]] const std::string& word(std::size_t row) const { return words[codes[row]]; }
  // Half a unit of the last digit that the file shows, relative to the value: 5% of "10".
  [[nodiscard]] double rounding(std::size_t row) const;
};

struct Table {
  std::string file, format;
  std::vector<Column> columns;      // all of the file, those without a role as well
  std::vector<std::int64_t> lines;  // of the file, for each row
  std::vector<std::size_t> origins;
  std::vector<std::uint64_t> hashes;  // of all cells of each row

  [[nodiscard]] std::size_t rows() const { return lines.size(); }
  // The first column with the role; null: none.
  [[nodiscard]] const Column* find(Role role) const;
  [[nodiscard]] std::vector<const Column*> all(Role role) const;
  // The value in the first column of that role that has one in the row.
  [[nodiscard]] std::optional<double> number(Role role, std::size_t row) const;
  [[nodiscard]] std::string word(Role role, std::size_t row) const;
};

// Finds out what the columns mean. Tables with a column for each device, or with a row for each
// measure, are made long first. Throws bad_input where a rule names no column, or where no column
// has a meaning.
[[nodiscard]] Table interpret(RawTable raw, const std::vector<ColumnRule>& rules);

// "cpu", "gpu" or empty: what kind of device the words name.
[[nodiscard]] std::string device_kind(std::string_view words);

}  // namespace ridgeline::audit
