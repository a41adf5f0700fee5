#pragma once

// The parts of findings_of.

#include <vector>

#include "measure/telemetry/series.h"

namespace ridgeline {

// Thermal and power throttling, hardware slowdown, clock drop.
void find_throttling(const SensorTable& table, std::vector<Finding>& findings);
// Memory pressure, swapping, noisy neighbour.
void find_contention(const SensorTable& table, std::vector<Finding>& findings);

}  // namespace ridgeline
