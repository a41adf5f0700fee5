#include <algorithm>
#include <utility>

#include "backends/native/conv_bf16.h"
#include "backends/native/row_space.h"
#include "base/parallel.h"

namespace ridgeline::native::conv {
namespace {

using bf16::kBlock;
using bf16::kBlockSums;
using bf16::kChunk;
using bf16::kTile;
using bf16::kTileElements;
using bf16::rounded_up;

// What the transposed src and the packed diff_dst of a band may take of a second-level cache that
// sums pass through.
constexpr std::int64_t kBandElements = 768 * 1024 / 2;

struct WeightsJob {
  const Bf16WeightsPlan* plan = nullptr;
  const BFloat16* src = nullptr;
  const BFloat16* diff_dst = nullptr;
  BFloat16* diff_weights = nullptr;
  Strides src_strides{}, dst_strides{};
};

// A thread's own memory, and the sums of all.
struct Scratch {
  BFloat16* rows = nullptr;    // transposed src
  BFloat16* packed = nullptr;  // diff_dst
  std::int64_t* chunks = nullptr;
  BFloat16* filters = nullptr;  // 16 by 16 of them, on their way to the plain gradient
  float* sums = nullptr;        // of all parts
};

std::int64_t taps_of(const Bf16WeightsPlan& plan) {
  return std::ssize(plan.geometry.phases[0].taps);
}
std::int64_t src_of_block(const Bf16WeightsPlan& plan) {
  return plan.blocks.merged * plan.geometry.src_group();
}
std::int64_t dst_of_block(const Bf16WeightsPlan& plan) {
  return plan.blocks.merged * plan.geometry.dst_group();
}
std::int64_t packed_block(const Bf16WeightsPlan& plan) {
  return plan.most_chunks * 2 * kTileElements;
}

Scratch carve(const Bf16WeightsPlan& plan, Carver& carver) {
  Scratch scratch;
  scratch.rows = carver.take<BFloat16>(plan.src_blocks * kBlock * plan.pitch * plan.threads);
  scratch.packed = carver.take<BFloat16>(plan.dst_blocks * packed_block(plan) * plan.threads);
  scratch.chunks = carver.take<std::int64_t>(plan.most_chunks * plan.threads);
  scratch.filters = carver.take<BFloat16>(kTile * kTile * taps_of(plan) * plan.threads);
  scratch.sums = carver.take<float>(plan.part_floats * plan.pixel_parts);
  return scratch;
}

Scratch scratch_of(const Bf16WeightsPlan& plan, Scratch all, int thread) {
  all.rows += plan.src_blocks * kBlock * plan.pitch * thread;
  all.packed += plan.dst_blocks * packed_block(plan) * thread;
  all.chunks += plan.most_chunks * thread;
  all.filters += kTile * kTile * taps_of(plan) * thread;
  return all;
}

float* sums_at(const Bf16WeightsPlan& plan, float* sums, std::int64_t block, std::int64_t tap,
               std::int64_t src_block, std::int64_t dst_block) {
  const std::int64_t index =
      ((block * taps_of(plan) + tap) * plan.src_blocks + src_block) * plan.dst_blocks + dst_block;
  return sums + index * kBlockSums;
}

// The pixels of dst that a piece of work covers: a band of a grid, or a range.
struct Piece {
  Band band;
  std::int64_t begin = 0, end = 0;
};

Piece piece_at(const Bf16WeightsPlan& plan, std::int64_t index) {
  const Geometry& g = plan.geometry;
  if (plan.on_grid) return {band_at(g, plan.bands, index)};
  const std::int64_t begin = index * plan.band_pixels;
  return {{}, begin, std::min(begin + plan.band_pixels, g.images * g.rows * g.cols)};
}

// Walks over pixels of dst in order; each as image, row and column.
struct PixelWalk {
  const Geometry* g;
  std::int64_t image, row, column;

