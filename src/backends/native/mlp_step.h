#pragma once

#include "plan/kernel.h"

namespace ridgeline::native {

// The training step of a small multilayer perceptron, from pixels or features to the gradients of
// all parameters, the loss and the metrics, as one kernel.
std::vector<NodeId> match_mlp_step(const Graph& graph, NodeId first);
std::string check_mlp_step(const Problem& problem);
std::unique_ptr<Kernel> make_mlp_step(const Problem& problem, std::span<const Layout> layouts);

inline constexpr KernelRow mlp_step_row = {"mlp_step", match_mlp_step, check_mlp_step,
                                           make_mlp_step};

}  // namespace ridgeline::native
