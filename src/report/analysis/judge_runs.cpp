// Tests on single runs: what bounds them, what accuracy they reach.

#include <algorithm>
#include <cmath>
#include <map>

#include "analysis/stats/distributions.h"
#include "base/error.h"
#include "report/analysis/judging.h"
#include "report/analysis/places.h"
#include "report/flags.h"

namespace ridgeline::report {
namespace {

// The bound of a network is that of its steps with the larger part of the time; below this share
// none is the larger part.
constexpr double kMostOfTheTime = 0.5;

std::string place(const JudgeInput& input, const RunView& run) {
  const std::string text = input.wording.run(run);
  return input.data.machines().size() > 1 ? text + " on " + input.data.machine_of(run).name : text;
}

struct BoundRun {
  const RunView* run = nullptr;
  Bound bound = Bound::unknown;
  std::string name;    // of the bound
  double share = 1.0;  // of the time
  bool far = false;    // from every roof
};

// From the roofline, or of a training, whose steps are not timed, from its waiting for data: the
// larger part of the time, as the roofline has it. That it does not wait says nothing of what else
// bounds it.
std::optional<BoundRun> bound_of(const JudgeInput& input, const RunView& run) {
  const std::optional<RooflinePoint> point = input.data.point(run);
  if (point && point->bound != Bound::unknown) {
    if (is_far_from_roofs(*point)) {
      return BoundRun{&run, Bound::unknown,
                      fmt::format("{} of its nearest roof, {},", percent_text(*point->efficiency()),
                                  point->bound_text()),
                      point->bound_share, true};
    }
    return BoundRun{&run, point->bound, point->bound_text(), point->bound_share};
  }
  const std::optional<double> waits = wait_share(run);
  if (!waits || input.hypothesis.of != "data") return std::nullopt;
  if (*waits > kMostOfTheTime) return BoundRun{&run, Bound::data, "data", *waits};
  return BoundRun{&run, Bound::unknown, "not data", 1.0 - *waits};
}

void tell_bounds(Prose& text, const JudgeInput& input, const std::vector<BoundRun>& runs) {
  constexpr std::size_t kSome = 4;
  for (std::size_t i = 0; i < std::min(runs.size(), kSome); ++i) {
    text.say(fmt::format("{}{}: {} for {} of its time", i == 0 ? "" : "; ",
                         place(input, *runs[i].run), runs[i].name, percent_text(runs[i].share)),
             {runs[i].run->run.id});
  }
  if (runs.size() > kSome) text.say(fmt::format("; and {} more", runs.size() - kSome));
}

}  // namespace

Answer judge_bound(const JudgeInput& input) {
  std::vector<BoundRun> by_it, by_other, mixed;
  for (const RunView* run : input.runs) {
    if (!fits(input.data, *run, input.hypothesis.than)) continue;
    const std::optional<BoundRun> found = bound_of(input, *run);
    if (!found) continue;
    if (found->share < kMostOfTheTime || (found->bound == Bound::unknown && found->far)) {
      mixed.push_back(*found);
    } else if (name_of(found->bound) == input.hypothesis.of) {
      by_it.push_back(*found);
    } else {
      by_other.push_back(*found);
    }
  }
  const std::size_t all = by_it.size() + by_other.size() + mixed.size();
  if (all == 0) return not_measured("ceilings or step times of these runs");
  Answer answer;
  Prose& text = answer.evidence;
  text.say(fmt::format("Bound by {} are {} of {} with roofs", input.hypothesis.of, by_it.size(),
                       count_words(all, "run")));
  if (!by_it.empty()) {
    text.say(": ");
    tell_bounds(text, input, by_it);
  }
  text.say(".");
  const auto tell = [&](const char* head, const std::vector<BoundRun>& runs) {
    if (runs.empty()) return;
    Prose more;
    more.say(head);
    tell_bounds(more, input, runs);
    more.say(".");
    text.add(more);
  };
  tell("Bound by something else: ", by_other);
  tell("By nothing that has a roof, or not for most of the time: ", mixed);
  answer.outcome = !by_other.empty() ? Outcome::not_confirmed
                   : !mixed.empty()  ? Outcome::undecided
                                     : Outcome::confirmed;
  return answer;
}

namespace {

// Executors are the same when they differ by no more than this, and for certain by less than twice.
constexpr double kAccuracyMargin = 0.01;

struct Reached {
  const RunView* run = nullptr;
  double accuracy = 0.0, samples = 0.0;
};

std::optional<Reached> reached(const RunView& run) {
  const EpochRecord* last = last_tested(run);
  if (last == nullptr) return std::nullopt;
  return Reached{&run, *last->test_accuracy, tested_samples(run)};
}

// Of one accuracy, as a share of right answers.
double variance(const Reached& of) { return of.accuracy * (1.0 - of.accuracy) / of.samples; }

}  // namespace

Answer judge_same_accuracy(const JudgeInput& input) {
  std::vector<std::vector<Reached>> groups;
  Runs guessing;
  for (const RunView* run : input.runs) {
    if (!fits(input.data, *run, input.hypothesis.of)) continue;
    const std::optional<Reached> found = reached(*run);
    if (!found) continue;
    // Networks that guess agree about nothing.
    if (at_chance(*run, found->accuracy)) {
      guessing.push_back(run);
      continue;
    }
    const auto group = std::ranges::find_if(groups, [&](const auto& each) {
      return comparable(*each.front().run, *run) &&
             each.front().run->epochs.size() == run->epochs.size();
    });
    if (group == groups.end()) {
      groups.push_back({*found});
    } else {
      group->push_back(*found);
    }
  }
  std::erase_if(groups, [](const auto& group) { return group.size() < 2; });
  if (groups.empty()) {
    Answer answer = not_measured("accuracies of two executors after the same training");
    if (!guessing.empty()) {
      Prose text;
      text.say("At chance, and so no evidence: ");
      text.say(count_words(guessing.size(), "training"), ids_of(guessing));
      text.say(".");
      answer.evidence.add(text);
    }
    return answer;
  }
  Answer answer;
  std::vector<Outcome> outcomes;
  const double z = normal_quantile(0.995);
  for (const std::vector<Reached>& group : groups) {
    const auto [least, most] = std::ranges::minmax_element(group, {}, &Reached::accuracy);
    const double difference = most->accuracy - least->accuracy;
    const double reach = z * std::sqrt(variance(*most) + variance(*least));
    const bool same = difference <= kAccuracyMargin && difference + reach <= 2.0 * kAccuracyMargin;
    const bool differ = difference > kAccuracyMargin && difference - reach > 0.0;
    outcomes.push_back(same     ? Outcome::confirmed
                       : differ ? Outcome::not_confirmed
                                : Outcome::undecided);
    Prose text;
    text.say(input.wording.work(*least->run) + ": from ");
    text.say(fmt::format("{} ({})", percent_text(least->accuracy), place(input, *least->run)),
             {least->run->run.id});
    text.say(" to ");
    text.say(fmt::format("{} ({})", percent_text(most->accuracy), place(input, *most->run)),
             {most->run->run.id});
    text.say(fmt::format(" over {}, a difference of {} ± {} percentage points{}.",
                         count_words(group.size(), "executor"), number_text(100.0 * difference, 2),
                         number_text(100.0 * reach, 2),
                         same     ? ""
                         : differ ? ": they differ"
                                  : ", too wide to tell"));
    answer.evidence.add(text);
  }
  answer.outcome = combined(outcomes);
  return answer;
}

}  // namespace ridgeline::report
