#pragma once

// NCCL's versions as numbers: 22809 is 2.28.9; up to 2.8 they were counted in thousands.

#include <string>

namespace ridgeline::nccl {

// Why it cannot be used; empty when it can.
[[nodiscard]] std::string refuse_version(int version);
// Whether exchanges can be part of a CUDA graph.
[[nodiscard]] bool records_exchanges(int version);
// "2.28.9"
[[nodiscard]] std::string text_of_version(int version);

}  // namespace ridgeline::nccl
