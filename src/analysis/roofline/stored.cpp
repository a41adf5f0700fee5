#include "analysis/roofline/stored.h"

#include <algorithm>
#include <map>

#include "analysis/stats/summary.h"
#include "base/error.h"
#include "store/identity_fields.h"

namespace ridgeline {
namespace {

// "run 12 (resnet18, batch 64, native on cpu, 4 threads)"
std::string text_of(const RunRecord& run) {
  return fmt::format("run {} ({}, batch {}, {})", run.id, run.work.model, run.work.batch,
                     executor_text(run));
}

Identity without_batch(const RunRecord& run) {
  return identity_without(run, batch_fields(run.work));
}

std::optional<double> median_if_any(const std::vector<double>& values) {
  if (values.empty()) return std::nullopt;
  return median_interval(values).median;
}

RunRoofline roofline_of(const RunRecord& run, std::vector<StepTime> steps,
                        std::span<const Sample> samples, const Roofs& roofs) {
  RunRoofline made{.run = run, .steps = std::move(steps), .network = {}, .steps_seconds = 0.0};
  for (const StepTime& step : made.steps) made.steps_seconds += step.seconds;
  const IterationTime iteration =
      iteration_of(samples).value_or(IterationTime{made.steps_seconds, std::nullopt});
  made.network = network_point(run.work.model, made.steps, roofs, iteration);
  return made;
}

EnvironmentRecord environment_of(std::span<const EnvironmentRecord> known, const std::string& key) {
  for (const EnvironmentRecord& environment : known) {
    if (environment.key == key) return environment;
  }
  EnvironmentRecord unknown;
  unknown.key = key;
  return unknown;
}

class Collector {
 public:
  explicit Collector(const Store& store) : store_(store), environments_(store.environments()) {}

  void add(const RunRecord& run) {
    std::vector<StepTime> steps = store_.steps(run.id);
    if (steps.empty()) {
      found_.left_out.push_back(text_of(run) + ": has no times of single steps");
      return;
    }
    RooflineGroup& group = group_of(run);
    const std::vector<Sample> samples = store_.samples(run.id);
    group.runs.push_back(roofline_of(run, std::move(steps), samples, group.roofs));
  }

  StoredRooflines take() { return std::move(found_); }

 private:
  RooflineGroup& group_of(const RunRecord& run) {
    // Threads of the host are no matter of a graphics processor's roofs.
    const int threads = run.executor.device == "cpu" ? run.executor.threads : 0;
    for (RooflineGroup& group : found_.groups) {
      if (group.environment.key == run.environment && group.device == run.executor.device &&
          group.precision == run.work.precision && group.threads == threads) {
        return group;
      }
    }
    RooflineGroup group;
    group.environment = environment_of(environments_, run.environment);
    group.device = run.executor.device;
    group.precision = run.work.precision;
    group.threads = threads;
    group.roofs = roofs_of(store_.ceilings(run.environment), group.device, threads);
    if (group.roofs.empty()) {
      bad_input(
          "{}: the store has no ceilings of {} in the environment of this run ({}); measure them "
          "there: ridgeline env --measure",
          text_of(run), group.device, group.environment.host);
    }
    found_.groups.push_back(std::move(group));
    return found_.groups.back();
  }

  const Store& store_;
  std::vector<EnvironmentRecord> environments_;
  StoredRooflines found_;
};

}  // namespace

std::optional<IterationTime> iteration_of(std::span<const Sample> samples) {
  std::vector<double> wall, device, waiting;
  for (const Sample& sample : samples) {
    if (sample.kind != SampleKind::measured) continue;
    wall.push_back(sample.wall_seconds);
    if (sample.device_seconds) device.push_back(*sample.device_seconds);
    if (sample.data_wait_seconds) waiting.push_back(*sample.data_wait_seconds);
  }
  if (wall.empty()) return std::nullopt;
  IterationTime iteration{*median_if_any(wall), median_if_any(waiting)};
  if (device.size() == wall.size()) {
    iteration.seconds = *median_if_any(device) + iteration.data_wait_seconds.value_or(0.0);
  }
  return iteration;
}

std::vector<RunRecord> last_bench_runs(const Store& store) {
  const std::vector<RunRecord> all = store.runs({{"command", "bench"}});
  if (all.empty()) {
    bad_input("the store has no bench run; make one: ridgeline bench resnet18 --image 3x64x64");
  }
  if (all.back().group.empty()) return {all.back()};
  return store.runs({{"command", "bench"}, {"group", all.back().group}});
}

std::vector<MissingCeilings> missing_ceilings(const Store& store, std::span<const RunRecord> runs) {
  const std::vector<EnvironmentRecord> environments = store.environments();
  std::vector<MissingCeilings> missing;
  for (const RunRecord& run : runs) {
    const std::string& device = run.executor.device;
    const bool noted = std::any_of(missing.begin(), missing.end(), [&](const auto& other) {
      return other.environment.key == run.environment && other.device == device;
    });
    if (noted || store.steps(run.id).empty()) continue;
    if (!roofs_of(store.ceilings(run.environment), device, 0).empty()) continue;
    missing.push_back({environment_of(environments, run.environment), device});
  }
  return missing;
}

StoredRooflines rooflines_of(const Store& store, std::span<const RunRecord> runs) {
  Collector collector(store);
  for (const RunRecord& run : runs) collector.add(run);
  StoredRooflines found = collector.take();
  if (found.groups.empty()) {
    bad_input("{}; a roofline needs them: ridgeline bench measures them for its own backends",
              found.left_out.empty() ? "no run was given" : found.left_out.front());
  }
  return found;
}

std::vector<std::vector<const RunRoofline*>> trajectories(const RooflineGroup& group) {
  std::vector<std::vector<const RunRoofline*>> ways;
  for (const RunRoofline& candidate : group.runs) {
    const auto way = std::find_if(ways.begin(), ways.end(), [&](const auto& known) {
      return without_batch(known.front()->run) == without_batch(candidate.run);
    });
    if (way == ways.end()) {
      ways.push_back({&candidate});
    } else {
      way->push_back(&candidate);
    }
  }
  for (auto& way : ways) {
    std::stable_sort(way.begin(), way.end(), [](const RunRoofline* a, const RunRoofline* b) {
      return a->run.work.batch < b->run.work.batch;
    });
  }
  std::erase_if(ways, [](const auto& way) {
    return way.front()->run.work.batch == way.back()->run.work.batch;
  });
  return ways;
}

}  // namespace ridgeline
