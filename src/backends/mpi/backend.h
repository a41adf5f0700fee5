#pragma once

#include "plan/kernel.h"

namespace ridgeline {

// The provider `mpi`: ops that join the ranks of a job, on the host's memory. It computes nothing
// else, and stands behind the backend of a Plan where there are ranks.
extern const Backend mpi_backend;

}  // namespace ridgeline
