#include "report/exhibits/figure_runs.h"

#include <algorithm>
#include <array>
#include <cctype>
#include <tuple>
#include <utility>

#include "base/error.h"
#include "base/text.h"
#include "report/flags.h"

namespace ridgeline::report {
namespace {

// In the order in which names tell them.
constexpr std::array<std::string_view, 16> kFields = {
    "model",         "executor", "settings", "command", "kind",      "batch",
    "image",         "data",     "samples",  "classes", "optimizer", "learning_rate",
    "normalisation", "variant",  "threads",  "machine"};
// What captions tell of work that all runs share.
constexpr std::array<std::string_view, 7> kCommon = {
    "batch", "image", "data", "samples", "optimizer", "learning_rate", "machine"};

// A footnote names no more series than that.
constexpr std::size_t kMostNames = 4;

using Fields = std::vector<std::string_view>;

std::string key_of(const Data& data, const RunView& run, const Fields& left_out) {
  std::string key;
  for (const std::string_view field : kFields) {
    if (std::find(left_out.begin(), left_out.end(), field) != left_out.end()) continue;
    key += field_text(data, run, field) + '\n';
  }
  return key;
}

// Of runs with the same key the last one that none of the others is better than; in the order of
// the runs.
template <typename Better>
Runs best_of(const Data& data, const Runs& runs, const Fields& left_out, Better&& better) {
  std::map<std::string, const RunView*> best;
  for (const RunView* run : runs) {
    const RunView*& kept = best[key_of(data, *run, left_out)];
    if (kept == nullptr || !better(*kept, *run)) kept = run;
  }
  return only(runs,
              [&](const RunView& run) { return best.at(key_of(data, run, left_out)) == &run; });
}

// Makers' signs and nominal clocks make names long and tell nothing.
std::string shortened(std::string name) {
  for (const std::string_view part : {"(R)", "(TM)", "(C)", " Processor", " CPU", "NVIDIA "}) {
    for (std::size_t at = name.find(part); at != std::string::npos; at = name.find(part)) {
      name.erase(at, part.size());
    }
  }
  name = name.substr(0, name.find(" @ "));
  return name;
}

// Short, where no other machine would bear the same name.
std::string machine_text(const Data& data, const RunView& run) {
  const std::string& name = data.machine_of(run).name;
  std::string brief = shortened(name);
  const bool unique = std::none_of(
      data.machines().begin(), data.machines().end(),
      [&](const Machine& other) { return other.name != name && shortened(other.name) == brief; });
  return unique && !brief.empty() ? brief : name;
}

// Fields that come with the network and the command, and are told only where they differ among runs
// that share these: images of one network, threads of one machine.
std::string context_of(const Data& data, const RunView& run, std::string_view field) {
  if (field == "threads") return field_text(data, run, "machine");
  static constexpr std::array<std::string_view, 8> kComeAlong = {
      "image",     "data",          "samples",       "classes",
      "optimizer", "learning_rate", "normalisation", "variant"};
  const bool comes_along =
      std::find(kComeAlong.begin(), kComeAlong.end(), field) != kComeAlong.end();
  if (!comes_along) return {};
  return field_text(data, run, "model") + "\n" + field_text(data, run, "command");
}

// Letters, digits and hyphens.
std::string slug(std::string_view text) {
  std::string name;
  for (const char c : text) {
    const bool plain = (c >= 'a' && c <= 'z') || (c >= '0' && c <= '9');
    const char lower = static_cast<char>(std::tolower(static_cast<unsigned char>(c)));
    if (plain || (c >= 'A' && c <= 'Z')) {
      name += lower;
    } else if (!name.empty() && name.back() != '-') {
      name += '-';
    }
  }
  // It becomes a file's name.
  constexpr std::size_t kMostLetters = 60;
  name.resize(std::min(name.size(), kMostLetters));
  while (!name.empty() && name.back() == '-') name.pop_back();
  return name;
}

std::string with(const std::string& title, const std::string& part) {
  if (title.empty() || part.empty()) return title + part;
  return title + ", " + part;
}

// One share for each value of the field, in the order of the runs.
std::vector<Share> by_field(const Data& data, const Share& share, std::string_view field) {
  std::vector<std::pair<std::string, Share>> parts;
  for (const RunView* run : share.runs) {
    const std::string value = field_text(data, *run, field);
    auto found = std::find_if(parts.begin(), parts.end(),
                              [&](const auto& part) { return part.first == value; });
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

bool is_told(const Data& data, const RunView& run, const Runs& runs, std::string_view field) {
  const std::string value = field_text(data, run, field);
  const std::string context = context_of(data, run, field);
  return std::any_of(runs.begin(), runs.end(), [&](const RunView* other) {
    return field_text(data, *other, field) != value && context_of(data, *other, field) == context;
  });
}

std::string field_text(const Data& data, const RunView& run, std::string_view field) {
  const Work& work = run.run.work;
  if (field == "model") return work.model;
  if (field == "settings") return work.settings;
  if (field == "executor") return run.executor();
  if (field == "machine") return machine_text(data, run);
  if (field == "kind") return work.kind;
  if (field == "batch") return fmt::format("batch {}", count_text(work.batch));
  if (field == "image") return work.image;
  if (field == "data") return work.data == "synthetic" ? "synthetic data" : work.data;
  // Synthetic batches are drawn from as many samples as are needed.
  if (field == "samples") {
    return work.data == "synthetic" || work.data_samples == 0
               ? std::string()
               : count_text(work.data_samples) + " samples";
  }
  if (field == "classes") return fmt::format("{} classes", work.classes);
  if (field == "optimizer") return work.optimizer;
  if (field == "learning_rate") {
    return run.learning_rate ? fmt::format("rate {:g}", *run.learning_rate) : std::string();
  }
  if (field == "normalisation") return work.normalisation;
  if (field == "variant") return work.variant;
  if (field == "threads") {
    return run.run.executor.device == "cpu" ? fmt::format("{} threads", run.run.executor.threads)
                                            : std::string();
  }
  // Bench and profile run the same steps; a training also loads data and evaluates.
  if (field == "command") return run.run.command == "train" ? "whole training" : "";
  fail("runs have no field named {}", field);
}

std::map<std::string, std::string> settings_of(const Work& work) {
  std::map<std::string, std::string> settings;
  std::string last;
  std::string_view rest = work.settings;
  while (!rest.empty()) {
    const std::string_view one = rest.substr(0, rest.find(','));
    rest.remove_prefix(std::min(rest.size(), one.size() + 1));
    const std::size_t equals = one.find('=');
    if (equals != std::string_view::npos) {
      last = one.substr(0, equals);
      settings[last] = one.substr(equals + 1);
    } else if (!last.empty()) {
      // A list is one value.
      settings[last] += "," + std::string(one);
    }
  }
  return settings;
}

Names::Names(const Data& data, const Runs& runs, std::set<std::string_view> shown) : data_(data) {
  std::vector<std::string> common;
  for (const std::string_view field : kFields) {
    if (shown.contains(field)) continue;
    std::set<std::string> values;
    std::map<std::string, std::set<std::string>> by_context;
    for (const RunView* run : runs) {
      const std::string value = field_text(data, *run, field);
      values.insert(value);
      by_context[context_of(data, *run, field)].insert(value);
    }
    for (const auto& [context, different] : by_context) {
      if (field == "executor" || different.size() > 1) told_.emplace(field, context);
    }
    if (std::find(kCommon.begin(), kCommon.end(), field) == kCommon.end()) continue;
    if (values.size() == 1 && !values.begin()->empty()) common.push_back(*values.begin());
  }
  common_ = joined(common, ", ");
}

std::string Names::of(const RunView& run) const {
  std::vector<std::string> parts;
  for (const std::string_view field : kFields) {
    if (!told_.contains({field, context_of(data_, run, field)})) continue;
    std::string text = field_text(data_, run, field);
    if (!text.empty()) parts.push_back(std::move(text));
  }
  return joined(parts, ", ");
}

void Notes::add(const RunView& run, const std::string& name) {
  for (const Finding& flag : flags_of(*data_, run)) {
    // Data are replaced in different ways; of other flags one sentence serves all.
    add(flag.name == kSubstituted ? flag.name + flag.evidence : flag.name, footnote_of(flag), name);
  }
}

void Notes::add(const std::string& note, const std::string& name) { add(note, note, name); }

void Notes::add(const std::string& key, const std::string& note, const std::string& name) {
  auto found = std::find_if(notes_.begin(), notes_.end(),
                            [&](const Note& known) { return known.key == key; });
  if (found == notes_.end()) {
    notes_.push_back({key, note, {}});
    found = std::prev(notes_.end());
  }
  std::vector<std::string>& names = found->names;
  if (std::find(names.begin(), names.end(), name) == names.end()) names.push_back(name);
}

void Notes::write(Figure& figure) const {
  const auto of_all = [&](const Note& note) {
    return note.names.size() > 1 &&
           std::all_of(figure.series.begin(), figure.series.end(), [&](const Series& series) {
             return std::find(note.names.begin(), note.names.end(), series.name) !=
                    note.names.end();
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

Runs in_order(const Runs& runs) {
  std::map<std::string, std::size_t> models;
  for (const RunView* run : runs) models.emplace(run->run.work.model, models.size());
  Runs sorted = runs;
  std::stable_sort(sorted.begin(), sorted.end(), [&](const RunView* a, const RunView* b) {
    const Work &one = a->run.work, &other = b->run.work;
    return std::tuple(models.at(one.model), one.batch, a->machine) <
           std::tuple(models.at(other.model), other.batch, b->machine);
  });
  return sorted;
}

Runs newest(const Data& data, const Runs& runs) {
  return best_of(data, runs, {}, [](const RunView&, const RunView&) { return false; });
}

Runs largest_batches(const Data& data, const Runs& runs) {
  return best_of(data, runs, {"batch", "samples"}, [](const RunView& kept, const RunView& run) {
    return kept.run.work.batch > run.run.work.batch;
  });
}

Runs without_profiles(const Data& data, const Runs& runs) {
  const Fields loosely = {"command", "data", "samples", "learning_rate", "normalisation"};
  std::set<std::string> longer;
  for (const RunView* run : runs) {
    if (run->run.command != "profile") longer.insert(key_of(data, *run, loosely));
  }
  return only(runs, [&](const RunView& run) {
    return run.run.command != "profile" || !longer.contains(key_of(data, run, loosely));
  });
}

SeriesCount series_by_name(const Data& data, std::set<std::string_view> shown) {
  return [&data, shown = std::move(shown)](const Runs& runs) {
    const Names names(data, runs, shown);
    std::set<std::string> different;
    for (const RunView* run : runs) different.insert(names.of(*run));
    return different.size();
  };
}

std::vector<Share> split(const Data& data, const Runs& runs, const Fields& always,
                         const Fields& then, const SeriesCount& count) {
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
    return std::any_of(figures.begin(), figures.end(),
                       [&](const Figure& other) { return other.id == id; });
  };
  const std::string id = figure.id;
  for (int number = 2; taken(figure.id); ++number) figure.id = fmt::format("{}-{}", id, number);
  figures.push_back(std::move(figure));
}

Series& series_named(Figure& figure, const std::string& name, SeriesStyle style) {
  const auto found = std::find_if(figure.series.begin(), figure.series.end(),
                                  [&](const Series& each) { return each.name == name; });
  if (found != figure.series.end()) return *found;
  Series& added = figure.series.emplace_back();
  added.name = name;
  added.style = style;
  return added;
}

double category_of(Axis& axis, const std::string& name) {
  const auto found = std::find(axis.categories.begin(), axis.categories.end(), name);
  const auto index = found - axis.categories.begin();
  if (found == axis.categories.end()) axis.categories.push_back(name);
  return static_cast<double>(index);
}

void rests_on(Figure& figure, const RunView& run) {
  if (std::find(figure.runs.begin(), figure.runs.end(), run.run.id) == figure.runs.end()) {
    figure.runs.push_back(run.run.id);
  }
}

}  // namespace ridgeline::report
