#pragma once

// A Document as files: the page, Markdown, LaTeX, tables one by one, figures one by one.

#include <cstdint>
#include <functional>
#include <span>
#include <string>
#include <vector>

#include "report/document.h"
#include "report/report_folder.h"

namespace ridgeline::report {

struct ReportFormats {
  bool html = true, markdown = true, latex = true, csv = true, svg = true, png = true;
  bool pdf = false;  // vector figures for LaTeX
};
// By name: "html", "markdown", ... Throws bad_input for others, and for none.
[[nodiscard]] ReportFormats formats_of(std::span<const std::string> names);

struct WrittenFile {
  std::string name;  // within the folder: "tables/throughput.csv"
  std::int64_t bytes = 0;
};
struct WrittenReport {
  std::vector<WrittenFile> files;
  std::size_t tables = 0, figures = 0;
  std::vector<std::string> warnings;  // what could not be drawn, and why
  bool failed = false;                // whether a picture could not be converted
};

// Called with the steps done, of all steps, and what is being done. False: stop.
using ReportProgress =
    std::function<bool(std::size_t done, std::size_t total, const std::string& what)>;

// Writes index.html, report.md, report.tex, tables/ID.{md,tex,csv} and figures/ID.{svg,png,pdf}.
// Does not commit.
[[nodiscard]] WrittenReport write_report(const Document& document, const ReportFolder& folder,
                                         const ReportFormats& formats,
                                         const ReportProgress& progress);

}  // namespace ridgeline::report
