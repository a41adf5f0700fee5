#pragma once

// The matrix product inside every convolution. A block computes one tile of the product. It walks
// along the depth in slices of 128 bytes: copies bring slices of both operands to shared memory, a
// few slices ahead of the products, and each product reads them back into registers. Which element
// lies where in global memory is the loaders' business (conv_gather.cuh, conv_weights.cuh).

#include <type_traits>

#include "backends/cuda/conv/conv_instructions.cuh"

namespace ridgeline::cuda::conv {

inline constexpr int kSliceBytes = 128;  // of an operand's row
inline constexpr int kSteps = 4;         // in which tensor cores use a slice, 32 bytes each
inline constexpr int kParts = 2;         // in which a slice is loaded, early in the one before

// Tiles: rows and columns of a block and of a warp on tensor cores; blocks that share a
// multiprocessor, at least; slices in shared memory where copies are asynchronous. Registers bound
// the blocks. Where they make enough warps to wait for copies, two slices do, and leave the
// first-level cache room for what neighbouring taps read again.
struct WideTile {
  static constexpr int kM = 128, kN = 128, kWarpM = 64, kWarpN = 64, kBlocks = 2, kStages = 3;
};
struct HighTile {
  static constexpr int kM = 256, kN = 64, kWarpM = 64, kWarpN = 64, kBlocks = 2, kStages = 2;
};
struct TallTile {
  static constexpr int kM = 128, kN = 64, kWarpM = 64, kWarpN = 32, kBlocks = 3, kStages = 2;
};
struct FlatTile {
  static constexpr int kM = 64, kN = 128, kWarpM = 32, kWarpN = 64, kBlocks = 3, kStages = 2;
};
struct NarrowTile {
  static constexpr int kM = 128, kN = 32, kWarpM = 32, kWarpN = 32, kBlocks = 3, kStages = 2;
};
struct SmallTile {
  static constexpr int kM = 64, kN = 64, kWarpM = 32, kWarpN = 32, kBlocks = 4, kStages = 3;
};
// For elements: their copies are mostly plain ones.
struct SmallElementTile {
  static constexpr int kM = 64, kN = 64, kWarpM = 32, kWarpN = 32, kBlocks = 4, kStages = 2;
};

// What computes the products of a block, and how the operands are loaded.
enum class Unit { tensor, single };   // tensor cores; one multiply-add after the other
enum class Load { packs, elements };  // 16 bytes at a time; one element

template <typename T, class Tile, Unit unit, Load load_a, Load load_b>
struct Config : Tile {
  using Element = T;
  using Tile::kM, Tile::kN, Tile::kWarpM, Tile::kWarpN, Tile::kStages;
  static constexpr bool kTensor = unit == Unit::tensor;
  static constexpr bool kPacksA = load_a == Load::packs, kPacksB = load_b == Load::packs;
  static constexpr int kThreads = kTensor ? 32 * (kM / kWarpM) * (kN / kWarpN) : kM * kN / 64;
  static constexpr int kPack = 16 / static_cast<int>(sizeof(T));            // elements of 16 bytes
  static constexpr int kDepth = kSliceBytes / static_cast<int>(sizeof(T));  // elements of a slice
  static constexpr int kBytesA = kM * kSliceBytes, kBytesB = kN * kSliceBytes;
  static constexpr int kStageBytes = kBytesA + kBytesB;
  // Shared memory of a block, in bytes.
  static constexpr int shared_bytes(bool asynchronous) {
    return (asynchronous ? kStages : 2) * kStageBytes;
  }
  static constexpr int kStagedPitch = kN + 8;  // of the finished tile, in elements
  static_assert(kM * kStagedPitch * 4 <= kStages * kStageBytes);
};

// How a slice of one operand lies in shared memory: lines of 16-byte chunks. k_inner: a line is one
// row (column) of the operand, along the depth; else a line is one position of the depth, across
// the rows (columns). Chunks are permuted within their line so that the eight rows of a matrix that
// are loaded together lie in different banks, whatever the line's length.
template <typename T, int extent, bool k_inner>
struct SliceLayout {
  static constexpr int kPack = 16 / static_cast<int>(sizeof(T));
  static constexpr int kLines = k_inner ? extent : kSliceBytes / static_cast<int>(sizeof(T));
  static constexpr int kChunks = k_inner ? kSliceBytes / 16 : extent / kPack;  // of a line

