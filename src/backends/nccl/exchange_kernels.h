#pragma once

// What happens to values around an exchange between ranks: they are brought together in one stretch
// of one type, added where they travelled narrow, and brought back.

#include "backends/cuda/launch.h"

namespace ridgeline::nccl {

using cuda::Stream;

// A tensor on its way: `elements` values of any type, whatever their layout.
struct Travelling {
  void* data = nullptr;
  std::int64_t elements = 0;
  std::int64_t first = 0;  // where it lies in the stretch, in elements
  DType dtype = DType::f32;
};
// At most so many in one launch.
inline constexpr int kTravelling = 64;

// stretch = value * factor, and back: value = stretch * factor. `wire` is the type of the stretch.
void launch_pack(const Travelling* tensors, int count, void* stretch, DType wire, float factor,
                 Stream stream);
void launch_unpack(const Travelling* tensors, int count, const void* stretch, DType wire,
                   float factor, Stream stream);

// sum[i] = the sum over ranks of parts[rank * elements + i], in f32 and in the order of the ranks,
// rounded to `wire`.
void launch_sum_parts(const void* parts, int ranks, std::int64_t elements, void* sum, DType wire,
                      Stream stream);

// A rank's batch statistics as 1 + 2 * channels doubles: its weight, means, variances.
void launch_write_record(double weight, const float* mean, const float* variance, int channels,
                         double* record, Stream stream);
// Those of all ranks, one record behind the other, merged around their common mean. Null: not
// wanted.
void launch_merge_records(const double* records, int ranks, int channels, float* mean,
                          float* variance, Stream stream);

}  // namespace ridgeline::nccl
