#include "backends/cuda/elementwise/elementwise.cuh"
#include "backends/cuda/norm/layer_norm_kernels.h"
#include "backends/cuda/sums/sum_parts.h"
#include "backends/cuda/work_split.cuh"

namespace ridgeline::cuda {
namespace {

constexpr int kWarps = kRowThreads / 32;
constexpr int kResidentBlocks = 2;  // on a multiprocessor, of the gradient

// A row is shared by `lanes` threads, a power of two: lane l has packs l, l + lanes, ... The first
// `held` of them (3 or 4) are read once and stay in registers; in a row with more than those the
// others are read again whenever they are needed. A block has kRowThreads / lanes rows at a time.
struct RowLanes {
  int packs = 0, lanes = 1, held = 4;

  [[nodiscard]] __device__ __forceinline__ int rows() const { return kRowThreads / lanes; }
};

// Three packs each where that leaves no lane idle, as with 96, 192, 384 and 768 channels of 16
// bits.
RowLanes lanes_for(std::int64_t packs) {
  RowLanes row{static_cast<int>(packs), 1, 4};
  while (row.lanes < kRowThreads && row.lanes * row.held < row.packs) row.lanes *= 2;
  if (row.lanes * 3 == row.packs) row.held = 3;
  return row;
}

// Neighbouring numbers, in words of 16 bytes where there is more than one.
template <int count>
__device__ __forceinline__ void load_numbers(const float* from, float (&to)[count]) {
  if constexpr (count % 4 == 0) {
#pragma unroll
    for (int i = 0; i < count; i += 4) {
      const float4 four = *reinterpret_cast<const float4*>(from + i);
      to[i] = four.x, to[i + 1] = four.y, to[i + 2] = four.z, to[i + 3] = four.w;
    }
  } else {
#pragma unroll
    for (int i = 0; i < count; ++i) to[i] = from[i];
  }
}

// The sums over a row's lanes, for each of them. All threads of the block call this.
template <int count>
__device__ __forceinline__ void add_row(const RowLanes& row, float (&sums)[count]) {
  __shared__ float shared[kWarps][count];
  for (int offset = min(row.lanes, 32) / 2; offset > 0; offset /= 2) {
#pragma unroll
    for (int i = 0; i < count; ++i) sums[i] += __shfl_xor_sync(0xFFFFFFFFU, sums[i], offset);
  }
  if (row.lanes <= 32) return;
  const int warps = row.lanes / 32, warp = static_cast<int>(threadIdx.x) / 32;
  if (threadIdx.x % 32 == 0) {
#pragma unroll
    for (int i = 0; i < count; ++i) shared[warp][i] = sums[i];
  }
  __syncthreads();
#pragma unroll
  for (int i = 0; i < count; ++i) {
    sums[i] = 0.0F;
    for (int w = 0; w < warps; ++w) sums[i] += shared[warp / warps * warps + w][i];
  }
  __syncthreads();
}

// One thread's packs of a row.
template <typename T, int kPack, int kHeld>
struct HeldRow {
  const RowLanes& row;
  const T* data;  // null: there is no such row
  int lane;
  Packed<T, kPack> held[kHeld];