  static __device__ __forceinline__ int place(int line, int chunk) {
    if constexpr (!k_inner && sizeof(T) == 4) {
      return chunk ^ ((line & 3) << 1);  // single words of four lines, two chunks wide
    } else if constexpr (kChunks >= 8) {
      return chunk ^ (line & 7);
    } else {
      static_assert(kChunks == 4);
      return chunk ^ ((line >> 1) & 3);
    }
  }
  // In bytes.
  static __device__ __forceinline__ int chunk(int line, int index) {
    return (line * kChunks + place(line, index)) * 16;
  }
  static __device__ __forceinline__ int element(int line, int index) {
    return chunk(line, index / kPack) + index % kPack * static_cast<int>(sizeof(T));
  }
};

template <typename T>
struct Source {
  const T* address;
  bool inside;
};

inline constexpr int kBatch = 8;  // elements loaded at once

// Copies a batch of elements from source(i) to place(i): all loads are on their way before the
// first is needed. f32 goes straight to shared memory.
template <typename T, typename From, typename Place>
__device__ __forceinline__ void copy_elements(From&& source, Place&& place) {
  if constexpr (sizeof(T) == 4) {
#pragma unroll
    for (int i = 0; i < kBatch; ++i) {
      const Source<T> from = source(i);
      copy_word(place(i), from.address, from.inside);
    }
  } else {
    T values[kBatch];
#pragma unroll
    for (int i = 0; i < kBatch; ++i) {
      const Source<T> from = source(i);
      values[i] = from.inside ? __ldg(from.address) : from_float<T>(0.0F);
    }
#pragma unroll
    for (int i = 0; i < kBatch; ++i) *reinterpret_cast<T*>(place(i)) = values[i];
  }
}

// What becomes of a sum while it is in a register: a bias is added, and bounds are kept.
struct Bounds {
  const float* bias = nullptr;  // of the tile's first column
  int columns = 0;              // of the tile that exist
  float low = -INFINITY, high = INFINITY;

  __device__ __forceinline__ float bias_of(int column) const {
    return bias != nullptr && column < columns ? bias[column] : 0.0F;
  }
  // Comparisons keep what is not a number.
  __device__ __forceinline__ float apply(float sum) const {
    if (sum < low) return low;
    return sum > high ? high : sum;
  }
};

// Where a lane finds its part of an operand in a slice. The chunk that it reads for the e-th pair
// of chunks is (2 e + its own bits) with the swizzle's bits flipped: its own bits and the swizzle
// are the same for all e, so one exclusive or with a constant finds the place.
template <class Layout>
struct LanePlace {
  int origin, flipped;  // in bytes

  // The lane reads chunk `chunk` and those 2, 4, ... after it; chunk / 2 * 2 and 2 e have no bit in
  // common below 8.
  __device__ __forceinline__ LanePlace(int line, int chunk)
      : origin((line * Layout::kChunks + (chunk & ~7)) * 16),
        flipped(Layout::place(line, chunk & 7) * 16) {}

  __device__ __forceinline__ int pair(int e) const {
    return origin + (2 * e & ~7) * 16 + (flipped ^ ((2 * e & 7) * 16));
  }
};

// A warp computes kWarpM x kWarpN of the tile with products of 16 x 8, in four steps a slice.
template <class C, bool a_inner, bool b_inner>
struct TensorProduct {
  using T = typename C::Element;
  using LayoutA = SliceLayout<T, C::kM, a_inner>;
  using LayoutB = SliceLayout<T, C::kN, b_inner>;
  static constexpr bool kWords = sizeof(T) == 4;
  static constexpr int kRows = C::kWarpM / 16, kColumns = C::kWarpN / 8;
  static constexpr int kStepLines = 32 / static_cast<int>(sizeof(T));  // positions of the depth
  static_assert(C::kWarpM % 16 == 0 && C::kWarpN % 16 == 0);

  struct Operands {
    unsigned a[kRows][4], b[kColumns][2];
  };

  float sums[kRows][kColumns][4] = {};
  const int lane = static_cast<int>(threadIdx.x) % 32;
  const int row = static_cast<int>(threadIdx.x) / 32 / (C::kN / C::kWarpN) * C::kWarpM;
  const int column = static_cast<int>(threadIdx.x) / 32 % (C::kN / C::kWarpN) * C::kWarpN;
  const LanePlace<LayoutA> place_a = a_place(lane, row);
  const LanePlace<LayoutB> place_b = b_place(lane, column);

