#pragma once

// Text for people: tables with aligned columns, sizes, durations.

#include <cstdint>
#include <string>
#include <string_view>
#include <vector>

namespace ridgeline {

// A table whose columns fit their widest cell. Alignment: one letter a column, l or r.
class TextTable {
 public:
  TextTable(std::vector<std::string> header, std::string alignment);
  void add_row(std::vector<std::string> cells);
  [[nodiscard]] std::string text() const;

 private:
  std::vector<std::vector<std::string>> rows_;
  std::string alignment_;
};

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
