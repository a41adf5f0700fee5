#include "report/make_document.h"

#include <algorithm>
#include <map>

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

bool same(const Table& a, const Table& b) {
  const auto same_cell = [](const Cell& x, const Cell& y) {
    return x.text == y.text && x.runs == y.runs;
  };
  return a.title == b.title &&
         std::ranges::equal(a.rows, b.rows, [&](const auto& x, const auto& y) {
           return std::ranges::equal(x, y, same_cell);
         });
}

bool same(const Figure& a, const Figure& b) {
  const auto same_point = [](const Point& x, const Point& y) { return x.x == y.x && x.y == y.y; };
  const auto same_node = [](const Node& x, const Node& y) {
    return x.id == y.id && x.detail == y.detail;
  };
  // A network is the same whichever of its runs it was taken from.
  if (a.kind == FigureKind::diagram && a.kind == b.kind) {
    return std::ranges::equal(a.nodes, b.nodes, same_node);
  }
  return a.kind == b.kind && a.runs == b.runs && a.y.title == b.y.title &&
         a.spans.size() == b.spans.size() &&
         std::ranges::equal(a.series, b.series, [&](const Series& x, const Series& y) {
           return x.name == y.name && std::ranges::equal(x.points, y.points, same_point);
         });
}

// What an earlier section shows already is named instead of shown again.
class Repeats {
 public:
  void leave_out(Section& section, const std::string& within) {
    std::vector<Block> kept;
    std::map<std::string, std::vector<std::string>> left_out;  // by where they are shown
    for (Block& block : section.blocks) {
      const auto known = std::ranges::find_if(
          shown_, [&](const Shown& shown) { return is_same(shown.block, block); });
      if (known != shown_.end()) {
        left_out[known->section].push_back(title_of(block));
        continue;
      }
      if (!title_of(block).empty()) shown_.push_back({block, within});
      kept.push_back(std::move(block));
    }
    section.blocks = std::move(kept);
    for (const auto& [where, titles] : left_out) {
      section.blocks.emplace_back(Paragraph{
          {{.text = fmt::format("{}: the same as in “{}”.", list_text(titles, 20), where)}}});
    }
    for (Section& part : section.sections) leave_out(part, within);
  }

 private:
  struct Shown {
    Block block;
    std::string section;
  };
  // Of tables and figures.
  static std::string title_of(const Block& block) {
    if (const auto* table = std::get_if<Table>(&block)) return table->title;
    const auto* figure = std::get_if<Figure>(&block);
    return figure != nullptr ? figure->title : std::string();
  }
  static bool is_same(const Block& a, const Block& b) {
    if (const auto* x = std::get_if<Table>(&a), *y = std::get_if<Table>(&b); x && y) {
      return same(*x, *y);
    }
    const auto *x = std::get_if<Figure>(&a), *y = std::get_if<Figure>(&b);
    return x && y && same(*x, *y);
  }

  std::vector<Shown> shown_;
};

}  // namespace

Document make_document(const Data& data, const DocumentOptions& options) {
  const SectionInput input{.data = data, .studies = chosen_studies(data, options)};
  Document document;
  document.title = options.title.empty() ? title_of(input.studies) : options.title;
  document.subtitle = subtitle_of(data);
  document.generated = utc_now();
  document.program = fmt::format("ridgeline {} ({})", build_info::version, build_info::revision);
  // What all studies share is shown where it belongs, and named in the studies.
  Repeats repeats;
  std::vector<Section> rest, shared;
  const auto add = [&](std::vector<Section>& to, Section section) {
    if (section.blocks.empty() && section.sections.empty()) return;
    repeats.leave_out(section, section.title);
    to.push_back(std::move(section));
  };
  add(shared, environments_section(input));
  add(shared, complexity_section(input));
  for (const StudyView* study : input.studies) add(rest, study_section(input, *study));
  add(rest, other_section(input));
  add(rest, comparisons_section(input));
  std::ranges::move(shared, std::back_inserter(rest));
  add(rest, predictions_section(input));
  add(rest, anomalies_section(input));
  add(rest, method_section(input));
  add(rest, runs_section(input));
  document.sections.push_back(summary_section(input, rest));
  if (Section tested = hypotheses_section(input, rest); !tested.blocks.empty()) {
    document.sections.push_back(std::move(tested));
  }
  std::ranges::move(rest, std::back_inserter(document.sections));
  return document;
}

Document stored_document(const std::filesystem::path& path, const DocumentOptions& options) {
  const Store store = Store::open_existing(path);
  const Data data(store);
  if (data.runs().empty()) {
    bad_input("{}: has no complete runs{}; 'ridgeline study quick' or 'ridgeline bench' add some",
              path.string(),
              data.unfinished().empty() ? std::string()
                                        : fmt::format(", only {} that were interrupted or failed",
                                                      data.unfinished().size()));
  }
  return make_document(data, options);
}

}  // namespace ridgeline::report
