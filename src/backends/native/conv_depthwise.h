#pragma once

// Depthwise convolution, one filter for each channel: forward, backward data and backward weights.
// Vectors run over channels; there is little to compute on each number, so nothing is copied and
// borders are cut out instead of padded.

#include <algorithm>
#include <cstddef>
#include <cstdint>
#include <utility>
#include <vector>

#include "backends/native/conv_blocking.h"
#include "backends/native/conv_geometry.h"
#include "backends/native/gemm.h"

namespace ridgeline::native::conv {

[[nodiscard]] inline bool is_depthwise(const Geometry& geometry) {
  return geometry.groups == geometry.src_channels && geometry.src_channels == geometry.dst_channels;
}

// Taps of one kernel row that lie side by side: neighbouring pixels share the src they read.
struct TapRow {
  std::int64_t dy = 0, dx = 0;  // of the first
  int taps = 1;
  std::int64_t first = 0;  // its place among the taps of all phases
};
inline constexpr int kMostRowTaps = 7;

// REQUIRES: is_depthwise(geometry).
struct DepthwisePlan {
  Geometry geometry;
  int threads = 1;
  std::int64_t taps = 0;                      // of all phases
  std::vector<std::vector<TapRow>> tap_rows;  // of each phase
  std::int64_t chunk = 0;                     // channels whose weights fit the first-level cache
  std::size_t workspace_bytes = 0;
};

[[nodiscard]] DepthwisePlan make_depthwise_plan(Geometry geometry, int threads);

// src and dst are nhwc with any pixel stride, weights plain, all f32 or all bf16. Forward and
// backward data, as the geometry says.
void run_depthwise(const DepthwisePlan& plan, const Tensor& src, const Tensor& weights,
                   const Tensor& dst, const Epilogue& epilogue, std::byte* workspace);

struct DepthwiseWeightsPlan {
  Geometry geometry;  // of the forward convolution; its dst is diff_dst
  int threads = 1;
  std::vector<TapRow> tap_rows;
  std::int64_t block_rows = 1;   // whose pixels stay in the second-level cache
  std::int64_t part_floats = 0;  // partial sums of one thread
  std::size_t workspace_bytes = 0;
};

[[nodiscard]] DepthwiseWeightsPlan make_depthwise_weights_plan(Geometry geometry, int threads);

void run_depthwise_weights(const DepthwiseWeightsPlan& plan, const Tensor& src,
                           const Tensor& diff_dst, const Tensor& diff_weights,
                           std::byte* workspace);

// The taps of a phase in rows of at most `most`; `first` counts from those before it.
[[nodiscard]] std::vector<TapRow> tap_rows_of(const std::vector<Tap>& taps, int most,
                                              std::int64_t first);

// Columns [begin, end) whose every tap dx_min..dx_max lies inside src.
[[nodiscard]] inline std::pair<std::int64_t, std::int64_t> inside(std::int64_t cols,
                                                                  std::int64_t step,
                                                                  std::int64_t dx_min,
                                                                  std::int64_t dx_max,
                                                                  std::int64_t width) {
  const std::int64_t begin = dx_min >= 0 ? 0 : (-dx_min + step - 1) / step;
  const std::int64_t end = width <= dx_max ? 0 : (width - dx_max - 1) / step + 1;
  const std::int64_t first = std::min(begin, cols);
  return {first, std::clamp(end, first, cols)};
}

}  // namespace ridgeline::native::conv
