#pragma once

// What `bench` found as a JSON document.

#include <optional>
#include <string>
#include <vector>

#include "analysis/compare/scaling.h"
#include "lab/bench.h"

namespace ridgeline {

[[nodiscard]] std::string bench_json(const BenchReport& report, bool per_step);

// What more ranks gain; runs are places in the report's results.
[[nodiscard]] std::vector<ScalingPoint> scaling_of(const BenchReport& report);

// Of the run's numbers; nothing: it has none of that name.
[[nodiscard]] std::optional<double> number_of(const Measured& measured, const char* name);
// What the device must hold for it: planned where we plan, measured of peers; nothing: unknown.
[[nodiscard]] std::optional<double> memory_of(const Measured& measured);
// All of a run: of its samples, its sensors, its plan.
[[nodiscard]] std::vector<Finding> findings_of(const Measured& measured,
                                               const MeasuredSummary& summary);

}  // namespace ridgeline
