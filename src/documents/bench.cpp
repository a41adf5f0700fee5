// The JSON document of `bench`. Keys are never renamed: scripts rely on them.

#include "documents/bench.h"

#include <nlohmann/json.hpp>

#include "base/json_text.h"
#include "measure/iterations/provider_shares.h"
#include "store/field_json.h"
#include "store/identity_fields.h"

namespace ridgeline {
namespace {

using Json = nlohmann::ordered_json;

// Bytes and FLOPs are whole numbers.
Json whole_json(const std::optional<double>& number) {
  return number ? Json(static_cast<std::int64_t>(*number)) : Json(nullptr);
}

Json steps_json(const Measured& measured) {
  Json rows = Json::array();
  for (const StepTime& step : measured.ending.details.steps) {
    rows.push_back({{"layer", step.layer},
                    {"op", step.ops},
                    {"phase", step.phase},
                    {"kernel", step.kernel},
                    {"ms", step.seconds * 1e3},
                    {"flops", step.flops},
                    {"bytes", step.bytes_read + step.bytes_written}});
  }
  return rows;
}

// Who and what, of a result and of what has none.
Json subject_json(const Subject& subject) {
  Json object = to_json(subject.work);
  object.update(to_json(subject.executor));
  return object;
}

Json result_json(const Measured& measured, const std::string& run, bool per_step) {
  const MeasuredSummary summary = summarise(measured);
  const StepDetails& details = measured.ending.details;
  Json row = subject_json(measured.subject);
  const auto add = [&](const char* name, Json value) { row[name] = std::move(value); };
  add("median_ms", summary.interval.median * 1e3);
  add("ci_low_ms", summary.interval.low * 1e3);
  add("ci_high_ms", summary.interval.high * 1e3);
  add("device_ms", summary.queued ? Json(summary.queued->median * 1e3) : Json(nullptr));
  add("event_ms", ms_json(summary.device_seconds));
  add("mean_ms", summary.wall.mean * 1e3);
  add("std_ms", summary.wall.deviation * 1e3);
  add("min_ms", summary.wall.min * 1e3);
  add("max_ms", summary.wall.max * 1e3);
  add("mad_ms", summary.wall.mad * 1e3);
  add("p50_ms", summary.p50 * 1e3);
  add("p90_ms", summary.p90 * 1e3);
  add("p99_ms", summary.p99 * 1e3);
  add("samples_per_second", summary.samples_per_second);
  add("samples", summary.wall.count);
  add("blocks", summary.blocks);
  add("peak_memory_bytes", whole_json(memory_of(measured)));
  add("runtime_memory_bytes", whole_json(number_of(measured, "runtime_memory_bytes")));
  add("setup_ms", measured.preparation.setup_seconds * 1e3);
  add("autotune_ms", ms_json(measured.preparation.autotune_seconds));
  add("first_step_ms", summary.first_seconds * 1e3);
  add("warmup_iterations", summary.warmup_iterations);
  add("warmup_ms", summary.warmup_seconds * 1e3);
  add("data_wait_ms", ms_json(summary.data_wait_seconds));
  add("upload_ms", ms_json(summary.upload_seconds));
  add("exchange_ms", ms_json(summary.exchange_seconds));
  add("exposed_ms", ms_json(summary.exposed_seconds));
  add("forward_ms", ms_json(summary.forward_seconds));
  add("backward_ms", ms_json(summary.backward_seconds));
  add("optimizer_ms", ms_json(summary.optimizer_seconds));
  add("training_flops", whole_json(number_of(measured, "training_flops")));
  add("forward_flops", whole_json(number_of(measured, "forward_flops")));
  add("energy_joules_per_sample", or_null(number_of(measured, "energy_joules_per_sample")));
  add("step_sum_ms", ms_json(number_of(measured, "step_sum_seconds")));
  add("step_sum_share", or_null(number_of(measured, "step_sum_share")));
  Json shares = Json::object();
  for (const auto& [provider, share] : provider_shares(details.steps)) shares[provider] = share;
  add("provider_shares", std::move(shares));
  add("kernels", details.kernels);
  add("findings", list_json(findings_of(measured, summary)));
  add("notes", details.notes);
  add("status", name_of(measured.ending.status));
  add("stopping", text_of(measured.ending.reason));
  if (!run.empty()) add("run", run);
  if (!measured.ending.error.empty()) add("error", measured.ending.error);
  if (per_step) add("steps", steps_json(measured));
  return row;
}

Json ratio_json(const std::optional<ScaledRatio>& ratio) {
  if (!ratio) return nullptr;
  return {{"value", ratio->value}, {"low", ratio->low}, {"high", ratio->high}};
}

Json scaling_json(const BenchReport& report) {
  Json list = Json::array();
  for (const ScalingPoint& point : scaling_of(report)) {
    const Measured& measured = report.results[point.run];
    const Measured& base = report.results[point.base];
    const MeasuredSummary summary = summarise(measured);
    list.push_back({{"scaling", point.weak ? "weak" : "strong"},
                    {"model", measured.subject.work.model},
                    {"backend", measured.subject.executor.backend},
                    {"batch", measured.subject.work.batch},
                    {"ranks", measured.subject.executor.ranks},
                    {"transport", text_or_null(measured.subject.executor.transport)},
                    {"base_ranks", base.subject.executor.ranks},
                    {"speedup", point.speedup},
                    {"efficiency", ratio_json(point.efficiency)},
                    {"of_unconnected", ratio_json(point.of_unconnected)},
                    {"exchange_ms", ms_json(summary.exchange_seconds)},
                    {"exposed_ms", ms_json(summary.exposed_seconds)},
                    {"slow_rank_share", or_null(number_of(measured, "slow_rank_share"))}});
  }
  return list;
}

}  // namespace

std::optional<double> number_of(const Measured& measured, const char* name) {
  const auto found = measured.ending.details.numbers.find(name);
  if (found == measured.ending.details.numbers.end()) return std::nullopt;
  return found->second;
}

std::optional<double> memory_of(const Measured& measured) {
  if (const auto peak = number_of(measured, "peak_memory_bytes")) return peak;
  return number_of(measured, "planned_bytes");
}

std::vector<Finding> findings_of(const Measured& measured, const MeasuredSummary& summary) {
  std::vector<Finding> all = measured.ending.details.findings;
  all.insert(all.end(), summary.findings.begin(), summary.findings.end());
  return all;
}

std::vector<ScalingPoint> scaling_of(const BenchReport& report) {
  std::vector<ScalingRun> runs;
  std::vector<std::size_t> places;
  for (std::size_t i = 0; i < report.results.size(); ++i) {
    const Measured& measured = report.results[i];
    if (!has_samples(measured)) continue;
    runs.push_back({measured.subject.work, measured.subject.executor, run_series(measured.samples),
                    report.grouping.empty() ? "this" : ""});
    places.push_back(i);
  }
  std::vector<ScalingPoint> points = scaling_points(runs);
  for (ScalingPoint& point : points) {
    point.run = places[point.run];
    point.base = places[point.base];
  }
  return points;
}

std::string bench_json(const BenchReport& report, bool per_step) {
  Json results = Json::array(), failed = Json::array(), left_out = Json::array();
  for (std::size_t i = 0; i < report.results.size(); ++i) {
    const Measured& measured = report.results[i];
    if (has_samples(measured)) {
      results.push_back(result_json(measured, report.runs.empty() ? "" : report.runs[i], per_step));
      continue;
    }
    Json row = subject_json(measured.subject);
    row["status"] = measured.begun ? name_of(measured.ending.status) : "not measured";
    row["error"] = measured.ending.error;
    failed.push_back(std::move(row));
  }
  for (const LeftOut& each : report.left_out) {
    const Combination& combination = each.combination;
    left_out.push_back({{"model", combination.model},
                        {"backend", combination.backend},
                        {"device", combination.device},
                        {"batch", combination.batch},
                        {"image", combination.image},
                        {"precision", combination.precision},
                        {"optimizer", combination.optimizer},
                        {"samples", combination.samples},
                        {"reason", each.reason}});
  }
  Json document = {{"results", std::move(results)},
                   {"scaling", scaling_json(report)},
                   {"failed", std::move(failed)},
                   {"left_out", std::move(left_out)},
                   {"store", text_or_null(report.store)},
                   {"telemetry_overhead_share", or_null(report.telemetry_share)},
                   {"recording_overhead_share", or_null(report.recording_share)}};
  return json_document(document);
}

}  // namespace ridgeline
