#pragma once

// One kernel for the three products of a convolution. The last of a block's warps are the
// producer: one of their threads starts copies that gather slices of both operands into a ring in
// shared memory. Two warpgroups, the consumers, each multiply half of the tile's rows and finish
// them: forward and data pass through shared memory on their way to dst, where the statistics are
// taken as well. A block goes on to further tiles; while consumers finish one, the producer fills
// the ring for the next.

#include "backends/cuda/hopper/hopper_instructions.cuh"
#include "backends/cuda/hopper/hopper_kernels.h"
#include "backends/cuda/norm/batch_norm_kernels.h"
#include "backends/cuda/packed.cuh"

namespace ridgeline::cuda::hopper {

inline constexpr int kConsumers = 2, kGroupThreads = 128;
inline constexpr int kRowBytes = 128;                 // of a slice, or of 64 columns of a result
inline constexpr int kBoxBytes = kSlice * kRowBytes;  // 64 rows of either kind

__device__ __forceinline__ int divide(const conv::Divide& by, int value) {
  const auto number = static_cast<unsigned>(value);
  return static_cast<int>((__umulhi(number, by.multiplier) + number) >> by.shift);
}

// What a kernel is compiled for: `kBlocks` of a tile share a multiprocessor's memory.
template <typename Element, Role role, int rows, int columns, int blocks>
struct Config {
  using T = Element;
  static constexpr Role kRole = role;
  static constexpr int kRows = rows, kColumns = columns, kBlocks = blocks;
  static constexpr int kGroupRows = kRows / kConsumers, kRowBoxes = kGroupRows / 64;
  static constexpr int kColumnBoxes = kColumns / 64;
  static constexpr bool kImages = role != Role::weights;  // the result is an image
  static constexpr bool kDepthInnerA = kImages, kDepthInnerB = role == Role::forward;
  static constexpr int kBytesA = kRows * kRowBytes, kBytesB = kColumns * kRowBytes;
  static constexpr int kStageBytes = kBytesA + kBytesB;
  // Of a result that waits for its copy: as many columns at a time as there is room for.
  static constexpr int kStagedBoxes = kImages ? (kColumnBoxes > 1 ? 2 : 1) : 0;
  static constexpr int kStagedBytes = kStagedBoxes * kRows * kRowBytes;
  static constexpr int kSpace = (228 * 1024 / kBlocks - 1024) - 1024;
  static constexpr int kMostStages = (kSpace - kStagedBytes) / kStageBytes;
  static constexpr int kStages = kMostStages > 8 ? 8 : kMostStages;
  static_assert(kStages >= 2);
  static constexpr int kSharedBytes = kStages * kStageBytes + kStagedBytes + 256;
  // A block alone has room for a producer of four warps, whose registers go to the consumers: they
  // hold the sums. Two blocks are better off with a producer of one warp.
  static constexpr bool kGivesRegisters = kBlocks == 1;
  static constexpr int kThreads =
      kConsumers * kGroupThreads + (kGivesRegisters ? kGroupThreads : 32);
  static constexpr int kProducerRegisters = 40, kConsumerRegisters = 232;
};

template <class C>
struct Ring {
  unsigned char* stages;
  Barrier *full, *empty;

  __device__ __forceinline__ unsigned char* a(int stage) const {
    return stages + stage * C::kStageBytes;
  }
  __device__ __forceinline__ unsigned char* b(int stage) const { return a(stage) + C::kBytesA; }
};

// A place in the ring, and the parity of its phase.
template <int kStages>
struct Place {
  int stage = 0;
  unsigned parity = 0;

