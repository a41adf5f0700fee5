// The list of stored runs.

#include <cmath>
#include <nlohmann/json.hpp>

#include "base/error.h"
#include "base/json_text.h"
#include "base/text.h"
#include "cli/store_figures.h"
#include "cli/store_output.h"
#include "cli/tables.h"
#include "store/field_json.h"

namespace ridgeline::cli {
namespace {

using Json = nlohmann::ordered_json;

// "2026-11-15 12:44:13" of "2026-11-15T12:44:13.052Z".
std::string short_time(const std::string& time) {
  std::string text = time.substr(0, 19);
  if (text.size() > 10) text[10] = ' ';
  return text;
}

Json number_or_null(const std::optional<double>& value) {
  return value && std::isfinite(*value) ? Json(*value) : Json(nullptr);
}

}  // namespace

std::vector<std::string> list_columns() {
  return {"run",     "started (UTC)", "command", "model",     "batch",   "image",  "precision",
          "backend", "device",        "median",  "samples/s", "samples", "status", "label"};
}

std::string list_text(const Store& store, std::span<const RunRecord> runs) {
  if (runs.empty()) return "no runs\n";
  TextTable table(list_columns(), "rlllrllllrrrll");
  table.important({"run", "model", "backend", "batch", "median", "status", "command", "samples/s",
                   "label", "device", "started (UTC)"});
  bool running = false;
  for (const RunRecord& run : runs) {
    const RunFigures figures = figures_of(store, run);
    running = running || run.status == RunStatus::running;
    table.add_row(
        {fmt::format("{}", run.id), short_time(run.started), run.command, run.work.model,
         fmt::format("{}", run.work.batch), run.work.image.text(), run.work.precision,
         run.executor.backend, run.executor.device,
         figures.median_seconds ? duration_text(*figures.median_seconds) : "n/a",
         figures.samples_per_second ? count_text(std::llround(*figures.samples_per_second)) : "n/a",
         count_text(figures.measured), std::string(name_of(run.status)), run.label});
  }
  return shown_main(table) +
         (running ? "\nrunning: not finished yet, or the program was killed\n" : "");
}

std::string list_json(const Store& store, std::span<const RunRecord> runs) {
  Json list = Json::array();
  for (const RunRecord& run : runs) {
    const RunFigures figures = figures_of(store, run);
    Json row = {{"run", run.id}};
    row.update(fields_json(run));
    row["median_ms"] =
        figures.median_seconds ? number_or_null(*figures.median_seconds * 1e3) : Json(nullptr);
    row["samples_per_second"] = number_or_null(figures.samples_per_second);
    row["samples"] = figures.measured;
    list.push_back(std::move(row));
  }
  return json_document(Json{{"runs", std::move(list)}});
}

}  // namespace ridgeline::cli
