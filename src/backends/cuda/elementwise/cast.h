#pragma once

// Casts: one alone, and all that follow each other from f32 parameters to a type of 16 bits in one
// step, which turns filters from plain to nhwc on the way.

#include "plan/kernel.h"

namespace ridgeline::cuda {

[[nodiscard]] std::vector<NodeId> match_parameter_casts(const Graph& graph, NodeId first);
[[nodiscard]] std::string check_parameter_casts(const Problem& problem);
[[nodiscard]] std::unique_ptr<Kernel> make_parameter_casts(const Problem& problem,
                                                           std::span<const Layout> layouts);

[[nodiscard]] std::string check_cast(const Problem& problem);
[[nodiscard]] std::unique_ptr<Kernel> make_cast(const Problem& problem,
                                                std::span<const Layout> layouts);

}  // namespace ridgeline::cuda
