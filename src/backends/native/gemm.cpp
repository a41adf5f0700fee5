#include "backends/native/gemm.h"

#include <algorithm>
#include <array>
#include <utility>

#include "base/parallel.h"
#include "base/simd_targets.h"

#undef HWY_TARGET_INCLUDE
#define HWY_TARGET_INCLUDE "backends/native/gemm.cpp"
#include <hwy/cache_control.h>
#include <hwy/foreach_target.h>
#include <hwy/highway.h>

#include "backends/native/activation-inl.h"
#include "backends/native/dot-inl.h"
#include "backends/native/lanes-inl.h"

#ifndef RIDGELINE_NATIVE_GEMM_TYPES
#define RIDGELINE_NATIVE_GEMM_TYPES
namespace ridgeline::native {
namespace {

// What the chosen instruction set's tile looks like.
struct TileShape {
  std::int64_t rows = 0, columns = 0, lanes = 0, dot_columns = 0;
};

constexpr std::int64_t kWorthAThread = 100 * 1000;  // multiply-adds

// One call of Gemm::run, with everything decided.
struct GemmCall {
  GemmShape shape;
  Gemm::Cut cut;
  MatrixView left, right;
  float* dst = nullptr;
  std::int64_t dst_row_stride = 0;
  Epilogue epilogue;
  std::byte* workspace = nullptr;
};

// One tile of dst over one block of the depth.
struct TileCall {
  const float* left = nullptr;
  std::int64_t left_row_stride = 0, left_depth_stride = 0;
  const float* right = nullptr;
  std::int64_t right_depth_stride = 0;
  std::int64_t depth = 0;
  const float* prefetch = nullptr;  // memory wanted soon, 128 bytes a step; null: none
  float* dst = nullptr;
  std::int64_t dst_row_stride = 0;
  bool accumulate = false;           // add to dst
  const Epilogue* finish = nullptr;  // on the last block of the depth
  const float* bias = nullptr;       // of these columns
};

}  // namespace
}  // namespace ridgeline::native
#endif

