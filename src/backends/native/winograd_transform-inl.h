// The transforms of Winograd's F(4x4, 3x3) over vectors of channels. Included once for each
// instruction set.
//
// Polynomials are evaluated at 0, a, -a, b, -b and infinity with a = 3/4 and b = 3/2. The usual
// points 1 and 2 need fewer multiplications but make errors three times as large.

#if defined(RIDGELINE_NATIVE_WINOGRAD_TRANSFORM_INL_H_) == defined(HWY_TARGET_TOGGLE)
#ifdef RIDGELINE_NATIVE_WINOGRAD_TRANSFORM_INL_H_
#undef RIDGELINE_NATIVE_WINOGRAD_TRANSFORM_INL_H_
#else
#define RIDGELINE_NATIVE_WINOGRAD_TRANSFORM_INL_H_
#endif

#include <hwy/highway.h>

#include <cstdint>

#include "backends/native/lanes-inl.h"
#include "base/tensor.h"

HWY_BEFORE_NAMESPACE();
namespace ridgeline::native::conv::HWY_NAMESPACE {
namespace hn = hwy::HWY_NAMESPACE;

inline constexpr float kA = 0.75F, kB = 1.5F;
inline constexpr float kA2 = kA * kA, kB2 = kB * kB;
// One over the derivative of x (x² - a²) (x² - b²) at 0, ±a and ±b: what weights are divided by, in
// both directions at once, so that they are rounded once.
inline constexpr double kDivisorA = 2.0 * kA2 * (kA2 - kB2), kDivisorB = 2.0 * kB2 * (kB2 - kA2);
inline constexpr double kDivisors[6] = {kA2 * kB2, kDivisorA, kDivisorA, kDivisorB, kDivisorB, 1.0};
[[nodiscard]] constexpr float weight_scale(int i, int j) {
  return static_cast<float>(1.0 / (kDivisors[i] * kDivisors[j]));
}

// Six numbers of src to six points: B^T d.
template <class D, class V = hn::Vec<D>>
HWY_INLINE void src_points(D d, const V (&x)[6], V (&y)[6]) {
  const V a = hn::Set(d, kA), b = hn::Set(d, kB), a2 = hn::Set(d, kA2), b2 = hn::Set(d, kB2);
  const V product = hn::Set(d, kA2 * kB2), sum = hn::Set(d, kA2 + kB2);
  const V even_a = hn::NegMulAdd(b2, x[2], x[4]), odd_a = hn::NegMulAdd(b2, x[1], x[3]);
  const V even_b = hn::NegMulAdd(a2, x[2], x[4]), odd_b = hn::NegMulAdd(a2, x[1], x[3]);
  y[0] = hn::MulAdd(product, x[0], hn::NegMulAdd(sum, x[2], x[4]));
  y[1] = hn::MulAdd(a, odd_a, even_a);
  y[2] = hn::NegMulAdd(a, odd_a, even_a);
  y[3] = hn::MulAdd(b, odd_b, even_b);
  y[4] = hn::NegMulAdd(b, odd_b, even_b);
  y[5] = hn::MulAdd(product, x[1], hn::NegMulAdd(sum, x[3], x[5]));
}

// Six points to four numbers of dst: A^T m.
template <class D, class V = hn::Vec<D>>
HWY_INLINE void dst_numbers(D d, const V (&x)[6], V (&y)[4]) {
  const V even_a = hn::Add(x[1], x[2]), odd_a = hn::Sub(x[1], x[2]);
  const V even_b = hn::Add(x[3], x[4]), odd_b = hn::Sub(x[3], x[4]);
  y[0] = hn::Add(hn::Add(x[0], even_a), even_b);
  y[1] = hn::MulAdd(hn::Set(d, kA), odd_a, hn::Mul(hn::Set(d, kB), odd_b));
  y[2] = hn::MulAdd(hn::Set(d, kA2), even_a, hn::Mul(hn::Set(d, kB2), even_b));
  y[3] = hn::MulAdd(hn::Set(d, kA2 * kA), odd_a, hn::MulAdd(hn::Set(d, kB2 * kB), odd_b, x[5]));
}

// Three weights to six points, without the scale: G g.
template <class D, class V = hn::Vec<D>>
HWY_INLINE void weight_points(D d, const V (&x)[3], V (&y)[6]) {
  const V even_a = hn::MulAdd(hn::Set(d, kA2), x[2], x[0]), a = hn::Set(d, kA);
  const V even_b = hn::MulAdd(hn::Set(d, kB2), x[2], x[0]), b = hn::Set(d, kB);
  y[0] = x[0];
  y[1] = hn::MulAdd(a, x[1], even_a);
  y[2] = hn::NegMulAdd(a, x[1], even_a);
  y[3] = hn::MulAdd(b, x[1], even_b);
  y[4] = hn::NegMulAdd(b, x[1], even_b);
  y[5] = x[2];
}

// Four numbers of diff_dst to six points: A m. For the gradient of weights.
template <class D, class V = hn::Vec<D>>
HWY_INLINE void diff_points(D d, const V (&x)[4], V (&y)[6]) {
  const V a = hn::Set(d, kA), b = hn::Set(d, kB), a2 = hn::Set(d, kA2), b2 = hn::Set(d, kB2);
  const V even_a = hn::MulAdd(a2, x[2], x[0]), odd_a = hn::MulAdd(a2, x[3], x[1]);
  const V even_b = hn::MulAdd(b2, x[2], x[0]), odd_b = hn::MulAdd(b2, x[3], x[1]);
  y[0] = x[0];
  y[1] = hn::MulAdd(a, odd_a, even_a);
  y[2] = hn::NegMulAdd(a, odd_a, even_a);
  y[3] = hn::MulAdd(b, odd_b, even_b);
  y[4] = hn::NegMulAdd(b, odd_b, even_b);
  y[5] = x[3];
}

// Six points, which have the scale, to the three numbers of a gradient of weights: G^T m.
template <class D, class V = hn::Vec<D>>
HWY_INLINE void weight_numbers(D d, const V (&x)[6], V (&y)[3]) {
  const V even_a = hn::Add(x[1], x[2]), odd_a = hn::Sub(x[1], x[2]);
  const V even_b = hn::Add(x[3], x[4]), odd_b = hn::Sub(x[3], x[4]);
  y[0] = hn::Add(x[0], hn::Add(even_a, even_b));
  y[1] = hn::MulAdd(hn::Set(d, kA), odd_a, hn::Mul(hn::Set(d, kB), odd_b));
  y[2] = hn::MulAdd(hn::Set(d, kA2), even_a, hn::MulAdd(hn::Set(d, kB2), even_b, x[5]));
}

// A transform of a tile in two dimensions: columns, then rows. load(i, j) gives a vector of the
// kIn x kIn tile, store(i, j, v) takes one of the kOut x kOut result.
template <int kIn, int kOut, class D, class Transform, class Load, class Store>
HWY_INLINE void transform_tile(D, const Transform& transform, const Load& load,
                               const Store& store) {
  using V = hn::Vec<D>;
  V between[kOut][kIn];
#pragma GCC unroll 6
  for (int j = 0; j < kIn; ++j) {
    V x[kIn], y[kOut];
#pragma GCC unroll 6
    for (int i = 0; i < kIn; ++i) x[i] = load(i, j);
    transform(x, y);
#pragma GCC unroll 6
    for (int i = 0; i < kOut; ++i) between[i][j] = y[i];
  }
#pragma GCC unroll 6
  for (int i = 0; i < kOut; ++i) {
    V y[kOut];
    transform(between[i], y);
#pragma GCC unroll 6
    for (int j = 0; j < kOut; ++j) store(i, j, y[j]);
  }
}

// Where the pixels of a tile lie; those outside the image are zeros.
template <int kSize>
struct TilePixels {
  const float* at[kSize][kSize];