  __device__ __forceinline__ void next() {
    if (++stage < kStages) return;
    stage = 0;
    parity ^= 1;
  }
};

struct Piece {
  int m, n, split;  // of the tile, in tiles
};

__device__ __forceinline__ Piece piece_of(const Product& p, int tile) {
  const int row = divide(p.by_column_tiles, tile);
  const int split = divide(p.by_row_tiles, row);
  return {row - split * p.row_tiles, tile - row * p.column_tiles, split};
}

// Where a gathered pixel's tap (0, 0) lies.
struct Origin {
  int image, h, w;
};

__device__ __forceinline__ Origin origin_of(const Product& p, int pixel) {
  const int row = divide(p.by_grid_w, pixel), image = divide(p.by_grid_h, row);
  return {image, (row - image * static_cast<int>(p.by_grid_h.divisor)) * p.step_h + p.origin_h,
          (pixel - row * static_cast<int>(p.by_grid_w.divisor)) * p.step_w + p.origin_w};
}

// The slices of a tile's depth.
template <class C>
__device__ __forceinline__ int slices_of(const Product& p, const Piece& piece) {
  if constexpr (C::kImages) return p.taps * p.channel_slices;
  return min(p.slices - piece.split * p.slices_per_split, p.slices_per_split);
}

template <class C>
class Producer {
 public:
  __device__ __forceinline__ Producer(const Product& p, const Ring<C>& ring) : p_(p), ring_(ring) {}

  __device__ __forceinline__ void load(const Piece& piece) {
    if constexpr (C::kImages) {
      load_taps(piece);
    } else {
      load_pixel_slices(piece);
    }
  }

 private:
  // Waits until the next stage is free; gives its number and goes on.
  __device__ __forceinline__ int claim(int bytes) {
    const int stage = place_.stage;
    wait_for(&ring_.empty[stage], place_.parity ^ 1);
    arrive_expecting(&ring_.full[stage], bytes);
    place_.next();
    return stage;
  }

  __device__ __forceinline__ void load_taps(const Piece& piece) {
    const Origin origin = origin_of(p_, piece.m * C::kRows);
    const int column = piece.n * C::kColumns;
    for (int tap = 0, h = 0, w = 0; tap < p_.taps; ++tap) {
      for (int channel = 0; channel < p_.channel_slices * kSlice; channel += kSlice) {
        const int stage = claim(C::kStageBytes);
        Barrier* full = &ring_.full[stage];
        load_pixels(ring_.a(stage), &p_.a, full, channel, origin.w, origin.h, origin.image, w, h);
        if constexpr (C::kDepthInnerB) {
          load_box(ring_.b(stage), &p_.b, full, channel, tap, column);
        } else {
          // Gathered from the other side, taps come in reverse.
          for (int i = 0; i < C::kColumnBoxes; ++i) {
            load_box(ring_.b(stage) + i * kBoxBytes, &p_.b, full, column + i * 64,
                     p_.taps - 1 - tap, channel);
          }
        }
      }
      w += p_.dilation_w;
      if (w == p_.kernel_w * p_.dilation_w) w = 0, h += p_.dilation_h;
    }
  }

  __device__ __forceinline__ void load_pixel_slices(const Piece& piece) {
    const int slices = slices_of<C>(p_, piece);
    const int first_unit = piece.n * C::kColumnBoxes;
    const int units = min(C::kColumnBoxes, p_.taps * p_.channel_slices - first_unit);
    for (int slice = 0; slice < slices; ++slice) {
      const int pixel = (piece.split * p_.slices_per_split + slice) * kSlice;
      const Origin origin = origin_of(p_, pixel);
      const int stage = claim(C::kBytesA + units * kBoxBytes);
      Barrier* full = &ring_.full[stage];
      for (int i = 0; i < C::kRows / 64; ++i) {
        load_box(ring_.a(stage) + i * kBoxBytes, &p_.a, full, piece.m * C::kRows + i * 64, pixel);
      }
      for (int i = 0; i < units; ++i) {
        const int tap = divide(p_.by_channel_slices, first_unit + i);
        const int channel = (first_unit + i - tap * p_.channel_slices) * kSlice;
        const int h = tap / p_.kernel_w, w = tap - h * p_.kernel_w;
        load_pixels(ring_.b(stage) + i * kBoxBytes, &p_.b, full, channel, origin.w, origin.h,
                    origin.image, w * p_.dilation_w, h * p_.dilation_h);
      }
    }
  }

