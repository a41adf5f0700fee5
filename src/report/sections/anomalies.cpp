// Everything about runs that a reader must know before believing their numbers.

#include <algorithm>
#include <map>

#include "base/error.h"
#include "report/analysis/prose.h"
#include "report/flags.h"
#include "report/sections/sections.h"

namespace ridgeline::report {
namespace {

struct Flagged {
  const RunView* run = nullptr;
  Finding flag;
};

std::vector<Flagged> all_flags(const SectionInput& input) {
  std::vector<Flagged> found;
  for (const RunView* run : shown_runs(input)) {
    for (Finding& flag : flags_of(input.data, *run)) found.push_back({run, std::move(flag)});
    // What only informs is in the list, too.
    for (const Finding& finding : run->findings) {
      if (finding.severity == "note") found.push_back({run, finding});
    }
  }
  return found;
}

Notice notice_of(const std::string& meaning, const std::vector<const Flagged*>& flagged) {
  const std::string& name = flagged.front()->flag.name;
  Notice notice;
  notice.name = name;
  notice.severity = "note";
  std::vector<RunId> runs;
  for (const Flagged* each : flagged) {
    if (gravity(each->flag.severity) < gravity(notice.severity)) {
      notice.severity = each->flag.severity;
    }
    runs.push_back(each->run->run.id);
  }
  // The footnote begins with the name, which the notice shows already.
  const std::string_view told =
      std::string_view(meaning).substr(meaning.starts_with(name + ": ") ? name.size() + 2 : 0);
  Prose text;
  text.say(sentence_case(count_words(flagged.size(), "run")), runs);
  text.say(fmt::format(": {}.", told));
  if (flagged.front()->flag.evidence != told) {
    const RunId first = flagged.front()->run->run.id;
    text.say(" ");
    text.say(fmt::format("Run {}", first), {first});
    text.say(fmt::format(": {}.", flagged.front()->flag.evidence));
  }
  notice.pieces = text.pieces();
  return notice;
}

Table flags_table(const SectionInput& input, const std::vector<Flagged>& flagged) {
  Table table;
  table.id = "anomalies-flags";
  table.title = "Flags of all runs";
  table.columns = {{.title = "run", .number = true},
                   {.title = "machine"},
                   {.title = "work"},
                   {.title = "executor"},
                   {.title = "severity"},
                   {.title = "flag"},
                   {.title = "evidence"}};
  const Wording wording(shown_runs(input));
  for (const Flagged& each : flagged) {
    const RunView& run = *each.run;
    const RunId id = run.run.id;
    Cell number{.text = fmt::format("{}", id), .value = static_cast<double>(id), .runs = {id}};
    table.rows.push_back({std::move(number), words(input.data.machine_of(run).name),
                          words(wording.work(run)), words(wording.executor(run)),
                          words(each.flag.severity), words(each.flag.name),
                          words(each.flag.evidence)});
  }
  return table;
}

std::optional<Notice> unfinished_notice(const Data& data) {
  if (data.unfinished().empty()) return std::nullopt;
  std::vector<RunId> runs;
  for (const RunRecord& run : data.unfinished()) runs.push_back(run.id);
  Prose text;
  text.say(sentence_case(count_words(runs.size(), "run")), runs);
  text.say(" did not end as planned; nothing of ");
  text.say(runs.size() == 1 ? "it" : "them");
  text.say(" is in tables, figures or text but the list of runs.");
  return Notice{.severity = "warning", .name = "unfinished runs", .pieces = text.pieces()};
}

}  // namespace

Section anomalies_section(const SectionInput& input) {
  Section section = titled("anomalies", "Anomalies and flags");
  const std::vector<Flagged> flagged = all_flags(input);
  std::map<std::string, std::vector<const Flagged*>> by_meaning;
  for (const Flagged& each : flagged) {
    if (each.flag.severity != "note") by_meaning[footnote_of(each.flag)].push_back(&each);
  }
  std::vector<Notice> notices;
  if (auto unfinished = unfinished_notice(input.data)) notices.push_back(*std::move(unfinished));
  for (const auto& [meaning, of_it] : by_meaning) notices.push_back(notice_of(meaning, of_it));
  std::ranges::stable_sort(notices, {}, [](const Notice& each) { return gravity(each.severity); });
  for (Notice& notice : notices) section.blocks.emplace_back(std::move(notice));
  if (!flagged.empty()) {
    Section rest = folded("anomalies-all", "Flags of all runs");
    rest.blocks.emplace_back(flags_table(input, flagged));
    section.sections.push_back(std::move(rest));
  }
  if (section.blocks.empty() && flagged.empty() && !shown_runs(input).empty()) {
    section.blocks.emplace_back(
        Paragraph{{{.text = "Nothing unusual was found in " +
                            count_words(shown_runs(input).size(), "run") + "."}}});
  }
  return section;
}

}  // namespace ridgeline::report
