#pragma once

// What is decided about a convolution before its tensors are known: arithmetic, tiles, splits,
// workspace. A matrix product is a convolution of images of one pixel.

#include <cstddef>
#include <limits>
#include <string>

#include "backends/cuda/conv/conv_kernels.h"
#include "base/shape.h"
#include "ops/conv2d.h"

namespace ridgeline::cuda::conv {

struct Geometry {
  Conv2dAttributes attributes;
  std::int64_t images = 0;
  std::int64_t src_h = 1, src_w = 1, src_channels = 0, dst_h = 1, dst_w = 1, dst_channels = 0;

  // Channels of a group.
  [[nodiscard]] std::int64_t group_src() const { return src_channels / attributes.groups; }
  [[nodiscard]] std::int64_t group_dst() const { return dst_channels / attributes.groups; }
};
// Shapes of src and dst of the forward op, of rank 4 or 2.
[[nodiscard]] Geometry geometry_of(const Conv2dAttributes& attributes, const Shape& src,
                                   const Shape& dst);

[[nodiscard]] Epilogue epilogue_of(int activation, float slope);

// Forward and backward data.
struct GatherPlan {
  struct Choice {
    GatherTile tile = GatherTile::elements;
    int splits = 1;
    Grid grid;
    Divide by_width_tiles, by_group_tiles;
    double cycles = std::numeric_limits<double>::infinity();
  };

  Geometry geometry;
  DType dtype = DType::f32;
  bool forward = true;
  Arithmetic arithmetic = Arithmetic::f32;
  bool widened = false;   // operands are copied to f32 first
  bool direct = false;    // narrow groups, few products, or numbers too large for tiles
  bool small = false;     // few products: no tile is as fast
  int joined = 1;         // groups that are computed as one, with spread weights
  double cycles = 0.0;    // as conv_cost.h has it
  Gather base;            // everything but pointers, strides and what a choice brings
  bool in_packs = false;  // channels come in multiples of 16 bytes
  Choice packs, elements;
  // Where things lie in the workspace.
  std::size_t src_at = 0, weights_at = 0, partial_at = 0, workspace_bytes = 0;

  [[nodiscard]] std::string text() const;  // "128x64 tiles, 2 parts"
};

[[nodiscard]] GatherPlan plan_forward(const Geometry& geometry, DType dtype, bool allow_tf32,
                                      const DeviceLimits& limits);
[[nodiscard]] GatherPlan plan_backward_data(const Geometry& geometry, DType dtype, bool allow_tf32,
                                            const DeviceLimits& limits);

// `src` and `dst` are diff_dst and diff_src in backward data.
void run_gather(const GatherPlan& plan, const Rows& src, const void* weights, const Rows& dst,
                const Epilogue& epilogue, std::byte* workspace, Stream stream);

struct WeightsPlan {
  struct Choice {
    WeightsTile tile = WeightsTile::elements;
    int splits = 1, pixels_per_split = 0;
    Grid grid;
    Divide by_width_tiles, by_group_tiles;
    double cycles = std::numeric_limits<double>::infinity();
  };

  Geometry geometry;
  DType dtype = DType::f32;
  Arithmetic arithmetic = Arithmetic::f32;
  bool widened = false, direct = false;
  int joined = 1;
  double cycles = 0.0;
  Weights base;
  bool diff_in_packs = false, src_in_packs = false;
  Choice packs, src_elements, elements;

  // The choice for tensors that begin at multiples of 16 bytes.
  [[nodiscard]] const Choice& usual() const;
  std::size_t src_at = 0, diff_at = 0, partial_at = 0, workspace_bytes = 0;

  [[nodiscard]] std::string text() const;
};

[[nodiscard]] WeightsPlan plan_backward_weights(const Geometry& geometry, DType dtype,
                                                bool allow_tf32, const DeviceLimits& limits);

void run_weights(const WeightsPlan& plan, const Rows& src, const Rows& diff_dst, void* diff_weights,
                 std::byte* workspace, Stream stream);

}  // namespace ridgeline::cuda::conv
