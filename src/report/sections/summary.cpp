// The most important findings, before all others.

#include <algorithm>
#include <set>

#include "base/error.h"
#include "base/text.h"
#include "report/analysis/text.h"
#include "report/sections/sections.h"

namespace ridgeline::report {
namespace {

Sentence contents_sentence(const SectionInput& input, const Runs& runs) {
  std::set<std::size_t> machines;
  std::int64_t iterations = 0;
  for (const RunView* run : runs) {
    machines.insert(run->machine);
    if (run->run.command != "train" && run->seconds) iterations += run->seconds->samples;
  }
  if (runs.empty()) return std::nullopt;
  std::vector<std::string> names, studies;
  for (const std::size_t machine : machines) names.push_back(input.data.machines()[machine].name);
  for (const StudyView* study : input.studies) studies.push_back(study->definition.name);
  Prose text;
  text.say(fmt::format("This report rests on {} ", count_words(runs.size(), "run")));
  if (iterations > 0) text.say(fmt::format("with {} measured iterations ", count_text(iterations)));
  text.say(fmt::format("on {}: {}.", count_words(names.size(), "machine"), list_text(names)));
  if (!studies.empty()) {
    text.say(fmt::format(" It shows the {} {}.", studies.size() == 1 ? "study" : "studies",
                         list_text(studies)));
  }
  return text;
}

template <typename Visit>
void each_judgement(const std::vector<Section>& sections, Visit visit) {
  for (const Section& section : sections) {
    for (const Block& block : section.blocks) {
      if (const auto* judgement = std::get_if<Judgement>(&block)) visit(*judgement);
    }
    each_judgement(section.sections, visit);
  }
}

Sentence hypotheses_sentence(const std::vector<Section>& rest) {
  std::size_t all = 0, confirmed = 0, not_confirmed = 0;
  each_judgement(rest, [&](const Judgement& judgement) {
    ++all;
    confirmed += judgement.verdict == "confirmed" ? 1 : 0;
    not_confirmed += judgement.verdict == "not confirmed" ? 1 : 0;
  });
  if (all == 0) return std::nullopt;
  return Prose().say(fmt::format("Of {}, {} confirmed, {} not confirmed and {} undecided.",
                                 count_words(all, "hypothesis", "hypotheses"),
                                 confirmed == 1 ? "one is" : fmt::format("{} are", confirmed),
                                 not_confirmed, all - confirmed - not_confirmed));
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

// What the studies asked, and the answers.
std::optional<Table> hypotheses_table(const SectionInput& input, const std::vector<Section>& rest) {
  Table table;
  table.id = "summary-hypotheses";
  table.title = "Hypotheses and what the data say";
  table.caption = "The studies tell what each verdict rests on.";
  table.columns = {{.title = "study"}, {.title = "hypothesis"}, {.title = "verdict"}};
  for (const Section& section : rest) {
    std::string name = section.title;
    for (const StudyView* study : input.studies) {
      if ("study-" + id_text(study->definition.name) == section.id) name = study->definition.name;
    }
    each_judgement({section}, [&](const Judgement& judgement) {
      table.rows.push_back({words(name), words(judgement.statement), words(judgement.verdict)});
    });
  }
  if (table.rows.empty()) return std::nullopt;
  return table;
}

}  // namespace

Section summary_section(const SectionInput& input, const std::vector<Section>& rest) {
  Section section = titled("summary", "Summary");
  const Runs runs = shown_runs(input);
  if (runs.empty()) {
    section.blocks.emplace_back(
        Paragraph{{{.text = "The store holds no complete runs: there is nothing to report yet."}}});
    return section;
  }
  const auto add = [&](const std::vector<Sentence>& sentences) {
    if (const auto paragraph = paragraph_of(sentences)) section.blocks.emplace_back(*paragraph);
  };
  add({contents_sentence(input, runs), hypotheses_sentence(rest)});
  if (auto table = hypotheses_table(input, rest)) section.blocks.emplace_back(std::move(*table));
  for (Paragraph& paragraph : analysis_of(input.data, input.ratios, runs, true)) {
    section.blocks.emplace_back(std::move(paragraph));
  }
  add({left_out_sentence(input), flags_sentence(rest)});
  return section;
}

}  // namespace ridgeline::report
