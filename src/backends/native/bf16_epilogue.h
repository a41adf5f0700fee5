#pragma once

// What the matrix products in bf16 leave to Highway: bias and activation of a block of sums.

#include <cstdint>

#include "backends/native/gemm.h"

namespace ridgeline::native::bf16 {

// Rows lie bf16::kBlock floats apart.
void finish_sums(float* sums, std::int64_t rows, std::int64_t columns, const Epilogue& epilogue);

}  // namespace ridgeline::native::bf16
