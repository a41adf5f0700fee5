#include "backends/cuda/elementwise/dropout_mask.cuh"
#include "backends/cuda/elementwise/elementwise.cuh"
#include "backends/cuda/norm/channel_sums.cuh"
#include "backends/cuda/sums/block_end_kernels.h"
#include "backends/cuda/work_split.cuh"

namespace ridgeline::cuda {
namespace {

constexpr int kUnroll = 4;

struct BlockEndOperands {
  RowOperand diff, src, diff_src;
};

// The dropout factor of the sample that a row belongs to; a thread's next row mostly has the same.
class SampleFactor {
 public:
  __device__ SampleFactor(const BlockEndBackward& task, const Divider& pixels)
      : task_(task), pixels_(pixels) {}

  __device__ __forceinline__ float of(std::int64_t row) {
    if (task_.probability == 0.0F) return 1.0F;
    const auto sample = static_cast<int>(pixels_.quotient(static_cast<std::uint32_t>(row)));
    if (sample != sample_) {
      const DropoutMask mask(*task_.state, task_.layer, task_.probability);
      sample_ = sample;
      factor_ =
          mask.factor((mask.stay(static_cast<std::uint64_t>(sample / 4)) >> sample % 4 & 1U) != 0);
    }
    return factor_;
  }

 private:
  const BlockEndBackward& task_;
  const Divider& pixels_;
  int sample_ = -1;
  float factor_ = 1.0F;
};

template <int kPack>
__device__ __forceinline__ void merge_sums(const BlockEndBackward& task, const ChannelGrid& grid,
                                           int group) {
  const Merge<kPack> merge(grid, group);
  float totals[2] = {};
  if (merge.active) {
    const Partial<2>* partials = partials_of<2>(task.workspace, grid, merge.channel);
    for_each_partial(grid, partials, merge, [&](int, const Partial<2>& partial) {
      totals[0] += partial.value[0], totals[1] += partial.value[1];
    });
  }
  totals[0] = merge.total(totals[0]), totals[1] = merge.total(totals[1]);
  if (!merge.active || merge.helper != 0) return;
  if (task.diff_bias != nullptr) {
    task.diff_bias[merge.channel] = totals[0] * task.scale[merge.channel];
  }
  if (task.diff_scale != nullptr) task.diff_scale[merge.channel] = totals[1];
}

// As gradient_sums_kernel: the tiles come from the last to the first.
template <typename T, int kPack>
__global__ void __launch_bounds__(kSumThreads)
    block_end_kernel(const __grid_constant__ BlockEndBackward task,
                     const __grid_constant__ ChannelGrid grid,
                     const __grid_constant__ BlockEndOperands operands,
                     const __grid_constant__ Divider pixels) {
  using Elements = Packed<T, kPack>;
  __shared__ float shared[kSumWarps * 2 * kMostGroupChannels];
  const GridThread thread(grid);
  int tile = grid.tiles - 1 - thread.part;
  Cursor<T, kPack> diff(operands.diff, grid, thread, tile), src(operands.src, grid, thread, tile);
  Cursor<T, kPack> diff_src(operands.diff_src, grid, thread, tile);
  SampleFactor factor(task, pixels);
  float scale[kPack] = {}, sums[2][kPack] = {};
  if (thread.active) {
#pragma unroll
    for (int i = 0; i < kPack; ++i) scale[i] = task.scale[thread.pack * kPack + i];
    for (; tile >= 0; tile -= grid.parts) {
      const std::int64_t first = static_cast<std::int64_t>(tile) * grid.tile_rows() + thread.row;
      for_tile(grid, tile, [&](auto full) {
        Elements diffs[kUnroll], srcs[kUnroll];
#pragma unroll
        for (int u = 0; u < kUnroll; ++u) {
          if (!full && !thread.inside(grid, tile, u)) continue;
          diffs[u] = Elements::load_once(diff.row(operands.diff, u));
          srcs[u] = Elements::load_once(src.row(operands.src, u));
        }
#pragma unroll
        for (int u = 0; u < kUnroll; ++u) {
          if (!full && !thread.inside(grid, tile, u)) continue;
          const float kept = factor.of(first + u * grid.thread_rows);
          float result[kPack];
#pragma unroll
          for (int i = 0; i < kPack; ++i) {
            const float g = diffs[u].get(i) * kept;
            sums[0][i] += g;
            sums[1][i] = fmaf(g, srcs[u].get(i), sums[1][i]);
            result[i] = g * scale[i];
          }
          if (task.diff_src.data != nullptr) {
            Elements::of(result).store(diff_src.row(operands.diff_src, u));
          }
        }
      });
      diff.next_tile(operands.diff);
      src.next_tile(operands.src);
      diff_src.next_tile(operands.diff_src);
    }
  }
  float totals[2];
  block_totals<kPack, 2>(grid, sums, shared, totals);
  const int c = static_cast<int>(threadIdx.x);
  if (c < grid.lanes * kPack && thread.active) {
    const std::int64_t channel = group_channel<kPack>(grid, thread.group, c);
    partials_of<2>(task.workspace, grid, channel)[thread.part] = {totals[0], totals[1]};
  }
  if (arrives_last(task.counters + thread.group, grid.parts)) {
    merge_sums<kPack>(task, grid, thread.group);
  }
}

template <typename T, int kPack>
void start(const BlockEndBackward& task, Stream stream) {
  const ChannelGrid grid =
      reduction_grid(task.diff.rows, task.diff.width, kPack, task.dtype, kSumThreads, kUnroll);
  const auto operand = [&](const Rows& rows) {
    return operand_of(rows, task.dtype, grid, Order::backward);
  };
  const BlockEndOperands operands = {operand(task.diff), operand(task.src), operand(task.diff_src)};
  block_end_kernel<T, kPack>
      <<<grid.blocks(), kSumThreads, 0, stream>>>(task, grid, operands, Divider(task.pixels));
}

}  // namespace

SumScratch block_end_scratch(DType dtype, std::int64_t rows, std::int64_t channels) {
  return sum_scratch(dtype, rows, channels, 2, kSumThreads, kUnroll);
}

void launch_block_end_backward(const BlockEndBackward& task, Stream stream) {
  with_element_type(task.dtype, [&](auto type) {
    using T = decltype(type);
    if (pack_for(task.dtype, {task.diff, task.src, task.diff_src}) == 1) {
      start<T, 1>(task, stream);
    } else {
      start<T, kFullPack<T>>(task, stream);
    }
  });
  check_launch("block_end_backward");
}

}  // namespace ridgeline::cuda
