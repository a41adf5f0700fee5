#include "measure/ceilings/cpu_loops.h"

namespace ridgeline::ceilings {

// No kernel of ours uses units for bf16 here, so that there is nothing to compare with their rate.
std::vector<FmaLoop> bf16_loops() { return {}; }

}  // namespace ridgeline::ceilings
