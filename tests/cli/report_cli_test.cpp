// `ridgeline report`, run as a user would.

#include <gtest/gtest.h>

#include <fstream>
#include <nlohmann/json.hpp>
#include <sstream>

#include "support/data_files.h"
#include "support/program.h"
#include "support/report_store.h"
#include "support/small_disk.h"
#include "support/store_rows.h"

namespace ridgeline {
namespace {

namespace fs = std::filesystem;
using namespace ridgeline::testing;
using Json = nlohmann::json;

class ReportCli : public ProgramTest {
 protected:
  void write_store(const std::string& name = "ridgeline.db") const {
    Store store(folder_ / name);
    write_report_store(store);
  }
  [[nodiscard]] std::string read(const std::string& name) const {
    std::ifstream file(folder_ / name, std::ios::binary);
    std::ostringstream text;
    text << file.rdbuf();
    return std::move(text).str();
  }
  // Nothing but what was there before.
  void expect_only(const std::vector<std::string>& names) const {
    for (const auto& entry : fs::directory_iterator(folder_)) {
      const std::string name = entry.path().filename().string();
      EXPECT_NE(std::find(names.begin(), names.end(), name), names.end()) << name;
    }
  }
};

TEST_F(ReportCli, WritesThePageTheTablesAndTheTexts) {
  write_store();
  const Outcome outcome = run("report --format html,markdown,latex,csv --title Trial");
  ASSERT_EQ(outcome.code, 0) << outcome.err;
  expect_contains(outcome.out, {"report/index.html", "open it in a browser", "report/report.md",
                                "report/report.tex", "report/tables/", " tables in "});
  EXPECT_EQ(outcome.err, "");
  expect_contains(read("report/index.html"), {"<!DOCTYPE html>", "Trial"});
  expect_contains(read("report/report.md"), {"# Trial", "resnet18", "Not drawn"});
  expect_contains(read("report/report.tex"), {"\\title{Trial", "\\end{document}"});
  int tables = 0;
  for (const auto& entry : fs::directory_iterator(folder_ / "report/tables")) {
    tables += entry.path().extension() == ".csv";
    EXPECT_GT(entry.file_size(), 0U) << entry.path();
  }
  EXPECT_GT(tables, 5);
  EXPECT_FALSE(fs::exists(folder_ / "report/figures"));
}

TEST_F(ReportCli, JsonTellsEveryFileAndASecondReportTakesThePlaceOfTheFirst) {
  write_store();
  ASSERT_EQ(run("report --format html,csv").code, 0);
  const Outcome outcome = run("report --format csv --json");
  ASSERT_EQ(outcome.code, 0) << outcome.err;
  const Json document = Json::parse(outcome.out);
  EXPECT_EQ(document["folder"], "report");
  EXPECT_EQ(document["warnings"], Json::array());
  EXPECT_EQ(document["tables"], document["files"].size());
  std::int64_t bytes = 0;
  for (const Json& file : document["files"]) {
    bytes += file["bytes"].get<std::int64_t>();
    EXPECT_TRUE(fs::exists(folder_ / "report" / file["name"].get<std::string>()));
  }
  EXPECT_EQ(document["bytes"], bytes);
  EXPECT_FALSE(fs::exists(folder_ / "report/index.html")) << "the first report's";
}

TEST_F(ReportCli, DrawsFigures) {
  write_store();
  const Outcome outcome = run("report --format svg --study trial --out pictures");
  ASSERT_EQ(outcome.code, 0) << outcome.err;
  EXPECT_EQ(outcome.err, "");
  expect_contains(outcome.out, {"pictures/figures/", " figures in "});
  int figures = 0;
  for (const auto& entry : fs::directory_iterator(folder_ / "pictures/figures")) {
    ++figures;
    EXPECT_EQ(entry.path().extension(), ".svg");
  }
  EXPECT_GE(figures, 3);
}

TEST_F(ReportCli, RefusesWithWordsAndLeavesNothing) {
  const auto refused = [&](const std::string& arguments, const std::vector<std::string>& words) {
    const Outcome outcome = run("report " + arguments);
    EXPECT_EQ(outcome.code, 2) << arguments;
    EXPECT_EQ(outcome.out, "");
    expect_contains(outcome.err, words);
  };
  refused("", {"ridgeline.db: the store does not exist"});
  expect_only({});
  { const Store store(folder_ / "ridgeline.db"); }
  refused("", {"ridgeline.db: has no complete runs", "ridgeline study quick"});
  {
    Store store(folder_ / "ridgeline.db");
    store.add(example_environment());
    (void)store.begin(example_run());
  }
  refused("", {"has no complete runs, only 1 that were interrupted or failed"});
  write_store("full.db");
  refused("--store full.db --study enviroments", {"enviroments"});
  refused("--store full.db --format htlm", {"--format htlm", "did you mean 'html'"});
  refused("--store full.db --out full.db", {"full.db: is a file"});
  refused("--store full.db --out .", {"is being worked in"});
  refused("--store full.db --out /proc/report", {"/proc/report.new: cannot be made"});
  fs::create_directories(folder_ / "photos/summer");
  std::ofstream(folder_ / "photos/summer/sea.jpg") << "sea";
  refused("--store full.db --out photos", {"photos: is not empty and not a former report"});
  EXPECT_EQ(read("photos/summer/sea.jpg"), "sea");
  for (const auto& entry : fs::directory_iterator(folder_)) {
    EXPECT_EQ(entry.path().string().find(".new"), std::string::npos) << entry.path();
    EXPECT_NE(entry.path().filename(), "report");
  }
}

TEST_F(ReportCli, AFullDiskLeavesTheFormerReport) {
  write_store();
  ASSERT_EQ(run("report --format csv").code, 0);
  Outcome outcome;
  {
    const SmallDisk disk(100000);  // SQLite has its own small files
    outcome = run("report --format html,csv");
  }
  EXPECT_EQ(outcome.code, 1);
  expect_contains(outcome.err, {"index.html: cannot be written"});
  EXPECT_FALSE(fs::exists(folder_ / "report/index.html"));
  EXPECT_TRUE(fs::exists(folder_ / "report/tables"));
  EXPECT_FALSE(fs::exists(folder_ / "report.new"));
}

TEST_F(ReportCli, HelpHasExamples) {
  const Outcome help = run("report --help");
  EXPECT_EQ(help.code, 0);
  expect_contains(help.out, {"--study", "--format", "--out", "Examples:", "store import"});
}

}  // namespace
}  // namespace ridgeline
