#pragma once

// Which runs stand together in a figure, what they are called there, and which footnotes they
// bring with them.

#include <functional>
#include <map>
#include <set>
#include <string>
#include <string_view>
#include <utility>
#include <vector>

#include "report/exhibits.h"

namespace ridgeline::report {

using Runs = std::vector<const RunView*>;

// More series than that are split into several figures.
inline constexpr std::size_t kMostSeries = 12;

// A field by which runs can differ, as words: "model", "settings" (of the model), "executor",
// "machine", "batch", "image", "data", "samples", "optimizer", "learning_rate", "kind", "classes",
// "variant", "threads", "command", "normalisation". Empty: the run has none.
[[nodiscard]] std::string field_text(const Data& data, const RunView& run, std::string_view field);

// Whether the run's name among these runs must tell the field: where they differ in it, and for
// fields that come with a network (images, classes, data) where runs of that network do.
[[nodiscard]] bool is_told(const Data& data, const RunView& run, const Runs& runs,
                           std::string_view field);

// The options of the model: "filters=8,16,kernel=3" has two.
[[nodiscard]] std::map<std::string, std::string> settings_of(const Work& work);

// Calls runs by what tells them apart within one figure: the executor always, other fields where
// they differ. Unlike work thus never has the same name.
class Names {
 public:
  // `shown`: fields that the figure tells otherwise, by its axis, categories or title.
  Names(const Data& data, const Runs& runs, std::set<std::string_view> shown = {});
  [[nodiscard]] std::string of(const RunView& run) const;
  // What all of them have in common, for captions: "batch 128, 3x224x224, sgd momentum 0.9".
  [[nodiscard]] const std::string& common() const { return common_; }

 private:
  const Data& data_;
  // Fields that differ, with what the runs that differ have in common.
  std::set<std::pair<std::string_view, std::string>> told_;
  std::string common_;
};

// Footnotes, each with the names of the series that it concerns.
class Notes {
 public:
  explicit Notes(const Data& data) : data_(&data) {}
  // What the reader must know of the run (flags.h), which bears this name in the figure.
  void add(const RunView& run, const std::string& name);
  // Something else that concerns a series.
  void add(const std::string& note, const std::string& name);
  // Writes them into the figure, in their order.
  void write(Figure& figure) const;

 private:
  struct Note {
    std::string key, text;
    std::vector<std::string> names;
  };
  void add(const std::string& key, const std::string& note, const std::string& name);

  const Data* data_;
  std::vector<Note> notes_;
};

// Runs with something to show.
template <typename Condition>
[[nodiscard]] Runs only(const Runs& runs, Condition&& condition) {
  Runs kept;
  for (const RunView* run : runs) {
    if (condition(*run)) kept.push_back(run);
  }
  return kept;
}

// By network, in the order of their first runs, then from the smallest batch on.
[[nodiscard]] Runs in_order(const Runs& runs);
// Of runs that repeat each other (same work, executor, machine and learning rate) the newest.
[[nodiscard]] Runs newest(const Data& data, const Runs& runs);
// The same, and of configurations that differ by the batch alone the one with the largest.
[[nodiscard]] Runs largest_batches(const Data& data, const Runs& runs);
// Profiles measure a few iterations only: they are left out where a longer run did the same work.
[[nodiscard]] Runs without_profiles(const Data& data, const Runs& runs);

// Runs of one figure. `title` tells it from the others; empty: there is only one.
struct Share {
  Runs runs;
  std::string title;
};
// How many series runs make.
using SeriesCount = std::function<std::size_t(const Runs&)>;
// One for each run.
[[nodiscard]] inline std::size_t count_runs(const Runs& runs) { return runs.size(); }
// One for each name that differs when the figure shows the fields `shown` otherwise.
[[nodiscard]] SeriesCount series_by_name(const Data& data, std::set<std::string_view> shown);
// Splits by the fields `always`, and where that leaves more than kMostSeries series, by `then`, one
// field after another, as far as needed; what is still too much is cut into pieces.
[[nodiscard]] std::vector<Share> split(const Data& data, const Runs& runs,
                                       const std::vector<std::string_view>& always,
                                       const std::vector<std::string_view>& then,
                                       const SeriesCount& count = count_runs);

// A figure with id and title: the exhibit's own title, or `title`, and the share's.
[[nodiscard]] Figure new_figure(const ExhibitInput& input, const std::string& title,
                                const std::string& what);
// Adds the figure, with an id that is unique among them, unless there is nothing to draw.
void put(std::vector<Figure>& figures, Figure figure);
// The series of that name, which is added where the figure does not have it yet.
[[nodiscard]] Series& series_named(Figure& figure, const std::string& name, SeriesStyle style);
// The index of a category, which is added where the axis does not have it yet.
[[nodiscard]] double category_of(Axis& axis, const std::string& name);
// Notes the run as one that the figure rests on.
void rests_on(Figure& figure, const RunView& run);

}  // namespace ridgeline::report
