// The named figures of reports: what is drawn are the numbers of the data.

#include <gtest/gtest.h>

#include <algorithm>
#include <cmath>
#include <optional>
#include <set>

#include "report/exhibits.h"
#include "support/data_files.h"
#include "support/report_store.h"

namespace ridgeline::report {
namespace {

using testing::ReportRun;
using testing::ReportTraining;

class ReportFigures : public testing::FileTest {
 protected:
  void SetUp() override {
    FileTest::SetUp();
    store_.emplace(folder_ / "report.db");
  }
  void TearDown() override {
    store_.reset();
    FileTest::TearDown();
  }

  // Runs of some parts of the study; all without any.
  static std::vector<const RunView*> runs_of(const Data& data,
                                             const std::set<std::string>& parts = {}) {
    std::vector<const RunView*> runs;
    for (const RunView& run : data.runs()) {
      if (parts.empty() || parts.contains(run.part)) runs.push_back(&run);
    }
    return runs;
  }

  static std::vector<Figure> make(const Data& data, const std::string& name,
                                  std::vector<const RunView*> runs) {
    for (const FigureKindEntry& kind : figure_kinds()) {
      if (kind.name == name) return kind.make({data, "x", "", std::move(runs)});
    }
    ADD_FAILURE() << "no figure is named " << name;
    return {};
  }

  static const Series& series_named(const Figure& figure, const std::string& name) {
    static const Series none;
    for (const Series& series : figure.series) {
      if (series.name == name) return series;
    }
    ADD_FAILURE() << figure.id << " has no series named " << name;
    return none;
  }

  static bool notes_tell(const Figure& figure, const std::string& words) {
    return std::any_of(figure.notes.begin(), figure.notes.end(), [&](const std::string& note) {
      return note.find(words) != std::string::npos;
    });
  }

  static std::vector<double> ys(const Series& series) {
    std::vector<double> values;
    for (const Point& point : series.points) values.push_back(point.y);
    return values;
  }

