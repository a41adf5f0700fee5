// Networks beside each other, and what batches do to them.

#include <algorithm>
#include <cmath>
#include <functional>
#include <map>

#include "base/error.h"
#include "report/analysis/estimates.h"
#include "report/analysis/places.h"
#include "report/analysis/text.h"

namespace ridgeline::report {
namespace {

bool less_rate(const RunView* a, const RunView* b) { return a->rate->value < b->rate->value; }

// The largest set on each device of runs that differ by their networks alone.
std::vector<Runs> network_sets(const TextInput& input) {
  Runs timed = input.timed;
  std::erase_if(timed, [](const RunView* run) {
    return !run->rate || !run->seconds || run->seconds->samples < 2;
  });
  std::map<Place, Runs> largest;
  for (const Runs& runs : grouped(timed, {"model", "settings"})) {
    Runs& known = largest[place_of(*runs.front())];
    if (runs.size() > known.size()) known = runs;
  }
  std::vector<Runs> found;
  for (auto& [place, runs] : largest) {
    if (runs.size() > 1) found.push_back(std::move(runs));
  }
  return found;
}

std::string where_words(const TextInput& input, const RunView& run) {
  const std::string rest = input.wording.details(run, {"settings", "batch", "precision"});
  return fmt::format("On {} with {} at batch {}{}{}", place_text(input.data, place_of(run)),
                     input.wording.executor(run), run.run.work.batch, rest.empty() ? "" : ", ",
                     rest);
}

// The fastest and the slowest, and whether their FLOPs explain it.
Sentence rates_sentence(const TextInput& input, const Runs& runs) {
  const auto [slowest, fastest] = std::ranges::minmax_element(runs, less_rate);
  const Estimate ratio = ratio_of(*(*fastest)->rate, *(*slowest)->rate);
  const std::string doubts = doubts_of({*slowest, *fastest});
  if (!is_above_one(ratio, doubts)) return std::nullopt;
  Prose text;
  text.say(where_words(input, **fastest) + ", ");
  text.say(fmt::format("{} does {}", network_name(**fastest),
                       estimate_text(*(*fastest)->rate, "samples/s")),
           {(*fastest)->run.id});
  text.say(" and ");
  text.say(
      fmt::format("{} {}", network_name(**slowest), estimate_text(*(*slowest)->rate, "samples/s")),
      {(*slowest)->run.id});
  text.say(fmt::format(", {} apart{}", times_text(ratio),
                       doubts.empty() ? "" : fmt::format(" ({})", doubts)));
  const auto few = flops_of_sample(**fastest), many = flops_of_sample(**slowest);
  if (few && many && *many > *few) {
    text.say(fmt::format("; the FLOPs of a sample are {}× apart", number_text(*many / *few)));
  }
  text.say(".");
  return text;
}

// How fast FLOPs are done differs from network to network.
Sentence pace_sentence(const Runs& runs) {
  Runs known;
  for (const RunView* run : runs) {
    if (run->flops_per_second) known.push_back(run);
  }
  if (known.size() < 2) return std::nullopt;
  const auto less = [](const RunView* a, const RunView* b) {
    return *a->flops_per_second < *b->flops_per_second;
  };
  const auto [low, high] = std::ranges::minmax_element(known, less);
  // FLOPs are counted, so that the interval is that of the rates.
  const Estimate rates = ratio_of(*(*high)->rate, *(*low)->rate);
  const double ratio = *(*high)->flops_per_second / *(*low)->flops_per_second;
  const double least = doubts_of({*low, *high}).empty() ? 1.2 : kApart;
  if (ratio * rates.low / rates.value < least || !rates.sound()) return std::nullopt;
  return Prose()
      .say("The pace at which FLOPs are done differs: ")
      .say(fmt::format("{} reaches {}", network_name(**high),
                       rate_words(*(*high)->flops_per_second, "FLOP/s")),
           {(*high)->run.id})
      .say(", ")
      .say(fmt::format("{} {}", network_name(**low),
                       rate_words(*(*low)->flops_per_second, "FLOP/s")),
           {(*low)->run.id})
      .say(".");
}

}  // namespace

std::vector<Sentence> model_differences(const TextInput& input) {
  std::vector<Sentence> sentences;
  for (const auto& runs : network_sets(input)) {
    sentences.push_back(rates_sentence(input, runs));
    sentences.push_back(pace_sentence(runs));
  }
  return sentences;
}

std::vector<Runs> batch_sweeps(const TextInput& input) {
  std::map<std::string, std::map<std::int64_t, const RunView*>> lines;
  for (const RunView* run : input.timed) {
    if (!run->rate || run->seconds->samples < 2) continue;
    lines[run_key(off_axis(*run, "batch"))][run->run.work.batch] = run;
  }
  std::vector<Runs> sweeps;
  for (const auto& [key, batches] : lines) {
    if (batches.size() < 2) continue;
    Runs& sweep = sweeps.emplace_back();
    for (const auto& [batch, run] : batches) sweep.push_back(run);
  }
  std::ranges::stable_sort(sweeps, std::greater{}, &Runs::size);
  return sweeps;
}

namespace {

using Sweep = Runs;

// What tells the sweeps apart: "Inference of mlp with native on desk".
std::vector<std::string> names_of(const TextInput& input, const std::vector<Sweep>& sweeps) {
  std::vector<RunView> off;
  for (const Sweep& sweep : sweeps) off.push_back(off_axis(*sweep.front(), "batch"));
  Runs among;
  for (const RunView& run : off) among.push_back(&run);
  const Wording wording(among);
  std::vector<std::string> names;
  for (const RunView& run : off) {
    const std::string& kind = run.run.work.kind;
    names.push_back(fmt::format("{}{} on {}",
                                kind == "training" ? "" : sentence_case(kind) + " of ",
                                wording.run(run, {"kind"}), place_text(input.data, place_of(run))));
  }
  return names;
}

// Gain from the first batch to the last, and from where on there is none.
Sentence gain_sentence(const std::string& name, const Sweep& sweep) {
  const RunView &first = *sweep.front(), &last = *sweep.back();
  const Estimate gain = ratio_of(*last.rate, *first.rate);
  const std::string doubts = doubts_of(sweep);
  const bool grows = is_above_one(gain, doubts), falls = is_below_one(gain, doubts);
  Prose text;
  text.say(name + ": from batch ");
  text.say(
      fmt::format("{} to {} the rate {} from {} to {}", first.run.work.batch, last.run.work.batch,
                  grows   ? "rises"
                  : falls ? "falls"
                          : "goes",
                  estimate_text(*first.rate), estimate_text(*last.rate, "samples/s")),
      ids_of(sweep));
  text.say(gain.value < 1.0
               ? fmt::format(", {} less", times_text(ratio_of(*first.rate, *last.rate)))
               : fmt::format(", {}", times_text(gain)));
  if (!gain.sound()) {
    text.say(": too few samples to tell a gain");
  } else if (!grows && !falls) {
    text.say(": no gain is shown");
  }
  if (!doubts.empty()) text.say(fmt::format(" ({})", doubts));
  for (std::size_t i = 0; i + 2 < sweep.size() && grows; ++i) {
    // The first batch behind which nothing gains more than the margin, for certain.
    const bool over = std::all_of(
        sweep.begin() + static_cast<std::ptrdiff_t>(i) + 1, sweep.end(), [&](const RunView* later) {
          return ratio_of(*later->rate, *sweep[i]->rate).high < 1.0 + kTrendMargin;
        });
    if (!over) continue;
    text.say(fmt::format("; beyond batch {} nothing gains {} more", sweep[i]->run.work.batch,
                         limit_text(kTrendMargin)));
    break;
  }
  text.say(".");
  return text;
}

Sentence share_sentence(const TextInput& input, const Sweep& sweep) {
  const auto first = input.data.point(*sweep.front()), last = input.data.point(*sweep.back());
  if (!first || !last || !first->efficiency() || !last->efficiency()) return std::nullopt;
  Prose text;
  text.say("Its share of the roof goes from ");
  text.say(percent_text(*first->efficiency()), {sweep.front()->run.id});
  text.say(" to ");
  text.say(percent_text(*last->efficiency()), {sweep.back()->run.id});
  if (first->intensity() && last->intensity() &&
      std::abs(*last->intensity() / *first->intensity() - 1.0) > 0.01) {
    text.say(fmt::format(", its intensity from {} to {} FLOP/byte",
                         number_text(*first->intensity()), number_text(*last->intensity())));
  }
  text.say(".");
  return text;
}

// Planned memory is the same wherever it is planned: what a sample more costs.
Sentence memory_sentence(const Sweep& sweep) {
  const RunView &first = *sweep.front(), &last = *sweep.back();
  const auto small = first.number("planned_bytes"), large = last.number("planned_bytes");
  if (!small || !large || *large <= *small) return std::nullopt;
  const auto more = static_cast<double>(last.run.work.batch - first.run.work.batch);
  return Prose()
      .say("Each sample more in the batch takes ")
      .say(bytes_words((*large - *small) / more), {first.run.id, last.run.id})
      .say(" of memory.");
}

}  // namespace

std::vector<Sentence> batch_effects(const TextInput& input) {
  constexpr std::size_t kTold = 4;
  const std::vector<Sweep> sweeps = batch_sweeps(input);
  const std::vector<std::string> names = names_of(input, sweeps);
  std::vector<Sentence> sentences;
  for (std::size_t i = 0; i < std::min(sweeps.size(), kTold); ++i) {
    sentences.push_back(gain_sentence(names[i], sweeps[i]));
    sentences.push_back(share_sentence(input, sweeps[i]));
    if (i == 0) sentences.push_back(memory_sentence(sweeps[i]));
  }
  if (sweeps.size() > kTold) {
    std::vector<double> gains;
    std::vector<RunId> runs;
    for (std::size_t i = kTold; i < sweeps.size(); ++i) {
      gains.push_back(sweeps[i].back()->rate->value / sweeps[i].front()->rate->value);
      runs.push_back(sweeps[i].back()->run.id);
    }
    const auto [least, most] = std::ranges::minmax_element(gains);
    Prose text;
    text.say("Of ");
    text.say(count_words(gains.size(), "other series", "other series"), runs);
    text.say(fmt::format(", the largest batch has from {}× to {}× the rate of the smallest.",
                         number_text(*least), number_text(*most)));
    sentences.emplace_back(std::move(text));
  }
  return sentences;
}

}  // namespace ridgeline::report
