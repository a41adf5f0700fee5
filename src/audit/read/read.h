#pragma once

// Files of results from anywhere: CSV and its relatives, JSON, traces of PyTorch's profiler. What
// cannot be a table of results is bad_input with the file, the line and the reason.

#include <filesystem>
#include <string>
#include <string_view>
#include <vector>

#include "audit/read/raw_table.h"

namespace ridgeline::audit {

inline constexpr std::size_t kMostColumns = 10'000;
inline constexpr std::size_t kMostRows = 50'000'000;

// A file to look at.
struct InputFile {
  std::filesystem::path path;
  bool named = true;  // by the user; else it was found in a folder, and may be something else
};

// The files that the arguments name: a folder stands for the files in and below it that end in
// .csv, .tsv, .json, .jsonl or .ndjson. Bad_input where there are none.
[[nodiscard]] std::vector<InputFile> files_of(const std::vector<std::string>& names);

[[nodiscard]] RawTable read_table(const std::filesystem::path& path);
// The same of a text; `file` is what messages call it.
[[nodiscard]] RawTable parse_table(std::string_view text, const std::string& file);

// Bad_input where nearly all cells are those that short rows leave empty: a few bytes could ask for
// all memory. `bytes`: of the file.
void refuse_sparse(const RawTable& table, std::size_t bytes);

// By format. REQUIRES: valid UTF-8 without a byte order mark.
[[nodiscard]] RawTable parse_separated(std::string_view text, const std::string& file);
[[nodiscard]] RawTable parse_json(std::string_view text, const std::string& file);

}  // namespace ridgeline::audit
