#include "backends/cuda/conv/conv_plan_common.h"

#include <algorithm>

namespace ridgeline::cuda::conv {

Geometry geometry_of(const Conv2dAttributes& attributes, const Shape& src, const Shape& dst) {
  return {attributes, src[0], src.height(), src.width(), src[1], dst.height(), dst.width(), dst[1]};
}

Epilogue epilogue_of(int activation, float slope) {
  Epilogue epilogue;
  epilogue.activation = activation;
  epilogue.slope = slope;
  if (activation == kNoActivation) return epilogue;
  const auto kind = static_cast<ActivationKind>(activation);
  epilogue.bounded = kind == ActivationKind::relu || kind == ActivationKind::relu6;
  if (epilogue.bounded) epilogue.low = 0.0F;
  if (kind == ActivationKind::relu6) epilogue.high = 6.0F;
  return epilogue;
}

Divide divide_by(std::int64_t divisor) {
  const auto d = static_cast<std::uint64_t>(divisor);
  std::uint32_t shift = 0;
  while ((std::uint64_t{1} << shift) < d) ++shift;
  const std::uint64_t multiplier = ((((std::uint64_t{1} << shift) - d) << 32) / d) + 1;
  return {static_cast<std::uint32_t>(d), static_cast<std::uint32_t>(multiplier), shift};
}

Arithmetic arithmetic_for(DType dtype, bool allow_tf32, const DeviceLimits& limits) {
  if (dtype == DType::f16) return Arithmetic::f16;
  if (limits.capability < 80) return Arithmetic::f32;
  if (dtype == DType::bf16) return Arithmetic::bf16;
  return allow_tf32 ? Arithmetic::tf32 : Arithmetic::f32;
}

std::vector<int> possible_joins(const Geometry& geometry, Arithmetic arithmetic) {
  constexpr std::int64_t kWidest = 64;
  std::vector<int> joins = {1};
  if (arithmetic == Arithmetic::f32) return joins;
  const std::int64_t groups = geometry.attributes.groups;
  const std::int64_t width = std::max(geometry.group_src(), geometry.group_dst());
  for (std::int64_t joined = 2; joined <= groups && joined * width <= kWidest; ++joined) {
    if (groups % joined == 0) joins.push_back(static_cast<int>(joined));
  }
  return joins;
}

Geometry with_joined_groups(Geometry geometry, int joined) {
  geometry.attributes.groups /= joined;
  return geometry;
}

bool groups_are_narrow(const Geometry& geometry, Arithmetic arithmetic) {
  if (geometry.attributes.groups == 1) return false;
  const std::int64_t fewest = arithmetic == Arithmetic::f32 ? 16 : 8;
  return std::min(geometry.group_src(), geometry.group_dst()) < fewest;
}

bool aligned(const void* data, std::int64_t stride, DType dtype) {
  return reinterpret_cast<std::uintptr_t>(data) % 16 == 0 &&
         stride * static_cast<std::int64_t>(size_of(dtype)) % 16 == 0;
}

std::size_t take(std::size_t& workspace, std::int64_t bytes) {
  constexpr std::size_t kAlignment = 256;
  const std::size_t place = workspace;
  workspace += (static_cast<std::size_t>(bytes) + kAlignment - 1) / kAlignment * kAlignment;
  return place;
}

Direct direct_of(const Geometry& g) {
  const Conv2dAttributes& a = g.attributes;
  Direct p;
  p.images = g.images;
  p.src_h = g.src_h, p.src_w = g.src_w, p.dst_h = g.dst_h, p.dst_w = g.dst_w;
  p.groups = a.groups;
  p.group_src = g.group_src();
  p.group_dst = g.group_dst();
  p.kernel_h = static_cast<int>(a.kernel_h), p.kernel_w = static_cast<int>(a.kernel_w);
  p.stride_h = static_cast<int>(a.stride_h), p.stride_w = static_cast<int>(a.stride_w);
  p.dilation_h = static_cast<int>(a.dilation_h), p.dilation_w = static_cast<int>(a.dilation_w);
  p.pad_top = static_cast<int>(a.pad_top), p.pad_left = static_cast<int>(a.pad_left);
  return p;
}

}  // namespace ridgeline::cuda::conv
