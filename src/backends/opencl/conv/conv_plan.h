#pragma once

// What is decided about a convolution before its tensors are known: the classes of dst pixels, how
// groups are joined, tiles, parts, workspace. A matrix product is a convolution of images of one
// pixel.

#include <cstddef>
#include <string>
#include <vector>

#include "backends/opencl/conv/conv_args.h"
#include "base/shape.h"
#include "ops/conv2d.h"

namespace ridgeline::opencl::conv {

struct Geometry {
  Conv2dAttributes attributes;
  std::int64_t images = 0;
  std::int64_t src_h = 1, src_w = 1, src_channels = 0, dst_h = 1, dst_w = 1, dst_channels = 0;
  bool half = false;  // images and weights of 16 bits

  // Channels of a group.
  [[nodiscard]] std::int64_t group_src() const { return src_channels / attributes.groups; }
  [[nodiscard]] std::int64_t group_dst() const { return dst_channels / attributes.groups; }
  [[nodiscard]] std::int64_t taps() const { return attributes.kernel_h * attributes.kernel_w; }
};
// Shapes of src and dst of the forward op, of rank 4 or 2.
[[nodiscard]] Geometry geometry_of(const Conv2dAttributes& attributes, const Shape& src,
                                   const Shape& dst);
// Why numbers of 32 bits do not reach; empty where they do.
[[nodiscard]] std::string refuse_size(const Geometry& geometry);

// The classes of dst pixels, and the lines of a gradient of weights, without channels and strides.
[[nodiscard]] Gather forward_gather(const Geometry& geometry);
[[nodiscard]] std::vector<Gather> backward_gathers(const Geometry& geometry);
[[nodiscard]] Weights weights_lines(const Geometry& geometry);

// What a work-item or a work-group computes at once.
struct Tile {
  bool local = false;  // through local memory; else in registers alone
  int rows = 1;        // pixels, or channels of diff_dst; of a local tile a multiple of 16
  int vectors = 1;     // of channels: of dst, or of src
  int lanes = 16;      // channels of a vector

  [[nodiscard]] int width() const { return lanes * vectors; }
  [[nodiscard]] std::int64_t local_bytes() const;
  [[nodiscard]] std::string options(bool half) const;  // of the kernel's build
  [[nodiscard]] std::string text() const;              // "8x32 in registers"

  friend bool operator==(const Tile&, const Tile&) = default;
};

// A matrix of rows with gaps, as an image with one pixel to a row, where few channels make one.
struct Patches {
  bool used = false;
  Gather gather;
  std::int32_t pitch = 0;
  std::size_t at = 0;  // in the workspace
};

// Forward and backward data.
struct GatherPlan {
  Tile tile;
  Patches patches;
  std::vector<Gather> classes;  // without strides and epilogue
  bool packed = true;           // else weights are read where they lie
  Pack pack;
  std::size_t weights_at = 0, zeros_at = 0, workspace_bytes = 0;
  double flop_factor = 1.0;
};
[[nodiscard]] GatherPlan plan_forward(const Geometry& geometry, const Tile& tile);
[[nodiscard]] GatherPlan plan_backward_data(const Geometry& geometry, const Tile& tile);

struct WeightsPlan {
  Tile tile;
  Patches patches;
  Weights weights;  // without strides
  Sum sum;
  std::size_t partial_at = 0, workspace_bytes = 0;
  double flop_factor = 1.0;
};
[[nodiscard]] WeightsPlan plan_backward_weights(const Geometry& geometry, const Tile& tile,
                                                std::int64_t units);

}  // namespace ridgeline::opencl::conv
