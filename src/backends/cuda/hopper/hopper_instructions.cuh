#pragma once

// The instructions of compute capability 9.0 behind the Hopper convolutions, one function each:
// barriers in shared memory, copies by the tensor memory accelerator (TMA), and products of a
// warpgroup straight from shared memory (wgmma). Only files built for sm_90a include this.

#include <cuda.h>

#include <cstdint>
#include <type_traits>

#include "devices/cuda_tensor_cores.cuh"

namespace ridgeline::cuda::hopper {

__device__ __forceinline__ unsigned shared_address(const void* pointer) {
  return static_cast<unsigned>(__cvta_generic_to_shared(pointer));
}

// ---- Barriers. A phase ends when all expected threads have arrived and all bytes have come.

using Barrier = std::uint64_t;

__device__ __forceinline__ void init_barrier(Barrier* barrier, int arrivals) {
  asm volatile("mbarrier.init.shared::cta.b64 [%0], %1;" ::"r"(shared_address(barrier)),
               "r"(arrivals)
               : "memory");
}

// Makes initialised barriers known to the copy engine.
__device__ __forceinline__ void publish_barriers() {
  asm volatile("fence.mbarrier_init.release.cluster;" ::: "memory");
}

__device__ __forceinline__ void arrive(Barrier* barrier) {
  asm volatile("mbarrier.arrive.shared::cta.b64 _, [%0];" ::"r"(shared_address(barrier))
               : "memory");
}

__device__ __forceinline__ void arrive_expecting(Barrier* barrier, int bytes) {
  asm volatile(
      "mbarrier.arrive.expect_tx.shared::cta.b64 _, [%0], %1;" ::"r"(shared_address(barrier)),
      "r"(bytes)
      : "memory");
}

// Waits until the phase of this parity is over; the parity before the first phase is 1.
__device__ __forceinline__ void wait_for(Barrier* barrier, unsigned parity) {
  asm volatile(
      "{\n"
      ".reg .pred done;\n"
      "again:\n"
      "mbarrier.try_wait.parity.shared::cta.b64 done, [%0], %1;\n"
      "@!done bra again;\n"
      "}\n" ::"r"(shared_address(barrier)),
      "r"(parity)
      : "memory");
}

// Waits for `threads` threads of the block that name the same barrier, 1 to 15.
__device__ __forceinline__ void meet(int barrier, int threads) {
  asm volatile("bar.sync %0, %1;" ::"r"(barrier), "r"(threads) : "memory");
}

// Sets the number of registers of all threads of the warpgroup, below or above what it has.
template <int kRegisters>
__device__ __forceinline__ void give_registers() {
  asm volatile("setmaxnreg.dec.sync.aligned.u32 %0;" ::"n"(kRegisters));
}
template <int kRegisters>
__device__ __forceinline__ void take_registers() {
  asm volatile("setmaxnreg.inc.sync.aligned.u32 %0;" ::"n"(kRegisters));
}

// ---- Copies. Coordinates begin with the innermost dimension; what lies outside comes as zeros.

__device__ __forceinline__ void prefetch_map(const CUtensorMap* map) {
  asm volatile("prefetch.tensormap [%0];" ::"l"(map) : "memory");
}

__device__ __forceinline__ void load_box(void* shared, const CUtensorMap* map, Barrier* barrier,
                                         int x, int y) {
  asm volatile(
      "cp.async.bulk.tensor.2d.shared::cluster.global.mbarrier::complete_tx::bytes "
      "[%0], [%1, {%3, %4}], [%2];" ::"r"(shared_address(shared)),
      "l"(map), "r"(shared_address(barrier)), "r"(x), "r"(y)
      : "memory");
}

__device__ __forceinline__ void load_box(void* shared, const CUtensorMap* map, Barrier* barrier,
                                         int x, int y, int z) {
  asm volatile(
      "cp.async.bulk.tensor.3d.shared::cluster.global.mbarrier::complete_tx::bytes "
      "[%0], [%1, {%3, %4, %5}], [%2];" ::"r"(shared_address(shared)),
      "l"(map), "r"(shared_address(barrier)), "r"(x), "r"(y), "r"(z)
      : "memory");
}

// The pixels that one tap of a convolution reads for consecutive pixels of its result, from the
// one at (image, h, w) on; the tap lies (tap_h, tap_w) away from there.
__device__ __forceinline__ void load_pixels(void* shared, const CUtensorMap* map, Barrier* barrier,
                                            int channel, int w, int h, int image, int tap_w,
                                            int tap_h) {
  asm volatile(
      "cp.async.bulk.tensor.4d.shared::cluster.global.im2col.mbarrier::complete_tx::bytes "
      "[%0], [%1, {%3, %4, %5, %6}], [%2], {%7, %8};" ::"r"(shared_address(shared)),
      "l"(map), "r"(shared_address(barrier)), "r"(channel), "r"(w), "r"(h), "r"(image),
      "h"(static_cast<unsigned short>(tap_w)), "h"(static_cast<unsigned short>(tap_h))
      : "memory");
}

__device__ __forceinline__ void store_box(const CUtensorMap* map, const void* shared, int x,
                                          int y) {
  asm volatile(
      "cp.async.bulk.tensor.2d.global.shared::cta.bulk_group [%0, {%2, %3}], [%1];" ::"l"(map),
      "r"(shared_address(shared)), "r"(x), "r"(y)
      : "memory");
}

__device__ __forceinline__ void commit_stores() {
  asm volatile("cp.async.bulk.commit_group;" ::: "memory");
}

// Waits until the thread's stores have read shared memory.
__device__ __forceinline__ void wait_for_stores() {
  asm volatile("cp.async.bulk.wait_group.read 0;" ::: "memory");
}

// Makes the thread's writes to shared memory visible to the copy engine and to wgmma.
__device__ __forceinline__ void publish_shared() {
  asm volatile("fence.proxy.async.shared::cta;" ::: "memory");
}

// Four matrices of 8 rows of 16 bytes from registers; lane l gives the address of row l % 8 of
// matrix l / 8, and holds 4 bytes of each matrix: of row lane / 4, from byte 4 * (lane % 4) on.
__device__ __forceinline__ void store_matrices(unsigned address, unsigned a, unsigned b, unsigned c,
                                               unsigned d) {
  asm volatile("stmatrix.sync.aligned.m8n8.x4.shared.b16 [%0], {%1, %2, %3, %4};" ::"r"(address),
               "r"(a), "r"(b), "r"(c), "r"(d)
               : "memory");
}

// ---- Products. Operands lie in rows of 128 bytes whose 16-byte pieces are swizzled as TMA does:
// piece c of row r at place c xor (r mod 8). Rows are rows of the operand with 64 positions of the
// depth ("depth inner"), or positions of the depth with 64 rows of the operand.

// `boxes`: bytes between two blocks of 64 rows where the depth is not inner.
__device__ __forceinline__ std::uint64_t describe_operand(unsigned address, unsigned boxes) {
  constexpr std::uint64_t kSwizzle128 = std::uint64_t{1} << 62, kEightRows = 1024 / 16;
  return kSwizzle128 | kEightRows << 32 | static_cast<std::uint64_t>(boxes / 16) << 16 |
         (address & 0x3FFFF) / 16;
}

// Before the first product that reads what other threads wrote, or registers that were touched.
__device__ __forceinline__ void begin_products() {
  asm volatile("wgmma.fence.sync.aligned;" ::: "memory");
}
__device__ __forceinline__ void commit_products() {
  asm volatile("wgmma.commit_group.sync.aligned;" ::: "memory");
}
template <int kPending>
__device__ __forceinline__ void wait_for_products() {
  asm volatile("wgmma.wait_group.sync.aligned %0;" ::"n"(kPending) : "memory");
}

// sums (64 x 2 * kSums) += a (64 rows) * b (2 * kSums rows), 16 positions deep; a fresh start
// unless `more`. Thread t holds rows t / 32 * 16 + t % 32 / 4 (+ 8) of columns 8 j + 2 (t % 4)
// (+ 1): sums[4 j], [4 j + 1], eight rows below [4 j + 2], [4 j + 3].
template <typename T, bool kDepthInnerA, bool kDepthInnerB, int kSums>
__device__ __forceinline__ void multiply(float (&sums)[kSums], std::uint64_t a, std::uint64_t b,
                                         bool more);

#define RIDGELINE_SUMS_4(d, i) "+f"(d[i]), "+f"(d[i + 1]), "+f"(d[i + 2]), "+f"(d[i + 3])
#define RIDGELINE_SUMS_16(d, i)                                                   \
  RIDGELINE_SUMS_4(d, i), RIDGELINE_SUMS_4(d, i + 4), RIDGELINE_SUMS_4(d, i + 8), \
      RIDGELINE_SUMS_4(d, i + 12)
#define RIDGELINE_SUMS_32(d, i) RIDGELINE_SUMS_16(d, i), RIDGELINE_SUMS_16(d, i + 16)
#define RIDGELINE_SUMS_64(d, i) RIDGELINE_SUMS_32(d, i), RIDGELINE_SUMS_32(d, i + 32)

#define RIDGELINE_PRODUCT_64(type)                                                       \
  asm volatile(                                                                          \
      "{\n.reg .pred more;\nsetp.ne.b32 more, %34, 0;\n"                                 \
      "wgmma.mma_async.sync.aligned.m64n64k16.f32." type "." type                        \
      " {"                                                                               \
      "%0, %1, %2, %3, %4, %5, %6, %7, %8, %9, %10, %11, %12, %13, %14, %15, %16, %17, " \
      "%18, %19, %20, %21, %22, %23, %24, %25, %26, %27, %28, %29, %30, %31"             \
      "}, %32, %33, more, 1, 1, %35, %36;\n}\n"                                          \
      : RIDGELINE_SUMS_32(d, 0)                                                          \
      : "l"(a), "l"(b), "r"(static_cast<int>(more)), "n"(kDepthInnerA ? 0 : 1),          \
        "n"(kDepthInnerB ? 0 : 1))

#define RIDGELINE_PRODUCT_128(type)                                                      \
  asm volatile(                                                                          \
      "{\n.reg .pred more;\nsetp.ne.b32 more, %66, 0;\n"                                 \
      "wgmma.mma_async.sync.aligned.m64n128k16.f32." type "." type                       \
      " {"                                                                               \
      "%0, %1, %2, %3, %4, %5, %6, %7, %8, %9, %10, %11, %12, %13, %14, %15, %16, %17, " \
      "%18, %19, %20, %21, %22, %23, %24, %25, %26, %27, %28, %29, %30, %31, %32, %33, " \
      "%34, %35, %36, %37, %38, %39, %40, %41, %42, %43, %44, %45, %46, %47, %48, %49, " \
      "%50, %51, %52, %53, %54, %55, %56, %57, %58, %59, %60, %61, %62, %63"             \
      "}, %64, %65, more, 1, 1, %67, %68;\n}\n"                                          \
      : RIDGELINE_SUMS_64(d, 0)                                                          \
      : "l"(a), "l"(b), "r"(static_cast<int>(more)), "n"(kDepthInnerA ? 0 : 1),          \
        "n"(kDepthInnerB ? 0 : 1))

#define RIDGELINE_PRODUCT_256(type)                                                          \
  asm volatile(                                                                              \
      "{\n.reg .pred more;\nsetp.ne.b32 more, %130, 0;\n"                                    \
      "wgmma.mma_async.sync.aligned.m64n256k16.f32." type "." type                           \
      " {"                                                                                   \
      "%0, %1, %2, %3, %4, %5, %6, %7, %8, %9, %10, %11, %12, %13, %14, %15, %16, %17, "     \
      "%18, %19, %20, %21, %22, %23, %24, %25, %26, %27, %28, %29, %30, %31, %32, %33, "     \
      "%34, %35, %36, %37, %38, %39, %40, %41, %42, %43, %44, %45, %46, %47, %48, %49, "     \
      "%50, %51, %52, %53, %54, %55, %56, %57, %58, %59, %60, %61, %62, %63, %64, %65, "     \
      "%66, %67, %68, %69, %70, %71, %72, %73, %74, %75, %76, %77, %78, %79, %80, %81, "     \
      "%82, %83, %84, %85, %86, %87, %88, %89, %90, %91, %92, %93, %94, %95, %96, %97, "     \
      "%98, %99, %100, %101, %102, %103, %104, %105, %106, %107, %108, %109, %110, %111, "   \
      "%112, %113, %114, %115, %116, %117, %118, %119, %120, %121, %122, %123, %124, %125, " \
      "%126, %127"                                                                           \
      "}, %128, %129, more, 1, 1, %131, %132;\n}\n"                                          \
      : RIDGELINE_SUMS_64(d, 0), RIDGELINE_SUMS_64(d, 64)                                    \
      : "l"(a), "l"(b), "r"(static_cast<int>(more)), "n"(kDepthInnerA ? 0 : 1),              \
        "n"(kDepthInnerB ? 0 : 1))

template <typename T, bool kDepthInnerA, bool kDepthInnerB, int kSums>
__device__ __forceinline__ void multiply(float (&d)[kSums], std::uint64_t a, std::uint64_t b,
                                         bool more) {
  static_assert(kSums == 32 || kSums == 64 || kSums == 128);
  constexpr bool kBrain = std::is_same_v<T, bf16>;
  if constexpr (kSums == 32 && kBrain) RIDGELINE_PRODUCT_64("bf16");
  if constexpr (kSums == 32 && !kBrain) RIDGELINE_PRODUCT_64("f16");
  if constexpr (kSums == 64 && kBrain) RIDGELINE_PRODUCT_128("bf16");
  if constexpr (kSums == 64 && !kBrain) RIDGELINE_PRODUCT_128("f16");
  if constexpr (kSums == 128 && kBrain) RIDGELINE_PRODUCT_256("bf16");
  if constexpr (kSums == 128 && !kBrain) RIDGELINE_PRODUCT_256("f16");
}

#undef RIDGELINE_SUMS_4
#undef RIDGELINE_SUMS_16
#undef RIDGELINE_SUMS_32
#undef RIDGELINE_SUMS_64
#undef RIDGELINE_PRODUCT_64
#undef RIDGELINE_PRODUCT_128
#undef RIDGELINE_PRODUCT_256

}  // namespace ridgeline::cuda::hopper