  // Calls between(part) for each part, early.
  template <typename Between>
  __device__ __forceinline__ void add_slice(const unsigned char* a, const unsigned char* b,
                                            Between&& between) {
    Operands operands[2];
    load_a(operands[0], a, 0);
    load_b(operands[0], b, 0);
#pragma unroll
    for (int step = 0; step < kSteps; ++step) {
      if (step + 1 < kSteps) {
        load_a(operands[(step + 1) % 2], a, step + 1);
        load_b(operands[(step + 1) % 2], b, step + 1);
      }
      if (step < kParts) between(step);
      Operands& now = operands[step % 2];
#pragma unroll
      for (int i = 0; i < kRows; ++i) {
#pragma unroll
        for (int j = 0; j < kColumns; ++j) multiply_add<T>(sums[i][j], now.a[i], now.b[j]);
      }
    }
  }

  // Writes the tile to shared memory, in rows of C::kStagedPitch.
  template <typename Out>
  __device__ __forceinline__ void stage(Out* staged, const Bounds& bounds) const {
#pragma unroll
    for (int j = 0; j < kColumns; ++j) {
      const int first = column + 8 * j + lane % 4 * 2;
      const float bias[2] = {bounds.bias_of(first), bounds.bias_of(first + 1)};
#pragma unroll
      for (int i = 0; i < kRows; ++i) {
#pragma unroll
        for (int half = 0; half < 2; ++half) {
          Pack<Out, 2> pair;
          pair.set(0, bounds.apply(sums[i][j][2 * half] + bias[0]));
          pair.set(1, bounds.apply(sums[i][j][2 * half + 1] + bias[1]));
          store(staged + (row + 16 * i + lane / 4 + 8 * half) * C::kStagedPitch + first, pair);
        }
      }
    }
  }

 private:
  // Word w of a is of row lane / 4 + w % 2 * 8, from byte lane % 4 * 4 + w / 2 * 16 of the step on;
  // word w of b of column lane / 4, from byte lane % 4 * 4 + w * 16 on. Matrix loads bring them
  // along when lanes 8 i to 8 i + 7 point to the lines of matrix i. Operands of four bytes that lie
  // across the depth are loaded word by word.
  static __device__ __forceinline__ LanePlace<LayoutA> a_place(int lane, int row) {
    if constexpr (a_inner) return {row + lane % 16, lane / 16};
    if constexpr (kWords) return {lane % 4, row / 4 + lane / 16};
    return {lane % 8 + lane / 16 * 8, row / 8 + lane / 8 % 2};
  }
  static __device__ __forceinline__ LanePlace<LayoutB> b_place(int lane, int column) {
    if constexpr (b_inner) return {column + lane % 8 + lane / 16 * 8, lane / 8 % 2};
    if constexpr (kWords) return {lane % 4, column / 4 + lane / 16};
    return {lane % 16, column / 8 + lane / 16};
  }

  __device__ __forceinline__ void load_a(Operands& operands, const unsigned char* a, int step) {
    const unsigned char* from = a + (a_inner ? 0 : step * kStepLines * LayoutA::kChunks * 16);
#pragma unroll
    for (int i = 0; i < kRows; ++i) {
      unsigned(&words)[4] = operands.a[i];
      if constexpr (a_inner) {
        load_matrices(words, from + i * 16 * kSliceBytes + place_a.pair(step));
      } else if constexpr (kWords) {
#pragma unroll
        for (int w = 0; w < 4; ++w) {
          words[w] =
              *reinterpret_cast<const unsigned*>(from + w / 2 * 4 * LayoutA::kChunks * 16 +
                                                 place_a.pair(2 * i + w % 2) + lane / 4 % 4 * 4);
        }
      } else {
        load_transposed(words, from + place_a.pair(i));
      }
      if constexpr (kWords) {
#pragma unroll
        for (int w = 0; w < 4; ++w) round_to_tf32(words[w]);
      }
    }
  }

