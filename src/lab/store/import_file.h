#pragma once

// Results that another program wrote as JSON; docs/store.md tells the format.

#include <filesystem>
#include <vector>

#include "lab/store/records.h"

namespace ridgeline {

// A run with all that belongs to it.
struct RunContents {
  RunRecord run;
  std::vector<Sample> samples;
  std::vector<StepTime> steps;
  std::vector<Reading> readings;
  std::vector<MemoryEntry> memory;
  std::vector<Finding> findings;
  std::vector<EpochRecord> epochs;
  std::vector<LiveEntry> live;
  std::vector<TimelineEntry> timeline;
};

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
