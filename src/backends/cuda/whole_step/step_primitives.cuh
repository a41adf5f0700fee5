#pragma once

// Instructions without a C++ name that the kernels for whole small networks use. Devices older than
// compute capability 8.0 copy plainly and have no matrix product of this shape.

#include "backends/cuda/device.cuh"

namespace ridgeline::cuda {

// Copies 16 bytes from global to shared memory, both aligned, without waiting for them.
__device__ __forceinline__ void copy_async(void* shared, const void* global) {
#if __CUDA_ARCH__ >= 800
  asm volatile("cp.async.cg.shared.global [%0], [%1], 16;" ::"r"(
                   static_cast<unsigned>(__cvta_generic_to_shared(shared))),
               "l"(global)
               : "memory");
#else
  *static_cast<uint4*>(shared) = *static_cast<const uint4*>(global);
#endif
}

// The same of one float.
__device__ __forceinline__ void copy_float_async(float* shared, const float* global) {
#if __CUDA_ARCH__ >= 800
  asm volatile("cp.async.ca.shared.global [%0], [%1], 4;" ::"r"(
                   static_cast<unsigned>(__cvta_generic_to_shared(shared))),
               "l"(global)
               : "memory");
#else
  *shared = *global;
#endif
}

// Ends a group of copies; copy_wait<n> waits until at most the n latest groups are under way. The
// thread then sees its own copies, and after __syncthreads all threads see them.
__device__ __forceinline__ void copy_commit() {
#if __CUDA_ARCH__ >= 800
  asm volatile("cp.async.commit_group;" ::: "memory");
#endif
}

template <int groups>
__device__ __forceinline__ void copy_wait() {
#if __CUDA_ARCH__ >= 800
  asm volatile("cp.async.wait_group %0;" ::"n"(groups) : "memory");
#endif
}

// dst += left (16 x 16) · right (16 x 8) of a warp, f16 numbers added in f32. With group = lane /
// 4, four = lane % 4: left[0], left[2]: row `group`, columns 2 four, 2 four + 1 and those + 8;
// left[1], left[3]: row `group` + 8; right[0], right[1]: rows as left's columns, column `group`;
// dst[0], dst[1]: row `group`, columns 2 four, 2 four + 1; dst[2], dst[3]: row `group` + 8.
__device__ __forceinline__ void multiply_f16(float (&dst)[4], const std::uint32_t (&left)[4],
                                             std::uint32_t right0, std::uint32_t right1) {
#if __CUDA_ARCH__ >= 800
  asm volatile(
      "mma.sync.aligned.m16n8k16.row.col.f32.f16.f16.f32 {%0, %1, %2, %3}, {%4, %5, %6, %7}, "
      "{%8, %9}, {%0, %1, %2, %3};"
      : "+f"(dst[0]), "+f"(dst[1]), "+f"(dst[2]), "+f"(dst[3])
      : "r"(left[0]), "r"(left[1]), "r"(left[2]), "r"(left[3]), "r"(right0), "r"(right1));
#endif
}

}  // namespace ridgeline::cuda
