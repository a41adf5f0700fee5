#pragma once

// What tables of runs have in common: the columns that tell runs apart, words for what all of them
// share, and cells. Unlike work can thus not stand in one table unmarked: a field that differs
// becomes a column.

#include <initializer_list>
#include <optional>
#include <string>
#include <string_view>
#include <vector>

#include "report/exhibits.h"
#include "report/exhibits/figure_scale.h"
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
// Moves a column behind the others.
void put_last(Heads& heads, std::string_view name);

// A table with the columns of the heads. Its title is the study's, or else `title`; `part` tells it
// from the others where the exhibit has several.
[[nodiscard]] Table begin_table(const ExhibitInput& input, const std::string& part,
                                const std::string& title, const Heads& heads);
[[nodiscard]] std::vector<Cell> begin_row(const Data& data, const Heads& heads, const RunView& run);
// "throughput-mnist-cnn" of "throughput" and "mnist_cnn".
[[nodiscard]] std::string joined_id(const std::string& id, const std::string& suffix);

// "22 iterations each", "10 to 4,400 iterations each": what the runs' estimates were made from.
[[nodiscard]] std::string samples_text(const Runs& runs);

// A unit for numbers of which the greatest is given: "GFLOP/s" for 3e10.
[[nodiscard]] Scale scale_of(double greatest, std::string_view unit);

// Cells. Missing ones have a footnote with the reason.
enum class Marks { all, speed, accuracy };
// As mark(), but only what concerns speed or accuracy.
void mark_as(const Data& data, Table& table, Cell& cell, const RunView& run, Marks marks);
// Of a ratio of times of different calls: how much runs differ by themselves is not in its
// interval.
void mark_calls(Table& table, Cell& cell);
// The run's throughput over the other's, without an interval where one sample of either is all.
[[nodiscard]] Cell ratio_cell(Table& table, const RunView& run, const RunView& over);
[[nodiscard]] Cell number_cell(Table& table, const std::optional<double>& value, double factor,
                               const RunView& run, const std::string& why);
// A whole number, with all its digits.
[[nodiscard]] Cell count_cell(std::int64_t count, std::vector<RunId> runs = {});
[[nodiscard]] Cell rate_cell(const Data& data, Table& table, const RunView& run);
[[nodiscard]] Cell milliseconds_cell(Table& table, const RunView& run);
[[nodiscard]] Cell flops_cell(Table& table, const RunView& run, double factor);
// Mean training loss of the last epoch. REQUIRES: there is one.
[[nodiscard]] Cell loss_cell(Table& table, const RunView& run);
// Share of the roof, in percent.
[[nodiscard]] Cell efficiency_cell(const Data& data, Table& table, const RunView& run);
[[nodiscard]] Cell bound_cell(const Data& data, Table& table, const RunView& run);
// Takes columns away in which every cell is missing, with the footnotes that only they had.
void drop_missing_columns(Table& table, std::initializer_list<std::string_view> titles);
// Why the run has no place under the roofs.
[[nodiscard]] std::string why_no_point(const Data& data, const RunView& run);

}  // namespace ridgeline::report
