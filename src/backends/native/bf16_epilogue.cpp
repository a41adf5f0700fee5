#include "backends/native/bf16_epilogue.h"

#include "backends/native/bf16_block.h"
#include "base/simd_targets.h"

#undef HWY_TARGET_INCLUDE
#define HWY_TARGET_INCLUDE "backends/native/bf16_epilogue.cpp"
#include <hwy/foreach_target.h>
#include <hwy/highway.h>

#include "backends/native/activation-inl.h"
#include "backends/native/lanes-inl.h"

HWY_BEFORE_NAMESPACE();
namespace ridgeline::native {
namespace HWY_NAMESPACE {
namespace {

template <class Activation>
HWY_INLINE void finish_with(float* sums, std::int64_t rows, std::int64_t columns, const float* bias,
                            Activation activation) {
  const hn::ScalableTag<float> d;
  for_lanes(d, columns, [&](auto lanes, std::int64_t c) HWY_ATTR {
    const auto shift = bias == nullptr ? hn::Zero(d) : lanes.load(bias + c);
    for (std::int64_t r = 0; r < rows; ++r) {
      float* at = sums + r * bf16::kBlock + c;
      lanes.store(activation.forward(d, hn::Add(lanes.load(at), shift)), at);
    }
  });
}

void finish_rows(float* sums, std::int64_t rows, std::int64_t columns, const Epilogue& epilogue) {
  if (!epilogue.activate) {
    return finish_with(sums, rows, columns, epilogue.bias, NoActivation());
  }
  with_activation(epilogue.activation, epilogue.slope, [&](auto activation) HWY_ATTR {
    finish_with(sums, rows, columns, epilogue.bias, activation);
  });
}

}  // namespace
}  // namespace HWY_NAMESPACE
}  // namespace ridgeline::native
HWY_AFTER_NAMESPACE();

#if HWY_ONCE
namespace ridgeline::native {

HWY_EXPORT(finish_rows);

void bf16::finish_sums(float* sums, std::int64_t rows, std::int64_t columns,
                       const Epilogue& epilogue) {
  HWY_DYNAMIC_DISPATCH(finish_rows)(sums, rows, columns, epilogue);
}

}  // namespace ridgeline::native
#endif
