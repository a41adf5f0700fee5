#pragma once

// Exchanges of gradients in plans that are looked at but not run: no library of ranks stands behind
// them.

#include "plan/kernel.h"

namespace ridgeline::predict {

// For the row of all_reduce: any layout, beside other steps, as the mpi backend's.
[[nodiscard]] std::unique_ptr<Kernel> make_dry_exchange(const Problem& problem,
                                                        std::span<const Layout> layouts);

// Has that row alone, to complete a CPU's backends.
extern const Backend dry_exchange_backend;

}  // namespace ridgeline::predict