  PixelWalk(const Geometry& geometry, std::int64_t pixel)
      : g(&geometry),
        image(pixel / (geometry.rows * geometry.cols)),
        row(pixel / geometry.cols % geometry.rows),
        column(pixel % geometry.cols) {}
  void next() {
    if (++column < g->cols) return;
    column = 0;
    if (++row < g->rows) return;
    row = 0;
    ++image;
  }
};

const BFloat16* dst_pixel(const WeightsJob& job, std::int64_t image, std::int64_t row,
                          std::int64_t column) {
  return job.diff_dst + image * job.dst_strides[0] + row * job.dst_strides[2] +
         column * job.dst_strides[3];
}

// The diff_dst of one chunk of pixels, for the units' columns.
void pack_chunk(const WeightsJob& job, const Scratch& scratch, std::int64_t block, Range columns,
                std::int64_t chunk, const BFloat16* const* pixels) {
  const Bf16WeightsPlan& plan = *job.plan;
  const std::int64_t channels = plan.blocks.groups_of(block) * plan.geometry.dst_group();
  for (std::int64_t d = columns.begin; d < columns.end; ++d) {
    const std::int64_t first = d * kBlock, tiles = channels - first > kTile ? 2 : 1;
    BFloat16* to = scratch.packed + d * packed_block(plan) + chunk * tiles * kTileElements;
    for (std::int64_t t = 0; t < tiles; ++t) {
      const std::int64_t channel = first + t * kTile;
      bf16::pack_rows(pixels, block * dst_of_block(plan) + channel,
                      std::min(kTile, channels - channel), to + t * kTileElements);
    }
  }
}

// Packs diff_dst and lists where each chunk begins in the transposed src; returns their number.
std::int64_t pack_diff_dst(const WeightsJob& job, const Scratch& scratch, const Piece& piece,
                           std::int64_t block, Range columns) {
  const Bf16WeightsPlan& plan = *job.plan;
  const Geometry& g = plan.geometry;
  const BFloat16* pixels[kChunk];
  std::int64_t chunk = 0;
  if (!plan.on_grid) {
    PixelWalk walk(g, piece.begin);
    for (std::int64_t at = piece.begin; at < piece.end; at += kChunk, ++chunk) {
      for (std::int64_t i = 0; i < kChunk; ++i, walk.next()) {
        pixels[i] =
            at + i < piece.end ? dst_pixel(job, walk.image, walk.row, walk.column) : nullptr;
      }
      scratch.chunks[chunk] = at - piece.begin;
      pack_chunk(job, scratch, block, columns, chunk, pixels);
    }
    return chunk;
  }
  // Between two rows of dst the grid has pixels that count for nothing.
  const Band& band = piece.band;
  for (std::int64_t image = 0; image < band.images; ++image) {
    std::int64_t row = 0, column = 0;
    for (std::int64_t at = 0; at < band.rows * plan.grid.columns; at += kChunk, ++chunk) {
      for (std::int64_t i = 0; i < kChunk; ++i) {
        const bool real = row < band.rows && column < g.cols;
        pixels[i] = real ? dst_pixel(job, band.image + image, band.row + row, column) : nullptr;
        if (++column == plan.grid.columns) {
          column = 0;
          ++row;
        }
      }
      scratch.chunks[chunk] = image * plan.grid.image_pixels + at;
      pack_chunk(job, scratch, block, columns, chunk, pixels);
    }
  }
  return chunk;
}

void transpose_chunk(const WeightsJob& job, const Scratch& scratch, std::int64_t block,
                     std::int64_t at, const BFloat16* const* pixels) {
  const Bf16WeightsPlan& plan = *job.plan;
  const std::int64_t channels = plan.blocks.groups_of(block) * plan.geometry.src_group();
  for (std::int64_t c = 0; c < channels; c += kTile) {
    bf16::transpose_rows(pixels, block * src_of_block(plan) + c, std::min(kTile, channels - c),
                         scratch.rows + c * plan.pitch + at, plan.pitch);
  }
}

// The whole grid, and zeros as far behind it as chunks reach.
void transpose_grid(const WeightsJob& job, const Scratch& scratch, const Piece& piece,
                    std::int64_t block) {
  const Bf16WeightsPlan& plan = *job.plan;
  const Geometry& g = plan.geometry;
  Grid grid = plan.grid;
  grid.row = piece.band.row * g.src_step_y + g.dy_min;
  GridWalk walk(g, grid, job.src + piece.band.image * job.src_strides[0], job.src_strides);
  const std::int64_t count = piece.band.images * grid.image_pixels;
  const BFloat16* pixels[kChunk];
  for (std::int64_t at = 0; at + kChunk <= plan.pitch; at += kChunk) {
    for (std::int64_t i = 0; i < kChunk; ++i) pixels[i] = at + i < count ? walk.next() : nullptr;
    transpose_chunk(job, scratch, block, at, pixels);
  }
}

// The src that each pixel sees under one tap.
void transpose_tap(const WeightsJob& job, const Scratch& scratch, const Piece& piece,
                   std::int64_t block, const Tap& tap) {
  const Geometry& g = job.plan->geometry;
  PixelWalk walk(g, piece.begin);
  const BFloat16* pixels[kChunk];
  for (std::int64_t at = piece.begin; at < piece.end; at += kChunk) {
    for (std::int64_t i = 0; i < kChunk; ++i, walk.next()) {
      const std::int64_t y = walk.row * g.src_step_y + tap.dy;
      const std::int64_t x = walk.column * g.src_step_x + tap.dx;
      const bool inside = at + i < piece.end && y >= 0 && y < g.src_h && x >= 0 && x < g.src_w;
      pixels[i] = inside ? job.src + walk.image * job.src_strides[0] + y * job.src_strides[2] +
                               x * job.src_strides[3]
                         : nullptr;
    }
    transpose_chunk(job, scratch, block, at - piece.begin, pixels);
  }
}

// One band for the columns of one block of groups.
void add_piece(const WeightsJob& job, const Scratch& scratch, float* sums, const Piece& piece,
               std::int64_t block, Range columns, bool first) {
  const Bf16WeightsPlan& plan = *job.plan;
  const Geometry& g = plan.geometry;
  const std::int64_t src_channels = plan.blocks.groups_of(block) * g.src_group();
  const std::int64_t dst_channels = plan.blocks.groups_of(block) * g.dst_group();
  bf16::BlockCall call;
  call.chunk_count = pack_diff_dst(job, scratch, piece, block, columns);
  call.chunks = scratch.chunks;
  call.row_stride = plan.pitch;
  call.second = kTile * plan.pitch;
  call.add = !first;
  if (plan.on_grid) transpose_grid(job, scratch, piece, block);
  for (std::int64_t t = 0; t < taps_of(plan); ++t) {
    const Tap& tap = g.phases[0].taps[static_cast<std::size_t>(t)];
    if (!plan.on_grid) transpose_tap(job, scratch, piece, block, tap);
    const std::int64_t offset = plan.on_grid ? plan.grid.tap_offset(g, tap) : 0;
    for (std::int64_t s = 0; s * kBlock < src_channels; ++s) {
      call.rows = scratch.rows + s * kBlock * plan.pitch + offset;
      call.row_tiles = src_channels - s * kBlock > kTile ? 2 : 1;
      for (std::int64_t d = columns.begin; d < columns.end && d * kBlock < dst_channels; ++d) {
        call.packed = scratch.packed + d * packed_block(plan);
        call.column_tiles = dst_channels - d * kBlock > kTile ? 2 : 1;
        call.sums = sums_at(plan, sums, block, t, s, d);
        bf16::multiply_block(plan.unit, call);
      }
    }
  }
}

void run_share(const WeightsJob& job, const Scratch& scratch, int share) {
  const Bf16WeightsPlan& plan = *job.plan;
  const int part = share / plan.unit_parts;
  const Range pieces = share_of(plan.bands.count, part, plan.pixel_parts);
  const Range units =
      share_of(plan.blocks.count * plan.dst_blocks, share % plan.unit_parts, plan.unit_parts);
  float* sums = scratch.sums + part * plan.part_floats;
  for (std::int64_t index = pieces.begin; index < pieces.end; ++index) {
    const Piece piece = piece_at(plan, index);
    for (std::int64_t unit = units.begin; unit < units.end;) {
      const std::int64_t block = unit / plan.dst_blocks;
      const std::int64_t end = std::min(units.end, (block + 1) * plan.dst_blocks);
      const Range columns{unit - block * plan.dst_blocks, end - block * plan.dst_blocks};
      add_piece(job, scratch, sums, piece, block, columns, index == pieces.begin);
      unit = end;
    }
  }
}

// 16 src by 16 dst channels of all taps, added up over the parts, to where they belong.
void store_filters(const WeightsJob& job, const Scratch& scratch, std::int64_t block,
                   std::int64_t src_channel, std::int64_t dst_channel) {
  const Bf16WeightsPlan& plan = *job.plan;
  const Geometry& g = plan.geometry;
  const std::int64_t taps = taps_of(plan), groups = plan.blocks.groups_of(block);
  for (std::int64_t t = 0; t < taps; ++t) {
    const float* sums =
        sums_at(plan, scratch.sums, block, t, src_channel / kBlock, dst_channel / kBlock) +
        src_channel % kBlock * kBlock + dst_channel % kBlock;
    bf16::transpose_sums(sums, plan.pixel_parts, plan.part_floats, scratch.filters + t * kTile,
                         taps * kTile);
  }
  const std::vector<Tap>& list = g.phases[0].taps;
  const std::int64_t last = std::min(dst_channel + kTile, groups * g.dst_group());
  for (std::int64_t n = dst_channel; n < last; ++n) {
    const BFloat16* from = scratch.filters + (n - dst_channel) * taps * kTile;
    // The src channels of n's group that lie in this tile.
    const std::int64_t group = n / g.dst_group();
    const std::int64_t begin = std::max(src_channel, group * g.src_group());
    const std::int64_t end = std::min(src_channel + kTile, (group + 1) * g.src_group());
    if (begin >= end) continue;
    BFloat16* to = job.diff_weights + ((block * dst_of_block(plan) + n) * g.src_group() + begin -
                                       group * g.src_group()) *
                                          g.kernel_area;
    if (taps == 1) {
      bf16::copy_elements(from + begin - src_channel, end - begin, to);
      continue;
    }
    for (std::int64_t c = begin; c < end; ++c, to += g.kernel_area) {
      for (std::int64_t t = 0; t < taps; ++t) {
        to[list[static_cast<std::size_t>(t)].kernel] = from[t * kTile + c - src_channel];
      }
    }
  }
}

std::int64_t largest_share(std::int64_t count, std::int64_t parts) {
  return (count + parts - 1) / parts;
}

// Cycles for each element of a matrix that is transposed, and for each sum that is added up, as
// against the 1/512 that a product takes.
constexpr double kTransposeCycles = 0.25, kSumCycles = 1.0;

double shares_of(std::int64_t count, int parts) {
  return static_cast<double>(largest_share(count, parts)) / static_cast<double>(count);
}

// The grid of threads that finishes first.
void choose_grid(Bf16WeightsPlan& plan) {
  const Geometry& g = plan.geometry;
  const std::int64_t units = plan.blocks.count * plan.dst_blocks;
  const auto pixels = static_cast<double>(g.images * g.rows * g.cols);
  const auto gradients = static_cast<double>(plan.part_floats);
  const double transposed = pixels * static_cast<double>(g.src_channels) *
                            (plan.on_grid ? 1.0 : static_cast<double>(taps_of(plan)));
  double best = 0.0;
  for (int unit_parts = 1; unit_parts <= plan.threads; ++unit_parts) {
    if (plan.threads % unit_parts != 0 || unit_parts > units) continue;
    const int pixel_parts =
        static_cast<int>(std::min<std::int64_t>(plan.threads / unit_parts, plan.bands.count));
    const double cycles = pixels * gradients / 512.0 * shares_of(units, unit_parts) *
                              shares_of(plan.bands.count, pixel_parts) +
                          kTransposeCycles * transposed * shares_of(plan.bands.count, pixel_parts) +
                          kSumCycles * gradients * pixel_parts / plan.threads;
    if (unit_parts > 1 && cycles >= best) continue;
    best = cycles;
    plan.unit_parts = unit_parts;
    plan.pixel_parts = pixel_parts;
  }
}

// Whether transposing src once and walking over the grid's gaps is less work than transposing what
// each tap sees.
bool grid_is_less(const Bf16WeightsPlan& plan) {
  const Geometry& g = plan.geometry;
  const auto taps = static_cast<double>(taps_of(plan));
  if (taps <= 1.0) return false;
  const double products = static_cast<double>(dst_of_block(plan)) / 512.0;
  const Grid grid = make_grid(g, g.rows);
  const double copied =
      static_cast<double>(grid.image_pixels) / static_cast<double>(g.rows * g.cols);
  return grid_waste(g, grid, kChunk) * taps * products + copied * kTransposeCycles <
         taps * (products + kTransposeCycles);
}

std::int64_t furthest_tap(const Bf16WeightsPlan& plan) {
  std::int64_t furthest = 0;
  for (const Tap& tap : plan.geometry.phases[0].taps) {
    furthest = std::max(furthest, plan.grid.tap_offset(plan.geometry, tap));
  }
  return furthest;
}

void cut_grid(Bf16WeightsPlan& plan) {
  const Geometry& g = plan.geometry;
  const std::int64_t channels = src_of_block(plan) + dst_of_block(plan);
  const auto elements = [&](std::int64_t rows) {
    return make_grid(g, rows).image_pixels * channels;
  };
  std::int64_t rows = g.rows, images = 1;
  while (rows > 4 && elements(rows) > kBandElements) rows = (rows + 1) / 2;
  if (rows == g.rows) {
    images = std::clamp<std::int64_t>(kBandElements / elements(rows), 1, g.images);
    images = std::clamp<std::int64_t>(g.images / plan.threads, 1, images);
  }
  plan.bands.rows = rows;
  plan.bands.images = images;
  plan.bands.per_image = (g.rows + rows - 1) / rows;
  plan.bands.count =
      images > 1 ? (g.images + images - 1) / images : g.images * plan.bands.per_image;
  plan.grid = make_grid(g, rows);
  const std::int64_t covered = rounded_up(rows * plan.grid.columns, kChunk);
  plan.most_chunks = images * covered / kChunk;
  const std::int64_t read = (images - 1) * plan.grid.image_pixels + covered + furthest_tap(plan);
  plan.pitch = rounded_up(std::max(read, images * plan.grid.image_pixels), kChunk);
}

void cut_pixels(Bf16WeightsPlan& plan) {
  const Geometry& g = plan.geometry;
  const std::int64_t pixels = g.images * g.rows * g.cols;
  const std::int64_t fitting = kBandElements / (src_of_block(plan) + dst_of_block(plan));
  const std::int64_t share = largest_share(pixels, plan.threads);
  plan.band_pixels = rounded_up(std::clamp<std::int64_t>(fitting, 128, 8192), kChunk);
  plan.band_pixels = std::min(plan.band_pixels, rounded_up(share, kChunk));
  plan.bands.count = largest_share(pixels, plan.band_pixels);
  plan.most_chunks = plan.band_pixels / kChunk;
  plan.pitch = plan.band_pixels;
}

}  // namespace

Bf16WeightsPlan make_bf16_weights_plan(Geometry geometry, Bf16Unit unit, int threads) {
  Bf16WeightsPlan plan;
  plan.geometry = std::move(geometry);
  plan.unit = unit;
  plan.threads = threads;
  plan.blocks = group_blocks(plan.geometry);
  plan.src_blocks = largest_share(src_of_block(plan), kBlock);
  plan.dst_blocks = largest_share(dst_of_block(plan), kBlock);
  plan.part_floats =
      plan.blocks.count * taps_of(plan) * plan.src_blocks * plan.dst_blocks * kBlockSums;
  plan.on_grid = grid_is_less(plan);
  if (plan.on_grid) {
    cut_grid(plan);
  } else {
    cut_pixels(plan);
  }
  if (plan.pitch % kUnluckyPitch == 0) plan.pitch += kChunk;
  choose_grid(plan);
  Carver carver(nullptr);
  (void)carve(plan, carver);
  plan.workspace_bytes = carver.bytes();
  return plan;
}

void run_bf16_weights(const Bf16WeightsPlan& plan, const Tensor& src, const Tensor& diff_dst,
                      BFloat16* diff_weights, std::byte* workspace) {
  Carver carver(workspace);
  const Scratch all = carve(plan, carver);
  const WeightsJob job{
      &plan,       src.as<const BFloat16>(), diff_dst.as<const BFloat16>(), diff_weights,
      src.strides, diff_dst.strides};
  const int shares = plan.unit_parts * plan.pixel_parts;
  parallel([&](int thread, int threads) {
    if (thread >= plan.threads) return;
    const bf16::UnitScope scope(plan.unit);
    for (int share = thread; share < shares; share += std::min(threads, plan.threads)) {
      run_share(job, scratch_of(plan, all, thread), share);
    }
  });
  const std::int64_t src_tiles = largest_share(src_of_block(plan), kTile);
  const std::int64_t dst_tiles = largest_share(dst_of_block(plan), kTile);
  const std::int64_t items = plan.blocks.count * dst_tiles;
  parallel([&](int thread, int threads) {
    if (thread >= plan.threads) return;
    const Scratch scratch = scratch_of(plan, all, thread);
    const Range range = share_of(items, thread, std::min(threads, plan.threads));
    for (std::int64_t item = range.begin; item < range.end; ++item) {
      const std::int64_t block = item / dst_tiles, n = item % dst_tiles * kTile;
      if (n >= plan.blocks.groups_of(block) * plan.geometry.dst_group()) continue;
      for (std::int64_t c = 0; c < src_tiles; ++c) {
        if (c * kTile >= plan.blocks.groups_of(block) * plan.geometry.src_group()) break;
        store_filters(job, scratch, block, c * kTile, n);
      }
    }
  });
}

}  // namespace ridgeline::native::conv
