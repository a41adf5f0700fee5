#include "backends/opencl/conv/conv_run.h"

#include "backends/opencl/conv/conv_launch.h"

namespace ridgeline::opencl::conv {
namespace {

constexpr const char* kPatchesFile = "kernels/conv_patches.cl";
constexpr const char* kPackFile = "kernels/conv_pack.cl";
constexpr const char* kSumFile = "kernels/conv_weights_sum.cl";

std::int64_t divide_up(std::int64_t value, std::int64_t by) { return (value + by - 1) / by; }

// Lays src out, and gives the rows in its place.
Rows run_patches(const Patches& patches, const Rows& src, std::byte* workspace, Queue& queue) {
  Gather gather = patches.gather;
  gather.src_stride = static_cast<std::int32_t>(src.stride);
  const Rows rows = {workspace + patches.at, pixels_of(gather), patches.pitch, patches.pitch,
                     src.half};
  // A CPU's work-items run one after the other: each takes many pixels.
  constexpr std::int64_t kStretchesPerUnit = 16;
  const Properties& properties = queue.context().properties();
  const std::int64_t stretch =
      properties.cpu ? divide_up(rows.rows, kStretchesPerUnit * properties.compute_units) : 1;
  const std::int64_t items = divide_up(rows.rows, stretch);
  Launch(queue, {kPatchesFile, "conv_patches", number_option(src)})
      .buffer(src.data)
      .buffer(rows.data)
      .value(patches.pitch)
      .value(static_cast<std::int32_t>(stretch))
      .value(gather)
      .run({items}, line_group(queue, items));
  return rows;
}

}  // namespace

void run_gather(const GatherPlan& plan, const Rows& src, const void* weights, const Rows& dst,
                const Epilogue& epilogue, std::byte* workspace, Queue& queue) {
  const Rows from = plan.patches.used ? run_patches(plan.patches, src, workspace, queue) : src;
  const std::byte* zeros = workspace + plan.zeros_at;
  if (plan.packed) {
    const Pack& pack = plan.pack;
    Launch(queue, {kPackFile, "conv_pack", number_option(src)})
        .buffer(weights)
        .buffer(workspace + plan.weights_at)
        .buffer(zeros)
        .value(pack)
        .run({pack.joined * pack.depth, pack.panels, pack.groups},
             line_group(queue, pack.joined * pack.depth));
    weights = workspace + plan.weights_at;
  }
  const Tile& tile = plan.tile;
  for (Gather gather : plan.classes) {
    gather.src_stride = static_cast<std::int32_t>(from.stride);
    gather.dst_stride = static_cast<std::int32_t>(dst.stride);
    set_epilogue(gather, epilogue);
    const std::int64_t blocks = divide_up(pixels_of(gather), tile.rows);
    Launch launch(queue, gather_code(tile, src.half));
    launch.buffer(from.data).buffer(weights).buffer(dst.data).buffer(epilogue.bias);
    if (!tile.local) launch.buffer(plan.packed ? zeros : nullptr);
    launch.value(gather);
    if (tile.local) {
      launch.run({blocks * kTileSide, plan.pack.panels * kTileSide, gather.groups},
                 {kTileSide, kTileSide});
    } else {
      launch.run({blocks, plan.pack.panels, gather.groups}, line_group(queue, blocks));
    }
  }
}

void run_weights(const WeightsPlan& plan, const Rows& src, const Rows& diff_dst,
                 const void* diff_weights, std::byte* workspace, Queue& queue) {
  const Rows from = plan.patches.used ? run_patches(plan.patches, src, workspace, queue) : src;
  const Tile& tile = plan.tile;
  Weights weights = plan.weights;
  weights.src_stride = static_cast<std::int32_t>(from.stride);
  weights.diff_stride = static_cast<std::int32_t>(diff_dst.stride);
  const std::byte* partial = workspace + plan.partial_at;
  const std::int64_t across = divide_up(weights.src_channels, tile.width());
  const std::int64_t down = divide_up(weights.dst_channels, tile.rows);
  const std::int64_t deep = std::int64_t{plan.sum.taps} * weights.groups * weights.parts;
  Launch launch(queue, weights_code(tile, src.half));
  launch.buffer(from.data).buffer(diff_dst.data).buffer(partial).value(weights);
  if (tile.local) {
    launch.run({across * kTileSide, down * kTileSide, deep}, {kTileSide, kTileSide});
  } else {
    launch.run({across, down, deep}, line_group(queue, across));
  }
  const Sum& sum = plan.sum;
  Launch(queue, {kSumFile, "conv_weights_sum", number_option(src)})
      .buffer(partial)
      .buffer(diff_weights)
      .value(sum)
      .run({divide_up(sum.src_channels, 16), sum.joined * sum.dst_channels, sum.groups},
           line_group(queue, divide_up(sum.src_channels, 16)));
}

}  // namespace ridgeline::opencl::conv
