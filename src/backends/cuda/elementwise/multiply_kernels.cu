#include "backends/cuda/elementwise/elementwise.cuh"
#include "backends/cuda/elementwise/multiply_kernels.h"
#include "backends/cuda/work_split.cuh"

namespace ridgeline::cuda {
namespace {

constexpr int kBlocks = 4;  // on a multiprocessor at a time
constexpr int kUnroll = 4;

struct MultiplyOperands {
  RowOperand src, factor, dst;
};

// Where a thread finds the factors of its rows.
template <typename T, int kPack, bool kShared>
class Factors {
 public:
  __device__ __forceinline__ Factors(const RowOperand& operand, const ChannelGrid& grid,
                                     const GridThread& thread)
      : operand_(operand), cursor_(operand, grid, thread, kShared ? 0 : thread.part) {
    if constexpr (kShared) cursor_.at -= thread.row * operand.stride;
  }

  // `row`: of all.
  [[nodiscard]] __device__ __forceinline__ Packed<T, kPack> load(const Divider& sharing,
                                                                 std::int64_t row, int u) const {
    if constexpr (!kShared) return Packed<T, kPack>::load(cursor_.row(operand_, u));
    const std::uint32_t of = sharing.quotient(static_cast<std::uint32_t>(row));
    return Packed<T, kPack>::load(reinterpret_cast<const T*>(cursor_.at + of * operand_.stride));
  }
  __device__ __forceinline__ void next_tile() {
    if constexpr (!kShared) cursor_.next_tile(operand_);
  }

 private:
  const RowOperand& operand_;
  Cursor<T, kPack> cursor_;
};

template <typename T, int kPack, bool kShared>
__global__ void __launch_bounds__(kRowThreads, kBlocks)
    multiply_kernel(const __grid_constant__ ChannelGrid grid,
                    const __grid_constant__ MultiplyOperands operands, const Divider sharing) {
  using Elements = Packed<T, kPack>;
  const GridThread thread(grid);
  if (!thread.active) return;
  Cursor<T, kPack> src(operands.src, grid, thread, thread.part);
  Cursor<T, kPack> dst(operands.dst, grid, thread, thread.part);
  Factors<T, kPack, kShared> factors(operands.factor, grid, thread);
  for (int tile = thread.part; tile < grid.tiles; tile += grid.parts) {
    const std::int64_t first = static_cast<std::int64_t>(tile) * grid.tile_rows() + thread.row;
    for_tile(grid, tile, [&](auto full) {
      Elements loaded[kUnroll], factor[kUnroll];
#pragma unroll
      for (int u = 0; u < kUnroll; ++u) {
        if (!full && !thread.inside(grid, tile, u)) continue;
        loaded[u] = Elements::load_once(src.row(operands.src, u));
        factor[u] = factors.load(sharing, first + u * grid.thread_rows, u);
      }
#pragma unroll
      for (int u = 0; u < kUnroll; ++u) {
        if (!full && !thread.inside(grid, tile, u)) continue;
        float values[kPack];
#pragma unroll
        for (int i = 0; i < kPack; ++i) values[i] = loaded[u].get(i) * factor[u].get(i);
        Elements::of(values).store(dst.row(operands.dst, u));
      }
    });
    src.next_tile(operands.src);
    dst.next_tile(operands.dst);
    factors.next_tile();
  }
}

template <typename T, int kPack, bool kShared>
void start(const Multiply& task, bool joined, Stream stream) {
  const ChannelGrid grid =
      joined ? element_grid(task.src.width, kPack, kRowThreads, kUnroll, kBlocks)
             : row_grid(task.src.rows, task.src.width, kPack, kRowThreads, kUnroll, kBlocks);
  const auto operand = [&](const Rows& rows) {
    return operand_of(joined ? folded_rows(rows, grid, kPack) : rows, task.dtype, grid);
  };
  const MultiplyOperands operands = {operand(task.src), operand(task.factor), operand(task.dst)};
  multiply_kernel<T, kPack, kShared>
      <<<grid.blocks(), kRowThreads, 0, stream>>>(grid, operands, Divider(task.rows_of_factor));
}

}  // namespace

void launch_multiply(const Multiply& given, Stream stream) {
  Multiply task = given;
  if (task.src.rows == 0 || task.src.width == 0) return;
  const bool shared = task.rows_of_factor > 1;
  const bool joined = !shared && join_rows({&task.src, &task.factor, &task.dst});
  const bool packs = pack_for(task.dtype, {task.src, task.factor, task.dst}) > 1;
  with_element_type(task.dtype, [&](auto type) {
    using T = decltype(type);
    if (packs && shared) {
      start<T, kFullPack<T>, true>(task, joined, stream);
    } else if (packs) {
      start<T, kFullPack<T>, false>(task, joined, stream);
    } else if (shared) {
      start<T, 1, true>(task, joined, stream);
    } else {
      start<T, 1, false>(task, joined, stream);
    }
  });
  check_launch("multiply");
}

}  // namespace ridgeline::cuda
