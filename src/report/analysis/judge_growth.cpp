// Tests that a quantity grows along an axis.

#include <algorithm>
#include <map>

#include "base/error.h"
#include "report/analysis/judging.h"

namespace ridgeline::report {
namespace {

// `run` and `wording` without the axis. Networks are told by the points of their line.
std::string line_title(const JudgeInput& input, const RunView& run, const Wording& wording) {
  const std::string executor = wording.executor(run), details = wording.details(run, {"precision"});
  std::string title = !is_of_networks(input.hypothesis.axis) ? wording.run(run)
                      : details.empty()                      ? executor
                                                             : executor + ", " + details;
  if (input.data.machines().size() > 1) title += " on " + input.data.machine_of(run).name;
  return title;
}

template <typename Value>
std::vector<GrowthLine> lines_of(const JudgeInput& input, Value value_of) {
  const std::string& axis = input.hypothesis.axis;
  std::vector<RunView> firsts;  // of each line, without the axis
  std::map<std::string, std::size_t> places;
  std::vector<Runs> runs;  // of each line
  std::vector<GrowthLine> lines;
  for (const RunView* run : input.runs) {
    if (!fits(input.data, *run, input.hypothesis.of)) continue;
    const std::optional<double> at = axis_place(*run, axis);
    const std::optional<Estimate> value = value_of(*run);
    if (!at || !value) continue;
    RunView off = off_axis(*run, axis);
    const auto [place, fresh] = places.try_emplace(run_key(off), lines.size());
    if (fresh) {
      firsts.push_back(std::move(off));
      runs.emplace_back();
      lines.emplace_back();
    }
    runs[place->second].push_back(run);
    const std::string value_words = axis_value(axis, *at);
    lines[place->second].points.push_back(
        {.at = *at,
         .value = *value,
         .runs = {run->run.id},
         .name = is_of_networks(axis) ? fmt::format("{}, {}", input.wording.work(*run), value_words)
                                      : value_words});
  }
  Runs named;
  for (const RunView& first : firsts) named.push_back(&first);
  const Wording wording(named);
  for (std::size_t i = 0; i < lines.size(); ++i) {
    lines[i].name = line_title(input, firsts[i], wording);
    lines[i].doubts = doubts_of(runs[i]);
  }
  return lines;
}

struct JudgedLine {
  const GrowthLine* line = nullptr;
  Trend trend;
};

void tell_point(Prose& text, const TrendPoint& point, std::string (*number)(const Estimate&)) {
  text.say(fmt::format("{} ({})", number(point.value), point.name), point.runs);
}

void tell_line(Prose& text, const JudgedLine& judged, std::string (*number)(const Estimate&)) {
  const std::vector<TrendPoint>& points = judged.line->points;
  if (!judged.line->name.empty()) text.say(judged.line->name + ": ");
  text.say("from ");
  tell_point(text, points.front(), number);
  text.say(" to ");
  tell_point(text, points.back(), number);
  if (judged.trend.falls_at >= 0) {
    const auto at = static_cast<std::size_t>(judged.trend.falls_at);
    text.say(", but it falls from ");
    tell_point(text, points[at], number);
    text.say(" to ");
    tell_point(text, points[at + 1], number);
  }
  if (!judged.line->doubts.empty()) text.say(fmt::format(" ({})", judged.line->doubts));
}

}  // namespace

Answer judge_growth(const std::vector<GrowthLine>& lines, const std::string& axis,
                    const std::string& quantity, std::string (*number)(const Estimate& value)) {
  constexpr std::size_t kShown = 4;
  std::vector<GrowthLine> sorted;
  for (GrowthLine line : lines) {
    std::ranges::stable_sort(line.points, {}, &TrendPoint::at);
    if (line.points.size() > 1 && line.points.front().at < line.points.back().at) {
      sorted.push_back(std::move(line));
    }
  }
  if (sorted.empty()) {
    return not_measured(
        fmt::format("{} at more than one value of {}", quantity, axis_words(axis).substr(4)));
  }
  // Two batches of the same network differ by the batch alone; two networks by all they are.
  const std::size_t fewest = is_of_networks(axis) ? 3 : 2;
  std::map<Outcome, std::vector<JudgedLine>> judged;
  std::vector<Outcome> outcomes;
  for (const GrowthLine& line : sorted) {
    const Trend trend = trend_of(line.points, fewest, line.doubts);
    judged[trend.outcome].push_back({&line, trend});
    outcomes.push_back(trend.outcome);
  }
  Answer answer;
  answer.outcome = combined(outcomes);
  const auto tell = [&](Outcome outcome, const std::string& head) {
    const auto found = judged.find(outcome);
    if (found == judged.end()) return;
    Prose text;
    text.say(sorted.size() == 1 ? sentence_case(head) + ": "
                                : fmt::format("{} in {} of {} series: ", sentence_case(head),
                                              found->second.size(), sorted.size()));
    for (std::size_t i = 0; i < std::min(found->second.size(), kShown); ++i) {
      if (i > 0) text.say("; ");
      tell_line(text, found->second[i], number);
    }
    if (found->second.size() > kShown) {
      text.say(fmt::format("; and {} more", found->second.size() - kShown));
    }
    text.say(".");
    answer.evidence.add(text);
  };
  tell(Outcome::confirmed, quantity + " grows with " + axis_words(axis));
  tell(Outcome::not_confirmed, quantity + " does not grow with " + axis_words(axis));
  tell(Outcome::undecided,
       fmt::format("no trend of {} along {} is shown: intervals are too wide, samples fewer than "
                   "six, values fewer than {}, or the machine's own changes could explain it",
                   quantity, axis_words(axis), fewest));
  return answer;
}

Answer judge_throughput_grows(const JudgeInput& input) {
  const auto lines = lines_of(input, [](const RunView& run) { return run.rate; });
  return judge_growth(lines, input.hypothesis.axis, "the rate",
                      [](const Estimate& value) { return estimate_text(value, "samples/s"); });
}

Answer judge_efficiency_grows(const JudgeInput& input) {
  bool roofs = false;
  const auto share_of = [&](const RunView& run) -> std::optional<Estimate> {
    const std::optional<RooflinePoint> point = input.data.point(run);
    if (!point || !point->efficiency() || !run.seconds) return std::nullopt;
    roofs = true;
    // The least time is fixed: the interval is that of the measured time.
    const double share = *point->efficiency();
    return Estimate{share, share * run.seconds->value / run.seconds->high,
                    share * run.seconds->value / run.seconds->low, run.seconds->samples};
  };
  const auto lines = lines_of(input, share_of);
  if (!roofs) return not_measured("ceilings or step times of these runs");
  return judge_growth(lines, input.hypothesis.axis, "the share of the roof",
                      [](const Estimate& value) {
                        return fmt::format("{} [{}–{}]", percent_text(value.value),
                                           percent_text(value.low), percent_text(value.high));
                      });
}

}  // namespace ridgeline::report
