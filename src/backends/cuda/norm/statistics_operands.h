#pragma once

// What the rows that make statistics of batch norm share.

#include <vector>

#include "backends/cuda/conv/image_rows.h"
#include "backends/cuda/norm/batch_norm_kernels.h"

namespace ridgeline::cuda {

// A bn_statistics and the bn_update_running that uses both its results; nothing where there is none
// of the former, and that alone where there is none of the latter.
[[nodiscard]] std::vector<NodeId> statistics_with_update(const Graph& graph, NodeId statistics);

// What makes a variance unbiased.
[[nodiscard]] double unbias_of(const BatchNormAttributes& attributes);

// Where the operands of statistics, and of the update of the running ones if there is one, stand
// among a kernel's arguments. `first`: the place of the bn_statistics among the problem's nodes.
class StatisticsOperands {
 public:
  StatisticsOperands(const Problem& problem, std::size_t first);

  // All but the rows and the scratch memory.
  [[nodiscard]] NormStatistics task(const KernelArgs& args) const;

 private:
  Index mean_, variance_, new_mean_, new_variance_;  // outputs
  Index running_mean_, running_variance_;            // inputs
  double momentum_ = 0.0, unbias_ = 1.0;
};

}  // namespace ridgeline::cuda
