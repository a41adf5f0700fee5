// How speed grows with the number of ranks.

#include <algorithm>

#include "base/error.h"
#include "report/exhibits/run_table.h"
#include "report/exhibits/scaling.h"

namespace ridgeline::report {
namespace {

constexpr const char* kUsualRange = "few iterations: the range of what was measured";
constexpr const char* kAlone = "one rank exchanges nothing";
constexpr const char* kNotBeside = "no unconnected processes were measured beside it";

Cell ratio_cell(RunTable& table, const ScaledRun& scaled, const ScaledRatio& ratio) {
  const std::vector<RunId> runs = {scaled.run->run.id, scaled.base->run.id};
  Cell cell = interval(100.0 * ratio.value, 100.0 * ratio.low, 100.0 * ratio.high, runs);
  cell = table.marked(std::move(cell), *scaled.run, Marks::speed);
  return ratio.range ? table.noted(std::move(cell), kUsualRange) : cell;
}

Table table_of(const ExhibitInput& input, const std::vector<ScaledRun>& scaled, bool weak) {
  Runs runs;
  for (const ScaledRun& each : scaled) runs.push_back(each.run);
  const auto scaled_of = [&](const RunView& run) -> const ScaledRun& {
    return *std::ranges::find(scaled, &run, &ScaledRun::run);
  };
  RunTable table(
      input, runs,
      {.title = "Scaling",
       .caption = fmt::format(
           " {} Efficiency: samples a second for each rank, over those of the fewest ranks; 100% "
           "means that more ranks lose nothing. Of unconnected: speed as a share of as many "
           "processes that compute at the same time and exchange nothing. 95% intervals; {}.",
           weak ? "Each rank has a batch of the same size." : "All ranks share the same batch.",
           samples_text(runs)),
       .always = {"model", "machine", "executor", "ranks", "batch"},
       .last = "ranks",
       .part = weak ? "weak" : "strong"});
  table.throughput();
  table.column({"speed-up", "×", true, "Samples a second, over those of the fewest ranks"},
               [&](const RunView& run) {
                 const ScaledRun& own = scaled_of(run);
                 return number(own.point.speedup, {run.run.id, own.base->run.id});
               });
  table.column({"efficiency", "%", true, "The same for each rank"}, [&](const RunView& run) {
    const ScaledRun& own = scaled_of(run);
    if (own.run == own.base) return words("100");
    return ratio_cell(table, own, own.point.efficiency);
  });
  table.column({"of unconnected", "%", true, "Speed over that of processes without exchanges"},
               [&](const RunView& run) {
                 const ScaledRun& own = scaled_of(run);
                 if (own.point.of_unconnected) {
                   return ratio_cell(table, own, *own.point.of_unconnected);
                 }
                 return table.missing(run.run.executor.ranks == 1 ? kAlone : kNotBeside);
               });
  table.numbers(
      {"exchange", "ms", true, "Of a step, in exchanges between ranks, waiting counted"},
      [](const RunView& run) { return number_of(run, "exchange_seconds"); }, 1e3, kAlone);
  table.numbers(
      {"exposed", "ms", true, "Of that, the part in which nothing was computed"},
      [](const RunView& run) { return number_of(run, "exposed_seconds"); }, 1e3, kAlone);
  table.numbers(
      {"slowest rank", "%", true, "By how much it computes longer than the median rank"},
      [](const RunView& run) { return number_of(run, "slow_rank_share"); }, 1e2, kAlone);
  return table.made().front();
}

}  // namespace

Tables make_scaling(const ExhibitInput& input) {
  Tables tables;
  const std::vector<ScaledRun> all = scaled_runs(input.data, input.runs);
  for (const bool weak : {false, true}) {
    std::vector<ScaledRun> part;
    std::ranges::copy_if(all, std::back_inserter(part), [&](const ScaledRun& each) {
      return each.point.weak == weak && each.run->run.executor.transport != kUnconnected;
    });
    if (!part.empty()) tables.push_back(table_of(input, part, weak));
  }
  return tables;
}

}  // namespace ridgeline::report
