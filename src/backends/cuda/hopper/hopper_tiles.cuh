#pragma once

// What the parts of a product's kernel share: how it is cut into tiles, and how these lie in shared
// memory and registers.

#include "backends/cuda/hopper/hopper_instructions.cuh"
#include "backends/cuda/hopper/hopper_kernels.h"

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
  // What a gated result needs beside the sums: boxes of 64 columns of other images.
  static constexpr int kExtraBytes = kRows * kRowBytes;
  static constexpr bool kDepthInnerA = kImages, kDepthInnerB = role == Role::forward;
  static constexpr int kBytesA = kRows * kRowBytes, kBytesB = kColumns * kRowBytes;
  static constexpr int kStageBytes = kBytesA + kBytesB;
  static constexpr int kStageExtras = kStageBytes / kExtraBytes;  // in one stage
  // Of a result that waits for its copy: as many columns at a time as there is room for.
  static constexpr int kStagedBoxes = !kImages                                  ? 0
                                      : kColumnBoxes > 1 && role != Role::gated ? 2
                                                                                : 1;
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

// A consumer's way around the ring.
template <class C>
class RingReader {
 public:
  __device__ __forceinline__ explicit RingReader(const Ring<C>& ring) : ring_(ring) {}

  // Waits until the stage is full; gives its first operand.
  __device__ __forceinline__ const unsigned char* wait() const {
    wait_for(&ring_.full[place_.stage], place_.parity);
    return ring_.a(place_.stage);
  }
  // Gives the stage back, for the warpgroup: all its threads must be done with it.
  __device__ __forceinline__ void release() const {
    if (threadIdx.x % kGroupThreads == 0) arrive(&ring_.empty[place_.stage]);
  }
  __device__ __forceinline__ void next() { place_.next(); }

 private:
  Ring<C> ring_;
  Place<C::kStages> place_;
};

struct Piece {
  int m, n, split;  // of the tile, in tiles
};

__device__ __forceinline__ Piece piece_of(const Product& p, int tile) {
  const int row = divide(p.by_column_tiles, tile);
  const int split = divide(p.by_row_tiles, row);
  return {row - split * p.row_tiles, tile - row * p.column_tiles, split};
}

// The sums of one warpgroup: kRowBoxes times 64 rows.
template <class C>
struct Sums {
  static constexpr int kCount = C::kColumns / 2;
  float of[C::kRowBoxes][kCount];
};

// The place of a 16-byte piece in a box of rows of 128 bytes.
__device__ __forceinline__ int swizzled(int row, int piece) {
  return row * kRowBytes + ((piece ^ row) & 7) * 16;
}

}  // namespace ridgeline::cuda::hopper
