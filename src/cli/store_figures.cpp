#include "cli/store_figures.h"

#include <algorithm>
#include <cmath>
#include <map>

#include "base/error.h"
#include "base/text.h"
#include "cli/tables.h"
#include "store/columns.h"

namespace ridgeline::cli {
namespace {

std::optional<double> number_of(const RunRecord& run, const char* name) {
  const auto found = run.numbers.find(name);
  return found == run.numbers.end() ? std::nullopt : std::optional(found->second);
}

}  // namespace

std::optional<SampleSummary> summary_of(const std::vector<Sample>& samples, SampleKind kind) {
  std::vector<double> seconds;
  std::vector<std::int64_t> blocks;
  for (const Sample& sample : samples) {
    if (sample.kind != kind || std::isnan(sample.wall_seconds)) continue;
    seconds.push_back(sample.wall_seconds);
    // Blocks of several processes have nothing in common.
    blocks.push_back(sample.process * 1'000'000 + sample.block);
  }
  if (seconds.empty()) return std::nullopt;
  return SampleSummary{summarise(seconds), block_bootstrap(seconds, blocks),
                       percentile(seconds, 5.0), percentile(seconds, 95.0),
                       percentile(seconds, 99.0)};
}

RunFigures figures_of(const Store& store, const RunRecord& run) {
  RunFigures figures;
  figures.measured = store.sample_count(run.id, SampleKind::measured);
  figures.median_seconds = number_of(run, "median_seconds");
  if (!figures.median_seconds && figures.measured > 0) {
    const auto summary = summary_of(store.samples(run.id), SampleKind::measured);
    if (summary) figures.median_seconds = summary->summary.median;
  }
  figures.samples_per_second = number_of(run, "samples_per_second");
  if (!figures.samples_per_second && figures.median_seconds && *figures.median_seconds > 0.0) {
    figures.samples_per_second = static_cast<double>(run.work.batch) / *figures.median_seconds;
  }
  return figures;
}

std::vector<SensorSummary> sensors_of(const std::vector<Reading>& readings) {
  std::map<std::pair<std::string, std::string>, std::vector<double>> values;
  for (const Reading& reading : readings) {
    if (!std::isnan(reading.value)) {
      values[{reading.device, reading.sensor}].push_back(reading.value);
    }
  }
  std::vector<SensorSummary> list;
  for (const auto& [name, series] : values) {
    const Summary summary = summarise(series);
    const RegisteredName* known = find_name(sensor_names(), name.second);
    list.push_back({name.first, name.second, known == nullptr ? "" : std::string(known->unit),
                    summary.count, summary.mean, summary.min, summary.max,
                    series.back() - series.front()});
  }
  return list;
}

std::string steps_table(std::span<const StepTime> steps, double total) {
  TextTable table({"#", "phase", "layer", "ops", "kernel", "time", "share", "GFLOP/s", "GB/s"},
                  "rllllrrrr");
  table.important({"#", "layer", "time", "share", "kernel", "phase"});
  for (const StepTime& step : steps) {
    const auto rate = [&](std::int64_t amount) {
      return step.seconds > 0.0
                 ? fmt::format("{:.2f}", static_cast<double>(amount) / step.seconds / 1e9)
                 : std::string("n/a");
    };
    table.add_row({fmt::format("{}", step.index), step.phase, step.layer, step.ops, step.kernel,
                   duration_text(step.seconds),
                   fmt::format("{:.1f}%", total > 0.0 ? 100.0 * step.seconds / total : 0.0),
                   rate(step.flops), rate(step.bytes_read + step.bytes_written)});
  }
  return shown(table);
}

std::string with_unit(double value, std::string_view unit) {
  if (std::isnan(value)) return "n/a";
  if (unit == "s") return duration_text(value);
  if (unit == "B") return bytes_text(std::llround(value));
  if (unit == "FLOP" || unit == "FLOP/s" || unit == "B/s") {
    return fmt::format("{:.3f} G{}", value / 1e9, unit);
  }
  if (unit == "share") return fmt::format("{:.3f}%", 100.0 * value);
  if (value == std::floor(value) && std::abs(value) < 1e15) {
    const std::string text = count_text(std::llround(value));
    return unit.empty() ? text : fmt::format("{} {}", text, unit);
  }
  return fmt::format("{:.5g}{}{}", value, unit.empty() ? "" : " ", unit);
}

}  // namespace ridgeline::cli