  const Product& p_;
  const Ring<C>& ring_;
  Place<C::kStages> place_;
};

// The sums of one warpgroup: kRowBoxes times 64 rows.
template <class C>
struct Sums {
  static constexpr int kCount = C::kColumns / 2;
  float of[C::kRowBoxes][kCount];
};

// Multiplies the slices of a tile as they come. A stage is given back when the products after its
// own have started: then its own are over.
template <class C>
__device__ __forceinline__ void add_slices(const Ring<C>& ring, Place<C::kStages>& place, int group,
                                           int slices, Sums<C>& sums) {
  const bool leader = threadIdx.x % kGroupThreads == 0;
  int former = -1;
  for (int slice = 0; slice < slices; ++slice) {
    wait_for(&ring.full[place.stage], place.parity);
    const unsigned a = shared_address(ring.a(place.stage)) + group * C::kRowBoxes * kBoxBytes;
    const unsigned b = shared_address(ring.b(place.stage));
    begin_products();
#pragma unroll
    for (int step = 0; step < kSlice / 16; ++step) {
      // 16 positions further: 32 bytes along a row, or 16 rows.
      const unsigned in_a = step * (C::kDepthInnerA ? 32 : 16 * kRowBytes);
      const unsigned in_b = step * (C::kDepthInnerB ? 32 : 16 * kRowBytes);
#pragma unroll
      for (int i = 0; i < C::kRowBoxes; ++i) {
        multiply<typename C::T, C::kDepthInnerA, C::kDepthInnerB>(
            sums.of[i], describe_operand(a + i * kBoxBytes + in_a, kBoxBytes),
            describe_operand(b + in_b, kBoxBytes), slice > 0 || step > 0);
      }
    }
    commit_products();
    wait_for_products<1>();
    if (former >= 0 && leader) arrive(&ring.empty[former]);
    former = place.stage;
    place.next();
  }
  wait_for_products<0>();
  if (leader) arrive(&ring.empty[former]);
}

// Mean and squared distances of some rows of two neighbouring channels.
struct Moments {
  float rows = 0.0F, mean[2] = {0.0F, 0.0F}, squares[2] = {0.0F, 0.0F};

  // Chan, Golub and LeVeque.
  __device__ __forceinline__ void merge(const Moments& other) {
    const float all = rows + other.rows;
    if (other.rows == 0.0F) return;
    const float share = other.rows / all;
#pragma unroll
    for (int i = 0; i < 2; ++i) {
      const float distance = other.mean[i] - mean[i];
      mean[i] += distance * share;
      squares[i] += other.squares[i] + distance * distance * share * rows;
    }
    rows = all;
  }
};

// The place of a 16-byte piece in a box of rows of 128 bytes.
__device__ __forceinline__ int swizzled(int row, int piece) {
  return row * kRowBytes + ((piece ^ row) & 7) * 16;
}

// A result's way to memory through the warpgroup's part of the staging area, and what is computed
// of it there.
template <class C>
class ImageWriter {
 public:
  using T = typename C::T;

  __device__ __forceinline__ ImageWriter(const Product& p, unsigned char* staged, int group)
      : p_(p),
        staged_(staged + group * kGroupBytes),
        group_(group),
        thread_(static_cast<int>(threadIdx.x) % kGroupThreads) {}

