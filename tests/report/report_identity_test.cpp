// Runs that differ in one field of their identity are never taken for each other: every table and
// figure that would show one of them alone shows both, under different names.

#include <gtest/gtest.h>

#include <algorithm>
#include <functional>
#include <map>
#include <set>

#include "base/error.h"
#include "report/run_fields.h"
#include "store/identity_fields.h"
#include "support/report_tables.h"
#include "support/vary_identity.h"

namespace ridgeline::report {
namespace {

using testing::ReportRun;
using testing::ReportTraining;
using testing::TempStore;
using testing::vary;

RunId write_training(Store& store, const ReportRun& run) {
  return testing::write_report_training(store, {.run = run});
}

struct Scenario {
  const char* name;
  RunId (*write)(Store& store, const ReportRun& run);
  // Sweeps and comparisons need two runs: beside each another one that differs in this, too.
  std::string_view companion = {};
  std::string backend = "native";
};

void PrintTo(const Scenario& scenario, std::ostream* stream) { *stream << scenario.name; }

// A store with a run as usual and, for each field of the identity, one that differs in it alone.
class Variations {
 public:
  explicit Variations(const Scenario& scenario)
      : store_(scenario.name, [&](Store& store) { write(store, scenario); }) {}

  [[nodiscard]] const Data& data() const { return store_.data(); }
  // Empty: as usual.
  [[nodiscard]] Runs with(std::string_view field) const {
    Runs runs;
    for (const RunId id : ids_.find(field)->second) runs.push_back(data().find(id));
    return runs;
  }

 private:
  void write(Store& store, const Scenario& scenario) {
    testing::write_report_machines(store);
    write(store, scenario, "");
    for (const IdentityField& field : identity_fields()) write(store, scenario, field.name);
  }
  void write(Store& store, const Scenario& scenario, std::string_view field) {
    for (const bool companion : {false, true}) {
      if (companion && scenario.companion.empty()) continue;
      ReportRun run;
      run.part = "";
      run.backend = scenario.backend;
      run.change = [&](RunRecord& record) {
        vary(record, field);
        if (companion) vary(record, scenario.companion);
      };
      ids_[std::string(field)].push_back(scenario.write(store, run));
    }
  }

