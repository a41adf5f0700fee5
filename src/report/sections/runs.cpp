// The appendix: every run of the store, those that did not end among them.

#include <algorithm>

#include "base/error.h"
#include "base/text.h"
#include "report/analysis/prose.h"
#include "report/sections/sections.h"
#include "store/identity_fields.h"

namespace ridgeline::report {
namespace {

std::string status_text(RunStatus status) {
  switch (status) {
    case RunStatus::running:
      return "running or killed";
    case RunStatus::complete:
      return "complete";
    case RunStatus::interrupted:
      return "interrupted";
    case RunStatus::failed:
      return "failed";
  }
  return "unknown";
}

Table runs_table() {
  Table table;
  table.id = "runs";
  table.title = "All runs";
  table.caption =
      "Median iteration with its 95% interval; of trainings without stored iterations, of their "
      "epochs by iteration.";
  table.columns = {{.title = "run", .number = true, .meaning = "Number in the store"},
                   {.title = "machine"},
                   {.title = "command line"},
                   {.title = "work"},
                   {.title = "executor"},
                   {.title = "samples",
                    .number = true,
                    .meaning = "Measured iterations, or epochs, behind the median"},
                   {.title = "iteration", .unit = "ms", .number = true},
                   {.title = "status"},
                   {.title = "started", .shown = Shown::file},
                   {.title = "uuid", .shown = Shown::file}};
  return table;
}

// Without the folder that the program lay in, and without what a study adds for itself.
std::string command_line(std::string text) {
  const std::size_t folder = text.substr(0, text.find(' ')).rfind('/');
  if (folder != std::string::npos) text.erase(0, folder + 1);
  constexpr std::string_view kItem = " --study-item ";
  const std::size_t item = text.find(kItem);
  if (item == std::string::npos) return text;
  // The study's number and the item's name, which may have spaces in quotes.
  const std::size_t name = std::min(text.find(' ', item + kItem.size()), text.size() - 1) + 1;
  const bool quoted = text.compare(name, 1, "'") == 0;
  const std::size_t end = text.find(quoted ? '\'' : ' ', name + (quoted ? 1 : 0));
  return text.erase(item, end == std::string::npos ? end : end + (quoted ? 1 : 0) - item);
}

// Without the fraction of the second.
std::string time_text(const std::string& started) {
  const std::size_t point = started.find('.');
  return started.empty() ? "n/a" : started.substr(0, point) + (point == started.npos ? "" : "Z");
}

std::vector<Cell> row_of(const RunRecord& run, const std::string& machine) {
  Cell id{.text = fmt::format("{}", run.id), .value = static_cast<double>(run.id)};
  id.runs = {run.id};
  return {std::move(id),
          words(machine),
          words(run.arguments.empty() ? run.command : command_line(run.arguments)),
          words(work_text(run)),
          words(executor_text(run)),
          Cell{},
          Cell{},
          words(status_text(run.status)),
          words(time_text(run.started)),
          words(run.uuid)};
}

}  // namespace

Section runs_section(const SectionInput& input) {
  const Data& data = input.data;
  Section section = folded("appendix-runs", "Runs");
  Table table = runs_table();
  for (const RunView& run : data.runs()) {
    std::vector<Cell> row = row_of(run.run, data.machine_of(run).name);
    if (run.seconds) {
      const auto samples = static_cast<double>(run.seconds->samples);
      row[5] = {.text = count_text(run.seconds->samples), .value = samples};
      row[6] = interval(1e3 * run.seconds->value, 1e3 * run.seconds->low, 1e3 * run.seconds->high,
                        {run.run.id});
    }
    table.rows.push_back(std::move(row));
  }
  for (const RunRecord& run : data.unfinished()) {
    const Machine* machine = data.find_machine(run.environment);
    std::vector<Cell> row = row_of(run, machine == nullptr ? "unknown machine" : machine->name);
    if (!run.error.empty()) row[7] = noted(table, std::move(row[7]), run.error);
    table.rows.push_back(std::move(row));
  }
  std::ranges::stable_sort(table.rows, [](const std::vector<Cell>& a, const std::vector<Cell>& b) {
    return *a[0].value < *b[0].value;
  });
  if (!table.rows.empty()) section.blocks.emplace_back(std::move(table));
  return section;
}

}  // namespace ridgeline::report
