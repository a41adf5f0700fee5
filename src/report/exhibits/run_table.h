#pragma once

// What tables of runs have in common: the columns that tell runs apart, words for what all of them
// share, and cells. Unlike work can thus not stand in one table unmarked: a field that differs
// becomes a column.

#include <functional>
#include <initializer_list>
#include <map>
#include <memory>
#include <optional>
#include <string>
#include <string_view>
#include <vector>

#include "report/exhibits.h"
#include "report/exhibits/figure_values.h"
#include "report/exhibits/makers.h"
#include "report/exhibits/runs.h"

namespace ridgeline::report {

// Fields that are columns of a table, and a sentence on those that all its runs share.
struct Heads {
  std::vector<const RunField*> fields;
  std::string shared;
};
// Columns are those of `always` and all that differ among the runs but those of `never`, which the
// table itself tells in another way.
[[nodiscard]] Heads heads_of(const Data& data, const Runs& runs, const FieldNames& always,
                             const FieldNames& never = {});

// A table with the columns of the heads. Its title is the study's, or else `title`; `part` tells it
// from the others where the exhibit has several.
[[nodiscard]] Table begin_table(const ExhibitInput& input, const std::string& part,
                                const std::string& title, const Heads& heads);
[[nodiscard]] std::vector<Cell> begin_row(const Data& data, const Heads& heads, const RunView& run);

// "22 iterations each", "10 to 4,400 iterations each": what the runs' estimates were made from.
[[nodiscard]] std::string samples_text(const Runs& runs);

// A unit for numbers of which the greatest is given: "GFLOP/s" for 3e10.
[[nodiscard]] DisplayUnit unit_of(double greatest, std::string_view unit);

// Cells. Missing ones have a footnote with the reason.
enum class Marks { all, speed, accuracy };
// As mark(), but only what concerns speed or accuracy.
void mark_as(const Data& data, Table& table, Cell& cell, const RunView& run, Marks marks);
// A ratio of times of different calls: run-to-run variation is not included in its interval.
void mark_calls(Table& table, Cell& cell);
[[nodiscard]] Cell number_cell(Table& table, const std::optional<double>& value, double factor,
                               const RunView& run, const std::string& why);
// A whole number, with all its digits.
[[nodiscard]] Cell count_cell(std::int64_t count, std::vector<RunId> runs = {});
[[nodiscard]] Cell milliseconds_cell(Table& table, const RunView& run);
// Takes columns away in which every cell is missing, with the footnotes that only they had.
void drop_missing_columns(Table& table, std::initializer_list<std::string_view> titles);
inline constexpr const char* kUntested = "the network was not tested";
inline constexpr const char* kNoTraining = "not a training: nothing was learnt";
// Why the run has no place under the roofs.
[[nodiscard]] std::string why_no_point(const Data& data, const RunView& run);

// A table with a row for each run. Each column is given with what fills its cells, so that heads
// and cells cannot get out of step.
class RunTable {
 public:
  using Fill = std::function<Cell(const RunView& run)>;
  using Value = std::function<std::optional<double>(const RunView& run)>;

  struct Begin {
    std::string title, caption;  // as begin_table() has them
    FieldNames always = {"model", "batch", "machine", "executor"}, never = {};  // of heads_of()
    std::string_view last = {};  // the column of this field stands behind the others
    std::string part = {};
    bool shared = true;  // the caption begins with what the runs have in common
  };
  // `input` must outlive it.
  RunTable(const ExhibitInput& input, Runs runs, const Begin& begin);
  RunTable(const RunTable&) = delete;
  RunTable& operator=(const RunTable&) = delete;

  void column(TableColumn head, Fill fill);
  // Numbers, times the factor; n/a with the reason where a run has none.
  void numbers(TableColumn head, Value value, double factor, const std::string& why);

  // Columns of several tables.
  void throughput(const char* meaning = "Samples a second, median and interval");
  void iteration();  // its wall time
  void achieved(const char* meaning = "Algorithmic FLOPs over time");
  void of_the_roof(
      const char* meaning = "Least time at the measured ceilings over the measured time");
  void bound_by();
  void final_loss();
  void final_accuracy();

  // Cells.
  [[nodiscard]] Cell missing(const std::string& why) { return report::missing(table_, why); }
  [[nodiscard]] Cell noted(Cell cell, const std::string& note);
  [[nodiscard]] Cell marked(Cell cell, const RunView& run, Marks marks);
  [[nodiscard]] Cell number(const std::optional<double>& value, double factor, const RunView& run,
                            const std::string& why);
  // An iteration's median wall time and its interval, in milliseconds. REQUIRES: run.seconds.
  [[nodiscard]] Cell median(const RunView& run);
  // How many percent the run's throughput lies above the other's, without an interval where one
  // sample of either is all.
  [[nodiscard]] Cell gain(const RunView& run, const RunView& over);
  [[nodiscard]] Cell bound(const RunView& run);

  std::vector<Cell>& add_row(const RunView& run);
  // The table with a row for each run; none where there are no runs.
  [[nodiscard]] Tables made() { return made_of(runs_); }
  [[nodiscard]] Tables made_of(const Runs& runs);
  [[nodiscard]] Table& table() { return table_; }

 private:
  const ExhibitInput& input_;
  Runs runs_;
  Heads heads_;
  Table table_;
  std::vector<Fill> fills_;
};

// What `make` tells of a run, asked once however many columns show a part of it.
template <typename Make>
[[nodiscard]] auto once_per_run(Make make) {
  using Made = std::invoke_result_t<Make, const RunView&>;
  auto known = std::make_shared<std::map<const RunView*, Made>>();
  return [make = std::move(make), known](const RunView& run) -> const Made& {
    const auto found = known->find(&run);
    return found != known->end() ? found->second : known->emplace(&run, make(run)).first->second;
  };
}

}  // namespace ridgeline::report
