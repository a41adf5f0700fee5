#pragma once

// Convolutions of images with a few channels, with which networks begin. Eight channels are the
// least that is copied at once, so pixels are first given as many: two neighbours together where
// the stride allows, else one. What follows is a convolution like any other.

#include <optional>
#include <string>

#include "backends/cuda/conv/conv_plan.h"

namespace ridgeline::cuda::conv {

struct Stem {
  Geometry narrow, wide;
  int together = 1;
  // Where the wide images and weights lie in the workspace, and what the convolution behind them
  // has.
  std::size_t images_at = 0, weights_at = 0, rest_at = 0;

  // Executed products for each one asked for.
  [[nodiscard]] double flop_factor() const;
  [[nodiscard]] std::string text(const std::string& of_wide) const;
};

// Nothing where another way is as good.
[[nodiscard]] std::optional<Stem> stem_for(const Geometry& geometry, DType dtype,
                                           const DeviceLimits& limits);

struct StemForward {
  Stem stem;
  GatherPlan plan;

  StemForward(const Stem& given, DType dtype, const DeviceLimits& limits);
  [[nodiscard]] std::size_t workspace_bytes() const { return stem.rest_at + plan.workspace_bytes; }
  void run(const Rows& src, const void* weights, const Rows& dst, const Epilogue& epilogue,
           std::byte* workspace, Stream stream) const;
};

struct StemBackwardWeights {
  Stem stem;
  WeightsPlan plan;

  StemBackwardWeights(const Stem& given, DType dtype, const DeviceLimits& limits);
  [[nodiscard]] std::size_t workspace_bytes() const { return stem.rest_at + plan.workspace_bytes; }
  void run(const Rows& src, const Rows& diff_dst, void* diff_weights, std::byte* workspace,
           Stream stream) const;
};

}  // namespace ridgeline::cuda::conv
