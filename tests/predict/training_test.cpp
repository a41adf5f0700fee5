// Whole trainings: what they take, and which of them no other beats.

#include "predict/training.h"

#include <gtest/gtest.h>

#include "report/exhibits/figure_frontier.h"

namespace ridgeline::predict {
namespace {

Prediction row_of(const char* device, double seconds, std::optional<double> per_hour,
                  std::optional<double> watts = {}) {
  Prediction row;
  row.model = "resnet50";
  row.image = "3x224x224";
  row.precision = "fp16";
  row.batch = 100;
  row.target.name = device;
  row.seconds = seconds;
  row.range = {seconds / 2.0, seconds * 2.0};
  row.per_hour = per_hour;
  if (watts) row.joules = Range{row.range.low * *watts, row.range.high * *watts};
  return row;
}

std::vector<int> frontier_of(const std::vector<Training>& trainings) {
  std::vector<int> marks;
  for (const Training& one : trainings) marks.push_back(one.frontier ? *one.frontier : -1);
  return marks;
}

TEST(PredictTraining, TimesEpochsAndPrices) {
  const std::vector<Prediction> rows = {row_of("a", 0.1, 3.6, 100.0)};
  // 250 samples are three steps.
  const Training training = trainings_of(rows, 250, 4).front();
  EXPECT_DOUBLE_EQ(middle_of(training.seconds), 3 * 4 * 0.1);
  EXPECT_DOUBLE_EQ(middle_of(*training.cost), 3 * 4 * 0.1 * 3.6 / 3600.0);
  EXPECT_DOUBLE_EQ(middle_of(*training.joules), 3 * 4 * 0.1 * 100.0);
  EXPECT_EQ(training.frontier, true);
}

TEST(PredictTraining, TheFrontierIsWhatNoOtherBeats) {
  std::vector<Prediction> rows = {row_of("fast and dear", 0.1, 10.0),
                                  row_of("slow and cheap", 1.0, 0.5), row_of("beaten", 0.5, 4.0),
                                  row_of("no price", 0.01, std::nullopt),
                                  row_of("too large", 0.01, 0.1)};
  rows.back().fits = false;
  EXPECT_EQ(effort_of(rows), Effort::cost);
  EXPECT_EQ(frontier_of(trainings_of(rows, 1000, 1)), (std::vector{1, 1, 0, -1, -1}));
  // Another network is not compared with.
  rows[2].model = "resnet18";
  EXPECT_EQ(frontier_of(trainings_of(rows, 1000, 1)), (std::vector{1, 1, 1, -1, -1}));
}

TEST(PredictTraining, WithoutPricesEnergyCounts) {
  const std::vector<Prediction> rows = {
      row_of("fast", 0.1, std::nullopt, 700.0), row_of("frugal", 0.4, std::nullopt, 70.0),
      row_of("neither", 0.5, std::nullopt, 300.0), row_of("unknown power", 0.05, std::nullopt)};
  EXPECT_EQ(effort_of(rows), Effort::energy);
  EXPECT_EQ(frontier_of(trainings_of(rows, 1000, 1)), (std::vector{1, 1, 0, -1}));
}

TEST(PredictTraining, TheFigureHasADotForEachAndTheFrontier) {
  const std::vector<Prediction> rows = {row_of("fast", 0.1, 10.0), row_of("cheap", 1.0, 0.5),
                                        row_of("beaten", 0.5, 4.0),
                                        row_of("no price", 0.01, std::nullopt)};
  const report::Figure figure =
      report::frontier_figure(rows, trainings_of(rows, 1'000'000, 30), "USD");
  ASSERT_EQ(figure.series.size(), 4U);  // three devices and the line
  EXPECT_EQ(figure.series.back().points.size(), 2U);
  EXPECT_LT(figure.series.back().points[0].x, figure.series.back().points[1].x);
  EXPECT_GT(figure.series.back().points[0].y, figure.series.back().points[1].y);
  EXPECT_EQ(figure.y.unit, "USD");
  EXPECT_EQ(figure.x.unit, "h");
  EXPECT_NE(figure.reading.find("The fastest is fast, batch 100, fp16 (8.33 h, 83.3 USD)"),
            std::string::npos)
      << figure.reading;
  ASSERT_EQ(figure.notes.size(), 1U);
}

}  // namespace
}  // namespace ridgeline::predict