  __device__ __forceinline__ void load_b(Operands& operands, const unsigned char* b, int step) {
    const unsigned char* from = b + (b_inner ? 0 : step * kStepLines * LayoutB::kChunks * 16);
#pragma unroll
    for (int j = 0; j < kColumns; j += 2) {
      unsigned words[4];  // of columns j and j + 1
      if constexpr (b_inner) {
        load_matrices(words, from + j * 8 * kSliceBytes + place_b.pair(step));
      } else if constexpr (kWords) {
#pragma unroll
        for (int w = 0; w < 4; ++w) {
          words[w] = *reinterpret_cast<const unsigned*>(from + w % 2 * 4 * LayoutB::kChunks * 16 +
                                                        place_b.pair(j + w / 2) + lane / 4 % 4 * 4);
        }
      } else {
        load_transposed(words, from + place_b.pair(j / 2));
      }
#pragma unroll
      for (int w = 0; w < 4; ++w) {
        if constexpr (kWords) round_to_tf32(words[w]);
        operands.b[j + w / 2][w % 2] = words[w];
      }
    }
  }
};

// A thread computes 8 x 8 of the tile. Its rows (columns) are spread so that neighbouring threads
// read neighbouring places.
template <class C, bool a_inner, bool b_inner>
struct SingleProduct {
  using LayoutA = SliceLayout<float, C::kM, a_inner>;
  using LayoutB = SliceLayout<float, C::kN, b_inner>;
  static constexpr int kChunks = kSliceBytes / 16;

  float sums[8][8] = {};
  const int row = static_cast<int>(threadIdx.x) % (C::kM / 8);
  const int column = static_cast<int>(threadIdx.x) / (C::kM / 8);

  template <typename Between>
  __device__ __forceinline__ void add_slice(const unsigned char* a, const unsigned char* b,
                                            Between&& between) {
#pragma unroll
    for (int chunk = 0; chunk < kChunks; ++chunk) {
      if (chunk < kParts) between(chunk);
      float of_a[8][4], of_b[8][4];
      load<LayoutA, C::kM, a_inner>(of_a, a, row, chunk);
      load<LayoutB, C::kN, b_inner>(of_b, b, column, chunk);
#pragma unroll
      for (int k = 0; k < 4; ++k) {
#pragma unroll
        for (int i = 0; i < 8; ++i) {
#pragma unroll
          for (int j = 0; j < 8; ++j) sums[i][j] = fmaf(of_a[i][k], of_b[j][k], sums[i][j]);
        }
      }
    }
  }

  __device__ __forceinline__ void stage(float* staged, const Bounds& bounds) const {
#pragma unroll
    for (int j = 0; j < 8; ++j) {
      const int to = position<C::kN, b_inner>(column, j);
      const float bias = bounds.bias_of(to);
#pragma unroll
      for (int i = 0; i < 8; ++i) {
        staged[position<C::kM, a_inner>(row, i) * C::kStagedPitch + to] =
            bounds.apply(sums[i][j] + bias);
      }
    }
  }

 private:
  // The tile's row (column) that is number i of a thread's.
  template <int extent, bool k_inner>
  static __device__ __forceinline__ int position(int thread, int i) {
    if constexpr (k_inner) return thread + extent / 8 * i;
    return i / 4 * (extent / 2) + 4 * thread + i % 4;
  }

