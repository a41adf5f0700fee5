// Tables as text: cells between commas, semicolons, tabs or bars, with quotes where they must be.

#include <algorithm>
#include <array>
#include <optional>

#include "audit/read/read.h"
#include "base/error.h"
#include "base/text.h"

namespace ridgeline::audit {
namespace {

constexpr std::size_t kLongestCell = 1 << 16;

// Takes the next line off, without its end.
std::string_view take_line(std::string_view& text) {
  const std::size_t end = std::min(text.find('\n'), text.size());
  std::string_view line = text.substr(0, end);
  text.remove_prefix(std::min(end + 1, text.size()));
  if (line.ends_with('\r')) line.remove_suffix(1);
  return line;
}

bool is_comment(std::string_view line) {
  const std::size_t first = line.find_first_not_of(" \t");
  return first == std::string_view::npos || line[first] == '#';
}

std::size_t count_outside_quotes(std::string_view line, char wanted) {
  std::size_t count = 0;
  bool quoted = false;
  for (const char c : line) {
    if (c == '"') quoted = !quoted;
    if (c == wanted && !quoted) ++count;
  }
  return count;
}

// The separator that the first lines have as often as each other; a comma where none is seen.
char separator_of(std::string_view text) {
  std::vector<std::string_view> lines;
  while (!text.empty() && lines.size() < 20) {
    const std::string_view line = take_line(text);
    if (!is_comment(line)) lines.push_back(line.substr(0, kLongestCell));
  }
  char best = ',';
  double best_score = 0.0;
  for (const char candidate : {',', ';', '\t', '|'}) {
    std::vector<std::size_t> counts;
    for (const std::string_view line : lines) {
      counts.push_back(count_outside_quotes(line, candidate));
    }
    if (counts.empty() || counts.front() == 0) continue;
    const auto same = static_cast<double>(std::ranges::count(counts, counts.front()));
    const double score =
        same / static_cast<double>(counts.size()) *
        (1.0 + 0.01 * static_cast<double>(std::min<std::size_t>(counts.front(), 50)));
    if (score > best_score) {
      best = candidate;
      best_score = score;
    }
  }
  return best;
}

// Reads the cells of a text one after the other.
class CellReader {
 public:
  CellReader(std::string_view text, char separator, const std::string& file)
      : text_(text), separator_(separator), file_(file) {}

  // Past comments and empty lines; false at the end.
  bool next_row() {
    while (at_ < text_.size()) {
      std::string_view rest = text_.substr(at_);
      const std::string_view line = take_line(rest);
      if (!is_comment(line)) return true;
      at_ = text_.size() - rest.size();
      ++line_;
    }
    return false;
  }

  // The next cell of the row; nothing behind its last one. The view lasts until the next call.
  std::optional<std::string_view> next_cell() {
    if (row_ended_) {
      row_ended_ = false;
      return std::nullopt;
    }
    const std::string_view cell = at_ < text_.size() && text_[at_] == '"' ? quoted() : plain();
    if (cell.size() > kLongestCell) {
      bad_input("{}, line {}: a cell is longer than {} bytes", file_, line_, kLongestCell);
    }
    return cell;
  }

  [[nodiscard]] std::int64_t line() const { return line_; }

 private:
  std::string_view plain() {
    std::size_t end = at_;
    while (end < text_.size() && text_[end] != separator_ && text_[end] != '\n') ++end;
    std::string_view cell = text_.substr(at_, end - at_);
    at_ = end;
    if (cell.ends_with('\r')) cell.remove_suffix(1);
    end_cell();
    return cell;
  }

  std::string_view quoted() {
    const std::int64_t opened = line_;
    unquoted_.clear();
    for (++at_;; ++at_) {
      if (at_ >= text_.size()) {
        bad_input("{}, line {}: a quote is opened and never closed", file_, opened);
      }
      const char c = text_[at_];
      if (c == '\n') ++line_;
      if (c == '"') {
        if (at_ + 1 >= text_.size() || text_[at_ + 1] != '"') break;
        ++at_;
      }
      if (unquoted_.size() <= kLongestCell) unquoted_ += c;
    }
    ++at_;
    if (at_ < text_.size() && text_[at_] == '\r') ++at_;
    if (at_ < text_.size() && text_[at_] != separator_ && text_[at_] != '\n') {
      bad_input("{}, line {}: text behind a closing quote; a quote within a cell is written twice",
                file_, line_);
    }
    end_cell();
    return unquoted_;
  }

