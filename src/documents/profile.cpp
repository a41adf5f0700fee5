// The JSON document of `profile`. Keys are never renamed: scripts rely on them.

#include "documents/profile.h"

#include <algorithm>
#include <nlohmann/json.hpp>

#include "base/json_text.h"
#include "documents/difference.h"
#include "measure/profile/device_idle.h"
#include "measure/profile/gains.h"
#include "store/field_json.h"
#include "store/identity_fields.h"

namespace ridgeline {
namespace {

using Json = nlohmann::ordered_json;

// Infinite rates (of what takes no time) and unknown ones are nothing.
Json rate_json(double amount, double seconds) {
  return seconds > 0.0 ? Json(amount / seconds) : Json(nullptr);
}

void add_figures(Json& json, const TableRow& row) {
  json["ms"] = row.seconds * 1e3;
  json["share"] = row.share;
  json["calls"] = row.steps;
  const bool steps = row.point.has_value();
  json["flops"] = steps ? Json(static_cast<std::int64_t>(row.point->flops)) : Json(nullptr);
  json["bytes"] = steps ? Json(static_cast<std::int64_t>(row.point->bytes)) : Json(nullptr);
  json["flops_per_second"] = steps ? rate_json(row.point->flops, row.seconds) : Json(nullptr);
  json["bytes_per_second"] = steps ? rate_json(row.point->bytes, row.seconds) : Json(nullptr);
  json["roof_ms"] = steps ? ms_json(row.point->least_seconds) : Json(nullptr);
  json["efficiency"] = steps ? or_null(row.point->efficiency()) : Json(nullptr);
  json["bound"] =
      steps && row.point->bound != Bound::unknown ? Json(row.point->bound_text()) : Json(nullptr);
  json["imbalance"] = or_null(row.imbalance);
  if (row.instructions || row.cycles || row.cache_misses) {
    json["instructions"] = or_null(row.instructions);
    json["cycles"] = or_null(row.cycles);
    json["cache_misses"] = or_null(row.cache_misses);
  }
  if (steps && row.point->counted_bytes) {
    json["bytes_estimated_from_cache_misses"] = *row.point->counted_bytes;
  }
}

// All steps in the order of the plan, then what lies between them: they add up to the step.
Json rows_json(const ProfileReport& report) {
  ProfileTable table = table_of(report.collected.profile, report.roofs, TableBy::step);
  std::stable_sort(table.rows.begin(), table.rows.end(), [](const auto& a, const auto& b) {
    if (!a.point || !b.point) return a.point.has_value() && !b.point.has_value();
    return a.point->index < b.point->index;
  });
  Json rows = Json::array();
  for (const TableRow& row : table.rows) {
    Json json;
    json["layer"] = row.point ? row.name : "";
    json["op"] = row.point ? row.point->ops : row.name;
    json["phase"] = row.point ? row.point->phase : "";
    json["kernel"] = row.point ? row.point->kernel : "";
    add_figures(json, row);
    rows.push_back(std::move(json));
  }
  return rows;
}

Json breakdown_json(const TimeBreakdown& parts) {
  return {{"kernel_ms", parts.kernel * 1e3},   {"copy_ms", parts.copy * 1e3},
          {"runtime_ms", parts.runtime * 1e3}, {"data_ms", parts.data * 1e3},
          {"cpu_ms", parts.cpu * 1e3},         {"idle_ms", parts.idle * 1e3}};
}

// The mean of an iteration; nothing where the device keeps no records of its own.
Json idle_json(const Profile& profile) {
  const DeviceIdle idle = attribute_idle(profile.events);
  if (profile.executor.device == "cpu" || idle.total() <= 0.0) return nullptr;
  const double ms = 1e3 / static_cast<double>(profile.iterations);
  return {{"host_late_ms", idle.host_late * ms},
          {"data_ms", idle.data * ms},
          {"dependency_ms", idle.dependency * ms},
          {"unknown_ms", idle.unknown * ms}};
}

Json gains_json(const ProfileTable& table) {
  Json gains = Json::array();
  for (const Gain& gain : gains_of(table)) {
    gains.push_back({{"name", gain.name},
                     {"ms", gain.seconds * 1e3},
                     {"roof_ms", gain.least_seconds * 1e3},
                     {"lost_ms", gain.lost_seconds * 1e3},
                     {"step_ms", gain.step_seconds * 1e3},
                     {"bound", gain.bound}});
  }
  return gains;
}

}  // namespace

std::string profile_json(const ProfileReport& report, const ProfileView& view) {
  const Collected& collected = report.collected;
  const Profile& profile = collected.profile;
  const ProfileTable whole = table_of(profile, report.roofs, view.by);
  const ProfileTable table = view.top ? top_of(whole, static_cast<std::size_t>(*view.top)) : whole;
  Json grouped = Json::array(), missing = Json::array();
  for (const TableRow& row : table.rows) {
    Json json = {{"name", row.name}};
    if (view.by == TableBy::step && row.point) {
      json["op"] = row.point->ops;
      json["phase"] = row.point->phase;
      json["kernel"] = row.point->kernel;
    }
    add_figures(json, row);
    grouped.push_back(std::move(json));
  }
  for (const Missing& each : profile.missing) {
    missing.push_back({{"what", each.what}, {"reason", each.reason}});
  }
  Json document = to_json(profile.work);
  document.update(to_json(profile.executor));
  document.update(
      Json{{"iterations", profile.iterations},
           {"status", name_of(collected.status)},
           {"error", text_or_null(collected.error)},
           {"step_ms", profile.profiled_seconds * 1e3},
           {"unprofiled_step_ms", profile.unprofiled_seconds * 1e3},
           {"overhead_share", overhead_share(profile)},
           {"rows", rows_json(report)},
           {"by", kTableNames[static_cast<std::size_t>(view.by)]},
           {"table", std::move(grouped)},
           {"breakdown", breakdown_json(profile.breakdown)},
           {"between_steps", breakdown_json(profile.outside)},
           {"device_idle", idle_json(profile)},
           {"gains", gains_json(whole)},
           {"memory", Json::parse(memory_timeline_json(collected.memory, profile.readings))},
           {"against", view.difference ? difference_json(*view.difference) : Json(nullptr)},
           {"missing", std::move(missing)},
           {"findings", list_json(profile.findings)},
           {"trace", text_or_null(view.trace)},
           {"run", text_or_null(report.run)},
           {"store", text_or_null(report.store)}});
  return json_document(document);
}

}  // namespace ridgeline
