#include "documents/exhibits.h"

#include <algorithm>
#include <nlohmann/json.hpp>

#include "analysis/compare/stored.h"
#include "base/error.h"
#include "base/json_text.h"
#include "base/text.h"
#include "report/exhibits.h"
#include "report/make_document.h"
#include "report/plot/draw.h"

namespace ridgeline {
namespace {

using Json = nlohmann::ordered_json;

struct Exhibits {
  std::vector<report::Table> tables;
  std::vector<report::Figure> figures;
};

Json table_json(const report::Table& table) {
  Json columns = Json::array(), rows = Json::array();
  for (const report::TableColumn& column : table.columns) {
    columns.push_back({{"title", column.title},
                       {"unit", column.unit},
                       {"number", column.number},
                       {"meaning", column.meaning}});
  }
  for (const std::vector<report::Cell>& row : table.rows) {
    Json cells = Json::array();
    for (const report::Cell& cell : row) {
      cells.push_back({{"text", cell.text}, {"value", or_null(cell.value)}});
    }
    rows.push_back(std::move(cells));
  }
  return {{"id", table.id},           {"title", table.title},
          {"caption", table.caption}, {"columns", std::move(columns)},
          {"rows", std::move(rows)},  {"notes", table.notes}};
}

Json figure_json(const report::Figure& figure, const report::plot::Colours& colours) {
  return {{"id", figure.id},
          {"title", figure.title},
          {"caption", figure.caption},
          {"reading", figure.reading},
          {"notes", figure.notes},
          {"runs", figure.runs},
          {"svg", report::plot::svg_file(figure, report::plot::draw(figure, colours))}};
}

std::string json_of(const Exhibits& found) {
  std::vector<const report::Figure*> drawn;
  for (const report::Figure& figure : found.figures) {
    if (!figure.empty()) drawn.push_back(&figure);
  }
  const report::plot::Colours colours(drawn);
  Json tables = Json::array(), figures = Json::array();
  for (const report::Table& table : found.tables) tables.push_back(table_json(table));
  for (const report::Figure* figure : drawn) figures.push_back(figure_json(*figure, colours));
  return json_document(Json{{"tables", std::move(tables)}, {"figures", std::move(figures)}});
}

void take(const report::Section& section, Exhibits& found) {
  for (const report::Block& block : section.blocks) {
    if (const auto* table = std::get_if<report::Table>(&block)) found.tables.push_back(*table);
    if (const auto* figure = std::get_if<report::Figure>(&block)) found.figures.push_back(*figure);
  }
  for (const report::Section& inner : section.sections) take(inner, found);
}

report::Runs chosen_runs(const report::Data& data, const std::vector<std::string>& names) {
  report::Runs runs;
  if (names.empty()) {
    for (const report::RunView& run : data.runs()) runs.push_back(&run);
  }
  for (const std::string& name : names) {
    const report::RunView* run = data.find(find_run(data.store(), name).id);
    if (run == nullptr) bad_input("run {} was interrupted or failed", name);
    if (std::ranges::find(runs, run) == runs.end()) runs.push_back(run);
  }
  if (runs.empty()) bad_input("the store has no complete runs");
  return runs;
}

Exhibits made(const report::Data& data, const ExhibitsRequest& request) {
  Exhibits found;
  const report::Runs runs = chosen_runs(data, request.runs);
  std::vector<std::string_view> known;
  for (const report::TableKind& kind : report::table_kinds()) known.push_back(kind.name);
  for (const report::FigureKindEntry& kind : report::figure_kinds()) known.push_back(kind.name);
  for (const std::string& name : request.names) {
    const report::ExhibitInput input{data, name, "", runs};
    bool is_known = false;
    for (const report::TableKind& kind : report::table_kinds()) {
      if (kind.name != name) continue;
      is_known = true;
      for (report::Table& table : kind.make(input)) found.tables.push_back(std::move(table));
    }
    for (const report::FigureKindEntry& kind : report::figure_kinds()) {
      if (kind.name != name) continue;
      is_known = true;
      for (report::Figure& figure : kind.make(input)) found.figures.push_back(std::move(figure));
    }
    if (!is_known) {
      bad_input("there is no table or figure '{}'. Known: {}", name, joined(known, ", "));
    }
  }
  return found;
}

}  // namespace

std::string exhibits_json(const ExhibitsRequest& request) {
  if (!request.names.empty()) {
    const Store store = Store::open_existing(request.store);
    return json_of(made(report::Data(store), request));
  }
  if (!request.runs.empty()) bad_input("runs are chosen for exhibits that are named");
  Exhibits found;
  const report::Document document = report::stored_document(request.store, {});
  for (const report::Section& section : document.sections) take(section, found);
  return json_of(found);
}

}  // namespace ridgeline
