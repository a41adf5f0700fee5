// Samples a second: as bars by network, over the batch, and every iteration behind them.

#include <algorithm>
#include <functional>

#include "base/error.h"
#include "base/text.h"
#include "report/analysis/text.h"
#include "report/exhibits/figure_kinds.h"
#include "report/exhibits/figure_runs.h"
#include "report/exhibits/figure_values.h"

namespace ridgeline::report {
namespace {

Runs with_rates(const ExhibitInput& input) {
  return without_profiles(
      chosen(input.runs, [](const RunView& run) { return run.rate.has_value(); }));
}

Point point_of(double x, const Estimate& rate) {
  return {.x = x, .y = rate.value, .low = rate.low, .high = rate.high};
}

// Ridgeline against the peers, else device against device, else executor against executor: by the
// verdicts on their pairs. Empty: nothing is decided.
std::string contest_reading(const ExhibitInput& input, const Runs& runs) {
  const TextInput text = text_input(input.data, runs);
  for (std::vector<Contest> contests : {peer_contests(text), device_contests(text)}) {
    std::ranges::stable_sort(contests, std::greater{},
                             [](const Contest& contest) { return contest.ratios.size(); });
    for (const Contest& contest : contests) {
      if (const Sentence sentence = brief_contest_sentence(text, contest)) return sentence->text();
    }
  }
  for (const Sentence& sentence : executor_differences(text)) {
    if (sentence) return sentence->text();
  }
  return {};
}

// Of one kind of work, executors stand along the axis: their names need no legend then.
void turn_single(Figure& figure) {
  if (figure.x.categories.size() != 1) return;
  Series all{.name = figure.x.categories.front(), .style = SeriesStyle::points, .points = {}};
  figure.x = {.title = "executor"};
  for (Series& series : figure.series) {
    series.points.front().x = category_of(figure.x, series.name);
    all.points.push_back(std::move(series.points.front()));
  }
  figure.series = {std::move(all)};
}

// How many lines rise and how many fall, and the steepest one with its doubts.
std::string gains_reading(const Runs& runs) {
  const std::vector<Runs> lines = batch_series(runs);
  std::size_t rising = 0, falling = 0;
  std::optional<Estimate> most;
  std::string doubts;
  for (const Runs& line : lines) {
    const Estimate gain = ratio_of(*line.back()->rate, *line.front()->rate);
    const std::string unsure = doubts_of(line);
    const bool rises = is_above_one(gain, unsure), falls = is_below_one(gain, unsure);
    rising += rises ? 1 : 0;
    falling += falls ? 1 : 0;
    const Estimate steep = falls ? ratio_of(*line.front()->rate, *line.back()->rate) : gain;
    if (!(rises || falls) || (most && steep.value <= most->value)) continue;
    most = steep;
    doubts = unsure.empty() ? "" : fmt::format(" ({})", unsure);
  }
  if (!most) return "From the smallest to the largest batch no line is shown to rise or to fall.";
  return fmt::format(
      "From the smallest to the largest batch the rate rises for {} of {} and falls for {}; the "
      "largest change is {}{}.",
      rising, count_words(lines.size(), "line"), falling, times_text(*most), doubts);
}

// Long names need room: bars then lie on their side.
void lay_out_bars(Figure& figure) {
  std::size_t letters = 0;
  for (const std::string& category : figure.x.categories) letters += category.size() + 2;
  figure.horizontal = letters > 90;
}

}  // namespace

std::vector<Figure> throughput_figures(const ExhibitInput& input) {
  std::vector<Figure> figures;
  // The work stands along the axis: executors and machines are the series. Whole trainings, which
  // load data and shuffle, stand apart from steps that are measured alone.
  for (const Share& share :
       split(input.data, with_rates(input), {"kind", "command"}, {"machine", "model"},
             series_by_name(input.data, work_fields()))) {
    const Names names(input.data, share.runs, work_fields());
    const Names works(input.data, share.runs, executor_fields(), {"model"});
    Figure figure = new_figure(input, "Throughput", share.title);
    figure.kind = FigureKind::bars;
    figure.x.title = "network";
    figure.y = {.title = "throughput", .unit = "samples/s"};
    Notes notes(input.data);
    for (const RunView* run : share.runs) {
      Series& series = series_named(figure, names.of(*run), SeriesStyle::points);
      const double x = category_of(figure.x, works.of(*run));
      series.points.push_back(point_of(x, *run->rate));
      notes.add(*run, series.name);
    }
    choose_y_axis(figure);
    notes.write(figure);
    turn_single(figure);
    lay_out_bars(figure);
    figure.reading = contest_reading(input, share.runs);
    figure.caption = fmt::format(
        "Samples a second: batch over the median time of an iteration, with its 95% interval. What "
        "stands together did the same work.{}{}",
        common_text(input.data, share.runs, {"model", "executor"}),
        figure.y.logarithmic ? " The scale is logarithmic: equal distances are equal ratios." : "");
    put(figures, std::move(figure));
  }
  return figures;
}

std::vector<Figure> batch_sweep_figures(const ExhibitInput& input) {
  std::vector<Figure> figures;
  const FieldNames shown = {"batch", "kind", "model", "command"};
  for (const Share& share :
       split(input.data, flat(batch_series(with_rates(input))), {"kind", "command", "model"},
             {"machine", "image", "executor"}, series_by_name(input.data, shown))) {
    const Names names(input.data, share.runs, shown);
    Figure figure = new_figure(input, "Throughput over the batch", share.title);
    figure.x = {.title = "batch", .unit = "samples", .logarithmic = true};
    figure.y = {.title = "throughput", .unit = "samples/s"};
    Notes notes(input.data);
    for (const RunView* run : share.runs) {
      Series& series = series_named(figure, names.of(*run), SeriesStyle::line_points);
      series.points.push_back(point_of(static_cast<double>(run->run.work.batch), *run->rate));
      notes.add(*run, series.name);
    }
    choose_y_axis(figure);
    figure.reading = gains_reading(share.runs);
    figure.caption = fmt::format(
        "{}: samples a second over the batch, median with its 95% interval. A line that flattens "
        "has filled the machine; one that falls has outgrown a cache or the memory.{}",
        share.runs[0]->run.work.model, names.common());
    notes.write(figure);
    put(figures, std::move(figure));
  }
  return figures;
}

std::vector<Figure> samples_figures(const ExhibitInput& input) {
  std::vector<Figure> figures;
  const Runs shown = without_profiles(
      chosen(input.runs, [](const RunView& run) { return run.seconds.has_value(); }));
  for (const Share& share :
       split(input.data, shown, {"kind", "model"}, {"machine", "batch", "executor"})) {
    const Names names(input.data, share.runs, {"kind", "model"});
    Figure figure = new_figure(input, "Every measured iteration", share.title);
    figure.x = {.title = "measured iteration"};
    figure.y = {.title = "time of an iteration"};
    std::size_t all = 0, drawn = 0;
    double most = 0.0;
    Notes notes(input.data);
    for (const RunView* run : share.runs) {
      std::vector<Point> points;
      for (const Sample& sample : input.data.store().samples(run->run.id)) {
        if (sample.kind != SampleKind::measured) continue;
        points.push_back({.x = static_cast<double>(points.size() + 1), .y = sample.wall_seconds});
        most = std::max(most, run->seconds->value);
      }
      if (points.empty()) continue;
      all += points.size();
      Series& series = series_named(figure, names.of(*run), SeriesStyle::points);
      series.points = thinned(std::move(points), points_each(share.runs.size()));
      drawn += series.points.size();
      notes.add(*run, series.name);
    }
    const DisplayUnit scale = seconds_unit(most);
    figure.y.unit = scale.unit;
    for (Series& series : figure.series) {
      for (Point& point : series.points) point.y = rounded(point.y * scale.factor);
    }
    choose_y_axis(figure);
    figure.caption = fmt::format(
        "Every measured iteration in its order; nothing is left out as an outlier. Even bands at "
        "two heights or at even distances are patterns that an average would hide.{}",
        names.common());
    if (drawn < all) {
      figure.notes.push_back(fmt::format(
          "Of {} iterations {} are drawn: of each stretch the shortest and the longest.",
          count_text(static_cast<std::int64_t>(all)),
          count_text(static_cast<std::int64_t>(drawn))));
    }
    notes.write(figure);
    put(figures, std::move(figure));
  }
  return figures;
}

}  // namespace ridgeline::report
