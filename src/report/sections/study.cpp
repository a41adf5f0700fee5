// One study: its question, what was measured and what was not, hypotheses, exhibits, analysis.

#include <algorithm>
#include <map>

#include "base/error.h"
#include "base/text.h"
#include "report/analysis/judge.h"
#include "report/analysis/text.h"
#include "report/sections/sections.h"

namespace ridgeline::report {
namespace {

std::vector<const StudyItemRecord*> items_of(const StudyView& study, const StudyRecord& record,
                                             ItemStatus status) {
  std::vector<const StudyItemRecord*> found;
  for (const StudyItemRecord& item : study.items) {
    if (item.study == record.uuid && item.status == status) found.push_back(&item);
  }
  return found;
}

std::string title_of(const StudyItemRecord& item) {
  return item.title.empty() ? item.key : item.title;
}

// "On desk, 14 of 18 pieces of work were done at scale small, in 12 min 03 s."
Prose done_sentence(const Data& data, const StudyView& study, const StudyRecord& record) {
  const Machine* machine = data.find_machine(record.environment);
  std::size_t all = 0;
  double seconds = 0.0;
  std::vector<RunId> runs;
  for (const StudyItemRecord& item : study.items) {
    if (item.study != record.uuid) continue;
    ++all;
    seconds += item.seconds.value_or(0.0);
  }
  for (const RunView* run : study.runs) {
    if (run->run.study == record.uuid) runs.push_back(run->run.id);
  }
  const std::size_t done = items_of(study, record, ItemStatus::done).size();
  Prose text;
  text.say(fmt::format("On {}, ", machine != nullptr ? machine->name : "an unknown machine"));
  text.say(done == all ? fmt::format("all {}", count_words(all, "piece", "pieces"))
                       : fmt::format("{} of {}", done, count_words(all, "piece", "pieces")),
           runs);
  text.say(fmt::format(" of work were done at scale {}", record.scale));
  if (!record.options.empty()) text.say(fmt::format(" ({})", record.options));
  if (seconds > 0.0) text.say(", in " + duration_text(seconds));
  text.say(".");
  return text;
}

std::string part_of(const StudyView& study, const StudyItemRecord& item) {
  const std::string id = item.key.substr(0, item.key.find('/'));
  const auto part = study.parts.find(id);
  return part == study.parts.end() || part->second.empty() ? id : part->second;
}

using Telling = std::function<std::string(const StudyItemRecord&)>;

// Items by what is told of them, each with its title once; machines are named where several are.
std::map<std::string, std::vector<std::string>> by_reason(const StudyView& study, ItemStatus status,
                                                          const Telling& reason_of,
                                                          const Telling& name_of) {
  std::map<std::string, std::vector<std::string>> found;
  for (const StudyItemRecord& item : study.items) {
    const std::string reason = reason_of(item);
    if (item.status != status || reason.empty()) continue;
    std::vector<std::string>& titles = found[reason];
    const std::string title = name_of(item);
    if (!has(titles, title)) titles.push_back(title);
  }
  return found;
}

void add_notices(Section& section, const StudyView& study) {
  const auto add = [&](const char* severity, const char* name, ItemStatus status,
                       const Telling& reason_of, const Telling& name_of = title_of) {
    for (const auto& [reason, titles] : by_reason(study, status, reason_of, name_of)) {
      Prose text;
      text.say(fmt::format("{}: {}.", list_text(titles, 8), reason));
      section.blocks.emplace_back(
          Notice{.severity = severity, .name = name, .pieces = text.pieces()});
    }
  };
  const auto reason = [](const StudyItemRecord& item) {
    return item.reason.empty() ? std::string("no reason was given") : item.reason;
  };
  add("note", "left out", ItemStatus::left_out, reason);
  add("error", "failed", ItemStatus::failed, reason);
  add("warning", "not measured yet", ItemStatus::waiting, [](const StudyItemRecord&) {
    return std::string("the study was interrupted; the same command goes on with it");
  });
  add(
      "warning", "substituted data", ItemStatus::done,
      [](const StudyItemRecord& item) { return item.substitute; },
      [&](const StudyItemRecord& item) { return part_of(study, item); });
}

Runs runs_of(const StudyView& study, const std::vector<std::string>& parts) {
  Runs runs;
  for (const RunView* run : study.runs) {
    if (parts.empty() || has(parts, run->part)) {
      runs.push_back(run);
    }
  }
  return runs;
}

// What the hypotheses came to, in one sentence.
Sentence conclusion(const std::vector<Judgement>& judgements) {
  if (judgements.empty()) return std::nullopt;
  Prose text;
  text.say(fmt::format("Of {}, ", count_words(judgements.size(), "hypothesis", "hypotheses")));
  bool first = true;
  for (const char* verdict : {"confirmed", "not confirmed", "undecided"}) {
    std::vector<std::string> statements;
    for (const Judgement& judgement : judgements) {
      if (judgement.verdict != verdict) continue;
      std::string statement = judgement.statement;
      while (statement.ends_with('.')) statement.pop_back();
      statements.push_back(fmt::format("“{}”", statement));
    }
    if (statements.empty()) continue;
    text.say(fmt::format("{}{} {}: {}", first ? "" : "; ", statements.size(), verdict,
                         list_text(statements, 6)));
    first = false;
  }
  text.say(".");
  return text;
}

}  // namespace

Section study_section(const SectionInput& input, const StudyView& study) {
  const study::Definition& definition = study.definition;
  Section section = titled("study-" + id_text(definition.name), definition.title);
  if (!definition.question.empty()) {
    section.blocks.emplace_back(Paragraph{{{.text = definition.question}}});
  }
  Prose done;
  for (const StudyRecord& record : study.records) {
    done.add(done_sentence(input.data, study, record));
  }
  if (!done.empty()) section.blocks.emplace_back(Paragraph{done.pieces()});
  add_notices(section, study);

  std::vector<Judgement> judgements;
  for (const study::Hypothesis& hypothesis : definition.hypotheses) {
    judgements.push_back(judge(input.data, input.ratios, study, hypothesis));
  }
  if (!judgements.empty()) {
    Section part = titled(section.id + "-hypotheses", "Hypotheses");
    for (const Judgement& judgement : judgements) part.blocks.emplace_back(judgement);
    section.sections.push_back(std::move(part));
  }
  Section results = titled(section.id + "-results", "Results");
  for (std::size_t i = 0; i < definition.exhibits.size(); ++i) {
    const study::Exhibit& exhibit = definition.exhibits[i];
    add_exhibit(results, input.data, exhibit,
                fmt::format("{}-{}-{}", id_text(definition.name), i + 1, exhibit.name),
                runs_of(study, exhibit.parts));
  }
  if (!results.blocks.empty()) section.sections.push_back(std::move(results));
  Section analysis = titled(section.id + "-analysis", "Analysis");
  for (Paragraph& paragraph : analysis_of(input.data, input.ratios, study.runs)) {
    analysis.blocks.emplace_back(std::move(paragraph));
  }
  if (const auto text = paragraph_of({conclusion(judgements)})) {
    Paragraph closing{{{.text = "Conclusion. ", .runs = {}, .strong = true}}};
    closing.pieces.insert(closing.pieces.end(), text->pieces.begin(), text->pieces.end());
    analysis.blocks.emplace_back(std::move(closing));
  }
  if (!analysis.blocks.empty()) section.sections.push_back(std::move(analysis));
  return section;
}

}  // namespace ridgeline::report
