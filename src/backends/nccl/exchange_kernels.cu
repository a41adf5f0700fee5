#include "backends/cuda/device.cuh"
#include "backends/nccl/exchange_kernels.h"

namespace ridgeline::nccl {
namespace {

using cuda::bf16;
using cuda::f16;
using cuda::from_float;
using cuda::to_float;

constexpr int kThreads = 256;
// Blocks for each tensor: enough to keep memory busy when there is one.
constexpr std::int64_t kMostBlocks = 264;

struct Tensors {
  Travelling all[kTravelling];
};
static_assert(sizeof(Tensors) <= 4000);

__device__ __forceinline__ float read(const Travelling& tensor, std::int64_t i) {
  switch (tensor.dtype) {
    case DType::bf16:
      return to_float(static_cast<const bf16*>(tensor.data)[i]);
    case DType::f16:
      return to_float(static_cast<const f16*>(tensor.data)[i]);
    default:
      return static_cast<const float*>(tensor.data)[i];
  }
}

__device__ __forceinline__ void write(const Travelling& tensor, std::int64_t i, float value) {
  switch (tensor.dtype) {
    case DType::bf16:
      static_cast<bf16*>(tensor.data)[i] = from_float<bf16>(value);
      return;
    case DType::f16:
      static_cast<f16*>(tensor.data)[i] = from_float<f16>(value);
      return;
    default:
      static_cast<float*>(tensor.data)[i] = value;
  }
}

template <typename Wire>
__global__ void __launch_bounds__(kThreads)
    pack_kernel(const __grid_constant__ Tensors tensors, Wire* stretch, float factor) {
  const Travelling& tensor = tensors.all[blockIdx.y];
  const std::int64_t step = std::int64_t{gridDim.x} * kThreads;
  for (std::int64_t i = std::int64_t{blockIdx.x} * kThreads + threadIdx.x; i < tensor.elements;
       i += step) {
    stretch[tensor.first + i] = from_float<Wire>(read(tensor, i) * factor);
  }
}

template <typename Wire>
__global__ void __launch_bounds__(kThreads)
    unpack_kernel(const __grid_constant__ Tensors tensors, const Wire* stretch, float factor) {
  const Travelling& tensor = tensors.all[blockIdx.y];
  const std::int64_t step = std::int64_t{gridDim.x} * kThreads;
  for (std::int64_t i = std::int64_t{blockIdx.x} * kThreads + threadIdx.x; i < tensor.elements;
       i += step) {
    write(tensor, i, to_float(stretch[tensor.first + i]) * factor);
  }
}

template <typename Wire>
__global__ void __launch_bounds__(kThreads)
    sum_parts_kernel(const Wire* parts, int ranks, std::int64_t elements, Wire* sum) {
  const std::int64_t i = std::int64_t{blockIdx.x} * kThreads + threadIdx.x;
  if (i >= elements) return;
  float total = 0.0F;
  for (int rank = 0; rank < ranks; ++rank) total += to_float(parts[rank * elements + i]);
  sum[i] = from_float<Wire>(total);
}

__global__ void __launch_bounds__(kThreads)
    write_record_kernel(double weight, const float* mean, const float* variance, int channels,
                        double* record) {
  const int c = static_cast<int>(blockIdx.x) * kThreads + static_cast<int>(threadIdx.x);
  if (c == 0) record[0] = weight;
  if (c >= channels) return;
  record[1 + c] = mean[c];
  record[1 + channels + c] = variance[c];
}

// As merged_statistics() does it.
__global__ void __launch_bounds__(kThreads)
    merge_records_kernel(const double* records, int ranks, int channels, float* mean,
                         float* variance) {
  const int c = static_cast<int>(blockIdx.x) * kThreads + static_cast<int>(threadIdx.x);
  if (c >= channels) return;
  const auto record = [&](int rank) { return records + rank * (1 + 2 * std::int64_t{channels}); };
  double common = 0.0, merged = 0.0;
  for (int rank = 0; rank < ranks; ++rank) common += record(rank)[0] * record(rank)[1 + c];
  for (int rank = 0; rank < ranks; ++rank) {
    const double off = record(rank)[1 + c] - common;
    merged += record(rank)[0] * (record(rank)[1 + channels + c] + off * off);
  }
  if (mean != nullptr) mean[c] = static_cast<float>(common);
  if (variance != nullptr) variance[c] = static_cast<float>(merged);
}

unsigned blocks_for(std::int64_t elements) {
  return static_cast<unsigned>((elements + kThreads - 1) / kThreads);
}

// One row of blocks for each tensor, as long as the largest wants it.
dim3 grid_of(const Travelling* tensors, int count, Tensors& all) {
  std::int64_t most = 1;
  for (int i = 0; i < count; ++i) {
    all.all[i] = tensors[i];
    if (tensors[i].elements > most) most = tensors[i].elements;
  }
  const std::int64_t blocks = blocks_for(most);
  return {static_cast<unsigned>(blocks < kMostBlocks ? blocks : kMostBlocks),
          static_cast<unsigned>(count)};
}

// Calls body(Wire*) for the type that travels.
template <typename Body>
void with_wire(DType wire, Body body) {
  if (wire == DType::bf16) return body(static_cast<bf16*>(nullptr));
  if (wire == DType::f16) return body(static_cast<f16*>(nullptr));
  body(static_cast<float*>(nullptr));
}

}  // namespace

void launch_pack(const Travelling* tensors, int count, void* stretch, DType wire, float factor,
                 Stream stream) {
  Tensors all;
  const dim3 grid = grid_of(tensors, count, all);
  with_wire(wire, [&]<typename Wire>(Wire*) {
    pack_kernel<<<grid, kThreads, 0, stream>>>(all, static_cast<Wire*>(stretch), factor);
  });
  cuda::check_launch("pack");
}

void launch_unpack(const Travelling* tensors, int count, const void* stretch, DType wire,
                   float factor, Stream stream) {
  Tensors all;
  const dim3 grid = grid_of(tensors, count, all);
  with_wire(wire, [&]<typename Wire>(Wire*) {
    unpack_kernel<<<grid, kThreads, 0, stream>>>(all, static_cast<const Wire*>(stretch), factor);
  });
  cuda::check_launch("unpack");
}

void launch_sum_parts(const void* parts, int ranks, std::int64_t elements, void* sum, DType wire,
                      Stream stream) {
  with_wire(wire, [&]<typename Wire>(Wire*) {
    sum_parts_kernel<<<blocks_for(elements), kThreads, 0, stream>>>(
        static_cast<const Wire*>(parts), ranks, elements, static_cast<Wire*>(sum));
  });
  cuda::check_launch("sum_parts");
}

void launch_write_record(double weight, const float* mean, const float* variance, int channels,
                         double* record, Stream stream) {
  write_record_kernel<<<blocks_for(channels), kThreads, 0, stream>>>(weight, mean, variance,
                                                                     channels, record);
  cuda::check_launch("write_record");
}

void launch_merge_records(const double* records, int ranks, int channels, float* mean,
                          float* variance, Stream stream) {
  merge_records_kernel<<<blocks_for(channels), kThreads, 0, stream>>>(records, ranks, channels,
                                                                      mean, variance);
  cuda::check_launch("merge_records");
}

}  // namespace ridgeline::nccl
