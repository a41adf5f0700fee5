#include "backends/cuda/conv/conv_plan.h"

#include <fmt/core.h>

#include <algorithm>
#include <limits>
#include <numeric>

#include "backends/cuda/conv/conv_cost.h"
#include "backends/cuda/conv/conv_plan_common.h"

namespace ridgeline::cuda::conv {
namespace {

// What one axis of the kernel does.
struct Window {
  std::int64_t kernel, stride, dilation, pad, src, dst;
};

Window window_h(const Geometry& g) {
  const Conv2dAttributes& a = g.attributes;
  return {a.kernel_h, a.stride_h, a.dilation_h, a.pad_top, g.src_h, g.dst_h};
}

Window window_w(const Geometry& g) {
  const Conv2dAttributes& a = g.attributes;
  return {a.kernel_w, a.stride_w, a.dilation_w, a.pad_left, g.src_w, g.dst_w};
}

Axis make_axis(std::int64_t count, std::int64_t first, std::int64_t origin, std::int64_t taps,
               std::int64_t first_tap) {
  return {static_cast<int>(count),
          static_cast<int>(first),
          static_cast<int>(origin),
          static_cast<int>(taps),
          static_cast<int>(first_tap),
          divide_by(std::max<std::int64_t>(count, 1)),
          divide_by(std::max<std::int64_t>(taps, 1))};
}

Axis forward_axis(const Window& w) { return make_axis(w.dst, 0, -w.pad, w.kernel, 0); }

// The src positions number, number + stride, ...: dst position p reads src position x with tap k
// when p * stride = x + pad - k * dilation, so every step-th tap from the first one that divides.
Axis backward_axis(const Window& w, std::int64_t number) {
  const std::int64_t count = number < w.src ? divide_up(w.src - number, w.stride) : 0;
  const std::int64_t step = w.stride / std::gcd(w.stride, w.dilation);
  for (std::int64_t tap = 0; tap < std::min(step, w.kernel); ++tap) {
    const std::int64_t start = number + w.pad - tap * w.dilation;
    if (start % w.stride != 0) continue;
    return make_axis(count, number, start / w.stride, divide_up(w.kernel - tap, step), tap);
  }
  return make_axis(count, number, 0, 0, 0);
}

void set_forward(Gather& p, const Geometry& g) {
  const Conv2dAttributes& a = g.attributes;
  p.src_h = static_cast<int>(g.src_h), p.src_w = static_cast<int>(g.src_w);
  p.dst_h = static_cast<int>(g.dst_h), p.dst_w = static_cast<int>(g.dst_w);
  p.depth = static_cast<int>(g.group_src()), p.width = static_cast<int>(g.group_dst());
  p.src_step_h = static_cast<int>(a.stride_h), p.src_step_w = static_cast<int>(a.stride_w);
  p.tap_step_h = static_cast<int>(a.dilation_h), p.tap_step_w = static_cast<int>(a.dilation_w);
  p.rows[0] = forward_axis(window_h(g));
  p.columns[0] = forward_axis(window_w(g));
}

// src of the gather is diff_dst, its dst diff_src.
void set_backward(Gather& p, const Geometry& g) {
  const Conv2dAttributes& a = g.attributes;
  const std::int64_t common_h = std::gcd(a.stride_h, a.dilation_h);
  const std::int64_t common_w = std::gcd(a.stride_w, a.dilation_w);
  p.src_h = static_cast<int>(g.dst_h), p.src_w = static_cast<int>(g.dst_w);
  p.dst_h = static_cast<int>(g.src_h), p.dst_w = static_cast<int>(g.src_w);
  p.depth = static_cast<int>(g.group_dst()), p.width = static_cast<int>(g.group_src());
  p.dst_step_h = static_cast<int>(a.stride_h), p.dst_step_w = static_cast<int>(a.stride_w);
  p.kernel_step_h = static_cast<int>(a.stride_h / common_h);
  p.kernel_step_w = static_cast<int>(a.stride_w / common_w);
  p.tap_step_h = -static_cast<int>(a.dilation_h / common_h);
  p.tap_step_w = -static_cast<int>(a.dilation_w / common_w);
  p.row_classes = static_cast<int>(a.stride_h), p.column_classes = static_cast<int>(a.stride_w);
  for (int i = 0; i < p.row_classes; ++i) p.rows[i] = backward_axis(window_h(g), i);
  for (int i = 0; i < p.column_classes; ++i) p.columns[i] = backward_axis(window_w(g), i);
}

template <typename Body>
void for_each_class(const Gather& p, Body&& body) {
  for (int i = 0; i < p.row_classes; ++i) {
    for (int j = 0; j < p.column_classes; ++j) body(p.rows[i], p.columns[j]);
  }
}

std::int64_t pixels_of(const Gather& p, const Axis& rows, const Axis& columns) {
  return std::int64_t{p.images} * rows.count * columns.count;
}

// Elements of dst.
std::int64_t sums_of(const Gather& p) {
  return std::int64_t{p.images} * p.dst_h * p.dst_w * p.groups * p.width;
}

// Every block must be able to count in 32 bits from its first image on.
bool offsets_fit(const Gather& p, std::int64_t src_stride) {
  bool fit = true;
  for_each_class(p, [&](const Axis& rows, const Axis& columns) {
    const std::int64_t area = std::max<std::int64_t>(1, std::int64_t{rows.count} * columns.count);
    const std::int64_t images = std::min<std::int64_t>(p.images, 256 / area + 2);
    fit = fit && images * p.src_h * p.src_w * src_stride < kMaxCount;
  });
  return fit && 256 * src_stride < kMaxCount;
}

int most_taps(const Gather& p) {
  int taps = 0;
  for_each_class(p, [&](const Axis& rows, const Axis& columns) {
    taps = std::max(taps, rows.taps * columns.taps);
  });
  return taps;
}

bool is_direct(const Geometry& g, bool forward, Arithmetic arithmetic) {
  const Conv2dAttributes& a = g.attributes;
  return groups_are_narrow(g, arithmetic) ||
         (!forward && std::max(a.stride_h, a.stride_w) > kMaxClasses) ||
         g.images * g.src_h * g.src_w >= kMaxCount || g.images * g.dst_h * g.dst_w >= kMaxCount ||
         g.dst_channels * g.src_channels * a.kernel_h * a.kernel_w >= kMaxCount ||
         std::max(a.pad_top, a.pad_left) >= kMaxCount;
}

// Few products of pixels, as in squeeze-and-excitation: where channels come one by one, or a long
// depth meets pixels that do not fill a tile, the slices of one block take longer than all products
// spread over the device.
bool is_small(const Geometry& g, const Gather& p, bool in_packs) {
  constexpr std::int64_t kMostProducts = std::int64_t{1} << 22, kTile = 128, kLong = 64;
  const Conv2dAttributes& a = g.attributes;
  const std::int64_t pixels = g.images * g.dst_h * g.dst_w;
  return a.kernel_h * a.kernel_w == 1 && (!in_packs || (pixels <= kTile && p.depth >= kLong)) &&
         pixels * p.groups * p.width * p.depth <= kMostProducts;
}

// The grid of a tile with so many splits, and what it costs.
GatherPlan::Choice candidate(const GatherPlan& plan, GatherTile tile, int splits,
                             const DeviceLimits& limits) {
  const Gather& p = plan.base;
  const TileShape shape = shape_of(tile);
  const std::int64_t group_tiles = divide_up(p.width, shape.columns);
  const std::int64_t width_tiles = group_tiles * p.groups;
  std::int64_t most_rows = 0, blocks = 0, slices = 0;
  for_each_class(p, [&](const Axis& rows, const Axis& columns) {
    const std::int64_t row_tiles = divide_up(pixels_of(p, rows, columns), shape.rows);
    const std::int64_t depth = std::int64_t{rows.taps} * columns.taps * p.depth;
    most_rows = std::max(most_rows, row_tiles);
    blocks += row_tiles * width_tiles * splits;
    slices += row_tiles * width_tiles * divide_up(depth, slice_of(plan.arithmetic));
  });
  Work work{.arithmetic = plan.arithmetic,
            .tile = shape,
            .blocks = blocks,
            .slices = static_cast<double>(slices) /
                      static_cast<double>(std::max<std::int64_t>(blocks, 1)),
            .fresh_rows = p.taps_inner ? 1.0 / std::max(1, p.columns[0].taps) : 1.0,
            .multiprocessors = limits.multiprocessors};
  if (splits > 1) work.partial = sums_of(p) * splits;
  return {tile,
          splits,
          {static_cast<unsigned>(most_rows * width_tiles),
           static_cast<unsigned>(p.row_classes * p.column_classes), static_cast<unsigned>(splits)},
          divide_by(width_tiles),
          divide_by(group_tiles),
          cycles_of(work)};
}

bool has_tile(Arithmetic arithmetic, GatherTile tile, const DeviceLimits& limits) {
  // Shared memory of a block is small before 8.0.
  const bool large = tile == GatherTile::wide || tile == GatherTile::high;
  if (large && limits.capability < 80) return false;
  // The addresses of 256 rows take registers that f32 operands need.
  if (tile == GatherTile::high) return element_bytes(arithmetic) == 2;
  return tile != GatherTile::narrow || arithmetic != Arithmetic::f32;
}

// Splits leave each block a few slices of the depth.
GatherPlan::Choice best_choice(const GatherPlan& plan, std::initializer_list<GatherTile> tiles,
                               int most_splits, const DeviceLimits& limits) {
  constexpr int kFewestSlices = 4;
  const Gather& p = plan.base;
  const std::int64_t slices = std::int64_t{most_taps(p)} * p.depth / slice_of(plan.arithmetic);
  const std::int64_t sums = sums_of(p);
  GatherPlan::Choice best;
  for (const GatherTile tile : tiles) {
    if (!has_tile(plan.arithmetic, tile, limits)) continue;
    for (int splits = 1; splits <= most_splits; ++splits) {
      if (splits > 1 && (splits * kFewestSlices > slices || sums >= kMaxCount)) break;
      const GatherPlan::Choice next = candidate(plan, tile, splits, limits);
      if (next.cycles < best.cycles) best = next;
    }
  }
  return best;
}

// Rows of weights as the kernels see them: those of forward, when src is loaded by elements, are
// padded to multiples of 16 bytes.
std::int64_t padded_pitch(const GatherPlan& plan) {
  const std::int64_t pack = pack_of(plan.arithmetic);
  return divide_up(plan.base.weights_pitch, pack) * pack;
}

void plan_workspace(GatherPlan& plan) {
  const Gather& p = plan.base;
  const std::int64_t bytes = element_bytes(plan.arithmetic);
  if (plan.widened) {
    const std::int64_t pixels = std::int64_t{p.images} * p.src_h * p.src_w;
    plan.src_at = take(plan.workspace_bytes, pixels * p.groups * p.depth * bytes);
  }
  if (plan.widened || plan.forward || plan.joined > 1) {
    plan.weights_at =
        take(plan.workspace_bytes, plan.geometry.dst_channels * padded_pitch(plan) * bytes);
  }
  const int splits = std::max(plan.packs.splits, plan.elements.splits);
  if (plan.widened || splits > 1) {
    plan.partial_at = take(plan.workspace_bytes, sums_of(p) * splits * 4);
  }
}

bool is_better(const GatherPlan& plan, const GatherPlan& than) {
  if (plan.direct || than.direct) return !plan.direct;
  return plan.cycles < than.cycles;
}

// Plans to compute so many groups as one.
GatherPlan join_groups(GatherPlan plan, int joined, const DeviceLimits& limits) {
  const Geometry geometry = with_joined_groups(plan.geometry, joined);
  const bool forward = plan.forward;
  plan.joined = joined;
  plan.direct = is_direct(geometry, forward, plan.arithmetic);
  if (plan.direct) return plan;

  const Conv2dAttributes& a = geometry.attributes;
  Gather& p = plan.base;
  p.images = static_cast<int>(geometry.images);
  p.kernel_w = static_cast<int>(a.kernel_w);
  p.groups = static_cast<int>(a.groups);
  p.weights_pitch = a.kernel_h * a.kernel_w * geometry.group_src();
  p.asynchronous = copies_asynchronously(limits);
  if (forward) {
    set_forward(p, geometry);
  } else {
    set_backward(p, geometry);
  }
  p.by_depth = divide_by(p.depth);
  p.taps_inner = p.depth % slice_of(plan.arithmetic) == 0;
  if (p.taps_inner) p.by_depth_slices = divide_by(p.depth / slice_of(plan.arithmetic));
  p.dst_in_order = p.row_classes * p.column_classes == 1;
  p.src_in_order = p.dst_in_order && a.kernel_h * a.kernel_w == 1 && p.src_h == p.dst_h &&
                   p.src_w == p.dst_w && a.pad_top == 0 && a.pad_left == 0;
  if (!offsets_fit(p, std::int64_t{p.groups} * p.depth)) {
    plan.direct = true;
    return plan;
  }
  const std::int64_t pack = pack_of(plan.arithmetic);
  plan.in_packs =
      p.depth % pack == 0 && (forward || p.width % pack == 0) && most_taps(p) <= kMaxTaps;
  if (is_small(geometry, p, plan.in_packs)) {
    plan.direct = plan.small = true;
    return plan;
  }
  constexpr int kMostSplits = 32;
  if (plan.in_packs) {
    plan.packs = best_choice(plan,
                             {GatherTile::wide, GatherTile::high, GatherTile::tall,
                              GatherTile::narrow, GatherTile::small},
                             kMostSplits, limits);
  }
  // Where packs are the rule, the exception takes no more memory than they do.
  plan.elements = best_choice(plan, {GatherTile::elements},
                              plan.in_packs ? plan.packs.splits : kMostSplits, limits);
  plan.cycles = plan.in_packs ? plan.packs.cycles : plan.elements.cycles;
  plan_workspace(plan);
  return plan;
}

GatherPlan make_plan(const Geometry& geometry, bool forward, DType dtype, bool allow_tf32,
                     const DeviceLimits& limits) {
  GatherPlan plan;
  plan.geometry = geometry;
  plan.dtype = dtype;
  plan.forward = forward;
  plan.arithmetic = arithmetic_for(dtype, allow_tf32, limits);
  plan.widened = dtype != DType::f32 && plan.arithmetic == Arithmetic::f32;
  GatherPlan best;
  for (const int joined : possible_joins(geometry, plan.arithmetic)) {
    GatherPlan next = join_groups(plan, joined, limits);
    if (joined == 1 || is_better(next, best)) best = std::move(next);
  }
  return best;
}

// The weights as the kernel wants them: of its type, joined groups spread, and rows of `pitch`.
const void* prepared_weights(const GatherPlan& plan, const void* weights, std::int64_t pitch,
                             std::byte* workspace, Stream stream) {
  const Geometry& g = plan.geometry;
  launch_spread_weights({.src_type = plan.dtype,
                         .src = weights,
                         .dst_type = plan.widened ? DType::f32 : plan.dtype,
                         .dst = workspace + plan.weights_at,
                         .outputs = g.dst_channels,
                         .taps = g.attributes.kernel_h * g.attributes.kernel_w,
                         .channels = g.group_src(),
                         .group_outputs = g.group_dst(),
                         .joined = plan.joined,
                         .pitch = pitch},
                        stream);
  return workspace + plan.weights_at;
}

void run_direct(const GatherPlan& plan, const Rows& src, const void* weights, const Rows& dst,
                const Epilogue& epilogue, Stream stream) {
  Direct p = direct_of(plan.geometry);
  p.src = src.data, p.src_stride = src.stride;
  p.weights = weights;
  p.dst = dst.data, p.dst_stride = dst.stride;
  p.epilogue = epilogue;
  if (plan.forward) {
    launch_direct_forward(plan.dtype, p, stream);
  } else {
    launch_direct_backward_data(plan.dtype, p, stream);
  }
}

}  // namespace

GatherPlan plan_forward(const Geometry& geometry, DType dtype, bool allow_tf32,
                        const DeviceLimits& limits) {
  return make_plan(geometry, true, dtype, allow_tf32, limits);
}

GatherPlan plan_backward_data(const Geometry& geometry, DType dtype, bool allow_tf32,
                              const DeviceLimits& limits) {
  return make_plan(geometry, false, dtype, allow_tf32, limits);
}

std::string GatherPlan::text() const {
  if (direct) return "direct";
  const Choice& choice = in_packs ? packs : elements;
  const TileShape shape = shape_of(choice.tile);
  return fmt::format("{}x{} tiles{}{}{}", shape.rows, shape.columns, in_packs ? "" : " by elements",
                     joined > 1 ? fmt::format(", {} groups as one", joined) : "",
                     choice.splits > 1 ? fmt::format(", {} parts", choice.splits) : "");
}

void run_gather(const GatherPlan& plan, const Rows& src, const void* weights, const Rows& dst,
                const Epilogue& epilogue, std::byte* workspace, Stream stream) {
  if (plan.direct || !offsets_fit(plan.base, src.stride)) {
    return run_direct(plan, src, weights, dst, epilogue, stream);
  }
  Gather p = plan.base;
  const DType dtype = plan.widened ? DType::f32 : plan.dtype;
  Rows from = src;
  if (plan.widened) {
    from.data = workspace + plan.src_at;
    from.stride = src.width;
    launch_copy_rows(plan.dtype, src, dtype, from, stream);
  }
  const bool copied = plan.widened || plan.joined > 1;
  const bool packs = plan.in_packs && aligned(from, dtype) &&
                     (copied || reinterpret_cast<std::uintptr_t>(weights) % 16 == 0);
  const GatherPlan::Choice& choice = packs ? plan.packs : plan.elements;
  p.weights = weights;
  const bool padded = plan.forward && !packs;
  if (padded) p.weights_pitch = padded_pitch(plan);
  if (copied || padded) {
    p.weights = prepared_weights(plan, weights, p.weights_pitch, workspace, stream);
  }
  p.src = from.data, p.src_stride = from.stride;
  p.dst = dst.data, p.dst_stride = dst.stride;
  // Where a group's channels begin as well.
  p.whole_packs = aligned(dst, plan.dtype) &&
                  (p.groups == 1 || p.width * static_cast<int>(size_of(plan.dtype)) % 16 == 0);
  p.splits = choice.splits;
  p.by_width_tiles = choice.by_width_tiles;
  p.by_group_tiles = choice.by_group_tiles;
  p.epilogue = epilogue;
  const bool partial = plan.widened || choice.splits > 1;
  if (partial) p.partial = reinterpret_cast<float*>(workspace + plan.partial_at);
  const auto launch = plan.forward ? launch_forward : launch_backward_data;
  launch(plan.arithmetic, choice.tile, p, choice.grid, stream);
  if (partial) {
    launch_add_partial_sums(
        plan.dtype, {p.partial, choice.splits, dst, divide_by(dst.width), epilogue, {}}, stream);
  }
}

}  // namespace ridgeline::cuda::conv
