#pragma once

// Convolutions of narrow groups, ResNeXt's and RegNet's: a vector of dst channels holds several.
// Where the dense kernels would leave lanes empty, the src of all groups of a vector is spread over
// its lanes. See docs/kernels/native-convolution.md.

#include <cstddef>
#include <cstdint>
#include <vector>

#include "backends/native/conv_geometry.h"
#include "backends/native/gemm.h"

namespace ridgeline::native::conv {

// How lane l of a vector gets number i of its group's src channels.
enum class Spread : std::uint8_t {
  lookup,  // the src of all its groups is one vector at most: a permutation of that
  gather,  // any other: lane by lane
};

// Up to three taps of one row of the kernel that lie side by side: they share the src they read.
struct Segment {
  Tap first;
  std::int64_t taps = 1;
  std::int64_t kernel[3] = {};  // position in the weights of each
};
inline constexpr std::int64_t kMostSegmentTaps = 3;

// The taps of a phase, cut into segments; `step`: of src from one column to the next.
[[nodiscard]] std::vector<Segment> segments_of(const std::vector<Tap>& taps, std::int64_t step);

// The vectors of dst channels of a geometry.
struct LaneBlocks {
  std::int64_t lanes = 1, count = 1;
  Spread spread = Spread::lookup;

  // The first src channel that a block reads, and how many it reads from there on.
  [[nodiscard]] std::int64_t src_channel(const Geometry& g, std::int64_t block) const {
    return block * lanes / g.dst_group() * g.src_group();
  }
  [[nodiscard]] std::int64_t src_channels(const Geometry& g, std::int64_t block) const;
  [[nodiscard]] std::int64_t used(const Geometry& g, std::int64_t block) const;
};

// Whether the groups are so narrow that whole ones fill a vector of this machine. Depthwise
// convolutions have kernels of their own.
[[nodiscard]] bool is_narrow(const Geometry& geometry);
// REQUIRES: is_narrow(geometry).
[[nodiscard]] LaneBlocks lane_blocks(const Geometry& geometry);
// Where the filter of each lane's channel begins in the plain weights.
inline constexpr std::int64_t kMostLanes = 16;
void list_filters(const Geometry& geometry, const LaneBlocks& blocks, std::int64_t block,
                  std::int64_t* filters);
// Lanes' places among a block's src channels, for each src channel of a group: a table of
// src_group() rows of `lanes`. The last block's own table may differ where it is not full.
void fill_places(const Geometry& geometry, const LaneBlocks& blocks, std::int64_t block,
                 std::int32_t* places);

struct GroupedPlan {
  Geometry geometry;
  int threads = 1;
  LaneBlocks blocks;
  Bands bands;
  std::int64_t chunks = 1;                     // pieces of the blocks, when there are too few bands
  std::vector<std::vector<Segment>> segments;  // of each phase
  std::int64_t block_floats = 0;               // packed weights of one block, all phases
  std::int64_t buffer_floats = 0;              // of one copied band
  std::size_t workspace_bytes = 0;
};

[[nodiscard]] GroupedPlan make_grouped_plan(Geometry geometry, int threads);

// src and dst are nhwc with any pixel stride, weights plain. Forward and backward data, as the
// geometry says.
void run_grouped(const GroupedPlan& plan, const Tensor& src, const float* weights,
                 const Tensor& dst, const Epilogue& epilogue, std::byte* workspace);

struct GroupedWeightsPlan {
  Geometry geometry;  // of the forward convolution; its dst is diff_dst
  int threads = 1, parts = 1;
  LaneBlocks blocks;
  Bands bands;
  std::vector<Segment> segments;
  std::int64_t part_floats = 0;    // sums of one part of the pixels
  std::int64_t buffer_floats = 0;  // of one copied band
  std::size_t workspace_bytes = 0;
};

[[nodiscard]] GroupedWeightsPlan make_grouped_weights_plan(Geometry geometry, int threads);

void run_grouped_weights(const GroupedWeightsPlan& plan, const Tensor& src, const Tensor& diff_dst,
                         float* diff_weights, std::byte* workspace);

}  // namespace ridgeline::native::conv
