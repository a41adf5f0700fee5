#include "base/wrap.h"

#include <algorithm>

#include "base/parse.h"
#include "base/text.h"

namespace ridgeline {
namespace {

// Words that may stand on lines of their own.
std::vector<std::string> words_of(std::string_view text) {
  std::vector<std::string> words;
  for (const std::string_view piece : pieces_of(text, " ")) {
    if (!words.empty() && words.back() == "[default:") {
      words.back() += ' ' + std::string(piece);
    } else if (!piece.empty()) {
      words.emplace_back(piece);
    }
  }
  return words;
}

}  // namespace

std::string wrapped(std::string_view text, std::size_t first, std::size_t indent,
                    std::size_t width) {
  std::string result;
  std::size_t column = first, begin = first;
  for (const std::string& word : words_of(text)) {
    const std::size_t length = display_width(word);
    if (column > begin && column + 1 + length > width) {
      result += '\n' + std::string(indent, ' ');
      column = begin = indent;
    } else if (column > begin) {
      result += ' ';
      ++column;
    }
    result += word;
    column += length;
  }
  return result;
}

std::string folded(std::string_view text, std::size_t width) {
  constexpr std::size_t kMore = 4;
  if (width == 0) return std::string(text);
  std::string result;
  for (const std::string_view line : pieces_of(text, "\n")) {
    const std::size_t margin = std::min(line.find_first_not_of(' '), line.size());
    result += display_width(line) <= width
                  ? std::string(line)
                  : std::string(margin, ' ') +
                        wrapped(line.substr(margin), margin, margin + kMore, width);
    result += '\n';
  }
  result.pop_back();  // the text's own last line has no end
  return result;
}

}  // namespace ridgeline
