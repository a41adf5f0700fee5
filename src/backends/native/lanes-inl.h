// Loops over a row with a vector at a time and what is left at its end, without touching memory
// beyond it. Included once for each instruction set.

#if defined(RIDGELINE_NATIVE_LANES_INL_H_) == defined(HWY_TARGET_TOGGLE)
#ifdef RIDGELINE_NATIVE_LANES_INL_H_
#undef RIDGELINE_NATIVE_LANES_INL_H_
#else
#define RIDGELINE_NATIVE_LANES_INL_H_
#endif

#include <hwy/highway.h>

#include <concepts>
#include <cstdint>

#include "base/dtype.h"
#include "base/half.h"

HWY_BEFORE_NAMESPACE();
namespace ridgeline::native::HWY_NAMESPACE {
namespace hn = hwy::HWY_NAMESPACE;

// AVX-512 and ARM64 have 32 vector registers, the others 16.
inline constexpr bool kManyRegisters = HWY_TARGET == HWY_AVX3 || HWY_TARGET == HWY_NEON;

// What a vector instruction can hold as it lies in memory; bf16 is widened to f32 on the way.
template <typename T>
concept Loadable = !std::same_as<T, BFloat16>;

template <class D>
HWY_INLINE hn::Vec<D> widened(D d, hn::Vec<hn::Rebind<std::uint16_t, D>> bits) {
  const hn::RebindToUnsigned<D> wide;
  return hn::BitCast(d, hn::ShiftLeft<16>(hn::PromoteTo(wide, bits)));
}

// The nearest bf16, ties to even.
template <class D>
HWY_INLINE hn::Vec<hn::Rebind<std::uint16_t, D>> narrowed(D, hn::Vec<D> v) {
  const hn::RebindToUnsigned<D> wide;
  const auto bits = hn::BitCast(wide, v);
  const auto odd = hn::And(hn::ShiftRight<16>(bits), hn::Set(wide, 1U));
  const auto near = hn::ShiftRight<16>(hn::Add(hn::Add(bits, odd), hn::Set(wide, 0x7FFFU)));
  const auto told =
      hn::IfThenElse(hn::RebindMask(wide, hn::IsNaN(v)), hn::Set(wide, 0x7FC0U), near);
  return hn::DemoteTo(hn::Rebind<std::uint16_t, D>(), hn::BitCast(hn::RebindToSigned<D>(), told));
}

// Loads and stores whole vectors; elements of other types than the tag's have the same count.
template <class D>
struct FullLanes {
  template <Loadable T>
  HWY_INLINE hn::Vec<hn::Rebind<T, D>> load(const T* from) const {
    return hn::LoadU(hn::Rebind<T, D>(), from);
  }
  template <Loadable T>
  HWY_INLINE void store(hn::Vec<hn::Rebind<T, D>> v, T* to) const {
    hn::StoreU(v, hn::Rebind<T, D>(), to);
  }
  HWY_INLINE auto load(const BFloat16* from) const {
    return widened(D(), load(reinterpret_cast<const std::uint16_t*>(from)));
  }
  HWY_INLINE void store(hn::Vec<D> v, BFloat16* to) const {
    store(narrowed(D(), v), reinterpret_cast<std::uint16_t*>(to));
  }
};

// Loads and stores the first `count` elements; the other lanes are zero.
template <class D>
struct FirstLanes {
  std::int64_t count;

  // Masked access neither reads nor writes the other lanes: of four bytes from AVX2 on, of two from
  // AVX-512 on.
  template <typename T>
  static constexpr bool kMasks = (sizeof(T) == 4 && HWY_TARGET <= HWY_AVX2) ||
                                 (sizeof(T) == 2 && HWY_TARGET <= HWY_AVX3);

  template <Loadable T>
  HWY_INLINE hn::Vec<hn::Rebind<T, D>> load(const T* from) const {
    const hn::Rebind<T, D> d;
    if constexpr (kMasks<T>) {
      return hn::MaskedLoad(hn::FirstN(d, static_cast<std::size_t>(count)), d, from);
    } else {
      HWY_ALIGN T lanes[hn::MaxLanes(hn::Rebind<T, D>())] = {};
      for (std::int64_t i = 0; i < count; ++i) lanes[i] = from[i];
      return hn::Load(d, lanes);
    }
  }
  template <Loadable T>
  HWY_INLINE void store(hn::Vec<hn::Rebind<T, D>> v, T* to) const {
    const hn::Rebind<T, D> d;
    if constexpr (kMasks<T>) {
      hn::BlendedStore(v, hn::FirstN(d, static_cast<std::size_t>(count)), d, to);
    } else {
      HWY_ALIGN T lanes[hn::MaxLanes(hn::Rebind<T, D>())];
      hn::Store(v, d, lanes);
      for (std::int64_t i = 0; i < count; ++i) to[i] = lanes[i];
    }
  }
  HWY_INLINE auto load(const BFloat16* from) const {
    return widened(D(), load(reinterpret_cast<const std::uint16_t*>(from)));
  }
  HWY_INLINE void store(hn::Vec<D> v, BFloat16* to) const {
    store(narrowed(D(), v), reinterpret_cast<std::uint16_t*>(to));
  }
};

// Calls body with a value of the type in which a kernel's images lie.
template <typename Body>
HWY_INLINE void with_element(DType dtype, const Body& body) {
  if (dtype == DType::bf16) return body(BFloat16());
  body(float());
}

template <class D>
HWY_INLINE std::int64_t lanes_of(D d) {
  return static_cast<std::int64_t>(hn::Lanes(d));
}

// Calls body(lanes, i) for i = 0, lanes, 2 lanes, ... below width.
template <class D, typename Body>
HWY_INLINE void for_lanes(D d, std::int64_t width, const Body& body) {
  const std::int64_t step = lanes_of(d);
  std::int64_t i = 0;
  for (; i + step <= width; i += step) body(FullLanes<D>(), i);
  if (i < width) body(FirstLanes<D>{width - i}, i);
}

}  // namespace ridgeline::native::HWY_NAMESPACE
HWY_AFTER_NAMESPACE();

#endif
