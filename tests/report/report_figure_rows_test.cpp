// Figures that are drawn from a run's rows: profiles, memory, sensors, samples, networks.

#include <gtest/gtest.h>

#include <algorithm>
#include <cmath>
#include <map>
#include <optional>
#include <set>

#include "report/exhibits.h"
#include "report/exhibits/figure_values.h"
#include "support/data_files.h"
#include "support/report_store.h"

namespace ridgeline::report {
namespace {

using testing::ReportRun;

class ReportFigureRows : public testing::FileTest {
 protected:
  void SetUp() override {
    FileTest::SetUp();
    store_.emplace(folder_ / "report.db");
  }
  void TearDown() override {
    store_.reset();
    FileTest::TearDown();
  }

  static std::vector<Figure> make(const Data& data, const std::string& name,
                                  const std::string& part = {}) {
    std::vector<const RunView*> runs;
    for (const RunView& run : data.runs()) {
      if (part.empty() || run.part == part) runs.push_back(&run);
    }
    for (const FigureKindEntry& kind : figure_kinds()) {
      if (kind.name == name) return kind.make({data, "x", "", std::move(runs)});
    }
    ADD_FAILURE() << "no figure is named " << name;
    return {};
  }

  // The stack of each category or position.
  static std::map<double, double> sums(const Figure& figure) {
    std::map<double, double> totals;
    for (const Series& series : figure.series) {
      for (const Point& point : series.points) totals[point.x] += point.y;
    }
    return totals;
  }

