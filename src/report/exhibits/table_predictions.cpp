// How wrong predictions are, by what was left out.

#include "report/analysis/held_runs.h"
#include "report/exhibits/run_table.h"

namespace ridgeline::report {

Tables make_predictions(const ExhibitInput& input) {
  const std::vector<predict::HeldBack> held = input.data.held_runs().of(input.runs);
  if (held.empty()) return {};
  Table table = begin_table(input, "", "Errors of predictions", {});
  table.caption =
      "Each run is predicted from the other runs of the store: without its batch, without its "
      "network on any device, and without its device. The efficiencies that come with the program "
      "do not count. Errors are |predicted / measured − 1| of an iteration.";
  table.columns = {
      {"backend", "", false, "Whose efficiencies were learnt"},
      {"left out", "", false, "What the other runs did not have"},
      {"runs", "", true, "That were left out in turn"},
      {"median error", "%", true, "Half of the errors are smaller"},
      {"90th percentile", "%", true, "Nine of ten errors are smaller"},
      {"in the range", "%", true, "Of the runs, in the range that the others' errors give"}};
  table.heads = 2;
  for (const predict::CheckRow& row : predict::check_rows(held)) {
    std::vector<RunId> runs;
    std::string backend;
    for (const predict::HeldBack& one : held) {
      const predict::Observation& run = *one.observation;
      if (run.family != row.family || run.backend != row.backend || one.unknown != row.unknown) {
        continue;
      }
      runs.push_back(run.run);
      backend = backend_words(one);
    }
    table.rows.push_back({words(backend), words(std::string(predict::name_of(row.unknown))),
                          count_cell(static_cast<std::int64_t>(row.runs), runs),
                          number(100.0 * row.median_error, runs),
                          number(100.0 * row.ninth_decile, runs),
                          row.inside_share ? number(100.0 * *row.inside_share, runs)
                                           : missing(table, "one run has no others")});
  }
  return {std::move(table)};
}

}  // namespace ridgeline::report
