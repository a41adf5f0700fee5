// Throughput and accuracy along one axis, all else equal.

#include <algorithm>

#include "base/error.h"
#include "report/exhibits/figure_kinds.h"
#include "report/exhibits/figure_runs.h"
#include "report/exhibits/figure_values.h"
#include "report/exhibits/sweep.h"

namespace ridgeline::report {
namespace {

// What is drawn of a run.
struct Quantity {
  std::string title;  // "Throughput"
  Axis y;
  std::optional<Point> (*of)(const RunView& run);  // x is not known yet
};

std::optional<Point> rate_point(const RunView& run) {
  if (!run.rate) return std::nullopt;
  return Point{.y = run.rate->value, .low = run.rate->low, .high = run.rate->high};
}

std::optional<Point> accuracy_point(const RunView& run) {
  const EpochRecord* last = last_tested(run);
  if (last == nullptr) return std::nullopt;
  return Point{.y = *last->test_accuracy * 100.0};
}

// The executor, and what else tells the series from the others.
class SeriesNames {
 public:
  SeriesNames(const Data& data, const Sweep& sweep)
      : sweep_(sweep), names_(data, flat(sweep.series), shown(sweep)) {}
  [[nodiscard]] std::string of(const Runs& series) const {
    const std::string options =
        sweep_.axis.option.empty() ? std::string() : sweep_.other_options(*series[0]);
    return names_.of(*series[0]) + (options.empty() ? "" : ", ") + options;
  }

 private:
  static FieldNames shown(const Sweep& sweep) {
    FieldNames fields = sweep.axis.fields();
    fields.insert(fields.end(), {"kind", "model"});
    // A full batch is all samples.
    const Runs runs = flat(sweep.series);
    if (sweep.axis.field == "data_samples" &&
        std::ranges::all_of(runs, [](auto* run) { return run->run.work.full_batch; })) {
      fields.push_back("batch");
    }
    return fields;
  }

  const Sweep& sweep_;
  Names names_;
};

void choose_axes(Figure& figure, bool logarithmic_y) {
  double low = 0.0, high = 0.0;
  for (const Series& series : figure.series) {
    for (const Point& point : series.points) {
      low = low == 0.0 ? point.x : std::min(low, point.x);
      high = std::max(high, point.x);
    }
  }
  if (figure.kind == FigureKind::xy) figure.x.logarithmic = low > 0.0 && high >= 8.0 * low;
  if (logarithmic_y) {
    choose_y_axis(figure);
  } else if (figure.kind == FigureKind::bars) {
    figure.y.low = 0.0;
  }
}

// The series from `first` on, as many as a figure can have.
Figure draw(const ExhibitInput& input, const Sweep& sweep, std::size_t first, std::string what,
            const Quantity& quantity) {
  const std::size_t count = sweep.series.size();
  if (!what.empty()) what.insert(0, ", ");
  if (count > kMostSeries) {
    what += fmt::format(", part {} of {}", first / kMostSeries + 1,
                        (count + kMostSeries - 1) / kMostSeries);
  }
  Figure figure =
      new_figure(input, "", fmt::format("{} by {}{}", quantity.title, sweep.axis.name, what));
  figure.y = quantity.y;
  figure.x.title = sweep.axis.name;
  figure.kind = sweep.numbers ? FigureKind::xy : FigureKind::bars;
  const SeriesNames names(input.data, sweep);
  Notes notes(input.data);
  for (std::size_t i = first; i < std::min(first + kMostSeries, count); ++i) {
    const std::string name = names.of(sweep.series[i]);
    for (const RunView* run : sweep.series[i]) {
      std::optional<Point> point = quantity.of(*run);
      if (!point) {
        notes.add("n/a: not measured", name);
        continue;
      }
      point->x =
          sweep.numbers ? *sweep.axis.number(*run) : category_of(figure.x, sweep.axis.text(*run));
      series_named(figure, name, SeriesStyle::line_points).points.push_back(*point);
      notes.add(*run, name);
    }
  }
  const bool percent = quantity.y.unit == "%";
  choose_axes(figure, !percent);
  figure.caption = fmt::format("{} along {}; all else is the same within a series. {}",
                               quantity.title, sweep.axis.name,
                               percent ? "Accuracy on the test samples after the last epoch."
                                       : "Median with its 95% interval.");
  notes.write(figure);
  return figure;
}

}  // namespace

std::vector<Figure> sweep_figures(const ExhibitInput& input) {
  static const Quantity quantities[] = {
      {"Throughput", {.title = "throughput", .unit = "samples/s"}, rate_point},
      {"Test accuracy", {.title = "test accuracy", .unit = "%"}, accuracy_point}};
  const Runs runs = without_profiles(chosen(input.runs, [](const RunView&) { return true; }));
  std::vector<Figure> figures;
  for (const Share& share :
       split(input.data, runs, {"kind", "model"}, {}, [](const Runs&) { return std::size_t{1}; })) {
    for (const Sweep& sweep : sweeps_of(share.runs)) {
      for (std::size_t first = 0; first < sweep.series.size(); first += kMostSeries) {
        for (const Quantity& quantity : quantities) {
          put(figures, draw(input, sweep, first, share.title, quantity));
        }
      }
    }
  }
  return figures;
}

}  // namespace ridgeline::report