  HWY_INLINE TilePixels(const float* image, const Strides& strides, std::int64_t top,
                        std::int64_t left, std::int64_t height, std::int64_t width,
                        const float* zeros) {
    for (std::int64_t i = 0; i < kSize; ++i) {
      for (std::int64_t j = 0; j < kSize; ++j) {
        const std::int64_t y = top + i, x = left + j;
        const bool inside = y >= 0 && y < height && x >= 0 && x < width;
        at[i][j] = inside ? image + y * strides[2] + x * strides[3] : zeros;
      }
    }
  }
};

// All channels of a tile to the 36 points, which lie `pitch` apart. Writes whole vectors.
template <int kSize, class D, class Transform>
HWY_INLINE void transform_pixels(D d, const TilePixels<kSize>& pixels, std::int64_t channels,
                                 const Transform& transform, float* to, std::int64_t pitch) {
  native::HWY_NAMESPACE::for_lanes(d, channels, [&](auto lanes, std::int64_t c) HWY_ATTR {
    transform_tile<kSize, 6>(
        d, transform, [&](int i, int j) HWY_ATTR { return lanes.load(pixels.at[i][j] + c); },
        [&](int i, int j, hn::Vec<D> v)
            HWY_ATTR { hn::StoreU(v, d, to + (i * 6 + j) * pitch + c); });
  });
}

}  // namespace ridgeline::native::conv::HWY_NAMESPACE
HWY_AFTER_NAMESPACE();

#endif
