#pragma once

// A file of results as columns of cells, before anything is known of their meaning.

#include <cstdint>
#include <functional>
#include <limits>
#include <string>
#include <string_view>
#include <unordered_map>
#include <vector>

namespace ridgeline::audit {

inline constexpr double kNothing = std::numeric_limits<double>::quiet_NaN();

// Each cell is a finite number, words, or empty. Equal words are kept once, so that a million rows
// with the same model cost four bytes each.
class RawColumn {
 public:
  std::string name;

  void add_number(double number);
  void add_words(std::string_view words);
  void add_empty();

  [[nodiscard]] std::size_t size() const { return codes_.size(); }
  [[nodiscard]] bool is_number(std::size_t row) const { return codes_[row] == kNumber; }
  [[nodiscard]] bool is_empty(std::size_t row) const { return codes_[row] == kEmpty; }
  // NaN where the cell is no number.
  [[nodiscard]] double number(std::size_t row) const { return numbers_[row]; }
  // Empty where the cell is a number.
  [[nodiscard]] std::string_view words(std::size_t row) const;
  // The cell as text, whatever it is.
  [[nodiscard]] std::string text(std::size_t row) const;
  // Which of dictionary(); only for cells with words.
  [[nodiscard]] std::size_t word_index(std::size_t row) const { return codes_[row] - kWords; }
  [[nodiscard]] const std::vector<std::string>& dictionary() const { return dictionary_; }
  [[nodiscard]] std::size_t number_count() const { return number_count_; }
  [[nodiscard]] std::size_t word_count() const { return word_count_; }

 private:
  static constexpr std::uint32_t kNumber = 0, kEmpty = 1, kWords = 2;
  struct Hash {
    using is_transparent = void;
    std::size_t operator()(std::string_view text) const {
      return std::hash<std::string_view>{}(text);
    }
  };

  std::vector<double> numbers_;
  std::vector<std::uint32_t> codes_;
  std::vector<std::string> dictionary_;
  std::unordered_map<std::string, std::uint32_t, Hash, std::equal_to<>> index_;
  std::size_t number_count_ = 0, word_count_ = 0;
};

struct RawTable {
  std::string file;
  std::string format;  // "CSV, separated by ';'", "JSON lines", "PyTorch trace"
  std::vector<RawColumn> columns;
  std::vector<std::int64_t> lines;  // where each row begins in the file, from 1
  // The row of the file that each row comes from: several where a wide table was made long.
  std::vector<std::size_t> origins;

  [[nodiscard]] std::size_t rows() const { return lines.size(); }
};

// A cell as a file has it: trimmed, "n/a" and the like as empty, "1,107" as a number. With
// `decimal_comma`, "1,5" is one and a half.
void add_cell(RawColumn& column, std::string_view text, bool decimal_comma);

}  // namespace ridgeline::audit
