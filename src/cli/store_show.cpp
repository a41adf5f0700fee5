// Everything that the store has about one run.

#include <algorithm>
#include <cmath>
#include <nlohmann/json.hpp>

#include "base/error.h"
#include "base/json_text.h"
#include "base/text.h"
#include "cli/store_figures.h"
#include "cli/store_output.h"
#include "cli/tables.h"
#include "measure/memory_ledger.h"
#include "store/columns.h"
#include "store/field_json.h"
#include "store/identity_fields.h"

namespace ridgeline::cli {
namespace {

using Json = nlohmann::ordered_json;

constexpr std::size_t kShownSteps = 10;

std::string line(std::string_view name, const std::string& value) {
  return fmt::format("{:<22}{}\n", name, value);
}

std::string environment_text(const Store& store, const std::string& key) {
  for (const EnvironmentRecord& each : store.environments()) {
    if (each.key != key) continue;
    std::string text = key;
    for (const std::string* part : {&each.label, &each.host, &each.cpu, &each.gpus}) {
      if (!part->empty()) text += ", " + *part;
    }
    return text;
  }
  return "n/a";
}

std::string head_text(const Store& store, const RunRecord& run) {
  std::string text = line("run", fmt::format("{} ({})", run.id, run.uuid));
  const auto add = [&](std::string_view name, const std::string& value) {
    if (!value.empty()) text += line(name, value);
  };
  add("label", run.label);
  add("command", run.arguments.empty() ? run.command : run.arguments);
  add("started", run.started);
  add("finished", run.finished.empty() ? "n/a" : run.finished);
  add("status", std::string(name_of(run.status)) + (run.error.empty() ? "" : ": " + run.error));
  add("environment", environment_text(store, run.environment));
  add("seed", fmt::format("{}", run.seed));
  for (const IdentityField& field : identity_fields()) add(field.label, field.text(run));
  for (const auto& [name, value] : run.notes) add(name, value);
  return text;
}

std::string numbers_text(const RunRecord& run) {
  if (run.numbers.empty()) return {};
  TextTable table({"number", "value", "meaning"}, "lrl");
  for (const auto& [name, value] : run.numbers) {
    const RegisteredName* known = find_name(number_names(), name);
    table.add_row({name, with_unit(value, known == nullptr ? "" : known->unit),
                   known == nullptr ? "" : std::string(known->meaning)});
  }
  return '\n' + shown(table);
}

std::string samples_text(const std::vector<Sample>& samples) {
  TextTable table({"samples", "count", "median", "95% interval", "mean", "deviation", "min", "p5",
                   "p95", "p99", "max"},
                  "lrrrrrrrrrr");
  bool any = false;
  for (const SampleKind kind :
       {SampleKind::warmup, SampleKind::measured, SampleKind::split, SampleKind::watched}) {
    const std::optional<SampleSummary> found = summary_of(samples, kind);
    if (!found) continue;
    any = true;
    const Summary& s = found->summary;
    table.add_row({std::string(name_of(kind)), count_text(s.count), duration_text(s.median),
                   fmt::format("{} to {}", duration_text(found->interval.low),
                               duration_text(found->interval.high)),
                   duration_text(s.mean), duration_text(s.deviation), duration_text(s.min),
                   duration_text(found->p5), duration_text(found->p95), duration_text(found->p99),
                   duration_text(s.max)});
  }
  return any ? '\n' + shown(table) : "\nno samples\n";
}

std::string steps_text(std::vector<StepTime> steps) {
  if (steps.empty()) return {};
  double total = 0.0;
  for (const StepTime& step : steps) total += step.seconds;
  std::sort(steps.begin(), steps.end(),
            [](const StepTime& a, const StepTime& b) { return a.seconds > b.seconds; });
  const std::size_t all = steps.size();
  if (steps.size() > kShownSteps) steps.resize(kShownSteps);
  return fmt::format("\nthe slowest of {} steps of the plan (all together {})\n{}", all,
                     duration_text(total), steps_table(steps, total));
}

std::string memory_text(const std::vector<MemoryEntry>& memory) {
  return memory.empty() ? std::string() : "\nmemory\n" + ledger_text(memory);
}

std::string sensors_text(const std::vector<Reading>& readings) {
  if (readings.empty()) return {};
  TextTable table({"device", "sensor", "readings", "mean", "min", "max", "change"}, "llrrrrr");
  for (const SensorSummary& sensor : sensors_of(readings)) {
    table.add_row({sensor.device, sensor.sensor, count_text(sensor.count),
                   with_unit(sensor.mean, sensor.unit), with_unit(sensor.min, sensor.unit),
                   with_unit(sensor.max, sensor.unit), with_unit(sensor.change, sensor.unit)});
  }
  return '\n' + shown(table);
}

std::string epochs_text(const std::vector<EpochRecord>& epochs) {
  if (epochs.empty()) return {};
  const auto or_na = [](const std::optional<double>& value, const char* format) {
    return value && !std::isnan(*value) ? fmt::format(fmt::runtime(format), *value)
                                        : std::string("n/a");
  };
  TextTable table({"epoch", "train loss", "train accuracy", "test loss", "test accuracy", "time",
                   "data wait", "energy"},
                  "rrrrrrrr");
  table.important({"epoch", "train loss", "test accuracy", "time"});
  for (const EpochRecord& epoch : epochs) {
    table.add_row({fmt::format("{}", epoch.epoch), or_na(epoch.train_loss, "{:.4f}"),
                   or_na(epoch.train_accuracy, "{:.4f}"), or_na(epoch.test_loss, "{:.4f}"),
                   or_na(epoch.test_accuracy, "{:.4f}"), duration_text(epoch.seconds),
                   duration_text(epoch.data_wait_seconds), or_na(epoch.energy_joules, "{:.1f} J")});
  }
  return '\n' + shown(table);
}

std::string findings_text(const std::vector<Finding>& findings) {
  if (findings.empty()) return "\nno findings\n";
  std::string text = "\n";
  for (const Finding& finding : findings) {
    text += fmt::format("{}: {}: {}\n", finding.severity, finding.name, finding.evidence);
  }
  return text;
}

Json summary_json(const std::optional<SampleSummary>& found) {
  if (!found) return nullptr;
  const Summary& s = found->summary;
  return {{"count", s.count},
          {"median_seconds", s.median},
          {"ci_low_seconds", found->interval.low},
          {"ci_high_seconds", found->interval.high},
          {"mean_seconds", s.mean},
          {"deviation_seconds", s.deviation},
          {"mad_seconds", s.mad},
          {"min_seconds", s.min},
          {"p5_seconds", found->p5},
          {"p95_seconds", found->p95},
          {"p99_seconds", found->p99},
          {"max_seconds", s.max}};
}

}  // namespace

std::string show_text(const Store& store, const RunRecord& run) {
  return fitted(head_text(store, run)) + numbers_text(run) + samples_text(store.samples(run.id)) +
         steps_text(store.steps(run.id)) + memory_text(store.memory(run.id)) +
         sensors_text(store.readings(run.id)) + epochs_text(store.epochs(run.id)) +
         fitted(findings_text(store.findings(run.id)));
}

std::string show_json(const Store& store, const RunRecord& run) {
  Json document = {{"run", run.id}};
  document.update(fields_json(run));
  document["numbers"] = run.numbers;
  document["notes"] = run.notes;
  const std::vector<Sample> samples = store.samples(run.id);
  document["summary"] = summary_json(summary_of(samples, SampleKind::measured));
  document["samples"] = list_json(samples);
  document["steps"] = list_json(store.steps(run.id));
  document["memory"] = list_json(store.memory(run.id));
  Json sensors = Json::array();
  for (const SensorSummary& sensor : sensors_of(store.readings(run.id))) {
    sensors.push_back({{"device", sensor.device},
                       {"sensor", sensor.sensor},
                       {"unit", sensor.unit},
                       {"readings", sensor.count},
                       {"mean", sensor.mean},
                       {"min", sensor.min},
                       {"max", sensor.max},
                       {"change", sensor.change}});
  }
  document["telemetry"] = std::move(sensors);
  document["epochs"] = list_json(store.epochs(run.id));
  document["findings"] = list_json(store.findings(run.id));
  document["live_bytes"] = list_json(store.live_bytes(run.id));
  document["timeline"] = list_json(store.timeline(run.id));
  return json_document(document);
}

}  // namespace ridgeline::cli
