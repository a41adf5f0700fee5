// Networks, layers and batches under the measured roofs.

#include <algorithm>
#include <functional>

#include "base/error.h"
#include "report/analysis/prose.h"
#include "report/exhibits/figure_kinds.h"
#include "report/exhibits/figure_roofs.h"
#include "report/exhibits/figure_runs.h"
#include "report/exhibits/figure_values.h"

namespace ridgeline::report {
namespace {

constexpr std::size_t kLabelled = 10;
constexpr const char* kReading =
    "Sloped lines are measured bandwidths, flat ones measured compute rates; a point reaches the "
    "line above it at most. Left of the ridge where they meet, memory is the limit.";
constexpr const char* kNoPoint = "n/a: no times of its own steps, or no measured roofs";

Runs with_points(const ExhibitInput& input, Notes& notes) {
  const Runs runs = chosen(input.runs, [&](const RunView& run) {
    const std::optional<RooflinePoint> point = input.data.point(run);
    // What moves no byte or computes nothing has no place on logarithmic axes.
    const bool has_place = point && point->intensity() && point->flops > 0.0;
    // A training never times its single steps.
    if (!has_place && !is_training(run)) notes.add(kNoPoint, run.executor());
    return has_place;
  });
  return without_profiles(runs);
}

// The whole iteration. REQUIRES: the run has a point.
Point network_of(const Data& data, const RunView& run) {
  const RooflinePoint point = *data.point(run);
  Point drawn{.x = *point.intensity(), .y = point.flops_per_second()};
  if (run.seconds && run.seconds->low > 0.0) {
    drawn.low = drawn.y * run.seconds->value / run.seconds->high;
    drawn.high = drawn.y * run.seconds->value / run.seconds->low;
  }
  return drawn;
}

// Which run comes nearest to its roofs, and which stays furthest below them.
std::string roofs_reading(const Data& data, const Runs& runs) {
  std::vector<std::pair<double, const RunView*>> shares;
  for (const RunView* run : runs) {
    const std::optional<double> share = data.point(*run)->efficiency();
    if (share && *share <= 1.0 + kRoofTolerance) shares.emplace_back(*share, run);
  }
  if (shares.empty()) return {};
  const Names names(data, runs, {}, {"model", "executor"});
  const auto [least, most] = std::ranges::minmax(shares);
  const std::string nearest = fmt::format("{} comes nearest to its roofs, at {} of what they allow",
                                          names.of(*most.second), percent_text(most.first));
  if (shares.size() == 1) return nearest + '.';
  return fmt::format("{}; {} stays furthest below, at {}.", nearest, names.of(*least.second),
                     percent_text(least.first));
}

}  // namespace

std::vector<Figure> roofline_figures(const ExhibitInput& input) {
  std::vector<Figure> figures;
  Notes missing(input.data);
  const Runs all = with_points(input, missing);
  const Runs runs = largest_batches(all);
  for (const Share& share : split(input.data, runs, {"kind"}, {"machine", "executor"},
                                  series_by_name(input.data, work_fields()))) {
    const RoofCollection roofs(input.data, share.runs);
    const Names names(input.data, share.runs, work_fields());
    const Names works(input.data, share.runs, executor_fields(), {"model"});
    Figure figure = new_figure(input, "Networks under the roofs", share.title);
    Notes notes = missing;
    for (const RunView* run : share.runs) {
      Series& series = series_named(figure, names.of(*run), SeriesStyle::points);
      series.group = roofs.find(*run)->name;
      Point point = network_of(input.data, *run);
      point.label = works.of(*run);
      series.points.push_back(std::move(point));
      notes.add(*run, series.name);
    }
    draw_roofs(figure, roofs.devices());
    figure.reading = roofs_reading(input.data, share.runs);
    figure.caption = fmt::format(
        "Whole iterations: FLOPs that the kernels execute for each byte at the steps' boundaries, "
        "and for each second of the median iteration, with its 95% interval. {}",
        kReading);
    if (runs.size() < all.size()) {
      figure.notes.push_back("Of several batches the largest is shown.");
    }
    notes.write(figure);
    put(figures, std::move(figure));
  }
  return figures;
}

std::vector<Figure> roofline_batches_figures(const ExhibitInput& input) {
  std::vector<Figure> figures;
  Notes missing(input.data);
  const Runs runs = flat(batch_series(with_points(input, missing)));
  const FieldNames shown = {"batch", "kind"};
  for (const Share& share :
       split(input.data, runs, {"kind"}, {"machine", "model"}, series_by_name(input.data, shown))) {
    const RoofCollection roofs(input.data, share.runs);
    const Names names(input.data, share.runs, shown);
    Figure figure = new_figure(input, "Batches under the roofs", share.title);
    Notes notes = missing;
    for (const RunView* run : share.runs) {
      Series& series = series_named(figure, names.of(*run), SeriesStyle::line_points);
      Point point = network_of(input.data, *run);
      point.label = fmt::format("{}", run->run.work.batch);
      series.points.push_back(std::move(point));
      notes.add(*run, series.name);
    }
    draw_roofs(figure, roofs.devices());
    figure.reading = roofs_reading(input.data, share.runs);
    figure.caption = fmt::format(
        "Each line joins whole iterations of one network at growing batches, which stand beside "
        "the points; 95% intervals of the median. {}{}",
        kReading, names.common());
    notes.write(figure);
    put(figures, std::move(figure));
  }
  return figures;
}

namespace {

struct TimeClass {
  double least;  // share of the steps' time
  const char* name;
};
constexpr TimeClass kTimeClasses[] = {{0.05, "5% of the time or more"},
                                      {0.01, "1% to 5% of the time"},
                                      {0.0, "less than 1% of the time"}};

// A kernel that computes all layers is none of them.
std::string layer_name(const StepTime& step) {
  return step.phase.find('+') == std::string::npos ? step.layer : "several layers in one kernel";
}

void add_layers(Figure& figure, const std::vector<RooflinePoint>& layers) {
  double total = 0.0, unplaced_seconds = 0.0;
  std::size_t unplaced = 0;
  for (const RooflinePoint& layer : layers) total += layer.seconds;
  std::vector<const RooflinePoint*> placed;
  for (const RooflinePoint& layer : layers) {
    if (layer.intensity() && layer.flops > 0.0 && layer.seconds > 0.0) {
      placed.push_back(&layer);
    } else {
      ++unplaced;
      unplaced_seconds += layer.seconds;
    }
  }
  std::ranges::stable_sort(placed, std::greater{}, &RooflinePoint::seconds);
  for (std::size_t i = 0; i < placed.size(); ++i) {
    const double share = placed[i]->seconds / total;
    const TimeClass& time = *std::find_if(std::begin(kTimeClasses), std::end(kTimeClasses),
                                          [&](const TimeClass& c) { return share >= c.least; });
    Point point{.x = *placed[i]->intensity(), .y = placed[i]->flops_per_second()};
    point.detail = fmt::format("{}: {:.1f}% of the time, {}", placed[i]->name, share * 100.0,
                               placed[i]->bound_text());
    if (i == 0) {
      figure.reading = fmt::format("{} takes longest, {} of the steps' time, and is bound by {}.",
                                   placed[i]->name, percent_text(share), placed[i]->bound_text());
    }
    if (i < kLabelled) point.label = fmt::format("{} {:.0f}%", placed[i]->name, share * 100.0);
    series_named(figure, time.name, SeriesStyle::points).points.push_back(std::move(point));
  }
  if (unplaced > 0) {
    figure.notes.push_back(
        fmt::format("{} of {} layers compute no FLOPs ({:.1f}% of the time) and have no place on "
                    "logarithmic axes.",
                    unplaced, layers.size(), unplaced_seconds / total * 100.0));
  }
}

}  // namespace

std::vector<Figure> roofline_layers_figures(const ExhibitInput& input) {
  std::vector<Figure> figures;
  Notes missing(input.data);
  const Runs runs = largest_batches(with_points(input, missing));
  const Names names(input.data, runs);
  for (const RunView* run : runs) {
    const RoofCollection roofs(input.data, {run});
    if (roofs.devices().empty()) continue;
    Figure figure = new_figure(input, "Layers under the roofs", names.of(*run));
    if (runs.size() == 1) figure = new_figure(input, "Layers under the roofs", "");
    add_layers(figure, points_of(input.data.store().steps(run->run.id), roofs.devices()[0].roofs,
                                 layer_name));
    draw_roofs(figure, roofs.devices());
    figure.caption = fmt::format(
        "{}, {}, {}, batch {}: every layer, its passes together, by FLOPs executed for each byte "
        "and each second; mean of the middle iterations. The {} that take longest are named, with "
        "their share of the steps' time. {}",
        run->run.work.model, run->run.work.image.text(), run->executor(), run->run.work.batch,
        kLabelled, kReading);
    Notes notes(input.data);
    notes.add(*run, run->executor());
    notes.write(figure);
    put(figures, std::move(figure));
  }
  return figures;
}

}  // namespace ridgeline::report
