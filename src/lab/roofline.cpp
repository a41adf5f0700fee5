#include "lab/roofline.h"

#include <filesystem>

#include "analysis/compare/stored.h"
#include "base/error.h"
#include "measure/ceilings/ceilings.h"
#include "measure/machine/environment.h"
#include "store/run_filter.h"

namespace ridgeline {
namespace {

// The newest run that fits a filter and has what a roofline needs; peers' runs do not.
RunRecord run_named(const Store& store, const std::string& name) {
  if (name.find('=') != std::string::npos) {
    const std::vector<RunRecord> runs = store.runs(parse_run_filter(name));
    for (auto run = runs.rbegin(); run != runs.rend(); ++run) {
      if (!store.steps(run->id).empty()) return *run;
    }
  }
  return find_run(store, name);
}

std::vector<RunRecord> runs_named(const Store& store, const std::vector<std::string>& names) {
  if (names.empty()) return last_bench_runs(store);
  std::vector<RunRecord> runs;
  for (const std::string& name : names) {
    RunRecord run = run_named(store, name);
    for (const RunRecord& other : runs) {
      if (other.id == run.id) bad_input("run {} is given twice", name);
    }
    runs.push_back(std::move(run));
  }
  return runs;
}

// Ceilings that this machine can still tell: runs of another one need a measurement there.
void measure_missing(const std::string& path, const std::vector<RunRecord>& runs,
                     CallListener& listener) {
  const auto missing = missing_ceilings(Store::open_existing(path), runs);
  if (missing.empty()) return;
  const Environment here = read_environment();
  for (const MissingCeilings& one : missing) {
    if (environment_record(here, one.environment.label).key != one.environment.key) continue;
    listener.note(
        fmt::format("measuring the ceilings of {} (only once on this machine)", one.device));
    Store store{std::filesystem::path(path)};
    (void)known_or_measured(store, one.environment.key, one.device,
                            [&](std::int64_t done, std::int64_t total, const std::string& what) {
                              listener.progress(done, total, what.c_str());
                            });
  }
}

}  // namespace

StoredRooflines run_roofline(const RooflineRequest& request, CallListener& listener) {
  const Store store = Store::open_existing(request.store);
  const std::vector<RunRecord> runs = runs_named(store, request.runs);
  measure_missing(request.store, runs, listener);
  return rooflines_of(store, runs);
}

}  // namespace ridgeline
