// What the same work takes elsewhere: on other machines and devices, by other executors.

#include <algorithm>
#include <map>
#include <set>

#include "base/error.h"
#include "base/text.h"
#include "peers/peer_name.h"
#include "report/analysis/estimates.h"
#include "report/analysis/places.h"
#include "report/analysis/text.h"

namespace ridgeline::report {
namespace {

// "all 3", "both", "2 of 3"
std::string part_words(std::size_t part, std::size_t all) {
  if (part < all) return fmt::format("{} of {}", part, all);
  return all == 2 ? "both" : fmt::format("all {}", all);
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

// "from 3.1× [3.0–3.2] for mlp to 41.2× [40–42] for resnet50 (batch 128)": the ends of a list.
void say_range(const TextInput& input, Prose& text, const std::vector<Ratio>& sorted) {
  const auto say = [&](const char* begin, const Ratio& ratio) {
    text.say(begin + fmt::format("{} for {}", times_text(ratio), input.wording.work(*ratio.of)),
             runs_of(ratio));
  };
  say(sorted.size() > 1 ? "from " : "", sorted.front());
  if (sorted.size() > 1) {
    text.say(" ");
    say("to ", sorted.back());
  }
}

std::vector<RunId> runs_of_all(const std::vector<Ratio>& ratios) {
  std::vector<RunId> runs;
  for (const Ratio& ratio : ratios) {
    for (const RunId run : runs_of(ratio)) runs.push_back(run);
  }
  return runs;
}

void say_count(Prose& text, const std::vector<Ratio>& ratios, const char* what) {
  if (ratios.empty()) return;
  text.say("; ").say(
      fmt::format("{} {} {}", ratios.size(), ratios.size() == 1 ? "is" : "are", what),
      runs_of_all(ratios));
}

// "1.1 to 30 times as fast": the ends of a list.
std::string range_words(const std::vector<Ratio>& sorted) {
  const std::string low = number_text(sorted.front().speedup, 2),
                    high = number_text(sorted.back().speedup, 2);
  return (low == high ? low : low + " to " + high) + " times as fast";
}

std::map<Place, Runs> by_place(const Runs& runs) {
  std::map<Place, Runs> places;
  for (const RunView* run : runs) places[place_of(*run)].push_back(run);
  return places;
}

}  // namespace

std::vector<Ratio> with(const std::vector<Ratio>& ratios, Verdict verdict) {
  std::vector<Ratio> found;
  for (const Ratio& ratio : ratios) {
    if (ratio.verdict == verdict) found.push_back(ratio);
  }
  std::ranges::stable_sort(found, {}, &Ratio::speedup);
  return found;
}

std::vector<Contest> device_contests(const TextInput& input) {
  std::map<std::pair<Place, Place>, std::vector<Ratio>> pairs;
  for (const Runs& alike : by_work(input.timed)) {
    const std::map<Place, Runs> places = by_place(alike);
    for (const auto& [a, runs_a] : places) {
      for (const auto& [b, runs_b] : places) {
        if (!(a < b)) continue;
        const RunView *best_a = fastest_of(runs_a), *best_b = fastest_of(runs_b);
        if (best_a == nullptr || best_b == nullptr) continue;
        if (const auto ratio = input.data.ratios().of(*best_a, *best_b))
          pairs[{a, b}].push_back(*ratio);
      }
    }
  }
  std::vector<Contest> found;
  for (auto& [places, ratios] : pairs) {
    Contest contest{"", place_words(input, places.first), place_words(input, places.second),
                    std::move(ratios)};
    std::vector<double> values;
    for (const Ratio& ratio : contest.ratios) values.push_back(ratio.speedup);
    if (geometric_mean(values).value < 1.0) {
      std::swap(contest.of, contest.than);
      for (Ratio& ratio : contest.ratios) ratio = reversed(ratio);
    }
    found.push_back(std::move(contest));
  }
  return found;
}

std::vector<Contest> peer_contests(const TextInput& input) {
  std::vector<Contest> found;
  for (const auto& [place, here] : by_place(input.timed)) {
    Contest contest{fmt::format("On {}, ", place_words(input, place)), "Ridgeline", "", {}};
    std::set<std::string> peers;
    for (const Runs& alike : by_work(here)) {
      Runs own, others;
      for (const RunView* run : alike) {
        (is_peer(run->run.executor.backend) ? others : own).push_back(run);
      }
      const RunView *best = fastest_of(own), *peer = fastest_of(others);
      if (best == nullptr || peer == nullptr) continue;
      const auto ratio = input.data.ratios().of(*best, *peer);
      if (!ratio) continue;
      contest.ratios.push_back(*ratio);
      for (const RunView* run : others) peers.insert(run->run.executor.backend);
    }
    contest.than = list_text({peers.begin(), peers.end()});
    if (peers.size() > 1) contest.than = "the fastest of " + contest.than;
    if (!contest.ratios.empty()) found.push_back(std::move(contest));
  }
  return found;
}

namespace {

// The pairs that were lost, told so that their ratios are above 1.
std::vector<Ratio> lost_pairs(const std::vector<Ratio>& all) {
  std::vector<Ratio> slower = with(all, Verdict::slower);
  for (Ratio& ratio : slower) ratio = reversed(ratio);
  std::ranges::reverse(slower);
  return slower;
}

}  // namespace

Sentence contest_sentence(const TextInput& input, const Contest& contest) {
  const std::vector<Ratio>& all = contest.ratios;
  const std::vector<Ratio> faster = with(all, Verdict::faster), slower = lost_pairs(all);
  if (faster.empty() && slower.empty()) return std::nullopt;
  Prose text;
  if (all.size() == 1) {
    const Ratio& ratio = slower.empty() ? faster.front() : slower.front();
    const auto& [winner, loser] =
        slower.empty() ? std::pair(contest.of, contest.than) : std::pair(contest.than, contest.of);
    text.say(fmt::format("{}{} is ", contest.where, winner));
    text.say(fmt::format("{} as fast as {} for {}", times_text(ratio), loser,
                         input.wording.work(*ratio.of)),
             runs_of(ratio));
    const std::string of = input.wording.executor(*ratio.of),
                      than = input.wording.executor(*ratio.than);
    if (of != winner || than != loser) text.say(fmt::format(" ({} against {})", of, than));
    text.say(".");
    return text;
  }
  const std::vector<Ratio>& told = faster.empty() ? slower : faster;
  text.say(fmt::format("{}{} is {} than {} for {} kinds of work that both did: ", contest.where,
                       contest.of, faster.empty() ? "slower" : "faster", contest.than,
                       part_words(told.size(), all.size())));
  if (faster.empty()) text.say(fmt::format("{} is ", contest.than));
  say_range(input, text, told);
  if (faster.empty()) text.say(" as fast");
  if (!faster.empty() && !slower.empty()) {
    text.say(fmt::format("; it is slower for {}, where {} is ", slower.size(), contest.than));
    say_range(input, text, slower);
    text.say(" as fast");
  }
  say_count(text, with(all, Verdict::same), "equally fast");
  say_count(text, with(all, Verdict::undecided), "undecided");
  text.say(".");
  return text;
}

Sentence brief_contest_sentence(const TextInput& input, const Contest& contest) {
  const std::vector<Ratio>& all = contest.ratios;
  const std::vector<Ratio> faster = with(all, Verdict::faster), slower = lost_pairs(all);
  if (all.size() == 1 || (faster.empty() && slower.empty())) {
    return contest_sentence(input, contest);
  }
  const std::vector<Ratio>& told = faster.empty() ? slower : faster;
  const auto& [winner, loser] =
      faster.empty() ? std::pair(contest.than, contest.of) : std::pair(contest.of, contest.than);
  Prose text;
  text.say(fmt::format("{}{} is ", contest.where, winner));
  text.say(range_words(told), runs_of_all(told));
  text.say(fmt::format(" as {} in {} kinds of work that both did", loser,
                       part_words(told.size(), all.size())));
  if (!faster.empty() && !slower.empty()) {
    text.say("; ").say(fmt::format("{} is {} in {}", loser, range_words(slower), slower.size()),
                       runs_of_all(slower));
  }
  say_count(text, with(all, Verdict::same), "equally fast");
  say_count(text, with(all, Verdict::undecided), "undecided");
  const auto doubtful =
      std::ranges::count_if(told, [](const Ratio& ratio) { return !ratio.doubts.empty(); });
  if (doubtful > 0) {
    text.say(fmt::format("; {} of these factors {} doubtful, the comparisons say why", doubtful,
                         doubtful == 1 ? "is" : "are"));
  }
  text.say(".");
  return text;
}

namespace {

// What the hardware leads to expect, beside what was measured.
Sentence ceiling_sentence(const TextInput& input, const Contest& pair) {
  const auto roofs = [&](const RunView& run) {
    return roofs_of(input.data.machine_of(run).ceilings, run.run.executor.device, 0);
  };
  const Roofs fast = roofs(*pair.ratios.front().of), slow = roofs(*pair.ratios.front().than);
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

// On one device: the executor that is the fastest most often against each of the others.
std::vector<Contest> executor_contests(const TextInput& input, const Place& place,
                                       const std::vector<Runs>& works) {
  std::map<std::string, std::size_t> wins;
  for (const Runs& alike : works) {
    const RunView* best = fastest_of(alike);
    if (best != nullptr && alike.size() > 1) ++wins[input.wording.executor(*best)];
  }
  if (wins.empty()) return {};
  const std::string leader =
      std::ranges::max_element(wins, {}, [](const auto& each) { return each.second; })->first;
  std::map<std::string, Contest> others;
  for (const Runs& alike : works) {
    const auto own = std::ranges::find_if(
        alike, [&](const RunView* run) { return input.wording.executor(*run) == leader; });
    if (own == alike.end()) continue;
    for (const RunView* run : alike) {
      const auto ratio = run == *own ? std::nullopt : input.data.ratios().of(**own, *run);
      if (!ratio) continue;
      const std::string name = input.wording.executor(*run);
      Contest& contest = others[name];
      contest.where = fmt::format("On {}, ", place_words(input, place));
      contest.of = leader;
      contest.than = name;
      contest.ratios.push_back(*ratio);
    }
  }
  std::vector<Contest> contests;
  for (auto& [name, contest] : others) contests.push_back(std::move(contest));
  return contests;
}

}  // namespace

std::vector<Sentence> environment_impact(const TextInput& input) {
  std::vector<Sentence> sentences;
  for (const Contest& contest : device_contests(input)) {
    sentences.push_back(contest_sentence(input, contest));
    if (sentences.back()) sentences.push_back(ceiling_sentence(input, contest));
  }
  return sentences;
}

std::vector<Sentence> executor_differences(const TextInput& input) {
  std::vector<Sentence> sentences;
  for (const auto& [place, runs] : by_place(input.timed)) {
    for (const Contest& contest : executor_contests(input, place, by_work(runs))) {
      sentences.push_back(contest_sentence(input, contest));
    }
  }
  return sentences;
}

}  // namespace ridgeline::report
