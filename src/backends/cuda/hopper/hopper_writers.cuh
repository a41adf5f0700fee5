#pragma once

// What a warpgroup does with its sums when a tile is multiplied.

#include "backends/cuda/elementwise/elementwise.cuh"
#include "backends/cuda/hopper/hopper_tiles.cuh"
#include "backends/cuda/norm/batch_norm_kernels.h"
#include "backends/cuda/packed.cuh"

namespace ridgeline::cuda::hopper {

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

// The same while rows are added: sums around an origin about the middle of the channel lose no
// digits however far the values lie from zero.
struct Distances {
  float rows = 0.0F, origin[2] = {0.0F, 0.0F}, sums[2] = {0.0F, 0.0F}, squares[2] = {0.0F, 0.0F};

  __device__ __forceinline__ void add(const float (&values)[2]) {
#pragma unroll
    for (int i = 0; i < 2; ++i) {
      const float distance = values[i] - origin[i];
      sums[i] += distance;
      squares[i] = fmaf(distance, distance, squares[i]);
    }
  }

  [[nodiscard]] __device__ __forceinline__ Moments moments() const {
    Moments result;
    if (rows == 0.0F) return result;
    result.rows = rows;
#pragma unroll
    for (int i = 0; i < 2; ++i) {
      const float offset = sums[i] / rows;
      result.mean[i] = origin[i] + offset;
      result.squares[i] = fmaxf(squares[i] - sums[i] * offset, 0.0F);
    }
    return result;
  }
};

// A result's way to memory: through the warpgroup's part of the staging area.
template <class C>
class Stager {
 public:
  __device__ __forceinline__ Stager(const Product& p, unsigned char* staged, int group)
      : p_(p),
        staged_(staged + group * C::kStagedBoxes * kStagedBox),
        group_(group),
        thread_(static_cast<int>(threadIdx.x) % kGroupThreads) {}

 protected:
  using T = typename C::T;
  static constexpr int kStagedBox = C::kGroupRows * kRowBytes;  // 64 columns of the group's rows

  __device__ __forceinline__ void meet_group() const { meet(1 + group_, kGroupThreads); }

  // Until the former copy has read the staging area, and its other readers are here.
  __device__ __forceinline__ void wait_for_room() const {
    if (thread_ == 0) wait_for_stores();
    meet_group();
  }

  // Starts the copies of what is staged, of all boxes from `column` on, when all have written it.
  __device__ __forceinline__ void copy_staged(int row, int column) const {
    publish_shared();
    meet_group();
    if (thread_ != 0 || row >= p_.rows) return;
#pragma unroll
    for (int box = 0; box < C::kStagedBoxes; ++box) {
      store_box(&p_.dst, staged_ + box * kStagedBox, column + box * 64, row);
    }
    commit_stores();
  }

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
    // Comparisons with NaN are false: it stays.
    value = value < p_.epilogue.low ? p_.epilogue.low : value;
    return value > p_.epilogue.high ? p_.epilogue.high : value;
  }

  const Product& p_;
  unsigned char* staged_;
  int group_, thread_;
};

template <class C>
class ImageWriter : Stager<C> {
 public:
  using typename Stager<C>::T;
  using Stager<C>::Stager;

