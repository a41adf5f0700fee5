#include "report/exhibits/run_table.h"

#include <algorithm>

#include "base/error.h"
#include "base/text.h"
#include "report/contents.h"

namespace ridgeline::report {
Heads heads_of(const Data& data, const Runs& runs, const FieldNames& always,
               const FieldNames& never) {
  std::vector<const RunField*> told = differing_fields(data, runs);
  // Inputs come with a network; a table has room to say so.
  if (std::ranges::any_of(runs, [&](const RunView* run) {
        return run->run.work.image != runs[0]->run.work.image;
      })) {
    told.push_back(&run_field("image"));
  }
  Heads heads;
  FieldNames known = never;
  for (const RunField& field : run_fields()) {
    const bool differs = has(told, &field) && !has(never, field.name);
    if (!differs && !has(always, field.name)) continue;
    heads.fields.push_back(&field);
    known.push_back(field.name);
  }
  heads.shared = common_text(data, runs, known);
  return heads;
}

Table begin_table(const ExhibitInput& input, const std::string& part, const std::string& title,
                  const Heads& heads) {
  Table table;
  table.id = part.empty() ? input.id : input.id + '-' + slug(part);
  table.title = input.title.empty() ? title : input.title;
  if (!part.empty()) table.title += ": " + part;
  table.heads = heads.fields.size();
  if (!heads.shared.empty()) table.caption = heads.shared.substr(1);
  for (const RunField* field : heads.fields) {
    table.columns.push_back(
        {std::string(field->label), "", field->number, std::string(field->meaning)});
  }
  return table;
}

std::vector<Cell> begin_row(const Data& data, const Heads& heads, const RunView& run) {
  std::vector<Cell> cells;
  for (const RunField* field : heads.fields) {
    const std::string text = field->text(data, run);
    // A network without options, a bench without a learning rate: nothing is missing.
    Cell cell = words(text.empty() ? "–" : text);
    if (field->number && !text.empty()) cell.value = field->value(run);
    cell.runs.push_back(run.run.id);
    cells.push_back(std::move(cell));
  }
  return cells;
}

std::string samples_text(const Runs& runs) {
  std::int64_t least = -1, most = 0;
  bool epochs = false, iterations = false;
  for (const RunView* run : runs) {
    if (!run->seconds) continue;
    const std::int64_t samples = run->seconds->samples;
    least = least < 0 ? samples : std::min(least, samples);
    most = std::max(most, samples);
    (is_training(*run) ? epochs : iterations) = true;
  }
  if (least < 0) return "nothing measured";
  const bool one = most == 1;
  const char* what = epochs && iterations ? (one ? "iteration or epoch" : "iterations or epochs")
                     : epochs             ? (one ? "epoch" : "epochs")
                                          : (one ? "iteration" : "iterations");
  if (least == most) return fmt::format("{} {} each", count_text(least), what);
  return fmt::format("{} to {} {} each", count_text(least), count_text(most), what);
}

DisplayUnit unit_of(double greatest, std::string_view unit) {
  const std::string name(unit);
  if (greatest >= 1e12) return {1e-12, "T" + name};
  if (greatest >= 1e9) return {1e-9, "G" + name};
  if (greatest >= 1e6) return {1e-6, "M" + name};
  if (greatest >= 1e3) return {1e-3, "k" + name};
  return {1.0, name};
}

RunTable::RunTable(const ExhibitInput& input, Runs runs, const Begin& begin)
    : input_(input), runs_(std::move(runs)) {
  heads_ = heads_of(input.data, runs_, begin.always, begin.never);
  std::ranges::stable_partition(heads_.fields,
                                [&](const RunField* field) { return field->name != begin.last; });
  table_ = begin_table(input, begin.part, begin.title, heads_);
  table_.caption = begin.shared ? table_.caption + begin.caption : begin.caption;
}

void RunTable::column(TableColumn head, Fill fill) {
  table_.columns.push_back(std::move(head));
  fills_.push_back(std::move(fill));
}

void RunTable::numbers(TableColumn head, Value value, double factor, const std::string& why) {
  column(std::move(head), [this, value = std::move(value), factor, why](const RunView& run) {
    return number(value(run), factor, run, why);
  });
}

std::vector<Cell>& RunTable::add_row(const RunView& run) {
  std::vector<Cell> row = begin_row(input_.data, heads_, run);
  for (const Fill& fill : fills_) row.push_back(fill(run));
  return table_.rows.emplace_back(std::move(row));
}

Tables RunTable::made_of(const Runs& runs) {
  for (const RunView* run : runs) add_row(*run);
  return table_.rows.empty() ? Tables{} : Tables{table_};
}

}  // namespace ridgeline::report
