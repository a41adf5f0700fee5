#include "backends/cuda/conv/stem.h"

#include <fmt/core.h>

#include "backends/cuda/conv/conv_plan_common.h"
#include "backends/cuda/conv/stem_kernels.h"

namespace ridgeline::cuda::conv {
namespace {

constexpr std::int64_t kFewestPixels = 1024;

// Wide weights, as the convolution behind reads or leaves them.
StemWeights weights_of(const Stem& stem) {
  const Conv2dAttributes &narrow = stem.narrow.attributes, &wide = stem.wide.attributes;
  StemWeights task;
  task.rows = stem.narrow.dst_channels * narrow.kernel_h;
  task.taps = static_cast<int>(narrow.kernel_w);
  task.channels = static_cast<int>(stem.narrow.src_channels);
  task.pad = static_cast<int>(narrow.pad_left);
  task.wide_taps = static_cast<int>(wide.kernel_w);
  task.wide_pad = static_cast<int>(wide.pad_left);
  task.together = stem.together;
  return task;
}

Rows wide_images(const Stem& stem, const Rows& src, std::byte* workspace, Stream stream) {
  const Geometry& wide = stem.wide;
  StemImages task;
  task.src = src;
  task.dst = workspace + stem.images_at;
  task.src_w = stem.narrow.src_w;
  task.dst_w = wide.src_w;
  task.together = stem.together;
  launch_stem_images(task, stream);
  return {task.dst, wide.images * wide.src_h * wide.src_w, kStemChannels, kStemChannels};
}

std::byte* rest_of(const Stem& stem, std::byte* workspace) { return workspace + stem.rest_at; }

}  // namespace

double Stem::flop_factor() const {
  return static_cast<double>(wide.attributes.kernel_w * kStemChannels) /
         static_cast<double>(narrow.attributes.kernel_w * narrow.src_channels);
}

std::string Stem::text(const std::string& of_wide) const {
  return fmt::format("{}, {}8 channels", of_wide, together == 2 ? "pairs of pixels as " : "");
}

std::optional<Stem> stem_for(const Geometry& geometry, DType dtype, const DeviceLimits& limits) {
  const Conv2dAttributes& a = geometry.attributes;
  const Arithmetic arithmetic = arithmetic_for(dtype, false, limits);
  const bool tensor = arithmetic == Arithmetic::bf16 || arithmetic == Arithmetic::f16;
  const std::int64_t channels = geometry.src_channels;
  if (!tensor || a.groups != 1 || a.dilation_h != 1 || a.dilation_w != 1 || channels < 2 ||
      channels >= kStemChannels || geometry.src_w == 1 ||
      geometry.images * geometry.dst_h * geometry.dst_w < kFewestPixels) {
    return std::nullopt;
  }
  Stem stem;
  stem.narrow = stem.wide = geometry;
  stem.together = a.stride_w % 2 == 0 && 2 * channels <= kStemChannels ? 2 : 1;
  const std::int64_t together = stem.together;
  Conv2dAttributes& wide = stem.wide.attributes;
  // Taps lie at -pad to kernel - 1 - pad from a window's middle.
  wide.pad_left = divide_up(a.pad_left, together);
  const std::int64_t last = a.kernel_w - 1 - a.pad_left + wide.pad_left * together;
  wide.kernel_w = last / together + 1;
  wide.stride_w = a.stride_w / together;
  stem.wide.src_w = divide_up(geometry.src_w, together);
  stem.wide.src_channels = kStemChannels;
  if (wide.kernel_h * wide.kernel_w > kMaxTaps) return std::nullopt;
  const auto bytes = static_cast<std::int64_t>(size_of(dtype)) * kStemChannels;
  const std::int64_t pixels = geometry.images * geometry.src_h * stem.wide.src_w;
  if (pixels * kStemChannels >= kMaxCount) return std::nullopt;
  std::size_t taken = 0;
  stem.images_at = take(taken, pixels * bytes);
  stem.weights_at = take(taken, geometry.dst_channels * wide.kernel_h * wide.kernel_w * bytes);
  stem.rest_at = take(taken, 0);
  return stem;
}

StemForward::StemForward(const Stem& given, DType dtype, const DeviceLimits& limits)
    : stem(given), plan(plan_forward(given.wide, dtype, false, limits)) {}

void StemForward::run(const Rows& src, const void* weights, const Rows& dst,
                      const Epilogue& epilogue, std::byte* workspace, Stream stream) const {
  const Rows images = wide_images(stem, src, workspace, stream);
  StemWeights task = weights_of(stem);
  task.src = weights;
  task.dst = workspace + stem.weights_at;
  launch_stem_weights(task, stream);
  run_gather(plan, images, task.dst, dst, epilogue, rest_of(stem, workspace), stream);
}

StemBackwardWeights::StemBackwardWeights(const Stem& given, DType dtype, const DeviceLimits& limits)
    : stem(given), plan(plan_backward_weights(given.wide, dtype, false, limits)) {}

void StemBackwardWeights::run(const Rows& src, const Rows& diff_dst, void* diff_weights,
                              std::byte* workspace, Stream stream) const {
  const Rows images = wide_images(stem, src, workspace, stream);
  StemWeights task = weights_of(stem);
  task.src = workspace + stem.weights_at;
  task.dst = diff_weights;
  run_weights(plan, images, diff_dst, workspace + stem.weights_at, rest_of(stem, workspace),
              stream);
  launch_stem_weights_gradient(task, stream);
}

}  // namespace ridgeline::cuda::conv