  std::optional<Store> store_;
};

TEST_F(ReportFigures, EveryNameOfTheVocabularyHasItsMaker) {
  std::vector<std::string_view> made, named;
  for (const FigureKindEntry& kind : figure_kinds()) made.push_back(kind.name);
  for (const study::Word& word : study::figure_names()) named.push_back(word.name);
  EXPECT_EQ(made, named);
}

TEST_F(ReportFigures, NothingToShowGivesNoFigure) {
  const Data data(*store_);
  for (const FigureKindEntry& kind : figure_kinds()) {
    EXPECT_TRUE(kind.make({data, "x", "", {}}).empty()) << kind.name;
  }
}

TEST_F(ReportFigures, AllAreWholeAndNotTooFull) {
  testing::write_report_store(*store_);
  const Data data(*store_);
  std::set<std::string> ids;
  for (const FigureKindEntry& kind : figure_kinds()) {
    const std::string id = "trial-" + std::string(kind.name);
    const std::vector<Figure> figures = kind.make({data, id, "The study's title", runs_of(data)});
    EXPECT_FALSE(figures.empty()) << kind.name;
    for (const Figure& figure : figures) {
      SCOPED_TRACE(figure.id);
      EXPECT_TRUE(ids.insert(figure.id).second);
      EXPECT_TRUE(figure.id.starts_with(id));
      EXPECT_EQ(figure.id.find_first_not_of("abcdefghijklmnopqrstuvwxyz0123456789-"),
                std::string::npos);
      EXPECT_TRUE(figure.title.starts_with("The study's title"));
      EXPECT_FALSE(figure.caption.empty());
      EXPECT_FALSE(figure.empty());
      EXPECT_FALSE(figure.runs.empty());
      std::size_t drawn = 0;
      for (const Series& series : figure.series) {
        drawn += series.style != SeriesStyle::roof;
        for (const Point& point : series.points) {
          EXPECT_TRUE(std::isfinite(point.x) && std::isfinite(point.y)) << series.name;
          EXPECT_TRUE(point.y > 0.0 || !figure.y.logarithmic) << series.name;
          if (figure.kind != FigureKind::bars) continue;
          EXPECT_LT(point.x, static_cast<double>(figure.x.categories.size()));
        }
      }
      EXPECT_LE(drawn, 12U);
    }
  }
}

TEST_F(ReportFigures, BarsAreTheRatesOfTheData) {
  testing::write_report_store(*store_);
  const Data data(*store_);
  const std::vector<Figure> figures = make(data, "throughput", runs_of(data, {"speed"}));
  ASSERT_EQ(figures.size(), 1U);
  const Figure& figure = figures[0];
  EXPECT_EQ(figure.kind, FigureKind::bars);
  EXPECT_EQ(figure.x.categories, (std::vector<std::string>{"mlp", "mnist_cnn", "resnet18"}));
  EXPECT_TRUE(figure.y.logarithmic);
  ASSERT_EQ(figure.series.size(), 4U);
  EXPECT_EQ(ys(series_named(figure, "native, on desk")),
            (std::vector<double>{64e3, 6400.0, 128.0}));
  for (const RunView* run : runs_of(data, {"speed"})) {
    const Series& series =
        series_named(figure, run->executor() + ", on " + data.machine_of(*run).name);
    const auto category =
        std::find(figure.x.categories.begin(), figure.x.categories.end(), run->run.work.model) -
        figure.x.categories.begin();
    const Point& point = series.points.at(static_cast<std::size_t>(category));
    EXPECT_EQ(point.x, static_cast<double>(category));
    EXPECT_EQ(point.y, run->rate->value);
    EXPECT_EQ(point.low, run->rate->low);
    EXPECT_EQ(point.high, run->rate->high);
  }
  EXPECT_EQ(figure.runs.size(), 12U);
}

TEST_F(ReportFigures, InferenceStandsApartFromTraining) {
  testing::write_report_store(*store_);
  const Data data(*store_);
  const std::vector<Figure> figures =
      make(data, "throughput", runs_of(data, {"speed", "inference"}));
  ASSERT_EQ(figures.size(), 2U);
  EXPECT_EQ(figures[0].title, "Throughput: training");
  EXPECT_EQ(figures[1].title, "Throughput: inference");
  EXPECT_EQ(figures[1].x.categories,
            (std::vector<std::string>{"mnist_cnn, batch 1", "mnist_cnn, batch 64"}));
}

TEST_F(ReportFigures, UnlikeWorkHasNamesOfItsOwn) {
  testing::write_report_machines(*store_);
  for (const std::int64_t batch : {32, 64}) {
    for (const ImageShape image : {ImageShape{1, 28, 28}, ImageShape{1, 32, 32}}) {
      ReportRun run;
      run.batch = batch;
      run.image = image;
      testing::write_report_bench(*store_, run);
    }
  }
  const Data data(*store_);
  const std::vector<Figure> figures = make(data, "samples", runs_of(data));
  ASSERT_EQ(figures.size(), 1U);
  std::set<std::string> names;
  for (const Series& series : figures[0].series) names.insert(series.name);
  EXPECT_EQ(names,
            (std::set<std::string>{
                "native, inputs of 1x28x28, batch 32", "native, inputs of 1x32x32, batch 32",
                "native, inputs of 1x28x28, batch 64", "native, inputs of 1x32x32, batch 64"}));
}

TEST_F(ReportFigures, OfRepeatedRunsTheNewestIsShown) {
  testing::write_report_machines(*store_);
  ReportRun run;
  testing::write_report_bench(*store_, run);
  run.seconds = 0.020;
  const RunId newest = testing::write_report_bench(*store_, run);
  const Data data(*store_);
  const Figure figure = make(data, "throughput", runs_of(data)).at(0);
  EXPECT_EQ(figure.runs, std::vector<RunId>{newest});
  EXPECT_EQ(ys(figure.series.at(0)), std::vector<double>{3200.0});
}

TEST_F(ReportFigures, MoreThanTwelveSeriesBecomeSeveralFigures) {
  testing::write_report_machines(*store_);
  for (int i = 0; i < 15; ++i) {
    ReportRun run;
    run.modes = {"mode " + std::to_string(i)};
    testing::write_report_bench(*store_, run);
  }
  const Data data(*store_);
  std::size_t series = 0;
  const std::vector<Figure> figures = make(data, "samples", runs_of(data));
  EXPECT_GT(figures.size(), 1U);
  for (const Figure& figure : figures) {
    EXPECT_LE(figure.series.size(), 12U);
    series += figure.series.size();
  }
  EXPECT_EQ(series, 15U);
}

TEST_F(ReportFigures, BatchSweepsRunFromTheSmallestBatchOn) {
  testing::write_report_store(*store_);
  const Data data(*store_);
  const std::vector<Figure> figures = make(data, "batch-sweep", runs_of(data, {"sweep"}));
  ASSERT_EQ(figures.size(), 1U);
  EXPECT_TRUE(figures[0].x.logarithmic);
  const Series& desk = series_named(figures[0], "native, on desk");
  ASSERT_EQ(desk.points.size(), 4U);
  for (std::size_t i = 0; i < 4; ++i) {
    const double batch = 32.0 * std::pow(2.0, static_cast<double>(i));
    EXPECT_EQ(desk.points[i].x, batch);
    EXPECT_NEAR(desk.points[i].y, batch / (0.002 + 0.000125 * batch), 1e-6);
  }
  // One batch alone is no sweep.
  EXPECT_TRUE(make(data, "batch-sweep", runs_of(data, {"speed"})).empty());
}

TEST_F(ReportFigures, PointsUnderTheRoofsAreThoseOfTheData) {
  testing::write_report_store(*store_);
  const Data data(*store_);
  const std::vector<Figure> figures = make(data, "roofline", runs_of(data, {"speed"}));
  ASSERT_EQ(figures.size(), 1U);
  const Figure& figure = figures[0];
  EXPECT_TRUE(figure.x.logarithmic && figure.y.logarithmic);
  EXPECT_EQ(figure.y.unit, "GFLOP/s");
  for (const RunView* run : runs_of(data, {"speed"})) {
    const std::optional<RooflinePoint> point = data.point(*run);
    if (!point) continue;
    const Series& series =
        series_named(figure, run->executor() + ", on " + data.machine_of(*run).name);
    EXPECT_EQ(series.group, data.machine_of(*run).name + ", " + run->run.executor.device);
    const auto found =
        std::find_if(series.points.begin(), series.points.end(),
                     [&](const Point& each) { return each.label == run->run.work.model; });
    ASSERT_NE(found, series.points.end());
    EXPECT_DOUBLE_EQ(found->x, *point->intensity());
    EXPECT_DOUBLE_EQ(found->y, point->flops_per_second() * 1e-9);
    EXPECT_LE(*found->low, found->y);
    EXPECT_GE(*found->high, found->y);
  }
  // Peers have no steps of their own.
  EXPECT_TRUE(notes_tell(figure, "n/a: no times of its own steps"));
  EXPECT_TRUE(notes_tell(figure, "torch-cpu; torch-cuda"));
}

TEST_F(ReportFigures, RoofsMeetAtTheRidgeAndStayInTheFrame) {
  testing::write_report_store(*store_);
  const Data data(*store_);
  const Figure figure = make(data, "roofline", runs_of(data, {"speed"})).at(0);
  // 100 GFLOP/s over 20 GB/s, 10 TFLOP/s over 1 TB/s.
  const Point cpu = series_named(figure, "memory 20 GB/s").points.back();
  EXPECT_DOUBLE_EQ(cpu.x, 5.0);
  EXPECT_DOUBLE_EQ(cpu.y, 100.0);
  const Point gpu = series_named(figure, "memory 1 TB/s").points.back();
  EXPECT_DOUBLE_EQ(gpu.x, 10.0);
  EXPECT_DOUBLE_EQ(gpu.y, 10e3);
  // The flat roof begins where the fastest memory meets it.
  const Series& flat = series_named(figure, "fp32 10 TFLOP/s");
  EXPECT_DOUBLE_EQ(flat.points.front().x, std::max(*figure.x.low, 10e12 / 4e12));
  EXPECT_DOUBLE_EQ(flat.points.back().x, *figure.x.high);
  int roofs = 0;
  for (const Series& series : figure.series) {
    if (series.style != SeriesStyle::roof) continue;
    ++roofs;
    for (const Point& point : series.points) {
      EXPECT_GE(point.x, *figure.x.low * (1.0 - 1e-12));
      EXPECT_LE(point.x, *figure.x.high * (1.0 + 1e-12));
      EXPECT_GE(point.y, *figure.y.low * (1.0 - 1e-12));
      EXPECT_LE(point.y, *figure.y.high * (1.0 + 1e-12));
    }
  }
  // No step uses the tensor cores, and the processor's L2 meets its peak left of the frame.
  EXPECT_EQ(roofs, 5);
}

TEST_F(ReportFigures, LayersOfTheLargestBatchAreNamedByTheirTime) {
  testing::write_report_store(*store_);
  const Data data(*store_);
  const std::vector<Figure> figures = make(data, "roofline-layers", runs_of(data, {"sweep"}));
  ASSERT_EQ(figures.size(), 2U);
  const Figure& figure = figures[0];
  EXPECT_NE(figure.caption.find("batch 256"), std::string::npos);
  // fc1 takes 55 of 95 parts of the steps' time, fc2 25.
  std::vector<std::string> labels;
  for (const Series& series : figure.series) {
    if (series.style == SeriesStyle::roof) continue;
    for (const Point& point : series.points) labels.push_back(point.label);
  }
  EXPECT_EQ(labels, (std::vector<std::string>{"fc1 58%", "fc2 26%", "act1 5%", "loss 5%"}));
  EXPECT_TRUE(notes_tell(figure, "1 of 5 layers compute no FLOPs (5.3% of the time)"));
}

TEST_F(ReportFigures, BatchesAreTrajectories) {
  testing::write_report_store(*store_);
  const Data data(*store_);
  const Figure figure = make(data, "roofline-batches", runs_of(data, {"sweep"})).at(0);
  const Series& series = series_named(figure, "native, on desk");
  EXPECT_EQ(series.style, SeriesStyle::line_points);
  std::vector<std::string> labels;
  for (const Point& point : series.points) labels.push_back(point.label);
  EXPECT_EQ(labels, (std::vector<std::string>{"32", "64", "128", "256"}));
  EXPECT_TRUE(make(data, "roofline-batches", runs_of(data, {"speed"})).empty());
}

TEST_F(ReportFigures, EpochsAreDrawnOneByOne) {
  testing::write_report_store(*store_);
  const Data data(*store_);
  const std::vector<const RunView*> runs = runs_of(data, {"training"});
  const std::string name = "native, learning rate 0.01, on desk";
  const auto drawn = [&](const char* kind) {
    return ys(series_named(make(data, kind, runs).at(0), name));
  };
  EXPECT_EQ(drawn("epoch-times"), (std::vector<double>{3.0, 2.0, 2.5}));
  EXPECT_EQ(drawn("throughput-epochs"), (std::vector<double>{2000.0, 3000.0, 2400.0}));
  EXPECT_EQ(drawn("accuracy-epochs"), (std::vector<double>{80.0, 85.0, 84.0}));
  EXPECT_EQ(drawn("loss-epochs"), (std::vector<double>{1.0, 1.0 / 2.0, 1.0 / 3.0}));
  const Figure over_time = make(data, "accuracy-time", runs).at(0);
  std::vector<double> times;
  for (const Point& point : series_named(over_time, name).points) times.push_back(point.x);
  // With the first step, as the tables count it.
  EXPECT_EQ(times, (std::vector<double>{3.04, 5.04, 7.54}));
  EXPECT_EQ(over_time.x.unit, "s");
  EXPECT_TRUE(notes_tell(over_time, "fashion-mnist in place of mnist"));
  EXPECT_TRUE(notes_tell(over_time, "accuracy at chance"));
}

TEST_F(ReportFigures, AResumedTrainingBeginsAtTheTimeOfItsFormerParts) {
  testing::write_report_machines(*store_);
  testing::ReportTraining training;
  training.run.part = "training";
  training.first_epoch = 4;
  training.former = {{"former_seconds", 20.0}};
  testing::write_report_training(*store_, training);
  const Data data(*store_);
  const Figure over_time = make(data, "accuracy-time", runs_of(data, {"training"})).at(0);
  ASSERT_EQ(over_time.series.at(0).points.size(), 3U);
  EXPECT_NEAR(over_time.series[0].points[0].x, 23.04, 1e-9);
  const Figure epochs = make(data, "accuracy-epochs", runs_of(data, {"training"})).at(0);
  EXPECT_EQ(epochs.series.at(0).points.at(0).x, 5.0);
}

TEST_F(ReportFigures, SweepsHoldAllElseEqual) {
  testing::write_report_store(*store_);
  const Data data(*store_);
  const std::vector<Figure> figures = make(data, "sweep", runs_of(data, {"training"}));
  ASSERT_EQ(figures.size(), 2U);
  EXPECT_EQ(figures[0].title, "Throughput by learning rate");
  EXPECT_EQ(figures[1].title, "Test accuracy by learning rate");
  const Series& gpu = figures[1].series.at(1);
  EXPECT_EQ(gpu.name, "auto on cuda:0, on server");
  ASSERT_EQ(gpu.points.size(), 2U);
  EXPECT_EQ(gpu.points[0].x, 0.01);
  EXPECT_EQ(gpu.points[1].x, 0.1);
  EXPECT_EQ(ys(gpu), (std::vector<double>{84.0, 90.0}));
}

TEST_F(ReportFigures, WordsAlongAnAxisAreCategories) {
  testing::write_report_machines(*store_);
  for (const char* activation : {"relu", "tanh"}) {
    ReportTraining training;
    training.run.settings = {{"activation", activation}};
    testing::write_report_training(*store_, training);
  }
  const Data data(*store_);
  const Figure figure = make(data, "sweep", runs_of(data)).at(0);
  EXPECT_EQ(figure.title, "Throughput by activation");
  EXPECT_EQ(figure.kind, FigureKind::bars);
  EXPECT_EQ(figure.x.categories, (std::vector<std::string>{"relu", "tanh"}));
}

}  // namespace
}  // namespace ridgeline::report
