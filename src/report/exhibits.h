#pragma once

// The tables and figures that a study's file can ask for, by name. Each maker looks at the runs of
// the exhibit's parts and gives what it can show: several where one would be too full or would mix
// unlike work, none where there is nothing to show. Ids begin with the exhibit's `id`.

#include <span>
#include <string>
#include <string_view>
#include <vector>

#include "report/data.h"
#include "report/figure.h"
#include "report/table.h"

namespace ridgeline::report {

struct ExhibitInput {
  const Data& data;
  std::string id;     // unique in the document
  std::string title;  // the study's own; empty: the maker's
  Runs runs;
};

struct TableKind {
  std::string_view name;
  std::vector<Table> (*make)(const ExhibitInput& input);
};
struct FigureKindEntry {
  std::string_view name;
  std::vector<Figure> (*make)(const ExhibitInput& input);
};
// One for each of study::table_names() and study::figure_names().
[[nodiscard]] std::span<const TableKind> table_kinds();
[[nodiscard]] std::span<const FigureKindEntry> figure_kinds();

// What there is to see in a figure, in one sentence; empty: nothing is drawn.
[[nodiscard]] std::string reading_of(const Figure& figure);

// The footnotes that a cell of the run needs wherever it stands: substitutes for data, findings
// that change how its number must be read (flags.h).
void mark(const Data& data, Table& table, Cell& cell, const RunView& run);

}  // namespace ridgeline::report
