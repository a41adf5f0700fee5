// What each machine was measured to do at most.

#include <algorithm>
#include <array>
#include <set>

#include "report/exhibits/run_table.h"

namespace ridgeline::report {
namespace {

struct CeilingGroup {
  const char *kind, *name;
  double factor;
  const char *unit, *subject;
};
constexpr std::array<CeilingGroup, 5> kGroups = {
    {{"compute", "compute", 1e-9, "GFLOP/s", "arithmetic"},
     {"bandwidth", "memory", 1e-9, "GB/s", "level"},
     {"transfer", "transfers", 1e-9, "GB/s", "direction"},
     {"link", "links", 1e-9, "GB/s", "exchange"},
     {"latency", "latency", 1e6, "µs", "of what"}}};

// Of each subject the path with the best repeat and the widest scope: what a roof is made of. Paths
// of tensor cores that have names of their own are the parts of the one called "tensor".
std::vector<Ceiling> best_of(const Machine& machine, const std::string& kind) {
  std::vector<Ceiling> best;
  for (const Ceiling& ceiling : machine.ceilings) {
    if (ceiling.kind != kind || ceiling.scope == "one core") continue;
    if (ceiling.path.starts_with("tensor ")) continue;
    const bool shorter = kind == "latency", paths = kind == "transfer" || kind == "link";
    const auto known = std::ranges::find_if(best, [&](const Ceiling& other) {
      return other.device == ceiling.device && unit_of(other) == unit_of(ceiling) &&
             (!paths || other.path == ceiling.path);
    });
    if (known == best.end()) {
      best.push_back(ceiling);
    } else if (shorter ? ceiling.value < known->value : ceiling.high > known->high) {
      *known = ceiling;
    }
  }
  return best;
}

}  // namespace

Tables make_ceilings(const ExhibitInput& input) {
  std::set<std::size_t> shown;
  for (const RunView* run : input.runs) shown.insert(run->machine);
  const std::vector<Machine>& machines = input.data.machines();
  Tables tables;
  for (const CeilingGroup& part : kGroups) {
    Table table = begin_table(input, part.name, "Measured ceilings", {});
    table.caption =
        "The way of each kind that was fastest at best, all cores or the whole device. The range "
        "is that of the repeats of the measurement, not an interval of confidence.";
    table.columns = {{"machine", "", false, "Where it was measured"},
                     {"device", "", false, "Processor or graphics processor"},
                     {part.subject, "", false, "What was measured"},
                     {"by", "", false, "The way that was fastest"},
                     {"measured", part.unit, true, "Median of the repeats, with their range"},
                     {"data sheet", part.unit, true, "What the maker promises"},
                     {"share", "%", true, "Measured over promised"},
                     {"clock", "MHz", true, "During the measurement"}};
    table.heads = 3;
    for (std::size_t m = 0; m < machines.size(); ++m) {
      if (!shown.empty() && !shown.contains(m)) continue;
      for (const Ceiling& ceiling : best_of(machines[m], part.kind)) {
        std::vector<Cell> row = {words(machines[m].name), words(ceiling.device),
                                 words(unit_of(ceiling)),
                                 words(ceiling.path.empty() ? "–" : ceiling.path)};
        row.push_back(interval(ceiling.value * part.factor, ceiling.low * part.factor,
                               ceiling.high * part.factor));
        if (ceiling.datasheet && *ceiling.datasheet > 0.0) {
          row.push_back(number(*ceiling.datasheet * part.factor));
          row.push_back(number(100.0 * ceiling.value / *ceiling.datasheet));
        } else {
          row.push_back(missing(table, "the data sheet does not tell it, or is not known"));
          row.push_back(missing(table, "the data sheet does not tell it, or is not known"));
        }
        row.push_back(ceiling.clock_mhz ? number(*ceiling.clock_mhz)
                                        : missing(table, "the clock was not measured"));
        table.rows.push_back(std::move(row));
      }
    }
    drop_missing_columns(table, {"data sheet", "share", "clock"});
    if (!table.rows.empty()) tables.push_back(std::move(table));
  }
  return tables;
}

}  // namespace ridgeline::report
