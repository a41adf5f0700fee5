#pragma once

// The sections of the report, one file each. A section without blocks and sections is left out.

#include <set>
#include <string>
#include <vector>

#include "report/analysis/prose.h"
#include "report/analysis/ratios.h"
#include "report/contents.h"
#include "report/data.h"
#include "report/document.h"
#include "study/study.h"

namespace ridgeline::report {

struct SectionInput {
  const Data& data;
  std::vector<const StudyView*> studies;  // that are shown
};

[[nodiscard]] Section environments_section(const SectionInput& input);
[[nodiscard]] Section complexity_section(const SectionInput& input);
[[nodiscard]] Section study_section(const SectionInput& input, const StudyView& study);
[[nodiscard]] Section other_section(const SectionInput& input);
[[nodiscard]] Section comparisons_section(const SectionInput& input);
[[nodiscard]] Section predictions_section(const SectionInput& input);
[[nodiscard]] Section anomalies_section(const SectionInput& input);
[[nodiscard]] Section method_section(const SectionInput& input);
[[nodiscard]] Section runs_section(const SectionInput& input);
// `rest` are the other sections: their judgements and notices are what these sum up.
[[nodiscard]] Section hypotheses_section(const SectionInput& input,
                                         const std::vector<Section>& rest);
[[nodiscard]] Section summary_section(const SectionInput& input, const std::vector<Section>& rest);

// Runs that the report speaks of outside of the list of runs: those of the studies shown, and those
// of no study.
[[nodiscard]] Runs shown_runs(const SectionInput& input);

[[nodiscard]] Section titled(std::string id, std::string title);
// What a study's file would ask for, under its own title.
[[nodiscard]] study::Exhibit table_named(std::string name);
[[nodiscard]] study::Exhibit figure_named(std::string name);

[[nodiscard]] Section folded(std::string id, std::string title);

// What a study or a chapter shows: tables or figures of some runs.
struct Wanted {
  study::Exhibit exhibit;
  std::string id;
  Runs runs;
};
// What is worth showing of runs that no study's file speaks of.
[[nodiscard]] std::vector<Wanted> usual_exhibits(const std::string& id, const Runs& runs);

// As blocks. Names without a maker are defects.
void add_exhibit(Section& section, const Data& data, const Wanted& wanted);
// A figure, or a sentence where that says all there is; nothing where there is nothing to draw.
void add_figure(Section& section, Figure figure);
// The figure that tells most, a paragraph of these sentences, and the rest folded: tables and
// figures, then the whole analysis of the runs.
void add_results(Section& section, const SectionInput& input, const std::vector<Wanted>& wanted,
                 std::vector<Sentence> sentences, const Runs& runs);

}  // namespace ridgeline::report