  // Four positions of the depth.
  template <class Layout, int extent, bool k_inner>
  static __device__ __forceinline__ void load(float (&values)[8][4], const unsigned char* slice,
                                              int thread, int chunk) {
#pragma unroll
    for (int i = 0; i < 8; ++i) {
      if constexpr (k_inner) {
        const auto pack = *reinterpret_cast<const float4*>(
            slice + Layout::chunk(position<extent, true>(thread, i), chunk));
        values[i][0] = pack.x, values[i][1] = pack.y, values[i][2] = pack.z, values[i][3] = pack.w;
      } else {
        const int k = i % 4, half = i / 4;
        const auto pack = *reinterpret_cast<const float4*>(
            slice + Layout::chunk(4 * chunk + k, half * (extent / 8) + thread));
        values[4 * half][k] = pack.x, values[4 * half + 1][k] = pack.y;
        values[4 * half + 2][k] = pack.z, values[4 * half + 3][k] = pack.w;
      }
    }
  }
};

// Adds `count` slices from number `first` on. While slice t is used, slice t + stages - 1 is on its
// way. A loader has prepare(slice): what all threads then need to load that slice, one slice
// earlier; seek(slice): the thread's own part of that; load(part, place).
template <class C, class Loader, class Product>
__device__ __forceinline__ void add_slices(Loader& loader, Product& product, unsigned char* shared,
                                           int first, int count) {
  const int stages = stages_of<C::kStages>(), ahead = stages - 1;
  for (int t = 0; t < ahead; ++t) {
    if (t < count) {
      loader.prepare(first + t);
      loader.seek(first + t);
#pragma unroll
      for (int part = 0; part < kParts; ++part) loader.load(part, shared + t * C::kStageBytes);
    }
    commit_copies();
  }
  if (ahead < count) loader.prepare_next(first + ahead);
  int reading = 0, writing = ahead;
  for (int t = 0; t < count; ++t) {
    wait_for_copies<C::kStages - 2>();
    // Slice t is there for all threads, and none reads slice t - 1 any more.
    __syncthreads();
    const bool more = t + ahead < count;
    if (more) loader.seek(first + t + ahead);
    const unsigned char* a = shared + reading * C::kStageBytes;
    unsigned char* next = shared + writing * C::kStageBytes;
    product.add_slice(a, a + C::kBytesA, [&](int part) {
      if (more) loader.load(part, next);
    });
    commit_copies();
    if (t + ahead + 1 < count) loader.prepare_next(first + t + ahead + 1);
    writing = reading;
    reading = reading + 1 == stages ? 0 : reading + 1;
  }
  wait_for_copies<0>();
  __syncthreads();
}

__device__ __forceinline__ float finish(const Epilogue& epilogue, float sum) {
  if (!epilogue.bounded) return activate(epilogue.activation, epilogue.slope, sum);
  return Bounds{nullptr, 0, epilogue.low, epilogue.high}.apply(sum);
}

// Where a tile goes.
template <typename T>
struct Target {
  T* data;
  std::int64_t stride;
  int rows, width;
  int m, n;  // of the tile
  bool whole_packs;
  const float* bias = nullptr;  // of the target's columns
};

// Stores a staged tile by 16 bytes where possible. place(row) is the row of the target;
// pack_at(row, column) makes a pack of the tile.
template <class C, typename T, typename Place, typename PackAt>
__device__ __forceinline__ void store_tile(const Target<T>& target, Place&& place,
                                           PackAt&& pack_at) {
  constexpr int kPack = kFullPack<T>, kChunks = C::kN / kPack;
  static_assert(C::kThreads % kChunks == 0);
  const int column = static_cast<int>(threadIdx.x) % kChunks * kPack;
  const int inside = min(target.width - target.n - column, kPack);
  if (inside <= 0) return;
  const int rows = min(C::kM, target.rows - target.m);
#pragma unroll 4
  for (int row = static_cast<int>(threadIdx.x) / kChunks; row < rows;
       row += C::kThreads / kChunks) {
    const Pack<T, kPack> pack = pack_at(row, column);
    T* out = target.data + place(target.m + row) * target.stride + target.n + column;
    if (target.whole_packs && inside == kPack) {
      store(out, pack);
    } else {
#pragma unroll
      for (int i = 0; i < kPack; ++i) {
        if (i < inside) out[i] = pack.elements[i];
      }
    }
  }
}

// Stores sums with the target's bias and the epilogue's activation. Bounds are applied on the way
// to shared memory, where the tile then lies in its final type; other activations on the way back.
template <class C, typename T, class Product, typename Place>
__device__ __forceinline__ void store_sums(const Product& product, unsigned char* shared,
                                           const Target<T>& target, const Epilogue& epilogue,
                                           Place&& place) {
  const float* bias = target.bias == nullptr ? nullptr : target.bias + target.n;
  Bounds bounds = {bias, target.width - target.n};
  if (epilogue.bounded) {
    bounds.low = epilogue.low, bounds.high = epilogue.high;
    auto* staged = reinterpret_cast<T*>(shared);
    product.stage(staged, bounds);
    __syncthreads();
    store_tile<C>(target, place, [&](int row, int column) {
      return load<T, kFullPack<T>>(staged + row * C::kStagedPitch + column);
    });
  } else {
    auto* staged = reinterpret_cast<float*>(shared);
    product.stage(staged, bounds);
    __syncthreads();
    store_tile<C>(target, place, [&](int row, int column) {
      Pack<T, kFullPack<T>> pack;
#pragma unroll
      for (int i = 0; i < kFullPack<T>; ++i) {
        const float sum = staged[row * C::kStagedPitch + column + i];
        pack.set(i, activate(epilogue.activation, epilogue.slope, sum));
      }
      return pack;
    });
  }
}

}  // namespace ridgeline::cuda::conv