  void end_cell() {
    row_ended_ = at_ >= text_.size() || text_[at_] == '\n';
    if (row_ended_) ++line_;
    ++at_;
  }

  std::string_view text_;
  char separator_;
  const std::string& file_;
  std::size_t at_ = 0;
  std::int64_t line_ = 1;
  bool row_ended_ = false;
  std::string unquoted_;
};

// What a spreadsheet would compute, where its result should stand.
bool is_formula(std::string_view cell) {
  cell.remove_prefix(std::min(cell.find_first_not_of(" \t"), cell.size()));
  if (cell.size() < 2) return false;
  if (cell.front() == '=') return true;
  const bool sign = cell.front() == '+' || cell.front() == '-' || cell.front() == '@';
  return sign && cell.find_first_of("(|!") != std::string_view::npos;
}

void refuse_formula(std::string_view cell, std::string_view column, std::int64_t line,
                    const std::string& file) {
  if (!is_formula(cell)) return;
  bad_input("{}, line {}, {}: holds a formula ('{}'), not a value; save the file with values", file,
            line, column, cell.substr(0, 40));
}

std::vector<std::string> read_header(CellReader& reader, const std::string& file) {
  std::vector<std::string> names;
  const std::int64_t line = reader.line();
  while (const auto cell = reader.next_cell()) {
    if (names.size() == kMostColumns) {
      bad_input("{}, line {}: has more than {} columns, so it is no table of results", file, line,
                count_text(kMostColumns));
    }
    refuse_formula(*cell, "header", line, file);
    names.emplace_back(*cell);
  }
  while (names.size() > 1 && names.back().empty()) names.pop_back();
  return names;
}

std::string separator_name(char separator) {
  if (separator == '\t') return "TSV";
  return separator == ',' ? "CSV" : fmt::format("CSV separated by '{}'", separator);
}

// A header that is all numbers is the first row of a table without names.
bool is_header(const std::vector<std::string>& names) {
  RawColumn cells;
  for (const std::string& name : names) add_cell(cells, name, false);
  return cells.number_count() < names.size();
}

void add_row(RawTable& table, CellReader& reader, bool decimal_comma) {
  const std::int64_t line = reader.line();
  std::size_t column = 0;
  while (const auto cell = reader.next_cell()) {
    if (column >= table.columns.size()) {
      if (cell->empty()) continue;
      bad_input("{}, line {}: has more cells than the header's {}", table.file, line,
                table.columns.size());
    }
    refuse_formula(*cell, table.columns[column].name, line, table.file);
    add_cell(table.columns[column++], *cell, decimal_comma);
  }
  while (column < table.columns.size()) table.columns[column++].add_empty();
  table.lines.push_back(line);
  if (table.rows() > kMostRows) {
    bad_input("{}: has more than {} rows", table.file, count_text(kMostRows));
  }
}

}  // namespace

RawTable parse_separated(std::string_view text, const std::string& file) {
  const char separator = separator_of(text);
  RawTable table{
      .file = file, .format = separator_name(separator), .columns = {}, .lines = {}, .origins = {}};
  CellReader reader(text, separator, file);
  if (!reader.next_row()) bad_input("{}: holds comments alone", file);
  CellReader first = reader;
  std::vector<std::string> names = read_header(reader, file);
  const bool named = is_header(names);
  for (std::size_t i = 0; i < names.size(); ++i) {
    table.columns.emplace_back();
    table.columns.back().name =
        named && !names[i].empty() ? names[i] : fmt::format("column {}", i + 1);
  }
  const bool decimal_comma = separator != ',';
  if (!named) add_row(table, first, decimal_comma);
  while (reader.next_row()) {
    add_row(table, reader, decimal_comma);
    refuse_sparse(table, text.size());
  }
  return table;
}

}  // namespace ridgeline::audit