HWY_BEFORE_NAMESPACE();
namespace ridgeline::native {
namespace HWY_NAMESPACE {
namespace {

constexpr int kTileRows = kManyRegisters ? 14 : 6;
constexpr int kTileVectors = 2;
constexpr std::int64_t kTileColumns = kTileVectors * kLanes;

using TileFunction = void (*)(const TileCall&);

void activate_row(const Epilogue& epilogue, std::int64_t columns, float* dst) {
  const FloatTag tag;
  with_activation(epilogue.activation, epilogue.slope, [&](auto activation) HWY_ATTR {
    for_lanes(tag, columns, [&](auto lanes, std::int64_t c) HWY_ATTR {
      lanes.store(activation.forward(tag, lanes.load(dst + c)), dst + c);
    });
  });
}

// dst tile = left · right, both read with unit or given strides: kRows * kVectors accumulators in
// registers, one broadcast for kVectors multiply-adds. kUnitRows: left's rows lie side by side
// (packed or transposed), so all broadcasts share one pointer.
template <int kRows, int kVectors, bool kUnitRows>
void multiply_tile(const TileCall& call) {
  const FloatTag tag;
  FloatVec acc[kRows][kVectors];
#pragma GCC unroll 16
  for (int r = 0; r < kRows; ++r) {
#pragma GCC unroll 2
    for (int v = 0; v < kVectors; ++v) acc[r][v] = hn::Zero(tag);
  }
  const float* HWY_RESTRICT left = call.left;
  const float* HWY_RESTRICT right = call.right;
  const std::int64_t row_stride = kUnitRows ? 1 : call.left_row_stride;
  const std::int64_t depth_stride = kUnitRows ? call.left_depth_stride : 1;
  const float* prefetch = call.prefetch;
  for (std::int64_t k = 0; k < call.depth; ++k) {
    FloatVec b[kVectors];
#pragma GCC unroll 2
    for (int v = 0; v < kVectors; ++v) b[v] = hn::LoadU(tag, right + v * kLanes);
    if (prefetch != nullptr) {
      hwy::Prefetch(prefetch);
      hwy::Prefetch(prefetch + 16);
      prefetch += 32;
    }
#pragma GCC unroll 16
    for (int r = 0; r < kRows; ++r) {
      const FloatVec a = hn::Set(tag, left[r * row_stride]);
#pragma GCC unroll 2
      for (int v = 0; v < kVectors; ++v) acc[r][v] = hn::MulAdd(a, b[v], acc[r][v]);
    }
    left += depth_stride;
    right += call.right_depth_stride;
  }

  const bool biased = call.finish != nullptr && call.finish->bias != nullptr;
  const bool relu = call.finish != nullptr && call.finish->activate &&
                    call.finish->activation == ActivationKind::relu;
#pragma GCC unroll 16
  for (int r = 0; r < kRows; ++r) {
    float* dst = call.dst + r * call.dst_row_stride;
#pragma GCC unroll 2
    for (int v = 0; v < kVectors; ++v) {
      FloatVec sum = acc[r][v];
      if (call.accumulate) sum = hn::Add(sum, hn::LoadU(tag, dst + v * kLanes));
      if (biased) sum = hn::Add(sum, hn::LoadU(tag, call.bias + v * kLanes));
      if (relu) sum = hn::Max(hn::Zero(tag), sum);
      hn::StoreU(sum, tag, dst + v * kLanes);
    }
  }
  if (call.finish == nullptr || !call.finish->activate || relu) return;
  for (int r = 0; r < kRows; ++r) {
    activate_row(*call.finish, kVectors * kLanes, call.dst + r * call.dst_row_stride);
  }
}

template <int kVectors, bool kUnitRows, int... kRows>
constexpr std::array<TileFunction, sizeof...(kRows)> tile_functions(
    std::integer_sequence<int, kRows...>) {
  return {multiply_tile<kRows + 1, kVectors, kUnitRows>...};
}

// The tile function for a number of rows, 1 to kTileRows.
template <int kVectors>
TileFunction tile_function(std::int64_t rows, bool unit_rows) {
  using Rows = std::make_integer_sequence<int, kTileRows>;
  static constexpr auto kUnit = tile_functions<kVectors, true>(Rows());
  static constexpr auto kStrided = tile_functions<kVectors, false>(Rows());
  const auto index = static_cast<std::size_t>(rows - 1);
  return unit_rows ? kUnit[index] : kStrided[index];
}

// Runs a tile of which only `columns` columns exist: it works on a copy of full width.
void run_partial_tile(TileFunction function, TileCall call, std::int64_t rows,
                      std::int64_t columns) {
  HWY_ALIGN float dst[kTileRows * kTileColumns];
  HWY_ALIGN float bias[kTileColumns] = {};
  float* const real = call.dst;
  for (std::int64_t r = 0; r < rows; ++r) {
    for (std::int64_t c = 0; c < kTileColumns; ++c) {
      dst[r * kTileColumns + c] =
          call.accumulate && c < columns ? real[r * call.dst_row_stride + c] : 0.0F;
    }
  }
  if (call.bias != nullptr) std::copy_n(call.bias, columns, bias);
  const std::int64_t real_stride = std::exchange(call.dst_row_stride, kTileColumns);
  call.dst = dst;
  call.bias = bias;
  function(call);
  for (std::int64_t r = 0; r < rows; ++r) {
    std::copy_n(dst + r * kTileColumns, columns, real + r * real_stride);
  }
}

// dst[column][row] = src[row][column] for 4 x 4 elements.
HWY_INLINE void transpose4(const float* src, std::int64_t src_stride, float* dst,
                           std::int64_t dst_stride) {
#if HWY_TARGET == HWY_SCALAR
  for (int r = 0; r < 4; ++r) {
    for (int c = 0; c < 4; ++c) dst[c * dst_stride + r] = src[r * src_stride + c];
  }
#else
  const hn::Full128<float> tag;
  const hn::Full128<double> pairs;
  const auto r0 = hn::LoadU(tag, src), r1 = hn::LoadU(tag, src + src_stride);
  const auto r2 = hn::LoadU(tag, src + 2 * src_stride), r3 = hn::LoadU(tag, src + 3 * src_stride);
  const auto lower01 = hn::BitCast(pairs, hn::InterleaveLower(tag, r0, r1));
  const auto lower23 = hn::BitCast(pairs, hn::InterleaveLower(tag, r2, r3));
  const auto upper01 = hn::BitCast(pairs, hn::InterleaveUpper(tag, r0, r1));
  const auto upper23 = hn::BitCast(pairs, hn::InterleaveUpper(tag, r2, r3));
  hn::StoreU(hn::BitCast(tag, hn::InterleaveLower(pairs, lower01, lower23)), tag, dst);
  hn::StoreU(hn::BitCast(tag, hn::InterleaveUpper(pairs, lower01, lower23)), tag, dst + dst_stride);
  hn::StoreU(hn::BitCast(tag, hn::InterleaveLower(pairs, upper01, upper23)), tag,
             dst + 2 * dst_stride);
  hn::StoreU(hn::BitCast(tag, hn::InterleaveUpper(pairs, upper01, upper23)), tag,
             dst + 3 * dst_stride);
#endif
}

// packed[k][width] = lines [0, lines) of an operand, zeros up to width. A line is a row of left or
// a column of right; element k of it lies at src[line * line_stride + k * depth_stride].
void pack_panel(const float* src, std::int64_t line_stride, std::int64_t depth_stride,
                std::int64_t lines, std::int64_t depth, std::int64_t width,
                float* HWY_RESTRICT packed) {
  if (line_stride == 1) {
    for (std::int64_t k = 0; k < depth; ++k) {
      float* const to = packed + k * width;
      std::copy_n(src + k * depth_stride, lines, to);
      std::fill(to + lines, to + width, 0.0F);
    }
    return;
  }
  std::int64_t line = 0;
  for (; line + 4 <= lines; line += 4) {
    const float* const from = src + line * line_stride;
    std::int64_t k = 0;
    for (; k + 4 <= depth; k += 4) {
      transpose4(from + k, line_stride, packed + k * width + line, width);
    }
    for (; k < depth; ++k) {
      for (int i = 0; i < 4; ++i) packed[k * width + line + i] = from[i * line_stride + k];
    }
  }
  for (; line < width; ++line) {
    for (std::int64_t k = 0; k < depth; ++k) {
      packed[k * width + line] = line < lines ? src[line * line_stride + k] : 0.0F;
    }
  }
}

// A thread's part of the product: rows, columns and depth, and where its sums go.
struct Part {
  Range rows, columns, depth;
  float* dst = nullptr;
  std::int64_t dst_row_stride = 0;
  bool whole_depth = true;
  float* packed = nullptr;
};

// All tiles of one block of rows with one block of columns. right_panels: packed panels of the
// column block, or null where right is read in place.
void multiply_block(const GemmCall& call, const Part& part, const Range& rows, const Range& columns,
                    const Range& depth, const float* packed_left, const float* right_panels,
                    const float* prefetch) {
  const std::int64_t steps = depth.end - depth.begin;
  const bool last = depth.end == part.depth.end;
  const bool unit_rows = call.cut.pack_left || call.left.row_stride == 1;
  for (std::int64_t c = columns.begin; c < columns.end; c += kTileColumns) {
    const std::int64_t width = std::min(kTileColumns, columns.end - c);
    const bool packed_right = call.cut.pack_right || width < kTileColumns;
    TileCall tile;
    tile.depth = steps;
    // In place, only the last, partial panel is packed, and it is the only one there.
    tile.right = !packed_right         ? call.right.data + depth.begin * call.right.row_stride + c
                 : call.cut.pack_right ? right_panels + (c - columns.begin) * steps
                                       : right_panels;
    tile.right_depth_stride = packed_right ? kTileColumns : call.right.row_stride;
    tile.prefetch =
        prefetch == nullptr ? nullptr : prefetch + (c - columns.begin) / kTileColumns * steps * 32;
    tile.accumulate = depth.begin > part.depth.begin;
    tile.finish = last && part.whole_depth ? &call.epilogue : nullptr;
    tile.bias = call.epilogue.bias == nullptr ? nullptr : call.epilogue.bias + c;
    tile.dst_row_stride = part.dst_row_stride;
    for (std::int64_t r = rows.begin; r < rows.end; r += kTileRows) {
      const std::int64_t height = std::min<std::int64_t>(kTileRows, rows.end - r);
      if (call.cut.pack_left) {
        tile.left = packed_left + (r - rows.begin) * steps;
        tile.left_depth_stride = kTileRows;
      } else {
        tile.left =
            call.left.data + r * call.left.row_stride + depth.begin * call.left.column_stride;
        tile.left_row_stride = call.left.row_stride;
        tile.left_depth_stride = call.left.column_stride;
      }
      tile.dst = part.dst + r * part.dst_row_stride + c;
      const TileFunction function = width > kLanes ? tile_function<2>(height, unit_rows)
                                                   : tile_function<1>(height, unit_rows);
      if (width == kTileColumns || width == kLanes) {
        function(tile);
      } else {
        run_partial_tile(function, tile, height, width);
      }
      tile.prefetch = nullptr;
    }
  }
}

void multiply_part(const GemmCall& call, const Part& part) {
  const Gemm::Cut& cut = call.cut;
  float* const packed_right = part.packed;
  float* const packed_left =
      part.packed +
      (cut.pack_right ? round_up(cut.column_block, kTileColumns) : kTileColumns) * cut.depth_block;
  for (std::int64_t k = part.depth.begin; k < part.depth.end; k += cut.depth_block) {
    const Range depth{k, std::min(k + cut.depth_block, part.depth.end)};
    const std::int64_t steps = depth.end - depth.begin;
    for (std::int64_t c = part.columns.begin; c < part.columns.end; c += cut.column_block) {
      const Range columns{c, std::min(c + cut.column_block, part.columns.end)};
      for (std::int64_t p = columns.begin; p < columns.end; p += kTileColumns) {
        const std::int64_t width = std::min(kTileColumns, columns.end - p);
        if (!cut.pack_right && width == kTileColumns) continue;
        pack_panel(
            call.right.data + p * call.right.column_stride + depth.begin * call.right.row_stride,
            call.right.column_stride, call.right.row_stride, width, steps, kTileColumns,
            cut.pack_right ? packed_right + (p - columns.begin) * steps : packed_right);
      }
      // Right read in place comes from memory in strips; the next strip's rows are asked for in
      // order, which strided reads alone would not make the hardware do.
      const bool fetch = !cut.pack_right && depth.end + steps <= part.depth.end;
      const float* const prefetch =
          fetch ? call.right.data + depth.end * call.right.row_stride + columns.begin : nullptr;
      for (std::int64_t r = part.rows.begin; r < part.rows.end; r += cut.row_block) {
        const Range rows{r, std::min(r + cut.row_block, part.rows.end)};
        for (std::int64_t p = rows.begin; cut.pack_left && p < rows.end; p += kTileRows) {
          pack_panel(
              call.left.data + p * call.left.row_stride + depth.begin * call.left.column_stride,
              call.left.row_stride, call.left.column_stride,
              std::min<std::int64_t>(kTileRows, rows.end - p), steps, kTileRows,
              packed_left + (p - rows.begin) * steps);
        }
        multiply_block(call, part, rows, columns, depth, packed_left, packed_right,
                       r == part.rows.begin ? prefetch : nullptr);
      }
    }
  }
}

void finish_row(const Epilogue& epilogue, std::int64_t columns, float* dst) {
  if (epilogue.bias != nullptr) {
    for (std::int64_t c = 0; c < columns; ++c) dst[c] += epilogue.bias[c];
  }
  if (epilogue.activate) activate_row(epilogue, columns, dst);
}

// Some rows with some columns of a product with few columns.
void multiply_narrow_tile(const GemmCall& call, Range rows, Range columns, const float* packed) {
  HWY_ALIGN float sums[kDotRows * (kMaxDotOutputs + 1)];
  const std::int64_t count = rows.end - rows.begin;
  FloatRows load{};
  for (std::int64_t i = 0; i < kDotRows; ++i) {
    load.rows[i] = call.left.data + (rows.begin + std::min(i, count - 1)) * call.left.row_stride;
  }
  dot_outputs(columns.end - columns.begin, load, call.shape.depth, packed, sums);
  for (std::int64_t i = 0; i < count; ++i) {
    float* const dst = call.dst + (rows.begin + i) * call.dst_row_stride;
    for (std::int64_t c = columns.begin; c < columns.end; ++c) {
      dst[c] = sums[(c - columns.begin) * kDotRows + i];
    }
  }
}

// Few columns: a group of rows with one tile of columns after the other, so that left comes from
// memory once and a tile's weights stay in the first-level cache.
void multiply_narrow(const GemmCall& call, Range rows, const float* packed) {
  constexpr std::int64_t kGroupRows = 16;
  const std::int64_t columns = call.shape.columns, step = outputs_of_tile(columns);
  const std::int64_t padded = round_up(call.shape.depth, kLanes);
  for (std::int64_t group = rows.begin; group < rows.end; group += kGroupRows) {
    const std::int64_t end = std::min(group + kGroupRows, rows.end);
    for (std::int64_t c = 0; c < columns; c += step) {
      for (std::int64_t r = group; r < end; r += kDotRows) {
        multiply_narrow_tile(call, {r, std::min(r + kDotRows, end)},
                             {c, std::min(c + step, columns)}, packed + c * padded);
      }
    }
    for (std::int64_t r = group; r < end; ++r) {
      finish_row(call.epilogue, columns, call.dst + r * call.dst_row_stride);
    }
  }
}

void run_narrow(const GemmCall& call) {
  auto* const packed = reinterpret_cast<float*>(call.workspace);
  pack_all_dot_weights(call.right.data, call.right.column_stride, call.shape.columns,
                       call.shape.depth, packed);
  const std::int64_t row_work = std::max<std::int64_t>(1, call.shape.columns * call.shape.depth);
  parallel_for(call.shape.rows, 1 + kWorthAThread / row_work,
               [&](std::int64_t begin, std::int64_t end) {
                 multiply_narrow(call, {begin, end}, packed);
               });
}

// Adds the threads' sums over their parts of the depth, in order.
void combine(const GemmCall& call, const float* partials) {
  const FloatTag tag;
  const std::int64_t columns = call.shape.columns, size = call.shape.rows * columns;
  parallel_for(call.shape.rows, 1 + 8192 / columns,
               [&](std::int64_t begin, std::int64_t end) HWY_ATTR {
                 for (std::int64_t r = begin; r < end; ++r) {
                   float* const dst = call.dst + r * call.dst_row_stride;
                   const float* const src = partials + r * columns;
                   std::int64_t c = 0;
                   for (; c + kLanes <= columns; c += kLanes) {
                     FloatVec sum = hn::LoadU(tag, src + c);
                     for (int p = 1; p < call.cut.depth_parts; ++p) {
                       sum = hn::Add(sum, hn::LoadU(tag, src + p * size + c));
                     }
                     hn::StoreU(sum, tag, dst + c);
                   }
                   for (; c < columns; ++c) {
                     float sum = src[c];
                     for (int p = 1; p < call.cut.depth_parts; ++p) sum += src[p * size + c];
                     dst[c] = sum;
                   }
                   finish_row(call.epilogue, columns, dst);
                 }
               });
}

void run(const GemmCall& call) {
  if (call.cut.narrow) {
    run_narrow(call);
    return;
  }
  const Gemm::Cut& cut = call.cut;
  const int slots = cut.row_parts * cut.column_parts * cut.depth_parts;
  auto* const packed = reinterpret_cast<float*>(call.workspace);
  float* const partials = packed + slots * cut.slot_floats;
  const auto run_slot = [&](int slot) {
    const int row_part = slot % cut.row_parts;
    const int column_part = slot / cut.row_parts % cut.column_parts;
    const int depth_part = slot / cut.row_parts / cut.column_parts;
    Part part;
    // Parts end at tile borders, so that only the last one has partial tiles.
    const auto cut_range = [](std::int64_t size, std::int64_t tile, int index, int parts) {
      const Range tiles = share_of((size + tile - 1) / tile, index, parts);
      return Range{tiles.begin * tile, std::min(tiles.end * tile, size)};
    };
    part.rows = cut_range(call.shape.rows, cut.row_parts > 1 ? kTileRows : call.shape.rows,
                          row_part, cut.row_parts);
    part.columns = cut_range(call.shape.columns, kTileColumns, column_part, cut.column_parts);
    part.depth = share_of(call.shape.depth, depth_part, cut.depth_parts);
    part.whole_depth = cut.depth_parts == 1;
    part.dst =
        part.whole_depth ? call.dst : partials + depth_part * call.shape.rows * call.shape.columns;
    part.dst_row_stride = part.whole_depth ? call.dst_row_stride : call.shape.columns;
    part.packed = packed + slot * cut.slot_floats;
    multiply_part(call, part);
  };
  if (slots == 1) {
    run_slot(0);
  } else {
    parallel([&](int thread, int threads) {
      for (int slot = thread; slot < slots; slot += threads) run_slot(slot);
    });
  }
  if (cut.depth_parts > 1) combine(call, partials);
}

TileShape tile_shape() { return {kTileRows, kTileColumns, kLanes, kMaxDotOutputs}; }

}  // namespace
}  // namespace HWY_NAMESPACE
}  // namespace ridgeline::native
HWY_AFTER_NAMESPACE();

