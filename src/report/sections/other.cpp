// Runs that belong to no study, with the exhibits that fit what was measured.

#include <functional>

#include "base/error.h"
#include "report/exhibits/runs.h"
#include "report/sections/sections.h"

namespace ridgeline::report {
namespace {

struct Chapter {
  const char* id;
  const char* title;
  std::function<bool(const RunView&)> holds;
  std::vector<study::Exhibit> exhibits;
};

std::vector<Chapter> chapters() {
  return {
      {"benchmarks",
       "Training steps",
       [](const RunView& run) {
         return run.run.command != "train" && run.run.command != "profile" &&
                run.run.work.kind == "training";
       },
       {table_named("throughput"), figure_named("throughput"), table_named("iterations"),
        table_named("phases"), table_named("batch-sweep"), figure_named("batch-sweep"),
        table_named("scaling"), figure_named("scaling"), table_named("efficiency"),
        table_named("bounds"), figure_named("roofline"), figure_named("roofline-batches"),
        table_named("memory"), figure_named("memory"), table_named("resources"),
        table_named("parity"), figure_named("samples")}},
      {"inference",
       "Inference",
       [](const RunView& run) {
         return run.run.command != "train" && run.run.command != "profile" &&
                run.run.work.kind == "inference";
       },
       {table_named("inference"), table_named("throughput"), figure_named("throughput"),
        table_named("efficiency"), table_named("memory")}},
      {"trainings",
       "Trainings",
       [](const RunView& run) { return run.run.command == "train"; },
       {table_named("training"), figure_named("accuracy-epochs"), figure_named("accuracy-time"),
        figure_named("loss-epochs"), figure_named("epoch-times"), figure_named("throughput-epochs"),
        table_named("targets"), table_named("resources"), figure_named("telemetry")}},
      {"profiles",
       "Profiles",
       [](const RunView& run) { return run.run.command == "profile"; },
       {table_named("breakdown"), figure_named("breakdown"), table_named("op-breakdown"),
        figure_named("operations"), figure_named("roofline-layers"), figure_named("step-timeline"),
        figure_named("memory-timeline")}},
  };
}

}  // namespace

std::vector<Wanted> usual_exhibits(const std::string& id, const Runs& runs) {
  std::vector<Wanted> wanted;
  for (const Chapter& chapter : chapters()) {
    const Runs of_it = only(runs, chapter.holds);
    for (const study::Exhibit& exhibit : chapter.exhibits) {
      if (of_it.empty()) break;
      wanted.push_back(
          {exhibit,
           fmt::format("{}-{}-{}{}", id, chapter.id, exhibit.name, exhibit.figure ? "-figure" : ""),
           of_it});
    }
  }
  return wanted;
}

Section other_section(const SectionInput& input) {
  Section section = titled("other", "Measurements outside of studies");
  for (const Chapter& chapter : chapters()) {
    const Runs runs = only(input.data.other_runs(), chapter.holds);
    if (runs.empty()) continue;
    Section part = titled(fmt::format("other-{}", chapter.id), chapter.title);
    add_results(part, input, usual_exhibits("other", runs), {}, runs);
    if (!part.blocks.empty() || !part.sections.empty()) section.sections.push_back(std::move(part));
  }
  return section;
}

}  // namespace ridgeline::report
