#include "data/csv.h"

#include <algorithm>
#include <cmath>
#include <string>
#include <string_view>

#include "base/error.h"
#include "data/file.h"

namespace ridgeline {
namespace {

bool is_digit(char c) { return c >= '0' && c <= '9'; }

std::string_view without_return(std::string_view line) {
  if (line.ends_with('\r')) line.remove_suffix(1);
  return line;
}

// A file's text, taken line by line.
class Lines {
 public:
  explicit Lines(std::string_view text) : rest_(text) {}

  // False at the end.
  bool next(std::string_view& line) {
    if (rest_.empty()) return false;
    const std::size_t end = rest_.find('\n');
    line = without_return(rest_.substr(0, end));
    rest_ = end == std::string_view::npos ? std::string_view() : rest_.substr(end + 1);
    ++number_;
    return true;
  }
  [[nodiscard]] std::int64_t number() const { return number_; }
  [[nodiscard]] std::size_t bytes_left() const { return rest_.size(); }

 private:
  std::string_view rest_;
  std::int64_t number_ = 0;
};

std::int64_t columns_of(std::string_view line) {
  return std::count(line.begin(), line.end(), ',') + 1;
}

std::string_view column(std::string_view line, std::int64_t index) {
  for (; index > 0; --index) line.remove_prefix(line.find(',') + 1);
  return line.substr(0, line.find(','));
}

std::string column_name(std::int64_t index) {
  return index == 0 ? std::string("label") : fmt::format("pixel{}", index - 1);
}

// Where the numbering of the header's pixel columns breaks: usually the column that is missing.
std::string break_in(std::string_view header, std::int64_t columns) {
  for (std::int64_t i = 1; i < columns; ++i) {
    const std::string_view name = column(header, i);
    if (name.starts_with("pixel") && name != column_name(i)) {
      return fmt::format("; column {} is '{}' where '{}' was expected", i + 1, name,
                         column_name(i));
    }
  }
  return {};
}

struct Position {
  const std::filesystem::path& path;
  std::int64_t line;

  [[nodiscard]] std::string text() const { return fmt::format("{}:{}", path.string(), line); }
};

void check_header(const Position& at, std::string_view header) {
  const std::string_view first = column(header, 0);
  if (first == "label") return;
  bad_input("{}: the first column is '{}', expected 'label'{}", at.text(), first,
            first.starts_with("pixel") ? "; a file without labels cannot be trained on" : "");
}

std::int64_t side_of_image(const Position& at, std::string_view first, bool header) {
  const std::int64_t columns = columns_of(first), pixels = columns - 1;
  const std::int64_t side = std::llround(std::sqrt(static_cast<double>(pixels)));
  if (pixels < 1 || side * side != pixels) {
    bad_input(
        "{}: {} columns: a label and {} pixels, which is not a square image; 28x28 needs 785 "
        "columns{}",
        at.text(), columns, pixels, header ? break_in(first, columns) : std::string());
  }
  return side;
}

// Tells what is wrong with a row that the fast loop gave up on.
[[noreturn]] void explain(const Position& at, std::string_view line, std::int64_t columns) {
  const std::int64_t found = columns_of(line);
  if (found != columns) {
    bad_input("{}: {} columns, expected {} as in the first line", at.text(), found, columns);
  }
  for (std::int64_t i = 0; i < columns; ++i) {
    const std::string_view field = column(line, i);
    const auto complain = [&](std::string_view what) {
      bad_input("{}: column {} ({}): {}; expected a whole number from 0 to 255", at.text(), i + 1,
                column_name(i), what);
    };
    if (field.empty()) complain("is empty");
    const std::string_view digits = field.starts_with('-') ? field.substr(1) : field;
    if (digits.empty() || !std::all_of(digits.begin(), digits.end(), is_digit)) {
      complain(fmt::format("'{}' is not a whole number", field));
    }
    if (digits.size() != field.size() || digits.size() > 3 ||
        std::stoi(std::string(digits)) > 255) {
      complain(fmt::format("{} is out of range", field));
    }
  }
  bad_input("{}: cannot be read as {} numbers", at.text(), columns);
}

// One row of exactly `count` numbers from 0 to 255; false when it is anything else.
bool parse_row(std::string_view line, std::uint8_t& label, std::uint8_t* pixels,
               std::int64_t count) {
  const char* at = line.data();
  const char* const end = at + line.size();
  for (std::int64_t i = 0; i <= count; ++i) {
    unsigned value = 0;
    const char* const first = at;
    while (at != end && is_digit(*at) && at - first < 3) {
      value = value * 10 + static_cast<unsigned>(*at - '0');
      ++at;
    }
    if (at == first || value > 255) return false;
    if (i < count) {
      if (at == end || *at != ',') return false;
      ++at;
    }
    (i == 0 ? label : pixels[i - 1]) = static_cast<std::uint8_t>(value);
  }
  return at == end;
}

}  // namespace

Dataset read_csv(const std::filesystem::path& path, std::int32_t classes) {
  const std::vector<std::uint8_t> bytes = read_file(path);
  std::string_view text(reinterpret_cast<const char*>(bytes.data()), bytes.size());
  if (text.starts_with("\xEF\xBB\xBF")) text.remove_prefix(3);

  Lines lines(text);
  std::string_view line;
  if (!lines.next(line) || line.empty()) {
    bad_input("{}:1: the file is empty; expected a line 'label,pixel0,pixel1,...'", path.string());
  }
  const bool header = !is_digit(line[0]) && line[0] != '-';
  if (header) check_header({path, 1}, line);
  const std::int64_t columns = columns_of(line);
  Dataset data;
  data.height = data.width = side_of_image({path, 1}, line, header);
  data.classes = classes;
  if (header && !lines.next(line)) {
    bad_input("{}:2: no rows follow the header", path.string());
  }

  // A row takes at least two characters a column.
  const std::size_t most_rows = lines.bytes_left() / static_cast<std::size_t>(2 * columns) + 1;
  const std::size_t size = data.sample_bytes();
  data.pixels.reserve(most_rows * size);
  data.labels.reserve(most_rows);
  do {
    if (line.empty() && lines.bytes_left() == 0) break;
    const std::size_t filled = data.pixels.size();
    data.pixels.resize(filled + size);
    std::uint8_t label = 0;
    if (!parse_row(line, label, data.pixels.data() + filled, columns - 1)) {
      explain({path, lines.number()}, line, columns);
    }
    if (label >= classes) {
      bad_input("{}:{}: column 1 (label): {} is outside the {} classes (0 to {})", path.string(),
                lines.number(), label, classes, classes - 1);
    }
    data.labels.push_back(label);
  } while (lines.next(line));
  if (data.empty()) bad_input("{}:2: no rows follow the header", path.string());
  return data;
}

}  // namespace ridgeline
