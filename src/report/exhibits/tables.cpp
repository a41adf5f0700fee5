// The tables that studies can ask for, by name.

#include <array>

#include "report/exhibits/makers.h"

namespace ridgeline::report {

std::span<const TableKind> table_kinds() {
  static constexpr std::array<TableKind, 23> kinds = {{
      {"complexity", make_complexity},
      {"ceilings", make_ceilings},
      {"throughput", make_throughput},
      {"iterations", make_iterations},
      {"batch-sweep", make_batch_sweep},
      {"batch-gains", make_batch_gains},
      {"intensity", make_intensity},
      {"efficiency", make_efficiency},
      {"bounds", make_bounds},
      {"speedups", make_speedups},
      {"phases", make_phases},
      {"operations", make_operations},
      {"op-breakdown", make_op_breakdown},
      {"breakdown", make_breakdown},
      {"memory", make_memory},
      {"training", make_training},
      {"sweep", make_sweep},
      {"targets", make_targets},
      {"inference", make_inference},
      {"resources", make_resources},
      {"parity", make_parity},
      {"scaling", make_scaling},
      {"predictions", make_predictions},
  }};
  return kinds;
}

}  // namespace ridgeline::report
