#include "backends/cuda/activation.cuh"
#include "backends/cuda/elementwise/elementwise.cuh"
#include "backends/cuda/norm/batch_norm_backward_kernels.h"
#include "backends/cuda/norm/norm_coefficients.cuh"

namespace ridgeline::cuda {
namespace {

constexpr int kBlocks = 3;  // on a multiprocessor at a time

// How the activation's gradient is found: there is none, from the sums' mask, by its kind, or by
// its kind where what it needs is computed again from src.
enum class Gate { none, mask, any, again };

constexpr bool by_kind(Gate gate) { return gate == Gate::any || gate == Gate::again; }

// Computing again takes two more numbers for each channel.
constexpr int blocks_of(Gate gate) { return gate == Gate::again ? 2 : kBlocks; }

template <typename T>
constexpr int unroll_of(Gate gate, bool other) {
  if (by_kind(gate)) return sizeof(T) == 2 ? 2 : 1;
  return other ? 2 : 3;
}

template <int kPack>
struct alignas(16) Numbers {
  GroupNumbers<kPack> factor, slope, offset, mean, shift;
};

// One thread for each channel of the group.
template <Gate kGate, int kPack>
__device__ __forceinline__ void find_numbers(const NormBackward& task, const ChannelGrid& grid,
                                             int group, Numbers<kPack>& numbers) {
  const int c = static_cast<int>(threadIdx.x), channel = group * grid.lanes * kPack + c;
  if (c >= grid.lanes * kPack || channel >= grid.packs * kPack) return;
  NormCoefficients made;
  if (task.coefficients != nullptr) {
    const int channels = grid.packs * kPack;
    made = {task.coefficients[channel], task.coefficients[channels + channel],
            task.coefficients[2 * channels + channel]};
  } else {
    NormChannel given = {.mean = task.mean[channel],
                         .inverse_deviation = 1.0 / sqrt(task.variance[channel] + task.epsilon),
                         .scale = task.scale[channel],
                         .count = static_cast<double>(task.diff.rows)};
    if (!task.frozen) {
      given.products = task.diff_scale[channel];
      given.sums = task.diff_shift[channel];
    }
    made = coefficients_of(given, task.frozen);
  }
  numbers.factor.numbers[c] = made.factor;
  numbers.slope.numbers[c] = made.slope;
  numbers.offset.numbers[c] = made.offset;
  if constexpr (kGate == Gate::again) {
    numbers.mean.numbers[c] = task.mean[channel];
    numbers.shift.numbers[c] = task.shift[channel];
  }
}

struct BackwardOperands {
  RowOperand diff, other, kept, src, plus, diff_src, mask;
};

// What a thread loads of one row.
template <typename T, int kPack>
struct Loaded {
  Packed<T, kPack> diff, other, kept, src, plus;
  unsigned bits;
};

template <typename T, int kPack, Gate kGate, bool kSource, bool kOther, bool kPlus>
__global__ void __launch_bounds__(kRowThreads, blocks_of(kGate))
    backward_kernel(const __grid_constant__ NormBackward task,
                    const __grid_constant__ ChannelGrid grid,
                    const __grid_constant__ BackwardOperands operands) {
  constexpr int kUnroll = unroll_of<T>(kGate, kOther || kPlus);
  using Elements = Packed<T, kPack>;
  __shared__ Numbers<kPack> numbers;
  const GridThread thread(grid);
  Cursor<T, kPack> diff(operands.diff, grid, thread, thread.part);
  Cursor<T, kPack> other(operands.other, grid, thread, thread.part);
  Cursor<T, kPack> kept(operands.kept, grid, thread, thread.part);
  Cursor<T, kPack> src(operands.src, grid, thread, thread.part);
  Cursor<T, kPack> plus(operands.plus, grid, thread, thread.part);
  Cursor<T, kPack> diff_src(operands.diff_src, grid, thread, thread.part);
  Cursor<unsigned char, 1> mask(operands.mask, grid, thread, thread.part);
  float factor[kPack], slope[kPack], offset[kPack], mean[kPack], shift[kPack];
  const auto load_row = [&](int u, Loaded<T, kPack>& loaded) {
    loaded.diff = Elements::load(diff.row(operands.diff, u));
    if constexpr (kOther) loaded.other = Elements::load(other.row(operands.other, u));
    if constexpr (kGate == Gate::mask) {
      loaded.bits = *mask.row(operands.mask, u);
    } else if (kGate == Gate::any && task.kept.data != nullptr) {
      loaded.kept = Elements::load(kept.row(operands.kept, u));
    }
    if constexpr (kSource) loaded.src = Elements::load_once(src.row(operands.src, u));
    if constexpr (kPlus) loaded.plus = Elements::load_once(plus.row(operands.plus, u));
  };
  const auto result_of = [&](const Loaded<T, kPack>& loaded) {
    float g[kPack], kept[kPack];
#pragma unroll
    for (int i = 0; i < kPack; ++i) {
      g[i] = loaded.diff.get(i);
      if constexpr (kOther) g[i] += loaded.other.get(i);
      if constexpr (kGate == Gate::mask) {
        g[i] = (loaded.bits >> i & 1U) != 0 ? g[i] : 0.0F;
      } else if constexpr (kGate == Gate::any) {
        kept[i] = loaded.kept.get(i);
      } else if constexpr (kGate == Gate::again) {
        // The factor of the gradient is that of the normalisation.
        kept[i] = fmaf(loaded.src.get(i) - mean[i], factor[i], shift[i]);
      }
    }
    if constexpr (by_kind(kGate)) activate_all_backward<T>(task.activation, task.slope, g, kept);
#pragma unroll
    for (int i = 0; i < kPack; ++i) {
      const float through = kSource ? fmaf(loaded.src.get(i), slope[i], offset[i]) : 0.0F;
      g[i] = fmaf(g[i], factor[i], through);
      if constexpr (kPlus) g[i] += loaded.plus.get(i);
    }
    return Elements::of(g);
  };
  bool first = true;
  for (int tile = thread.part; tile < grid.tiles; tile += grid.parts) {
    for_tile(grid, tile, [&](auto full) {
      const auto has = [&](int u) {
        return thread.active && (full || thread.inside(grid, tile, u));
      };
      Loaded<T, kPack> loaded[kUnroll];
#pragma unroll
      for (int u = 0; u < kUnroll; ++u) {
        if (has(u)) load_row(u, loaded[u]);
      }
      if (first) {
        find_numbers<kGate, kPack>(task, grid, thread.group, numbers);
        __syncthreads();
        numbers.factor.read(thread, factor);
        numbers.slope.read(thread, slope);
        numbers.offset.read(thread, offset);
        if constexpr (kGate == Gate::again) {
          numbers.mean.read(thread, mean);
          numbers.shift.read(thread, shift);
        }
      }
#pragma unroll
      for (int u = 0; u < kUnroll; ++u) {
        if (has(u)) result_of(loaded[u]).store(diff_src.row(operands.diff_src, u));
      }
    });
    first = false;
    diff.next_tile(operands.diff);
    if constexpr (kOther) other.next_tile(operands.other);
    if constexpr (kGate == Gate::any) kept.next_tile(operands.kept);
    if constexpr (kGate == Gate::mask) mask.next_tile(operands.mask);
    if constexpr (kSource) src.next_tile(operands.src);
    if constexpr (kPlus) plus.next_tile(operands.plus);
    diff_src.next_tile(operands.diff_src);
  }
}

template <typename T, int kPack, Gate kGate, bool kSource, bool kOther, bool kPlus = false>
void start(const NormBackward& task, Stream stream) {
  const ChannelGrid grid = row_grid(task.diff.rows, task.diff.width, kPack, kRowThreads,
                                    unroll_of<T>(kGate, kOther || kPlus), blocks_of(kGate));
  const auto operand = [&](const Rows& rows) { return operand_of(rows, task.dtype, grid); };
  const Rows mask = {const_cast<unsigned char*>(task.mask), task.diff.rows, grid.packs, grid.packs};
  const BackwardOperands operands = {operand(task.diff),
                                     operand(task.other),
                                     operand(task.kept),
                                     operand(task.src),
                                     operand(task.plus),
                                     operand(task.diff_src),
                                     operand_of(mask, DType::u8, grid)};
  backward_kernel<T, kPack, kGate, kSource, kOther, kPlus>
      <<<grid.blocks(), kRowThreads, 0, stream>>>(task, grid, operands);
}

template <typename T, bool kSource, bool kOther>
void start(const NormBackward& task, Stream stream) {
  if constexpr (kSource) {
    if (task.shift != nullptr && task.pack == kFullPack<T>) {
      return start<T, kFullPack<T>, Gate::again, kSource, kOther>(task, stream);
    }
    if (task.shift != nullptr) {
      return start<T, 1, Gate::again, kSource, kOther>(task, stream);
    }
  }
  if (task.mask != nullptr) {
    with_wide_pack<T>(task.pack, [&]<int kPack>() {
      start<T, kPack, Gate::mask, kSource, kOther>(task, stream);
    });
  } else if (task.pack > 1 && task.activation == kNoActivation) {
    with_wide_pack<T>(task.pack, [&]<int kPack>() {
      start<T, kPack, Gate::none, kSource, kOther>(task, stream);
    });
  } else if (task.pack == kFullPack<T>) {
    start<T, kFullPack<T>, Gate::any, kSource, kOther>(task, stream);
  } else {
    start<T, 1, Gate::any, kSource, kOther>(task, stream);
  }
}

}  // namespace

void launch_norm_backward(const NormBackward& task, Stream stream) {
  with_element_type(task.dtype, [&](auto type) {
    using T = decltype(type);
    const bool source = task.src.data != nullptr, other = task.other.data != nullptr;
    if (task.plus.data != nullptr) {
      with_pack<T>(task.pack, [&]<int kPack>() {
        start<T, kPack, Gate::none, true, false, true>(task, stream);
      });
    } else if (source && other) {
      start<T, true, true>(task, stream);
    } else if (source) {
      start<T, true, false>(task, stream);
    } else if (other) {
      start<T, false, true>(task, stream);
    } else {
      start<T, false, false>(task, stream);
    }
  });
  check_launch("bn_backward_apply");
}

}  // namespace ridgeline::cuda
