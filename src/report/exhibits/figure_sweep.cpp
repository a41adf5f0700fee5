// Throughput and accuracy along one axis, all else equal.

#include <algorithm>
#include <map>

#include "base/error.h"
#include "base/text.h"
#include "models/model.h"
#include "report/exhibits/figure_kinds.h"
#include "report/exhibits/figure_runs.h"
#include "report/exhibits/figure_scale.h"

namespace ridgeline::report {
namespace {

// All by which runs can differ, as words. Options of the model have their own names.
using Aspects = std::map<std::string, std::string>;

constexpr std::string_view kAxes[] = {"batch",   "precision", "learning rate", "optimizer",
                                      "samples", "image",     "threads"};

// A run tells only options that are not at the model's fallback.
void add_settings(const Work& work, Aspects& aspects, std::set<std::string>& axes) {
  for (const ModelInfo& model : all_models()) {
    if (model.name != work.model) continue;
    for (const ModelOption& option : model.options) {
      aspects[std::string(option.name)] = option.fallback;
    }
  }
  for (const auto& [name, value] : settings_of(work)) {
    aspects[name] = value;
    axes.insert(name);
  }
}

Aspects aspects_of(const Data& data, const RunView& run, std::set<std::string>& axes) {
  const Work& work = run.run.work;
  const Executor& by = run.run.executor;
  Aspects aspects = {{"kind", work.kind},
                     {"model", work.model},
                     {"batch", fmt::format("{}", work.batch)},
                     {"image", work.image},
                     {"classes", fmt::format("{}", work.classes)},
                     {"precision", work.precision},
                     {"optimizer", work.optimizer},
                     {"data", work.data},
                     {"normalisation", work.normalisation},
                     {"variant", work.variant},
                     {"backend", by.backend},
                     {"device", by.device},
                     {"threads", by.device == "cpu" ? fmt::format("{}", by.threads) : ""},
                     {"options", by.options},
                     {"machine", data.machine_of(run).name},
                     {"command", run.run.command}};
  // Synthetic batches come from as many samples as are needed.
  if (work.data != "synthetic") aspects["samples"] = fmt::format("{}", work.data_samples);
  if (run.learning_rate) aspects["learning rate"] = fmt::format("{:g}", *run.learning_rate);
  add_settings(work, aspects, axes);
  return aspects;
}

struct Sweep {
  std::string axis;
  // Runs that differ along the axis alone, those of a series together.
  std::vector<Runs> series;
};

// Optimizers want learning rates of their own: along that axis both may change.
bool goes_along(const std::string& axis, const std::string& aspect) {
  return aspect == axis || (axis == "optimizer" && aspect == "learning rate");
}

Sweep sweep_along(const std::string& axis, const Runs& runs,
                  const std::map<const RunView*, Aspects>& aspects) {
  std::map<std::string, std::size_t> places;
  std::vector<Runs> all;
  for (const RunView* run : runs) {
    std::string key;
    for (const auto& [name, value] : aspects.at(run)) {
      if (!goes_along(axis, name)) key += name + "=" + value + "\n";
    }
    const auto [place, fresh] = places.emplace(key, all.size());
    if (fresh) all.emplace_back();
    all[place->second].push_back(run);
  }
  Sweep sweep{axis, {}};
  for (Runs& each : all) {
    std::set<std::string> values;
    for (const RunView* run : each) {
      const auto value = aspects.at(run).find(axis);
      if (value != aspects.at(run).end()) values.insert(value->second);
    }
    if (values.size() > 1) sweep.series.push_back(std::move(each));
  }
  return sweep;
}

std::optional<double> as_number(const std::string& text) {
  char* end = nullptr;
  const double value = std::strtod(text.c_str(), &end);
  if (text.empty() || *end != '\0') return std::nullopt;
  return value;
}

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
  for (auto epoch = run.epochs.rbegin(); epoch != run.epochs.rend(); ++epoch) {
    if (epoch->test_accuracy) return Point{.y = *epoch->test_accuracy * 100.0};
  }
  return std::nullopt;
}

class SweepDrawing {
 public:
  SweepDrawing(const ExhibitInput& input, const std::map<const RunView*, Aspects>& aspects)
      : input_(input), aspects_(aspects) {}

  void draw(const Sweep& sweep, const std::string& what, const Quantity& quantity,
            std::vector<Figure>& figures) const {
    Figure figure = new_figure(
        input_, "",
        fmt::format("{} by {}{}{}", quantity.title, sweep.axis, what.empty() ? "" : ", ", what));
    figure.y = quantity.y;
    figure.x.title = sweep.axis;
    const bool numbers = is_numeric(sweep);
    figure.kind = numbers ? FigureKind::xy : FigureKind::bars;
    Notes notes(input_.data);
    for (const Runs& runs : sweep.series) {
      const std::string name = name_of(sweep, runs);
      for (const RunView* run : runs) {
        std::optional<Point> point = quantity.of(*run);
        if (!point) {
          notes.add("n/a: not measured", name);
          continue;
        }
        const std::string value = value_of(sweep, *run);
        point->x = numbers ? *as_number(value) : category_of(figure.x, value);
        series_named(figure, name, SeriesStyle::line_points).points.push_back(*point);
        notes.add(*run, name);
        rests_on(figure, *run);
      }
    }
    finish(figure, sweep, quantity);
    notes.write(figure);
    put(figures, std::move(figure));
  }

