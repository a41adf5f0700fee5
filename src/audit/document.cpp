#include "audit/document.h"

#include <algorithm>
#include <cctype>

#include "base/text.h"
#include "build_info.h"
#include "store/store.h"

namespace ridgeline::audit {
namespace {

using report::Cell;

report::Table findings_table(const FileAudit& file, std::size_t number) {
  report::Table table{.id = fmt::format("findings-{}", number),
                      .title = fmt::format("Findings in {}", file.file),
                      .caption = "",
                      .columns = {{.title = "severity"},
                                  {.title = "check"},
                                  {.title = "finding"},
                                  {.title = "cause or remedy"},
                                  {.title = "rows"},
                                  {.title = "confidence"}},
                      .rows = {},
                      .notes = {}};
  for (const FileFinding& one : file.findings) {
    const Finding& finding = one.finding;
    table.rows.push_back({report::words(std::string(name_of(finding.severity))),
                          report::words(finding.check), report::words(finding.evidence),
                          report::words(finding.cause), report::words(lines_text(one)),
                          report::words(std::string(name_of(finding.confidence)))});
  }
  return table;
}

report::Table columns_table(const FileAudit& file, std::size_t number) {
  report::Table table{.id = fmt::format("columns-{}", number),
                      .title = fmt::format("Columns of {}", file.file),
                      .caption = "What each column was taken for. --map corrects it.",
                      .columns = {{.title = "column"},
                                  {.title = "role"},
                                  {.title = "unit"},
                                  {.title = "recognised by"}},
                      .rows = {},
                      .notes = {}};
  for (const ColumnMeaning& column : file.columns) {
    const bool used = column.role != Role::none;
    table.rows.push_back({report::words(column.column),
                          report::words(used ? std::string(info_of(column.role).name) : "not used"),
                          report::words(column.unit), report::words(column.why)});
  }
  return table;
}

report::Table checks_table() {
  report::Table table{.id = "checks",
                      .title = "What was checked",
                      .caption = "Each check looks only at files that have the columns it needs.",
                      .columns = {{.title = "check"}, {.title = "what it looks at"}},
                      .rows = {},
                      .notes = {}};
  for (const Check& check : all_checks()) {
    table.rows.push_back(
        {report::words(std::string(check.name)), report::words(std::string(check.meaning))});
  }
  return table;
}

std::string sentence(std::string text) {
  text.front() = static_cast<char>(std::toupper(static_cast<unsigned char>(text.front())));
  return text + '.';
}

report::Paragraph paragraph(std::string text) {
  return {.pieces = {{.text = std::move(text), .runs = {}, .strong = false}}};
}

report::Section file_section(const FileAudit& file, std::size_t number) {
  report::Section section{.id = fmt::format("file-{}", number), .title = file.file};
  section.blocks.push_back(paragraph(
      fmt::format("{}, {} in {}: {}.{}{}", file.format, counted(file.rows, "row"),
                  counted(file.configurations, "configuration"),
                  count_of_findings(file.count(Severity::error), file.count(Severity::warning),
                                    file.count(Severity::note)),
                  file.networks.empty() ? "" : " Networks: " + joined(file.networks, ", ") + '.',
                  file.hardware.empty() ? "" : " Hardware: " + joined(file.hardware, ", ") + '.')));
  for (const FileFinding& one : file.findings) {
    if (one.finding.severity == Severity::note) continue;
    std::string text = one.finding.evidence;
    if (!one.finding.cause.empty()) text += ". " + sentence(one.finding.cause);
    section.blocks.push_back(
        report::Notice{.severity = std::string(name_of(one.finding.severity)),
                       .name = one.finding.check,
                       .pieces = {{.text = std::move(text), .runs = {}, .strong = false}}});
  }
  if (!file.findings.empty()) section.blocks.push_back(findings_table(file, number));
  for (const std::string& missing : file.not_checked) {
    section.blocks.push_back(paragraph("Not checked: " + missing + '.'));
  }
  section.blocks.push_back(columns_table(file, number));
  return section;
}

}  // namespace

std::string lines_text(const FileFinding& finding) {
  if (finding.lines.empty()) return {};
  std::string text = finding.lines.size() == 1 ? "line " : "lines ";
  constexpr std::size_t kShown = 4;
  for (std::size_t i = 0; i < std::min(kShown, finding.lines.size()); ++i) {
    text += (i == 0 ? "" : ", ") + std::to_string(finding.lines[i]);
  }
  const std::size_t all = std::max(finding.finding.row_count, finding.lines.size());
  if (finding.lines.size() > kShown)
    text += fmt::format(" and {} more", count_text(static_cast<std::int64_t>(all - kShown)));
  return text;
}

std::string counted(std::size_t count, const char* word) {
  return fmt::format("{} {}{}", count == 0 ? "no" : count_text(static_cast<std::int64_t>(count)),
                     word, count == 1 ? "" : "s");
}

std::string count_of_findings(std::size_t errors, std::size_t warnings, std::size_t notes) {
  return fmt::format("{}, {}, {}", counted(errors, "error"), counted(warnings, "warning"),
                     counted(notes, "note"));
}

report::Document audit_document(const Audit& audit, const std::string& title) {
  report::Document document;
  document.title = title.empty() ? "Audit of published results" : title;
  document.subtitle =
      fmt::format("{}: {}", counted(audit.files.size(), "file"),
                  count_of_findings(audit.count(Severity::error), audit.count(Severity::warning),
                                    audit.count(Severity::note)));
  document.generated = utc_now();
  document.program = fmt::format("ridgeline {} ({})", build_info::version, build_info::revision);
  for (std::size_t i = 0; i < audit.files.size(); ++i) {
    document.sections.push_back(file_section(audit.files[i], i + 1));
  }
  if (!audit.skipped.empty()) {
    report::Section skipped{.id = "not-read", .title = "Files that were not read"};
    for (const std::string& reason : audit.skipped) skipped.blocks.push_back(paragraph(reason));
    document.sections.push_back(std::move(skipped));
  }
  report::Section method{.id = "method", .title = "Checks"};
  method.blocks.push_back(
      paragraph("An error follows from arithmetic or lies above a roof; a warning needs an answer; "
                "a note is for the reader. Certain: from the file's own numbers. Likely: from data "
                "sheets and what is usual. Possible: other explanations are as good."));
  method.blocks.push_back(checks_table());
  document.sections.push_back(std::move(method));
  return document;
}

}  // namespace ridgeline::audit
