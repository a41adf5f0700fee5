#include <fmt/core.h>

#include <algorithm>
#include <limits>

#include "backends/cuda/conv/conv_cost.h"
#include "backends/cuda/conv/conv_plan_common.h"

namespace ridgeline::cuda::conv {
namespace {

// Enough blocks to fill the device a few times over, and partial sums that it can hold.
WeightsPlan::Choice best_choice(const WeightsPlan& plan, std::initializer_list<WeightsTile> tiles,
                                std::int64_t most_splits, const DeviceLimits& limits) {
  constexpr std::int64_t kMostPartial = std::int64_t{1} << 26;  // elements of all partial sums
  const Weights& p = plan.base;
  const std::int64_t slice = slice_of(plan.arithmetic);
  const std::int64_t slices = divide_up(p.pixels, slice);
  const std::int64_t sums = std::int64_t{p.groups} * p.outputs * p.width;
  WeightsPlan::Choice best;
  for (const WeightsTile tile : tiles) {
    // Shared memory of a block is small before 8.0.
    if (tile == WeightsTile::wide && limits.capability < 80) continue;
    const TileShape shape = shape_of(tile);
    const std::int64_t width_tiles = divide_up(p.width, shape.columns);
    const std::int64_t group_tiles = width_tiles * divide_up(p.outputs, shape.rows);
    const std::int64_t tile_count = group_tiles * p.groups;
    const std::int64_t enough =
        divide_up(std::int64_t{4} * shape.blocks * limits.multiprocessors, tile_count);
    for (std::int64_t wanted = 1; wanted <= std::min({enough, slices, most_splits}); ++wanted) {
      const std::int64_t share = divide_up(slices, wanted), splits = divide_up(slices, share);
      if (splits > 1 && splits * sums > kMostPartial) break;
      const double cycles = cycles_of({.arithmetic = plan.arithmetic,
                                       .tile = shape,
                                       .blocks = tile_count * splits,
                                       .slices = static_cast<double>(share),
                                       .partial = splits > 1 || plan.joined > 1 ? splits * sums : 0,
                                       .multiprocessors = limits.multiprocessors});
      if (cycles >= best.cycles) continue;
      best = {tile,
              static_cast<int>(splits),
              static_cast<int>(share * slice),
              {static_cast<unsigned>(tile_count), static_cast<unsigned>(splits), 1},
              divide_by(width_tiles),
              divide_by(group_tiles),
              cycles};
    }
  }
  return best;
}

void plan_workspace(WeightsPlan& plan) {
  const Weights& p = plan.base;
  const Geometry& g = plan.geometry;
  const std::int64_t bytes = element_bytes(plan.arithmetic);
  if (plan.widened) {
    plan.src_at = take(plan.workspace_bytes, g.images * g.src_h * g.src_w * g.src_channels * bytes);
    plan.diff_at = take(plan.workspace_bytes, std::int64_t{p.pixels} * g.dst_channels * bytes);
  }
  const int splits = std::max({plan.packs.splits, plan.src_elements.splits, plan.elements.splits});
  if (plan.widened || splits > 1 || plan.joined > 1) {
    plan.partial_at = take(plan.workspace_bytes, g.dst_channels * p.width * splits * 4);
  }
}

void run_direct(const WeightsPlan& plan, const Rows& src, const Rows& diff_dst, void* diff_weights,
                Stream stream) {
  Direct p = direct_of(plan.geometry);
  p.src = src.data, p.src_stride = src.stride;
  p.diff_dst = diff_dst.data, p.diff_dst_stride = diff_dst.stride;
  p.dst = diff_weights;
  launch_direct_backward_weights(plan.dtype, p, stream);
}

bool is_better(const WeightsPlan& plan, const WeightsPlan& than) {
  if (plan.direct || than.direct) return !plan.direct;
  return plan.cycles < than.cycles;
}

// Plans to compute so many groups as one.
WeightsPlan join_groups(WeightsPlan plan, int joined, const DeviceLimits& limits) {
  const Geometry g = with_joined_groups(plan.geometry, joined);
  const Conv2dAttributes& a = g.attributes;
  plan.joined = joined;
  plan.direct = groups_are_narrow(g, plan.arithmetic) ||
                g.images * g.dst_h * g.dst_w >= kMaxCount ||
                g.dst_channels * g.src_channels * a.kernel_h * a.kernel_w >= kMaxCount ||
                std::max({g.src_h, g.src_w, a.pad_top, a.pad_left}) >= kMaxCount / 4;
  if (plan.direct) return plan;

  Weights& p = plan.base;
  p.src_h = static_cast<int>(g.src_h), p.src_w = static_cast<int>(g.src_w);
  p.dst_h = static_cast<int>(g.dst_h), p.dst_w = static_cast<int>(g.dst_w);
  p.pixels = static_cast<int>(g.images * g.dst_h * g.dst_w);
  p.groups = static_cast<int>(a.groups);
  p.outputs = static_cast<int>(g.group_dst()), p.channels = static_cast<int>(g.group_src());
  p.width = static_cast<int>(a.kernel_h * a.kernel_w) * p.channels;
  p.kernel_w = static_cast<int>(a.kernel_w);
  p.stride_h = static_cast<int>(a.stride_h), p.stride_w = static_cast<int>(a.stride_w);
  p.dilation_h = static_cast<int>(a.dilation_h), p.dilation_w = static_cast<int>(a.dilation_w);
  p.pad_top = static_cast<int>(a.pad_top), p.pad_left = static_cast<int>(a.pad_left);
  p.by_channels = divide_by(p.channels);
  p.by_kernel_w = divide_by(p.kernel_w);
  p.by_dst_h = divide_by(p.dst_h);
  p.by_dst_w = divide_by(p.dst_w);
  p.asynchronous = copies_asynchronously(limits);

  const int pack = pack_of(plan.arithmetic);
  plan.diff_in_packs = p.outputs % pack == 0;
  plan.src_in_packs = p.channels % pack == 0;
  constexpr std::int64_t kAny = std::numeric_limits<std::int64_t>::max();
  plan.packs = best_choice(
      plan, {WeightsTile::wide, WeightsTile::flat, WeightsTile::tall, WeightsTile::small}, kAny,
      limits);
  // Where packs are the rule, the exceptions take no more memory than they do.
  const bool packs = plan.diff_in_packs && plan.src_in_packs;
  const std::int64_t most_splits = packs ? plan.packs.splits : kAny;
  plan.src_elements = best_choice(plan, {WeightsTile::src_elements}, most_splits, limits);
  plan.elements = best_choice(plan, {WeightsTile::elements}, most_splits, limits);
  plan.cycles = plan.usual().cycles;
  plan_workspace(plan);
  return plan;
}

// Where the sums of joined groups stand: only those within a group are wanted.
Unspread unspread_of(const WeightsPlan& plan) {
  const Geometry& g = plan.geometry;
  return {plan.joined,
          static_cast<int>(g.group_src()),
          static_cast<int>(g.group_dst()),
          divide_by(g.group_src()),
          divide_by(g.group_dst()),
          divide_by(plan.joined)};
}

}  // namespace

WeightsPlan plan_backward_weights(const Geometry& geometry, DType dtype, bool allow_tf32,
                                  const DeviceLimits& limits) {
  WeightsPlan plan;
  plan.geometry = geometry;
  plan.dtype = dtype;
  plan.arithmetic = arithmetic_for(dtype, allow_tf32, limits);
  plan.widened = dtype != DType::f32 && plan.arithmetic == Arithmetic::f32;
  WeightsPlan best;
  for (const int joined : possible_joins(geometry, plan.arithmetic)) {
    WeightsPlan next = join_groups(plan, joined, limits);
    if (joined == 1 || is_better(next, best)) best = std::move(next);
  }
  return best;
}

const WeightsPlan::Choice& WeightsPlan::usual() const {
  return !diff_in_packs ? elements : !src_in_packs ? src_elements : packs;
}

std::string WeightsPlan::text() const {
  if (direct) return "direct";
  const Choice& choice = usual();
  const TileShape shape = shape_of(choice.tile);
  return fmt::format("{}x{} tiles{}{}, {} parts", shape.rows, shape.columns,
                     diff_in_packs && src_in_packs ? "" : " by elements",
                     joined > 1 ? fmt::format(", {} groups as one", joined) : "", choice.splits);
}

void run_weights(const WeightsPlan& plan, const Rows& src, const Rows& diff_dst, void* diff_weights,
                 std::byte* workspace, Stream stream) {
  if (plan.direct) return run_direct(plan, src, diff_dst, diff_weights, stream);
  const DType dtype = plan.widened ? DType::f32 : plan.dtype;
  Rows from = src, diff = diff_dst;
  if (plan.widened) {
    from.data = workspace + plan.src_at, from.stride = src.width;
    diff.data = workspace + plan.diff_at, diff.stride = diff_dst.width;
    launch_copy_rows(plan.dtype, src, dtype, from, stream);
    launch_copy_rows(plan.dtype, diff_dst, dtype, diff, stream);
  }
  const bool diff_packs = plan.diff_in_packs && aligned(diff, dtype);
  const bool src_packs = plan.src_in_packs && aligned(from, dtype);
  const WeightsPlan::Choice& choice = !diff_packs  ? plan.elements
                                      : !src_packs ? plan.src_elements
                                                   : plan.packs;
  Weights p = plan.base;
  p.src = from.data, p.src_stride = from.stride;
  p.diff_dst = diff.data, p.dst_stride = diff.stride;
  p.diff_weights = diff_weights;
  p.whole_packs = aligned(diff_weights, p.width, plan.dtype);
  p.splits = choice.splits;
  p.pixels_per_split = choice.pixels_per_split;
  p.by_width_tiles = choice.by_width_tiles;
  p.by_group_tiles = choice.by_group_tiles;
  const bool partial = plan.widened || choice.splits > 1 || plan.joined > 1;
  if (partial) p.partial = reinterpret_cast<float*>(workspace + plan.partial_at);
  launch_backward_weights(plan.arithmetic, choice.tile, p, choice.grid, stream);
  if (partial) {
    const std::int64_t width = p.width / plan.joined;
    const Rows dst = {diff_weights, plan.geometry.dst_channels, width, width};
    launch_add_partial_sums(
        plan.dtype, {p.partial, choice.splits, dst, divide_by(width), {}, unspread_of(plan)},
        stream);
  }
}

}  // namespace ridgeline::cuda::conv
