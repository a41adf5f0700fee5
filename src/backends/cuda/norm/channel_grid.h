#pragma once

// How kernels without windows are cut into blocks of threads. Their operands are rows of channels,
// read in packs: 16 bytes at once where every operand allows it, else one element. A block covers a
// group of neighbouring packs in some rows at a time, its thread rows; a few of those one after the
// other are a tile, whose loads are all under way together.

#include <algorithm>
#include <cstddef>
#include <cstdint>
#include <initializer_list>

#include "backends/cuda/launch.h"

namespace ridgeline::cuda {

// groups * parts blocks: block b works on group b % groups and on every parts-th tile, beginning
// with tile b / groups (or that one counted from the end).
struct ChannelGrid {
  std::int64_t rows = 0;
  int tiles = 0, full_tiles = 0;               // full: with all rows a thread can have under way
  int packs = 0, last_packs = 0;               // of a row; of the last row, which may be shorter
  int lanes = 0, thread_rows = 0, unroll = 0;  // unroll: a thread's rows of a tile
  int groups = 0, parts = 0;

  [[nodiscard]] int blocks() const { return groups * parts; }
  [[nodiscard]] constexpr int tile_rows() const { return thread_rows * unroll; }
};

// An operand as a kernel walks over it, in bytes: from row to row, from one of a thread's rows in a
// tile to the next, and from one of its tiles to the next.
struct RowOperand {
  char* data = nullptr;
  std::int64_t stride = 0, step = 0, jump = 0;
};

enum class Order { forward, backward };  // the tiles from the first to the last, or the other way

[[nodiscard]] inline RowOperand operand_of(const Rows& rows, DType dtype, const ChannelGrid& grid,
                                           Order order = Order::forward) {
  const std::int64_t stride = rows.stride * static_cast<std::int64_t>(size_of(dtype));
  const std::int64_t jump = stride * grid.tile_rows() * grid.parts;
  return {static_cast<char*>(rows.data), stride, stride * grid.thread_rows,
          order == Order::forward ? jump : -jump};
}

[[nodiscard]] inline bool is_dense(const Rows& rows) {
  return rows.rows <= 1 || rows.stride == rows.width;
}

// Whether starts, widths and strides of all operands are multiples of so many elements. Absent ones
// (null) do not count.
[[nodiscard]] inline bool all_fit_pack(DType dtype, std::initializer_list<Rows> operands,
                                       int pack) {
  const auto bytes = static_cast<std::uintptr_t>(pack) * size_of(dtype);
  return std::all_of(operands.begin(), operands.end(), [&](const Rows& rows) {
    if (rows.data == nullptr) return true;
    return reinterpret_cast<std::uintptr_t>(rows.data) % bytes == 0 && rows.width % pack == 0 &&
           (rows.rows <= 1 || rows.stride % pack == 0);
  });
}

// The elements of a pack: as many as fit 16 bytes, or 1 where the operands do not allow that.
[[nodiscard]] inline int pack_for(DType dtype, std::initializer_list<Rows> operands) {
  const int full = 16 / static_cast<int>(size_of(dtype));
  return all_fit_pack(dtype, operands, full) ? full : 1;
}

// Between the two, a word of two elements of 16 bits: ShuffleNet has 58 and 116 channels.
[[nodiscard]] inline int word_pack_for(DType dtype, std::initializer_list<Rows> operands) {
  const int pack = pack_for(dtype, operands);
  return pack == 1 && size_of(dtype) == 2 && all_fit_pack(dtype, operands, 2) ? 2 : pack;
}

// Cuts the rows into tiles, and these into as many parts as make about `blocks` blocks. Where tiles
// of `unroll` rows a thread would leave half of the blocks without work, tiles are smaller.
inline void cut_rows(ChannelGrid& grid, int unroll, int blocks) {
  const int parts = std::max(1, blocks / grid.groups);
  const auto tiles = [&](int rows_a_thread) {
    const std::int64_t tile = std::int64_t{grid.thread_rows} * rows_a_thread;
    return (grid.rows + tile - 1) / tile;
  };
  grid.unroll = unroll;
  while (grid.unroll > 1 && tiles(grid.unroll / 2) <= parts) grid.unroll /= 2;
  grid.tiles = static_cast<int>(tiles(grid.unroll));
  const std::int64_t whole_rows = grid.last_packs == grid.packs ? grid.rows : grid.rows - 1;
  if (grid.unroll == unroll) grid.full_tiles = static_cast<int>(whole_rows / grid.tile_rows());
  grid.parts = std::clamp(parts, 1, std::max(grid.tiles, 1));
}

// For sums over the rows. Lanes are a power of two of at most 32, so that a warp holds whole thread
// rows; a group is 128 bytes of a row, a line of the cache, or half of it where that leaves fewer
// lanes idle. Narrow groups keep the partial sums of a channel few: one for each part.
[[nodiscard]] inline ChannelGrid reduction_grid(std::int64_t rows, std::int64_t channels, int pack,
                                                DType dtype, int threads, int unroll) {
  ChannelGrid grid;
  grid.rows = rows;
  grid.packs = grid.last_packs = static_cast<int>(channels / pack);
  const int widest = std::min(32, 128 / (pack * static_cast<int>(size_of(dtype))));
  grid.lanes = 1;
  while (grid.lanes < widest && grid.lanes < grid.packs) grid.lanes *= 2;
  const int idle = (grid.lanes - grid.packs % grid.lanes) % grid.lanes;
  if (grid.lanes == widest && idle >= widest / 2 && 8 * idle > grid.packs) grid.lanes /= 2;
  grid.groups = (grid.packs + grid.lanes - 1) / grid.lanes;
  grid.thread_rows = threads / grid.lanes;
  cut_rows(grid, unroll, device_limits().multiprocessors);
  return grid;
}

// What a kernel with sums over the rows needs beside its operands, however they lie: a partial sum
// for each channel and part, and a counter for each group.
struct SumScratch {
  std::size_t bytes = 0;
  int counters = 0;
};
[[nodiscard]] inline SumScratch sum_scratch(DType dtype, std::int64_t rows, std::int64_t channels,
                                            int sums, int threads, int unroll) {
  SumScratch scratch;
  const auto bytes = static_cast<int>(size_of(dtype));
  for (const int pack : {1, bytes == 2 ? 2 : 1, 16 / bytes}) {
    if (channels % pack != 0) continue;
    const ChannelGrid grid = reduction_grid(rows, channels, pack, dtype, threads, unroll);
    const std::int64_t floats = channels * grid.parts * sums;
    scratch.bytes = std::max(scratch.bytes, static_cast<std::size_t>(floats) * sizeof(float));
    scratch.counters = std::max(scratch.counters, grid.groups);
  }
  return scratch;
}

inline constexpr int kMostGroupPacks = 32;

// For work in which rows are alone. Groups are all about equally wide.
[[nodiscard]] inline ChannelGrid row_grid(std::int64_t rows, std::int64_t channels, int pack,
                                          int threads, int unroll, int blocks_per_multiprocessor) {
  ChannelGrid grid;
  grid.rows = rows;
  grid.packs = grid.last_packs = static_cast<int>(channels / pack);
  grid.groups = std::max(1, (grid.packs + kMostGroupPacks - 1) / kMostGroupPacks);
  grid.lanes = std::max(1, (grid.packs + grid.groups - 1) / grid.groups);
  grid.thread_rows = threads / grid.lanes;
  cut_rows(grid, unroll, blocks_per_multiprocessor * device_limits().multiprocessors);
  return grid;
}

// For work in which elements are alone and every operand is dense: rows of one pack for each thread
// of a block, as folded_rows gives them.
[[nodiscard]] inline ChannelGrid element_grid(std::int64_t elements, int pack, int threads,
                                              int unroll, int blocks_per_multiprocessor) {
  const std::int64_t packs = elements / pack;
  ChannelGrid grid;
  grid.rows = (packs + threads - 1) / threads;
  grid.packs = grid.lanes = threads;
  grid.last_packs = static_cast<int>(packs - (grid.rows - 1) * threads);
  grid.groups = grid.thread_rows = 1;
  cut_rows(grid, unroll, blocks_per_multiprocessor * device_limits().multiprocessors);
  return grid;
}

[[nodiscard]] inline Rows folded_rows(const Rows& rows, const ChannelGrid& grid, int pack) {
  const std::int64_t width = std::int64_t{grid.packs} * pack;
  return {rows.data, grid.rows, width, width};
}

// Operands of which all are dense become one long row each: then only its length must be a multiple
// of a pack. Absent operands do not count.
[[nodiscard]] inline bool join_rows(std::initializer_list<Rows*> operands) {
  const bool dense = std::all_of(operands.begin(), operands.end(), [](const Rows* rows) {
    return rows->data == nullptr || is_dense(*rows);
  });
  if (!dense) return false;
  for (Rows* rows : operands) {
    const std::int64_t elements = rows->rows * rows->width;
    *rows = {rows->data, 1, elements, elements};
  }
  return true;
}

}  // namespace ridgeline::cuda
