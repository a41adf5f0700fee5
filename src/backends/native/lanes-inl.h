// Loops over a row with a vector at a time and what is left at its end, without touching memory
// beyond it. Included once for each instruction set.

#if defined(RIDGELINE_NATIVE_LANES_INL_H_) == defined(HWY_TARGET_TOGGLE)
#ifdef RIDGELINE_NATIVE_LANES_INL_H_
#undef RIDGELINE_NATIVE_LANES_INL_H_
#else
#define RIDGELINE_NATIVE_LANES_INL_H_
#endif

#include <hwy/highway.h>

#include <cstdint>

HWY_BEFORE_NAMESPACE();
namespace ridgeline::native::HWY_NAMESPACE {
namespace hn = hwy::HWY_NAMESPACE;

// Loads and stores whole vectors; elements of other types than the tag's have the same count.
template <class D>
struct FullLanes {
  template <typename T>
  HWY_INLINE hn::Vec<hn::Rebind<T, D>> load(const T* from) const {
    return hn::LoadU(hn::Rebind<T, D>(), from);
  }
  template <typename T>
  HWY_INLINE void store(hn::Vec<hn::Rebind<T, D>> v, T* to) const {
    hn::StoreU(v, hn::Rebind<T, D>(), to);
  }
};

// Loads and stores the first `count` elements; the other lanes are zero.
template <class D>
struct FirstLanes {
  std::int64_t count;

  // Masked access of four-byte lanes neither reads nor writes the others from AVX2 on.
  template <typename T>
  static constexpr bool kMasks = sizeof(T) == 4 && HWY_TARGET <= HWY_AVX2;

  template <typename T>
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
  template <typename T>
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
};

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
