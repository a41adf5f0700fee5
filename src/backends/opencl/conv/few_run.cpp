// Convolutions of few pixels and many channels, as in the last layers of networks: packing their
// weights would take longer than the products. They are read where they lie.

#include "backends/opencl/conv/conv_launch.h"

namespace ridgeline::opencl::conv {
namespace {

constexpr const char* kFile = "kernels/conv_few.cl";
constexpr Tile kForwardTile = {.rows = 12, .vectors = 2};
constexpr Tile kDataTile = {.rows = 8, .vectors = 2};
constexpr Tile kWeightsTile = {.rows = 6, .vectors = 4};
// Floats between rows of patches: rows that begin at the same place of a cache drive each other
// out.
constexpr std::int32_t kApart = 16;

std::int64_t divide_up(std::int64_t value, std::int64_t by) { return (value + by - 1) / by; }

std::int32_t narrow(std::int64_t value) { return static_cast<std::int32_t>(value); }

std::int32_t pixels_in(const Geometry& g) { return narrow(g.images * g.dst_h * g.dst_w); }

std::int32_t seen_by(const Geometry& g) { return narrow(g.src_channels * g.taps()); }

Axis line_of(std::int32_t count) {
  Axis axis;
  axis.count = axis.src = axis.dst = count;
  return axis;
}

Gather forward_of(const Geometry& g) {
  Gather gather = forward_gather(g);
  gather.images_inner = 0;
  gather.depth = narrow(g.src_channels);
  gather.width = narrow(g.dst_channels);
  return gather;
}

// dst = src * matrix; the matrix has no gaps, src and dst have rows of their own.
Gather product(std::int32_t rows, std::int32_t depth, std::int32_t width, const Tile& tile) {
  Gather gather;
  gather.images = 1;
  gather.columns = line_of(rows);
  gather.depth = depth;
  gather.width = gather.weights_pitch = gather.dst_stride = width;
  gather.weights_panel = tile.width();
  return gather;
}

void run_product(const Gather& gather, const Tile& tile, const void* src, const void* matrix,
                 const void* dst, Queue& queue) {
  const std::int64_t blocks = divide_up(gather.columns.count, tile.rows);
  Launch(queue, gather_code(tile, false))
      .buffer(src)
      .buffer(matrix)
      .buffer(dst)
      .buffer(nullptr)
      .buffer(nullptr)
      .value(gather)
      .run({blocks, gather.width / tile.width()}, line_group(queue, blocks));
}

}  // namespace

bool has_few_pixels(const Geometry& g) {
  constexpr std::int64_t kMostPixels = 256, kFewestWeights = 1 << 15, kWhole = 64,
                         kFewestChannels = 16;
  const std::int64_t pixels = pixels_in(g);
  return g.attributes.groups == 1 && !g.half && g.taps() > 1 && pixels <= kMostPixels &&
         g.dst_channels >= kFewestChannels && 2 * pixels <= g.dst_channels &&
         seen_by(g) % kWhole == 0 && g.dst_channels * seen_by(g) >= kFewestWeights;
}

FewPlan plan_few(const Geometry& g) {
  FewPlan plan;
  plan.forward = forward_of(g);
  plan.pixels = pixels_in(g);
  plan.seen = seen_by(g);
  plan.pitch = narrow(divide_up(plan.pixels, kForwardTile.width()) * kForwardTile.width());
  return plan;
}

std::size_t few_forward_bytes(const FewPlan& plan) {
  const std::int64_t rows = std::int64_t{plan.seen} + plan.forward.width;
  return static_cast<std::size_t>(rows * plan.pitch) * sizeof(float);
}

std::size_t few_data_bytes(const FewPlan& plan) {
  return static_cast<std::size_t>(std::int64_t{plan.pixels} * plan.seen) * sizeof(float);
}

std::size_t few_weights_bytes(const FewPlan& plan) {
  return static_cast<std::size_t>(std::int64_t{plan.pixels} * (plan.seen + kApart)) * sizeof(float);
}

// Turned: the weights' rows are what is multiplied, and the pixels the channels of the result.
void run_few_forward(const FewPlan& plan, const Rows& src, const void* weights, const Rows& dst,
                     const Epilogue& epilogue, std::byte* workspace, Queue& queue) {
  Gather forward = plan.forward;
  forward.src_stride = narrow(src.stride);
  forward.dst_stride = narrow(dst.stride);
  set_epilogue(forward, epilogue);
  const std::byte* sums = workspace + std::int64_t{plan.seen} * plan.pitch * 4;
  Launch(queue, {kFile, "few_turned"})
      .buffer(src.data)
      .buffer(workspace)
      .value(plan.pitch)
      .value(forward)
      .run({plan.seen, plan.pitch}, {1, 16});
  Gather gather = product(forward.width, plan.seen, plan.pitch, kForwardTile);
  gather.src_stride = plan.seen;
  run_product(gather, kForwardTile, weights, workspace, sums, queue);
  Launch(queue, {kFile, "few_finish"})
      .buffer(sums)
      .buffer(dst.data)
      .buffer(epilogue.bias)
      .value(plan.pitch)
      .value(forward)
      .run({forward.width, plan.pixels}, {16, 1});
}

void run_few_data(const FewPlan& plan, const Rows& diff_dst, const void* weights,
                  const Rows& diff_src, std::byte* workspace, Queue& queue) {
  Gather gather = product(plan.pixels, plan.forward.width, plan.seen, kDataTile);
  gather.src_stride = narrow(diff_dst.stride);
  run_product(gather, kDataTile, diff_dst.data, weights, workspace, queue);
  Launch(queue, {kFile, "few_gathered"})
      .buffer(workspace)
      .buffer(diff_src.data)
      .value(narrow(diff_src.stride))
      .value(plan.forward)
      .run({plan.forward.depth, diff_src.rows}, {16, 1});
}

void run_few_weights(const FewPlan& plan, const Rows& src, const Rows& diff_dst,
                     const void* diff_weights, std::byte* workspace, Queue& queue) {
  Gather forward = plan.forward;
  forward.src_stride = narrow(src.stride);
  const std::int32_t pitch = plan.seen + kApart;
  Launch(queue, {kFile, "few_laid"})
      .buffer(src.data)
      .buffer(workspace)
      .value(pitch)
      .value(forward)
      .run({plan.seen, plan.pixels}, {64, 1});
  Weights weights;
  weights.columns = line_of(plan.pixels);
  weights.images = weights.lines = 1;
  weights.src_channels = plan.seen;
  weights.dst_channels = forward.width;
  weights.src_stride = pitch;
  weights.diff_stride = narrow(diff_dst.stride);
  const std::int64_t down = divide_up(forward.width, kWeightsTile.rows);
  // Of one part and tap: the parts' place is the result's.
  Launch(queue, weights_code(kWeightsTile, false))
      .buffer(workspace)
      .buffer(diff_dst.data)
      .buffer(diff_weights)
      .value(weights)
      .run({plan.seen / kWeightsTile.width(), down}, {1, group_size(queue, down)});
}

}  // namespace ridgeline::opencl::conv
