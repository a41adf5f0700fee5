// The answer before everything else: a paragraph, every network on every device, the roofline, and
// findings as cards.

#include <algorithm>
#include <cmath>
#include <set>

#include "base/error.h"
#include "base/text.h"
#include "report/analysis/estimates.h"
#include "report/analysis/places.h"
#include "report/analysis/text.h"
#include "report/contents.h"
#include "report/exhibits/figure_kinds.h"
#include "report/exhibits/figure_runs.h"
#include "report/exhibits/figure_values.h"
#include "report/flags.h"
#include "report/sections/sections.h"

namespace ridgeline::report {
namespace {

constexpr std::size_t kMostBars = 6, kMostContests = 2;
constexpr const char* kThroughput = "summary-throughput";
constexpr const char* kRoofline = "summary-roofline";

Sentence contents_sentence(const SectionInput& input, const Runs& runs) {
  std::set<std::size_t> machines;
  std::set<std::string> networks;
  for (const RunView* run : runs) {
    machines.insert(run->machine);
    networks.insert(run->run.work.model);
  }
  std::vector<std::string> names;
  for (const std::size_t machine : machines) names.push_back(input.data.machines()[machine].name);
  return Prose().say(fmt::format(
      "This report shows {} of {} on {}{}.", count_words(runs.size(), "run"),
      count_words(networks.size(), "network"), list_text(names),
      input.studies.empty() ? std::string()
                            : ", in " + count_words(input.studies.size(), "study", "studies")));
}

Sentence hypotheses_sentence(const std::vector<Section>& rest) {
  std::size_t all = 0, confirmed = 0, not_confirmed = 0, untested = 0;
  each_block<Judgement>(rest, [&](const Judgement& judgement) {
    ++all;
    confirmed += judgement.verdict == "confirmed" ? 1 : 0;
    not_confirmed += judgement.verdict == "not confirmed" ? 1 : 0;
    untested += judgement.tested ? 0 : 1;
  });
  if (all == 0) return std::nullopt;
  std::vector<std::string> parts;
  const auto count = [&](std::size_t number, const char* what) {
    if (number > 0) parts.push_back(fmt::format("{} {}", number, what));
  };
  count(confirmed, "confirmed");
  count(not_confirmed, "not confirmed");
  count(all - confirmed - not_confirmed - untested, "undecided");
  count(untested, "not testable here");
  return Prose().say(
      fmt::format("Of {}: {}.", count_words(all, "hypothesis", "hypotheses"), list_text(parts)));
}

Sentence left_out_sentence(const SectionInput& input) {
  std::size_t left_out = 0, failed = 0, substituted = 0;
  for (const StudyView* study : input.studies) {
    for (const StudyItemRecord& item : study->items) {
      left_out += item.status == ItemStatus::left_out ? 1 : 0;
      failed += item.status == ItemStatus::failed ? 1 : 0;
      substituted += item.status == ItemStatus::done && !item.substitute.empty() ? 1 : 0;
    }
  }
  std::vector<std::string> parts;
  if (left_out > 0) parts.push_back(count_words(left_out, "piece", "pieces") + " of work left out");
  if (failed > 0) parts.push_back(fmt::format("{} failed", failed));
  if (substituted > 0) {
    parts.push_back(count_words(substituted, "piece", "pieces") + " done with substituted data");
  }
  if (parts.empty()) return std::nullopt;
  return Prose().say(sentence_case(list_text(parts)) +
                     "; the studies name each of them with its reason.");
}

Sentence flags_sentence(const std::vector<Section>& rest) {
  std::vector<std::string> errors, warnings;
  for (const Section& section : rest) {
    if (section.id != "anomalies") continue;
    for (const Block& block : section.blocks) {
      const auto* notice = std::get_if<Notice>(&block);
      if (notice == nullptr) continue;
      std::vector<std::string>& names = notice->severity == "error" ? errors : warnings;
      if (!has(names, notice->name)) {
        names.push_back(notice->name);
      }
    }
  }
  if (errors.empty() && warnings.empty()) return std::nullopt;
  Prose text;
  if (!errors.empty()) {
    text.say("Errors were found that forbid believing some numbers: " + list_text(errors) + ". ");
  }
  if (!warnings.empty()) {
    text.say("Flagged, and marked where it matters: " + list_text(warnings, 8) + ".");
  }
  return text;
}

// Of one work on one device.
struct Best {
  const RunView *own = nullptr, *peer = nullptr;
};
using Lead = std::map<Place, Best>;

Lead best_of(const Runs& alike) {
  std::map<Place, std::pair<Runs, Runs>> places;
  for (const RunView* run : alike) {
    auto& [own, peers] = places[place_of(*run)];
    (is_peer(*run) ? peers : own).push_back(run);
  }
  Lead lead;
  for (const auto& [place, runs] : places) {
    lead[place] = {fastest_of(runs.first), fastest_of(runs.second)};
  }
  return lead;
}

// Of each network the training work that most devices did, rather with a peer and by `bench`;
// networks with little work first.
std::vector<Lead> lead_works(const Runs& runs) {
  const Runs timed = chosen(
      runs, [](const RunView& run) { return run.rate && !is_profile(run) && !is_inference(run); });
  std::vector<std::string> models;
  std::map<std::string, std::pair<std::tuple<std::size_t, bool, bool, std::size_t>, Lead>> best;
  for (const Runs& alike : by_work(timed)) {
    const std::string& model = alike.front()->run.work.model;
    if (!has(models, model)) models.push_back(model);
    Lead lead = best_of(alike);
    const std::tuple merit(lead.size(), !only(alike, is_peer).empty(), is_measured(*alike.front()),
                           alike.size());
    auto& known = best[model];
    if (known.second.empty() || merit >= known.first) known = {merit, std::move(lead)};
  }
  std::vector<Lead> leads;
  for (const std::string& model : models) leads.push_back(std::move(best[model].second));
  return leads;
}

Figure lead_figure(const SectionInput& input, const TextInput& text,
                   const std::vector<Lead>& leads) {
  Figure figure{.id = kThroughput, .title = "Every network on every device"};
  figure.kind = FigureKind::bars;
  figure.horizontal = true;
  figure.x.title = "network";
  figure.y = {.title = "throughput", .unit = "samples/s"};
  Notes notes(input.data);
  Contest against_peers{"", "Ridgeline", "the fastest peer", {}};
  for (const Lead& lead : leads) {
    for (const auto& [place, best] : lead) {
      Best shown = best;
      if (best.own != nullptr && best.peer != nullptr) {
        if (const auto ratio = input.data.ratios().of(*best.own, *best.peer)) {
          against_peers.ratios.push_back(*ratio);
          // The sentence and the picture are of the same runs: those that took turns.
          shown = {ratio->of, ratio->than};
        }
      }
      for (const RunView* run : {shown.own, shown.peer}) {
        if (run == nullptr) continue;
        const std::string where = place_text(input.data, place);
        Series& series =
            series_named(figure, where + (run == shown.own ? ", Ridgeline" : ", best peer"),
                         SeriesStyle::points);
        series.group = where;
        series.points.push_back(
            {.x = category_of(figure.x, fmt::format("{}, batch {}", run->run.work.model,
                                                    count_text(run->run.work.batch))),
             .y = run->rate->value,
             .low = run->rate->low,
             .high = run->rate->high,
             .detail = text.wording.executor(*run)});
        notes.add(*run, series.name);
      }
    }
  }
  choose_y_axis(figure);
  if (const auto sentence = brief_contest_sentence(text, against_peers)) {
    figure.reading = sentence->text();
  }
  figure.caption =
      "Samples a second of training, median with its 95% interval; of each network the work that "
      "most devices did, on each device by the fastest of Ridgeline's backends and by the fastest "
      "peer.";
  notes.write(figure);
  return figure;
}

// "2.8×", "1.3× slower"; only what the verdict on the pair allows.
std::string ratio_text(const Ratio& ratio) {
  if (ratio.verdict == Verdict::undecided) return "undecided";
  return number_text(above_one(ratio).speedup, 2) + (ratio.speedup < 1.0 ? "× slower" : "×");
}

// Of each network one kind of work.
std::vector<Card::Bar> bars_of(const Contest& contest) {
  std::vector<Card::Bar> bars;
  std::set<std::string> models;
  for (const Ratio& ratio : contest.ratios) {
    const Work& work = ratio.of->run.work;
    if (bars.size() == kMostBars || !models.insert(work.model).second) continue;
    bars.push_back({fmt::format("{}, batch {}", work.model, count_text(work.batch)), ratio.speedup,
                    ratio_text(ratio)});
  }
  return bars;
}

// A number, the geometric mean, only where all verdicts agree; else how many say so.
std::optional<Card> contest_card(const TextInput& text, const Contest& contest) {
  const Sentence sentence = contest_sentence(text, contest);
  if (!sentence) return std::nullopt;
  const std::size_t all = contest.ratios.size(),
                    faster = with(contest.ratios, Verdict::faster).size();
  std::vector<double> values;
  for (const Ratio& ratio : contest.ratios) values.push_back(ratio.speedup);
  return Card{.number = faster == all ? number_text(geometric_mean(values).value, 2) +
                                            (all > 1 ? "× on average" : "×")
                                      : fmt::format("{} of {} faster", faster, all),
              .pieces = sentence->pieces(),
              .bars = bars_of(contest),
              .target = "comparisons"};
}

std::optional<Card> roof_card(const SectionInput& input, const TextInput& text,
                              const std::vector<Lead>& leads) {
  const Sentence sentence = bottlenecks(text)[1];
  Card card{.number = "", .pieces = {}, .target = kRoofline};
  double most = 0.0;
  for (const Lead& lead : leads) {
    for (const auto& [place, best] : lead) {
      const auto point = best.own == nullptr ? std::nullopt : input.data.point(*best.own);
      const auto share = point ? point->efficiency() : std::nullopt;
      if (!share || *share > 1.0 + kRoofTolerance) continue;
      most = std::max(most, *share);
      card.bars.push_back(
          {fmt::format("{}, {}", best.own->run.work.model, place_text(input.data, place)), *share,
           percent_text(*share)});
    }
  }
  if (!sentence || card.bars.empty()) return std::nullopt;
  std::ranges::stable_sort(card.bars, std::greater{}, &Card::Bar::value);
  card.bars.resize(std::min(card.bars.size(), kMostBars));
  card.number = percent_text(most) + " of the roof";
  card.pieces = sentence->pieces();
  return card;
}

std::optional<Card> batch_card(const TextInput& text, const std::string& target) {
  const std::vector<Sentence> sentences = batch_effects(text);
  if (sentences.empty() || !sentences.front()) return std::nullopt;
  const Runs sweep = batch_sweeps(text).front();
  const Estimate gain = ratio_of(*sweep.back()->rate, *sweep.front()->rate);
  const std::string doubts = doubts_of(sweep);
  Card card{.number = is_above_one(gain, doubts)
                          ? number_text(gain.value, 2) + "× by larger batches"
                      : is_below_one(gain, doubts)
                          ? number_text(1.0 / gain.value, 2) + "× slower at the largest batch"
                          : "No gain is shown",
            .pieces = sentences.front()->pieces(),
            .target = target};
  for (const RunView* run : sweep) {
    if (card.bars.size() == kMostBars) break;
    card.bars.push_back({fmt::format("batch {}", count_text(run->run.work.batch)), run->rate->value,
                         number_text(run->rate->value) + " samples/s"});
  }
  return card;
}

std::optional<Card> learning_card(const TextInput& text, const std::string& target) {
  const std::vector<Sentence> sentences = learning(text);
  std::map<std::string, double> best;
  for (const RunView* run : text.runs) {
    const EpochRecord* tested = last_tested(*run);
    if (tested == nullptr || at_chance(*run, *tested->test_accuracy)) continue;
    double& known = best[fmt::format("{} on {}", run->run.work.model, run->run.work.data)];
    known = std::max(known, *tested->test_accuracy);
  }
  if (best.empty() || sentences.empty() || !sentences.front()) return std::nullopt;
  Card card{.number = "", .pieces = sentences.front()->pieces(), .target = target};
  for (const auto& [name, share] : best) card.bars.push_back({name, share, percent_text(share)});
  std::ranges::stable_sort(card.bars, std::greater{}, &Card::Bar::value);
  card.bars.resize(std::min(card.bars.size(), kMostBars));
  card.number = card.bars.front().text + " test accuracy";
  return card;
}

// The first figure whose id has the words; empty: there is none.
std::string id_with(const std::vector<Section>& sections, const std::string& words) {
  std::string id;
  each_block<Figure>(sections, [&](const Figure& figure) {
    if (id.empty() && figure.id.find(words) != std::string::npos) id = figure.id;
  });
  return id;
}

// The one that has the most of the runs.
std::optional<Figure> lead_roofline(const SectionInput& input, const Runs& runs) {
  std::optional<Figure> fullest;
  for (Figure& figure : roofline_figures({input.data, kRoofline, "", runs})) {
    if (!fullest || figure.runs.size() > fullest->runs.size()) fullest = std::move(figure);
  }
  if (fullest) fullest->id = kRoofline;
  return fullest;
}

}  // namespace

Section hypotheses_section(const SectionInput& input, const std::vector<Section>& rest) {
  Section section = titled("hypotheses", "Hypotheses");
  Table table;
  table.id = "summary-hypotheses";
  table.title = "Hypotheses and what the data say";
  table.caption = "The studies tell what each verdict rests on.";
  table.columns = {{.title = "study"}, {.title = "hypothesis"}, {.title = "verdict"}};
  for (const Section& study : rest) {
    std::string name = study.title;
    for (const StudyView* each : input.studies) {
      if ("study-" + slug(each->definition.name) == study.id) name = each->definition.name;
    }
    each_block<Judgement>({study}, [&](const Judgement& judgement) {
      if (!judgement.tested) return;
      table.rows.push_back({words(name), words(judgement.statement), words(judgement.verdict)});
    });
  }
  if (const auto text = paragraph_of({hypotheses_sentence(rest)})) {
    section.blocks.emplace_back(*text);
  }
  if (!table.rows.empty()) section.blocks.emplace_back(std::move(table));
  return section;
}

Section summary_section(const SectionInput& input, const std::vector<Section>& rest) {
  Section section = titled("summary", "Summary");
  const Runs runs = shown_runs(input);
  if (runs.empty()) {
    section.blocks.emplace_back(
        Paragraph{{{.text = "The store holds no complete runs: there is nothing to report yet."}}});
    return section;
  }
  const TextInput text = text_input(input.data, runs);
  const auto most_work = [](std::vector<Contest> contests) {
    std::ranges::stable_sort(contests, std::greater{},
                             [](const Contest& each) { return each.ratios.size(); });
    contests.resize(std::min(contests.size(), kMostContests));
    return contests;
  };
  const std::vector<Contest> devices = most_work(device_contests(text)),
                             peers = most_work(peer_contests(text));
  const auto first = [&](const std::vector<Contest>& contests) {
    return contests.empty() ? std::nullopt : brief_contest_sentence(text, contests.front());
  };
  const auto add = [&](const std::vector<Sentence>& sentences) {
    if (const auto paragraph = paragraph_of(sentences)) section.blocks.emplace_back(*paragraph);
  };
  add({contents_sentence(input, runs), first(devices), first(peers), bottlenecks(text)[1],
       hypotheses_sentence(rest)});

  const std::vector<Lead> leads = lead_works(text.timed);
  Runs own;
  for (const Lead& lead : leads) {
    for (const auto& [place, best] : lead) {
      if (best.own != nullptr) own.push_back(best.own);
    }
  }
  add_figure(section, lead_figure(input, text, leads));
  if (auto roofline = lead_roofline(input, own)) add_figure(section, *std::move(roofline));

  Cards cards;
  const auto put = [&](std::optional<Card> card) {
    if (card) cards.cards.push_back(*std::move(card));
  };
  for (const Contest& contest : peers) put(contest_card(text, contest));
  for (const Contest& contest : devices) put(contest_card(text, contest));
  put(roof_card(input, text, leads));
  put(batch_card(text, id_with(rest, "batch-sweep")));
  put(learning_card(text, id_with(rest, "accuracy-epochs")));
  if (!cards.cards.empty()) section.blocks.emplace_back(std::move(cards));
  add({left_out_sentence(input), flags_sentence(rest)});
  return section;
}

}  // namespace ridgeline::report
