// How a vector of dst channels that holds several groups gets their src. Included once for each
// instruction set.

#if defined(RIDGELINE_NATIVE_CONV_SPREAD_INL_H_) == defined(HWY_TARGET_TOGGLE)
#ifdef RIDGELINE_NATIVE_CONV_SPREAD_INL_H_
#undef RIDGELINE_NATIVE_CONV_SPREAD_INL_H_
#else
#define RIDGELINE_NATIVE_CONV_SPREAD_INL_H_
#endif

#include <hwy/highway.h>

#include <cstdint>

#include "backends/native/conv_grouped.h"
#include "backends/native/lanes-inl.h"

HWY_BEFORE_NAMESPACE();
namespace ridgeline::native::conv::HWY_NAMESPACE {
namespace hn = hwy::HWY_NAMESPACE;
using native::HWY_NAMESPACE::FirstLanes;
using native::HWY_NAMESPACE::FullLanes;

using FloatTag = hn::ScalableTag<float>;
using FloatVec = hn::Vec<FloatTag>;
using PlaceTag = hn::RebindToSigned<FloatTag>;
inline constexpr auto kLanes = static_cast<std::int64_t>(hn::MaxLanes(FloatTag()));

// Each has at(i), which prepares number i of the groups, and load(pixel) after it.
template <class Lanes>
struct LookupSpread {
  Lanes lanes;  // of src
  const std::int32_t* places;

  struct At {
    Lanes lanes;
    decltype(hn::IndicesFromVec(FloatTag(), hn::Zero(PlaceTag()))) indices;

    HWY_INLINE FloatVec load(const float* pixel) const {
      return hn::TableLookupLanes(lanes.load(pixel), indices);
    }
  };
  HWY_INLINE At at(std::int64_t number) const {
    const auto place = hn::LoadU(PlaceTag(), places + number * kLanes);
    return {lanes, hn::IndicesFromVec(FloatTag(), place)};
  }
};

struct GatherSpread {
  const std::int32_t* places;

  struct At {
    hn::Vec<PlaceTag> indices;

    // Written out, because constructors that GCC makes do not belong to the instruction set.
    HWY_INLINE At() {}
    HWY_INLINE explicit At(hn::Vec<PlaceTag> where) : indices(where) {}

    HWY_INLINE FloatVec load(const float* pixel) const {
      return hn::GatherIndex(FloatTag(), pixel, indices);
    }
  };
  HWY_INLINE At at(std::int64_t number) const {
    return At(hn::LoadU(PlaceTag(), places + number * kLanes));
  }
};

// Calls body with the struct for a block whose places these are.
template <typename Body>
HWY_INLINE void with_spread(Spread spread, std::int64_t src_channels, const std::int32_t* places,
                            const Body& body) {
  if (spread == Spread::gather) return body(GatherSpread{places});
  if (src_channels >= kLanes) {
    return body(LookupSpread<FullLanes<FloatTag>>{FullLanes<FloatTag>(), places});
  }
  body(LookupSpread<FirstLanes<FloatTag>>{FirstLanes<FloatTag>{src_channels}, places});
}

}  // namespace ridgeline::native::conv::HWY_NAMESPACE
HWY_AFTER_NAMESPACE();

#endif
