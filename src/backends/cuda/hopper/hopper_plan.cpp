#include "backends/cuda/hopper/hopper_plan.h"

#include <fmt/core.h>

#include <algorithm>

#include "backends/cuda/conv/conv_plan_common.h"
#include "backends/cuda/hopper/hopper_maps.h"

namespace ridgeline::cuda::hopper {
namespace {

using conv::divide_by;
using conv::divide_up;
using conv::Geometry;

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
  const bool data = role == Role::data;
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

// Few columns want narrow tiles, few tiles small ones.
Tile usual_tile(Role role, std::int64_t rows, std::int64_t columns, const DeviceLimits& limits) {
  const auto tiles = [&](Tile tile) {
    const TileShape shape = shape_of(tile);
    return divide_up(rows, shape.rows) * divide_up(columns, shape.columns);
  };
  if (columns <= 64) return tiles(Tile::high) >= limits.multiprocessors ? Tile::high : Tile::narrow;
  (void)role;
  return Tile::wide;
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
  if (role == Role::data && (a.stride_h != 1 || a.stride_w != 1)) return "a stride";
  const auto [h, w] = gathering_of(role, g);
  if (!can_gather(h, a.kernel_h, a.dilation_h) || !can_gather(w, a.kernel_w, a.dilation_w)) {
    return "a window that the copy engine does not gather";
  }
  if (std::max(pixels_of(g, true), pixels_of(g, false)) >= conv::kMaxCount) return "too large";
  if (!has_maps()) return "the driver makes no tensor maps";
  return {};
}

Plan make_plan(Role role, const Geometry& g, DType dtype, const DeviceLimits& limits,
               std::optional<Tile> tile, std::optional<int> splits) {
  Plan plan;
  plan.role = role;
  plan.dtype = dtype;
  plan.geometry = g;
  Product& p = plan.base;
  set_gathering(p, role, g);
  const std::int64_t pixels = pixels_of(g, role == Role::data);
  const bool images = role != Role::weights;
  p.rows = static_cast<int>(images ? pixels : g.dst_channels);
  p.channels = static_cast<int>(role == Role::data ? g.dst_channels : g.src_channels);
  p.channel_slices = static_cast<int>(divide_up(p.channels, kSlice));
  p.by_channel_slices = divide_by(p.channel_slices);
  // Columns of a gradient of weights come in boxes of one tap.
  const std::int64_t wide_columns = role == Role::forward ? g.dst_channels
                                    : role == Role::data  ? g.src_channels
                                                          : p.taps * p.channel_slices * kSlice;
  p.columns = static_cast<int>(images ? wide_columns : p.taps * p.channels);
  plan.tile = tile.value_or(usual_tile(role, p.rows, wide_columns, limits));
  const TileShape shape = shape_of(plan.tile);
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
  return plan;
}

int moment_parts(const Plan& plan) { return plan.blocks / plan.base.column_tiles; }

bool fits(const Rows& rows, DType dtype) { return conv::aligned(rows, dtype); }

void run_images(const Plan& plan, const Rows& src, const void* weights, const Rows& dst,
                const conv::Epilogue& epilogue, float* moments, Stream stream) {
  const Geometry& g = plan.geometry;
  const TileShape shape = shape_of(plan.tile);
  const auto [h, w] = gathering_of(plan.role, g);
  const bool forward = plan.role == Role::forward;
  Product p = plan.base;
  p.a = map_of_images(src, h, w, plan.dtype, shape.rows);
  p.b = map_of_weights(weights, static_cast<int>(g.src_channels), p.taps,
                       static_cast<int>(g.dst_channels), plan.dtype, forward ? shape.columns : 64);
  p.dst = map_of_rows(dst, plan.dtype, shape.rows / 2);
  p.epilogue = epilogue;
  p.moments = moments;
  (forward ? launch_forward : launch_data)(plan.dtype, plan.tile, p, plan.blocks, stream);
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
