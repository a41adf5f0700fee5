#include "backends/opencl/conv/conv_plan.h"

#include <fmt/core.h>

#include <algorithm>
#include <numeric>

namespace ridgeline::opencl::conv {
namespace {

constexpr std::int64_t kLane = 16;       // channels of a vector
constexpr std::int64_t kTileDepth = 16;  // of a tile in local memory
// Pixels of the largest images of which one place in all images comes before the next.
constexpr std::int64_t kLargestInner = 32 * 32;

std::int64_t divide_up(std::int64_t value, std::int64_t by) { return (value + by - 1) / by; }

std::int32_t narrow(std::int64_t value) { return static_cast<std::int32_t>(value); }

// Takes floats at the end of a workspace; gives the place.
std::size_t take(std::size_t& workspace, std::int64_t floats) {
  constexpr std::size_t kAlignment = 64;
  const std::size_t place = workspace;
  const std::size_t bytes = static_cast<std::size_t>(floats) * sizeof(float);
  workspace += (bytes + kAlignment - 1) / kAlignment * kAlignment;
  return place;
}

Axis forward_axis(std::int64_t src, std::int64_t dst, std::int64_t kernel, std::int64_t stride,
                  std::int64_t pad, std::int64_t dilation) {
  Axis axis;
  axis.count = axis.dst = narrow(dst);
  axis.src = narrow(src);
  axis.origin = narrow(-pad);
  axis.src_step = narrow(stride);
  axis.taps = narrow(kernel);
  axis.tap_step = narrow(dilation);
  return axis;
}

// The classes of diff_src's rows, or columns: those with the same remainder by the stride. Tap t
// of diff_src's row y comes from diff_dst's row (y + pad - t * dilation) / stride, where that is
// whole.
std::vector<Axis> backward_axes(std::int64_t src, std::int64_t dst, std::int64_t kernel,
                                std::int64_t stride, std::int64_t pad, std::int64_t dilation) {
  std::vector<Axis> axes;
  for (std::int64_t first = 0; first < std::min(stride, src); ++first) {
    Axis axis;
    axis.count = narrow(divide_up(src - first, stride));
    axis.first = narrow(first);
    axis.dst_step = narrow(stride);
    axis.src = narrow(dst);
    axis.dst = narrow(src);
    const std::int64_t period = stride / std::gcd(stride, dilation);
    std::int64_t tap = 0;
    while (tap < std::min(period, kernel) && (first + pad - tap * dilation) % stride != 0) ++tap;
    const bool none = tap >= std::min(period, kernel);
    axis.taps = none ? 0 : narrow(divide_up(kernel - tap, period));
    axis.first_tap = narrow(tap);
    axis.kernel_step = narrow(period);
    axis.tap_step = narrow(-(period * dilation / stride));
    if (!none) axis.origin = narrow((first + pad - tap * dilation) / stride);
    axes.push_back(axis);
  }
  return axes;
}

Axis forward_rows(const Geometry& g) {
  const Conv2dAttributes& a = g.attributes;
  return forward_axis(g.src_h, g.dst_h, a.kernel_h, a.stride_h, a.pad_top, a.dilation_h);
}

Axis forward_columns(const Geometry& g) {
  const Conv2dAttributes& a = g.attributes;
  return forward_axis(g.src_w, g.dst_w, a.kernel_w, a.stride_w, a.pad_left, a.dilation_w);
}

// Narrow groups leave most of a vector empty. So neighbouring ones are computed together, as one
// group whose weights are zero where a channel of dst does not see one of src: more products, but
// of full vectors.
std::int64_t groups_to_join(const Geometry& g) {
  const std::int64_t groups = g.attributes.groups;
  const std::int64_t channels = std::min(g.group_src(), g.group_dst());
  for (std::int64_t joined = 1; joined < groups; ++joined) {
    if (groups % joined == 0 && joined * channels >= kLane) return joined;
  }
  return groups;
}

// Whether taps of all channels are laid out side by side first: few channels fill no vector, and
// there is too little to do for a tap.
bool needs_patches(const Geometry& g, std::int64_t joined) {
  return joined == g.attributes.groups && g.src_channels < kLane;
}

bool reads_padding(const Axis& axis) {
  const std::int64_t last = axis.origin + std::int64_t{axis.count - 1} * axis.src_step;
  const std::int64_t reach = std::int64_t{axis.taps - 1} * axis.tap_step;
  const std::int64_t low = std::min<std::int64_t>(axis.origin, axis.origin + reach);
  return axis.taps > 0 && (low < 0 || std::max(last, last + reach) >= axis.src);
}

// Whether neighbours among the pixels are of different images: then all of a block skip the taps
// that fall on padding. Large images would lose more in their caches.
bool images_inner(const Axis& rows, const Axis& columns, std::int64_t images) {
  constexpr std::int64_t kFewest = 4;
  return images >= kFewest && std::int64_t{rows.count} * columns.count <= kLargestInner &&
         (reads_padding(rows) || reads_padding(columns));
}

Patches make_patches(const Geometry& g, std::size_t& workspace) {
  Patches patches;
  patches.used = true;
  patches.gather = forward_gather(g);
  patches.gather.images_inner = 0;
  patches.gather.depth = narrow(g.src_channels);
  patches.pitch = narrow(divide_up(g.src_channels * g.taps(), kLane) * kLane);
  patches.at = take(workspace, g.images * g.dst_h * g.dst_w * patches.pitch);
  return patches;
}

// An image whose pixels are rows of a matrix.
Axis row_axis(std::int64_t rows) {
  Axis axis;
  axis.count = axis.src = axis.dst = narrow(rows);
  return axis;
}

std::int64_t weights_of(const Geometry& g) { return g.dst_channels * g.group_src() * g.taps(); }

// Everything that depends on the op's order of weights and on the tile.
void finish(GatherPlan& plan, const Geometry& g) {
  Pack& pack = plan.pack;
  const std::int64_t depth = std::int64_t{pack.joined} * pack.depth;
  const std::int64_t width = std::int64_t{pack.joined} * pack.width;
  pack.panel_width = plan.tile.width();
  pack.panels = narrow(divide_up(width, pack.panel_width));
  bool padded = false;
  for (const Gather& gather : plan.classes) {
    padded = padded || reads_padding(gather.rows) || reads_padding(gather.columns);
  }
  plan.packed = g.half || padded || pack.taps > 1 || pack.joined > 1 || pack.width_stride != 1 ||
                width % pack.panel_width != 0 || weights_of(g) == 0;
  const std::int64_t panel = depth * pack.taps * pack.panel_width;
  if (plan.packed) {
    pack.zeros = narrow(depth);
    plan.weights_at = take(plan.workspace_bytes, panel * pack.panels * pack.groups);
    plan.zeros_at = take(plan.workspace_bytes, depth);
  }
  for (Gather& gather : plan.classes) {
    gather.groups = pack.groups;
    gather.depth = narrow(depth);
    gather.width = narrow(width);
    gather.weights_pitch = plan.packed ? pack.panel_width : pack.depth_stride;
    gather.weights_tap = plan.packed ? narrow(depth * pack.panel_width) : 0;
    gather.weights_panel = plan.packed ? narrow(panel) : pack.panel_width;
    gather.weights_group = plan.packed ? narrow(panel * pack.panels) : pack.group_stride;
  }
}

}  // namespace

Gather forward_gather(const Geometry& g) {
  Gather gather;
  gather.images = narrow(g.images);
  gather.rows = forward_rows(g);
  gather.columns = forward_columns(g);
  gather.kernel_w = narrow(g.attributes.kernel_w);
  gather.images_inner = images_inner(gather.rows, gather.columns, g.images) ? 1 : 0;
  return gather;
}

std::vector<Gather> backward_gathers(const Geometry& g) {
  const Conv2dAttributes& a = g.attributes;
  std::vector<Gather> classes;
  for (const Axis& rows :
       backward_axes(g.src_h, g.dst_h, a.kernel_h, a.stride_h, a.pad_top, a.dilation_h)) {
    for (const Axis& columns :
         backward_axes(g.src_w, g.dst_w, a.kernel_w, a.stride_w, a.pad_left, a.dilation_w)) {
      Gather gather;
      gather.images = narrow(g.images);
      gather.rows = rows;
      gather.columns = columns;
      gather.kernel_w = narrow(a.kernel_w);
      gather.images_inner = images_inner(rows, columns, g.images) ? 1 : 0;
      classes.push_back(gather);
    }
  }
  return classes;
}

Weights weights_lines(const Geometry& g) {
  Weights weights;
  weights.images = narrow(g.images);
  weights.rows = forward_rows(g);
  weights.columns = forward_columns(g);
  const std::int64_t places = std::int64_t{weights.rows.count} * weights.columns.count;
  weights.images_inner = g.images >= g.dst_w && places <= kLargestInner ? 1 : 0;
  weights.lines = narrow(weights.images_inner != 0 ? places : weights.rows.count * g.images);
  return weights;
}

Geometry geometry_of(const Conv2dAttributes& attributes, const Shape& src, const Shape& dst) {
  return {attributes, src[0], src.height(), src.width(), src[1], dst.height(), dst.width(), dst[1]};
}

std::string refuse_size(const Geometry& g) {
  constexpr std::int64_t kMost = std::int64_t{1} << 30;
  const std::int64_t joined = groups_to_join(g);
  const std::int64_t patches =
      needs_patches(g, joined) ? g.images * g.dst_h * g.dst_w * (g.src_channels * g.taps() + kLane)
                               : 0;
  const std::int64_t largest =
      std::max({g.images * g.src_h * g.src_w * g.src_channels,
                g.images * g.dst_h * g.dst_w * g.dst_channels, weights_of(g) * joined, patches});
  return largest < kMost ? std::string()
                         : fmt::format("a tensor of {} numbers, {} or more: try a smaller batch",
                                       largest, kMost);
}

std::int64_t Tile::local_bytes() const {
  if (!local) return 0;
  return kTileDepth * (rows + 1 + width()) * static_cast<std::int64_t>(sizeof(float));
}

std::string Tile::options(bool half) const {
  return fmt::format("-DBLOCK_ROWS={} -DVECTORS={} -DLANES={} {}", rows, vectors, lanes,
                     half ? "-DHALF" : "");
}

std::string Tile::text() const {
  return fmt::format("{}x{} in {}", rows, width(), local ? "local memory" : "registers");
}

GatherPlan plan_forward(const Geometry& g, const Tile& tile) {
  GatherPlan plan;
  plan.tile = tile;
  const std::int64_t joined = groups_to_join(g);
  Pack& pack = plan.pack;
  pack.joined = narrow(joined);
  pack.groups = narrow(g.attributes.groups / joined);
  pack.depth = narrow(g.group_src());
  pack.width = narrow(g.group_dst());
  pack.taps = narrow(g.taps());
  pack.depth_stride = pack.taps;
  pack.width_stride = narrow(g.group_src() * g.taps());
  pack.group_stride = narrow(g.group_dst() * g.group_src() * g.taps());
  plan.flop_factor = static_cast<double>(joined);
  Gather gather;
  if (g.taps() > 1 && needs_patches(g, joined)) {
    plan.patches = make_patches(g, plan.workspace_bytes);
    pack.depth = narrow(g.group_src() * g.taps());
    pack.taps = pack.depth_stride = 1;
    gather.images = 1;
    gather.rows = row_axis(1);
    gather.columns = row_axis(g.images * g.dst_h * g.dst_w);
  } else {
    gather = forward_gather(g);
  }
  plan.classes = {gather};
  finish(plan, g);
  return plan;
}

GatherPlan plan_backward_data(const Geometry& g, const Tile& tile) {
  GatherPlan plan;
  plan.tile = tile;
  const std::int64_t joined = groups_to_join(g);
  Pack& pack = plan.pack;
  pack.joined = narrow(joined);
  pack.groups = narrow(g.attributes.groups / joined);
  pack.depth = narrow(g.group_dst());
  pack.width = narrow(g.group_src());
  pack.taps = narrow(g.taps());
  pack.depth_stride = narrow(g.group_src() * g.taps());
  pack.width_stride = pack.taps;
  pack.group_stride = narrow(g.group_dst() * g.group_src() * g.taps());
  plan.flop_factor = static_cast<double>(joined);
  plan.classes = backward_gathers(g);
  finish(plan, g);
  return plan;
}

WeightsPlan plan_backward_weights(const Geometry& g, const Tile& tile, std::int64_t units) {
  WeightsPlan plan;
  plan.tile = tile;
  const std::int64_t joined = groups_to_join(g);
  plan.weights = weights_lines(g);
  Weights& weights = plan.weights;
  Sum& sum = plan.sum;
  sum.joined = narrow(joined);
  sum.groups = weights.groups = narrow(g.attributes.groups / joined);
  sum.taps = narrow(g.taps());
  sum.src_channels = narrow(g.group_src());
  sum.dst_channels = narrow(g.group_dst());
  weights.src_channels = narrow(joined * g.group_src());
  weights.dst_channels = narrow(joined * g.group_dst());
  plan.flop_factor = static_cast<double>(joined);
  if (needs_patches(g, joined)) {
    plan.patches = make_patches(g, plan.workspace_bytes);
    sum.taps = 1;
    sum.src_channels = narrow(g.group_src() * g.taps());
    weights.src_channels = plan.patches.pitch;
    weights.images = narrow(g.images * g.dst_h);
    weights.images_inner = 0;
    weights.rows = row_axis(1);
    weights.columns = row_axis(g.dst_w);
    weights.lines = weights.images;
  }
  sum.out_pitch = weights.src_channels;
  // A block in registers must not be larger than a group.
  if (!plan.tile.local) {
    if (weights.src_channels < plan.tile.width()) plan.tile.vectors = 1;
    if (weights.dst_channels < plan.tile.rows) plan.tile.rows = 1;
  }

  // Parts of what a second-level cache holds, and enough of them for all units.
  constexpr std::int64_t kPartFloats = 128 * 1024, kMostFloats = 16 * 1024 * 1024;
  const std::int64_t gradient =
      std::int64_t{weights.src_channels} * weights.dst_channels * sum.taps * weights.groups;
  const std::int64_t read =
      g.images * (g.src_h * g.src_w * g.src_channels + g.dst_h * g.dst_w * g.dst_channels);
  const std::int64_t blocks = gradient / (std::int64_t{plan.tile.rows} * plan.tile.width()) + 1;
  const std::int64_t wanted = std::max(read / kPartFloats, divide_up(4 * units, blocks));
  const std::int64_t most = std::max<std::int64_t>(1, kMostFloats / gradient);
  weights.parts = narrow(std::clamp<std::int64_t>(std::min(wanted, most), 1, weights.lines));
  sum.parts = weights.parts;
  plan.partial_at = take(plan.workspace_bytes, gradient * weights.parts);
  return plan;
}

}  // namespace ridgeline::opencl::conv
