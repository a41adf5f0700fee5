// From the names of a study's file to tables and figures.

#include "report/exhibits.h"

#include <algorithm>
#include <array>

#include "base/error.h"
#include "report/analysis/text.h"
#include "report/sections/sections.h"

namespace ridgeline::report {

Section titled(std::string id, std::string title) {
  Section section;
  section.id = std::move(id);
  section.title = std::move(title);
  return section;
}

Section folded(std::string id, std::string title) {
  Section section = titled(std::move(id), std::move(title));
  section.folded = true;
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

void add_figure(Section& section, Figure figure) {
  if (figure.reading.empty()) figure.reading = reading_of(figure);
  std::size_t count = 0;
  const Series* last = nullptr;
  for (const Series& series : figure.series) {
    // Roofs are worth seeing by themselves.
    count += series.style == SeriesStyle::roof ? 2 : series.points.size();
    if (!series.points.empty()) last = &series;
  }
  const bool plotted = figure.kind == FigureKind::xy || figure.kind == FigureKind::bars;
  if (!figure.plain && !(plotted && count == 1)) {
    if (!figure.empty()) section.blocks.emplace_back(std::move(figure));
    return;
  }
  std::string text = figure.reading;
  if (!figure.plain) {
    const Point& point = last->points.front();
    const std::string place = figure.x.categories.empty()
                                  ? fmt::format("{} {}", figure.x.title, number_text(point.x))
                                  : figure.x.categories.at(static_cast<std::size_t>(point.x));
    const Estimate value{point.y, point.low.value_or(point.y), point.high.value_or(point.y), 0};
    text = fmt::format("{}, {}: {} {}.", last->name, place, estimate_text(value), figure.y.unit);
  }
  Prose prose;
  prose.strong(figure.title + ".").say(" ").say(text, figure.runs);
  for (const std::string& note : figure.notes) prose.say(" " + sentence_case(note));
  section.blocks.emplace_back(Paragraph{prose.pieces()});
}

void add_exhibit(Section& section, const Data& data, const Wanted& wanted) {
  const study::Exhibit& exhibit = wanted.exhibit;
  const ExhibitInput input{data, wanted.id, exhibit.title, wanted.runs};
  const auto make = [&](const auto& kinds) {
    const auto kind =
        std::ranges::find_if(kinds, [&](const auto& each) { return each.name == exhibit.name; });
    ensure(kind != kinds.end(), "there is no {} '{}'", exhibit.figure ? "figure" : "table",
           exhibit.name);
    return kind->make(input);
  };
  if (exhibit.figure) {
    for (Figure& figure : make(figure_kinds())) add_figure(section, std::move(figure));
  } else {
    for (Table& table : make(table_kinds())) {
      group_rows(table);
      section.blocks.emplace_back(std::move(table));
    }
  }
}

namespace {

// The place of the figure that tells most; nothing where there is none.
std::optional<std::size_t> lead_place(
    const Section& results, const std::vector<std::pair<std::size_t, std::string>>& begins) {
  constexpr std::array<std::string_view, 7> kFirst = {
      "throughput", "roofline", "batch-sweep", "accuracy-time", "accuracy-epochs", "sweep", ""};
  for (const std::string_view wanted : kFirst) {
    for (std::size_t i = 0; i < begins.size(); ++i) {
      if (!wanted.empty() && begins[i].second != wanted) continue;
      const std::size_t end = i + 1 < begins.size() ? begins[i + 1].first : results.blocks.size();
      for (std::size_t place = begins[i].first; place < end; ++place) {
        if (std::holds_alternative<Figure>(results.blocks[place])) return place;
      }
    }
  }
  return std::nullopt;
}

}  // namespace

void add_results(Section& section, const SectionInput& input, const std::vector<Wanted>& wanted,
                 std::vector<Sentence> sentences, const Runs& runs) {
  constexpr std::size_t kSentences = 3;
  Section results = folded(section.id + "-results", "Tables and figures");
  std::vector<std::pair<std::size_t, std::string>> begins;  // of each exhibit's blocks
  for (const Wanted& each : wanted) {
    begins.emplace_back(results.blocks.size(), each.exhibit.figure ? each.exhibit.name : "table");
    add_exhibit(results, input.data, each);
  }
  if (const auto lead = lead_place(results, begins)) {
    const auto place = results.blocks.begin() + static_cast<std::ptrdiff_t>(*lead);
    section.blocks.push_back(std::move(*place));
    results.blocks.erase(place);
  }
  Section analysis = folded(section.id + "-analysis", "Analysis");
  for (Told& told : analysis_of(input.data, runs)) {
    if (sentences.size() < kSentences) sentences.push_back(told.first);
    analysis.blocks.emplace_back(std::move(told.paragraph));
  }
  if (const auto text = paragraph_of(sentences)) section.blocks.emplace_back(*text);
  for (Section* part : {&results, &analysis}) {
    if (!part->blocks.empty()) section.sections.push_back(std::move(*part));
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
