#include "backends/native/conv_bf16.h"

#include <algorithm>
#include <utility>

#include "backends/native/row_space.h"
#include "base/parallel.h"

namespace ridgeline::native::conv {
namespace {

using bf16::kBlock;
using bf16::kChunk;
using bf16::kTile;
using bf16::kTileElements;
using bf16::rounded_up;

// What the rows of a piece of work may take of a second-level cache that weights pass through.
constexpr std::int64_t kBandElements = 512 * 1024 / 2;

struct Bf16Job {
  const Bf16Plan* plan = nullptr;
  const BFloat16* src = nullptr;
  const BFloat16* weights = nullptr;
  BFloat16* dst = nullptr;
  Strides src_strides{}, dst_strides{};
  std::int64_t src_pixel = 0;  // from one pixel to the next, over all images
  Epilogue epilogue;
  BFloat16* packed = nullptr;
};

// A thread's own memory.
struct Scratch {
  BFloat16* buffer = nullptr;      // a grid or a panel
  std::int64_t* places = nullptr;  // of each row of the tiles in dst
  const BFloat16** tiles = nullptr;
};

struct Carved {
  BFloat16* packed;
  Scratch scratch;
};

Carved carve(const Bf16Plan& plan, Carver& carver) {
  const std::int64_t threads = plan.threads;
  Carved carved{};
  carved.packed = carver.take<BFloat16>(plan.packed_elements);
  carved.scratch.buffer = carver.take<BFloat16>(plan.buffer_elements * threads);
  carved.scratch.places = carver.take<std::int64_t>(plan.most_rows * threads);
  carved.scratch.tiles = carver.take<const BFloat16*>(plan.most_rows / kTile * threads);
  return carved;
}

Scratch scratch_of(const Bf16Plan& plan, Scratch all, int thread) {
  return {all.buffer + plan.buffer_elements * thread, all.places + plan.most_rows * thread,
          all.tiles + plan.most_rows / kTile * thread};
}

std::int64_t src_of_block(const Bf16Plan& plan) {
  return plan.blocks.merged * plan.geometry.src_group();
}
std::int64_t dst_of_block(const Bf16Plan& plan) {
  return plan.blocks.merged * plan.geometry.dst_group();
}

// A tile of weights element by element: where groups are merged, or taps share a chunk.
void pack_slowly(const Bf16Job& job, std::size_t phase, std::int64_t block, std::int64_t chunk,
                 std::int64_t column, BFloat16* tile) {
  const Bf16Plan& plan = *job.plan;
  const Geometry& g = plan.geometry;
  const NhwcWeights& w = plan.weights;
  const std::vector<Tap>& taps = g.phases[phase].taps;
  const std::int64_t groups = plan.blocks.groups_of(block);
  bf16::clear_elements(tile, kTileElements);
  for (std::int64_t k = 0; k < kChunk; ++k) {
    const std::int64_t depth = chunk * kChunk + k;
    const std::int64_t tap = depth / plan.depth_step, c = depth % plan.depth_step;
    const std::int64_t group = c / g.src_group();
    if (tap >= std::ssize(taps) || group >= groups) continue;
    const BFloat16* from = job.weights + (block * plan.blocks.merged + group) * w.group +
                           c % g.src_group() * w.in +
                           taps[static_cast<std::size_t>(tap)].kernel * w.tap;
    const std::int64_t first = std::max(column, group * g.dst_group());
    const std::int64_t last = std::min(column + kTile, (group + 1) * g.dst_group());
    for (std::int64_t n = first; n < last; ++n) {
      tile[k / 2 * kChunk + 2 * (n - column) + k % 2] = from[n % g.dst_group() * w.out];
    }
  }
}

void pack_tile(const Bf16Job& job, std::size_t phase, std::int64_t block, std::int64_t chunk,
               std::int64_t column, BFloat16* tile) {
  const Bf16Plan& plan = *job.plan;
  const Geometry& g = plan.geometry;
  const NhwcWeights& w = plan.weights;
  if (!plan.tapwise || plan.blocks.merged > 1) {
    return pack_slowly(job, phase, block, chunk, column, tile);
  }
  const std::int64_t of_tap = plan.depth_step / kChunk;
  const Tap& tap = g.phases[phase].taps[static_cast<std::size_t>(chunk / of_tap)];
  const std::int64_t channel = chunk % of_tap * kChunk;
  const std::int64_t depth = std::min(kChunk, g.src_group() - channel);
  const std::int64_t columns = std::min(kTile, g.dst_group() - column);
  const BFloat16* from =
      job.weights + block * w.group + tap.kernel * w.tap + channel * w.in + column * w.out;
  const BFloat16* lines[kChunk] = {};
  if (w.in == 1) {
    for (std::int64_t n = 0; n < columns; ++n) lines[n] = from + n * w.out;
    bf16::pack_columns(lines, depth, tile);
  } else {
    for (std::int64_t k = 0; k < depth; ++k) lines[k] = from + k * w.in;
    bf16::pack_rows(lines, 0, columns, tile);
  }
}

// Chunks of packed weights of one block of 32 columns.
std::int64_t column_tiles(const Bf16Plan& plan, std::int64_t block, std::int64_t column_block) {
  const std::int64_t columns = plan.blocks.groups_of(block) * plan.geometry.dst_group();
  return columns - column_block * kBlock > kTile ? 2 : 1;
}

BFloat16* packed_at(const Bf16Job& job, std::size_t phase, std::int64_t block,
                    std::int64_t column_block) {
  const Bf16Plan& plan = *job.plan;
  const std::int64_t chunks = std::ssize(plan.phases[phase].chunks);
  return job.packed + plan.phases[phase].packed +
         (block * plan.column_blocks + column_block) * chunks * 2 * kTileElements;
}

// All weights; a unit is a block of 32 columns of one phase.
void pack_weights(const Bf16Job& job) {
  const Bf16Plan& plan = *job.plan;
  const std::int64_t of_phase = plan.blocks.count * plan.column_blocks;
  parallel_for(std::ssize(plan.phases) * of_phase, 1, [&](std::int64_t begin, std::int64_t end) {
    for (std::int64_t unit = begin; unit < end; ++unit) {
      const auto phase = static_cast<std::size_t>(unit / of_phase);
      const std::int64_t block = unit % of_phase / plan.column_blocks;
      const std::int64_t column_block = unit % plan.column_blocks;
      if (column_block * kBlock >= plan.blocks.groups_of(block) * plan.geometry.dst_group()) {
        continue;
      }
      const std::int64_t tiles = column_tiles(plan, block, column_block);
      BFloat16* to = packed_at(job, phase, block, column_block);
      for (std::int64_t chunk = 0; chunk < std::ssize(plan.phases[phase].chunks); ++chunk) {
        for (std::int64_t t = 0; t < tiles; ++t, to += kTileElements) {
          pack_tile(job, phase, block, chunk, column_block * kBlock + t * kTile, to);
        }
      }
    }
  });
}

// Tiles of rows that have been placed, times the columns of one unit.
struct Rows {
  std::int64_t tiles = 0, stride = 0;
  std::int64_t offset = 0;  // of the block's channels in a row
  std::int64_t alone = -1;  // a tile with another stride
  std::int64_t alone_stride = 0;
};

void run_unit(const Bf16Job& job, const Scratch& scratch, std::size_t phase, std::int64_t block,
              std::int64_t column_block, const Rows& rows) {
  const Bf16Plan& plan = *job.plan;
  const Bf16Phase& own = plan.phases[phase];
  const std::int64_t first = column_block * kBlock;
  const std::int64_t columns =
      std::min(kBlock, plan.blocks.groups_of(block) * plan.geometry.dst_group() - first);
  if (columns <= 0) return;
  const std::int64_t channel = block * dst_of_block(plan) + first;
  Epilogue epilogue = job.epilogue;
  if (epilogue.bias != nullptr) epilogue.bias += channel;
  alignas(64) float sums[bf16::kBlockSums];
  bf16::BlockCall call;
  call.chunks = own.chunks.data();
  call.chunk_count = std::ssize(own.chunks);
  call.packed = packed_at(job, phase, block, column_block);
  call.column_tiles = static_cast<int>(column_tiles(plan, block, column_block));
  call.sums = sums;
  for (std::int64_t t = 0; t < rows.tiles; t += call.row_tiles) {
    const bool alone = t == rows.alone;
    const bool pair = !alone && t + 1 < rows.tiles && t + 1 != rows.alone;
    call.row_tiles = pair ? 2 : 1;
    call.row_stride = alone ? rows.alone_stride : rows.stride;
    call.rows = scratch.tiles[t] + rows.offset;
    call.second = pair ? scratch.tiles[t + 1] - scratch.tiles[t] : 0;
    bf16::multiply_block(plan.unit, call);
    bf16::store_block({sums, call.row_tiles * kTile, columns, job.dst + channel,
                       scratch.places + t * kTile, &epilogue});
  }
}

std::int64_t place_in(const Bf16Job& job, const Phase& phase, std::int64_t image, std::int64_t row,
                      std::int64_t column) {
  const Geometry& g = job.plan->geometry;
  return image * job.dst_strides[0] + (phase.first_y + row * g.dst_step_y) * job.dst_strides[2] +
         (phase.first_x + column * g.dst_step_x) * job.dst_strides[3];
}

// Pixels of a phase in order.
struct PixelWalk {
  const Phase* phase;
  std::int64_t image, row, column;

