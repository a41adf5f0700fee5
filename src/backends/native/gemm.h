#pragma once

// Single-precision matrix product with an epilogue, for the fully connected layers:
//   dst (rows x columns) = epilogue(left (rows x depth) · right (depth x columns))
// docs/kernels/native-gemm.md tells how it came to be fast.

#include <cstddef>
#include <cstdint>

#include "ops/activation.h"

namespace ridgeline::native {

// A matrix operand: element (row, column) lies at data[row * row_stride + column * column_stride].
// One of the strides is 1.
struct MatrixView {
  const float* data = nullptr;
  std::int64_t row_stride = 0, column_stride = 0;
};

// Which index of an operand runs contiguously in memory.
enum class Contiguous : std::uint8_t { rows, columns };

struct GemmShape {
  std::int64_t rows = 0, columns = 0, depth = 0;
  Contiguous left = Contiguous::columns, right = Contiguous::columns;
};

// What happens to a sum before it is stored: a number per column is added, then an activation.
struct Epilogue {
  const float* bias = nullptr;
  bool activate = false;
  ActivationKind activation = ActivationKind::relu;
  float slope = 0.0F;
};

// A product of fixed shape for a fixed number of threads: how it is cut into blocks is decided
// here, once. The same shape and thread count give the same bits.
class Gemm {
 public:
  Gemm(const GemmShape& shape, int threads);

  // 64-byte aligned memory that run needs.
  [[nodiscard]] std::size_t workspace_bytes() const;
  void run(const MatrixView& left, const MatrixView& right, float* dst, std::int64_t dst_row_stride,
           const Epilogue& epilogue, std::byte* workspace) const;

  // How the work is cut: among threads, and into blocks that stay in the caches.
  struct Cut {
    bool narrow = false;     // few columns: dot products over the depth, nothing is transposed
    bool pack_left = false;  // else read in place
    bool pack_right = false;
    int row_parts = 1, column_parts = 1, depth_parts = 1;  // the grid of threads
    std::int64_t depth_block = 0, row_block = 0, column_block = 0;
    std::int64_t slot_floats = 0;  // packing memory of one thread
  };

 private:
  GemmShape shape_;
  Cut cut_;
};

}  // namespace ridgeline::native
