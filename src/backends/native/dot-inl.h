// Dot products of rows with a few weight vectors, every accumulator in a register: the kernel of
// layers with few outputs. Included once for each instruction set.

#if defined(RIDGELINE_NATIVE_DOT_INL_H_) == defined(HWY_TARGET_TOGGLE)
#ifdef RIDGELINE_NATIVE_DOT_INL_H_
#undef RIDGELINE_NATIVE_DOT_INL_H_
#else
#define RIDGELINE_NATIVE_DOT_INL_H_
#endif

#include <hwy/highway.h>

#include <cstdint>

#include "backends/native/lanes-inl.h"
#include "base/arch.h"

HWY_BEFORE_NAMESPACE();
namespace ridgeline::native::HWY_NAMESPACE {
namespace hn = hwy::HWY_NAMESPACE;

using FloatTag = hn::ScalableTag<float>;
using FloatVec = hn::Vec<FloatTag>;
inline constexpr std::int64_t kLanes = static_cast<std::int64_t>(hn::MaxLanes(FloatTag()));

// Rows and weight vectors of one tile: their accumulators, the rows and a weight fill the
// registers.
inline constexpr int kDotRows = 2;
inline constexpr int kMaxDotOutputs = kManyRegisters ? 12 : 6;

[[nodiscard]] inline std::int64_t round_up(std::int64_t value, std::int64_t multiple) {
  return (value + multiple - 1) / multiple * multiple;
}

// Stores the sums over the lanes of a, b, c, d.
HWY_INLINE void store_sums(FloatVec a, FloatVec b, FloatVec c, FloatVec d, float* dst) {
#if HWY_TARGET == HWY_SCALAR
  dst[0] = hn::GetLane(a);
  dst[1] = hn::GetLane(b);
  dst[2] = hn::GetLane(c);
  dst[3] = hn::GetLane(d);
#else
  const FloatTag tag;
  const hn::Repartition<double, FloatTag> pairs;
  const FloatVec ab = hn::Add(hn::InterleaveLower(tag, a, b), hn::InterleaveUpper(tag, a, b));
  const FloatVec cd = hn::Add(hn::InterleaveLower(tag, c, d), hn::InterleaveUpper(tag, c, d));
  const auto ab2 = hn::BitCast(pairs, ab), cd2 = hn::BitCast(pairs, cd);
  // Each 128-bit block now gets its own a, b, c, d; then the blocks are added.
  const FloatVec blocks = hn::Add(hn::BitCast(tag, hn::InterleaveLower(pairs, ab2, cd2)),
                                  hn::BitCast(tag, hn::InterleaveUpper(pairs, ab2, cd2)));
#if HWY_TARGET == HWY_AVX3
  const hn::Half<FloatTag> half;
  const auto sum256 = hn::Add(hn::LowerHalf(half, blocks), hn::UpperHalf(half, blocks));
  const hn::Half<decltype(half)> quarter;
  const auto sum = hn::Add(hn::LowerHalf(quarter, sum256), hn::UpperHalf(quarter, sum256));
  hn::StoreU(sum, quarter, dst);
#elif HWY_TARGET == HWY_AVX2
  const hn::Half<FloatTag> half;
  hn::StoreU(hn::Add(hn::LowerHalf(half, blocks), hn::UpperHalf(half, blocks)), half, dst);
#else
  hn::StoreU(blocks, tag, dst);
#endif
#endif
}

// Weight vectors as dot_tile reads them: kLanes elements of each output side by side, zeros behind
// the end, so that one pointer runs over all of them. Takes outputs * round_up(depth, kLanes)
// floats.
inline void pack_dot_weights(const float* weights, std::int64_t row_stride, std::int64_t outputs,
                             std::int64_t depth, float* HWY_RESTRICT packed) {
  for (std::int64_t k = 0; k < depth; k += kLanes) {
    for (std::int64_t o = 0; o < outputs; ++o) {
      for (std::int64_t lane = 0; lane < kLanes; ++lane) {
        *packed++ = k + lane < depth ? weights[o * row_stride + k + lane] : 0.0F;
      }
    }
  }
}

// Keeps a loaded vector in its register: GCC would load it anew for every use.
HWY_INLINE void hold(FloatVec& v) {
#if HWY_TARGET != HWY_SCALAR
  asm("" : "+" RIDGELINE_VECTOR_REGISTER(v.raw));
#else
  (void)v;
#endif
}

template <int kOutputs, class Lanes, typename Rows>
HWY_INLINE void accumulate_dots(Lanes lanes, const Rows& rows, std::int64_t k,
                                const float* HWY_RESTRICT packed,
                                FloatVec (&acc)[kOutputs][kDotRows]) {
  FloatVec x[kDotRows];
#pragma GCC unroll 4
  for (int r = 0; r < kDotRows; ++r) x[r] = rows.load(lanes, r, k);
#pragma GCC unroll 16
  for (int o = 0; o < kOutputs; ++o) {
    FloatVec w = hn::LoadU(FloatTag(), packed + o * kLanes);
    hold(w);
#pragma GCC unroll 4
    for (int r = 0; r < kDotRows; ++r) acc[o][r] = hn::MulAdd(x[r], w, acc[o][r]);
  }
}

// sums[output][row] for kDotRows rows, of which rows.load(lanes, row, k) gives elements from k on.
// Writes an even number of outputs.
template <int kOutputs, typename Rows>
HWY_NOINLINE void dot_tile(const Rows& rows, std::int64_t depth, const float* HWY_RESTRICT packed,
                           float* HWY_RESTRICT sums) {
  static_assert(kDotRows == 2);
  FloatVec acc[kOutputs][kDotRows];
#pragma GCC unroll 16
  for (int o = 0; o < kOutputs; ++o) {
    acc[o][0] = hn::Zero(FloatTag());
    acc[o][1] = hn::Zero(FloatTag());
  }
  std::int64_t k = 0;
  for (; k + kLanes <= depth; k += kLanes, packed += kOutputs * kLanes) {
    accumulate_dots<kOutputs>(FullLanes<FloatTag>(), rows, k, packed, acc);
  }
  if (k < depth) accumulate_dots<kOutputs>(FirstLanes<FloatTag>{depth - k}, rows, k, packed, acc);
#pragma GCC unroll 16
  for (int o = 0; o < kOutputs; o += 2) {
    const int next = o + 1 < kOutputs ? o + 1 : o;
    store_sums(acc[o][0], acc[o][1], acc[next][0], acc[next][1], sums + 2 * o);
  }
}

// The same for any number of outputs up to kMaxDotOutputs.
template <int kOutputs = kMaxDotOutputs, typename Rows>
HWY_INLINE void dot_outputs(std::int64_t outputs, const Rows& rows, std::int64_t depth,
                            const float* HWY_RESTRICT packed, float* HWY_RESTRICT sums) {
  if constexpr (kOutputs > 1) {
    if (outputs < kOutputs) {
      dot_outputs<kOutputs - 1>(outputs, rows, depth, packed, sums);
      return;
    }
  }
  dot_tile<kOutputs>(rows, depth, packed, sums);
}

// Outputs that one tile takes: as many as registers allow, evenly.
[[nodiscard]] inline std::int64_t outputs_of_tile(std::int64_t outputs) {
  const std::int64_t tiles = (outputs + kMaxDotOutputs - 1) / kMaxDotOutputs;
  return (outputs + tiles - 1) / tiles;
}

// Packs the weights of all tiles, tile after tile.
inline void pack_all_dot_weights(const float* weights, std::int64_t row_stride,
                                 std::int64_t outputs, std::int64_t depth,
                                 float* HWY_RESTRICT packed) {
  const std::int64_t step = outputs_of_tile(outputs);
  for (std::int64_t o = 0; o < outputs; o += step) {
    pack_dot_weights(weights + o * row_stride, row_stride, HWY_MIN(step, outputs - o), depth,
                     packed + o * round_up(depth, kLanes));
  }
}

// Float rows where they lie.
struct FloatRows {
  const float* rows[kDotRows];

  template <class Lanes>
  HWY_INLINE FloatVec load(Lanes lanes, int row, std::int64_t k) const {
    return lanes.load(rows[row] + k);
  }
};

}  // namespace ridgeline::native::HWY_NAMESPACE
HWY_AFTER_NAMESPACE();

#endif
