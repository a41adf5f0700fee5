#include "backends/cuda/activation.cuh"
#include "backends/cuda/elementwise/elementwise.cuh"
#include "backends/cuda/elementwise/elementwise_kernels.h"

namespace ridgeline::cuda {
namespace {

constexpr int kBlocks = 4;  // on a multiprocessor at a time

enum class Kind { bounds, any, backward_bounds, backward_any };

constexpr bool is_backward(Kind kind) {
  return kind == Kind::backward_bounds || kind == Kind::backward_any;
}

// Activations other than bounds are long; for f32, one copy of them is enough.
template <typename T>
constexpr int unroll_of(Kind kind, bool other) {
  if (kind == Kind::any || kind == Kind::backward_any) return sizeof(T) == 2 ? 2 : 1;
  return is_backward(kind) && other ? 2 : 4;
}

struct ElementOperands {
  RowOperand src, other, kept, dst;
};

// What a thread loads of one row.
template <typename T, int kPack>
struct Loaded {
  Packed<T, kPack> src, other, kept;
};

// What an activation needs, and its gradient.
struct Limits {
  ActivationBounds bounds;
  float closing;
  int activation;
  float slope;
};

template <Kind kKind, bool kOther, typename T, int kPack>
__device__ __forceinline__ Packed<T, kPack> result_of(const Limits& limits,
                                                      const Loaded<T, kPack>& loaded) {
  float values[kPack], kept[kPack];
#pragma unroll
  for (int i = 0; i < kPack; ++i) {
    values[i] = loaded.src.get(i);
    if constexpr (kOther) values[i] += loaded.other.get(i);
    if constexpr (is_backward(kKind)) kept[i] = loaded.kept.get(i);
    if constexpr (kKind == Kind::bounds) values[i] = bounded(limits.bounds, values[i]);
    if constexpr (kKind == Kind::backward_bounds) {
      values[i] = is_open(kept[i], limits.closing) ? values[i] : 0.0F;
    }
  }
  if constexpr (kKind == Kind::any) activate_all<T>(limits.activation, limits.slope, values);
  if constexpr (kKind == Kind::backward_any) {
    activate_all_backward<T>(limits.activation, limits.slope, values, kept);
  }
  return Packed<T, kPack>::of(values);
}

template <typename T, int kPack, Kind kKind, bool kOther>
__global__ void __launch_bounds__(kRowThreads, kBlocks)
    elementwise_kernel(const __grid_constant__ ChannelGrid grid,
                       const __grid_constant__ ElementOperands operands, const Limits limits) {
  constexpr int kUnroll = unroll_of<T>(kKind, kOther);
  using Elements = Packed<T, kPack>;
  const GridThread thread(grid);
  if (!thread.active) return;
  Cursor<T, kPack> src(operands.src, grid, thread, thread.part);
  Cursor<T, kPack> other(operands.other, grid, thread, thread.part);
  Cursor<T, kPack> kept(operands.kept, grid, thread, thread.part);
  Cursor<T, kPack> dst(operands.dst, grid, thread, thread.part);
  for (int tile = thread.part; tile < grid.tiles; tile += grid.parts) {
    for_tile(grid, tile, [&](auto full) {
      Loaded<T, kPack> loaded[kUnroll];
#pragma unroll
      for (int u = 0; u < kUnroll; ++u) {
        if (!full && !thread.inside(grid, tile, u)) continue;
        loaded[u].src = Elements::load_once(src.row(operands.src, u));
        if constexpr (kOther) loaded[u].other = Elements::load(other.row(operands.other, u));
        if constexpr (is_backward(kKind)) {
          loaded[u].kept = Elements::load(kept.row(operands.kept, u));
        }
      }
#pragma unroll
      for (int u = 0; u < kUnroll; ++u) {
        if (!full && !thread.inside(grid, tile, u)) continue;
        result_of<kKind, kOther>(limits, loaded[u]).store(dst.row(operands.dst, u));
      }
    });
    src.next_tile(operands.src);
    if constexpr (kOther) other.next_tile(operands.other);
    if constexpr (is_backward(kKind)) kept.next_tile(operands.kept);
    dst.next_tile(operands.dst);
  }
}

template <typename T, int kPack, Kind kKind, bool kOther>
void start(const Elementwise& task, bool joined, Stream stream) {
  constexpr int kUnroll = unroll_of<T>(kKind, kOther);
  const ChannelGrid grid =
      joined ? element_grid(task.src.width, kPack, kRowThreads, kUnroll, kBlocks)
             : row_grid(task.src.rows, task.src.width, kPack, kRowThreads, kUnroll, kBlocks);
  const auto operand = [&](const Rows& rows) {
    return operand_of(joined ? folded_rows(rows, grid, kPack) : rows, task.dtype, grid);
  };
  const ElementOperands operands = {operand(task.src), operand(task.other), operand(task.kept),
                                    operand(task.dst)};
  const Limits limits = {bounds_of(task.activation), closing_bound(task.activation),
                         task.activation, task.slope};
  elementwise_kernel<T, kPack, kKind, kOther>
      <<<grid.blocks(), kRowThreads, 0, stream>>>(grid, operands, limits);
}

template <typename T, bool kOther>
void start(const Elementwise& task, bool joined, Stream stream) {
  const bool backward = task.kept.data != nullptr, is_bound = is_bounded(task.activation);
  if (pack_for(task.dtype, {task.src, task.other, task.kept, task.dst}) == 1) {
    if (backward) {
      start<T, 1, Kind::backward_any, kOther>(task, joined, stream);
    } else {
      start<T, 1, Kind::any, kOther>(task, joined, stream);
    }
  } else if (backward && is_bound) {
    start<T, kFullPack<T>, Kind::backward_bounds, kOther>(task, joined, stream);
  } else if (backward) {
    start<T, kFullPack<T>, Kind::backward_any, kOther>(task, joined, stream);
  } else if (is_bound) {
    start<T, kFullPack<T>, Kind::bounds, kOther>(task, joined, stream);
  } else {
    start<T, kFullPack<T>, Kind::any, kOther>(task, joined, stream);
  }
}

}  // namespace

void launch_elementwise(const Elementwise& given, Stream stream) {
  Elementwise task = given;
  if (task.src.rows == 0 || task.src.width == 0) return;
  const bool joined = join_rows({&task.src, &task.other, &task.kept, &task.dst});
  with_element_type(task.dtype, [&](auto type) {
    using T = decltype(type);
    if (task.other.data != nullptr) {
      start<T, true>(task, joined, stream);
    } else {
      start<T, false>(task, joined, stream);
    }
  });
  check_launch("elementwise");
}

}  // namespace ridgeline::cuda
