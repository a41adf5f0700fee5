#include "documents/difference.h"

#include "base/json_text.h"
#include "base/text.h"

namespace ridgeline {
namespace {

using Json = nlohmann::ordered_json;

}  // namespace

std::optional<double> share_of(const StepDifference& difference, const DifferenceRow& row) {
  if (difference.difference() == 0.0) return std::nullopt;
  return row.difference() / difference.difference();
}

Json difference_json(const StepDifference& difference) {
  Json rows = Json::array();
  for (const DifferenceRow& row : difference.rows) {
    rows.push_back({{"kind", name_of(row.kind)},
                    {"layer", joined(row.layers, ",")},
                    {"op", joined(row.ops, "+")},
                    {"phase", joined(row.phases, "+")},
                    {"a_ms", row.kind == RowKind::only_b ? Json(nullptr) : Json(1e3 * row.a)},
                    {"b_ms", row.kind == RowKind::only_a ? Json(nullptr) : Json(1e3 * row.b)},
                    {"difference_ms", 1e3 * row.difference()},
                    {"share", or_null(share_of(difference, row))},
                    {"speedup", or_null(row.speedup())},
                    {"steps_a", row.steps_a},
                    {"steps_b", row.steps_b},
                    {"kernels_a", row.kernels_a},
                    {"kernels_b", row.kernels_b}});
  }
  return {{"a", {{"name", difference.name_a}, {"ms", 1e3 * difference.total_a}}},
          {"b", {{"name", difference.name_b}, {"ms", 1e3 * difference.total_b}}},
          {"difference_ms", 1e3 * difference.difference()},
          {"speedup", or_null(difference.speedup())},
          {"per_sample", difference.per_sample},
          {"rows", std::move(rows)},
          {"warnings", difference.warnings}};
}

}  // namespace ridgeline
