#include "backends/cuda/hopper/hopper_maps.h"

#include <cuda_runtime_api.h>

#include "base/error.h"

namespace ridgeline::cuda::hopper {
namespace {

// The driver's functions, taken from the driver that runs: nothing is linked against it.
template <typename Function>
Function* driver_function(const char* name) {
  void* function = nullptr;
  cudaDriverEntryPointQueryResult result = cudaDriverEntryPointSymbolNotFound;
#if CUDART_VERSION >= 12050
  constexpr unsigned kVersion = 12000;  // the first that has them
  const cudaError_t error =
      cudaGetDriverEntryPointByVersion(name, &function, kVersion, cudaEnableDefault, &result);
#else
  const cudaError_t error = cudaGetDriverEntryPoint(name, &function, cudaEnableDefault, &result);
#endif
  if (error != cudaSuccess || result != cudaDriverEntryPointSuccess) return nullptr;
  return reinterpret_cast<Function*>(function);
}

auto* tiled_function() {
  static auto* const function =
      driver_function<decltype(cuTensorMapEncodeTiled)>("cuTensorMapEncodeTiled");
  return function;
}

auto* gather_function() {
  static auto* const function =
      driver_function<decltype(cuTensorMapEncodeIm2col)>("cuTensorMapEncodeIm2col");
  return function;
}

constexpr int kBoxColumns = 64, kElementBytes = 2;

CUtensorMapDataType type_of(DType dtype) {
  return dtype == DType::bf16 ? CU_TENSOR_MAP_DATA_TYPE_BFLOAT16 : CU_TENSOR_MAP_DATA_TYPE_FLOAT16;
}

// The driver wants pointers to what it only reads.
void* address_of(const void* data) { return const_cast<void*>(data); }

template <std::size_t rank>
struct Extents {
  cuuint64_t sizes[rank];
  cuuint64_t strides[rank - 1];  // bytes
  cuuint32_t box[rank];
};

template <std::size_t rank>
CUtensorMap tiled_map(const void* data, DType dtype, const Extents<rank>& extents) {
  CUtensorMap map;
  cuuint32_t steps[rank];
  for (cuuint32_t& step : steps) step = 1;
  const CUresult result = tiled_function()(
      &map, type_of(dtype), rank, address_of(data), extents.sizes, extents.strides, extents.box,
      steps, CU_TENSOR_MAP_INTERLEAVE_NONE, CU_TENSOR_MAP_SWIZZLE_128B,
      CU_TENSOR_MAP_L2_PROMOTION_L2_128B, CU_TENSOR_MAP_FLOAT_OOB_FILL_NONE);
  ensure(result == CUDA_SUCCESS, "CUDA made no map of a tensor");
  return map;
}

cuuint64_t bytes_of(std::int64_t elements) {
  return static_cast<cuuint64_t>(elements) * kElementBytes;
}

}  // namespace

bool has_maps() { return tiled_function() != nullptr && gather_function() != nullptr; }

CUtensorMap map_of_rows(const Rows& rows, DType dtype, int box_rows) {
  return tiled_map<2>(rows.data, dtype,
                      {{static_cast<cuuint64_t>(rows.width), static_cast<cuuint64_t>(rows.rows)},
                       {bytes_of(rows.stride)},
                       {kBoxColumns, static_cast<cuuint32_t>(box_rows)}});
}

CUtensorMap map_of_weights(const void* weights, int channels, int taps, int outputs, DType dtype,
                           int box_outputs) {
  return tiled_map<3>(weights, dtype,
                      {{static_cast<cuuint64_t>(channels), static_cast<cuuint64_t>(taps),
                        static_cast<cuuint64_t>(outputs)},
                       {bytes_of(channels), bytes_of(std::int64_t{channels} * taps)},
                       {kBoxColumns, 1, static_cast<cuuint32_t>(box_outputs)}});
}

CUtensorMap map_of_images(const Rows& rows, const GatherAxis& h, const GatherAxis& w, DType dtype,
                          int pixels) {
  const std::int64_t images = rows.rows / h.size / w.size;
  const cuuint64_t sizes[] = {static_cast<cuuint64_t>(rows.width), static_cast<cuuint64_t>(w.size),
                              static_cast<cuuint64_t>(h.size), static_cast<cuuint64_t>(images)};
  const cuuint64_t strides[] = {bytes_of(rows.stride), bytes_of(rows.stride * w.size),
                                bytes_of(rows.stride * w.size * h.size)};
  const int lower[] = {w.origin, h.origin}, upper[] = {w.upper(), h.upper()};
  const cuuint32_t steps[] = {1, static_cast<cuuint32_t>(w.step), static_cast<cuuint32_t>(h.step),
                              1};
  CUtensorMap map;
  const CUresult result =
      gather_function()(&map, type_of(dtype), 4, address_of(rows.data), sizes, strides, lower,
                        upper, kBoxColumns, static_cast<cuuint32_t>(pixels), steps,
                        CU_TENSOR_MAP_INTERLEAVE_NONE, CU_TENSOR_MAP_SWIZZLE_128B,
                        CU_TENSOR_MAP_L2_PROMOTION_L2_128B, CU_TENSOR_MAP_FLOAT_OOB_FILL_NONE);
  ensure(result == CUDA_SUCCESS, "CUDA made no map of images");
  return map;
}

}  // namespace ridgeline::cuda::hopper
