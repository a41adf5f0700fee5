// ridgeline audit as a user starts it: exit codes, formats, the page, and our own exports.

#include <gtest/gtest.h>

#include <fstream>
#include <nlohmann/json.hpp>

#include "support/program.h"
#include "support/report_store.h"

namespace ridgeline {
namespace {

class SlowAuditCli : public testing::ProgramTest {
 protected:
  void write(const std::string& name, const std::string& text) const {
    std::ofstream(folder_ / name, std::ios::binary) << text;
  }
};

const std::string kHealthyTable =
    "model,device,batch,throughput (img/s),std,runs\nresnet18,T4,64,230.5,1.2,10\n"
    "resnet18,A100,64,1801.5,8.1,10\n";

TEST_F(SlowAuditCli, ExitCodesTellErrorsAndBadInput) {
  write("good.csv", kHealthyTable);
  write("bad.csv", "model,device,batch,throughput (img/s)\nresnet50,T4,64,9000\n");
  write("broken.csv", "model,time\n\"resnet18,1\n");
  EXPECT_EQ(run("audit good.csv").code, 0);
  const testing::Outcome bad = run("audit bad.csv");
  EXPECT_EQ(bad.code, 1);
  EXPECT_NE(bad.out.find("above-roof"), std::string::npos) << bad.out;
  const testing::Outcome broken = run("audit broken.csv");
  EXPECT_EQ(broken.code, 2);
  EXPECT_EQ(broken.err, "ridgeline: broken.csv, line 2: a quote is opened and never closed\n");
  for (const char* wrong : {"audit", "audit nowhere.csv", "audit good.csv --hardware T5000",
                            "audit good.csv --map x=model", "audit good.csv --image none"}) {
    EXPECT_EQ(run(wrong).code, 2) << wrong;
  }
  EXPECT_EQ(run("audit --roles").code, 0);
  EXPECT_NE(run("audit --checks").out.find("periodic-samples"), std::string::npos);
}

TEST_F(SlowAuditCli, JsonAndPageHoldTheSameFindings) {
  write("bad.csv", "model,device,batch,throughput (img/s)\nresnet50,T4,64,9000\n");
  const testing::Outcome outcome = run("audit bad.csv --json --out page.html");
  EXPECT_EQ(outcome.code, 1) << outcome.err;
  const nlohmann::json document = nlohmann::json::parse(outcome.out);
  EXPECT_EQ(document.at("errors"), 1);
  const nlohmann::json& finding = document.at("files").at(0).at("findings").at(0);
  EXPECT_EQ(finding.at("check"), "above-roof");
  EXPECT_EQ(finding.at("lines"), nlohmann::json::array({2}));
  std::ifstream file(folder_ / "page.html");
  const std::string page((std::istreambuf_iterator<char>(file)), std::istreambuf_iterator<char>());
  EXPECT_NE(page.find("Audit of published results"), std::string::npos);
  EXPECT_NE(page.find(finding.at("evidence").get<std::string>().substr(0, 30)), std::string::npos);
  EXPECT_EQ(run("audit bad.csv --out folder").code, 1);
  EXPECT_TRUE(std::filesystem::exists(folder_ / "folder" / "index.html"));
}

// Nothing false on what this program exports itself.
TEST_F(SlowAuditCli, OwnExportsHaveNoErrors) {
  {
    Store store(folder_ / "ridgeline.db");
    testing::write_report_store(store);
  }
  ASSERT_EQ(run("store export --csv tables").code, 0) << run("store export --csv tables").err;
  const testing::Outcome outcome = run("audit tables --json");
  EXPECT_EQ(outcome.code, 0) << outcome.out << outcome.err;
  const nlohmann::json document = nlohmann::json::parse(outcome.out);
  EXPECT_EQ(document.at("errors"), 0) << outcome.out;
  EXPECT_GE(document.at("files").size(), 5U);
  // The tables of the report, which are as a paper has them.
  ASSERT_EQ(run("report --format csv --out report").code, 0);
  const nlohmann::json report = nlohmann::json::parse(run("audit report --json").out);
  EXPECT_GE(report.at("files").size(), 10U);
  for (const nlohmann::json& file : report.at("files")) {
    for (const nlohmann::json& finding : file.at("findings")) {
      // The store's networks have made-up numbers of parameters, and the audit knows better.
      if (finding.at("check") == "parameters") continue;
      EXPECT_NE(finding.at("severity"), "error") << file.at("file") << finding;
    }
  }
}

}  // namespace
}  // namespace ridgeline
