// The registry of named figures.

#include <array>

#include "report/exhibits/figure_kinds.h"

namespace ridgeline::report {

std::span<const FigureKindEntry> figure_kinds() {
  static constexpr std::array kinds = {
      FigureKindEntry{"roofline", roofline_figures},
      FigureKindEntry{"roofline-layers", roofline_layers_figures},
      FigureKindEntry{"roofline-batches", roofline_batches_figures},
      FigureKindEntry{"throughput", throughput_figures},
      FigureKindEntry{"batch-sweep", batch_sweep_figures},
      FigureKindEntry{"scaling", scaling_figures},
      FigureKindEntry{"epoch-times", epoch_times_figures},
      FigureKindEntry{"throughput-epochs", throughput_epochs_figures},
      FigureKindEntry{"accuracy-epochs", accuracy_epochs_figures},
      FigureKindEntry{"accuracy-time", accuracy_time_figures},
      FigureKindEntry{"loss-epochs", loss_epochs_figures},
      FigureKindEntry{"sweep", sweep_figures},
      FigureKindEntry{"breakdown", breakdown_figures},
      FigureKindEntry{"operations", operations_figures},
      FigureKindEntry{"memory", memory_figures},
      FigureKindEntry{"memory-timeline", memory_timeline_figures},
      FigureKindEntry{"step-timeline", step_timeline_figures},
      FigureKindEntry{"telemetry", telemetry_figures},
      FigureKindEntry{"samples", samples_figures},
      FigureKindEntry{"network", network_figures},
      FigureKindEntry{"predictions", predictions_figures},
  };
  return kinds;
}

}  // namespace ridgeline::report