  __device__ __forceinline__ void write(const Piece& piece, const Sums<C>& sums) {
    const int row = piece.m * C::kRows + group_ * C::kGroupRows;
#pragma unroll
    for (int first = 0; first < C::kColumnBoxes; first += C::kStagedBoxes) {
      // The former copy has read this memory, and the former statistics too.
      if (thread_ == 0) wait_for_stores();
      meet(1 + group_, kGroupThreads);
#pragma unroll
      for (int box = 0; box < C::kStagedBoxes; ++box) {
        stage(sums, first + box, piece.n * C::kColumns + (first + box) * 64, box);
      }
      publish_shared();
      meet(1 + group_, kGroupThreads);
      if (thread_ == 0 && row < p_.rows) {
#pragma unroll
        for (int box = 0; box < C::kStagedBoxes; ++box) {
          store_box(&p_.dst, staged_ + box * kStagedBox, piece.n * C::kColumns + (first + box) * 64,
                    row);
        }
        commit_stores();
      }
      if constexpr (C::kRole == Role::forward) {
        if (p_.moments != nullptr) {
          add_moments(min(p_.rows - row, C::kGroupRows), moments_[first / C::kStagedBoxes]);
        }
      }
    }
  }

  // After the last tile: the block's moments of all its rows, merged over threads in a fixed order.
  __device__ __forceinline__ void finish(unsigned char* shared, const Piece& piece) {
    if (thread_ == 0) wait_for_stores();
    if constexpr (C::kRole == Role::forward) {
      if (p_.moments == nullptr) return;
      auto* all = reinterpret_cast<Moments*>(shared);
#pragma unroll
      for (int i = 0; i < kTurns; ++i) {
        meet(3, kConsumers * kGroupThreads);
        all[threadIdx.x] = moments_[i];
        meet(3, kConsumers * kGroupThreads);
        if (static_cast<int>(threadIdx.x) >= kPairs) continue;
        Moments sum = all[threadIdx.x];
        for (int share = 1; share < kConsumers * kShares; ++share) {
          sum.merge(all[share * kPairs + threadIdx.x]);
        }
        store_moments(
            sum, piece.n * C::kColumns + i * kStagedColumns + static_cast<int>(threadIdx.x) * 2,
            piece.m);
      }
    }
  }

 private:
  static constexpr int kStagedBox = C::kGroupRows * kRowBytes;  // 64 columns of the group's rows
  static constexpr int kGroupBytes = C::kStagedBoxes * kStagedBox;
  static constexpr int kTurns = C::kColumnBoxes / C::kStagedBoxes;
  static constexpr int kStagedColumns = C::kStagedBoxes * 64;
  // Statistics: a thread takes two columns of every kShares-th run of rows.
  static constexpr int kPairs = kStagedColumns / 2, kShares = kGroupThreads / kPairs;
  static constexpr int kShareRows = C::kGroupRows / kShares;

  // 64 columns of the sums, biased, bounded and rounded, to the staging area.
  __device__ __forceinline__ void stage(const Sums<C>& sums, int column_box, int column, int box) {
    const int lane = thread_ % 32, warp = thread_ / 32;
    const unsigned base = shared_address(staged_ + box * kStagedBox);
#pragma unroll
    for (int i = 0; i < C::kRowBoxes; ++i) {
      const int row = i * 64 + warp * 16 + lane % 16;
#pragma unroll
      for (int j = 0; j < 64; j += 16) {
        unsigned words[4];
#pragma unroll
        for (int half = 0; half < 2; ++half) {
          const float* four = &sums.of[i][(column_box * 64 + j + half * 8) / 2];
          float bias[2] = {0.0F, 0.0F};
          if constexpr (C::kRole == Role::forward) {
            if (p_.epilogue.bias != nullptr) {
              const int at = column + j + half * 8 + lane % 4 * 2;
              if (at < p_.columns)
                bias[0] = p_.epilogue.bias[at], bias[1] = p_.epilogue.bias[at + 1];
            }
          }
#pragma unroll
          for (int r = 0; r < 2; ++r) {
            words[half * 2 + r] =
                word_of<T>(bounded(four[r * 2] + bias[0]), bounded(four[r * 2 + 1] + bias[1]));
          }
        }
        store_matrices(base + swizzled(row, j / 8 + lane / 16), words[0], words[1], words[2],
                       words[3]);
      }
    }
  }

