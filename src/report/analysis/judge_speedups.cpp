// Tests on ratios: who is faster, by how much, and whether that depends on the work.

#include <algorithm>
#include <map>
#include <tuple>

#include "base/error.h"
#include "report/analysis/judging.h"
#include "report/analysis/places.h"
#include "report/analysis/text.h"

namespace ridgeline::report {
namespace {

// Speed-ups whose largest and smallest differ by less are called alike.
constexpr double kAlike = 0.10;

// Speed-ups between two machines, or of one: one for each work that both sides did. Runs of other
// machines are compared only where the devices differ: what beats a library does so on the same
// processor.
struct SpeedupLine {
  std::size_t of_machine = 0, than_machine = 0;
  std::vector<Ratio> ratios;
};
// Of several runs of a work that fit `of`, the fastest or the slowest; of those that fit `than`
// the fastest. A claim that all are faster rests on the slowest.
enum class Choice { fastest, slowest };

// "server against desk", or nothing where one machine did both.
std::string line_name(const Data& data, const SpeedupLine& line) {
  if (line.of_machine == line.than_machine) {
    return data.machines().size() > 1 ? "on " + data.machines()[line.of_machine].name : "";
  }
  return fmt::format("{} against {}", data.machines()[line.of_machine].name,
                     data.machines()[line.than_machine].name);
}

// One run of each machine and device that fits.
std::map<Place, const RunView*> chosen(const JudgeInput& input, const Runs& alike,
                                       const std::string& condition, Choice choice) {
  std::map<Place, const RunView*> found;
  for (const RunView* run : alike) {
    if (!run->seconds || !fits(input.data, *run, condition)) continue;
    const RunView*& known = found[place_of(*run)];
    const auto better = [&] {
      return choice == Choice::fastest ? run->seconds->value < known->seconds->value
                                       : run->seconds->value > known->seconds->value;
    };
    if (known == nullptr || better()) known = run;
  }
  return found;
}

std::vector<SpeedupLine> speedup_lines(const JudgeInput& input, Choice choice) {
  // Precisions and kinds of work have roofs of their own: they are no points of one line.
  std::map<std::tuple<Place, Place, std::string, std::string>, SpeedupLine> lines;
  for (const Runs& alike : by_work(input.runs)) {
    const auto of = chosen(input, alike, input.hypothesis.of, choice);
    const auto than = chosen(input, alike, input.hypothesis.than, Choice::fastest);
    for (const auto& [of_place, fast] : of) {
      for (const auto& [than_place, slow] : than) {
        const bool elsewhere = of_place.machine != than_place.machine;
        if (elsewhere && of_place.device == than_place.device) continue;
        const auto ratio = input.data.ratios().of(*fast, *slow);
        if (!ratio) continue;
        const Work& work = fast->run.work;
        SpeedupLine& line = lines[{of_place, than_place, work.kind, work.precision}];
        line.of_machine = of_place.machine;
        line.than_machine = than_place.machine;
        line.ratios.push_back(*ratio);
      }
    }
  }
  std::vector<SpeedupLine> found;
  for (auto& [places, line] : lines) found.push_back(std::move(line));
  return found;
}

// Which side of the comparison is missing.
Answer no_pairs(const JudgeInput& input) {
  const auto any = [&](const std::string& condition) {
    return std::ranges::any_of(
        input.runs, [&](const RunView* run) { return fits(input.data, *run, condition); });
  };
  const std::string &of = input.hypothesis.of, &than = input.hypothesis.than;
  if (!any(of)) return not_measured("no run with " + of);
  if (!any(than)) return not_measured("no run with " + than);
  return not_measured(fmt::format("no work that both {} and {} did", of, than));
}

std::string pair_name(const JudgeInput& input, const Ratio& ratio) {
  return fmt::format("{}, {} against {}", input.wording.work(*ratio.of),
                     input.wording.executor(*ratio.of), input.wording.executor(*ratio.than));
}

// "41.2× [40.0–42.1] (resnet50, cudnn on cuda:0 against native)"
void tell(Prose& text, const JudgeInput& input, const Ratio& told) {
  const Ratio ratio = above_one(told);
  text.say(fmt::format("{} ({})", times_text(ratio), pair_name(input, ratio)), runs_of(ratio));
}

// A few of them, each with its numbers.
void tell_some(Prose& text, const JudgeInput& input, const std::vector<Ratio>& ratios) {
  constexpr std::size_t kSome = 3;
  for (std::size_t i = 0; i < std::min(ratios.size(), kSome); ++i) {
    if (i > 0) text.say("; ");
    tell(text, input, ratios[i]);
  }
  if (ratios.size() > kSome) text.say(fmt::format("; and {} more", ratios.size() - kSome));
}

// From the smallest to the largest, and the mean where it means something.
void tell_range(Prose& text, const JudgeInput& input, const std::vector<Ratio>& ratios) {
  const auto [least, most] = std::ranges::minmax_element(ratios, {}, &Ratio::speedup);
  if (ratios.size() == 1) {
    tell(text, input, *least);
    return;
  }
  text.say("from ");
  tell(text, input, *least);
  text.say(" to ");
  tell(text, input, *most);
  if (ratios.size() < 3) return;
  std::vector<double> values;
  for (const Ratio& ratio : ratios) values.push_back(ratio.speedup);
  text.say(fmt::format("; geometric mean {} over the {} kinds of work",
                       times_text(geometric_mean(values)), ratios.size()));
}

Answer faster_on(const JudgeInput& input, const SpeedupLine& line) {
  Answer answer;
  const std::string place = line_name(input.data, line);
  Prose& text = answer.evidence;
  if (!place.empty()) text.say(sentence_case(place) + ": ");
  const auto faster = with(line.ratios, Verdict::faster),
             slower = with(line.ratios, Verdict::slower), same = with(line.ratios, Verdict::same),
             open = with(line.ratios, Verdict::undecided);
  const std::string all = count_words(line.ratios.size(), "comparison");
  if (!slower.empty() || !same.empty()) {
    answer.outcome = Outcome::not_confirmed;
    if (line.ratios.size() > 1) text.say(fmt::format("faster in {} of {}; ", faster.size(), all));
    if (!slower.empty()) {
      text.say("the other way round: ");
      tell_some(text, input, slower);
    }
    if (!same.empty()) {
      text.say(slower.empty() ? "no difference: " : "; no difference: ");
      tell_some(text, input, same);
    }
  } else if (!open.empty()) {
    if (line.ratios.size() > 1) text.say(fmt::format("faster in {} of {}; ", faster.size(), all));
    text.say("the intervals leave open: ");
    tell_some(text, input, open);
  } else {
    answer.outcome = Outcome::confirmed;
    text.say(line.ratios.size() == 1   ? "faster in the one comparison there is: "
             : line.ratios.size() == 2 ? "faster in both comparisons, "
                                       : fmt::format("faster in all {}, ", all));
    tell_range(text, input, line.ratios);
  }
  text.say(".");
  return answer;
}

Answer varies_on(const JudgeInput& input, const SpeedupLine& line) {
  Answer answer;
  Prose& text = answer.evidence;
  const auto [least, most] = std::ranges::minmax_element(line.ratios, {}, &Ratio::speedup);
  const std::string place = line_name(input.data, line);
  if (!place.empty()) text.say(sentence_case(place) + ": ");
  if (line.ratios.size() < 2) {
    text.say("one speed-up alone, ");
    tell(text, input, *least);
    text.say(".");
    return answer;
  }
  const bool doubtful = !most->doubts.empty() || !least->doubts.empty();
  const double apart = doubtful ? kApart : 1.0;
  if (!most->sound || !least->sound) {
    text.say("too few epochs or iterations for intervals, ");
  } else if (most->low > apart * least->high && most->speedup > (1.0 + kAlike) * least->speedup) {
    answer.outcome = Outcome::confirmed;
    text.say("the speed-ups differ beyond their intervals, ");
  } else if (most->high < (1.0 + kAlike) * least->low) {
    answer.outcome = Outcome::not_confirmed;
    text.say(fmt::format("all speed-ups lie within {} of each other, ", limit_text(kAlike)));
  } else {
    text.say("the intervals of the smallest and the largest speed-up do not tell them apart, ");
  }
  tell_range(text, input, line.ratios);
  text.say(".");
  return answer;
}

Answer of_all_lines(const JudgeInput& input, Choice choice,
                    Answer (*judge_line)(const JudgeInput& input, const SpeedupLine& line)) {
  const std::vector<SpeedupLine> lines = speedup_lines(input, choice);
  if (lines.empty()) return no_pairs(input);
  Answer all;
  std::vector<Outcome> outcomes;
  for (const SpeedupLine& line : lines) {
    const Answer one = judge_line(input, line);
    outcomes.push_back(one.outcome);
    all.evidence.add(one.evidence);
  }
  all.outcome = combined(outcomes);
  return all;
}

}  // namespace

Answer judge_faster(const JudgeInput& input) {
  return of_all_lines(input, Choice::slowest, faster_on);
}

Answer judge_speedup_varies(const JudgeInput& input) {
  return of_all_lines(input, Choice::fastest, varies_on);
}

Answer judge_speedup_grows(const JudgeInput& input) {
  const std::vector<SpeedupLine> lines = speedup_lines(input, Choice::fastest);
  if (lines.empty()) return no_pairs(input);
  const std::string& axis = input.hypothesis.axis;
  std::vector<GrowthLine> growing;
  for (const SpeedupLine& line : lines) {
    // Two networks differ by all they are; other works of a line differ by the axis alone.
    std::vector<Work> works;
    const std::size_t first = growing.size();
    for (const Ratio& ratio : line.ratios) {
      // What is known of the faster side is known of the same work on the other, too.
      std::optional<double> at = axis_place(*ratio.of, axis);
      if (!at) at = axis_place(*ratio.than, axis);
      if (!at) continue;
      const Work work = is_of_networks(axis) ? Work{} : off_axis(*ratio.of, axis).run.work;
      const auto place = std::ranges::find(works, work) - works.begin();
      if (place == std::ssize(works)) {
        works.push_back(work);
        growing.push_back({.name = line_name(input.data, line), .points = {}, .doubts = {}});
      }
      GrowthLine& grown = growing[first + static_cast<std::size_t>(place)];
      if (!ratio.doubts.empty()) grown.doubts = ratio.doubts;
      grown.points.push_back(
          {.at = *at,
           .value = {ratio.speedup, ratio.low, ratio.high, ratio.sound ? ratio.samples : 0},
           .runs = runs_of(ratio),
           .name = fmt::format("{}, {}", input.wording.work(*ratio.of), axis_value(axis, *at))});
    }
  }
  return judge_growth(growing, axis, "the speed-up",
                      [](const Estimate& value) { return times_text(value); });
}

}  // namespace ridgeline::report
