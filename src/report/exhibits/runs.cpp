#include "report/exhibits/runs.h"

#include <algorithm>
#include <map>
#include <set>
#include <tuple>

#include "base/error.h"
#include "peers/peer_name.h"

namespace ridgeline::report {
namespace {

// Equal for runs that compute the same step of the same network by the same executor: without what
// a training has beside its steps, and how it feeds them.
std::string step_key(const RunView& run) {
  static const FieldNames of_trainings = {
      "command",       "init",           "weights",       "learning_rate",   "data",
      "data_samples",  "test_samples",   "normalisation", "augment",         "loader",
      "last_batch",    "epochs",         "first_epoch",   "target_accuracy", "schedule",
      "schedule_step", "schedule_gamma", "warmup_epochs", "workers"};
  return run_key(run, of_trainings);
}

// FLOPs of a sample by network: peers of some stores do not tell theirs.
std::map<std::string, double> network_sizes(const Runs& runs) {
  std::map<std::string, double> sizes;
  for (const RunView* run : runs) {
    double& size = sizes[network_name(*run)];
    size = std::max(size, flops_of_sample(*run).value_or(0.0));
  }
  return sizes;
}

// Without runs of one kind where a run of another kind did the same steps.
template <typename Kind, typename Better>
Runs without(const Runs& runs, Kind&& kind, Better&& better) {
  std::set<std::string> steps;
  for (const RunView* run : runs) {
    if (better(*run)) steps.insert(step_key(*run));
  }
  return only(runs,
              [&](const RunView& run) { return !kind(run) || !steps.contains(step_key(run)); });
}

}  // namespace

bool is_peer(const RunView& run) { return ridgeline::is_peer(run.run.executor.backend); }
bool is_training(const RunView& run) { return run.run.command == "train"; }
bool is_profile(const RunView& run) { return run.run.command == "profile"; }
bool is_inference(const RunView& run) { return run.run.work.kind == "inference"; }
bool is_measured(const RunView& run) {
  return !is_training(run) && !is_profile(run) && !is_inference(run);
}
bool on_gpu(const RunView& run) { return run.run.executor.device != "cpu"; }

std::optional<double> seconds_before_epochs(const RunView& run) {
  const std::optional<double> former = number_of(run, "former_seconds");
  if (!former && run.run.work.first_epoch > 0) return std::nullopt;
  return former.value_or(0.0) + number_of(run, "first_step_seconds").value_or(0.0);
}

std::optional<double> training_seconds(const RunView& run) {
  if (const auto told = number_of(run, "training_seconds")) return told;
  std::optional<double> seconds = seconds_before_epochs(run);
  for (const EpochRecord& epoch : run.epochs) {
    if (seconds) *seconds += epoch.seconds;
  }
  return seconds;
}

Runs only(const Runs& runs, const RunCondition& fits) {
  Runs kept;
  std::ranges::copy_if(runs, std::back_inserter(kept),
                       [&](const RunView* run) { return fits(*run); });
  return kept;
}

Runs chosen(const Runs& runs, const RunCondition& fits) {
  Runs found = newest_of(only(runs, fits));
  const std::map<std::string, double> sizes = network_sizes(found);
  const auto place = [&](const RunView& run) {
    const Work& work = run.run.work;
    const std::string network = network_name(run);
    return std::tuple(sizes.at(network), network, work.image.pixels(), work.batch, work.kind,
                      on_gpu(run), is_peer(run), run.machine, run.run.executor.backend,
                      run.executor(), work.learning_rate.value_or(0.0));
  };
  std::ranges::stable_sort(
      found, [&](const RunView* a, const RunView* b) { return place(*a) < place(*b); });
  return found;
}

Runs without_profiles(const Runs& runs) {
  return without(runs, is_profile, [](const RunView& run) { return !is_profile(run); });
}

Runs without_trainings(const Runs& runs) { return without(runs, is_training, is_measured); }

Trainings::Trainings(const Data& data, const Runs& trainings) : data_(data) {
  for (const RunView* run : trainings) by_step_[step_key(*run)].push_back(run);
}

Trainings::Found Trainings::of(const RunView& run) const {
  const auto found = by_step_.find(step_key(run));
  if (found == by_step_.end()) return {};
  const Runs& alike = found->second;
  if (has(alike, &run)) return {&run};
  const RunView& newest = **std::ranges::max_element(alike, [](const RunView* a, const RunView* b) {
    return std::pair(a->run.started, a->run.id) < std::pair(b->run.started, b->run.id);
  });
  const Names names(data_, alike, executor_fields(),
                    {"data", "data_samples", "optimizer", "learning_rate"});
  return {&newest, names.of(newest)};
}

Runs largest_batches(const Runs& runs) {
  std::set<const RunView*> largest;
  for (const Runs& alike : grouped(runs, {"batch"})) {
    largest.insert(*std::ranges::max_element(alike, [](const RunView* a, const RunView* b) {
      return a->run.work.batch < b->run.work.batch;
    }));
  }
  return only(runs, [&](const RunView& run) { return largest.contains(&run); });
}

std::vector<Runs> batch_series(const Runs& runs) {
  std::vector<Runs> series = grouped(runs, {"batch"});
  std::erase_if(series, [](const Runs& one) { return one.size() < 2; });
  return series;
}

const Runs& group_of(const std::vector<Runs>& groups, const RunView& run) {
  return *std::ranges::find_if(groups, [&](const Runs& group) { return has(group, &run); });
}

Runs flat(const std::vector<Runs>& groups) {
  Runs runs;
  for (const Runs& group : groups) runs.insert(runs.end(), group.begin(), group.end());
  return runs;
}

}  // namespace ridgeline::report