 private:
  [[nodiscard]] bool is_numeric(const Sweep& sweep) const {
    for (const Runs& runs : sweep.series) {
      for (const RunView* run : runs) {
        if (!as_number(value_of(sweep, *run))) return false;
      }
    }
    return true;
  }

  [[nodiscard]] std::string value_of(const Sweep& sweep, const RunView& run) const {
    const Aspects& aspects = aspects_.at(&run);
    std::string value = aspects.contains(sweep.axis) ? aspects.at(sweep.axis) : std::string();
    if (sweep.axis == "optimizer" && aspects.contains("learning rate")) {
      value += ", rate " + aspects.at("learning rate");
    }
    return value;
  }

  // The executor, and what else tells this series from the others.
  [[nodiscard]] std::string name_of(const Sweep& sweep, const Runs& runs) const {
    const Aspects& mine = aspects_.at(runs[0]);
    std::string name = mine.at("backend");
    for (const auto& [aspect, value] : mine) {
      if (goes_along(sweep.axis, aspect) || aspect == "backend" || value.empty()) continue;
      const bool differs =
          std::any_of(sweep.series.begin(), sweep.series.end(), [&](const Runs& other) {
            const auto theirs = aspects_.at(other[0]).find(aspect);
            return theirs == aspects_.at(other[0]).end() || theirs->second != value;
          });
      if (!differs) continue;
      const bool plain = aspect == "device" || aspect == "machine" || aspect == "precision" ||
                         aspect == "image" || aspect == "optimizer" || aspect == "options";
      name += plain ? ", " + value : fmt::format(", {} {}", aspect, value);
    }
    return name;
  }

  static void finish(Figure& figure, const Sweep& sweep, const Quantity& quantity) {
    double low = 0.0, high = 0.0;
    for (Series& series : figure.series) {
      std::stable_sort(series.points.begin(), series.points.end(),
                       [](const Point& a, const Point& b) { return a.x < b.x; });
      if (series.points.empty()) continue;
      low = low == 0.0 ? series.points.front().x : std::min(low, series.points.front().x);
      high = std::max(high, series.points.back().x);
    }
    const bool spread = low > 0.0 && high >= 8.0 * low;
    if (figure.kind == FigureKind::xy) figure.x.logarithmic = spread;
    if (quantity.y.unit == "%") {
      if (figure.kind == FigureKind::bars) figure.y.low = 0.0;
    } else {
      choose_scale(figure);
    }
    figure.caption = fmt::format(
        "{} along {}; all else is the same within a series. {}", quantity.title, sweep.axis,
        quantity.y.unit == "%" ? "Accuracy on the test samples after the last epoch."
                               : "Median with its 95% interval.");
  }

  const ExhibitInput& input_;
  const std::map<const RunView*, Aspects>& aspects_;
};

}  // namespace

std::vector<Figure> sweep_figures(const ExhibitInput& input) {
  static const Quantity quantities[] = {
      {"Throughput", {.title = "throughput", .unit = "samples/s"}, rate_point},
      {"Test accuracy", {.title = "test accuracy", .unit = "%"}, accuracy_point}};
  const Runs runs = newest(input.data, without_profiles(input.data, input.runs));
  std::map<const RunView*, Aspects> aspects;
  std::set<std::string> options;
  for (const RunView* run : runs) aspects[run] = aspects_of(input.data, *run, options);
  std::vector<std::string> axes(std::begin(kAxes), std::end(kAxes));
  axes.insert(axes.end(), options.begin(), options.end());
  const SweepDrawing drawing(input, aspects);
  std::vector<Figure> figures;
  for (const std::string& axis : axes) {
    for (const Share& share : split(input.data, runs, {"kind", "model"}, {},
                                    [](const Runs&) { return std::size_t{1}; })) {
      const Sweep sweep = sweep_along(axis, share.runs, aspects);
      for (std::size_t first = 0; first < sweep.series.size(); first += kMostSeries) {
        const std::size_t end = std::min(first + kMostSeries, sweep.series.size());
        const Sweep part{axis,
                         {sweep.series.begin() + static_cast<std::ptrdiff_t>(first),
                          sweep.series.begin() + static_cast<std::ptrdiff_t>(end)}};
        for (const Quantity& quantity : quantities) {
          drawing.draw(part, share.title, quantity, figures);
        }
      }
    }
  }
  return figures;
}

}  // namespace ridgeline::report
