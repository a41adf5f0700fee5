// How far predictions that stand on these runs can be believed.

#include "base/error.h"
#include "report/analysis/held_runs.h"
#include "report/sections/sections.h"

namespace ridgeline::report {

Section predictions_section(const SectionInput& input) {
  Section section = titled("predictions", "Predictions");
  const Runs runs = shown_runs(input);
  if (runs.empty()) return section;
  const HeldRuns& held = input.data.held_runs();
  if (held.of(runs).empty()) {
    section.blocks.emplace_back(Paragraph{
        {{.text = fmt::format(
              "Too few runs to tell how wrong predictions from them would be (ridgeline predict): "
              "{} of "
              "one backend are needed that can be left out in turn, with several networks, batches "
              "or "
              "devices and measured ceilings (ridgeline env --measure); {} of {} can be used.",
              kFewestHeld, held.usable(), count_words(runs.size(), "run"))}}});
    return section;
  }
  add_exhibit(section, input.data, {figure_named("predictions"), "predictions-runs", runs});
  add_exhibit(section, input.data, {table_named("predictions"), "predictions-errors", runs});
  return section;
}

}  // namespace ridgeline::report