  std::optional<Store> store_;
};

TEST_F(ReportFigureRows, PartsOfAnIterationAddUpToIt) {
  testing::write_report_store(*store_);
  const Data data(*store_);
  const Figure figure = make(data, "breakdown", "profile").at(0);
  EXPECT_TRUE(figure.stacked);
  EXPECT_EQ(figure.y.unit, "ms");
  ASSERT_EQ(figure.x.categories.size(), 2U);
  EXPECT_NE(figure.x.categories[0].find("native"), std::string::npos);
  const std::map<double, double> totals = sums(figure);
  EXPECT_NEAR(totals.at(0.0), 1.0, 1e-12);
  EXPECT_NEAR(totals.at(1.0), 0.2, 1e-12);
  // No run waited for data.
  EXPECT_EQ(figure.series.size(), 5U);
  EXPECT_DOUBLE_EQ(figure.series[0].points[0].y, 0.9);
}

TEST_F(ReportFigureRows, IterationsOfVeryDifferentLengthAreComparedByShares) {
  testing::write_report_machines(*store_);
  for (const double seconds : {0.001, 1.0}) {
    ReportRun run;
    run.model = seconds < 0.1 ? "mlp" : "mnist_cnn";
    run.seconds = seconds;
    testing::write_report_profile(*store_, run);
  }
  const Data data(*store_);
  const Figure figure = make(data, "breakdown").at(0);
  EXPECT_EQ(figure.y.unit, "%");
  for (const auto& [bar, total] : sums(figure)) EXPECT_NEAR(total, 100.0, 1e-9) << bar;
}

TEST_F(ReportFigureRows, KindsOfOperationsHoldAllStepsOfAPlan) {
  testing::write_report_store(*store_);
  const Data data(*store_);
  const Figure figure = make(data, "operations", "profile").at(0);
  EXPECT_EQ(figure.series.size(), 2U);
  EXPECT_EQ(figure.y.unit, "µs");
  for (const Series& series : figure.series) {
    double sum = 0.0;
    for (const Point& point : series.points) sum += point.y;
    EXPECT_NEAR(sum, series.name.starts_with("native") ? 950.0 : 190.0, 1e-9);
  }
  const auto dense =
      std::find(figure.x.categories.begin(), figure.x.categories.end(), "dense layer, backward");
  ASSERT_EQ(dense, figure.x.categories.begin());
  EXPECT_NEAR(figure.series[0].points[0].y, 450.0, 1e-9);
}

TEST_F(ReportFigureRows, MemoryIsPlannedBesideMeasured) {
  testing::write_report_store(*store_);
  const Data data(*store_);
  const std::vector<Figure> figures = make(data, "memory", "profile");
  ASSERT_EQ(figures.size(), 2U);
  const Figure& figure = figures[0];
  ASSERT_EQ(figure.x.categories.size(), 4U);
  EXPECT_EQ(figure.x.categories[0], "planned: native, on desk");
  EXPECT_EQ(figure.x.categories[1], "measured: native, on desk");
  EXPECT_EQ(figure.y.unit, "MiB");
  const double planned = 1'300'264.0 + 56'000.0 * 64.0;
  const double mib = 1024.0 * 1024.0;
  const std::map<double, double> totals = sums(figure);
  EXPECT_NEAR(totals.at(0.0) * mib, planned, 1e-3);
  EXPECT_NEAR(totals.at(1.0) * mib, planned + 21e6, 1e-3);
  EXPECT_NEAR(totals.at(3.0) * mib, planned + 501e6, 1e-3);
  EXPECT_LE(figure.series.size(), 12U);
  // The host beside the graphics processor.
  EXPECT_NEAR(sums(figures[1]).at(0.0) * mib, 150e6, 1e-3);
}

TEST_F(ReportFigureRows, MemoryOfAStepPeaksWhereTheCaptionSays) {
  testing::write_report_store(*store_);
  const Data data(*store_);
  const Figure figure = make(data, "memory-timeline", "profile").at(0);
  EXPECT_EQ(figure.kind, FigureKind::area);
  const std::map<double, double> totals = sums(figure);
  ASSERT_EQ(totals.size(), 8U);
  const auto peak = std::max_element(totals.begin(), totals.end(),
                                     [](auto& a, auto& b) { return a.second < b.second; });
  EXPECT_EQ(peak->first, 4.0);
  EXPECT_NEAR(peak->second * 1024.0 * 1024.0, 3'600'000.0, 1e-3);
  EXPECT_NE(figure.caption.find("step 4 (loss softmax_cross_entropy+metrics, forward): 3.4 MiB"),
            std::string::npos);
  EXPECT_EQ(figure.series.back().points[4].label, "peak");
}

TEST_F(ReportFigureRows, ManyStepsAreThinnedAndThePeakStays) {
  testing::write_report_machines(*store_);
  ReportRun run;
  const RunId id = testing::write_report_profile(*store_, run);
  std::vector<LiveEntry> live;
  for (std::int64_t step = 8; step < 3000; ++step) {
    live.push_back({step, "activation", step == 1777 ? 900'000'000 : 1000 * (step % 7)});
  }
  store_->add(id, std::span<const LiveEntry>(live));
  const Data data(*store_);
  const Figure figure = make(data, "memory-timeline").at(0);
  EXPECT_LE(figure.series[0].points.size(), 400U);
  EXPECT_NE(figure.caption.find("step 1777"), std::string::npos);
  const std::map<double, double> totals = sums(figure);
  EXPECT_NEAR(totals.at(1777.0) * 1024.0 * 1024.0, 900e6, 1.0);
}

TEST_F(ReportFigureRows, SpansOfATrackFollowEachOtherWithinTheIteration) {
  testing::write_report_store(*store_);
  const Data data(*store_);
  const std::vector<Figure> figures = make(data, "step-timeline", "profile");
  ASSERT_EQ(figures.size(), 2U);
  for (const Figure& figure : figures) {
    EXPECT_EQ(figure.spans.at(0).track, "iteration");
    const double end = figure.spans[0].end;
    std::map<std::string, double> last;
    for (const Span& span : figure.spans) {
      EXPECT_GE(span.begin, last[span.track] - 1e-9) << span.name;
      EXPECT_LE(span.end, end + 1e-9) << span.name;
      last[span.track] = span.end;
    }
  }
  EXPECT_EQ(figures[0].spans.size(), 9U);
  // Kernels of the device bear the phase of their step.
  const auto kernel = std::find_if(figures[1].spans.begin(), figures[1].spans.end(),
                                   [](const Span& span) { return span.track == "cuda:0"; });
  ASSERT_NE(kernel, figures[1].spans.end());
  EXPECT_EQ(kernel->group, "input");
  EXPECT_EQ(figures[1].spans.back().group, "optimizer");
}

TEST_F(ReportFigureRows, KernelsThatOverlapHaveLanesOfTheirOwn) {
  testing::write_report_machines(*store_);
  ReportRun run;
  const RunId id = testing::write_report_profile(*store_, run);
  const std::vector<TimelineEntry> timeline = {{"kernel", "a", "stream 7", 0.001, 0.003, -1},
                                               {"kernel", "b", "stream 7", 0.002, 0.004, -1},
                                               {"kernel", "c", "stream 7", 0.003, 0.005, -1}};
  store_->add(id, std::span<const TimelineEntry>(timeline));
  const Data data(*store_);
  std::map<std::string, std::string> tracks;
  const Figure figure = make(data, "step-timeline").at(0);
  for (const Span& span : figure.spans) tracks[span.name] = span.track;
  EXPECT_EQ(tracks["a"], "stream 7");
  EXPECT_EQ(tracks["b"], "stream 7 (2)");
  EXPECT_EQ(tracks["c"], "stream 7");
}

TEST_F(ReportFigureRows, OnlySensorsThatWereReadAreDrawn) {
  testing::write_report_store(*store_);
  const Data data(*store_);
  std::map<std::string, Figure> by_title;
  for (Figure& figure : make(data, "telemetry", "profile")) by_title[figure.title] = figure;
  EXPECT_TRUE(by_title.contains("Utilisation") && by_title.contains("Clock") &&
              by_title.contains("Memory in use") && by_title.contains("Memory controller"));
  const Figure& power = by_title.at("Power");
  ASSERT_EQ(power.series.size(), 1U);
  EXPECT_EQ(power.series[0].name, "auto on cuda:0, on server, GPU");
  EXPECT_EQ(power.y.unit, "W");
  ASSERT_EQ(power.series[0].points.size(), 20U);
  EXPECT_EQ(power.series[0].points[0].y, 300.0);
  EXPECT_EQ(power.series[0].points[1].y, 200.0);
  EXPECT_EQ(power.series[0].points[1].x, 0.1);
  // The processor has no thermometer: its run is named in a note.
  const Figure& temperature = by_title.at("Temperature");
  EXPECT_EQ(temperature.series.size(), 1U);
  EXPECT_TRUE(std::any_of(
      temperature.notes.begin(), temperature.notes.end(),
      [](const std::string& note) { return note == "n/a: no such sensor (native, on desk)."; }));
}

TEST_F(ReportFigureRows, EveryIterationIsDrawnAndExtremesAreKept) {
  testing::write_report_machines(*store_);
  ReportRun run;
  run.count = 22 * 300;
  const RunId id = testing::write_report_bench(*store_, run);
  Sample outlier;
  outlier.kind = SampleKind::measured;
  outlier.wall_seconds = 0.040;
  store_->add(id, std::vector<Sample>{outlier});
  const Data data(*store_);
  const Figure figure = make(data, "samples").at(0);
  const Series& series = figure.series.at(0);
  EXPECT_LE(series.points.size(), 1500U);
  EXPECT_EQ(series.points.back().x, 6601.0);
  EXPECT_DOUBLE_EQ(series.points.back().y, 40.0);
  const auto lowest = std::min_element(series.points.begin(), series.points.end(),
                                       [](const Point& a, const Point& b) { return a.y < b.y; });
  EXPECT_DOUBLE_EQ(lowest->y, 9.95);
  EXPECT_EQ(figure.notes.at(0),
            "Of 6,601 iterations 1,500 are drawn: of each stretch the shortest "
            "and the longest.");
}

TEST_F(ReportFigureRows, ManySamplesGiveSmallFigures) {
  testing::write_report_machines(*store_);
  for (int i = 0; i < 8; ++i) {
    ReportRun run;
    run.modes = {"mode " + std::to_string(i)};
    run.count = 22 * 228;
    testing::write_report_bench(*store_, run);
  }
  const Data data(*store_);
  std::size_t points = 0;
  for (const FigureKindEntry& kind : figure_kinds()) {
    for (const Figure& figure : make(data, std::string(kind.name))) {
      for (const Series& series : figure.series) points += series.points.size();
    }
  }
  // Of 40,128 samples; the rest belongs to sensors and others.
  EXPECT_LT(points, 6000U);
}

TEST(ReportThinning, KeepsTheLowestAndHighestOfEachStretch) {
  std::vector<Point> points;
  for (int i = 0; i < 10'000; ++i) {
    points.push_back({.x = static_cast<double>(i), .y = i % 100 == 7 ? 50.0 : std::sin(i)});
  }
  points[4321].y = -9.0;
  points[8765].y = 99.0;
  const std::vector<Point> kept = thinned(points, 500);
  EXPECT_LE(kept.size(), 500U);
  EXPECT_TRUE(std::is_sorted(kept.begin(), kept.end(),
                             [](const Point& a, const Point& b) { return a.x < b.x; }));
  const auto has = [&](double x) {
    return std::any_of(kept.begin(), kept.end(), [&](const Point& p) { return p.x == x; });
  };
  EXPECT_TRUE(has(4321.0) && has(8765.0));
  EXPECT_EQ(std::count_if(kept.begin(), kept.end(), [](const Point& p) { return p.y == 50.0; }),
            100);
  EXPECT_EQ(thinned(points, 10'000).size(), 10'000U);
}

TEST(ReportThinning, ShortSpansAreJoinedAndLongOnesStay) {
  std::vector<Span> spans;
  for (int i = 0; i < 10'000; ++i) {
    const double begin = i;
    spans.push_back({"host", "s" + std::to_string(i), i % 3 == 0 ? "forward" : "backward", begin,
                     begin + (i % 1000 == 0 ? 0.9 : 0.1)});
  }
  const std::size_t joined = merge_shortest(spans, 400);
  // Ten long ones, and what lies between them.
  ASSERT_EQ(spans.size(), 20U);
  EXPECT_EQ(joined + spans.size(), 10'000U);
  EXPECT_EQ(spans.front().begin, 0.0);
  EXPECT_DOUBLE_EQ(spans.back().end, 9999.1);
  EXPECT_EQ(spans[1].name, "999 short ones, s1 first");
  EXPECT_EQ(spans[1].group, "backward");
  EXPECT_EQ(spans[2].name, "s1000");
  std::vector<Span> few(spans.begin(), spans.begin() + 3);
  EXPECT_EQ(merge_shortest(few, 400), 0U);
  EXPECT_EQ(few.size(), 3U);
}

TEST_F(ReportFigureRows, NetworksAreConnectedAndHaveAllTheirLayers) {
  testing::write_report_machines(*store_);
  // As torchvision's modules count, with additions, concatenations and flatten, without dropout.
  const std::map<std::string, int> layers = {
      {"mlp", 4},        {"mnist_cnn", 10},     {"resnet18", 69},    {"squeezenet1_1", 65},
      {"resnet50", 175}, {"mobilenet_v2", 152}, {"densenet121", 427}};
  for (const auto& [model, count] : layers) {
    ReportRun run;
    run.model = model;
    if (count > 10) run.image = {3, 64, 64};
    testing::write_report_bench(*store_, run);
  }
  const Data data(*store_);
  const std::vector<Figure> figures = make(data, "network");
  ASSERT_EQ(figures.size(), layers.size());
  for (const Figure& figure : figures) {
    SCOPED_TRACE(figure.title);
    const std::string model =
        figure.title.substr(13, figure.title.find(',') - 13);  // "The network: mlp, …"
    const int count = layers.at(model);
    EXPECT_NE(figure.caption.find(std::to_string(count) + " layers"), std::string::npos);
    const bool all = count < 68;
    if (all) {
      EXPECT_EQ(figure.nodes.size(), static_cast<std::size_t>(count) + 1);
    } else {
      EXPECT_LE(figure.nodes.size(), 40U);
    }
    // All boxes are reached from the image, along edges that lead to later boxes.
    std::map<std::string, std::size_t> place;
    double share = 0.0;
    for (const Node& node : figure.nodes) {
      EXPECT_TRUE(place.emplace(node.id, place.size()).second) << node.id;
      share += node.weight;
    }
    EXPECT_NEAR(share, 1.0, 1e-9);
    std::set<std::string> reached = {"input"}, used;
    for (const Edge& edge : figure.edges) {
      ASSERT_TRUE(place.contains(edge.from) && place.contains(edge.to));
      EXPECT_LT(place[edge.from], place[edge.to]);
      EXPECT_TRUE(reached.contains(edge.from));
      reached.insert(edge.to);
      used.insert(edge.from);
    }
    EXPECT_EQ(reached.size(), figure.nodes.size());
    EXPECT_EQ(used.size(), figure.nodes.size() - 1);
  }
}

TEST_F(ReportFigureRows, ConcatenationsAndAdditionsHaveTwoInputs) {
  testing::write_report_machines(*store_);
  ReportRun run;
  run.model = "squeezenet1_1";
  run.image = {3, 64, 64};
  testing::write_report_bench(*store_, run);
  const Data data(*store_);
  const Figure figure = make(data, "network").at(0);
  std::map<std::string, std::set<std::string>> inputs;
  for (const Edge& edge : figure.edges) inputs[edge.to].insert(edge.from);
  EXPECT_EQ(inputs["features.3.cat"], (std::set<std::string>{"features.3.expand1x1_activation",
                                                             "features.3.expand3x3_activation"}));
  EXPECT_EQ(inputs["features.3.expand1x1"],
            (std::set<std::string>{"features.3.squeeze_activation"}));
  EXPECT_EQ(inputs["features.0"], (std::set<std::string>{"input"}));
}

TEST_F(ReportFigureRows, NetworksWithoutAReadableDescriptionHaveNoDiagram) {
  testing::write_report_machines(*store_);
  ReportRun run;
  run.model = "<b>their own</b>";
  testing::write_report_bench(*store_, run);
  const std::string node =
      R"({"layer":"fc","op":"linear","title":"linear","output":[10],"flops":1,"statistics":false,)";
  for (const std::string& description :
       {std::string("no JSON"), std::string("{}"), std::string(R"({"input":"large","nodes":[]})"),
        R"({"input":[1,2,2],"nodes":[)" + node + R"("inputs":[0]}]})",  // reads itself
        R"({"input":[1,2,2],"nodes":[)" + node + R"("inputs":[-2]}]})",
        R"({"input":[1,2,2],"nodes":[)" + node + R"("inputs":"image"}]})"}) {
    store_->add(NetworkRecord{.key = description, .description = description});
    run.change = [&](RunRecord& record) {
      record.network = description;
      record.work.classes = static_cast<std::int64_t>(description.size());  // none repeats another
    };
    testing::write_report_bench(*store_, run);
  }
  const Data data(*store_);
  EXPECT_TRUE(make(data, "network").empty());
}

TEST_F(ReportFigureRows, ANetworkOfTheirOwnIsDrawnAsItIsDescribed) {
  testing::write_report_machines(*store_);
  store_->add(NetworkRecord{.key = "own", .description = R"({"input":[3,8,8],"nodes":[
      {"layer":"a","op":"conv2d","title":"conv2d 3x3","inputs":[-1],"output":[4,8,8],"flops":300,
       "statistics":false},
      {"layer":"b","op":"add","title":"add","inputs":[0,-1],"output":[4,8,8],"flops":100,
       "statistics":false}]})"});
  ReportRun run;
  run.model = "own";
  run.change = [](RunRecord& record) { record.network = "own"; };
  testing::write_report_bench(*store_, run);
  const Data data(*store_);
  const Figure figure = make(data, "network").at(0);
  ASSERT_EQ(figure.nodes.size(), 3U);
  EXPECT_EQ(figure.nodes[1].title, "a: conv2d 3x3");
  EXPECT_EQ(figure.nodes[1].detail, "4x8x8 · 300 FLOP · 75.0%");
  EXPECT_EQ(figure.edges.size(), 3U);
}

}  // namespace
}  // namespace ridgeline::report
