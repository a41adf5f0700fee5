#include "report/exhibits/figure_runs.h"

#include <algorithm>
#include <set>

#include "base/error.h"
#include "base/text.h"
#include "report/contents.h"
#include "report/flags.h"

namespace ridgeline::report {
namespace {

// A footnote names no more series than that.
constexpr std::size_t kMostNames = 4;

std::string with(const std::string& title, const std::string& part) {
  if (title.empty() || part.empty()) return title + part;
  return title + ", " + part;
}

// One share for each value of the field, in the order of the runs.
std::vector<Share> by_field(const Data& data, const Share& share, std::string_view name) {
  const RunField& field = run_field(name);
  std::vector<std::pair<std::string, Share>> parts;
  for (const RunView* run : share.runs) {
    std::string value = field.phrase(data, *run);
    if (value.empty()) value = field.text(data, *run);
    auto found = std::ranges::find_if(parts, [&](const auto& part) { return part.first == value; });
    if (found == parts.end()) {
      parts.push_back({value, {{}, with(share.title, value)}});
      found = std::prev(parts.end());
    }
    found->second.runs.push_back(run);
  }
  // A field that tells nothing apart needs no mention.
  if (parts.size() == 1) return {share};
  std::vector<Share> shares;
  for (auto& part : parts) shares.push_back(std::move(part.second));
  return shares;
}

std::vector<Share> in_pieces(const Share& share, const SeriesCount& count) {
  if (count(share.runs) <= kMostSeries) return {share};
  std::vector<Share> pieces{{{}, share.title}};
  for (const RunView* run : share.runs) {
    pieces.back().runs.push_back(run);
    if (pieces.back().runs.size() == 1 || count(pieces.back().runs) <= kMostSeries) continue;
    pieces.back().runs.pop_back();
    pieces.push_back({{run}, {}});
  }
  for (std::size_t i = 0; pieces.size() > 1 && i < pieces.size(); ++i) {
    pieces[i].title = with(share.title, fmt::format("part {} of {}", i + 1, pieces.size()));
  }
  return pieces;
}

}  // namespace

void Notes::add(const RunView& run, const std::string& name) {
  if (!has(runs_, run.run.id)) runs_.push_back(run.run.id);
  for (const Finding& flag : flags_of(*data_, run)) {
    // Data are replaced in different ways; of other flags one sentence serves all.
    add(flag.name == kSubstituted ? flag.name + flag.evidence : flag.name, footnote_of(flag), name);
  }
}

void Notes::add(const std::string& note, const std::string& name) { add(note, note, name); }

void Notes::add(const std::string& key, const std::string& note, const std::string& name) {
  auto found = std::ranges::find(notes_, key, &Note::key);
  if (found == notes_.end()) {
    notes_.push_back({key, note, {}});
    found = std::prev(notes_.end());
  }
  std::vector<std::string>& names = found->names;
  if (!has(names, name)) names.push_back(name);
}

void Notes::write(Figure& figure) const {
  figure.runs = runs_;
  const auto of_all = [&](const Note& note) {
    return note.names.size() > 1 && std::ranges::all_of(figure.series, [&](const Series& series) {
             return has(note.names, series.name);
           });
  };
  for (const Note& note : notes_) {
    if (of_all(note)) {
      figure.notes.push_back(note.text + " (all).");
      continue;
    }
    std::vector<std::string> names = note.names;
    const std::size_t more = names.size() > kMostNames ? names.size() - kMostNames : 0;
    names.resize(names.size() - more);
    figure.notes.push_back(
        fmt::format("{} ({}{}).", note.text, joined(names, "; "),
                    more == 0 ? std::string() : fmt::format("; and {} more", more)));
  }
}

SeriesCount series_by_name(const Data& data, FieldNames shown) {
  return [&data, shown = std::move(shown)](const Runs& runs) {
    const Names names(data, runs, shown);
    std::set<std::string> different;
    for (const RunView* run : runs) different.insert(names.of(*run));
    return different.size();
  };
}

std::vector<Share> split(const Data& data, const Runs& runs, const FieldNames& always,
                         const FieldNames& then, const SeriesCount& count) {
  std::vector<Share> shares;
  if (!runs.empty()) shares.push_back({runs, {}});
  const auto divide = [&](const auto& parts_of) {
    std::vector<Share> divided;
    for (const Share& share : shares) {
      std::vector<Share> parts = parts_of(share);
      std::move(parts.begin(), parts.end(), std::back_inserter(divided));
    }
    shares = std::move(divided);
  };
  for (const std::string_view field : always) {
    divide([&](const Share& share) { return by_field(data, share, field); });
  }
  for (const std::string_view field : then) {
    divide([&](const Share& share) {
      return count(share.runs) > kMostSeries ? by_field(data, share, field)
                                             : std::vector<Share>{share};
    });
  }
  divide([&](const Share& share) { return in_pieces(share, count); });
  return shares;
}

Figure new_figure(const ExhibitInput& input, const std::string& title, const std::string& what) {
  Figure figure;
  figure.id = slug(what).empty() ? input.id : input.id + "-" + slug(what);
  figure.title = input.title.empty() ? title : input.title;
  if (!what.empty()) figure.title += (figure.title.empty() ? "" : ": ") + what;
  return figure;
}

void put(std::vector<Figure>& figures, Figure figure) {
  if (figure.empty()) return;
  const auto taken = [&](const std::string& id) {
    return std::ranges::any_of(figures, [&](const Figure& other) { return other.id == id; });
  };
  const std::string id = figure.id;
  for (int number = 2; taken(figure.id); ++number) figure.id = fmt::format("{}-{}", id, number);
  figures.push_back(std::move(figure));
}

Series& series_named(Figure& figure, const std::string& name, SeriesStyle style) {
  const auto found = std::ranges::find(figure.series, name, &Series::name);
  if (found != figure.series.end()) return *found;
  Series& added = figure.series.emplace_back();
  added.name = name;
  added.style = style;
  return added;
}

double category_of(Axis& axis, const std::string& name) {
  const auto found = std::ranges::find(axis.categories, name);
  const auto index = found - axis.categories.begin();
  if (found == axis.categories.end()) axis.categories.push_back(name);
  return static_cast<double>(index);
}

}  // namespace ridgeline::report
