#include "cli/audit_output.h"

#include <nlohmann/json.hpp>

#include "audit/document.h"
#include "base/json_text.h"
#include "base/text.h"
#include "cli/tables.h"

namespace ridgeline::cli {
namespace {

using audit::FileAudit;
using audit::FileFinding;
using audit::Severity;

std::string columns_text(const FileAudit& file, bool all) {
  TextTable table({"column", "role", "unit", "recognised by"}, "llll");
  std::size_t unused = 0;
  for (const audit::ColumnMeaning& column : file.columns) {
    if (column.role == audit::Role::none && !all) {
      ++unused;
      continue;
    }
    table.add_row(
        {column.column, std::string(audit::info_of(column.role).name), column.unit, column.why});
  }
  std::string text = shown(table);
  if (unused > 0) text += fmt::format("({} not used)\n", audit::counted(unused, "other column"));
  return text;
}

std::string findings_text(const FileAudit& file) {
  std::string text;
  for (const FileFinding& one : file.findings) {
    const audit::Finding& finding = one.finding;
    const std::string lines = audit::lines_text(one);
    text += fitted(fmt::format("{} ({}), {}: {}{}\n", name_of(finding.severity),
                               name_of(finding.confidence), finding.check, finding.evidence,
                               lines.empty() ? "" : " [" + lines + ']'));
    if (!finding.cause.empty()) text += fitted(fmt::format("    {}\n", finding.cause));
  }
  return text;
}

std::string file_text(const FileAudit& file, bool all_columns) {
  std::string text = fitted(fmt::format("{}: {}, {}, {}\n", file.file, file.format,
                                        audit::counted(file.rows, "row"),
                                        audit::counted(file.configurations, "configuration")));
  if (!file.networks.empty()) {
    text += fitted(fmt::format("networks: {}\n", listed(file.networks)));
  }
  if (!file.hardware.empty()) {
    text += fitted(fmt::format("hardware: {}\n", listed(file.hardware)));
  }
  text += '\n' + columns_text(file, all_columns) + '\n';
  text += file.findings.empty() ? "no findings\n" : findings_text(file);
  for (const std::string& missing : file.not_checked) {
    text += fitted("not checked: " + missing + '\n');
  }
  return text;
}

}  // namespace

std::string audit_text(const audit::Audit& audit, bool all_columns) {
  std::string text;
  for (const FileAudit& file : audit.files) text += file_text(file, all_columns) + '\n';
  for (const std::string& reason : audit.skipped) text += fitted("not read: " + reason + '\n');
  return text +
         audit::count_of_findings(audit.count(Severity::error), audit.count(Severity::warning),
                                  audit.count(Severity::note)) +
         '\n';
}

std::string audit_json(const audit::Audit& audit) {
  using Json = nlohmann::ordered_json;
  Json files = Json::array();
  for (const FileAudit& file : audit.files) {
    Json columns = Json::array(), findings = Json::array();
    for (const audit::ColumnMeaning& column : file.columns) {
      columns.push_back({{"column", column.column},
                         {"role", audit::info_of(column.role).name},
                         {"unit", text_or_null(column.unit)},
                         {"recognised_by", text_or_null(column.why)}});
    }
    for (const FileFinding& one : file.findings) {
      findings.push_back({{"check", one.finding.check},
                          {"severity", name_of(one.finding.severity)},
                          {"confidence", name_of(one.finding.confidence)},
                          {"evidence", one.finding.evidence},
                          {"cause", text_or_null(one.finding.cause)},
                          {"lines", one.lines},
                          {"rows", one.finding.row_count}});
    }
    files.push_back({{"file", file.file},
                     {"format", file.format},
                     {"rows", file.rows},
                     {"configurations", file.configurations},
                     {"networks", file.networks},
                     {"hardware", file.hardware},
                     {"columns", std::move(columns)},
                     {"findings", std::move(findings)},
                     {"not_checked", file.not_checked}});
  }
  return json_document(Json{{"files", std::move(files)},
                            {"not_read", audit.skipped},
                            {"errors", audit.count(Severity::error)},
                            {"warnings", audit.count(Severity::warning)},
                            {"notes", audit.count(Severity::note)}});
}

std::string roles_text() {
  TextTable table({"role", "meaning"}, "ll");
  for (const audit::RoleInfo& info : audit::all_roles()) {
    table.add_row({std::string(info.name), std::string(info.meaning)});
  }
  return shown(table);
}

std::string checks_text() {
  TextTable table({"check", "what it looks at"}, "ll");
  for (const audit::Check& check : audit::all_checks()) {
    table.add_row({std::string(check.name), std::string(check.meaning)});
  }
  return shown(table);
}

}  // namespace ridgeline::cli
