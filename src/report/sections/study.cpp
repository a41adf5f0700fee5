// One study: its question, what was measured and what was not, hypotheses, exhibits, analysis.

#include <algorithm>
#include <map>

#include "base/error.h"
#include "base/text.h"
#include "report/analysis/judge.h"
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

using ItemText = std::function<std::string(const StudyItemRecord&)>;

// Items by what is told of them, each with its title once; machines are named where several are.
std::map<std::string, std::vector<std::string>> by_reason(const StudyView& study, ItemStatus status,
                                                          const ItemText& reason_of,
                                                          const ItemText& name_of) {
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
                       const ItemText& reason_of, const ItemText& name_of = title_of) {
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
Sentence answer_of(const std::vector<Judgement>& judgements) {
  Prose text;
  for (const char* verdict : {"confirmed", "not confirmed", "undecided"}) {
    std::vector<std::string> statements;
    for (const Judgement& judgement : judgements) {
      if (judgement.verdict != verdict || !judgement.tested) continue;
      std::string statement = judgement.statement;
      while (statement.ends_with('.')) statement.pop_back();
      statements.push_back(fmt::format("“{}”", statement));
    }
    if (statements.empty()) continue;
    const bool first = text.empty();
    if (!first) text.say("; ");
    text.strong(first ? sentence_case(verdict) : verdict).say(": " + list_text(statements, 6));
  }
  if (text.empty()) return std::nullopt;
  text.say(".");
  return text;
}

std::vector<Wanted> wanted_of(const StudyView& study) {
  const std::string id = slug(study.definition.name);
  std::vector<Wanted> wanted;
  for (const study::Exhibit& exhibit : study.definition.exhibits) {
    wanted.push_back({exhibit, fmt::format("{}-{}-{}", id, wanted.size() + 1, exhibit.name),
                      runs_of(study, exhibit.parts)});
  }
  return wanted.empty() ? usual_exhibits(id, study.runs) : wanted;
}

}  // namespace

Section study_section(const SectionInput& input, const StudyView& study) {
  const study::Definition& definition = study.definition;
  Section section = titled("study-" + slug(definition.name), definition.title);
  if (!definition.question.empty()) {
    section.blocks.emplace_back(Paragraph{{{.text = definition.question}}});
  }
  Section tested = folded(section.id + "-hypotheses", "Hypotheses");
  std::vector<Judgement> judgements;
  for (const study::Hypothesis& hypothesis : definition.hypotheses) {
    judgements.push_back(judge(input.data, study, hypothesis));
    tested.blocks.emplace_back(judgements.back());
  }
  if (const auto text = paragraph_of({answer_of(judgements)})) section.blocks.emplace_back(*text);
  Prose done;
  for (const StudyRecord& record : study.records) {
    done.add(done_sentence(input.data, study, record));
  }
  Section measured = folded(section.id + "-measured", "What was measured");
  if (!done.empty()) measured.blocks.emplace_back(Paragraph{done.pieces()});
  add_notices(measured, study);
  std::vector<Section> parts;
  for (Section* part : {&measured, &tested}) {
    if (!part->blocks.empty()) parts.push_back(std::move(*part));
  }
  section.sections = std::move(parts);
  add_results(section, input, wanted_of(study), {}, study.runs);
  return section;
}

}  // namespace ridgeline::report
