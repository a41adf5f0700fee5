#include "audit/read/read.h"

#include <algorithm>
#include <array>
#include <cstring>

#include "base/error.h"
#include "base/folder.h"
#include "base/mapped_file.h"
#include "base/text.h"
#include "base/utf8.h"

namespace ridgeline::audit {
namespace {

namespace fs = std::filesystem;

constexpr std::array<std::string_view, 5> kEndings = {".csv", ".tsv", ".json", ".jsonl", ".ndjson"};

bool has_table_ending(const fs::path& path) {
  std::string ending = path.extension().string();
  for (char& c : ending) c = static_cast<char>(std::tolower(static_cast<unsigned char>(c)));
  return std::ranges::find(kEndings, ending) != kEndings.end();
}

std::int64_t line_at(std::string_view text, std::size_t offset) {
  return 1 + std::count(text.begin(), text.begin() + static_cast<std::ptrdiff_t>(offset), '\n');
}

// The first byte that is no UTF-8, or the end.
std::size_t valid_bytes(std::string_view text) {
  std::size_t at = 0;
  while (at < text.size()) {
    std::uint64_t eight = 0;
    if (text.size() - at >= sizeof(eight)) {
      std::memcpy(&eight, text.data() + at, sizeof(eight));
      if ((eight & 0x8080808080808080ULL) == 0) {
        at += sizeof(eight);
        continue;
      }
    }
    if (static_cast<unsigned char>(text[at]) < 0x80) {
      ++at;
      continue;
    }
    std::string_view rest = text.substr(at);
    // A U+FFFD that stands in the file itself has three bytes.
    if (take_character(rest) == U'\xFFFD' && !text.substr(at).starts_with("\xEF\xBF\xBD")) {
      return at;
    }
    at = text.size() - rest.size();
  }
  return at;
}

// Without the byte order mark. Bad_input for what is no text.
std::string_view checked_text(std::string_view text, const std::string& file) {
  if (text.starts_with("\xFF\xFE") || text.starts_with("\xFE\xFF")) {
    bad_input("{}: is UTF-16; save it as UTF-8", file);
  }
  if (text.starts_with("\xEF\xBB\xBF")) text.remove_prefix(3);
  if (const std::size_t at = text.find('\0'); at != std::string_view::npos) {
    bad_input("{}, line {}: holds a NUL byte, so it is no text file (or UTF-16 without a mark)",
              file, line_at(text, at));
  }
  if (const std::size_t at = valid_bytes(text); at < text.size()) {
    bad_input("{}, line {}: byte 0x{:02x} is no UTF-8; save the file as UTF-8", file,
              line_at(text, at), static_cast<unsigned char>(text[at]));
  }
  return text;
}

}  // namespace

std::vector<InputFile> files_of(const std::vector<std::string>& names) {
  std::vector<InputFile> files;
  for (const std::string& name : names) {
    std::error_code error;
    if (!fs::is_directory(name, error)) {
      files.push_back({name, true});
      continue;
    }
    const std::size_t before = files.size();
    for (const std::string& inside : files_below(name)) {
      if (has_table_ending(inside)) files.push_back({fs::path(name) / inside, false});
    }
    if (files.size() == before) {
      bad_input("{}: holds no file that ends in {}", name, joined(kEndings, ", "));
    }
  }
  return files;
}

void refuse_sparse(const RawTable& table, std::size_t bytes) {
  constexpr std::size_t kAlways = 1'000'000, kForEachByte = 8;
  if (table.rows() * table.columns.size() <= kAlways + kForEachByte * bytes) return;
  bad_input("{}: its rows leave nearly all of the {} columns empty, so it is no table of results",
            table.file, count_text(std::ssize(table.columns)));
}

RawTable parse_table(std::string_view text, const std::string& file) {
  text = checked_text(text, file);
  const std::size_t first = text.find_first_not_of(" \t\r\n");
  if (first == std::string_view::npos) bad_input("{}: is empty", file);
  const bool json = text[first] == '{' || text[first] == '[';
  RawTable table = json ? parse_json(text, file) : parse_separated(text, file);
  if (table.rows() == 0) bad_input("{}: has a header and no rows", file);
  if (std::ranges::none_of(table.columns, [](const RawColumn& column) {
        return column.number_count() + column.word_count() > 0;
      })) {
    bad_input("{}: all cells are empty", file);
  }
  table.origins.resize(table.rows());
  for (std::size_t row = 0; row < table.rows(); ++row) table.origins[row] = row;
  return table;
}

RawTable read_table(const fs::path& path) {
  const MappedFile file(path);
  const auto bytes = file.bytes();
  return parse_table({reinterpret_cast<const char*>(bytes.data()), bytes.size()}, path.string());
}

}  // namespace ridgeline::audit
