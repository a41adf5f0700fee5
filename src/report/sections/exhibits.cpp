// From the names of a study's file to tables and figures.

#include "report/exhibits.h"

#include <algorithm>
#include <cctype>

#include "base/error.h"
#include "report/sections/sections.h"

namespace ridgeline::report {

Section titled(std::string id, std::string title) {
  Section section;
  section.id = std::move(id);
  section.title = std::move(title);
  return section;
}

study::Exhibit table_named(std::string name) {
  study::Exhibit exhibit;
  exhibit.name = std::move(name);
  return exhibit;
}

study::Exhibit figure_named(std::string name) {
  study::Exhibit exhibit = table_named(std::move(name));
  exhibit.figure = true;
  return exhibit;
}

std::string id_text(const std::string& text) {
  std::string id;
  for (const char c : text) {
    if (std::isalnum(static_cast<unsigned char>(c)) != 0) {
      id += static_cast<char>(std::tolower(static_cast<unsigned char>(c)));
    } else if (!id.empty() && id.back() != '-') {
      id += '-';
    }
  }
  while (id.ends_with('-')) id.pop_back();
  return id.empty() ? "x" : id;
}

void add_exhibit(Section& section, const Data& data, const study::Exhibit& exhibit,
                 const std::string& id, const Runs& runs) {
  const ExhibitInput input{.data = data, .id = id, .title = exhibit.title, .runs = runs};
  const auto make = [&](const auto& kinds) {
    const auto kind =
        std::ranges::find_if(kinds, [&](const auto& each) { return each.name == exhibit.name; });
    ensure(kind != kinds.end(), "there is no {} '{}'", exhibit.figure ? "figure" : "table",
           exhibit.name);
    for (auto& made : kind->make(input)) section.blocks.emplace_back(std::move(made));
  };
  if (exhibit.figure) {
    make(figure_kinds());
  } else {
    make(table_kinds());
  }
}

Runs shown_runs(const SectionInput& input) {
  Runs runs;
  for (const StudyView* study : input.studies) {
    runs.insert(runs.end(), study->runs.begin(), study->runs.end());
  }
  const Runs others = input.data.other_runs();
  runs.insert(runs.end(), others.begin(), others.end());
  std::ranges::sort(runs, [](const RunView* a, const RunView* b) { return a->run.id < b->run.id; });
  return runs;
}

}  // namespace ridgeline::report