  std::map<std::string, std::vector<RunId>, std::less<>> ids_;
  TempStore store_;
};

// What an exhibit shows: runs, and the places of its numbers by their names. A place with two runs,
// or with two marks of a figure, names both the same.
struct Shown {
  std::set<RunId> runs;
  std::map<std::string, std::multiset<RunId>> places;
  std::size_t marks = 0;
};

bool is_head(const TableColumn& column, const Cell& cell) {
  if (!cell.value || column.meaning == "What is varied") return true;
  const auto fields = run_fields();
  return std::any_of(fields.begin(), fields.end(),
                     [&](const RunField& field) { return field.label == column.title; });
}

void look_at(const Table& table, Shown& shown) {
  for (const std::vector<Cell>& row : table.rows) {
    std::string heads = table.title + "\n" + table.caption;
    for (std::size_t c = 0; c < row.size(); ++c) {
      if (is_head(table.columns[c], row[c])) heads += "\n" + row[c].text;
    }
    for (std::size_t c = 0; c < row.size(); ++c) {
      const TableColumn& column = table.columns[c];
      const std::vector<RunId>& runs = row[c].runs;
      shown.runs.insert(runs.begin(), runs.end());
      // A ratio is of both.
      if (runs.size() != 1) continue;
      std::multiset<RunId>& known = shown.places[heads + "\n" + column.title + " " + column.unit];
      if (!known.contains(runs[0])) known.insert(runs[0]);
    }
  }
}

void look_at(const Figure& figure, Shown& shown) {
  shown.runs.insert(figure.runs.begin(), figure.runs.end());
  const auto add = [&](const std::string& place) {
    shown.places[figure.title + "\n" + place].insert(0);
    ++shown.marks;
  };
  if (!figure.spans.empty() || !figure.nodes.empty()) add("");
  for (const Series& series : figure.series) {
    if (series.style == SeriesStyle::roof) continue;
    for (const Point& point : series.points) {
      const bool bar = figure.kind == FigureKind::bars;
      add(series.name + "\n" +
          (bar                   ? figure.x.categories.at(static_cast<std::size_t>(point.x))
           : point.label.empty() ? fmt::format("{}", point.x)
                                 : point.label));
    }
  }
}

// Tables and figures by their names.
struct Exhibit {
  std::string name;
  std::function<Shown(const Data& data, const Runs& runs)> look;
};
template <typename Kind>
Exhibit exhibit_of(const char* type, const Kind& kind) {
  return {fmt::format("{} {}", type, kind.name), [&kind](const Data& data, const Runs& runs) {
            Shown shown;
            for (const auto& made : kind.make({data, "x", "", runs})) look_at(made, shown);
            return shown;
          }};
}
// All but `predictions`, which shows errors over many runs and names none of them.
std::vector<Exhibit> exhibits() {
  constexpr std::string_view kNameless = "predictions";
  std::vector<Exhibit> all;
  for (const TableKind& kind : table_kinds()) {
    if (kind.name != kNameless) all.push_back(exhibit_of("table", kind));
  }
  for (const FigureKindEntry& kind : figure_kinds()) {
    if (kind.name != kNameless) all.push_back(exhibit_of("figure", kind));
  }
  return all;
}

// What exhibits need not tell, because it changes nothing that they show, or because they say that
// they show the largest batch.
bool is_indifferent(const std::string& exhibit, std::string_view field) {
  static const std::set<std::string_view> network = {"model", "settings", "image", "classes"};
  static const std::set<std::string> largest_batch = {
      "figure roofline",      "figure roofline-layers", "figure operations",
      "figure step-timeline", "figure memory-timeline", "table op-breakdown"};
  if (exhibit == "figure network") return !network.contains(field);
  if (exhibit == "table complexity") return !network.contains(field) && field != "freeze";
  return field == "batch" && largest_batch.contains(exhibit);
}

void expect_different_names(const Shown& shown) {
  for (const auto& [place, runs] : shown.places) {
    if (runs.size() == 1) continue;
    ADD_FAILURE() << "two runs have one name: " << place.substr(0, 500);
    return;
  }
}

Runs joined(Runs a, const Runs& b) {
  a.insert(a.end(), b.begin(), b.end());
  return a;
}

class SlowReportIdentity : public ::testing::TestWithParam<Scenario> {};

TEST_P(SlowReportIdentity, RunsThatDifferInOneFieldAreBothShownUnderDifferentNames) {
  const Variations variations(GetParam());
  const Runs usual = variations.with("");
  for (const IdentityField& field : identity_fields()) {
    if (field.name == GetParam().companion) continue;
    const Runs changed = variations.with(field.name);
    for (const Exhibit& exhibit : exhibits()) {
      if (is_indifferent(exhibit.name, field.name)) continue;
      SCOPED_TRACE(fmt::format("{}, field {}", exhibit.name, field.name));
      const Shown one = exhibit.look(variations.data(), usual);
      const Shown other = exhibit.look(variations.data(), changed);
      const Shown both = exhibit.look(variations.data(), joined(usual, changed));
      for (const RunId run : one.runs) EXPECT_TRUE(both.runs.contains(run)) << "the usual run";
      for (const RunId run : other.runs) EXPECT_TRUE(both.runs.contains(run)) << "the changed run";
      EXPECT_GE(both.marks, one.marks + other.marks);
      expect_different_names(both);
    }
  }
}

TEST_P(SlowReportIdentity, AllOfThemTogetherHaveDifferentNames) {
  const Variations variations(GetParam());
  Runs runs = variations.with("");
  for (const IdentityField& field : identity_fields()) {
    if (field.name != GetParam().companion) runs = joined(runs, variations.with(field.name));
  }
  for (const Exhibit& exhibit : exhibits()) {
    SCOPED_TRACE(exhibit.name);
    expect_different_names(exhibit.look(variations.data(), runs));
  }
}

TEST_P(SlowReportIdentity, ExecutorsThatAreComparedHaveDifferentNames) {
  const Variations variations(GetParam());
  for (const IdentityField& field : identity_fields()) {
    const Runs both = joined(variations.with(""), variations.with(field.name));
    const auto speedups =
        std::find_if(table_kinds().begin(), table_kinds().end(),
                     [](const TableKind& kind) { return kind.name == "speedups"; });
    for (const Table& table : speedups->make({variations.data(), "x", "", both})) {
      const std::size_t a = testing::column_of(table, "A"), b = testing::column_of(table, "B");
      for (const std::vector<Cell>& row : table.rows) EXPECT_NE(row[a].text, row[b].text);
    }
  }
}

std::vector<Scenario> scenarios() {
  return {{"bench", testing::write_report_bench},
          {"batches", testing::write_report_bench, "batch"},
          {"backends", testing::write_report_bench, "backend"},
          {"ranks", testing::write_report_bench, "ranks"},
          {"peers", testing::write_report_bench, {}, "torch-cpu"},
          {"trainings", write_training, "backend"},
          {"rates", write_training, "learning_rate"},
          {"profiles", testing::write_report_profile, "backend"},
          {"inference", testing::write_report_inference, "batch"}};
}
INSTANTIATE_TEST_SUITE_P(Commands, SlowReportIdentity, ::testing::ValuesIn(scenarios()),
                         [](const auto& scenario) { return std::string(scenario.param.name); });

TEST(ReportIdentityScenarios, EveryExhibitIsTried) {
  std::set<std::string> tried = {"table ceilings"};  // of machines, not of runs
  for (const Scenario& scenario : scenarios()) {
    const Variations variations(scenario);
    for (const Exhibit& exhibit : exhibits()) {
      if (!exhibit.look(variations.data(), variations.with("")).runs.empty()) {
        tried.insert(exhibit.name);
      }
    }
  }
  for (const Exhibit& exhibit : exhibits())
    EXPECT_TRUE(tried.contains(exhibit.name)) << exhibit.name;
}

}  // namespace
}  // namespace ridgeline::report
