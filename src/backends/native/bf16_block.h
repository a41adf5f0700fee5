#pragma once

// The block under all matrix products in bf16: 32 by 32 sums in f32, on AMX tiles or in AVX-512
// registers, and the packing of its operands. docs/kernels/native-bf16.md tells how it is used.

#include <cstdint>

#include "backends/native/gemm.h"
#include "base/bf16_unit.h"
#include "base/half.h"

namespace ridgeline::native::bf16 {

inline constexpr std::int64_t kChunk = 32;         // products that one step adds to each sum
inline constexpr std::int64_t kTile = 16;          // rows, and columns, of a tile of sums
inline constexpr std::int64_t kBlock = 2 * kTile;  // rows, and columns, of a block of sums
inline constexpr std::int64_t kTileElements = kTile * kChunk;  // of a packed tile: 1 KiB
inline constexpr std::int64_t kBlockSums = kBlock * kBlock;

[[nodiscard]] constexpr std::int64_t rounded_up(std::int64_t count, std::int64_t multiple) {
  return (count + multiple - 1) / multiple * multiple;
}

// sums[r][c] = Σ over the chunks, Σ over k: rows[r][chunk + k] * packed[chunk][k][c].
struct BlockCall {
  const BFloat16* rows = nullptr;        // the first; 32 elements of each are read at every chunk
  std::int64_t row_stride = 0;           // elements
  std::int64_t second = 0;               // elements from row 0 to row 16
  const std::int64_t* chunks = nullptr;  // where each begins in a row: elements
  std::int64_t chunk_count = 0;
  const BFloat16* packed = nullptr;  // for each chunk as many tiles as there are column tiles
  float* sums = nullptr;             // 32 by 32, 64-byte aligned
  int row_tiles = 2, column_tiles = 2;
  bool add = false;  // to what the sums hold
};

// What a thread needs around its calls of multiply_block: the shape of its tiles.
class UnitScope {
 public:
  explicit UnitScope(Bf16Unit unit);
  ~UnitScope();
  UnitScope(const UnitScope&) = delete;
  UnitScope& operator=(const UnitScope&) = delete;

 private:
  Bf16Unit unit_;
};

// REQUIRES: a UnitScope of the same unit on this thread.
void multiply_block(Bf16Unit unit, const BlockCall& call);

// Sums of a block to bf16, after a bias and an activation.
struct StoreCall {
  float* sums = nullptr;  // changed by an activation
  std::int64_t rows = 0, columns = 0;
  BFloat16* dst = nullptr;
  const std::int64_t* places = nullptr;  // of each row in dst; negative: not stored
  const Epilogue* epilogue = nullptr;    // its bias begins at the block's first column
};
void store_block(const StoreCall& call);

// A packed tile holds 16 pairs of neighbouring depths by 16 columns: [pair][column][2].
// From 32 rows of the depth, each of up to 16 columns that lie side by side from `first` on; null:
// zeros.
void pack_rows(const BFloat16* const* rows, std::int64_t first, std::int64_t columns,
               BFloat16* tile);
// From 16 columns, each with up to 32 depths side by side; null: zeros.
void pack_columns(const BFloat16* const* columns, std::int64_t depth, BFloat16* tile);
// The same rows to 16 columns of 32 rows side by side, `stride` elements apart.
void transpose_rows(const BFloat16* const* rows, std::int64_t first, std::int64_t columns,
                    BFloat16* to, std::int64_t stride);
// 16 rows of 16 sums, kBlock floats apart, added up over `parts` copies `part_stride` floats apart
// and rounded: to[column * stride + row].
void transpose_sums(const float* sums, int parts, std::int64_t part_stride, BFloat16* to,
                    std::int64_t stride);
// For the few elements of a pixel, where a call of the C library would take longer.
void copy_elements(const BFloat16* from, std::int64_t count, BFloat16* to);
void clear_elements(BFloat16* to, std::int64_t count);

}  // namespace ridgeline::native::bf16
