#include "documents/compare.h"

#include <nlohmann/json.hpp>

#include "base/json_text.h"
#include "store/field_json.h"
#include "store/identity_fields.h"

namespace ridgeline {
namespace {

using Json = nlohmann::ordered_json;

Json compared_json(const RunComparison& comparison, const RunRecord& run, bool first) {
  const Comparison& result = comparison.pair.result;
  Json json = {{"run", run.id}, {"uuid", run.uuid}, {"label", run.label}};
  json.update(to_json(run.work));
  json.update(to_json(run.executor));
  json.update({{"environment", run.environment},
               {"median_ms", 1e3 * (first ? result.median_a : result.median_b)},
               {"samples", first ? result.samples_a : result.samples_b},
               {"units", first ? result.units_a : result.units_b}});
  return json;
}

Json differences_json(const std::vector<Difference>& differences) {
  Json rows = Json::array();
  for (const Difference& difference : differences) {
    rows.push_back({{"field", difference.field}, {"a", difference.a}, {"b", difference.b}});
  }
  return rows;
}

Json findings_json(const RunComparison& comparison) {
  Json rows = Json::array();
  const auto add = [&](const RunRecord& run, const std::vector<Finding>& findings) {
    for (const Finding& finding : findings) {
      rows.push_back({{"run", run.id}});
      rows.back().update(fields_json(finding));
    }
  };
  add(comparison.a, comparison.findings_a);
  add(comparison.b, comparison.findings_b);
  return rows;
}

Json json_of(const RunComparison& comparison, const VerdictOptions& options) {
  const Comparison& result = comparison.pair.result;
  Json factors = Json::array();
  for (const GapFactor& factor : comparison.gap.factors) {
    factors.push_back(
        {{"name", factor.name}, {"factor", factor.factor}, {"evidence", factor.evidence}});
  }
  return {{"verdict", name_of(result.verdict)},
          {"ratio", result.ratio},
          {"ratio_of_medians", result.median_b / result.median_a},
          {"ci_low", result.low},
          {"ci_high", result.high},
          {"margin", options.margin},
          {"alpha", options.alpha},
          {"reason", result.reason},
          {"a", compared_json(comparison, comparison.a, true)},
          {"b", compared_json(comparison, comparison.b, false)},
          {"unlike_work", differences_json(comparison.work)},
          {"executors_differ", differences_json(comparison.executor)},
          {"doubts", comparison.pair.doubts},
          {"side_by_side", comparison.pair.side_by_side},
          {"per_sample", comparison.pair.per_sample},
          {"paired", result.paired},
          {"deviation_within", result.within},
          {"deviation_between_processes", or_null(result.between_processes)},
          {"deviation_between_runs", or_null(result.between_runs)},
          {"repetitions", comparison.pair.floor ? Json(comparison.pair.floor->runs) : Json()},
          {"gap", {{"ratio", comparison.gap.ratio}, {"factors", std::move(factors)}}},
          {"warnings", comparison.warnings},
          {"findings", findings_json(comparison)}};
}

}  // namespace

std::string comparison_json(const RunComparison& comparison, const VerdictOptions& options) {
  return json_document(json_of(comparison, options));
}

std::string comparisons_json(const std::vector<RunComparison>& comparisons,
                             const VerdictOptions& options) {
  Json rows = Json::array();
  for (const RunComparison& comparison : comparisons) rows.push_back(json_of(comparison, options));
  return json_document(Json{{"comparisons", std::move(rows)}});
}

}  // namespace ridgeline
