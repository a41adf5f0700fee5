// What the same work takes elsewhere: on other machines and devices, by other executors.

#include <algorithm>
#include <map>
#include <set>

#include "base/error.h"
#include "report/analysis/estimates.h"
#include "report/analysis/places.h"
#include "report/analysis/text.h"

namespace ridgeline::report {
namespace {

std::vector<RunId> runs_of(const Ratio& ratio) { return {ratio.of->run.id, ratio.than->run.id}; }

// Those with this verdict, the smallest speed-up first.
std::vector<Ratio> with(const std::vector<Ratio>& ratios, Verdict verdict) {
  std::vector<Ratio> found;
  for (const Ratio& ratio : ratios) {
    if (ratio.verdict == verdict) found.push_back(ratio);
  }
  std::ranges::stable_sort(found, {}, &Ratio::speedup);
  return found;
}

// "all 3", "both", "2 of 3"
std::string part_words(std::size_t part, std::size_t all) {
  if (part < all) return fmt::format("{} of {}", part, all);
  return all == 2 ? "both" : fmt::format("all {}", all);
}

// Between two devices: for each work that both did, the fastest of each against the other.
struct DevicePair {
  Place fast, slow;
  std::vector<Ratio> ratios;
};

std::vector<DevicePair> device_pairs(const TextInput& input) {
  std::map<std::pair<Place, Place>, std::vector<Ratio>> pairs;
  for (const auto& alike : by_work(input.timed)) {
    std::map<Place, Runs> places;
    for (const RunView* run : alike) places[place_of(*run)].push_back(run);
    for (const auto& [a, runs_a] : places) {
      for (const auto& [b, runs_b] : places) {
        if (!(a < b)) continue;
        const RunView *best_a = fastest_of(runs_a), *best_b = fastest_of(runs_b);
        if (best_a == nullptr || best_b == nullptr) continue;
        if (const auto ratio = input.ratios.of(*best_a, *best_b)) pairs[{a, b}].push_back(*ratio);
      }
    }
  }
  std::vector<DevicePair> found;
  for (auto& [places, ratios] : pairs) {
    DevicePair pair{places.first, places.second, std::move(ratios)};
    std::vector<double> values;
    for (const Ratio& ratio : pair.ratios) values.push_back(ratio.speedup);
    // The faster one in front.
    if (geometric_mean(values).value < 1.0) {
      std::swap(pair.fast, pair.slow);
      for (Ratio& ratio : pair.ratios) ratio = *input.ratios.of(*ratio.than, *ratio.of);
    }
    found.push_back(std::move(pair));
  }
  return found;
}

// "desk's cpu with 2 threads": where all of its runs had so many.
std::string place_words(const TextInput& input, const Place& place) {
  std::set<std::int64_t> threads;
  for (const RunView* run : input.timed) {
    if (place_of(*run) == place) threads.insert(run->run.executor.threads);
  }
  const std::string name = place_text(input.data, place);
  if (place.device != "cpu" || threads.size() != 1 || *threads.begin() < 1) return name;
  return fmt::format("{} with {} thread{}", name, *threads.begin(),
                     *threads.begin() == 1 ? "" : "s");
}

// "41.2× [40–42] for resnet50 (batch 128)"
std::string ratio_words(const TextInput& input, const Ratio& ratio) {
  return fmt::format("{} for {}", times_text(ratio), input.wording.work(*ratio.of));
}

Sentence pair_sentence(const TextInput& input, const DevicePair& pair) {
  const std::string fast = place_words(input, pair.fast), slow = place_words(input, pair.slow);
  Prose text;
  if (pair.ratios.size() == 1) {
    const Ratio& ratio = pair.ratios.front();
    if (ratio.verdict != Verdict::faster) return std::nullopt;
    text.say(fmt::format("{} is ", fast));
    text.say(fmt::format("{} as fast as {} for {}", times_text(ratio), slow,
                         input.wording.work(*ratio.of)),
             runs_of(ratio));
    text.say(fmt::format(" ({} against {}).", input.wording.executor(*ratio.of),
                         input.wording.executor(*ratio.than)));
    return text;
  }
  const std::vector<Ratio> faster = with(pair.ratios, Verdict::faster),
                           slower = with(pair.ratios, Verdict::slower);
  if (faster.empty()) return std::nullopt;
  text.say(
      fmt::format("{} is faster than {} for {} that both did: ", fast, slow,
                  faster.size() == pair.ratios.size()
                      ? fmt::format("each of the {} kinds of work", faster.size())
                      : fmt::format("{} of {} kinds of work", faster.size(), pair.ratios.size())));
  text.say((faster.size() > 1 ? "from " : "") + ratio_words(input, faster.front()),
           runs_of(faster.front()));
  if (faster.size() > 1) {
    text.say(" to ");
    text.say(ratio_words(input, faster.back()), runs_of(faster.back()));
  }
  if (!slower.empty()) {
    text.say(fmt::format("; it is slower for {}, down to ", slower.size()));
    text.say(ratio_words(input, slower.front()), runs_of(slower.front()));
  }
  if (const std::size_t same = with(pair.ratios, Verdict::same).size(); same > 0) {
    text.say(fmt::format("; both are equally fast for {}", same));
  }
  if (const auto open = with(pair.ratios, Verdict::undecided); !open.empty()) {
    std::vector<RunId> runs;
    for (const Ratio& ratio : open) {
      for (const RunId run : runs_of(ratio)) runs.push_back(run);
    }
    text.say("; ");
    text.say(fmt::format("{} {} undecided", open.size(), open.size() == 1 ? "is" : "are"), runs);
  }
  text.say(".");
  return text;
}

// What the hardware leads to expect, beside what was measured.
Sentence ceiling_sentence(const TextInput& input, const DevicePair& pair) {
  const auto roofs = [&](const Place& place) {
    return roofs_of(input.data.machines()[place.machine].ceilings, place.device, 0);
  };
  const Roofs fast = roofs(pair.fast), slow = roofs(pair.slow);
  if (fast.empty() || slow.empty()) return std::nullopt;
  const ComputeRoof *compute = fast.find_compute("fp32"), *than = slow.find_compute("fp32");
  if (compute == nullptr || than == nullptr) return std::nullopt;
  const double computing = compute->flops_per_second / than->flops_per_second;
  const double memory = fast.memory.back().bytes_per_second / slow.memory.back().bytes_per_second;
  Prose text;
  text.say(
      fmt::format("Its measured ceilings are {}× as high in fp32 computing and {}× in memory "
                  "bandwidth",
                  number_text(computing), number_text(memory)));
  std::vector<const Ratio*> below;
  const double least = std::min(computing, memory);
  for (const Ratio& ratio : pair.ratios) {
    if (ratio.of->run.work.precision == "fp32" && ratio.high < least) below.push_back(&ratio);
  }
  if (below.empty()) {
    text.say(".");
    return text;
  }
  std::vector<RunId> runs;
  std::vector<std::string> names;
  for (const Ratio* ratio : below) {
    for (const RunId run : runs_of(*ratio)) runs.push_back(run);
    names.push_back(input.wording.work(*ratio->of));
  }
  text.say("; ");
  text.say(list_text(names, 3), runs);
  text.say(fmt::format(" {} less than either: these ceilings alone do not explain it.",
                       names.size() == 1 ? "gains" : "gain"));
  return text;
}

// Executors on one device: the one that is the fastest most often against each of the others.
struct Contest {
  std::string leader;
  std::size_t wins = 0, works = 0;
  std::map<std::string, std::vector<Ratio>> others;  // executor: the leader's speed-ups over it
};

Contest contest_on(const TextInput& input, const std::vector<Runs>& works) {
  std::map<std::string, std::size_t> wins;
  Contest contest;
  for (const auto& alike : works) {
    const RunView* best = fastest_of(alike);
    if (best == nullptr || alike.size() < 2) continue;
    ++contest.works;
    ++wins[input.wording.executor(*best)];
  }
  for (const auto& [executor, count] : wins) {
    if (count > contest.wins) {
      contest.leader = executor;
      contest.wins = count;
    }
  }
  for (const auto& alike : works) {
    const auto leader = std::ranges::find_if(
        alike, [&](const RunView* run) { return input.wording.executor(*run) == contest.leader; });
    if (leader == alike.end()) continue;
    for (const RunView* run : alike) {
      if (run == *leader) continue;
      if (const auto ratio = input.ratios.of(**leader, *run)) {
        contest.others[input.wording.executor(*run)].push_back(*ratio);
      }
    }
  }
  return contest;
}

Sentence contest_sentence(const TextInput& input, const Place& place, const Contest& contest) {
  if (contest.works == 0 || contest.others.empty()) return std::nullopt;
  Prose text;
  bool first = true, shown = false;
  const std::string where = place_words(input, place);
  for (const auto& [executor, ratios] : contest.others) {
    const std::vector<Ratio> faster = with(ratios, Verdict::faster),
                             slower = with(ratios, Verdict::slower);
    if (faster.empty() && slower.empty()) continue;
    shown = true;
    text.say(first ? fmt::format("On {}, {} is ", where, contest.leader) : std::string("; it is "));
    first = false;
    if (ratios.size() == 1) {
      const Ratio& one = ratios.front();
      text.say(fmt::format("{} as fast as {} for {}", times_text(one), executor,
                           input.wording.work(*one.of)),
               runs_of(one));
      continue;
    }
    if (!faster.empty()) {
      text.say(fmt::format("faster than {} for {} kinds of work (", executor,
                           part_words(faster.size(), ratios.size())));
      text.say((faster.size() > 1 ? "up to " : "") + ratio_words(input, faster.back()),
               runs_of(faster.back()));
      text.say(")");
    }
    if (!slower.empty()) {
      text.say(faster.empty() ? fmt::format("slower than {} for {} kinds of work (", executor,
                                            part_words(slower.size(), ratios.size()))
                              : fmt::format(" and slower for {} (", slower.size()));
      text.say((slower.size() > 1 ? "down to " : "") + ratio_words(input, slower.front()),
               runs_of(slower.front()));
      text.say(")");
    }
  }
  if (!shown) return std::nullopt;
  text.say(".");
  return text;
}

}  // namespace

std::vector<Sentence> environment_impact(const TextInput& input) {
  std::vector<Sentence> sentences;
  for (const DevicePair& pair : device_pairs(input)) {
    sentences.push_back(pair_sentence(input, pair));
    if (sentences.back()) sentences.push_back(ceiling_sentence(input, pair));
  }
  return sentences;
}

std::vector<Sentence> executor_differences(const TextInput& input) {
  std::map<Place, Runs> places;
  for (const RunView* run : input.timed) places[place_of(*run)].push_back(run);
  std::vector<Sentence> sentences;
  for (const auto& [place, runs] : places) {
    sentences.push_back(contest_sentence(input, place, contest_on(input, by_work(runs))));
  }
  return sentences;
}

}  // namespace ridgeline::report
