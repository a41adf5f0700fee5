#include "backends/cuda/hopper/hopper_plan.h"

#include <fmt/core.h>

#include <algorithm>
#include <limits>
#include <utility>

#include "backends/cuda/conv/conv_plan_common.h"
#include "backends/cuda/hopper/hopper_maps.h"

namespace ridgeline::cuda::hopper {
namespace {

using conv::divide_by;
using conv::divide_up;
using conv::Geometry;

bool is_data(Role role) { return role == Role::data || role == Role::gated; }

// How the taps of a product read its images. Forward and weights gather src for the pixels of dst,
// data gathers diff_dst, from the other side, for the pixels of src.
struct Gathering {
  GatherAxis h, w;
};

GatherAxis gather_axis(bool data, std::int64_t src, std::int64_t dst, std::int64_t kernel,
                       std::int64_t stride, std::int64_t dilation, std::int64_t pad) {
  if (data) {
    return {static_cast<int>(dst), static_cast<int>(src),
            static_cast<int>(pad - dilation * (kernel - 1)), 1};
  }
  return {static_cast<int>(src), static_cast<int>(dst), static_cast<int>(-pad),
          static_cast<int>(stride)};
}

Gathering gathering_of(Role role, const Geometry& g) {
  const Conv2dAttributes& a = g.attributes;
  const bool data = is_data(role);
  return {gather_axis(data, g.src_h, g.dst_h, a.kernel_h, a.stride_h, a.dilation_h, a.pad_top),
          gather_axis(data, g.src_w, g.dst_w, a.kernel_w, a.stride_w, a.dilation_w, a.pad_left)};
}

// The copy engine's own limits.
bool can_gather(const GatherAxis& axis, std::int64_t kernel, std::int64_t dilation) {
  const auto is_corner = [](int value) { return value >= -128 && value <= 127; };
  return is_corner(axis.origin) && is_corner(axis.upper()) && axis.step <= 8 &&
         dilation * (kernel - 1) <= 255;
}

std::int64_t pixels_of(const Geometry& g, bool data) {
  return data ? g.images * g.src_h * g.src_w : g.images * g.dst_h * g.dst_w;
}

int taps_of(const Geometry& g) {
  return static_cast<int>(g.attributes.kernel_h * g.attributes.kernel_w);
}

void set_gathering(Product& p, Role role, const Geometry& g) {
  const auto [h, w] = gathering_of(role, g);
  p.taps = taps_of(g);
  p.kernel_w = static_cast<int>(g.attributes.kernel_w);
  p.dilation_h = static_cast<int>(g.attributes.dilation_h);
  p.dilation_w = static_cast<int>(g.attributes.dilation_w);
  p.origin_h = h.origin, p.origin_w = w.origin;
  p.step_h = h.step, p.step_w = w.step;
  p.by_grid_h = divide_by(h.count);
  p.by_grid_w = divide_by(w.count);
}

// What a tile costs. The figures were fitted to times measured on an H200; only ratios count.
struct TileCost {
  Tile tile;
  double efficiency;  // of the tensor cores' rate
};
constexpr TileCost kTileCosts[] = {{Tile::wide, 0.59},
                                   {Tile::narrow, 0.5},
                                   {Tile::high, 0.45},
                                   {Tile::large, 0.77},
                                   {Tile::tall, 0.63}};

// The cycles of a plan's products: rounds of tiles, each of which is multiplied and stored.
double cycles_of(const Plan& plan, const DeviceLimits& limits) {
  constexpr double kProducts = 2048;   // multiply-adds of a multiprocessor in a cycle
  constexpr double kBytes = 50;        // that come to its shared memory in a cycle
  constexpr double kTileCycles = 690;  // until the first slices are there
  const Product& p = plan.base;
  const TileShape shape = shape_of(plan.tile);
  const bool images = plan.role != Role::weights;
  const double depth = kSlice * (images ? p.taps * p.channel_slices : p.slices_per_split);
  double efficiency = 1.0;
  for (const TileCost& cost : kTileCosts) {
    if (cost.tile == plan.tile) efficiency = cost.efficiency;
  }
  const double elements = shape.rows * shape.columns;
  const double products = elements * depth / (kProducts * efficiency);
  const double loads = 2.0 * (shape.rows + shape.columns) * depth / kBytes;
  const double store = elements * (!images ? 0.1 : plan.role == Role::gated ? 0.3 : 0.07);
  const auto together = static_cast<double>(
      std::min<std::int64_t>(shape.blocks, divide_up(p.tiles, limits.multiprocessors)));
  const auto rounds = static_cast<double>(divide_up(p.tiles, plan.blocks));
  // Sums of parts are written and read again.
  constexpr double kMemoryBytes = 2000;  // of the whole device in a cycle
  const double partial =
      images ? 0.0 : 2.0 * static_cast<double>(plan.workspace_bytes) / kMemoryBytes;
  return partial + rounds * ((std::max(products, loads) + store) * together + kTileCycles);
}

}  // namespace

std::string Plan::text() const {
  const TileShape shape = shape_of(tile);
  return fmt::format("wgmma {}x{} tiles{}", shape.rows, shape.columns,
                     role == Role::weights ? fmt::format(", {} parts", splits) : "");
}

std::string refuse(Role role, const Geometry& g, DType dtype, const DeviceLimits& limits) {
  const Conv2dAttributes& a = g.attributes;
  if (limits.capability != 90) return "needs compute capability 9.0";
  if (dtype != DType::bf16 && dtype != DType::f16) return "needs bf16 or fp16";
  if (a.groups != 1) return "more than one group";
  if (g.src_channels % 8 != 0 || g.dst_channels % 8 != 0) return "channels not in multiples of 8";
  if (is_data(role) && (a.stride_h != 1 || a.stride_w != 1)) return "a stride";
  const auto [h, w] = gathering_of(role, g);
  if (!can_gather(h, a.kernel_h, a.dilation_h) || !can_gather(w, a.kernel_w, a.dilation_w)) {
    return "a window that the copy engine does not gather";
  }
  if (std::max(pixels_of(g, true), pixels_of(g, false)) >= conv::kMaxCount) return "too large";
  if (!has_maps()) return "the driver makes no tensor maps";
  return {};
}

Plan make_plan(Role role, const Geometry& g, DType dtype, Tile tile, std::optional<int> splits,
               const DeviceLimits& limits) {
  Plan plan;
  plan.role = role;
  plan.dtype = dtype;
  plan.geometry = g;
  plan.tile = tile;
  Product& p = plan.base;
  set_gathering(p, role, g);
  const std::int64_t pixels = pixels_of(g, is_data(role));
  const bool images = role != Role::weights;
  p.rows = static_cast<int>(images ? pixels : g.dst_channels);
  p.channels = static_cast<int>(is_data(role) ? g.dst_channels : g.src_channels);
  p.channel_slices = static_cast<int>(divide_up(p.channels, kSlice));
  p.by_channel_slices = divide_by(p.channel_slices);
  // Columns of a gradient of weights come in boxes of one tap.
  const std::int64_t wide_columns = role == Role::forward ? g.dst_channels
                                    : is_data(role)       ? g.src_channels
                                                          : p.taps * p.channel_slices * kSlice;
  p.columns = static_cast<int>(images ? wide_columns : p.taps * p.channels);
  const TileShape shape = shape_of(tile);
  p.row_tiles = static_cast<int>(divide_up(p.rows, shape.rows));
  p.column_tiles = static_cast<int>(divide_up(wide_columns, shape.columns));
  const int tiles = p.row_tiles * p.column_tiles, slots = limits.multiprocessors * shape.blocks;
  if (!images) {
    constexpr int kFewestSlices = 4;
    p.slices = static_cast<int>(divide_up(pixels, kSlice));
    const int wanted =
        std::clamp(splits.value_or(slots / tiles), 1, std::max(1, p.slices / kFewestSlices));
    p.slices_per_split = static_cast<int>(divide_up(p.slices, wanted));
    plan.splits = static_cast<int>(divide_up(p.slices, p.slices_per_split));
    plan.workspace_bytes = sizeof(float) * static_cast<std::size_t>(plan.splits) *
                           static_cast<std::size_t>(p.rows) * static_cast<std::size_t>(p.columns);
  }
  p.tiles = tiles * plan.splits;
  p.by_row_tiles = divide_by(p.row_tiles);
  p.by_column_tiles = divide_by(p.column_tiles);
  plan.blocks = p.tiles <= slots ? p.tiles : std::max(1, slots / p.column_tiles) * p.column_tiles;
  plan.cycles = cycles_of(plan, limits);
  return plan;
}

Plan make_plan(Role role, const Geometry& g, DType dtype, const DeviceLimits& limits) {
  Plan best;
  best.cycles = std::numeric_limits<double>::infinity();
  for (const TileCost& cost : kTileCosts) {
    const Plan whole = make_plan(role, g, dtype, cost.tile, 1, limits);
    // Parts for two rounds at most.
    const int most = role != Role::weights
                         ? 1
                         : std::max(1, 2 * limits.multiprocessors * shape_of(cost.tile).blocks /
                                           whole.base.tiles);
    for (int splits = 1; splits <= most; ++splits) {
      Plan plan = make_plan(role, g, dtype, cost.tile, splits, limits);
      if (plan.cycles < best.cycles) best = std::move(plan);
    }
  }
  return best;
}

int channel_parts(const Plan& plan) { return plan.blocks / plan.base.column_tiles; }

bool fits(const Rows& rows, DType dtype) { return conv::aligned(rows, dtype); }

namespace {

Product images_product(const Plan& plan, const Rows& src, const void* weights, const Rows& dst) {
  const Geometry& g = plan.geometry;
  const TileShape shape = shape_of(plan.tile);
  const auto [h, w] = gathering_of(plan.role, g);
  Product p = plan.base;
  p.a = map_of_images(src, h, w, plan.dtype, shape.rows);
  p.b = map_of_weights(weights, static_cast<int>(g.src_channels), p.taps,
                       static_cast<int>(g.dst_channels), plan.dtype,
                       plan.role == Role::forward ? shape.columns : 64);
  p.dst = map_of_rows(dst, plan.dtype, shape.rows / 2);
  return p;
}

}  // namespace

void run_forward(const Plan& plan, const Rows& src, const void* weights, const Rows& dst,
                 const conv::Epilogue& epilogue, float* moments, Stream stream) {
  Product p = images_product(plan, src, weights, dst);
  p.epilogue = epilogue;
  p.moments = moments;
  launch_forward(plan.dtype, plan.tile, p, plan.blocks, stream);
}

void run_data(const Plan& plan, const Rows& diff_dst, const void* weights, const Rows& diff_src,
              Stream stream) {
  launch_data(plan.dtype, plan.tile, images_product(plan, diff_dst, weights, diff_src), plan.blocks,
              stream);
}

void run_gated(const Plan& plan, const Rows& diff_dst, const void* weights, const Rows& g,
               const GateRows& gate, Stream stream) {
  const int box = shape_of(plan.tile).rows;
  Product p = images_product(plan, diff_dst, weights, g);
  int extras = 0;
  for (const Rows& rows : {gate.src, gate.kept, gate.other}) {
    if (rows.data != nullptr) p.gate.images[extras++] = map_of_rows(rows, plan.dtype, box);
  }
  p.gate.extras = extras;
  p.gate.gated = gate.kept.data != nullptr;
  p.gate.added = gate.other.data != nullptr;
  p.gate.closing = gate.closing;
  p.gate.mean = gate.mean;
  p.gate.sums = gate.sums;
  launch_gated(plan.dtype, plan.tile, p, plan.blocks, stream);
}

void run_weights(const Plan& plan, const Rows& src, const Rows& diff_dst, void* diff_weights,
                 std::byte* workspace, Stream stream) {
  const auto [h, w] = gathering_of(plan.role, plan.geometry);
  Product p = plan.base;
  p.a = map_of_rows(diff_dst, plan.dtype, kSlice);
  p.b = map_of_images(src, h, w, plan.dtype, kSlice);
  p.partial = reinterpret_cast<float*>(workspace);
  launch_weights(plan.dtype, plan.tile, p, plan.blocks, stream);
  const Rows dst = {diff_weights, p.rows, p.columns, p.columns};
  conv::launch_add_partial_sums(
      plan.dtype, {p.partial, plan.splits, dst, divide_by(p.columns), {}, {}}, stream);
}

}  // namespace ridgeline::cuda::hopper