  PixelWalk(const Phase& of, std::int64_t pixel)
      : phase(&of),
        image(pixel / (of.rows * of.cols)),
        row(pixel / of.cols % of.rows),
        column(pixel % of.cols) {}
  void next() {
    if (++column < phase->cols) return;
    column = 0;
    if (++row < phase->rows) return;
    row = 0;
    ++image;
  }
};

void place_pixels(const Bf16Job& job, const Phase& phase, const Bf16Item& item,
                  const Scratch& scratch) {
  PixelWalk walk(phase, item.begin);
  const std::int64_t count = item.end - item.begin;
  for (std::int64_t r = 0; r < rounded_up(count, kTile); ++r) {
    scratch.places[r] = r < count ? place_in(job, phase, walk.image, walk.row, walk.column) : -1;
    walk.next();
  }
}

// What a tap run sees of one row of src, with zeros where it sees nothing.
void copy_run(const Bf16Job& job, const BFloat16* image, const PanelRun& run, std::int64_t y,
              std::int64_t x, std::int64_t channels, BFloat16* to) {
  const Geometry& g = job.plan->geometry;
  const std::int64_t pixel = job.src_strides[3];
  if (y < 0 || y >= g.src_h) return bf16::clear_elements(to, run.taps * channels);
  const BFloat16* from = image + y * job.src_strides[2] + x * pixel;
  const std::int64_t first = std::clamp<std::int64_t>(-x, 0, run.taps);
  const std::int64_t last = std::clamp<std::int64_t>(g.src_w - x, first, run.taps);
  if (first > 0) bf16::clear_elements(to, first * channels);
  if (last < run.taps) bf16::clear_elements(to + last * channels, (run.taps - last) * channels);
  if (pixel == channels) {
    bf16::copy_elements(from + first * pixel, (last - first) * channels, to + first * channels);
    return;
  }
  for (std::int64_t t = first; t < last; ++t) {
    bf16::copy_elements(from + t * pixel, channels, to + t * channels);
  }
}

void fill_panel(const Bf16Job& job, const Bf16Item& item, std::int64_t block, BFloat16* panel) {
  const Bf16Plan& plan = *job.plan;
  const Geometry& g = plan.geometry;
  const auto index = static_cast<std::size_t>(item.phase);
  const Bf16Phase& own = plan.phases[index];
  const std::int64_t channels = plan.blocks.groups_of(block) * g.src_group();
  const std::int64_t missing = plan.depth_step - channels;  // of each tap
  const std::int64_t depth = std::ssize(own.chunks) * kChunk;
  const std::int64_t used = std::ssize(g.phases[index].taps) * plan.depth_step;
  PixelWalk walk(g.phases[index], item.begin);
  for (std::int64_t pixel = item.begin; pixel < item.end; ++pixel, panel += plan.row_pitch) {
    const BFloat16* image = job.src + walk.image * job.src_strides[0] + block * src_of_block(plan);
    for (const PanelRun& run : own.runs) {
      copy_run(job, image, run, walk.row * g.src_step_y + run.dy,
               walk.column * g.src_step_x + run.dx, channels, panel + run.at);
      if (missing > 0) bf16::clear_elements(panel + run.at + channels, missing);
    }
    if (used < depth) bf16::clear_elements(panel + used, depth - used);
    walk.next();
  }
}

void run_panel(const Bf16Job& job, const Bf16Item& item, const Scratch& scratch) {
  const Bf16Plan& plan = *job.plan;
  const auto phase = static_cast<std::size_t>(item.phase);
  place_pixels(job, plan.geometry.phases[phase], item, scratch);
  Rows rows{(item.end - item.begin + kTile - 1) / kTile, plan.row_pitch};
  for (std::int64_t t = 0; t < rows.tiles; ++t) {
    scratch.tiles[t] = scratch.buffer + t * kTile * plan.row_pitch;
  }
  std::int64_t filled = -1;
  for (std::int64_t unit = item.first_unit; unit < item.last_unit; ++unit) {
    const std::int64_t block = unit / plan.column_blocks;
    if (block != filled) fill_panel(job, item, block, scratch.buffer);
    filled = block;
    run_unit(job, scratch, phase, block, unit % plan.column_blocks, rows);
  }
}

// The last tile may have fewer rows than are read: a copy has them all.
void run_direct(const Bf16Job& job, const Bf16Item& item, const Scratch& scratch) {
  const Bf16Plan& plan = *job.plan;
  const Geometry& g = plan.geometry;
  place_pixels(job, g.phases[0], item, scratch);
  const std::int64_t count = item.end - item.begin, pixel = job.src_pixel;
  const BFloat16* src = job.src + item.begin * pixel;
  Rows rows{(count + kTile - 1) / kTile, pixel};
  for (std::int64_t t = 0; t < rows.tiles; ++t) scratch.tiles[t] = src + t * kTile * pixel;
  if (count % kTile != 0) {
    rows.alone = rows.tiles - 1;
    rows.alone_stride = g.src_channels;
    for (std::int64_t r = rows.alone * kTile; r < count; ++r) {
      bf16::copy_elements(src + r * pixel, g.src_channels,
                          scratch.buffer + r % kTile * g.src_channels);
    }
    scratch.tiles[rows.alone] = scratch.buffer;
  }
  for (std::int64_t unit = item.first_unit; unit < item.last_unit; ++unit) {
    const std::int64_t block = unit / plan.column_blocks;
    rows.offset = block * src_of_block(plan);
    run_unit(job, scratch, 0, block, unit % plan.column_blocks, rows);
  }
}

void fill_grid(const Bf16Job& job, const Band& band, const Grid& grid, BFloat16* buffer) {
  const Bf16Plan& plan = *job.plan;
  const Geometry& g = plan.geometry;
  GridWalk walk(g, grid, job.src + band.image * job.src_strides[0], job.src_strides);
  for (std::int64_t p = 0; p < band.images * grid.image_pixels; ++p, buffer += plan.row_pitch) {
    const BFloat16* from = walk.next();
    if (from == nullptr) {
      bf16::clear_elements(buffer, g.src_channels);
    } else {
      bf16::copy_elements(from, g.src_channels, buffer);
    }
  }
}

// Tiles go over whole rows of the grid: what they compute between two rows of dst is dropped.
std::int64_t place_grid(const Bf16Job& job, const Phase& phase, const Band& band,
                        const Scratch& scratch) {
  const Bf16Plan& plan = *job.plan;
  const std::int64_t columns = plan.grid.columns;
  const std::int64_t phase_rows = std::clamp<std::int64_t>(phase.rows - band.row, 0, band.rows);
  const std::int64_t of_image = rounded_up(phase_rows * columns, kTile);
  std::int64_t tiles = 0;
  for (std::int64_t image = 0; image < band.images; ++image) {
    const BFloat16* base = scratch.buffer + image * plan.grid.image_pixels * plan.row_pitch;
    std::int64_t row = 0, column = 0;
    for (std::int64_t p = 0; p < of_image; ++p) {
      const bool real = row < phase_rows && column < phase.cols;
      if (p % kTile == 0) scratch.tiles[tiles++] = base + p * plan.row_pitch;
      scratch.places[(tiles - 1) * kTile + p % kTile] =
          real ? place_in(job, phase, band.image + image, band.row + row, column) : -1;
      if (++column == columns) {
        column = 0;
        ++row;
      }
    }
  }
  return tiles;
}

void run_grid(const Bf16Job& job, const Bf16Item& item, const Scratch& scratch) {
  const Bf16Plan& plan = *job.plan;
  const Geometry& g = plan.geometry;
  const Band band = band_at(g, plan.bands, item.begin);
  Grid grid = plan.grid;
  grid.row = band.row * g.src_step_y + g.dy_min;
  fill_grid(job, band, grid, scratch.buffer);
  for (std::size_t phase = 0; phase < g.phases.size(); ++phase) {
    Rows rows{place_grid(job, g.phases[phase], band, scratch), plan.row_pitch};
    for (std::int64_t unit = item.first_unit; unit < item.last_unit; ++unit) {
      const std::int64_t block = unit / plan.column_blocks;
      rows.offset = block * src_of_block(plan);
      run_unit(job, scratch, phase, block, unit % plan.column_blocks, rows);
    }
  }
}

std::int64_t most_taps(const Geometry& geometry) {
  std::size_t most = 0;
  for (const Phase& phase : geometry.phases) most = std::max(most, phase.taps.size());
  return static_cast<std::int64_t>(most);
}

bool reads_each_pixel_once(const Geometry& g) {
  return g.phases.size() == 1 && g.phases[0].taps.size() == 1 && !g.padded && g.src_step_y == 1 &&
         g.src_step_x == 1 && g.src_h == g.dst_h && g.src_w == g.dst_w;
}

RowSource choose_source(const Bf16Plan& plan) {
  const Geometry& g = plan.geometry;
  const bool whole_chunks =
      src_of_block(plan) % kChunk == 0 && plan.blocks.groups % plan.blocks.merged == 0;
  if (!whole_chunks) return RowSource::panel;
  if (reads_each_pixel_once(g)) return RowSource::direct;
  constexpr double kMostWaste = 1.5;
  const bool shared = most_taps(g) > g.src_step_y * g.src_step_x;
  const double waste = grid_waste(g, make_grid(g, g.rows), kTile);
  return shared && waste <= kMostWaste ? RowSource::grid : RowSource::panel;
}

void list_chunks(Bf16Plan& plan) {
  const Geometry& g = plan.geometry;
  for (const Phase& phase : g.phases) {
    Bf16Phase own;
    own.packed = plan.packed_elements;
    const std::int64_t depth = rounded_up(std::ssize(phase.taps) * plan.depth_step, kChunk);
    for (std::int64_t at = 0; at < depth; at += kChunk) {
      std::int64_t begin = at;
      if (plan.source == RowSource::grid) {
        const Tap& tap = phase.taps[static_cast<std::size_t>(at / plan.depth_step)];
        begin = plan.grid.tap_offset(g, tap) * plan.row_pitch + at % plan.depth_step;
      }
      own.chunks.push_back(begin);
    }
    for (const Tap& tap : phase.taps) {
      PanelRun* last = own.runs.empty() ? nullptr : &own.runs.back();
      if (!plan.tapwise && plan.blocks.count == 1 && last != nullptr && last->dy == tap.dy &&
          last->dx + last->taps == tap.dx) {
        ++last->taps;
      } else {
        const auto number = &tap - phase.taps.data();
        own.runs.push_back({tap.dy, tap.dx, 1, number * plan.depth_step});
      }
    }
    plan.packed_elements +=
        plan.blocks.count * plan.column_blocks * std::ssize(own.chunks) * 2 * kTileElements;
    plan.phases.push_back(std::move(own));
  }
}

// Bands whose copies stay in the cache, and enough of them for all threads.
void cut_grid(Bf16Plan& plan) {
  const Geometry& g = plan.geometry;
  const auto elements = [&](std::int64_t rows) {
    return make_grid(g, rows).image_pixels * plan.row_pitch;
  };
  std::int64_t rows = g.rows, images = 1;
  while (rows > 1 && elements(rows) > kBandElements) rows = (rows + 1) / 2;
  if (rows == g.rows) {
    images = std::clamp<std::int64_t>(kBandElements / elements(rows), 1, g.images);
  }
  const std::int64_t wanted = 2 * plan.threads;
  if (images > 1) images = std::clamp<std::int64_t>(g.images / wanted, 1, images);
  while (rows > 4 && g.images * ((g.rows + rows - 1) / rows) < wanted) rows = (rows + 1) / 2;
  plan.bands.rows = rows;
  plan.bands.images = images;
  plan.bands.per_image = (g.rows + rows - 1) / rows;
  plan.bands.count =
      images > 1 ? (g.images + images - 1) / images : g.images * plan.bands.per_image;
  plan.grid = make_grid(g, rows);
  // What the last tile reads beyond its rows.
  plan.buffer_elements = (images * plan.grid.image_pixels + kTile) * plan.row_pitch;
  for (const Phase& phase : g.phases) {
    const std::int64_t of_image = rounded_up(std::min(rows, phase.rows) * plan.grid.columns, kTile);
    plan.most_rows = std::max(plan.most_rows, images * of_image);
  }
}

std::int64_t pixels_at_once(const Bf16Plan& plan, std::int64_t pixels) {
  std::int64_t many = kBandElements / std::max(kChunk, plan.row_pitch) / kBlock * kBlock;
  many = std::min(many, rounded_up(pixels / (2 * plan.threads), kBlock));
  return std::clamp<std::int64_t>(many, kBlock, 4096);
}

void add_items(Bf16Plan& plan, const Bf16Item& item, std::int64_t siblings) {
  const std::int64_t units = plan.blocks.count * plan.column_blocks;
  const std::int64_t wanted = 2 * plan.threads;
  const std::int64_t parts =
      siblings >= wanted ? 1 : std::min(units, (wanted + siblings - 1) / siblings);
  for (std::int64_t part = 0; part < parts; ++part) {
    const Range range = share_of(units, static_cast<int>(part), static_cast<int>(parts));
    plan.items.push_back({item.phase, item.begin, item.end, range.begin, range.end});
  }
}

void cut_pixels(Bf16Plan& plan) {
  const Geometry& g = plan.geometry;
  for (std::size_t p = 0; p < g.phases.size(); ++p) {
    const std::int64_t pixels = g.images * g.phases[p].rows * g.phases[p].cols;
    const std::int64_t step = pixels_at_once(plan, pixels);
    for (std::int64_t begin = 0; begin < pixels; begin += step) {
      add_items(plan, {static_cast<std::int64_t>(p), begin, std::min(begin + step, pixels)},
                (pixels + step - 1) / step);
    }
    plan.most_rows = std::max(plan.most_rows, rounded_up(std::min(step, pixels), kTile));
  }
  plan.buffer_elements =
      plan.source == RowSource::direct ? kTile * g.src_channels : plan.most_rows * plan.row_pitch;
}

}  // namespace

NhwcWeights forward_weights(const Geometry& g) {
  return {.group = g.dst_group() * g.kernel_area * g.src_group(),
          .out = g.kernel_area * g.src_group(),
          .in = 1,
          .tap = g.src_group()};
}

NhwcWeights backward_data_weights(const Geometry& g) {
  return {.group = g.src_group() * g.kernel_area * g.dst_group(),
          .out = 1,
          .in = g.kernel_area * g.dst_group(),
          .tap = g.dst_group()};
}

GroupBlocks group_blocks(const Geometry& g) {
  GroupBlocks blocks{g.groups};
  const std::int64_t widest = std::max(g.src_group(), g.dst_group());
  blocks.merged = std::clamp<std::int64_t>(kBlock / widest, 1, g.groups);
  blocks.count = (g.groups + blocks.merged - 1) / blocks.merged;
  return blocks;
}

std::int64_t Grid::tap_offset(const Geometry& g, const Tap& tap) const {
  const std::int64_t y = tap.dy - g.dy_min, x = tap.dx - g.dx_min;
  const std::int64_t remainder = y % g.src_step_y * g.src_step_x + x % g.src_step_x;
  return (remainder * rows + y / g.src_step_y) * columns + x / g.src_step_x;
}

Grid make_grid(const Geometry& g, std::int64_t dst_rows) {
  const auto steps = [](std::int64_t count, std::int64_t step, std::int64_t span) {
    return count - 1 + span / step + 1;
  };
  Grid grid;
  grid.rows = steps(dst_rows, g.src_step_y, g.dy_max - g.dy_min);
  grid.columns = steps(g.cols, g.src_step_x, g.dx_max - g.dx_min);
  grid.image_pixels = g.src_step_y * g.src_step_x * grid.rows * grid.columns;
  return grid;
}

double grid_waste(const Geometry& g, const Grid& grid, std::int64_t multiple) {
  std::int64_t covered = 0, real = 0;
  for (const Phase& phase : g.phases) {
    covered += rounded_up(phase.rows * grid.columns, multiple);
    real += phase.rows * phase.cols;
  }
  return static_cast<double>(covered) / static_cast<double>(real);
}

GridWalk::GridWalk(const Geometry& geometry, const Grid& grid, const BFloat16* src,
                   const Strides& strides)
    : geometry_(&geometry), grid_(grid), image_(src), strides_(strides) {
  begin_row();
}

const BFloat16* GridWalk::next() {
  if (column_ == grid_.columns) {
    column_ = 0;
    if (++row_ == grid_.rows) {
      row_ = 0;
      if (++remainder_ == geometry_->src_step_y * geometry_->src_step_x) {
        remainder_ = 0;
        image_ += strides_[0];
      }
    }
    begin_row();
  }
  ++column_;
  const std::int64_t x = x_;
  x_ += geometry_->src_step_x;
  return line_ != nullptr && x >= 0 && x < geometry_->src_w ? line_ + x * strides_[3] : nullptr;
}

void GridWalk::begin_row() {
  const Geometry& g = *geometry_;
  const std::int64_t y = grid_.row + row_ * g.src_step_y + remainder_ / g.src_step_x;
  line_ = y >= 0 && y < g.src_h ? image_ + y * strides_[2] : nullptr;
  x_ = g.dx_min + remainder_ % g.src_step_x;
}

Bf16Plan make_bf16_plan(Geometry geometry, const NhwcWeights& weights, Bf16Unit unit, int threads) {
  Bf16Plan plan;
  plan.geometry = without_unseen_taps(std::move(geometry));
  plan.weights = weights;
  plan.unit = unit;
  plan.threads = threads;
  const Geometry& g = plan.geometry;
  plan.blocks = group_blocks(g);
  plan.column_blocks = (dst_of_block(plan) + kBlock - 1) / kBlock;
  plan.source = choose_source(plan);
  const std::int64_t channels = src_of_block(plan);
  plan.tapwise = channels % kChunk == 0 || most_taps(g) <= 1;
  plan.depth_step = plan.tapwise ? rounded_up(channels, kChunk) : channels;
  plan.row_pitch = plan.source == RowSource::panel
                       ? rounded_up(most_taps(g) * plan.depth_step, kChunk)
                       : g.src_channels;
  if (plan.source != RowSource::direct && plan.row_pitch % kUnluckyPitch == 0) {
    plan.row_pitch += kChunk;
  }
  if (plan.source == RowSource::grid) {
    cut_grid(plan);
    for (std::int64_t band = 0; band < plan.bands.count; ++band) {
      add_items(plan, {0, band, band + 1}, plan.bands.count);
    }
  } else {
    cut_pixels(plan);
  }
  list_chunks(plan);
  if (plan.source == RowSource::grid) {
    std::int64_t furthest = 0;
    for (const Phase& phase : g.phases) {
      for (const Tap& tap : phase.taps) {
        furthest = std::max(furthest, plan.grid.tap_offset(g, tap));
      }
    }
    plan.buffer_elements += furthest * plan.row_pitch;
  }
  Carver carver(nullptr);
  (void)carve(plan, carver);
  plan.workspace_bytes = carver.bytes();
  return plan;
}

void run_bf16(const Bf16Plan& plan, const Tensor& src, const BFloat16* weights, const Tensor& dst,
              const Epilogue& epilogue, std::byte* workspace) {
  Carver carver(workspace);
  const Carved carved = carve(plan, carver);
  const Bf16Job job{
      &plan,       src.as<const BFloat16>(), weights,  dst.as<BFloat16>(), src.strides,
      dst.strides, rows_of(src).stride,      epilogue, carved.packed};
  pack_weights(job);
  parallel([&](int thread, int threads) {
    if (thread >= plan.threads) return;
    const bf16::UnitScope scope(plan.unit);
    const Scratch scratch = scratch_of(plan, carved.scratch, thread);
    const std::int64_t workers = std::min(threads, plan.threads);
    for (std::int64_t i = thread; i < std::ssize(plan.items); i += workers) {
      const Bf16Item& item = plan.items[static_cast<std::size_t>(i)];
      switch (plan.source) {
        case RowSource::direct:
          run_direct(job, item, scratch);
          break;
        case RowSource::grid:
          run_grid(job, item, scratch);
          break;
        case RowSource::panel:
          run_panel(job, item, scratch);
          break;
      }
    }
  });
}

}  // namespace ridgeline::native::conv
