#pragma once

// The second half of sums over all samples: every block of a kernel leaves its own behind, another
// kernel adds them in the order of the blocks. So the same inputs give the same bits.

#include <cstdint>

#include "backends/cuda/launch.h"

namespace ridgeline {
struct StepState;
}

namespace ridgeline::cuda {

// Where a run of elements goes, from `begin` to the next run.
struct SumSegment {
  int begin = 0;
  float* out = nullptr;
};

inline constexpr int kMaxSumSegments = 7;

struct PartialSums {
  const float* partials = nullptr;
  std::int64_t stride = 0;  // from one block's to the next
  int parts = 0;            // blocks
  int elements = 0;         // of each
  int segments = 0;
  SumSegment segment[kMaxSumSegments];

  void add_segment(int count, float* out) {
    segment[segments++] = {elements, out};
    elements += count;
  }
};

inline constexpr int kSumThreads = 256;  // of a block that adds partial sums
inline constexpr int kSumsOfBlock = 32;  // elements it makes
[[nodiscard]] constexpr int sum_blocks(const PartialSums& sums) {
  return (sums.elements + kSumsOfBlock - 1) / kSumsOfBlock;
}

inline constexpr int kLossSums = 3;  // loss, rows right in the top 1, in the top 5

// What the blocks' sums of losses become; null: not wanted.
struct LossTotals {
  const float* sums = nullptr;  // kLossSums of each block
  std::int64_t stride = 0;
  int parts = 0;
  std::int64_t rows = 0;
  const StepState* state = nullptr;
  float* loss = nullptr;
  const double* totals = nullptr;
  double* new_totals = nullptr;
};

}  // namespace ridgeline::cuda
