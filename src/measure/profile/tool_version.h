#pragma once

// Whether a library writes the records that this build reads: their layout changes between
// versions of CUPTI, and reading one as another gives nonsense.

#include <cstdint>
#include <string>

namespace ridgeline {

// "13.0 (130001)"; before CUDA 13 a running number.
[[nodiscard]] std::string cupti_version_text(std::uint32_t version);

// Why records of version `found` cannot be read by a build with the headers of `built`; empty when
// they can. From CUDA 13 on records only grow at their end within a major version.
[[nodiscard]] std::string refuse_cupti_version(std::uint32_t built, std::uint32_t found);

}  // namespace ridgeline
