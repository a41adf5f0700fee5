#pragma once

// Which runs an exhibit shows, and in which order.

#include <functional>
#include <map>
#include <optional>
#include <string>

#include "report/analysis/ratios.h"
#include "report/run_fields.h"

namespace ridgeline::report {

using RunCondition = std::function<bool(const RunView& run)>;

[[nodiscard]] bool is_peer(const RunView& run);
[[nodiscard]] bool is_training(const RunView& run);  // of the command `train`
[[nodiscard]] bool is_profile(const RunView& run);
[[nodiscard]] bool is_inference(const RunView& run);
[[nodiscard]] bool is_measured(const RunView& run);  // training steps of the command `bench`
[[nodiscard]] bool on_gpu(const RunView& run);

// Seconds of training before the epochs of this run: of the parts before it was resumed, and of the
// first step, which is timed apart. Nothing where the store does not tell.
[[nodiscard]] std::optional<double> seconds_before_epochs(const RunView& run);
// Of the whole training, tests and checkpoints apart. Nothing where the store does not tell.
[[nodiscard]] std::optional<double> training_seconds(const RunView& run);

[[nodiscard]] Runs only(const Runs& runs, const RunCondition& fits);
// Runs that fit, in the natural order: networks by their FLOPs, images, batches, then machines,
// processors before graphics processors, the engine before peers. Of runs that repeat each other
// only the newest.
[[nodiscard]] Runs chosen(const Runs& runs, const RunCondition& fits);

// Profiles measure a few iterations only: they are left out where a longer run did the same steps,
// whatever data it was fed with and whatever training they were part of.
[[nodiscard]] Runs without_profiles(const Runs& runs);
// Trainings are left out where `bench` measured the same steps.
[[nodiscard]] Runs without_trainings(const Runs& runs);

// Finds the training that steps belong to which were measured apart.
class Trainings {
 public:
  // `data` must outlive it.
  Trainings(const Data& data, const Runs& trainings);

  // The newest that does the same steps, and its name among those that do; null: there is none. A
  // training is its own, and needs no name.
  struct Found {
    const RunView* run = nullptr;
    std::string name = {};
  };
  [[nodiscard]] Found of(const RunView& run) const;

 private:
  const Data& data_;
  std::map<std::string, Runs> by_step_;
};

// Of configurations that differ by the batch alone the one with the largest.
[[nodiscard]] Runs largest_batches(const Runs& runs);
// Runs that differ by the batch alone, at least two, from the smallest on. REQUIRES: chosen().
[[nodiscard]] std::vector<Runs> batch_series(const Runs& runs);
// The group that the run is in. REQUIRES: there is one.
[[nodiscard]] const Runs& group_of(const std::vector<Runs>& groups, const RunView& run);
[[nodiscard]] Runs flat(const std::vector<Runs>& groups);

}  // namespace ridgeline::report