#if HWY_ONCE
namespace ridgeline::native {
namespace {

HWY_EXPORT(run);
HWY_EXPORT(tile_shape);

constexpr std::int64_t kDepthBlock = 256;
constexpr std::int64_t kRowBlockFloats = 48 * 1024;  // packed left: in the second-level cache
constexpr std::int64_t kColumnBlock = 1024;          // packed right: in the last-level cache
constexpr std::int64_t kStripFloats = 64 * 1024;     // right in place: in the second-level cache

std::int64_t ceil_div(std::int64_t a, std::int64_t b) { return (a + b - 1) / b; }

// Cuts the product among threads so that the largest part, with the tiles' waste, what must be
// packed and what must be added up afterwards, is smallest.
void choose_grid(const GemmShape& shape, const TileShape& tile, int threads, Gemm::Cut& cut) {
  const std::int64_t work = shape.rows * shape.columns * shape.depth;
  const auto slots = static_cast<int>(std::clamp<std::int64_t>(work / kWorthAThread, 1, threads));
  double best = -1.0;
  for (int row_parts = 1; row_parts <= slots; ++row_parts) {
    if (slots % row_parts != 0) continue;
    for (int column_parts = 1; column_parts <= slots / row_parts; ++column_parts) {
      if (slots / row_parts % column_parts != 0) continue;
      const int depth_parts = slots / row_parts / column_parts;
      const auto rows = static_cast<double>(
          row_parts == 1 ? shape.rows
                         : ceil_div(ceil_div(shape.rows, tile.rows), row_parts) * tile.rows);
      const auto columns = static_cast<double>(
          ceil_div(ceil_div(shape.columns, tile.lanes), column_parts) * tile.lanes);
      const auto depth = static_cast<double>(ceil_div(shape.depth, depth_parts));
      constexpr double kPackCost = 8.0, kCombineCost = 16.0;  // in multiply-adds an element
      double cost = rows * columns * depth + kPackCost * depth * (rows + columns);
      if (depth_parts > 1) {
        cost += kCombineCost * static_cast<double>(shape.rows * shape.columns);
      }
      if (best < 0.0 || cost < best) {
        best = cost;
        cut.row_parts = row_parts;
        cut.column_parts = column_parts;
        cut.depth_parts = depth_parts;
      }
    }
  }
}

}  // namespace

Gemm::Gemm(const GemmShape& shape, int threads) : shape_(shape) {
  const TileShape tile = HWY_DYNAMIC_DISPATCH(tile_shape)();
  const bool left_depth_runs = shape.left == Contiguous::columns;
  const bool right_depth_runs = shape.right == Contiguous::rows;
  cut_.narrow = left_depth_runs && right_depth_runs && shape.columns <= 12 && tile.lanes > 1 &&
                shape.depth >= 2 * tile.lanes;
  if (cut_.narrow) return;

  choose_grid(shape, tile, threads, cut_);
  const std::int64_t rows = ceil_div(shape.rows, cut_.row_parts);
  const std::int64_t columns = ceil_div(shape.columns, cut_.column_parts);
  // Packing pays when a panel is read often enough. Rows of left that lie a multiple of 1 KiB apart
  // share few sets of the cache and would push each other out, so they are packed too.
  const bool crowded = left_depth_runs && shape.depth % 256 == 0;
  cut_.pack_left = crowded || columns > 16 * tile.columns;
  cut_.pack_right = right_depth_runs || rows > 2 * tile.rows;
  cut_.depth_block = kDepthBlock;
  if (!cut_.pack_right) {
    cut_.depth_block = std::clamp<std::int64_t>(kStripFloats / columns, 32, kDepthBlock);
  }
  cut_.depth_block = std::min(cut_.depth_block, ceil_div(shape.depth, cut_.depth_parts));
  cut_.row_block =
      cut_.pack_left
          ? std::max<std::int64_t>(1, kRowBlockFloats / cut_.depth_block / tile.rows) * tile.rows
          : std::max<std::int64_t>(1, shape.rows);
  cut_.column_block = cut_.pack_right ? kColumnBlock : std::max<std::int64_t>(1, shape.columns);

  const std::int64_t left_floats =
      cut_.pack_left ? std::min(cut_.row_block, ceil_div(rows + tile.rows, tile.rows) * tile.rows) *
                           cut_.depth_block
                     : 0;
  const std::int64_t right_columns =
      cut_.pack_right
          ? std::min(kColumnBlock, ceil_div(columns + tile.columns, tile.columns) * tile.columns)
          : tile.columns;
  if (cut_.pack_right) cut_.column_block = right_columns;
  cut_.slot_floats = ceil_div(left_floats + right_columns * cut_.depth_block, 16) * 16;
}

std::size_t Gemm::workspace_bytes() const {
  std::int64_t floats = 0;
  if (cut_.narrow) {
    const std::int64_t lanes = HWY_DYNAMIC_DISPATCH(tile_shape)().lanes;
    floats = shape_.columns * ceil_div(shape_.depth, lanes) * lanes;
  } else {
    floats = cut_.slot_floats * cut_.row_parts * cut_.column_parts * cut_.depth_parts;
    if (cut_.depth_parts > 1) floats += cut_.depth_parts * shape_.rows * shape_.columns;
  }
  return static_cast<std::size_t>(floats) * sizeof(float);
}

void Gemm::run(const MatrixView& left, const MatrixView& right, float* dst,
               std::int64_t dst_row_stride, const Epilogue& epilogue, std::byte* workspace) const {
  HWY_DYNAMIC_DISPATCH(run)
  ({shape_, cut_, left, right, dst, dst_row_stride, epilogue, workspace});
}

}  // namespace ridgeline::native
#endif
