// Trainings epoch by epoch: time, throughput, accuracy, loss.

#include <algorithm>
#include <cmath>
#include <functional>

#include "base/error.h"
#include "report/exhibits/figure_kinds.h"
#include "report/exhibits/figure_runs.h"
#include "report/exhibits/figure_values.h"

namespace ridgeline::report {
namespace {

// With more points than that a line needs no marks.
constexpr std::size_t kMarked = 60;

// What is drawn of each epoch; nothing where it was not measured.
using Value = std::function<std::optional<double>(const EpochRecord& epoch)>;

struct Curve {
  std::string title;    // of the figure
  std::string caption;  // what to see
  Axis y;
  Value value;
  bool over_time = false;    // x is the time of training, else the epoch
  bool in_seconds = false;   // y is a time: its unit is chosen
  std::string missing = {};  // why a run may have nothing to draw
};

// How many iterations a record of full-batch training stands for: it counts them in place of
// epochs, and looks only at some of them.
double iterations_of(const RunView& run, const EpochRecord& epoch) {
  return static_cast<double>(epoch.samples) / static_cast<double>(run.run.work.batch);
}

std::vector<Point> points_of(const RunView& run, const Curve& curve) {
  std::vector<Point> points;
  const std::optional<double> before = seconds_before_epochs(run);
  if (curve.over_time && !before) return {};
  double trained = before.value_or(0.0);
  for (const EpochRecord& epoch : run.epochs) {
    trained += epoch.seconds;
    std::optional<double> value = curve.value(epoch);
    if (value && curve.in_seconds && run.run.work.full_batch) *value /= iterations_of(run, epoch);
    if (!value || !std::isfinite(*value)) continue;
    points.push_back(
        {.x = curve.over_time ? trained : static_cast<double>(epoch.epoch), .y = *value});
  }
  return points;
}

double greatest(const Figure& figure, double Point::*field) {
  double most = 0.0;
  for (const Series& series : figure.series) {
    for (const Point& point : series.points) most = std::max(most, point.*field);
  }
  return most;
}

void rescale(Figure& figure, double Point::*field, Axis& axis) {
  const DisplayUnit scale = seconds_unit(greatest(figure, field));
  axis.unit = scale.unit;
  for (Series& series : figure.series) {
    for (Point& point : series.points) point.*field *= scale.factor;
  }
}

std::vector<Figure> curves(const ExhibitInput& input, const Curve& curve) {
  std::vector<Figure> figures;
  const Runs trained = chosen(input.runs, [](const RunView& run) { return !run.epochs.empty(); });
  for (const Share& share : split(input.data, trained, {"model", "full_batch"},
                                  {"machine", "executor", "optimizer", "batch"})) {
    const Names names(input.data, share.runs, {"model", "full_batch"});
    const bool iterations = share.runs[0]->run.work.full_batch;
    Figure figure = new_figure(input, curve.title, share.title);
    figure.x.title = curve.over_time ? "training time" : iterations ? "iteration" : "epoch";
    figure.y = curve.y;
    if (curve.in_seconds && iterations) figure.y.title = "time of an iteration";
    Notes notes(input.data);
    for (const RunView* run : share.runs) {
      const std::string name = names.of(*run);
      std::vector<Point> points = points_of(*run, curve);
      if (points.empty()) {
        notes.add("n/a: " + curve.missing, name);
        continue;
      }
      Series& series = series_named(
          figure, name, points.size() > kMarked ? SeriesStyle::line : SeriesStyle::line_points);
      series.points = thinned(std::move(points), points_each(share.runs.size()));
      notes.add(*run, name);
    }
    if (curve.over_time) rescale(figure, &Point::x, figure.x);
    if (curve.in_seconds) rescale(figure, &Point::y, figure.y);
    if (figure.y.unit != "%") choose_y_axis(figure);
    figure.caption = fmt::format("{}: {}", share.runs[0]->run.work.model, curve.caption);
    if (iterations && !curve.over_time) {
      figure.caption += " Each iteration takes all samples at once: it is an epoch of its own.";
    }
    figure.caption += names.common();
    notes.write(figure);
    put(figures, std::move(figure));
  }
  return figures;
}

std::optional<double> test_accuracy_percent(const EpochRecord& epoch) {
  if (!epoch.test_accuracy) return std::nullopt;
  return *epoch.test_accuracy * 100.0;
}

}  // namespace

std::vector<Figure> epoch_times_figures(const ExhibitInput& input) {
  return curves(input,
                {.title = "Time of each epoch",
                 .caption = "time of training in each epoch, evaluation not counted. A first "
                            "epoch above the others has work that is done once.",
                 .y = {.title = "time of an epoch"},
                 .value = [](const EpochRecord& epoch) -> std::optional<double> {
                   // A test that was made up for after a resume had no training here.
                   return epoch.samples > 0 ? std::optional(epoch.seconds) : std::nullopt;
                 },
                 .in_seconds = true,
                 .missing = "nothing was trained in this part"});
}

std::vector<Figure> throughput_epochs_figures(const ExhibitInput& input) {
  return curves(input, {.title = "Throughput of each epoch",
                        .caption = "samples trained in an epoch over its time, evaluation not "
                                   "counted.",
                        .y = {.title = "throughput", .unit = "samples/s"},
                        .value = [](const EpochRecord& epoch) -> std::optional<double> {
                          if (epoch.seconds <= 0.0 || epoch.samples == 0) return std::nullopt;
                          return static_cast<double>(epoch.samples) / epoch.seconds;
                        }});
}

std::vector<Figure> accuracy_epochs_figures(const ExhibitInput& input) {
  return curves(input, {.title = "Test accuracy",
                        .caption = "share of the test samples that are classified right after each "
                                   "epoch. Executors that do the same work should lie together.",
                        .y = {.title = "test accuracy", .unit = "%"},
                        .value = test_accuracy_percent,
                        .missing = "no test data"});
}

std::vector<Figure> accuracy_time_figures(const ExhibitInput& input) {
  return curves(input, {.title = "Test accuracy over time",
                        .caption = "share of the test samples that are classified right over the "
                                   "time spent training until then, evaluation not counted. What "
                                   "lies further left reaches the same in less time.",
                        .y = {.title = "test accuracy", .unit = "%"},
                        .value = test_accuracy_percent,
                        .over_time = true,
                        .missing = "no test data, or the time before it was resumed is unknown"});
}

std::vector<Figure> loss_epochs_figures(const ExhibitInput& input) {
  return curves(input, {.title = "Training loss",
                        .caption = "mean loss over the training samples of each epoch.",
                        .y = {.title = "training loss"},
                        .value = [](const EpochRecord& epoch) { return epoch.train_loss; },
                        .missing = "the loss is not a number"});
}

}  // namespace ridgeline::report
