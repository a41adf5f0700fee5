// Depthwise convolutions: nothing is worth a tile there, every number is read a few times only.

#include <algorithm>

#include "backends/opencl/conv/conv_launch.h"

namespace ridgeline::opencl::conv {
namespace {

constexpr const char* kDepthwiseFile = "kernels/conv_depthwise.cl";

std::int64_t blocks_of(std::int64_t channels) { return (channels + 15) / 16; }

std::int32_t taps_of(const Gather& gather) { return gather.rows.taps * gather.columns.taps; }

// Weights with their channels innermost, as the kernels read them.
const std::byte* turn(const void* weights, bool half, std::int32_t channels, std::int32_t taps,
                      std::byte* workspace, Queue& queue) {
  Launch(queue, {kDepthwiseFile, "depthwise_turn", number_option(half)})
      .buffer(weights)
      .buffer(workspace)
      .value(channels)
      .value(taps)
      .run({channels}, line_group(queue, channels));
  return workspace;
}

std::size_t weights_bytes(const Geometry& g) {
  return static_cast<std::size_t>(g.dst_channels * g.taps()) * sizeof(float);
}

std::int32_t multiplier_of(const Geometry& g) { return static_cast<std::int32_t>(g.group_dst()); }

}  // namespace

DepthwisePlan plan_depthwise(const Geometry& g) {
  DepthwisePlan plan;
  plan.multiplier = multiplier_of(g);
  Gather gather = forward_gather(g);
  gather.width = static_cast<std::int32_t>(g.dst_channels);
  plan.classes = {gather};
  plan.workspace_bytes = weights_bytes(g);
  return plan;
}

DepthwisePlan plan_depthwise_data(const Geometry& g) {
  DepthwisePlan plan;
  plan.multiplier = multiplier_of(g);
  plan.classes = backward_gathers(g);
  for (Gather& gather : plan.classes) {
    gather.depth = static_cast<std::int32_t>(g.dst_channels);
    gather.width = static_cast<std::int32_t>(g.src_channels);
  }
  plan.workspace_bytes = weights_bytes(g);
  return plan;
}

DepthwisePlan plan_depthwise_weights(const Geometry& g, std::int64_t units) {
  constexpr std::int64_t kPartsPerUnit = 8;
  DepthwisePlan plan;
  plan.multiplier = multiplier_of(g);
  plan.weights = weights_lines(g);
  plan.weights.dst_channels = static_cast<std::int32_t>(g.dst_channels);
  const std::int64_t parts = std::min<std::int64_t>(plan.weights.lines, kPartsPerUnit * units);
  plan.weights.parts = static_cast<std::int32_t>(parts);
  plan.workspace_bytes = weights_bytes(g) * static_cast<std::size_t>(parts);
  return plan;
}

void run_depthwise(const DepthwisePlan& plan, const Rows& src, const void* weights, const Rows& dst,
                   const Epilogue& epilogue, std::byte* workspace, Queue& queue) {
  Gather gather = plan.classes.front();
  gather.src_stride = static_cast<std::int32_t>(src.stride);
  gather.dst_stride = static_cast<std::int32_t>(dst.stride);
  set_epilogue(gather, epilogue);
  const std::byte* turned =
      turn(weights, src.half, gather.width, taps_of(gather), workspace, queue);
  Launch(queue, {kDepthwiseFile, "depthwise", number_option(src)})
      .buffer(src.data)
      .buffer(turned)
      .buffer(dst.data)
      .buffer(epilogue.bias)
      .value(plan.multiplier)
      .value(gather)
      .run({blocks_of(gather.width), pixels_of(gather)}, pixel_group(queue, pixels_of(gather)));
}

void run_depthwise_data(const DepthwisePlan& plan, const Rows& diff_dst, const void* weights,
                        const Rows& diff_src, std::byte* workspace, Queue& queue) {
  const std::int32_t channels = plan.classes.front().depth;
  const auto taps = static_cast<std::int32_t>(plan.workspace_bytes / sizeof(float) /
                                              static_cast<std::size_t>(channels));
  const std::byte* turned = turn(weights, diff_dst.half, channels, taps, workspace, queue);
  for (Gather gather : plan.classes) {
    gather.src_stride = static_cast<std::int32_t>(diff_dst.stride);
    gather.dst_stride = static_cast<std::int32_t>(diff_src.stride);
    Launch(queue, {kDepthwiseFile, "depthwise_data", number_option(diff_dst)})
        .buffer(diff_dst.data)
        .buffer(turned)
        .buffer(diff_src.data)
        .value(plan.multiplier)
        .value(gather)
        .run({blocks_of(gather.width), pixels_of(gather)}, pixel_group(queue, pixels_of(gather)));
  }
}

void run_depthwise_weights(const DepthwisePlan& plan, const Rows& src, const Rows& diff_dst,
                           const void* diff_weights, std::byte* workspace, Queue& queue) {
  Weights weights = plan.weights;
  weights.src_stride = static_cast<std::int32_t>(src.stride);
  weights.diff_stride = static_cast<std::int32_t>(diff_dst.stride);
  const std::int32_t taps = weights.rows.taps * weights.columns.taps;
  Launch(queue, {kDepthwiseFile, "depthwise_weights", number_option(src)})
      .buffer(src.data)
      .buffer(diff_dst.data)
      .buffer(workspace)
      .value(plan.multiplier)
      .value(weights)
      .run({blocks_of(weights.dst_channels), taps, weights.parts},
           line_group(queue, blocks_of(weights.dst_channels)));
  Launch(queue, {kDepthwiseFile, "depthwise_sum", number_option(src)})
      .buffer(workspace)
      .buffer(diff_weights)
      .value(weights.dst_channels)
      .value(taps)
      .value(weights.parts)
      .run({weights.dst_channels, taps}, line_group(queue, weights.dst_channels));
}

}  // namespace ridgeline::opencl::conv
