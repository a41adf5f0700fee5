#pragma once

// The makers of the tables, by files.

#include "report/exhibits.h"

namespace ridgeline::report {

using Tables = std::vector<Table>;

// table_work.cpp
[[nodiscard]] Tables make_complexity(const ExhibitInput& input);
[[nodiscard]] Tables make_intensity(const ExhibitInput& input);
// table_ceilings.cpp
[[nodiscard]] Tables make_ceilings(const ExhibitInput& input);
// table_speed.cpp
[[nodiscard]] Tables make_throughput(const ExhibitInput& input);
[[nodiscard]] Tables make_iterations(const ExhibitInput& input);
[[nodiscard]] Tables make_inference(const ExhibitInput& input);
// table_batches.cpp
[[nodiscard]] Tables make_batch_sweep(const ExhibitInput& input);
[[nodiscard]] Tables make_batch_gains(const ExhibitInput& input);
// table_roofs.cpp
[[nodiscard]] Tables make_efficiency(const ExhibitInput& input);
[[nodiscard]] Tables make_bounds(const ExhibitInput& input);
// table_speedups.cpp
[[nodiscard]] Tables make_speedups(const ExhibitInput& input);
// table_phases.cpp
[[nodiscard]] Tables make_phases(const ExhibitInput& input);
[[nodiscard]] Tables make_breakdown(const ExhibitInput& input);
// table_operations.cpp
[[nodiscard]] Tables make_operations(const ExhibitInput& input);
[[nodiscard]] Tables make_op_breakdown(const ExhibitInput& input);
// table_memory.cpp
[[nodiscard]] Tables make_memory(const ExhibitInput& input);
// table_resources.cpp
[[nodiscard]] Tables make_resources(const ExhibitInput& input);
// table_training.cpp
[[nodiscard]] Tables make_training(const ExhibitInput& input);
[[nodiscard]] Tables make_targets(const ExhibitInput& input);
// table_sweep.cpp
[[nodiscard]] Tables make_sweep(const ExhibitInput& input);
// table_scaling.cpp
[[nodiscard]] Tables make_scaling(const ExhibitInput& input);
// table_parity.cpp
[[nodiscard]] Tables make_parity(const ExhibitInput& input);
// table_predictions.cpp
[[nodiscard]] Tables make_predictions(const ExhibitInput& input);

}  // namespace ridgeline::report