  __device__ __forceinline__ float bounded(float value) const {
    if constexpr (C::kRole != Role::forward) return value;
    return fminf(fmaxf(value, p_.epilogue.low), p_.epilogue.high);
  }

  // The staged rows' moments, as they were rounded: of the first `rows`.
  __device__ __forceinline__ void add_moments(int rows, Moments& moments) const {
    const int pair = thread_ % kPairs, first = thread_ / kPairs * kShareRows;
    const int count = min(rows - first, kShareRows);
    if (count <= 0) return;
    const unsigned char* box = staged_ + pair / 32 * kStagedBox + pair % 4 * 4;
    const auto for_each_row = [&](auto use) {
      const auto row = [&](int i) {
        use(*reinterpret_cast<const unsigned*>(box + swizzled(first + i, pair % 32 / 4)));
      };
      if (count == kShareRows) {
#pragma unroll 8
        for (int i = 0; i < kShareRows; ++i) row(i);
      } else {
#pragma unroll 1
        for (int i = 0; i < count; ++i) row(i);
      }
    };
    Moments share;
    share.rows = static_cast<float>(count);
    for_each_row([&](unsigned word) {
      share.mean[0] += element_of<T>(word, false);
      share.mean[1] += element_of<T>(word, true);
    });
    share.mean[0] /= share.rows, share.mean[1] /= share.rows;
    for_each_row([&](unsigned word) {
#pragma unroll
      for (int k = 0; k < 2; ++k) {
        const float distance = element_of<T>(word, k == 1) - share.mean[k];
        share.squares[k] = fmaf(distance, distance, share.squares[k]);
      }
    });
    moments.merge(share);
  }

  __device__ __forceinline__ void store_moments(const Moments& sum, int column, int part) const {
    if (column >= p_.columns) return;
    float* at = p_.moments + static_cast<std::int64_t>(part) * kMomentPlanes * p_.columns + column;
#pragma unroll
    for (int i = 0; i < 2; ++i) {
      at[i] = sum.rows;
      at[p_.columns + i] = sum.mean[i];
      at[2 * p_.columns + i] = sum.squares[i];
    }
  }

  const Product& p_;
  unsigned char* staged_;
  int group_, thread_;
  Moments moments_[kTurns];
};

// Gradients of weights go to memory from registers, as f32.
template <class C>
class PartialWriter {
 public:
  __device__ __forceinline__ PartialWriter(const Product& p, unsigned char*, int group)
      : p_(p), group_(group) {}

  __device__ __forceinline__ void write(const Piece& piece, const Sums<C>& sums) {
    const int thread = static_cast<int>(threadIdx.x) % kGroupThreads, lane = thread % 32;
    const int row = piece.m * C::kRows + group_ * C::kGroupRows + thread / 32 * 16 + lane / 4;
    float* split = p_.partial + static_cast<std::int64_t>(piece.split) * p_.rows * p_.columns;
#pragma unroll
    for (int box = 0; box < C::kColumnBoxes; ++box) {
      const int unit = piece.n * C::kColumnBoxes + box;
      const int tap = divide(p_.by_channel_slices, unit);
      const int channel = (unit - tap * p_.channel_slices) * kSlice + lane % 4 * 2;
      if (tap >= p_.taps) return;
#pragma unroll
      for (int i = 0; i < C::kRowBoxes; ++i) {
#pragma unroll
        for (int r = 0; r < 2; ++r) {
          const int at = row + i * 64 + r * 8;
          if (at >= p_.rows) continue;
          float* to =
              split + static_cast<std::int64_t>(at) * p_.columns + tap * p_.channels + channel;
#pragma unroll
          for (int j = 0; j < 64; j += 8) {
            const float* two = &sums.of[i][(box * 64 + j) / 2 + r * 2];
            if (channel + j < p_.channels) {
              *reinterpret_cast<float2*>(to + j) = make_float2(two[0], two[1]);
            }
          }
        }
      }
    }
  }

