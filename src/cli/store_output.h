#pragma once

// What the commands of `ridgeline store` print and write.

#include <filesystem>
#include <span>
#include <string>
#include <vector>

#include "store/store.h"

namespace ridgeline::cli {

// The titles of the list of runs.
[[nodiscard]] std::vector<std::string> list_columns();

// The runs one below the other.
[[nodiscard]] std::string list_text(const Store& store, std::span<const RunRecord> runs);
[[nodiscard]] std::string list_json(const Store& store, std::span<const RunRecord> runs);

// All that is known of one run.
[[nodiscard]] std::string show_text(const Store& store, const RunRecord& run);
[[nodiscard]] std::string show_json(const Store& store, const RunRecord& run);

// One row for each sample, with what identifies its run. The number of rows.
std::int64_t write_samples_csv(const Store& store, std::span<const RunRecord> runs,
                               const std::filesystem::path& file);
// One file for each table in a folder, which is made.
void write_tables_csv(const Store& store, std::span<const RunRecord> runs,
                      const std::filesystem::path& folder);

// As Google Benchmark writes it, for its compare.py.
[[nodiscard]] std::string google_benchmark_json(const Store& store,
                                                std::span<const RunRecord> runs);

}  // namespace ridgeline::cli
