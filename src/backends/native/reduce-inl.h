// Sums over rows, one for each column: in float registers over a block of rows, in double over the
// blocks. Included once for each instruction set.

#if defined(RIDGELINE_NATIVE_REDUCE_INL_H_) == defined(HWY_TARGET_TOGGLE)
#ifdef RIDGELINE_NATIVE_REDUCE_INL_H_
#undef RIDGELINE_NATIVE_REDUCE_INL_H_
#else
#define RIDGELINE_NATIVE_REDUCE_INL_H_
#endif

#include <hwy/highway.h>

#include <cstdint>

#include "backends/native/lanes-inl.h"
#include "backends/native/row_space.h"
#include "base/parallel.h"

HWY_BEFORE_NAMESPACE();
namespace ridgeline::native::HWY_NAMESPACE {
namespace hn = hwy::HWY_NAMESPACE;

// Adds lanes to as many doubles.
template <class D>
HWY_INLINE void add_to_doubles(D d, FullLanes<D>, hn::Vec<D> v, double* HWY_RESTRICT sums) {
  HWY_ALIGN float lanes[hn::MaxLanes(D())];
  hn::Store(v, d, lanes);
  for (std::size_t i = 0; i < hn::MaxLanes(D()); ++i) sums[i] += static_cast<double>(lanes[i]);
}

template <class D>
HWY_INLINE void add_to_doubles(D d, FirstLanes<D> first, hn::Vec<D> v, double* HWY_RESTRICT sums) {
  HWY_ALIGN float lanes[hn::MaxLanes(D())];
  hn::Store(v, d, lanes);
  for (std::int64_t i = 0; i < first.count; ++i) sums[i] += static_cast<double>(lanes[i]);
}

// kVectors neighbouring vectors down the rows [begin, end).
template <int kVectors, int kSums, class D, class Lanes, typename Visit>
HWY_INLINE void reduce_strip(D d, Lanes lanes, std::int64_t begin, std::int64_t end,
                             std::int64_t column, std::int64_t width, double* sums,
                             const Visit& visit) {
  const std::int64_t step = lanes_of(d);
  hn::Vec<D> sum[kVectors][kSums];
#pragma GCC unroll 8
  for (int v = 0; v < kVectors; ++v) {
#pragma GCC unroll 2
    for (int s = 0; s < kSums; ++s) sum[v][s] = hn::Zero(d);
  }
  for (std::int64_t row = begin; row < end; ++row) {
#pragma GCC unroll 8
    for (int v = 0; v < kVectors; ++v) visit(lanes, row, column + v * step, sum[v]);
  }
#pragma GCC unroll 8
  for (int v = 0; v < kVectors; ++v) {
#pragma GCC unroll 2
    for (int s = 0; s < kSums; ++s) {
      add_to_doubles(d, lanes, sum[v][s], sums + s * width + column + v * step);
    }
  }
}

// Calls visit(lanes, row, column, sum) for every vector of the rows in `range`; it adds to
// sum[0 .. kSums), which end up in sums[s * width + column]. The sums must be set before.
template <int kSums, class D, typename Visit>
HWY_INLINE void reduce_rows(D d, const RowSpace& space, Range range, double* sums,
                            const Visit& visit) {
  constexpr int kVectors = 4;
  constexpr std::int64_t kBlockRows = 128;
  const std::int64_t step = lanes_of(d);
  std::int64_t begin = range.begin;
  while (begin < range.end) {
    const std::int64_t width = space.width_of(begin);
    std::int64_t end = HWY_MIN(begin + kBlockRows, range.end);
    // The last row may be shorter and makes a block of its own.
    if (end == space.rows && end > begin + 1 && space.last_width != space.width) --end;
    std::int64_t column = 0;
    for (; column + kVectors * step <= width; column += kVectors * step) {
      reduce_strip<kVectors, kSums>(d, FullLanes<D>(), begin, end, column, space.width, sums,
                                    visit);
    }
    for (; column + step <= width; column += step) {
      reduce_strip<1, kSums>(d, FullLanes<D>(), begin, end, column, space.width, sums, visit);
    }
    if (column < width) {
      reduce_strip<1, kSums>(d, FirstLanes<D>{width - column}, begin, end, column, space.width,
                             sums, visit);
    }
    begin = end;
  }
}

}  // namespace ridgeline::native::HWY_NAMESPACE
HWY_AFTER_NAMESPACE();

#endif