  __device__ __forceinline__ HeldRow(const RowLanes& lanes, const T* from, int own)
      : row(lanes), data(from), lane(own) {
#pragma unroll
    for (int u = 0; u < kHeld; ++u) {
      if (has(u)) held[u] = Packed<T, kPack>::load(data + (lane + u * row.lanes) * kPack);
    }
  }
  [[nodiscard]] __device__ __forceinline__ bool has(int u) const {
    return data != nullptr && lane + u * row.lanes < row.packs;
  }
  // Calls visit(pack, values) for all packs of the thread.
  template <typename Visit>
  __device__ __forceinline__ void each(Visit visit) const {
#pragma unroll
    for (int u = 0; u < kHeld; ++u) {
      if (has(u)) visit(lane + u * row.lanes, held[u]);
    }
    if (data == nullptr) return;
    for (int pack = lane + kHeld * row.lanes; pack < row.packs; pack += row.lanes) {
      visit(pack, Packed<T, kPack>::load(data + pack * kPack));
    }
  }
};

// First the mean, then the squares around it: no digits are lost however far the values lie from
// zero.
template <typename T, int kPack, int kHeld>
__global__ void __launch_bounds__(kRowThreads)
    layer_norm_kernel(const __grid_constant__ LayerNorm task,
                      const __grid_constant__ RowLanes lanes) {
  const int lane = static_cast<int>(threadIdx.x) % lanes.lanes;
  const int own_row = static_cast<int>(threadIdx.x) / lanes.lanes;
  const auto channels = static_cast<float>(task.src.width);
  for (std::int64_t first = static_cast<std::int64_t>(blockIdx.x) * lanes.rows();
       first < task.src.rows; first += static_cast<std::int64_t>(gridDim.x) * lanes.rows()) {
    const std::int64_t row = first + own_row;
    const bool there = row < task.src.rows;
    const T* const from = static_cast<const T*>(task.src.data) + row * task.src.stride;
    const HeldRow<T, kPack, kHeld> src(lanes, there ? from : nullptr, lane);
    float sum[1] = {}, squares[1] = {};
    src.each([&](int, const Packed<T, kPack>& pack) {
#pragma unroll
      for (int i = 0; i < kPack; ++i) sum[0] += pack.get(i);
    });
    add_row(lanes, sum);
    const float mean = sum[0] / channels;
    src.each([&](int, const Packed<T, kPack>& pack) {
#pragma unroll
      for (int i = 0; i < kPack; ++i) {
        const float distance = pack.get(i) - mean;
        squares[0] = fmaf(distance, distance, squares[0]);
      }
    });
    add_row(lanes, squares);
    const float inverse = 1.0F / sqrtf(squares[0] / channels + static_cast<float>(task.epsilon));
    if (there && lane == 0) {
      if (task.mean != nullptr) task.mean[row] = mean;
      if (task.inverse != nullptr) task.inverse[row] = inverse;
    }
    if (task.dst.data == nullptr) continue;
    T* const to = static_cast<T*>(task.dst.data) + row * task.dst.stride;
    src.each([&](int pack, const Packed<T, kPack>& x) {
      float values[kPack], scale[kPack], shift[kPack];
      load_numbers(task.scale + pack * kPack, scale);
      load_numbers(task.shift + pack * kPack, shift);
#pragma unroll
      for (int i = 0; i < kPack; ++i) {
        values[i] = fmaf((x.get(i) - mean) * inverse, scale[i], shift[i]);
      }
      Packed<T, kPack>::of(values).store(to + pack * kPack);
    });
  }
}

// The sums over the rows of a block, one for each channel that its threads hold: those of diff
// times the normalised src, and those of diff.
template <int kPack, int kHeld>
struct ColumnSums {
  float products[kHeld][kPack] = {}, sums[kHeld][kPack] = {};
};

// Leaves a block's share: rows of a warp are added by shuffles, then warps through shared memory,
// channel by channel. The pitch keeps both sides off each other's banks.
template <int kPack, int kHeld>
__device__ __forceinline__ void store_columns(const LayerNormBackward& task, const RowLanes& lanes,
                                              int first_pack, ColumnSums<kPack, kHeld>& columns) {
  constexpr int kPitch = 36;
  __shared__ float shared[kWarps][2 * kPack][kPitch];
  const int thread = static_cast<int>(threadIdx.x), warp = thread / 32;
  // Warps in which a lane's columns lie, and how far apart they are.
  const int apart = max(lanes.lanes / 32, 1), count = kWarps / apart;
  const int width = lanes.lanes * kPack;
#pragma unroll
  for (int u = 0; u < kHeld; ++u) {
#pragma unroll
    for (int i = 0; i < kPack; ++i) {
      float both[2] = {columns.products[u][i], columns.sums[u][i]};
      for (int offset = lanes.lanes; offset < 32; offset *= 2) {
        both[0] += __shfl_xor_sync(0xFFFFFFFFU, both[0], offset);
        both[1] += __shfl_xor_sync(0xFFFFFFFFU, both[1], offset);
      }
      shared[warp][i][thread % 32] = both[0];
      shared[warp][kPack + i][thread % 32] = both[1];
    }
    __syncthreads();
    for (int e = thread; e < 2 * width; e += kRowThreads) {
      const int half = e < width ? 0 : 1, place = e - half * width;
      const int lane = place / kPack, i = place % kPack;
      const int pack = first_pack + lane + u * lanes.lanes;
      if (pack >= lanes.packs) continue;
      float total = 0.0F;
      for (int w = 0; w < count; ++w) {
        total += shared[lane / 32 + w * apart][half * kPack + i][lane % 32];
      }
      task.workspace[(2 * static_cast<std::int64_t>(blockIdx.x) + half) * task.src.width +
                     pack * kPack + i] = total;
    }
    __syncthreads();
  }
}

// With normal = (src - mean) * inverse and g = diff * scale:
// diff_src = (g - mean of g - normal * mean of (g * normal)) * inverse.
// blockIdx.y: which kHeld * lanes packs of the rows the block writes, where a row has more of them.
template <typename T, int kPack, int kHeld>
__global__ void __launch_bounds__(kRowThreads, kResidentBlocks)
    layer_norm_backward_kernel(const __grid_constant__ LayerNormBackward task,
                               const __grid_constant__ RowLanes lanes) {
  using Elements = Packed<T, kPack>;
  const int lane = static_cast<int>(threadIdx.x) % lanes.lanes;
  const int own_row = static_cast<int>(threadIdx.x) / lanes.lanes;
  const int first_pack = static_cast<int>(blockIdx.y) * kHeld * lanes.lanes;
  const auto channels = static_cast<float>(task.src.width);
  ColumnSums<kPack, kHeld> columns;
  for (std::int64_t first = static_cast<std::int64_t>(blockIdx.x) * lanes.rows();
       first < task.src.rows; first += static_cast<std::int64_t>(gridDim.x) * lanes.rows()) {
    const std::int64_t row = first + own_row;
    const bool there = row < task.src.rows;
    const T* const diff_row = static_cast<const T*>(task.diff.data) + row * task.diff.stride;
    const T* const src_row = static_cast<const T*>(task.src.data) + row * task.src.stride;
    const auto place = [&](int u) { return first_pack + lane + u * lanes.lanes; };
    Elements diff[kHeld], src[kHeld];
#pragma unroll
    for (int u = 0; u < kHeld; ++u) {
      if (!there || place(u) >= lanes.packs) continue;
      diff[u] = Elements::load(diff_row + place(u) * kPack);
      src[u] = Elements::load(src_row + place(u) * kPack);
    }
    const float mean = there ? task.mean[row] : 0.0F, inverse = there ? task.inverse[row] : 0.0F;
    float sums[2] = {};  // of g, and of g * normal
    const auto add = [&](int pack, const Elements& d, const Elements& x) {
      float scale[kPack];
      load_numbers(task.scale + pack * kPack, scale);
#pragma unroll
      for (int i = 0; i < kPack; ++i) {
        const float g = d.get(i) * scale[i];
        sums[0] += g;
        sums[1] = fmaf(g, (x.get(i) - mean) * inverse, sums[1]);
      }
    };
#pragma unroll
    for (int u = 0; u < kHeld; ++u) {
      if (!there || place(u) >= lanes.packs) continue;
      add(place(u), diff[u], src[u]);
#pragma unroll
      for (int i = 0; i < kPack; ++i) {
        columns.sums[u][i] += diff[u].get(i);
        columns.products[u][i] =
            fmaf(diff[u].get(i), (src[u].get(i) - mean) * inverse, columns.products[u][i]);
      }
    }
    if (task.diff_src.data == nullptr) continue;
    // What other blocks hold of the row.
    for (int pack = lane; there && pack < lanes.packs; pack += lanes.lanes) {
      if (pack >= first_pack && pack < first_pack + kHeld * lanes.lanes) continue;
      add(pack, Elements::load(diff_row + pack * kPack), Elements::load(src_row + pack * kPack));
    }
    add_row(lanes, sums);
    sums[0] /= channels, sums[1] /= channels;
    T* const to = static_cast<T*>(task.diff_src.data) + row * task.diff_src.stride;
#pragma unroll
    for (int u = 0; u < kHeld; ++u) {
      if (!there || place(u) >= lanes.packs) continue;
      float values[kPack], scale[kPack];
      load_numbers(task.scale + place(u) * kPack, scale);
#pragma unroll
      for (int i = 0; i < kPack; ++i) {
        const float g = diff[u].get(i) * scale[i];
        const float normal = (src[u].get(i) - mean) * inverse;
        values[i] = (g - fmaf(normal, sums[1], sums[0])) * inverse;
      }
      Elements::of(values).store(to + place(u) * kPack);
    }
  }
  if (task.diff_scale != nullptr || task.diff_shift != nullptr) {
    store_columns(task, lanes, first_pack, columns);
  }
}

// Blocks that run at the same time.
std::int64_t resident_blocks() {
  return std::int64_t{kResidentBlocks} * device_limits().multiprocessors;
}

template <typename T, int kPack, int kHeld>
void start(const LayerNorm& task, const RowLanes& lanes, Stream stream) {
  const std::int64_t wanted = ceil_div(task.src.rows, kRowThreads / lanes.lanes);
  const auto blocks = static_cast<unsigned>(std::min(wanted, 4 * resident_blocks()));
  layer_norm_kernel<T, kPack, kHeld><<<blocks, kRowThreads, 0, stream>>>(task, lanes);
  check_launch("layer_norm");
}

template <typename T, int kPack, int kHeld>
void start(const LayerNormBackward& task, const RowLanes& lanes, Stream stream) {
  const std::int64_t wanted = ceil_div(task.src.rows, kRowThreads / lanes.lanes);
  const auto blocks = static_cast<unsigned>(std::min(wanted, resident_blocks()));
  const auto pieces = static_cast<unsigned>(ceil_div(lanes.packs, kHeld * lanes.lanes));
  layer_norm_backward_kernel<T, kPack, kHeld>
      <<<dim3(blocks, pieces), kRowThreads, 0, stream>>>(task, lanes);
  check_launch("layer_norm_backward");
  add_norm_parts(task, static_cast<int>(blocks), stream);
}

// `numbers`: those of each channel, which are read in words of 16 bytes.
template <typename Task>
void launch(const Task& task, int pack, std::initializer_list<const float*> numbers,
            Stream stream) {
  const bool aligned = std::all_of(numbers.begin(), numbers.end(), [](const float* first) {
    return reinterpret_cast<std::uintptr_t>(first) % 16 == 0;
  });
  with_element_type(task.dtype, [&](auto type) {
    using T = decltype(type);
    if (pack == 1 || !aligned) return start<T, 1, 4>(task, lanes_for(task.src.width), stream);
    const RowLanes lanes = lanes_for(task.src.width / kFullPack<T>);
    if (lanes.held == 3) return start<T, kFullPack<T>, 3>(task, lanes, stream);
    start<T, kFullPack<T>, 4>(task, lanes, stream);
  });
}

}  // namespace

std::size_t layer_norm_bytes(std::int64_t channels) {
  return static_cast<std::size_t>((2 * resident_blocks() + 1) * channels) * sizeof(float);
}

// Both sums are rows of one result, wherever they lie; what is not wanted goes behind the parts.
void add_norm_parts(const LayerNormBackward& task, int parts, Stream stream) {
  if (task.diff_scale == nullptr && task.diff_shift == nullptr) return;
  const std::int64_t channels = task.src.width;
  float* const spare = task.workspace + 2 * parts * channels;
  float* const scale = task.diff_scale != nullptr ? task.diff_scale : spare;
  float* const shift = task.diff_shift != nullptr ? task.diff_shift : spare;
  launch_sum_parts({task.workspace, parts, {scale, 2, channels, shift - scale}}, stream);
}

void launch_layer_norm(const LayerNorm& task, Stream stream) {
  launch(task, pack_for(task.dtype, {task.src, task.dst}), {task.scale, task.shift}, stream);
}

void launch_layer_norm_backward(const LayerNormBackward& task, Stream stream) {
  launch(task, pack_for(task.dtype, {task.diff, task.src, task.diff_src}), {task.scale}, stream);
}

}  // namespace ridgeline::cuda
