#pragma once

// Results that another program wrote as JSON; docs/store.md tells the format.

#include <filesystem>
#include <tuple>
#include <vector>

#include "store/records.h"

namespace ridgeline {

// A run with all that belongs to it.
struct RunContents {
  RunRecord run;
  std::tuple<std::vector<Sample>, std::vector<StepTime>, std::vector<Reading>,
             std::vector<MemoryEntry>, std::vector<Finding>, std::vector<EpochRecord>,
             std::vector<LiveEntry>, std::vector<TimelineEntry>>
      tables;
};

// visit(rows) for every table of a run, which may be const.
template <typename Contents, typename Visit>
void visit_tables(Contents& contents, Visit&& visit) {
  std::apply([&](auto&... rows) { (visit(rows), ...); }, contents.tables);
}

struct ImportFile {
  EnvironmentRecord environment;
  std::vector<RunContents> runs;
};

// By how the file begins; for JSON, the first character that is no white space is '{'. Bad_input
// where it cannot be opened.
[[nodiscard]] bool looks_like_json(const std::filesystem::path& path);
[[nodiscard]] bool looks_like_store(const std::filesystem::path& path);

// Throws bad_input that names the place for what is not as the format says.
[[nodiscard]] ImportFile read_import_file(const std::filesystem::path& path);

// Bad_input unless Store::import takes the file: a store, or a file that read_import_file takes.
void check_importable(const std::filesystem::path& path);

}  // namespace ridgeline
