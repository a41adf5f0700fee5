#include "backends/cuda/activation.cuh"
#include "backends/cuda/elementwise/elementwise.cuh"
#include "backends/cuda/norm/channel_sums.cuh"
#include "backends/cuda/norm/norm_coefficients.cuh"
#include "backends/cuda/sums/gradient_sums_kernels.h"

namespace ridgeline::cuda {
namespace {

// How the activation's gradient is found: there is none, from bounds, by its kind, or by its kind
// where what it needs is computed again from src.
enum class Gate { none, bounds, any, again };

constexpr bool by_kind(Gate gate) { return gate == Gate::any || gate == Gate::again; }

// Rows of a thread under way together: the more streams, the fewer.
template <typename T>
constexpr int unroll_of(Gate gate, bool source, bool other) {
  if (by_kind(gate)) return sizeof(T) == 2 ? 2 : 1;
  const int streams = 1 + (gate == Gate::bounds ? 1 : 0) + (source ? 1 : 0) + (other ? 1 : 0);
  constexpr int kUnrolls[] = {8, 4, 3, 2};
  return kUnrolls[streams - 1];
}

struct GradientOperands {
  RowOperand diff, other, kept, src, stored, mask;
};

// What a thread loads of one row.
template <typename T, int kPack>
struct Loaded {
  Packed<T, kPack> diff, other, kept, src;
};

// One channel's end: `totals` are the sums of g and of g * (src - mean).
template <int kSums>
__device__ __forceinline__ void store_sums(const GradientSums& task, std::int64_t channel,
                                           const float (&totals)[kSums]) {
  if (task.sums != nullptr) task.sums[channel] = totals[0];
  if constexpr (kSums == 2) {
    const double inverse =
        task.variance == nullptr
            ? 1.0
            : 1.0 / sqrt(static_cast<double>(task.variance[channel]) + task.epsilon);
    const double products = totals[1] * inverse;
    if (task.products != nullptr) task.products[channel] = static_cast<float>(products);
    if (task.coefficients == nullptr) return;
    const NormCoefficients made =
        coefficients_of({task.mean[channel], inverse, task.scale[channel], products, totals[0],
                         static_cast<double>(task.src.rows)},
                        task.frozen);
    task.coefficients[channel] = made.factor;
    task.coefficients[task.src.width + channel] = made.slope;
    task.coefficients[2 * task.src.width + channel] = made.offset;
  }
}

template <int kSums, int kPack>
__device__ __forceinline__ void merge_sums(const GradientSums& task, const ChannelGrid& grid,
                                           int group) {
  const Merge<kPack> merge(grid, group);
  float totals[kSums] = {};
  if (merge.active) {
    const Partial<kSums>* partials = partials_of<kSums>(task.workspace, grid, merge.channel);
    for_each_partial(grid, partials, merge, [&](int, const Partial<kSums>& partial) {
#pragma unroll
      for (int s = 0; s < kSums; ++s) totals[s] += partial.value[s];
    });
  }
#pragma unroll
  for (int s = 0; s < kSums; ++s) totals[s] = merge.total(totals[s]);
  if (merge.active && merge.helper == 0) store_sums(task, merge.channel, totals);
}

// A thread's channels of the normalisation.
template <Gate kGate, int kPack>
struct Channels {
  float mean[kPack] = {}, factor[kPack], shift[kPack];

