#pragma once

// The makers of named figures, one for each of study::figure_names().

#include <vector>

#include "report/exhibits.h"

namespace ridgeline::report {

// figure_roofline.cpp
[[nodiscard]] std::vector<Figure> roofline_figures(const ExhibitInput& input);
[[nodiscard]] std::vector<Figure> roofline_layers_figures(const ExhibitInput& input);
[[nodiscard]] std::vector<Figure> roofline_batches_figures(const ExhibitInput& input);
// figure_rates.cpp
[[nodiscard]] std::vector<Figure> throughput_figures(const ExhibitInput& input);
[[nodiscard]] std::vector<Figure> batch_sweep_figures(const ExhibitInput& input);
[[nodiscard]] std::vector<Figure> samples_figures(const ExhibitInput& input);
// figure_epochs.cpp
[[nodiscard]] std::vector<Figure> epoch_times_figures(const ExhibitInput& input);
[[nodiscard]] std::vector<Figure> throughput_epochs_figures(const ExhibitInput& input);
[[nodiscard]] std::vector<Figure> accuracy_epochs_figures(const ExhibitInput& input);
[[nodiscard]] std::vector<Figure> accuracy_time_figures(const ExhibitInput& input);
[[nodiscard]] std::vector<Figure> loss_epochs_figures(const ExhibitInput& input);
// figure_sweep.cpp
[[nodiscard]] std::vector<Figure> sweep_figures(const ExhibitInput& input);
// figure_scaling.cpp
[[nodiscard]] std::vector<Figure> scaling_figures(const ExhibitInput& input);
// figure_profile.cpp
[[nodiscard]] std::vector<Figure> breakdown_figures(const ExhibitInput& input);
[[nodiscard]] std::vector<Figure> operations_figures(const ExhibitInput& input);
// figure_timeline.cpp
[[nodiscard]] std::vector<Figure> step_timeline_figures(const ExhibitInput& input);
[[nodiscard]] std::vector<Figure> memory_timeline_figures(const ExhibitInput& input);
// figure_memory.cpp
[[nodiscard]] std::vector<Figure> memory_figures(const ExhibitInput& input);
// figure_telemetry.cpp
[[nodiscard]] std::vector<Figure> telemetry_figures(const ExhibitInput& input);
// figure_network.cpp
[[nodiscard]] std::vector<Figure> network_figures(const ExhibitInput& input);
// One network, without a store.
[[nodiscard]] Figure network_figure(const NetworkRecord& record, const std::string& title);
// figure_predictions.cpp
[[nodiscard]] std::vector<Figure> predictions_figures(const ExhibitInput& input);

}  // namespace ridgeline::report
