// What a run took of its machine: means and extremes of all readings, never one snapshot.

#include <algorithm>
#include <array>
#include <cmath>
#include <span>

#include "base/error.h"
#include "report/exhibits/run_table.h"

namespace ridgeline::report {
namespace {

constexpr std::int64_t kEnoughReadings = 5;

enum class Of { mean, low, high };

// One column: sensors for a processor and for a graphics processor; nullptr: none there.
struct SensorColumn {
  const char *title, *unit, *cpu, *gpu;
  Of of;
  const char* meaning;
};
constexpr std::array<SensorColumn, 8> kUtilisation = {
    {{"CPU", "%", "cpu_utilisation_percent", "cpu_utilisation_percent", Of::mean,
      "Mean utilisation of all processors of the machine"},
     {"CPU max", "%", "cpu_utilisation_percent", "cpu_utilisation_percent", Of::high,
      "Highest reading"},
     {"GPU", "%", nullptr, "gpu_utilisation_percent", Of::mean,
      "Mean share of time in which a kernel ran"},
     {"GPU max", "%", nullptr, "gpu_utilisation_percent", Of::high, "Highest reading"},
     {"memory controller", "%", nullptr, "gpu_memory_utilisation_percent", Of::mean,
      "Mean share of time in which the device's memory was read or written; no share of its size"},
     {"memory controller max", "%", nullptr, "gpu_memory_utilisation_percent", Of::high,
      "Highest reading"},
     {"threads", "", "threads", "threads", Of::high, "Most threads of this program"},
     {"processes", "", "processes", "processes", Of::high,
      "This program and those that it started, at most"}}};
constexpr std::array<SensorColumn, 6> kHeat = {
    {{"temperature", "°C", "cpu_temperature_celsius", "gpu_temperature_celsius", Of::mean,
      "Mean, of the device that computes"},
     {"temperature max", "°C", "cpu_temperature_celsius", "gpu_temperature_celsius", Of::high,
      "Highest reading"},
     {"clock", "MHz", "cpu_mhz", "gpu_sm_mhz", Of::mean, "Mean, of the device that computes"},
     {"clock min", "MHz", "cpu_mhz", "gpu_sm_mhz", Of::low, "Lowest reading"},
     {"power", "W", nullptr, "gpu_power_watts", Of::mean, "Mean, of the board"},
     {"power max", "W", nullptr, "gpu_power_watts", Of::high, "Highest reading"}}};

// What the run noted on the sensor: "cpu cpu_temperature_celsius: no thermometer; …".
std::string why_missing(const RunView& run, const char* sensor) {
  const auto note = run.run.notes.find("missing_sensors");
  if (note != run.run.notes.end()) {
    const std::string& text = note->second;
    const std::size_t place = text.find(fmt::format("{}: ", sensor));
    if (place != std::string::npos) return text.substr(place, text.find(';', place) - place);
  }
  return fmt::format("{}: not read during this run", sensor);
}

Cell sensor_cell(const Data& data, RunTable& table, const RunView& run,
                 const SensorColumn& sensor) {
  const char* name = on_gpu(run) ? sensor.gpu : sensor.cpu;
  if (name == nullptr) {
    return table.missing("it ran on a processor, which has no such sensor here");
  }
  const std::optional<SensorSummary> summary = data.sensor(run, name);
  if (!summary) return table.missing(why_missing(run, name));
  const double value = sensor.of == Of::mean  ? summary->mean
                       : sensor.of == Of::low ? summary->low
                                              : summary->high;
  const bool counted = std::string_view(sensor.unit).empty();
  if (counted && is_peer(run)) {
    return table.missing("a peer has a process of its own, whose threads were not counted");
  }
  Cell cell = counted ? count_cell(std::llround(value), {run.run.id}) : number(value, {run.run.id});
  if (summary->readings >= kEnoughReadings) return cell;
  return table.noted(std::move(cell),
                     fmt::format("fewer than {} readings: the run was short", kEnoughReadings));
}

// `data` and `sensors` must outlive the table.
void add_sensors(const Data& data, RunTable& table, std::span<const SensorColumn> sensors) {
  for (const SensorColumn& sensor : sensors) {
    table.column({sensor.title, sensor.unit, true, sensor.meaning},
                 [&](const RunView& run) { return sensor_cell(data, table, run, sensor); });
  }
}

Tables utilisation_tables(const ExhibitInput& input, const Runs& runs) {
  RunTable table(input, runs,
                 {.title = "Resources",
                  .caption = " Means and extremes of all readings while the run was measured.",
                  .part = "utilisation"});
  add_sensors(input.data, table, kUtilisation);
  table.column({"readings", "", true, "Of the processor's utilisation"}, [&](const RunView& run) {
    const auto read = input.data.sensor(run, "cpu_utilisation_percent");
    return read ? count_cell(read->readings, {run.run.id}) : table.missing("no readings");
  });
  for (const RunView* run : runs) {
    std::vector<Cell>& row = table.add_row(*run);
    Cell& first = row[row.size() - kUtilisation.size() - 1];
    first = table.marked(std::move(first), *run, Marks::speed);
  }
  return {table.table()};
}

Tables heat_tables(const ExhibitInput& input, const Runs& runs) {
  RunTable table(input, runs,
                 {.title = "Resources",
                  .caption = " Means and extremes of all readings while the run was measured; "
                             "memory in MB of 10^6 bytes. Energy is that of the processor and the "
                             "device that computes, as far as they tell theirs.",
                  .part = "memory, heat and energy"});
  table.numbers(
      {"process", "MB", true, "Most resident memory of the process"},
      [&](const RunView& run) { return input.data.process_memory_bytes(run); }, 1e-6,
      "the memory of this process was not measured");
  table.column(
      {"device", "MB", true, "Most memory on the graphics processor"}, [&](const RunView& run) {
        return table.number(input.data.device_memory_bytes(run), 1e-6, run,
                            on_gpu(run) ? "the device's memory was not measured"
                                        : "it ran on a processor: the process's memory is all");
      });
  add_sensors(input.data, table, kHeat);
  table.numbers(
      {"energy", "J/sample", true, "Energy of the run for each sample"},
      [](const RunView& run) { return number_of(run, "energy_joules_per_sample"); }, 1.0,
      "no device told its energy during this run, or it was too short");
  return table.made();
}

}  // namespace

Tables make_resources(const ExhibitInput& input) {
  const Runs runs = chosen(input.runs, [&](const RunView& run) {
    return !is_profile(run) && (input.data.sensor(run, "cpu_utilisation_percent") ||
                                input.data.sensor(run, "gpu_utilisation_percent"));
  });
  if (runs.empty()) return {};
  Table use = utilisation_tables(input, runs).front(), heat = heat_tables(input, runs).front();
  if (only(runs, on_gpu).empty()) {
    drop_missing_columns(use, {"GPU", "GPU max", "memory controller", "memory controller max"});
    drop_missing_columns(heat, {"device"});
  }
  return {use, heat};
}

}  // namespace ridgeline::report
