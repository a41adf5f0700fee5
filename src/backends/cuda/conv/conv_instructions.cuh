#pragma once

// The instructions behind the convolutions, one function each: asynchronous copies to shared
// memory, matrix loads. Copies are plain ones before compute capability 8.0.

#include "backends/cuda/conv/conv_kernels.h"
#include "backends/cuda/device.cuh"
#include "devices/cuda_tensor_cores.cuh"

namespace ridgeline::cuda::conv {

__device__ __forceinline__ int divide(const Divide& by, int value) {
  const auto number = static_cast<unsigned>(value);
  return static_cast<int>((__umulhi(number, by.multiplier) + number) >> by.shift);
}

__device__ __forceinline__ unsigned char* dynamic_shared_memory() {
  extern __shared__ __align__(128) unsigned char bytes[];
  return bytes;
}

__device__ __forceinline__ unsigned shared_address(const void* pointer) {
  return static_cast<unsigned>(__cvta_generic_to_shared(pointer));
}

// Slices that shared memory holds at a time: plain copies need no more than two.
template <int asynchronous>
__device__ __forceinline__ int stages_of() {
#if __CUDA_ARCH__ >= 800
  return asynchronous;
#else
  return 2;
#endif
}

// 16 bytes to shared memory, zeros unless `inside`; `global` is then not read. `cached`: through
// the first-level cache, for data that other taps read again.
template <bool cached>
__device__ __forceinline__ void copy_pack(void* shared, const void* global, bool inside) {
#if __CUDA_ARCH__ >= 800
  const int bytes = inside ? 16 : 0;
  if constexpr (cached) {
    asm volatile("cp.async.ca.shared.global [%0], [%1], 16, %2;" ::"r"(shared_address(shared)),
                 "l"(__cvta_generic_to_global(global)), "r"(bytes)
                 : "memory");
  } else {
    asm volatile("cp.async.cg.shared.global [%0], [%1], 16, %2;" ::"r"(shared_address(shared)),
                 "l"(__cvta_generic_to_global(global)), "r"(bytes)
                 : "memory");
  }
#else
  uint4 pack = {0, 0, 0, 0};
  if (inside) pack = *static_cast<const uint4*>(global);
  *static_cast<uint4*>(shared) = pack;
#endif
}

// The same for one f32.
__device__ __forceinline__ void copy_word(void* shared, const void* global, bool inside) {
#if __CUDA_ARCH__ >= 800
  const int bytes = inside ? 4 : 0;
  asm volatile("cp.async.ca.shared.global [%0], [%1], 4, %2;" ::"r"(shared_address(shared)),
               "l"(__cvta_generic_to_global(global)), "r"(bytes)
               : "memory");
#else
  *static_cast<unsigned*>(shared) = inside ? *static_cast<const unsigned*>(global) : 0;
#endif
}

// Ends a group of copies.
__device__ __forceinline__ void commit_copies() {
#if __CUDA_ARCH__ >= 800
  asm volatile("cp.async.commit_group;" ::: "memory");
#endif
}

// Waits until all of the thread's groups but the last `pending` are there.
template <int pending>
__device__ __forceinline__ void wait_for_copies() {
#if __CUDA_ARCH__ >= 800
  asm volatile("cp.async.wait_group %0;" ::"n"(pending) : "memory");
#endif
}

// Four matrices of 8 rows of 16 bytes; lane l gives the address of row l % 8 of matrix l / 8. Each
// lane gets 4 bytes of each matrix: of row lane / 4, from byte 4 * (lane % 4) on.
__device__ __forceinline__ void load_matrices(unsigned (&words)[4], const void* row) {
  asm volatile("ldmatrix.sync.aligned.m8n8.x4.shared.b16 {%0, %1, %2, %3}, [%4];"
               : "=r"(words[0]), "=r"(words[1]), "=r"(words[2]), "=r"(words[3])
               : "r"(shared_address(row))
               : "memory");
}

// The same with each matrix of 8 by 8 elements of 2 bytes transposed.
__device__ __forceinline__ void load_transposed(unsigned (&words)[4], const void* row) {
  asm volatile("ldmatrix.sync.aligned.m8n8.x4.trans.shared.b16 {%0, %1, %2, %3}, [%4];"
               : "=r"(words[0]), "=r"(words[1]), "=r"(words[2]), "=r"(words[3])
               : "r"(shared_address(row))
               : "memory");
}

// The bits of an f32 rounded to the nearest TF32.
__device__ __forceinline__ void round_to_tf32(unsigned& bits) {
#if __CUDA_ARCH__ >= 800
  asm("cvt.rna.tf32.f32 %0, %1;" : "=r"(bits) : "f"(__uint_as_float(bits)));
#endif
}

// Starts a kernel that takes one struct of parameters.
template <typename Parameters>
void start(void (*kernel)(Parameters), dim3 grid, int threads, int shared_bytes,
           Parameters parameters, Stream stream, const char* name) {
  const auto* function = reinterpret_cast<const void*>(kernel);
  // More than 48 KiB, tables of fixed size included, must be asked for.
  if (shared_bytes > 32 * 1024) {
    (void)cudaFuncSetAttribute(function, cudaFuncAttributeMaxDynamicSharedMemorySize, shared_bytes);
  }
  void* arguments[] = {&parameters};
  (void)cudaLaunchKernel(function, grid, dim3(static_cast<unsigned>(threads)), arguments,
                         static_cast<std::size_t>(shared_bytes), stream);
  check_launch(name);
}

}  // namespace ridgeline::cuda::conv
