// The register tile under all dense convolutions. Included once for each instruction set.
//
// A tile holds kRows x kVectors sums in registers and streams over a depth: for each step it
// broadcasts one float of each row and multiplies it with kVectors vectors. Forward and backward
// data: rows are dst pixels, vectors are dst channels, the depth is taps x src channels.
// Backward weights: rows are positions in the kernel, vectors dst channels, the depth is pixels.

#if defined(RIDGELINE_NATIVE_CONV_TILE_INL_H_) == defined(HWY_TARGET_TOGGLE)
#ifdef RIDGELINE_NATIVE_CONV_TILE_INL_H_
#undef RIDGELINE_NATIVE_CONV_TILE_INL_H_
#else
#define RIDGELINE_NATIVE_CONV_TILE_INL_H_
#endif

#include <hwy/highway.h>

#include <cstdint>

#include "backends/native/conv_blocking.h"
#include "backends/native/lanes-inl.h"

HWY_BEFORE_NAMESPACE();
namespace ridgeline::native::conv::HWY_NAMESPACE {
namespace hn = hwy::HWY_NAMESPACE;
using native::HWY_NAMESPACE::FirstLanes;
using native::HWY_NAMESPACE::kManyRegisters;

inline constexpr int kMaxVectors = kManyRegisters ? 4 : 2;

// Rows of a tile with this many vectors. Each row needs a pointer in a general register, so eight
// is the most; the sums, the vectors and one broadcast have to fit the vector registers.
[[nodiscard]] constexpr int rows_of(int vectors) {
  if (kManyRegisters) return vectors == 4 ? 6 : 8;
  return vectors == 2 ? 6 : 8;
}

// Where the vectors of each step come from.
template <class D, int kVectors>
struct PackedVectors {  // one after the other, whatever the run; rows advance by one float
  static constexpr std::int64_t kStep = kVectors * static_cast<std::int64_t>(hn::MaxLanes(D()));
  const float* next;

  HWY_INLINE const float* begin(const Run&) const { return next; }
  HWY_INLINE void end(const float* at) { next = at; }
  HWY_INLINE std::int64_t vector_step() const { return kStep; }
  HWY_INLINE std::int64_t row_step() const { return 1; }
  HWY_INLINE hn::Vec<D> load(D d, const float* at, int vector) const {
    return hn::LoadU(d, at + vector * static_cast<std::int64_t>(hn::MaxLanes(d)));
  }
};

template <class D, int kVectors, bool kTail>
struct PixelVectors {  // channels of a pixel; the last vector may have fewer than all lanes
  const float* base;
  std::int64_t pixel_step, src_step, tail;

  HWY_INLINE const float* begin(const Run& run) const { return base + run.vectors; }
  HWY_INLINE void end(const float*) {}
  HWY_INLINE std::int64_t vector_step() const { return pixel_step; }
  HWY_INLINE std::int64_t row_step() const { return src_step; }
  HWY_INLINE hn::Vec<D> load(D d, const float* at, int vector) const {
    const float* from = at + vector * static_cast<std::int64_t>(hn::MaxLanes(d));
    if (kTail && vector == kVectors - 1) return FirstLanes<D>{tail}.load(from);
    return hn::LoadU(d, from);
  }
};

template <class D, int kVectors>
struct Tile {
  static constexpr int kRows = rows_of(kVectors);
  using V = hn::Vec<D>;
  V sums[kRows][kVectors];

  // Written out, because a constructor that GCC makes does not belong to the instruction set.
  HWY_INLINE Tile() {}

  // kCount: the length of every run where it is known and short, so that runs are unrolled; else 0.
  template <int kCount = 0, class Vectors>
  HWY_INLINE void accumulate(const float* const* rows, const Run* runs, std::int64_t run_count,
                             Vectors vectors) {
    const D d;
    const float* row[kRows];
#pragma GCC unroll 8
    for (int r = 0; r < kRows; ++r) row[r] = rows[r];
#pragma GCC unroll 8
    for (int r = 0; r < kRows; ++r) {
#pragma GCC unroll 4
      for (int v = 0; v < kVectors; ++v) sums[r][v] = hn::Zero(d);
    }
    const auto step = [&](std::int64_t offset, const float* at) HWY_ATTR {
      V w[kVectors];
#pragma GCC unroll 4
      for (int v = 0; v < kVectors; ++v) w[v] = vectors.load(d, at, v);
#pragma GCC unroll 8
      for (int r = 0; r < kRows; ++r) {
        const V x = hn::Set(d, row[r][offset]);
#pragma GCC unroll 4
        for (int v = 0; v < kVectors; ++v) sums[r][v] = hn::MulAdd(x, w[v], sums[r][v]);
      }
    };
    for (const Run* run = runs; run != runs + run_count; ++run) {
      const float* at = vectors.begin(*run);
      std::int64_t offset = run->rows;
      if constexpr (kCount > 0) {
#pragma GCC unroll 4
        for (int i = 0; i < kCount; ++i) {
          step(offset, at);
          offset += vectors.row_step();
          at += vectors.vector_step();
        }
      } else {
        for (std::int64_t left = run->count; left > 0; --left) {
          step(offset, at);
          offset += vectors.row_step();
          at += vectors.vector_step();
        }
      }
      vectors.end(at);
    }
  }
};

}  // namespace ridgeline::native::conv::HWY_NAMESPACE
HWY_AFTER_NAMESPACE();

#endif