  __device__ __forceinline__ void finish(unsigned char*, const Piece&) {}

 private:
  const Product& p_;
  int group_;
};

template <class C>
using Writer = std::conditional_t<C::kImages, ImageWriter<C>, PartialWriter<C>>;

template <class C>
__global__ void __launch_bounds__(C::kThreads, C::kBlocks)
    product_kernel(const __grid_constant__ Product p) {
  extern __shared__ __align__(1024) unsigned char shared[];
  unsigned char* staged = shared + C::kStages * C::kStageBytes;
  auto* barriers = reinterpret_cast<Barrier*>(staged + C::kStagedBytes);
  const Ring<C> ring = {shared, barriers, barriers + C::kStages};
  if (threadIdx.x == 0) {
    for (int i = 0; i < C::kStages; ++i) {
      init_barrier(&ring.full[i], 1);
      init_barrier(&ring.empty[i], kConsumers);
    }
    publish_barriers();
    prefetch_map(&p.a);
    prefetch_map(&p.b);
    if constexpr (C::kImages) prefetch_map(&p.dst);
  }
  __syncthreads();
  const int group = static_cast<int>(threadIdx.x) / kGroupThreads;
  const int first = static_cast<int>(blockIdx.x), step = static_cast<int>(gridDim.x);
  if (group == kConsumers) {
    if constexpr (C::kGivesRegisters) give_registers<C::kProducerRegisters>();
    if (threadIdx.x % kGroupThreads != 0) return;
    Producer<C> producer(p, ring);
    for (int tile = first; tile < p.tiles; tile += step) producer.load(piece_of(p, tile));
  } else {
    if constexpr (C::kGivesRegisters) take_registers<C::kConsumerRegisters>();
    Writer<C> writer(p, staged, group);
    Place<C::kStages> place;
    for (int tile = first; tile < p.tiles; tile += step) {
      const Piece piece = piece_of(p, tile);
      Sums<C> sums;
      add_slices(ring, place, group, slices_of<C>(p, piece), sums);
      writer.write(piece, sums);
    }
    writer.finish(staged, piece_of(p, first));
  }
}

template <class C>
void start_product(const Product& p, int blocks, Stream stream) {
  const auto* function = reinterpret_cast<const void*>(product_kernel<C>);
  (void)cudaFuncSetAttribute(function, cudaFuncAttributeMaxDynamicSharedMemorySize,
                             C::kSharedBytes);
  void* arguments[] = {const_cast<Product*>(&p)};
  (void)cudaLaunchKernel(function, dim3(static_cast<unsigned>(blocks)), dim3(C::kThreads),
                         arguments, C::kSharedBytes, stream);
  check_launch("a convolution on Hopper's instructions");
}

template <typename T, Role role>
void start_tile(Tile tile, const Product& p, int blocks, Stream stream) {
  switch (tile) {
    case Tile::wide:
      return start_product<Config<T, role, 128, 128, 2>>(p, blocks, stream);
    case Tile::narrow:
      return start_product<Config<T, role, 128, 64, 2>>(p, blocks, stream);
    case Tile::high:
      return start_product<Config<T, role, 256, 64, 2>>(p, blocks, stream);
    case Tile::large:
      return start_product<Config<T, role, 128, 256, 1>>(p, blocks, stream);
    case Tile::tall:
      return start_product<Config<T, role, 256, 128, 1>>(p, blocks, stream);
  }
}

template <Role role>
void start_type(DType dtype, Tile tile, const Product& p, int blocks, Stream stream) {
  if (dtype == DType::bf16) {
    start_tile<bf16, role>(tile, p, blocks, stream);
  } else {
    start_tile<f16, role>(tile, p, blocks, stream);
  }
}

}  // namespace ridgeline::cuda::hopper
