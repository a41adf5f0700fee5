#pragma once

// The audit of other people's results: files in, findings out.

#include <filesystem>
#include <string>
#include <vector>

#include "audit/check.h"
#include "audit/context.h"

namespace ridgeline {
class Store;
}

namespace ridgeline::audit {

struct Request {
  std::vector<std::string> files;  // or folders
  std::vector<ColumnRule> rules;
  Defaults defaults;
};

// What a column was taken for.
struct ColumnMeaning {
  std::string column;
  Role role = Role::none;
  std::string unit, why;
};

// A finding with what a reader needs to find its rows: lines of the file.
struct FileFinding {
  Finding finding;
  std::vector<std::int64_t> lines;
};

struct FileAudit {
  std::string file, format;
  std::size_t rows = 0, configurations = 0;
  std::vector<ColumnMeaning> columns;
  std::vector<std::string> networks, hardware;  // that were recognised
  std::vector<std::string> not_checked;         // what is missing for some checks
  std::vector<FileFinding> findings;            // errors first

  [[nodiscard]] std::size_t count(Severity severity) const;
};

struct Audit {
  std::vector<FileAudit> files;
  std::vector<std::string> skipped;  // files of folders that are no tables of results, and why

  [[nodiscard]] std::size_t count(Severity severity) const;
};

// Of a table that was read.
[[nodiscard]] FileAudit audit_table(RawTable raw, const Request& request, Facts& facts);
// Reads all files. Bad_input for the first named one that is no table of results, for folders
// without any, and for unknown hardware or an unknown model in the request.
[[nodiscard]] Audit audit_files(const Request& request, Facts& facts);

// Ceilings that were measured take the place of data sheets.
void use_measured_ceilings(const Store& store, Facts& facts);

}  // namespace ridgeline::audit
