// The tables of the example report (docs/examples: five studies on two real machines), as the
// report's CSV files have them: the audit finds no errors in them.

#include <gtest/gtest.h>

#include <algorithm>
#include <functional>
#include <nlohmann/json.hpp>

#include "audit/audit.h"
#include "audit/read/read.h"
#include "base/error.h"
#include "base/text.h"
#include "base/text_file.h"
#include "support/source_dir.h"

namespace ridgeline::audit {
namespace {

using nlohmann::json;

json page_of(const std::string& html) {
  const std::string begins = "type=\"application/json\"";
  const std::size_t from = html.find('>', html.find(begins)) + 1;
  return json::parse(html.substr(from, html.find("</script>", from) - from));
}

std::string quoted(const std::string& text) {
  std::string cell = "\"";
  for (const char c : text) cell += c == '"' ? std::string("\"\"") : std::string(1, c);
  return cell + '"';
}

bool has(const json& cell, const char* key) { return cell.is_object() && cell.contains(key); }

// One line of a table, with the ends of intervals and the footnotes behind their numbers.
std::string line_of(const json& table, const json& row, bool header) {
  std::vector<std::string> cells;
  for (std::size_t i = 0; i < table.at("columns").size(); ++i) {
    const json& column = table.at("columns").at(i);
    const auto any = [&](const char* key) {
      return std::ranges::any_of(table.at("rows"),
                                 [&](const json& each) { return has(each.at(i), key); });
    };
    const std::string title = column.at("title");
    const std::string unit =
        column.contains("unit") ? fmt::format(" ({})", column.at("unit").get<std::string>()) : "";
    const auto number = [&](const char* key) {
      return has(row.at(i), key) && row.at(i).at(key).is_number() ? row.at(i).at(key).dump() : "";
    };
    if (header) {
      cells.push_back(quoted(title + unit));
    } else {
      const json& cell = row.at(i);
      const std::string text =
          cell.is_string() ? cell.get<std::string>() : cell.at("t").get<std::string>();
      const std::string value = number("v");
      cells.push_back(!value.empty() ? value : quoted(text == "n/a" ? "" : text));
    }
    if (any("l") || any("h")) {
      cells.push_back(header ? quoted(title + " low" + unit) : number("l"));
      cells.push_back(header ? quoted(title + " high" + unit) : number("h"));
    }
    if (any("n")) cells.push_back(header ? quoted(title + " notes") : "");
  }
  return joined(cells, ",") + "\n";
}

void each_table(const json& sections, const std::function<void(const json&)>& visit) {
  for (const json& section : sections) {
    for (const json& block : section.at("blocks")) {
      if (block.at("block") == "table") visit(block);
    }
    if (section.contains("sections")) each_table(section.at("sections"), visit);
  }
}

TEST(AuditHealthy, TheExampleReportHasNoErrors) {
  const json page = page_of(read_text(testing::source_dir() / "docs" / "examples" / "index.html"));
  Facts facts;
  int audited = 0;
  each_table(page.at("sections"), [&](const json& table) {
    if (table.at("rows").empty()) return;
    std::string text = line_of(table, {}, true);
    for (const json& row : table.at("rows")) text += line_of(table, row, false);
    const std::string id = table.at("id");
    FileAudit audit;
    try {
      audit = audit_table(parse_table(text, id), {}, facts);
    } catch (const Error& error) {
      // No column of it is a result.
      EXPECT_EQ(error.kind(), ErrorKind::bad_input) << id << ": " << error.what();
      return;
    }
    ++audited;
    for (const FileFinding& one : audit.findings) {
      EXPECT_NE(one.finding.severity, Severity::error)
          << id << ": " << one.finding.check << ": " << one.finding.evidence;
    }
  });
  EXPECT_GE(audited, 60);
}

}  // namespace
}  // namespace ridgeline::audit
