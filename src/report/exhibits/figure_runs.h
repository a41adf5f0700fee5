#pragma once

// Which runs stand together in a figure, what they are called there, and which footnotes they
// bring with them.

#include <functional>
#include <string>
#include <string_view>
#include <vector>

#include "report/exhibits.h"
#include "report/exhibits/runs.h"

namespace ridgeline::report {

// More series than that are split into several figures.
inline constexpr std::size_t kMostSeries = 12;

// The runs that a figure rests on, and footnotes, each with the names of the series that it
// concerns.
class Notes {
 public:
  explicit Notes(const Data& data) : data_(&data) {}
  // A run that is drawn under this name, and what the reader must know of it (flags.h).
  void add(const RunView& run, const std::string& name);
  // Something else that concerns a series.
  void add(const std::string& note, const std::string& name);
  // Writes both into the figure, in their order.
  void write(Figure& figure) const;

 private:
  struct Note {
    std::string key, text;
    std::vector<std::string> names;
  };
  void add(const std::string& key, const std::string& note, const std::string& name);

  const Data* data_;
  std::vector<Note> notes_;
  std::vector<RunId> runs_;
};

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
[[nodiscard]] SeriesCount series_by_name(const Data& data, FieldNames shown);
// Splits by the fields `always`, and where that leaves more than kMostSeries series, by `then`, one
// field after another, as far as needed; what is still too much is cut into pieces.
[[nodiscard]] std::vector<Share> split(const Data& data, const Runs& runs, const FieldNames& always,
                                       const FieldNames& then,
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

}  // namespace ridgeline::report