  __device__ __forceinline__ void read(const GradientSums& task, int first) {
#pragma unroll
    for (int i = 0; i < kPack; ++i) {
      mean[i] = task.mean[first + i];
      if constexpr (kGate != Gate::again) continue;
      const float variance = task.variance[first + i] + static_cast<float>(task.epsilon);
      factor[i] = task.scale[first + i] / sqrtf(variance);
      shift[i] = task.shift[first + i];
    }
  }
};

// g for a pack; gives the bits of the elements that pass.
template <Gate kGate, bool kOther, typename T, int kPack>
__device__ __forceinline__ unsigned gradient_of(const GradientSums& task, float closing,
                                                const Channels<kGate, kPack>& channels,
                                                const Loaded<T, kPack>& loaded, float (&g)[kPack]) {
  unsigned bits = 0;
  float kept[kPack];
#pragma unroll
  for (int i = 0; i < kPack; ++i) {
    g[i] = loaded.diff.get(i);
    if constexpr (kOther) g[i] += loaded.other.get(i);
    if constexpr (kGate == Gate::bounds) {
      const bool open = is_open(loaded.kept.get(i), closing);
      g[i] = open ? g[i] : 0.0F;
      bits |= open ? 1U << i : 0U;
    } else if constexpr (kGate == Gate::any) {
      kept[i] = loaded.kept.get(i);
    } else if constexpr (kGate == Gate::again) {
      kept[i] = fmaf(loaded.src.get(i) - channels.mean[i], channels.factor[i], channels.shift[i]);
    }
  }
  if constexpr (by_kind(kGate)) activate_all_backward<T>(task.activation, task.slope, g, kept);
  return bits;
}

// The tiles come from the last to the first: what wrote diff left its end in the cache, and what
// follows finds the beginning there.
template <typename T, int kPack, Gate kGate, bool kSource, bool kOther>
__global__ void __launch_bounds__(kSumThreads)
    gradient_sums_kernel(const __grid_constant__ GradientSums task,
                         const __grid_constant__ ChannelGrid grid,
                         const __grid_constant__ GradientOperands operands, const float closing) {
  constexpr int kSums = kSource ? 2 : 1, kUnroll = unroll_of<T>(kGate, kSource, kOther);
  using Elements = Packed<T, kPack>;
  __shared__ float shared[kSumWarps * kSums * kMostGroupChannels];
  const GridThread thread(grid);
  int tile = grid.tiles - 1 - thread.part;
  Cursor<T, kPack> diff(operands.diff, grid, thread, tile),
      other(operands.other, grid, thread, tile);
  Cursor<T, kPack> kept(operands.kept, grid, thread, tile), src(operands.src, grid, thread, tile);
  Cursor<T, kPack> stored(operands.stored, grid, thread, tile);
  Cursor<unsigned char, 1> mask(operands.mask, grid, thread, tile);
  Channels<kGate, kPack> channels;
  float sums[kSums][kPack] = {};
  const auto load_row = [&](int u, Loaded<T, kPack>& loaded) {
    loaded.diff = Elements::load(diff.row(operands.diff, u));
    if constexpr (kOther) loaded.other = Elements::load(other.row(operands.other, u));
    if constexpr (kGate == Gate::bounds) {
      loaded.kept = Elements::load_once(kept.row(operands.kept, u));
    } else if (kGate == Gate::any && task.kept.data != nullptr) {
      loaded.kept = Elements::load(kept.row(operands.kept, u));
    }
    if constexpr (kSource) loaded.src = Elements::load(src.row(operands.src, u));
  };
  const auto add_row = [&](int u, const Loaded<T, kPack>& loaded) {
    float g[kPack];
    const unsigned bits = gradient_of<kGate, kOther>(task, closing, channels, loaded, g);
    if (task.stored.data != nullptr) {
      // What others read is what is added up.
      const Elements rounded = Elements::of(g);
      rounded.store(stored.row(operands.stored, u));
#pragma unroll
      for (int i = 0; i < kPack; ++i) g[i] = rounded.get(i);
    }
    if (kGate == Gate::bounds && task.mask != nullptr) {
      *mask.row(operands.mask, u) = static_cast<unsigned char>(bits);
    }
#pragma unroll
    for (int i = 0; i < kPack; ++i) {
      sums[0][i] += g[i];
      if constexpr (kSource) {
        sums[1][i] = fmaf(g[i], loaded.src.get(i) - channels.mean[i], sums[1][i]);
      }
    }
  };
  if (thread.active) {
    if (kSource && task.mean != nullptr) channels.read(task, thread.pack * kPack);
    for (; tile >= 0; tile -= grid.parts) {
      for_tile(grid, tile, [&](auto full) {
        Loaded<T, kPack> loaded[kUnroll];
#pragma unroll
        for (int u = 0; u < kUnroll; ++u) {
          if (full || thread.inside(grid, tile, u)) load_row(u, loaded[u]);
        }
#pragma unroll
        for (int u = 0; u < kUnroll; ++u) {
          if (full || thread.inside(grid, tile, u)) add_row(u, loaded[u]);
        }
      });
      diff.next_tile(operands.diff);
      if constexpr (kOther) other.next_tile(operands.other);
      if constexpr (kGate == Gate::bounds || kGate == Gate::any) kept.next_tile(operands.kept);
      if constexpr (kSource) src.next_tile(operands.src);
      stored.next_tile(operands.stored);
      if constexpr (kGate == Gate::bounds) mask.next_tile(operands.mask);
    }
  }
  float totals[kSums];
  block_totals<kPack, kSums>(grid, sums, shared, totals);
  const int c = static_cast<int>(threadIdx.x);
  if (c < grid.lanes * kPack && thread.active) {
    const std::int64_t channel = group_channel<kPack>(grid, thread.group, c);
    Partial<kSums>& partial = partials_of<kSums>(task.workspace, grid, channel)[thread.part];
#pragma unroll
    for (int s = 0; s < kSums; ++s) partial.value[s] = totals[s];
  }
  if (arrives_last(task.counters + thread.group, grid.parts)) {
    merge_sums<kSums, kPack>(task, grid, thread.group);
  }
}

// Of 32 channels, a warp every kMergeWarps-th part.
constexpr int kMergeWarps = 16;

__global__ void __launch_bounds__(kMergeWarps * 32)
    merge_sums_kernel(const __grid_constant__ GradientSums task, const float* sums, int parts) {
  __shared__ float shared[2][kMergeWarps][32];
  const int lane = static_cast<int>(threadIdx.x) % 32, warp = static_cast<int>(threadIdx.x) / 32;
  const int channel = static_cast<int>(blockIdx.x) * 32 + lane;
  const auto channels = static_cast<int>(task.src.width);
  float totals[2] = {};
  if (channel < channels) {
#pragma unroll 8
    for (int part = warp; part < parts; part += kMergeWarps) {
      const float* of_part = sums + static_cast<std::int64_t>(part) * 2 * channels + channel;
      totals[0] += of_part[0], totals[1] += of_part[channels];
    }
  }
  shared[0][warp][lane] = totals[0], shared[1][warp][lane] = totals[1];
  __syncthreads();
  if (warp != 0 || channel >= channels) return;
  for (int i = 1; i < kMergeWarps; ++i) {
    totals[0] += shared[0][i][lane], totals[1] += shared[1][i][lane];
  }
  store_sums(task, channel, totals);
}

template <typename T, int kPack, Gate kGate, bool kSource, bool kOther>
void start_sums(const GradientSums& task, Stream stream) {
  const ChannelGrid grid = reduction_grid(task.diff.rows, task.diff.width, kPack, task.dtype,
                                          kSumThreads, unroll_of<T>(kGate, kSource, kOther));
  const auto operand = [&](const Rows& rows) {
    return operand_of(rows, task.dtype, grid, Order::backward);
  };
  const Rows mask = {task.mask, task.diff.rows, grid.packs, grid.packs};
  const GradientOperands operands = {
      operand(task.diff), operand(task.other),  operand(task.kept),
      operand(task.src),  operand(task.stored), operand_of(mask, DType::u8, grid, Order::backward)};
  gradient_sums_kernel<T, kPack, kGate, kSource, kOther><<<grid.blocks(), kSumThreads, 0, stream>>>(
      task, grid, operands, closing_bound(task.activation));
}

template <typename T, bool kSource, bool kOther>
void start_sums(const GradientSums& task, Stream stream) {
  if constexpr (kSource) {
    if (task.shift != nullptr && task.pack == kFullPack<T>) {
      return start_sums<T, kFullPack<T>, Gate::again, kSource, kOther>(task, stream);
    }
    if (task.shift != nullptr) {
      return start_sums<T, 1, Gate::again, kSource, kOther>(task, stream);
    }
  }
  const bool full = task.pack == kFullPack<T>;
  if (task.pack > 1 && task.activation == kNoActivation) {
    with_wide_pack<T>(task.pack, [&]<int kPack>() {
      start_sums<T, kPack, Gate::none, kSource, kOther>(task, stream);
    });
  } else if (task.pack > 1 && is_bounded(task.activation)) {
    with_wide_pack<T>(task.pack, [&]<int kPack>() {
      start_sums<T, kPack, Gate::bounds, kSource, kOther>(task, stream);
    });
  } else if (full) {
    start_sums<T, kFullPack<T>, Gate::any, kSource, kOther>(task, stream);
  } else {
    start_sums<T, 1, Gate::any, kSource, kOther>(task, stream);
  }
}

}  // namespace

bool has_mask(int activation, int pack) {
  return pack > 1 && activation != kNoActivation && is_bounded(activation);
}

SumScratch gradient_sums_scratch(DType dtype, std::int64_t rows, std::int64_t channels,
                                 bool normalisation) {
  return sum_scratch(dtype, rows, channels, normalisation ? 2 : 1, kSumThreads, 1);
}

void launch_gradient_sums(const GradientSums& task, Stream stream) {
  with_element_type(task.dtype, [&](auto type) {
    using T = decltype(type);
    const bool source = task.src.data != nullptr, other = task.other.data != nullptr;
    if (source && other) {
      start_sums<T, true, true>(task, stream);
    } else if (source) {
      start_sums<T, true, false>(task, stream);
    } else if (other) {
      start_sums<T, false, true>(task, stream);
    } else {
      start_sums<T, false, false>(task, stream);
    }
  });
  check_launch("gradient_sums");
}

void launch_merge_gradient_sums(const GradientSums& task, const float* sums, int parts,
                                Stream stream) {
  const auto blocks = static_cast<unsigned>((task.src.width + 31) / 32);
  merge_sums_kernel<<<blocks, kMergeWarps * 32, 0, stream>>>(task, sums, parts);
  check_launch("gradient_sums of parts");
}

}  // namespace ridgeline::cuda
