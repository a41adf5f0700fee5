#include "documents/roofline.h"

#include <algorithm>
#include <nlohmann/json.hpp>

#include "base/json_text.h"
#include "store/field_json.h"

namespace ridgeline {
namespace {

using Json = nlohmann::ordered_json;

Json point_json(const RooflinePoint& point) {
  return {{"name", point.name},
          {"index", point.index},
          {"steps", point.steps},
          {"ops", text_or_null(point.ops)},
          {"phase", text_or_null(point.phase)},
          {"kernel", text_or_null(point.kernel)},
          {"unit", point.unit},
          {"seconds", point.seconds},
          {"flops", point.flops},
          {"work_flops", point.work_flops},
          {"bytes", point.bytes},
          {"counted_bytes", or_null(point.counted_bytes)},
          {"working_set_bytes", point.working_set_bytes},
          {"intensity", or_null(point.intensity())},
          {"counted_intensity", or_null(point.counted_intensity())},
          {"flops_per_second", point.flops_per_second()},
          {"bytes_per_second", point.bytes_per_second()},
          {"compute_seconds", or_null(point.compute_seconds)},
          {"memory_seconds", or_null(point.memory_seconds)},
          {"least_seconds", or_null(point.least_seconds)},
          {"attainable_flops_per_second", or_null(point.attainable_flops_per_second())},
          {"efficiency", or_null(point.efficiency())},
          {"bound", name_of(point.bound)},
          {"bound_share", point.bound_share},
          {"level", text_or_null(point.level)},
          {"remark", text_or_null(point.remark)}};
}

Json roofs_json(const Roofs& roofs) {
  Json compute = Json::array(), memory = Json::array(), ridges = Json::array();
  for (const ComputeRoof& roof : roofs.compute) {
    compute.push_back(
        {{"unit", roof.unit}, {"path", roof.path}, {"flops_per_second", roof.flops_per_second}});
  }
  for (const MemoryRoof& roof : roofs.memory) {
    memory.push_back(
        {{"level", roof.level},
         {"path", roof.path},
         {"bytes_per_second", roof.bytes_per_second},
         {"capacity_bytes", roof.capacity_bytes > 0 ? Json(roof.capacity_bytes) : Json(nullptr)}});
    for (const ComputeRoof& peak : roofs.compute) {
      ridges.push_back(
          {{"unit", peak.unit}, {"level", roof.level}, {"intensity", ridge_point(peak, roof)}});
    }
  }
  return {{"scope", roofs.scope},
          {"compute", std::move(compute)},
          {"memory", std::move(memory)},
          {"ridge_points", std::move(ridges)},
          {"latency_seconds", or_null(roofs.latency_seconds)}};
}

Json run_json(const RunRoofline& run, const Roofs& roofs, const RooflineView& view) {
  Json points = Json::array();
  for (const RooflinePoint& point : shown_points(run, roofs, view)) {
    points.push_back(point_json(point));
  }
  return {{"run", run.run.id},
          {"uuid", run.run.uuid},
          {"kind", run.run.work.kind},
          {"model", run.run.work.model},
          {"image", run.run.work.image.text()},
          {"batch", run.run.work.batch},
          {"backend", run.run.executor.backend},
          {"steps_seconds", run.steps_seconds},
          {"network", point_json(run.network)},
          {"points", std::move(points)},
          {"findings", list_json(roofline_errors(run, roofs))}};
}

double lost_seconds(const RooflinePoint& point) {
  return point.seconds - point.least_seconds.value_or(0.0);
}

}  // namespace

std::vector<RooflinePoint> shown_points(const RunRoofline& run, const Roofs& roofs,
                                        const RooflineView& view) {
  std::vector<RooflinePoint> points = view.by == Grouping::network
                                          ? std::vector{run.network}
                                          : points_of(run.steps, roofs, view.by);
  if (!view.top) return points;
  std::stable_sort(points.begin(), points.end(),
                   [](const auto& a, const auto& b) { return lost_seconds(a) > lost_seconds(b); });
  if (static_cast<std::size_t>(*view.top) < points.size()) {
    points.resize(static_cast<std::size_t>(*view.top));
  }
  return points;
}

std::vector<Finding> roofline_errors(const RunRoofline& run, const Roofs& roofs) {
  return above_roof(points_of(run.steps, roofs, Grouping::step));
}

std::string roofline_json(const StoredRooflines& found, const RooflineView& view) {
  Json groups = Json::array();
  for (const RooflineGroup& group : found.groups) {
    Json runs = Json::array(), ways = Json::array();
    for (const RunRoofline& run : group.runs) runs.push_back(run_json(run, group.roofs, view));
    for (const auto& way : trajectories(group)) {
      Json ids = Json::array();
      for (const RunRoofline* run : way) ids.push_back(run->run.id);
      ways.push_back(std::move(ids));
    }
    groups.push_back({{"environment", group.environment.key},
                      {"host", group.environment.host},
                      {"device", group.device},
                      {"precision", group.precision},
                      {"threads", group.threads > 0 ? Json(group.threads) : Json(nullptr)},
                      {"roofs", roofs_json(group.roofs)},
                      {"runs", std::move(runs)},
                      {"batch_trajectories", std::move(ways)}});
  }
  return json_document(Json{{"groups", std::move(groups)}, {"left_out", found.left_out}});
}

}  // namespace ridgeline
