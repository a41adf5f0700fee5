#include "predict/observation.h"

#include <algorithm>

#include "analysis/roofline/stored.h"
#include "base/error.h"
#include "base/parse.h"
#include "base/text.h"
#include "base/text_file.h"
#include "lab/options.h"

namespace ridgeline::predict {
namespace {

std::string network_of(const Work& work) {
  const ModelConfig& model = work.step.model;
  std::string text = fmt::format("{}{} {}x{}x{}", work.inference ? "inference of " : "", model.name,
                                 model.channels, model.height, model.width);
  for (const ModelOption& option : options_of(model)) {
    const std::string value = model.option(option.name);
    if (value != option.fallback) text += fmt::format(" {}={}", option.name, value);
  }
  for (const std::string& pattern : work.step.freeze) text += " frozen " + pattern;
  return text;
}

// Runs that say what a step takes: no loader that it waits for, no passes switched off.
bool usable(const RunRecord& run) {
  return run.status == RunStatus::complete && run.command != "train" && !run.work.loader &&
         run.work.kind != "evaluation" && run.executor.ranks == 1 && !run.executor.recompute &&
         run.executor.disabled_passes.empty();
}

std::string backend_of(const Executor& executor) {
  std::string name = executor.backend;
  for (const std::string& mode : executor.modes) name += " " + mode;
  return name;
}

Observation stored_observation(const Store& store, const RunRecord& run, const Target& target,
                               double seconds) {
  const Work work = work_of_run(run.work);
  std::vector<StepTime> steps = store.steps(run.id);
  const bool timed = !steps.empty();
  if (!timed) steps = planned(work, target.family).steps;
  Observation seen = observation_of(work, target, steps);
  for (const StepTime& step : steps) {
    if (timed) seen.kind_seconds[demand_of(step, target).kind] += step.seconds;
  }
  seen.backend = backend_of(run.executor);
  seen.seconds = seconds;
  seen.source = fmt::format("run {}", run.id);
  seen.run = run.id;
  seen.disturbed = std::ranges::any_of(
      store.findings(run.id), [](const Finding& one) { return one.name == "noisy neighbour"; });
  return seen;
}

// A line of CSV without line ends in its cells.
std::vector<std::string> cells_of(std::string_view line) {
  std::vector<std::string> cells(1);
  bool quoted = false;
  for (const char c : line) {
    if (c == '"') {
      quoted = !quoted;
    } else if (c == ',' && !quoted) {
      cells.emplace_back();
    } else if (c != '\r') {
      cells.back() += c;
    }
  }
  return cells;
}

constexpr std::array<std::string_view, 12> kColumns = {"device", "backend", "kind",  "model",
                                                       "image",  "classes", "batch", "precision",
                                                       "part",   "without", "ms",    "source"};

// Leaves what one op demands, in all its shapes.
void keep_part(Observation& seen, const std::string& op) {
  seen.part = true;
  std::erase_if(seen.demand, [&](const auto& entry) {
    const std::string group = entry.first.substr(0, entry.first.find(" | "));
    return group != op && group != op + " thin" && group != op + " narrow" &&
           group != op + " wide" && group != op + " winograd";
  });
  if (seen.demand.empty()) bad_input("part '{}': no step is of that op", op);
}

Observation observation_in(const std::vector<std::string>& cells, Targets& targets) {
  const auto whole = [&](std::size_t column) {
    const auto number = number_in<std::int32_t>(cells[column]);
    if (!number || *number < 1) bad_input("{} '{}': no number", kColumns[column], cells[column]);
    return *number;
  };
  const std::vector<Target> found = targets.find(cells[0]);
  if (found.size() != 1) bad_input("device '{}' may mean {} devices", cells[0], found.size());
  if (cells[2] != "training" && cells[2] != "inference") {
    bad_input("kind '{}': must be training or inference", cells[2]);
  }
  Work work;
  work.inference = cells[2] == "inference";
  work.step.model = default_config(cells[3]);
  set_image(work.step.model, cells[4]);
  work.step.model.classes = whole(5);
  work.step.batch = whole(6);
  work.step.precision = static_cast<Precision>(choice_of("precision", cells[7], kPrecisionNames));
  work.step.optimizer = optimizer_attributes({});
  if (!cells[9].empty()) work.disabled_passes = {cells[9]};
  const auto ms = number_in<double>(cells[10]);
  if (!ms || *ms <= 0.0) bad_input("ms '{}': no time", cells[10]);
  Observation seen = observation_of(work, found.front(), planned(work, found.front().family).steps);
  seen.backend = cells[1];
  seen.seconds = *ms / 1e3;
  seen.source = cells[11];
  if (!cells[8].empty()) keep_part(seen, cells[8]);
  return seen;
}

}  // namespace

Observation observation_of(const Work& work, const Target& target,
                           std::span<const StepTime> steps) {
  Observation seen;
  seen.device = target.name;
  seen.family = target.family;
  seen.model = work.step.model.name;
  seen.network = network_of(work);
  seen.precision = name_of(work.step.precision);
  seen.batch = work.step.batch;
  seen.demand = demand_of(steps, target);
  return seen;
}

std::vector<Observation> stored_observations(const Store& store, const KnownHardware& known,
                                             std::vector<std::string>& left_out) {
  // Another build of the program is another environment on the same machine, with the same roofs.
  std::map<std::string, EnvironmentRecord> environments;
  std::map<std::vector<std::string>, std::vector<Ceiling>> ceilings;
  for (EnvironmentRecord& one : store.environments()) {
    for (Ceiling& ceiling : store.ceilings(one.key)) ceilings[one.machine()].push_back(ceiling);
    environments[one.key] = std::move(one);
  }
  // The most threads that ran on a machine are all of it.
  const std::vector<RunRecord> runs = store.runs();
  std::map<std::vector<std::string>, int> most;
  for (const RunRecord& run : runs) {
    int& threads = most[environments[run.environment].machine()];
    threads = std::max(threads, run.executor.threads);
  }
  std::vector<Observation> seen;
  for (const RunRecord& run : runs) {
    if (!usable(run)) continue;
    const std::optional<IterationTime> iteration = iteration_of(store.samples(run.id));
    if (!iteration || iteration->seconds <= 0.0) continue;
    try {
      const std::string& device = run.executor.device;
      const EnvironmentRecord& environment = environments[run.environment];
      const bool all = run.executor.threads == most[environment.machine()];
      const std::optional<Target> target =
          stored_target(environment, ceilings[environment.machine()], device,
                        all ? 0 : run.executor.threads, known);
      if (!target) bad_input("the ceilings of {} are not known there", device);
      seen.push_back(stored_observation(store, run, *target, iteration->seconds));
    } catch (const Error& error) {
      left_out.push_back(fmt::format("run {}: {}", run.id, error.what()));
    }
  }
  return seen;
}

std::vector<Observation> read_observations(const std::filesystem::path& path, Targets& targets) {
  std::vector<Observation> seen;
  std::size_t number = 0;
  const std::string text = read_text(path);
  for (const std::string_view line : pieces_of(text, "\n")) {
    ++number;
    if (line.empty() || line == "\r") continue;
    const std::vector<std::string> cells = cells_of(line);
    const bool header = number == 1;
    if (header ? !std::ranges::equal(cells, kColumns) : cells.size() != kColumns.size()) {
      bad_input("{}, line {}: expected the columns {}", path.string(), number,
                joined(kColumns, ","));
    }
    if (header) continue;
    try {
      seen.push_back(observation_in(cells, targets));
    } catch (const Error& error) {
      bad_input("{}, line {}: {}", path.string(), number, error.what());
    }
  }
  return seen;
}

}  // namespace ridgeline::predict
