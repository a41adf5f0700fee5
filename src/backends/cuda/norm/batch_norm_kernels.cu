#include "backends/cuda/activation.cuh"
#include "backends/cuda/elementwise/elementwise.cuh"
#include "backends/cuda/norm/batch_norm_kernels.h"
#include "backends/cuda/norm/channel_sums.cuh"

namespace ridgeline::cuda {
namespace {

constexpr int kStatisticsUnroll = 8, kApplyBlocks = 3;
constexpr int kOriginRows = 4;

// Activations other than bounds are long; for f32, one copy of them is enough.
template <typename T>
constexpr int apply_unroll(bool is_bounded_activation, bool other) {
  if (!is_bounded_activation) return sizeof(T) == 2 ? 2 : 1;
  return other ? 3 : 4;
}

// A few rows of a block's first tile, the same for all threads of a lane.
template <typename T, int kPack>
__device__ __forceinline__ void load_samples(const ChannelGrid& grid, const GridThread& thread,
                                             const RowOperand& src, int tile,
                                             Packed<T, kPack> (&samples)[kOriginRows]) {
  const auto* column = reinterpret_cast<const T*>(src.data) + thread.pack * kPack;
  const std::int64_t first = static_cast<std::int64_t>(tile) * grid.tile_rows();
#pragma unroll
  for (int s = 0; s < kOriginRows; ++s) {
    const std::int64_t row = min(first + s * (grid.tile_rows() / kOriginRows), grid.rows - 1);
    samples[s] = Packed<T, kPack>::load(
        reinterpret_cast<const T*>(reinterpret_cast<const char*>(column) + row * src.stride));
  }
}

// About the middle of each channel. Sums around it lose no digits however far the values lie from
// zero.
template <typename T, int kPack>
__device__ __forceinline__ void find_origin(const Packed<T, kPack> (&samples)[kOriginRows],
                                            float (&origin)[kPack]) {
#pragma unroll
  for (int i = 0; i < kPack; ++i) {
    float sum = 0.0F;
#pragma unroll
    for (int s = 0; s < kOriginRows; ++s) sum += samples[s].get(i);
    origin[i] = sum * (1.0F / kOriginRows);
  }
}

template <typename T, int kPack>
__device__ __forceinline__ void add_distances(const Packed<T, kPack>& pack,
                                              const float (&origin)[kPack],
                                              float (&sums)[2][kPack]) {
#pragma unroll
  for (int i = 0; i < kPack; ++i) {
    const float x = pack.get(i) - origin[i];
    sums[0][i] += x;
    sums[1][i] = fmaf(x, x, sums[1][i]);
  }
}

__device__ __forceinline__ float blend(double momentum, float old, double batch) {
  if (momentum == 0.0) return old;
  return static_cast<float>((1.0 - momentum) * old + momentum * batch);
}

__device__ __forceinline__ void store_statistics(const NormStatistics& task, std::int64_t channel,
                                                 float mean, float variance) {
  if (task.mean != nullptr) task.mean[channel] = mean;
  if (task.variance != nullptr) task.variance[channel] = variance;
  if (task.new_mean == nullptr) return;
  const double momentum = task.state->overflow != 0 ? 0.0 : task.momentum;
  task.new_mean[channel] = blend(momentum, task.running_mean[channel], mean);
  task.new_variance[channel] =
      blend(momentum, task.running_variance[channel], task.unbias * variance);
}

// Chan's merge of the parts' means and squared distances, taken around the first part's mean.
template <int kPack>
__device__ __forceinline__ void merge_statistics(const NormStatistics& task,
                                                 const ChannelGrid& grid, int group) {
  const Merge<kPack> merge(grid, group);
  const PartRows part_rows(grid);
  float first = 0.0F, offset = 0.0F, squares = 0.0F;
  if (merge.active) {
    const Partial<2>* partials = partials_of<2>(task.workspace, grid, merge.channel);
    first = load_partial(partials).value[0];
    for_each_partial(grid, partials, merge, [&](int part, const Partial<2>& partial) {
      const float count = part_rows.of(part);
      const float distance = partial.value[0] - first;
      offset += count * distance;
      squares += count * distance * distance + partial.value[1];
    });
  }
  offset = merge.total(offset);
  squares = merge.total(squares);
  if (!merge.active || merge.helper != 0) return;
  const auto count = static_cast<float>(grid.rows);
  const float variance = (squares - offset * (offset / count)) / count;
  store_statistics(task, merge.channel, first + offset / count, fmaxf(variance, 0.0F));
}

// Of 32 channels, a warp every kMergeWarps-th part. Chan's merge around the first part's mean.
constexpr int kMergeWarps = 16;

__global__ void __launch_bounds__(kMergeWarps * 32)
    merge_kernel(const __grid_constant__ NormStatistics task,
                 const __grid_constant__ PartMoments moments) {
  __shared__ float sums[3][kMergeWarps][32];
  const int lane = static_cast<int>(threadIdx.x) % 32, warp = static_cast<int>(threadIdx.x) / 32;
  const int channel = static_cast<int>(blockIdx.x) * 32 + lane;
  const bool active = channel < moments.channels;
  const auto plane = [&](int part, int index) {
    return moments
        .data[(static_cast<std::int64_t>(part) * kMomentPlanes + index) * moments.channels +
              channel];
  };
  float rows = 0.0F, offset = 0.0F, squares = 0.0F;
  const float first = active ? plane(0, 1) : 0.0F;
  if (active) {
#pragma unroll 8
    for (int part = warp; part < moments.parts; part += kMergeWarps) {
      const float count = plane(part, 0), distance = plane(part, 1) - first;
      rows += count;
      offset += count * distance;
      squares += count * distance * distance + plane(part, 2);
    }
  }
  sums[0][warp][lane] = rows, sums[1][warp][lane] = offset, sums[2][warp][lane] = squares;
  __syncthreads();
  if (warp != 0 || !active) return;
  for (int i = 1; i < kMergeWarps; ++i) {
    rows += sums[0][i][lane], offset += sums[1][i][lane], squares += sums[2][i][lane];
  }
  const float variance = (squares - offset * (offset / rows)) / rows;
  store_statistics(task, channel, first + offset / rows, fmaxf(variance, 0.0F));
}

// The tiles come from the last to the first: what wrote src left its end in the cache.
template <typename T, int kPack>
__global__ void __launch_bounds__(kSumThreads)
    statistics_kernel(const __grid_constant__ NormStatistics task,
                      const __grid_constant__ ChannelGrid grid,
                      const __grid_constant__ RowOperand src) {
  __shared__ float shared[kSumWarps * 2 * kMostGroupChannels], origins[kMostGroupChannels];
  const GridThread thread(grid);
  int tile = grid.tiles - 1 - thread.part;
  Cursor<T, kPack> at(src, grid, thread, tile);
  float origin[kPack] = {}, sums[2][kPack] = {};
  if (thread.active) {
    Packed<T, kPack> samples[kOriginRows];
    load_samples(grid, thread, src, tile, samples);
    for (bool first = true; tile >= 0; tile -= grid.parts, first = false) {
      for_tile(grid, tile, [&](auto full) {
        Packed<T, kPack> packs[kStatisticsUnroll];
#pragma unroll
        for (int u = 0; u < kStatisticsUnroll; ++u) {
          if (full || thread.inside(grid, tile, u)) {
            packs[u] = Packed<T, kPack>::load(at.row(src, u));
          }
        }
        if (first) find_origin(samples, origin);
#pragma unroll
        for (int u = 0; u < kStatisticsUnroll; ++u) {
          if (full || thread.inside(grid, tile, u)) add_distances(packs[u], origin, sums);
        }
      });
      at.next_tile(src);
    }
  }
  if (thread.row == 0) {
#pragma unroll
    for (int i = 0; i < kPack; ++i) origins[i * grid.lanes + thread.lane] = origin[i];
  }
  float totals[2];
  block_totals<kPack, 2>(grid, sums, shared, totals);
  const int c = static_cast<int>(threadIdx.x);
  if (c < grid.lanes * kPack && thread.active) {
    const float offset = totals[0] / PartRows(grid).of(thread.part);
    const std::int64_t channel = group_channel<kPack>(grid, thread.group, c);
    partials_of<2>(task.workspace, grid, channel)[thread.part] = {
        origins[c] + offset, fmaxf(totals[1] - totals[0] * offset, 0.0F)};
  }
  if (arrives_last(task.counters + thread.group, grid.parts)) {
    merge_statistics<kPack>(task, grid, thread.group);
  }
}

struct RunningUpdates {
  RunningUpdate entries[kMostUpdates];
};

__global__ void __launch_bounds__(kRowThreads)
    running_updates_kernel(const __grid_constant__ RunningUpdates updates, const StepState* state) {
  const RunningUpdate& update = updates.entries[blockIdx.x];
  const double momentum = state->overflow != 0 ? 0.0 : update.momentum;
  for (std::int64_t c = threadIdx.x; c < update.channels; c += kRowThreads) {
    const float mean = blend(momentum, update.running_mean[c], update.mean[c]);
    const float variance =
        blend(momentum, update.running_variance[c], update.unbias * update.variance[c]);
    update.new_mean[c] = mean;
    update.new_variance[c] = variance;
  }
}

template <int kPack>
struct alignas(16) Factors {
  GroupNumbers<kPack> mean, factor, shift;
};

// One thread for each channel of the group; all loads before the first use.
template <int kPack>
__device__ __forceinline__ void find_factors(const NormApply& task, const ChannelGrid& grid,
                                             int group, Factors<kPack>& factors) {
  const int c = static_cast<int>(threadIdx.x), channel = group * grid.lanes * kPack + c;
  if (c >= grid.lanes * kPack || channel >= grid.packs * kPack) return;
  float mean = 0.0F, variance = 1.0F;
  if (task.mean != nullptr) {
    mean = task.mean[channel];
    variance = task.variance[channel] + task.epsilon;
  }
  const float scale = task.scale != nullptr ? task.scale[channel] : 1.0F;
  factors.shift.numbers[c] = task.shift != nullptr ? task.shift[channel] : 0.0F;
  factors.mean.numbers[c] = mean;
  factors.factor.numbers[c] = scale / sqrtf(variance);
}

struct ApplyOperands {
  RowOperand src, other, dst;
};

template <typename T, int kPack, bool kBounded, bool kOther>
__global__ void __launch_bounds__(kRowThreads, kApplyBlocks)
    apply_kernel(const __grid_constant__ NormApply task, const __grid_constant__ ChannelGrid grid,
                 const __grid_constant__ ApplyOperands operands, const ActivationBounds bounds) {
  constexpr int kUnroll = apply_unroll<T>(kBounded, kOther);
  __shared__ Factors<kPack> factors;
  const GridThread thread(grid);
  Cursor<T, kPack> src(operands.src, grid, thread, thread.part);
  Cursor<T, kPack> other(operands.other, grid, thread, thread.part);
  Cursor<T, kPack> dst(operands.dst, grid, thread, thread.part);
  float mean[kPack], factor[kPack], shift[kPack];
  const auto result_of = [&](const Packed<T, kPack>& x, const Packed<T, kPack>& added) {
    float result[kPack];
#pragma unroll
    for (int i = 0; i < kPack; ++i) {
      result[i] = fmaf(x.get(i) - mean[i], factor[i], shift[i]);
      if constexpr (kOther) result[i] += added.get(i);
      if constexpr (kBounded) result[i] = bounded(bounds, result[i]);
    }
    if constexpr (!kBounded) activate_all<T>(task.activation, task.slope, result);
    return Packed<T, kPack>::of(result);
  };
  bool first = true;
  for (int tile = thread.part; tile < grid.tiles; tile += grid.parts) {
    for_tile(grid, tile, [&](auto full) {
      const auto has = [&](int u) {
        return thread.active && (full || thread.inside(grid, tile, u));
      };
      Packed<T, kPack> packs[kUnroll], others[kUnroll];
#pragma unroll
      for (int u = 0; u < kUnroll; ++u) {
        if (!has(u)) continue;
        packs[u] = Packed<T, kPack>::load_once(src.row(operands.src, u));
        if constexpr (kOther) {
          others[u] = Packed<T, kPack>::load_once(other.row(operands.other, u));
        }
      }
      if (first) {
        find_factors<kPack>(task, grid, thread.group, factors);
        __syncthreads();
        factors.mean.read(thread, mean);
        factors.factor.read(thread, factor);
        factors.shift.read(thread, shift);
      }
#pragma unroll
      for (int u = 0; u < kUnroll; ++u) {
        if (has(u)) result_of(packs[u], others[u]).store(dst.row(operands.dst, u));
      }
    });
    first = false;
    src.next_tile(operands.src);
    if constexpr (kOther) other.next_tile(operands.other);
    dst.next_tile(operands.dst);
  }
}

}  // namespace

SumScratch statistics_scratch(DType dtype, std::int64_t rows, std::int64_t channels) {
  return sum_scratch(dtype, rows, channels, 2, kSumThreads, kStatisticsUnroll);
}

void launch_statistics(const NormStatistics& task, Stream stream) {
  with_element_type(task.dtype, [&](auto type) {
    using T = decltype(type);
    const auto start = [&]<int kPack>() {
      const ChannelGrid grid = reduction_grid(task.src.rows, task.src.width, kPack, task.dtype,
                                              kSumThreads, kStatisticsUnroll);
      const RowOperand src = operand_of(task.src, task.dtype, grid, Order::backward);
      statistics_kernel<T, kPack><<<grid.blocks(), kSumThreads, 0, stream>>>(task, grid, src);
    };
    with_pack<T>(word_pack_for(task.dtype, {task.src}),
                 [&]<int kPack>() { start.template operator()<kPack>(); });
  });
  check_launch("bn_statistics");
}

void launch_merge_moments(const NormStatistics& task, const PartMoments& moments, Stream stream) {
  merge_kernel<<<(moments.channels + 31) / 32, kMergeWarps * 32, 0, stream>>>(task, moments);
  check_launch("bn_statistics of parts");
}

void launch_running_updates(const RunningUpdate* updates, int count, const StepState* state,
                            Stream stream) {
  RunningUpdates list{};
  std::copy_n(updates, count, list.entries);
  running_updates_kernel<<<count, kRowThreads, 0, stream>>>(list, state);
  check_launch("bn_update_running");
}

namespace {

template <typename T, int kPack, bool kBounded, bool kOther>
void start_apply(const NormApply& task, Stream stream) {
  const ChannelGrid grid = row_grid(task.src.rows, task.src.width, kPack, kRowThreads,
                                    apply_unroll<T>(kBounded, kOther), kApplyBlocks);
  const ApplyOperands operands = {operand_of(task.src, task.dtype, grid),
                                  operand_of(task.other, task.dtype, grid),
                                  operand_of(task.dst, task.dtype, grid)};
  apply_kernel<T, kPack, kBounded, kOther>
      <<<grid.blocks(), kRowThreads, 0, stream>>>(task, grid, operands, bounds_of(task.activation));
}

template <typename T, bool kOther>
void start_apply(const NormApply& task, Stream stream) {
  const int pack = word_pack_for(task.dtype, {task.src, task.other, task.dst});
  if (is_bounded(task.activation)) {
    with_pack<T>(pack, [&]<int kPack>() { start_apply<T, kPack, true, kOther>(task, stream); });
  } else if (pack == kFullPack<T>) {
    start_apply<T, kFullPack<T>, false, kOther>(task, stream);
  } else {
    start_apply<T, 1, false, kOther>(task, stream);
  }
}

}  // namespace

void launch_norm_apply(const NormApply& task, Stream stream) {
  with_element_type(task.dtype, [&](auto type) {
    using T = decltype(type);
    if (task.other.data != nullptr) {
      start_apply<T, true>(task, stream);
    } else {
      start_apply<T, false>(task, stream);
    }
  });
  check_launch("bn_apply");
}

}  // namespace ridgeline::cuda
