#pragma once

#include <span>

#include "plan/kernel.h"

namespace ridgeline::opencl {

// conv2d and linear with their epilogues and gradients.
std::span<const KernelRow> conv_rows();

}  // namespace ridgeline::opencl