  __device__ __forceinline__ void write(const Piece& piece, const Sums<C>& sums, RingReader<C>&) {
    const int row = piece.m * C::kRows + group_ * C::kGroupRows;
#pragma unroll
    for (int first = 0; first < C::kColumnBoxes; first += C::kStagedBoxes) {
      const int column = piece.n * C::kColumns + first * 64;
      this->wait_for_room();
#pragma unroll
      for (int box = 0; box < C::kStagedBoxes; ++box) {
        this->stage(sums, first + box, column + box * 64, box);
      }
      this->copy_staged(row, column);
      if constexpr (C::kRole == Role::forward) {
        if (p_.moments != nullptr) {
          add_rows(min(p_.rows - row, C::kGroupRows), distances_[first / C::kStagedBoxes]);
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
        all[threadIdx.x] = distances_[i].moments();
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
  using Stager<C>::kStagedBox, Stager<C>::p_, Stager<C>::staged_, Stager<C>::group_,
      Stager<C>::thread_;
  static constexpr int kTurns = C::kColumnBoxes / C::kStagedBoxes;
  static constexpr int kStagedColumns = C::kStagedBoxes * 64;
  // Statistics: a thread takes two columns of every kShares-th run of rows.
  static constexpr int kPairs = kStagedColumns / 2, kShares = kGroupThreads / kPairs;
  static constexpr int kShareRows = C::kGroupRows / kShares;

  // Adds the first `rows` of the staged rows, as they were rounded.
  __device__ __forceinline__ void add_rows(int rows, Distances& distances) const {
    const int pair = thread_ % kPairs, first = thread_ / kPairs * kShareRows;
    const int count = min(rows - first, kShareRows);
    if (count <= 0) return;
    const unsigned char* box = staged_ + pair / 32 * kStagedBox + pair % 4 * 4;
    const auto for_row = [&](int i, auto use) {
      const unsigned word =
          *reinterpret_cast<const unsigned*>(box + swizzled(first + i, pair % 32 / 4));
      const float values[2] = {element_of<T>(word, false), element_of<T>(word, true)};
      use(values);
    };
    if (distances.rows == 0.0F) {
      constexpr int kSamples = 4;
#pragma unroll
      for (int i = 0; i < kSamples; ++i) {
        for_row(min(i * (kShareRows / kSamples), count - 1), [&](const float(&values)[2]) {
          distances.origin[0] += values[0] * (1.0F / kSamples);
          distances.origin[1] += values[1] * (1.0F / kSamples);
        });
      }
    }
    distances.rows += static_cast<float>(count);
    const auto add = [&](const float(&values)[2]) { distances.add(values); };
    if (count == kShareRows) {
#pragma unroll 8
      for (int i = 0; i < kShareRows; ++i) for_row(i, add);
    } else {
#pragma unroll 1
      for (int i = 0; i < count; ++i) for_row(i, add);
    }
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

  Distances distances_[kTurns];
};

// The gradient of an image that a normalisation and perhaps an activation made, from the image's
// diff_dst on: g = gate(sums [+ other]), and for each channel the sums of g and of g times src's
// distance from the mean. What is read for that comes through the ring behind the tile's slices.
template <class C>
class GatedWriter : Stager<C> {
 public:
  using typename Stager<C>::T;
  using Stager<C>::Stager;

  __device__ __forceinline__ void write(const Piece& piece, const Sums<C>& sums,
                                        RingReader<C>& ring) {
    const int row = piece.m * C::kRows + group_ * C::kGroupRows;
#pragma unroll
    for (int box = 0; box < C::kColumnBoxes; ++box) {
      const int column = piece.n * C::kColumns + box * 64;
      if (column >= p_.columns) break;
      this->wait_for_room();
      this->stage(sums, box, column, 0);
      this->meet_group();
      const unsigned char* extras[kMostExtras] = {};
      RingReader<C> first = ring;
      for_each_stage([&](int from, int count) {
        const unsigned char* stage = ring.wait();
#pragma unroll
        for (int i = 0; i < kMostExtras; ++i) {
          if (i >= from && i < from + count) extras[i] = stage + (i - from) * C::kExtraBytes;
        }
        ring.next();
      });
      add_rows(extras, column, totals_[box]);
      this->copy_staged(row, column);
      for_each_stage([&](int, int) {
        first.release();
        first.next();
      });
    }
  }

  // After the last tile: the block's sums, added over threads in a fixed order.
  __device__ __forceinline__ void finish(unsigned char* shared, const Piece& piece) {
    if (thread_ == 0) wait_for_stores();
    auto* all = reinterpret_cast<float4*>(shared);
    const int thread = static_cast<int>(threadIdx.x);
#pragma unroll
    for (int box = 0; box < C::kColumnBoxes; ++box) {
      const Totals& own = totals_[box];
      meet(3, kConsumers * kGroupThreads);
      all[thread] = make_float4(own.sums[0], own.sums[1], own.products[0], own.products[1]);
      meet(3, kConsumers * kGroupThreads);
      const int column = piece.n * C::kColumns + box * 64 + thread * 2;
      if (thread >= kPairs || column >= p_.columns) continue;
      float4 sum = all[thread];
      for (int share = 1; share < kConsumers * kShares; ++share) {
        const float4 other = all[share * kPairs + thread];
        sum.x += other.x, sum.y += other.y, sum.z += other.z, sum.w += other.w;
      }
      float* at = p_.gate.sums + static_cast<std::int64_t>(piece.m) * 2 * p_.columns + column;
      at[0] = sum.x, at[1] = sum.y;
      at[p_.columns] = sum.z, at[p_.columns + 1] = sum.w;
    }
  }

 private:
  struct Totals {
    float sums[2] = {0.0F, 0.0F}, products[2] = {0.0F, 0.0F};
  };

  using Stager<C>::kStagedBox, Stager<C>::p_, Stager<C>::staged_, Stager<C>::group_,
      Stager<C>::thread_;
  // A thread takes two of 64 columns and a run of rows.
  static constexpr int kPairs = 32, kShares = kGroupThreads / kPairs;
  static constexpr int kShareRows = C::kGroupRows / kShares;

  template <typename Use>
  __device__ __forceinline__ void for_each_stage(Use use) const {
    for (int from = 0; from < p_.gate.extras; from += C::kStageExtras) {
      use(from, min(C::kStageExtras, p_.gate.extras - from));
    }
  }

  // Makes g of the staged sums, in their place. Rows and columns outside the image are zeros.
  __device__ __forceinline__ void add_rows(const unsigned char* const (&extras)[kMostExtras],
                                           int column, Totals& totals) const {
    const int pair = thread_ % kPairs, first = thread_ / kPairs * kShareRows;
    const bool gated = p_.gate.gated, added = p_.gate.added;
    const unsigned char* other_image = gated ? extras[2] : extras[1];
    float mean[2] = {0.0F, 0.0F};
    if (column + pair * 2 < p_.columns) {
      mean[0] = p_.gate.mean[column + pair * 2], mean[1] = p_.gate.mean[column + pair * 2 + 1];
    }
    const int in_group = pair % 4 * 4, in_tile = in_group + group_ * C::kGroupRows * kRowBytes;
#pragma unroll 8
    for (int i = 0; i < kShareRows; ++i) {
      const int at = swizzled(first + i, pair / 4);
      const auto word_at = [&](const unsigned char* image) {
        return *reinterpret_cast<const unsigned*>(image + in_tile + at);
      };
      auto* result = reinterpret_cast<unsigned*>(staged_ + in_group + at);
      const unsigned sum = *result, source = word_at(extras[0]);
      const unsigned kept = gated ? word_at(extras[1]) : 0,
                     other = added ? word_at(other_image) : 0;
      float g[2];
#pragma unroll
      for (int k = 0; k < 2; ++k) {
        g[k] = element_of<T>(sum, k == 1) + element_of<T>(other, k == 1);
        if (gated && !is_open(element_of<T>(kept, k == 1), p_.gate.closing)) g[k] = 0.0F;
      }
      const unsigned rounded = word_of<T>(g[0], g[1]);
      *result = rounded;
#pragma unroll
      for (int k = 0; k < 2; ++k) {
        const float value = element_of<T>(rounded, k == 1);
        totals.sums[k] += value;
        totals.products[k] =
            fmaf(value, element_of<T>(source, k == 1) - mean[k], totals.products[k]);
      }
    }
  }

  Totals totals_[C::kColumnBoxes];
};

// Gradients of weights go to memory from registers, as f32.
template <class C>
class PartialWriter {
 public:
  __device__ __forceinline__ PartialWriter(const Product& p, unsigned char*, int group)
      : p_(p), group_(group) {}

  __device__ __forceinline__ void write(const Piece& piece, const Sums<C>& sums, RingReader<C>&) {
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
using Writer =
    std::conditional_t<C::kRole == Role::weights, PartialWriter<C>,
                       std::conditional_t<C::kRole == Role::gated, GatedWriter<C>, ImageWriter<C>>>;

}  // namespace ridgeline::cuda::hopper
