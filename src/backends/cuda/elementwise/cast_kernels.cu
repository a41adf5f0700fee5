#include "backends/cuda/elementwise/cast_kernels.h"
#include "backends/cuda/elementwise/elementwise.cuh"

namespace ridgeline::cuda {
namespace {

constexpr int kBlocks = 4;  // on a multiprocessor at a time
constexpr int kCastPack = 4, kCastUnroll = 4;

template <typename From, typename To, int kPack>
__global__ void __launch_bounds__(kRowThreads, kBlocks)
    cast_kernel(const __grid_constant__ ChannelGrid grid, const __grid_constant__ RowOperand from,
                const __grid_constant__ RowOperand to) {
  const GridThread thread(grid);
  if (!thread.active) return;
  Cursor<From, kPack> src(from, grid, thread, thread.part);
  Cursor<To, kPack> dst(to, grid, thread, thread.part);
  for (int tile = thread.part; tile < grid.tiles; tile += grid.parts) {
    for_tile(grid, tile, [&](auto full) {
      Pack<From, kPack> packs[kCastUnroll];
#pragma unroll
      for (int u = 0; u < kCastUnroll; ++u) {
        if (full || thread.inside(grid, tile, u)) packs[u] = load<From, kPack>(src.row(from, u));
      }
#pragma unroll
      for (int u = 0; u < kCastUnroll; ++u) {
        if (!full && !thread.inside(grid, tile, u)) continue;
        Pack<To, kPack> result;
#pragma unroll
        for (int i = 0; i < kPack; ++i) result.set(i, packs[u].get(i));
        store(dst.row(to, u), result);
      }
    });
    src.next_tile(from);
    dst.next_tile(to);
  }
}

template <typename From, typename To, int kPack>
void start_cast(const Cast& task, bool joined, Stream stream) {
  const ChannelGrid grid =
      joined ? element_grid(task.src.width, kPack, kRowThreads, kCastUnroll, kBlocks)
             : row_grid(task.src.rows, task.src.width, kPack, kRowThreads, kCastUnroll, kBlocks);
  const auto operand = [&](const Rows& rows, DType dtype) {
    return operand_of(joined ? folded_rows(rows, grid, kPack) : rows, dtype, grid);
  };
  cast_kernel<From, To, kPack><<<grid.blocks(), kRowThreads, 0, stream>>>(
      grid, operand(task.src, task.from), operand(task.dst, task.to));
}

// Whether rows can be walked in packs of kCastPack elements.
bool takes_packs(const Rows& rows, DType dtype) {
  const std::size_t bytes = kCastPack * size_of(dtype);
  return reinterpret_cast<std::uintptr_t>(rows.data) % bytes == 0 && rows.width % kCastPack == 0 &&
         (rows.rows <= 1 || rows.stride % kCastPack == 0);
}

// A block's share of the weights: about kChunk elements.
constexpr int kChunk = 4096;
static_assert(kMostTaps <= kChunk);

// The chunks of one tensor: some whole filters each, or of a filter with very many weights some of
// the channels.
struct WeightChunks {
  WeightCast cast;
  std::int32_t first_chunk;      // among the chunks of all tensors
  std::int32_t pieces;           // of a filter
  std::int32_t piece_channels;   // of all but perhaps the last piece
  std::int32_t filters_a_chunk;  // 1 where a filter is cut
};

struct WeightCasts {
  WeightChunks entries[kMostWeightCasts];
  std::int32_t count;
};
static_assert(sizeof(WeightCasts) <= 4000);

WeightChunks chunks_of(const WeightCast& cast) {
  WeightChunks chunks{cast, 0, 1, cast.channels, 1};
  const std::int64_t filter = std::int64_t{cast.channels} * cast.taps;
  if (filter <= kChunk) {
    chunks.filters_a_chunk = static_cast<std::int32_t>(kChunk / filter);
  } else {
    // A multiple of 8 channels, so that pieces begin at packs.
    const auto pieces = static_cast<std::int32_t>((filter + kChunk - 1) / kChunk);
    const std::int32_t most = std::max(1, kChunk / cast.taps);
    const std::int32_t even = ((cast.channels + pieces - 1) / pieces + 7) / 8 * 8;
    chunks.piece_channels = even <= most ? even : most;
    chunks.pieces = (cast.channels + chunks.piece_channels - 1) / chunks.piece_channels;
  }
  return chunks;
}

std::int32_t chunk_count(const WeightChunks& chunks) {
  if (chunks.pieces > 1) return static_cast<std::int32_t>(chunks.cast.filters * chunks.pieces);
  const std::int64_t filters = chunks.filters_a_chunk;
  return static_cast<std::int32_t>((chunks.cast.filters + filters - 1) / filters);
}

// The entry that a chunk belongs to: the last that begins at or before it.
__device__ __forceinline__ const WeightChunks& entry_of(const WeightCasts& casts, int chunk) {
  int low = 0, high = casts.count - 1;
  while (low < high) {
    const int middle = (low + high + 1) / 2;
    if (casts.entries[middle].first_chunk <= chunk) {
      low = middle;
    } else {
      high = middle - 1;
    }
  }
  return casts.entries[low];
}

// Four elements a thread at a time where both sides allow it; the last few one by one.
template <typename T>
__device__ __forceinline__ void cast_run(const float* src, T* dst, int count) {
  const bool packs = reinterpret_cast<std::uintptr_t>(src) % 16 == 0 &&
                     reinterpret_cast<std::uintptr_t>(dst) % (4 * sizeof(T)) == 0;
  const int packed = packs ? count / 4 * 4 : 0, thread = static_cast<int>(threadIdx.x);
#pragma unroll 4
  for (int i = 4 * thread; i < packed; i += 4 * kRowThreads) {
    const Pack<float, 4> from = load<float, 4>(src + i);
    Pack<T, 4> to;
#pragma unroll
    for (int j = 0; j < 4; ++j) to.set(j, from.get(j));
    store(dst + i, to);
  }
  for (int i = packed + thread; i < count; i += kRowThreads) dst[i] = from_float<T>(src[i]);
}

__device__ __forceinline__ void load_run(const float* src, float* shared, int count) {
  const bool packs = reinterpret_cast<std::uintptr_t>(src) % 16 == 0;
  const int packed = packs ? count / 4 * 4 : 0, thread = static_cast<int>(threadIdx.x);
#pragma unroll 4
  for (int i = 4 * thread; i < packed; i += 4 * kRowThreads) {
    store(shared + i, load<float, 4>(src + i));
  }
  for (int i = packed + thread; i < count; i += kRowThreads) shared[i] = src[i];
}

// From filters x channels x taps in shared memory to filters x taps x channels, of which there are
// `stride` in a whole filter. kPack channels a thread at a time.
template <typename T, int kPack>
__device__ __forceinline__ void store_turned(const float* shared, T* dst, int filters, int channels,
                                             int taps, int stride) {
  const int row = channels / kPack, count = filters * taps * row;
  for (int i = static_cast<int>(threadIdx.x); i < count; i += kRowThreads) {
    const int c = i % row * kPack, t = i / row % taps, k = i / row / taps;
    const float* from = shared + (k * channels + c) * taps + t;
    Pack<T, kPack> pack;
#pragma unroll
    for (int j = 0; j < kPack; ++j) pack.set(j, from[j * taps]);
    store(dst + (static_cast<std::int64_t>(k) * taps + t) * stride + c, pack);
  }
}

template <typename T>
__global__ void __launch_bounds__(kRowThreads)
    weight_casts_kernel(const __grid_constant__ WeightCasts casts) {
  __shared__ alignas(16) float shared[kChunk];
  const int chunk = static_cast<int>(blockIdx.x);
  const WeightChunks& entry = entry_of(casts, chunk);
  const int own = chunk - entry.first_chunk, channels = entry.cast.channels, taps = entry.cast.taps;
  const int first_channel = own % entry.pieces * entry.piece_channels;
  const int some = min(entry.piece_channels, channels - first_channel);
  const std::int64_t filter = static_cast<std::int64_t>(own / entry.pieces) * entry.filters_a_chunk;
  const auto filters = static_cast<int>(
      min(static_cast<std::int64_t>(entry.filters_a_chunk), entry.cast.filters - filter));
  const std::int64_t start = filter * channels * taps;
  const float* src = entry.cast.src + start + static_cast<std::int64_t>(first_channel) * taps;
  T* dst = static_cast<T*>(entry.cast.dst) + start + first_channel;
  const int count = filters * some * taps;
  if (taps == 1) {
    cast_run(src, dst, count);
    return;
  }
  load_run(src, shared, count);
  __syncthreads();
  const bool pairs = some % 2 == 0 && channels % 2 == 0 && first_channel % 2 == 0 &&
                     reinterpret_cast<std::uintptr_t>(entry.cast.dst) % (2 * sizeof(T)) == 0;
  if (pairs) {
    store_turned<T, 2>(shared, dst, filters, some, taps, channels);
  } else {
    store_turned<T, 1>(shared, dst, filters, some, taps, channels);
  }
}

}  // namespace

void launch_cast(const Cast& given, Stream stream) {
  Cast task = given;
  if (task.src.rows == 0 || task.src.width == 0) return;
  const bool joined = join_rows({&task.src, &task.dst});
  with_element_type(task.from, [&](auto from) {
    with_element_type(task.to, [&](auto to) {
      if (takes_packs(task.src, task.from) && takes_packs(task.dst, task.to)) {
        start_cast<decltype(from), decltype(to), kCastPack>(task, joined, stream);
      } else {
        start_cast<decltype(from), decltype(to), 1>(task, joined, stream);
      }
    });
  });
  check_launch("cast");
}

void launch_weight_casts(const WeightCast* casts, int count, DType to, Stream stream) {
  WeightCasts list{};
  std::int32_t chunks = 0;
  for (int i = 0; i < count; ++i) {
    WeightChunks& entry = list.entries[list.count++];
    entry = chunks_of(casts[i]);
    entry.first_chunk = chunks;
    chunks += chunk_count(entry);
  }
  if (chunks == 0) return;
  if (to == DType::bf16) {
    weight_casts_kernel<bf16><<<chunks, kRowThreads, 0, stream>>>(list);
  } else {
    weight_casts_kernel<f16><<<chunks, kRowThreads, 0, stream>>>(list);
  }
  check_launch("weight_casts");
}

}  // namespace ridgeline::cuda
