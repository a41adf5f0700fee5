#pragma once

// Text for people: tables with aligned columns, sizes, durations.

#include <cstdint>
#include <optional>
#include <string>
#include <string_view>
#include <vector>

namespace ridgeline {

// Columns on a terminal that a text takes.
[[nodiscard]] std::size_t display_width(std::string_view text);

// How much of a table is shown.
struct TableView {
  std::size_t width = 0;                  // of the terminal; 0: no limit
  std::vector<std::string> columns = {};  // these alone, in this order; empty: all that fit
  std::string hint = {};                  // how to see the rest
};

// A table whose columns fit their widest cell. Alignment: one letter a column, l or r.
class TextTable {
 public:
  TextTable(std::vector<std::string> header, std::string alignment);
  void add_row(std::vector<std::string> cells);
  // The columns that stay where there is no room for all, the most important one first. Those that
  // are not named go before them, the last one first.
  void important(std::vector<std::string> titles) { important_ = std::move(titles); }
  [[nodiscard]] std::string text() const;
  // What the view has room for: long texts are shortened, then columns left out. A line below the
  // table says so.
  [[nodiscard]] std::string text(const TableView& view) const;

 private:
  struct Shown {
    std::size_t column, width;
  };
  [[nodiscard]] std::string text(const std::vector<Shown>& shown) const;
  [[nodiscard]] std::vector<std::size_t> natural_widths() const;
  [[nodiscard]] std::vector<std::size_t> by_importance() const;
  [[nodiscard]] std::vector<Shown> fitted(std::size_t width) const;
  [[nodiscard]] std::vector<Shown> chosen(const std::vector<std::string>& names) const;

  std::vector<std::vector<std::string>> rows_;  // the header first
  std::string alignment_;
  std::vector<std::string> important_;
};

// The title that a name of --columns means: the same letters, or the first that begins with them;
// case does not count. Nothing where there is none.
[[nodiscard]] std::optional<std::size_t> column_named(const std::vector<std::string>& titles,
                                                      std::string_view name);

[[nodiscard]] std::string bytes_text(std::int64_t bytes);  // "12.3 MiB"
[[nodiscard]] std::string duration_text(double seconds);   // "3.21 ms", "2 min 05 s"
[[nodiscard]] std::string count_text(std::int64_t count);  // "60,000"

// "a, b, c"
template <typename List>
[[nodiscard]] std::string joined(const List& items, std::string_view separator) {
  std::string text;
  for (const auto& item : items) {
    if (!text.empty()) text += separator;
    text += std::string_view(item);
  }
  return text;
}

// The first ten, and how many more there are: "a, b and 7 more". A message that lists what may be
// thousands of things uses this.
constexpr std::size_t kMostListed = 10;
[[nodiscard]] std::string listed(const std::vector<std::string>& items,
                                 std::string_view separator = ", ");

}  // namespace ridgeline
