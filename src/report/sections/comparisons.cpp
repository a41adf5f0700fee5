// Runs of the same work compared, with verdicts, and why the widest gaps are there.

#include <algorithm>
#include <cmath>
#include <functional>
#include <map>
#include <set>

#include "analysis/compare/gap.h"
#include "base/error.h"
#include "report/analysis/places.h"
#include "report/analysis/prose.h"
#include "report/sections/sections.h"

namespace ridgeline::report {
namespace {

constexpr std::size_t kMostRows = 120, kLedgers = 3;

using Pair = std::pair<const RunView*, const RunView*>;  // the faster one first

// For each work the fastest of all against the fastest of each other device, and the fastest of
// each device against the others of that device.
std::vector<Pair> pairs_of(const Runs& runs) {
  std::vector<Pair> pairs;
  for (const auto& alike : by_work(runs)) {
    const RunView* best = fastest_of(alike);
    if (best == nullptr || alike.size() < 2) continue;
    std::map<Place, Runs> places;
    for (const RunView* run : alike) {
      if (run->seconds) places[place_of(*run)].push_back(run);
    }
    for (const auto& [place, here] : places) {
      const RunView* local = fastest_of(here);
      if (local != best) pairs.emplace_back(best, local);
    }
    for (const auto& [place, here] : places) {
      const RunView* local = fastest_of(here);
      for (const RunView* run : here) {
        if (run != local) pairs.emplace_back(local, run);
      }
    }
  }
  return pairs;
}

// Not more than a reader wants, the networks in turn; their order stays.
void cut_pairs(std::vector<Pair>& pairs) {
  std::map<std::string, std::size_t> taken;
  std::vector<std::pair<std::size_t, std::size_t>> turns;  // which of its network, which of all
  for (std::size_t i = 0; i < pairs.size(); ++i) {
    turns.emplace_back(taken[pairs[i].first->run.work.model]++, i);
  }
  std::ranges::sort(turns);
  turns.resize(std::min(turns.size(), kMostRows));
  std::set<std::size_t> kept;
  for (const auto& [turn, index] : turns) kept.insert(index);
  std::vector<Pair> chosen;
  for (const std::size_t index : kept) chosen.push_back(pairs[index]);
  pairs = std::move(chosen);
}

std::string how_text(const Ratio& ratio) {
  std::string text = ratio.side_by_side ? "side by side, " + ratio.basis
                     : ratio.floor_known
                         ? ratio.basis + " of different calls, with the noise of repeated runs"
                         : ratio.basis;
  return ratio.doubts.empty() ? text : fmt::format("{}; {}", text, ratio.doubts);
}

// The executor, and its machine where there are several.
std::string who_ran(const Data& data, const Wording& wording, const RunView& run,
                    const char* between) {
  const std::string executor = wording.executor(run);
  return data.machines().size() > 1 ? executor + between + data.machine_of(run).name : executor;
}

Table ratios_table(const SectionInput& input, const std::vector<Ratio>& ratios,
                   const Wording& wording) {
  Table table;
  table.id = "comparisons-ratios";
  table.title = "Runs of the same work compared";
  table.caption =
      "How many times as fast the first is as the second, by synchronised iterations, with a "
      "99% interval.";
  table.columns = {{.title = "work"},
                   {.title = "first"},
                   {.title = "second"},
                   {.title = "speed-up",
                    .unit = "×",
                    .number = true,
                    .meaning = "Median time of the second over that of the first, 99% interval"},
                   {.title = "verdict", .meaning = "Of the first: faster, slower, same, undecided"},
                   {.title = "measured"}};
  const auto who = [&](const RunView& run) { return who_ran(input.data, wording, run, ", "); };
  for (const Ratio& ratio : ratios) {
    const std::vector<RunId> runs = {ratio.of->run.id, ratio.than->run.id};
    std::vector<Cell> row = {words(wording.work(*ratio.of)),
                             words(who(*ratio.of)),
                             words(who(*ratio.than)),
                             interval(ratio.speedup, ratio.low, ratio.high, runs),
                             words(std::string(name_of(ratio.verdict))),
                             words(how_text(ratio))};
    if (!ratio.sound) row[3] = noted(table, std::move(row[3]), kRangeNote);
    table.rows.push_back(std::move(row));
  }
  return table;
}

// Whether a table of speed-ups of one of the studies has the pair.
bool is_shown(const SectionInput& input, const Ratio& ratio) {
  return std::ranges::any_of(input.studies, [&](const StudyView* study) {
    return has(study->runs, ratio.of) && has(study->runs, ratio.than) &&
           std::ranges::any_of(study->definition.exhibits, [&](const study::Exhibit& exhibit) {
             return exhibit.name == "speedups" && has(exhibit.parts, ratio.of->part) &&
                    has(exhibit.parts, ratio.than->part);
           });
  });
}

// What is known of one side for the ledger.
std::optional<GapSide> side_of(const Data& data, const RunView& run) {
  if (!run.seconds) return std::nullopt;
  const Store& store = data.store();
  const RunId id = run.run.id;
  std::vector<StepTime> steps = store.steps(id);
  if (steps.empty()) return std::nullopt;
  return gap_side(run.run, run.seconds->value, store.samples(id), std::move(steps),
                  store.readings(id), data.machine_of(run).ceilings);
}

// The widest gaps between sides whose steps were timed, of different kinds: one across devices of
// each pair of places, then on one device.
std::vector<const Ratio*> widest(const Data& data, const std::vector<Ratio>& ratios,
                                 const Wording& wording) {
  std::vector<const Ratio*> sorted;
  for (const Ratio& ratio : ratios) {
    const auto has_steps = [](const RunView& run) {
      return run.run.numbers.contains("step_sum_seconds");
    };
    if (ratio.verdict == Verdict::faster && has_steps(*ratio.of) && has_steps(*ratio.than)) {
      sorted.push_back(&ratio);
    }
  }
  std::ranges::stable_sort(sorted, std::greater{}, &Ratio::speedup);
  std::vector<const Ratio*> chosen;
  std::set<std::pair<std::string, std::string>> kinds;
  for (const Ratio* ratio : sorted) {
    const auto kind = [&](const RunView& run) {
      return place_text(data, place_of(run)) + " " + wording.executor(run);
    };
    if (chosen.size() < kLedgers && kinds.insert({kind(*ratio->of), kind(*ratio->than)}).second) {
      chosen.push_back(ratio);
    }
  }
  return chosen;
}

std::optional<Table> ledger_table(const Data& data, const Ratio& ratio, const Wording& wording,
                                  std::size_t number) {
  const auto fast = side_of(data, *ratio.of), slow = side_of(data, *ratio.than);
  if (!fast || !slow) return std::nullopt;
  const GapLedger ledger = gap_ledger(*fast, *slow);
  const auto who = [&](const RunView& run) { return who_ran(data, wording, run, " on "); };
  Table table;
  table.id = fmt::format("comparisons-gap-{}", number);
  table.title =
      fmt::format("Why {} takes {} times as long with {} as with {}", wording.work(*ratio.of),
                  number_text(ledger.ratio), who(*ratio.than), who(*ratio.of));
  table.caption =
      fmt::format("A is {}, B is {}. Factors above 1 make B slower; their product is the ratio.",
                  who(*ratio.of), who(*ratio.than));
  table.columns = {{.title = "factor"},
                   {.title = "of the ratio", .unit = "×", .number = true},
                   {.title = "evidence"}};
  const std::vector<RunId> runs = {ratio.of->run.id, ratio.than->run.id};
  for (const GapFactor& factor : ledger.factors) {
    table.rows.push_back(
        {words(factor.name), report::number(factor.factor, runs), words(factor.evidence)});
  }
  table.rows.push_back({words("product"), report::number(ledger.ratio, runs), words("")});
  return table;
}

Sentence tally_sentence(const std::vector<Ratio>& ratios) {
  if (ratios.size() < 2) return std::nullopt;
  std::map<Verdict, std::vector<RunId>> runs;
  for (const Ratio& ratio : ratios) {
    runs[ratio.verdict].push_back(ratio.of->run.id);
    runs[ratio.verdict].push_back(ratio.than->run.id);
  }
  Prose text;
  text.say(fmt::format("Of {} of runs that did the same work, the first is ",
                       count_words(ratios.size(), "comparison")));
  bool first = true;
  for (const auto& [verdict, ids] : runs) {
    if (!first) text.say(", ");
    text.say(fmt::format("{} in {}", verdict == Verdict::same ? "as fast" : name_of(verdict),
                         ids.size() / 2),
             ids);
    first = false;
  }
  text.say(".");
  return text;
}

}  // namespace

Section comparisons_section(const SectionInput& input) {
  Section section = titled("comparisons", "Comparisons");
  Runs runs = newest_of(shown_runs(input));
  // Iterations that were watched tell nothing of speed.
  std::erase_if(runs, [](const RunView* run) { return run->run.command == "profile"; });
  const Wording wording(runs);
  std::vector<Pair> pairs = pairs_of(runs);
  const std::size_t all = pairs.size();
  cut_pairs(pairs);
  std::vector<Ratio> ratios;
  for (const auto& [fast, slow] : pairs) {
    if (const auto ratio = input.data.ratios().of(*fast, *slow)) ratios.push_back(*ratio);
  }
  if (ratios.empty()) return section;
  if (const auto text = paragraph_of({tally_sentence(ratios)})) section.blocks.emplace_back(*text);
  Section rest = folded("comparisons-all", "All comparisons, and why the widest gaps are there");
  std::vector<Ratio> others = ratios;
  std::erase_if(others, [&](const Ratio& ratio) { return is_shown(input, ratio); });
  if (!others.empty()) rest.blocks.emplace_back(ratios_table(input, others, wording));
  if (others.size() < ratios.size()) {
    rest.blocks.emplace_back(
        Paragraph{{{.text = fmt::format("{} of {} comparisons are shown in the studies.",
                                        ratios.size() - others.size(), ratios.size())}}});
  }
  if (pairs.size() < all) {
    rest.blocks.emplace_back(Notice{
        .severity = "note",
        .name = "not all comparisons",
        .pieces = {{.text = fmt::format("{} of {} are shown, of each network the first ones; "
                                        "'ridgeline compare' takes any two runs.",
                                        pairs.size(), all)}}});
  }
  std::size_t number = 0;
  for (const Ratio* ratio : widest(input.data, ratios, wording)) {
    if (auto table = ledger_table(input.data, *ratio, wording, number + 1)) {
      rest.blocks.emplace_back(*std::move(table));
      ++number;
    }
  }
  section.sections.push_back(std::move(rest));
  return section;
}

}  // namespace ridgeline::report
