// What limits the runs.

#include <algorithm>
#include <map>

#include "analysis/stats/summary.h"
#include "base/error.h"
#include "report/analysis/places.h"
#include "report/analysis/text.h"
#include "report/flags.h"

namespace ridgeline::report {
namespace {

struct Placed {
  const RunView* run = nullptr;
  RooflinePoint point;
};

// A profile stands in only where nothing else measured the same there.
bool is_needed(const TextInput& input, const RunView& run) {
  return run.run.command != "profile" ||
         std::ranges::none_of(input.timed, [&](const RunView* other) {
           return same_place(*other, run) && other->run.work == run.run.work;
         });
}

std::vector<Placed> placed_runs(const TextInput& input) {
  std::vector<Placed> found;
  for (const RunView* run : input.runs) {
    if (!is_needed(input, *run)) continue;
    const std::optional<RooflinePoint> point = input.data.point(*run);
    // Above a roof nothing is known but that something is wrong.
    if (!point || point->bound == Bound::unknown || !point->efficiency()) continue;
    if (*point->efficiency() > 1.0 + kRoofTolerance) continue;
    found.push_back({run, *point});
  }
  return found;
}

// What holds a run back in first place: a roof that it comes near to, or what keeps it from there.
std::string limit_of(const Placed& placed) {
  switch (placed.point.bound) {
    case Bound::launch:
      return "starting kernels";
    case Bound::data:
      return "waiting for data";
    case Bound::link:
      return "exchanging gradients";
    case Bound::memory:
    case Bound::compute:
      break;
    case Bound::unknown:
      return "nothing known";
  }
  if (is_far_from_roofs(placed.point)) return "none of the roofs";
  return placed.point.bound == Bound::memory ? "memory bandwidth" : "computing";
}

Sentence bounds_sentence(const TextInput& input, const std::vector<Placed>& placed) {
  if (placed.empty()) return std::nullopt;
  std::map<std::string, Runs> limits;
  for (const Placed& each : placed) limits[limit_of(each)].push_back(each.run);
  Prose text;
  if (placed.size() == 1) {
    const RooflinePoint& point = placed.front().point;
    text.say(run_words(input, *placed.front().run), {placed.front().run->run.id});
    text.say(
        fmt::format(" is limited by {} for {} of its time and reaches {} of what its roofs "
                    "allow.",
                    limit_of(placed.front()), percent_text(point.bound_share),
                    percent_text(*point.efficiency())));
    return text;
  }
  text.say(limits.size() == 1 ? "All " : "Of ");
  text.say(fmt::format("{} under known roofs", count_words(placed.size(), "run")),
           limits.size() == 1 ? ids_of(limits.begin()->second) : std::vector<RunId>{});
  text.say(limits.size() == 1 ? " are limited by " : ", ");
  std::size_t told = 0;
  for (const auto& [limit, runs] : limits) {
    if (limits.size() > 1) {
      text.say(told == 0 ? "" : told + 1 == limits.size() ? " and " : ", ");
      text.say(fmt::format("{}", runs.size()), ids_of(runs));
      text.say(told > 0 ? " by " : runs.size() == 1 ? " is limited by " : " are limited by ");
    }
    text.say(limit);
    ++told;
  }
  text.say(" for the largest part of the time");
  if (limits.contains("none of the roofs")) {
    text.say(fmt::format(" (none of the roofs: less than {} of the nearest is reached)",
                         limit_text(kFarFromRoofs)));
  }
  text.say(".");
  return text;
}

Sentence efficiency_sentence(const TextInput& input, const std::vector<Placed>& placed) {
  if (placed.size() < 2) return std::nullopt;
  const auto less = [](const Placed& a, const Placed& b) {
    return *a.point.efficiency() < *b.point.efficiency();
  };
  const auto [least, most] = std::ranges::minmax_element(placed, less);
  std::vector<double> shares;
  for (const Placed& each : placed) shares.push_back(*each.point.efficiency());
  return Prose()
      .say(fmt::format("Half of the runs reach less than {} of what the hardware allows; the best "
                       "reaches ",
                       percent_text(median_of(shares))))
      .say(fmt::format("{} ({})", percent_text(*most->point.efficiency()),
                       run_words(input, *most->run)),
           {most->run->run.id})
      .say(", the lowest ")
      .say(fmt::format("{} ({})", percent_text(*least->point.efficiency()),
                       run_words(input, *least->run)),
           {least->run->run.id})
      .say(".");
}

// The kind of operation where the most time could be won.
Sentence lost_sentence(const TextInput& input, const Placed& placed) {
  const std::vector<StepTime> steps = input.data.store().steps(placed.run->run.id);
  if (steps.size() < 3) return std::nullopt;
  double all = 0.0, most = 0.0;
  std::optional<RooflinePoint> worst;
  for (const RooflinePoint& point : points_of(steps, input.data.roofs(*placed.run), Grouping::op)) {
    all += point.seconds;
    if (!point.least_seconds || point.seconds - *point.least_seconds <= most) continue;
    most = point.seconds - *point.least_seconds;
    worst = point;
  }
  if (!worst || all <= 0.0) return std::nullopt;
  return Prose()
      .say("In ")
      .say(run_words(input, *placed.run), {placed.run->run.id})
      .say(fmt::format(", {} loses the most: {} of the steps' time at {} of its roofs.",
                       worst->name, percent_text(worst->seconds / all),
                       percent_text(*worst->least_seconds / worst->seconds)));
}

// On each device the run with the most work: that is where it pays to look.
std::vector<Sentence> lost_sentences(const TextInput& input, const std::vector<Placed>& placed) {
  std::map<Place, const Placed*> heaviest;
  for (const Placed& each : placed) {
    const Placed*& known = heaviest[place_of(*each.run)];
    if (known == nullptr || each.point.work_flops > known->point.work_flops) known = &each;
  }
  std::vector<Sentence> sentences;
  for (const auto& [place, each] : heaviest) sentences.push_back(lost_sentence(input, *each));
  return sentences;
}

// Runs that had a loader, and how long they waited for it.
Sentence data_sentence(const TextInput& input) {
  Runs known, waiting;
  const RunView* longest = nullptr;
  for (const RunView* run : input.runs) {
    const auto share = wait_share(*run);
    if (!share) continue;
    known.push_back(run);
    if (*share > kLoaderShare) waiting.push_back(run);
    if (longest == nullptr || *share > *wait_share(*longest)) longest = run;
  }
  if (known.empty()) return std::nullopt;
  const std::string most = percent_text(*wait_share(*longest));
  Prose text;
  if (waiting.empty()) {
    text.say("None of ");
    text.say(count_words(known.size(), "run") + " with a loader", ids_of(known));
    text.say(fmt::format(" waited for data for more than {} of its time.", most));
    if (known.size() == 1) {
      Prose one;
      one.say(run_words(input, *longest), {longest->run.id});
      one.say(fmt::format(" waited for data for {} of its time.", most));
      return one;
    }
    return text;
  }
  text.say(fmt::format("Of {} with a loader, ", count_words(known.size(), "run")));
  text.say(fmt::format("{} waited", waiting.size()), ids_of(waiting));
  text.say(
      fmt::format(" for data for more than {} of the time, {} the longest with {}: there the "
                  "loader sets the speed, not the device.",
                  limit_text(kLoaderShare), run_words(input, *longest), most));
  return text;
}

// What profiles saw.
Sentence breakdown_sentence(const TextInput& input) {
  std::vector<std::pair<const RunView*, double>> kernels;
  for (const RunView* run : input.runs) {
    const auto kernel = run->number("breakdown_kernel_seconds"),
               all = run->number("profiled_seconds");
    if (kernel && all && *all > 0.0) kernels.emplace_back(run, *kernel / *all);
  }
  if (kernels.empty()) return std::nullopt;
  Prose text;
  text.say("In a profiled iteration the device computes during ");
  for (std::size_t i = 0; i < std::min<std::size_t>(kernels.size(), 4); ++i) {
    text.say(fmt::format("{}{} ({})", i == 0 ? "" : ", ", percent_text(kernels[i].second),
                         run_words(input, *kernels[i].first)),
             {kernels[i].first->run.id});
  }
  text.say(" of the time.");
  return text;
}

}  // namespace

std::vector<Sentence> bottlenecks(const TextInput& input) {
  const std::vector<Placed> placed = placed_runs(input);
  std::vector<Sentence> sentences = {bounds_sentence(input, placed),
                                     efficiency_sentence(input, placed)};
  for (Sentence& sentence : lost_sentences(input, placed)) {
    sentences.push_back(std::move(sentence));
  }
  sentences.push_back(data_sentence(input));
  sentences.push_back(breakdown_sentence(input));
  return sentences;
}

}  // namespace ridgeline::report
