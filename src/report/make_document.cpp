#include "report/make_document.h"

#include <algorithm>

#include "base/error.h"
#include "build_info.h"
#include "report/analysis/prose.h"
#include "report/sections/sections.h"

namespace ridgeline::report {
namespace {

std::vector<const StudyView*> chosen_studies(const Data& data, const DocumentOptions& options) {
  std::vector<const StudyView*> chosen;
  for (const StudyView& study : data.studies()) {
    const std::vector<std::string>& wanted = options.studies;
    if (wanted.empty() || std::ranges::find(wanted, study.definition.name) != wanted.end()) {
      chosen.push_back(&study);
    }
  }
  for (const std::string& name : options.studies) {
    if (std::ranges::none_of(
            chosen, [&](const StudyView* study) { return study->definition.name == name; })) {
      std::vector<std::string> known;
      for (const StudyView& study : data.studies()) known.push_back(study.definition.name);
      bad_input("the store has no study '{}'; it has {}", name,
                known.empty() ? "none" : list_text(known, 20));
    }
  }
  return chosen;
}

std::string title_of(const std::vector<const StudyView*>& studies) {
  if (studies.size() == 1) return studies.front()->definition.title;
  return "Ridgeline report";
}

std::string subtitle_of(const Data& data) {
  std::vector<std::string> machines;
  for (const Machine& machine : data.machines()) machines.push_back(machine.name);
  return list_text(machines, 4);
}

bool same_rows(const Table& a, const Table& b) {
  const auto same_cell = [](const Cell& x, const Cell& y) {
    return x.text == y.text && x.runs == y.runs;
  };
  return a.title == b.title && a.rows.size() == b.rows.size() &&
         std::equal(a.rows.begin(), a.rows.end(), b.rows.begin(),
                    [&](const auto& x, const auto& y) {
                      return std::equal(x.begin(), x.end(), y.begin(), y.end(), same_cell);
                    });
}

// What an earlier section shows already is named instead of shown again.
class Repeats {
 public:
  void leave_out(Section& section, const std::string& within) {
    std::vector<Block> kept;
    std::vector<std::string> left_out;
    std::string where;
    for (Block& block : section.blocks) {
      const auto* table = std::get_if<Table>(&block);
      const auto known = std::ranges::find_if(shown_, [&](const Shown& shown) {
        return table != nullptr && same_rows(shown.table, *table);
      });
      if (known == shown_.end()) {
        if (table != nullptr) shown_.push_back({*table, within});
        kept.push_back(std::move(block));
      } else {
        left_out.push_back(table->title);
        where = known->section;
      }
    }
    section.blocks = std::move(kept);
    if (!left_out.empty()) {
      section.blocks.emplace_back(Paragraph{
          {{.text = fmt::format("{}: the same as in “{}”.", list_text(left_out, 20), where)}}});
    }
    for (Section& part : section.sections) leave_out(part, within);
  }

 private:
  struct Shown {
    Table table;
    std::string section;
  };
  std::vector<Shown> shown_;
};

}  // namespace

Document make_document(const Data& data, const DocumentOptions& options) {
  Ratios ratios(data);
  const SectionInput input{
      .data = data, .ratios = ratios, .studies = chosen_studies(data, options)};
  Document document;
  document.title = options.title.empty() ? title_of(input.studies) : options.title;
  document.subtitle = subtitle_of(data);
  document.generated = utc_now();
  document.program = fmt::format("ridgeline {} ({})", build_info::version, build_info::revision);
  std::vector<Section> rest;
  const auto add = [&](Section section) {
    if (!section.blocks.empty() || !section.sections.empty()) rest.push_back(std::move(section));
  };
  add(environments_section(input));
  add(complexity_section(input));
  for (const StudyView* study : input.studies) add(study_section(input, *study));
  add(other_section(input));
  add(comparisons_section(input));
  add(anomalies_section(input));
  add(method_section(input));
  add(runs_section(input));
  Repeats repeats;
  for (Section& section : rest) repeats.leave_out(section, section.title);
  document.sections.push_back(summary_section(input, rest));
  for (Section& section : rest) document.sections.push_back(std::move(section));
  return document;
}

}  // namespace ridgeline::report
