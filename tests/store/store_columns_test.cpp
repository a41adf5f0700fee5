// The registry of columns, numbers and notes, and its page in the documentation.

#include <gtest/gtest.h>

#include <set>

#include "base/text_file.h"
#include "store/columns.h"
#include "store/rows.h"
#include "store/schema.h"
#include "support/data_files.h"
#include "support/source_dir.h"

namespace ridgeline {
namespace {

using namespace ridgeline::testing;

template <typename Row>
void expect_registered(std::string_view name, const std::set<std::string_view>& keys) {
  std::set<std::string_view> columns, fields = keys;
  for (const Column& column : table(name).columns) columns.insert(column.name);
  for (const std::string_view field : field_names<Row>()) fields.insert(field);
  EXPECT_EQ(columns, fields) << name;
}

TEST(StoreColumns, RecordsAndTablesHaveTheSameFields) {
  expect_registered<EnvironmentRecord>("environments", {});
  expect_registered<NetworkRecord>("networks", {});
  expect_registered<RunRecord>("runs", {"id"});
  expect_registered<Sample>("samples", {"run", "number"});
  expect_registered<StepTime>("steps", {"run", "number"});
  expect_registered<Reading>("readings", {"run", "number"});
  expect_registered<MemoryEntry>("memory", {"run", "number"});
  expect_registered<Finding>("findings", {"run", "number"});
  expect_registered<EpochRecord>("epochs", {"run", "number"});
  expect_registered<LiveEntry>("live_bytes", {"run", "number"});
  expect_registered<TimelineEntry>("timeline", {"run", "number"});
  expect_registered<StudyRecord>("studies", {});
  expect_registered<StudyItemRecord>("study_items", {});
  expect_registered<Ceiling>("ceilings", {"environment", "number"});
}

TEST(StoreColumns, UnitsStandInTheNames) {
  const std::vector<std::pair<std::string_view, std::string_view>> words = {
      {"s", "seconds"},
      {"B", "bytes"},
      {"FLOP", "flops"},
      {"MHz", "mhz"},
      {"J", "joules"},
      {"W", "watts"},
      {"%", "percent"},
      {"°C", "celsius"},
      {"Hz", "hz"},
      {"B/s", "bytes_per_second"},
      {"FLOP/s", "flops_per_second"},
      {"1/s", "per_second"},
      {"samples/s", "samples_per_second"}};
  const auto check = [&](std::string_view name, std::string_view unit) {
    for (const auto& [symbol, word] : words) {
      if (unit != symbol) continue;
      EXPECT_NE(name.find(word), name.npos) << name << " in " << unit;
    }
  };
  for (const Table& each : tables()) {
    for (const Column& column : each.columns) check(column.name, column.unit);
  }
  std::set<std::string_view> seen;
  for (const auto& names : {number_names(), note_names(), sensor_names()}) {
    seen.clear();
    for (const RegisteredName& name : names) {
      check(name.name, name.unit);
      EXPECT_TRUE(seen.insert(name.name).second) << name.name << " is registered twice";
      EXPECT_FALSE(name.meaning.empty());
    }
  }
  EXPECT_NE(find_name(number_names(), "training_flops"), nullptr);
  EXPECT_EQ(find_name(number_names(), "training_flop"), nullptr);
}

TEST(StoreColumns, TheDocumentationNamesEveryTableAndColumn) {
  const std::string text = read_text(source_dir() / "docs/store.md");
  // 'ridgeline store columns' prints what must stand there.
  EXPECT_NE(text.find(registry_markdown()), text.npos);
  expect_contains(text, {fmt::format("version {}", kSchemaVersion),
                         fmt::format("(1 to {} today)", kSchemaVersion)});
}

}  // namespace
}  // namespace ridgeline
