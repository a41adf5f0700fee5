#include "devices/cuda_tensor_cores.cuh"
#include "measure/ceilings/cuda_loops.h"

namespace ridgeline::ceilings {
namespace {

using cuda::bf16;
using cuda::f16;

constexpr int kThreads = 256;

// Never true of what the kernels compute, but the compiler cannot know: nothing is dropped.
__device__ __forceinline__ void keep(float value, float* sink) {
  if (value == 1.2345e-30F) *sink = value;
}

__device__ __forceinline__ unsigned mixed(unsigned bits) {
  bits ^= bits >> 16;
  bits *= 0x7FEB352DU;
  bits ^= bits >> 15;
  bits *= 0x846CA68BU;
  return bits ^ (bits >> 16);
}

// Plain multiply-adds. With eight chains in each of many threads no unit waits for a result.
template <typename T>
struct PlainArithmetic {
  static constexpr int kChains = 8, kUnrolled = 16;
  static constexpr double kFlops = 2.0 * kChains * kUnrolled;  // of a thread in a round

  T sums[kChains], factor, term;

  __device__ PlainArithmetic() {
    const T seed = static_cast<T>(mixed(threadIdx.x) & 1023U) * static_cast<T>(1.0 / 1024.0);
    factor = static_cast<T>(0.5) + static_cast<T>(0.25) * seed;
    term = static_cast<T>(0.5);
#pragma unroll
    for (int i = 0; i < kChains; ++i) sums[i] = seed + static_cast<T>(i);
  }
  __device__ __forceinline__ void round() {
#pragma unroll
    for (int step = 0; step < kUnrolled; ++step) {
#pragma unroll
      for (int i = 0; i < kChains; ++i) sums[i] = fma(sums[i], factor, term);
    }
  }
  __device__ float result() const {
    T sum = 0;
#pragma unroll
    for (int i = 0; i < kChains; ++i) sum += sums[i];
    return static_cast<float>(sum);
  }
};

template <typename T>
__device__ __forceinline__ unsigned random_operand(unsigned bits);
// Two numbers of either sign from 1 to 2.
template <>
__device__ __forceinline__ unsigned random_operand<bf16>(unsigned bits) {
  return 0x3F803F80U | (mixed(bits) & 0x807F807FU);
}
template <>
__device__ __forceinline__ unsigned random_operand<f16>(unsigned bits) {
  return 0x3C003C00U | (mixed(bits) & 0x83FF83FFU);
}
template <>
__device__ __forceinline__ unsigned random_operand<float>(unsigned bits) {
  return 0x3F800000U | (mixed(bits) & 0x807FE000U);
}

// Products of tiles on the tensor cores, by warps: what mma.sync reaches.
template <typename T>
struct TensorArithmetic {
  static constexpr int kRows = 2, kColumns = 4, kUnrolled = 4;
  static constexpr int kDepth = 32 / static_cast<int>(sizeof(T));
  static constexpr double kFlops =
      2.0 * 16 * 8 * kDepth * kRows * kColumns * kUnrolled / 32;  // of a thread in a round

  float sums[kRows][kColumns][4];
  unsigned a[kRows][4], b[kColumns][2];

  __device__ TensorArithmetic() {
    const unsigned seed = threadIdx.x * 64U;
#pragma unroll
    for (int i = 0; i < kRows * 4; ++i) {
      a[i / 4][i % 4] = random_operand<T>(seed + static_cast<unsigned>(i));
    }
#pragma unroll
    for (int i = 0; i < kColumns * 2; ++i) {
      b[i / 2][i % 2] = random_operand<T>(seed + 32U + static_cast<unsigned>(i));
    }
#pragma unroll
    for (int i = 0; i < kRows * kColumns * 4; ++i) sums[i / 16][i / 4 % 4][i % 4] = 0.0F;
  }
  __device__ __forceinline__ void round() {
#pragma unroll
    for (int step = 0; step < kUnrolled; ++step) {
#pragma unroll
      for (int row = 0; row < kRows; ++row) {
#pragma unroll
        for (int column = 0; column < kColumns; ++column) {
          cuda::multiply_add<T>(sums[row][column], a[row], b[column]);
        }
      }
    }
  }
  __device__ float result() const {
    float sum = 0.0F;
#pragma unroll
    for (int i = 0; i < kRows * kColumns * 4; ++i) sum += sums[i / 16][i / 4 % 4][i % 4];
    return sum;
  }
};

__device__ __forceinline__ std::int64_t nanoseconds() {
  std::int64_t now;
  asm volatile("mov.u64 %0, %%globaltimer;" : "=l"(now));
  return now;
}

template <typename Work>
__global__ void __launch_bounds__(kThreads)
    compute(std::int64_t rounds, float* sink, ElapsedOnDevice* elapsed) {
  Work work;
  const std::int64_t start = clock64(), begin = nanoseconds();
  for (std::int64_t round = 0; round < rounds; ++round) work.round();
  keep(work.result(), sink);
  if (blockIdx.x == 0 && threadIdx.x == 0) *elapsed = {clock64() - start, nanoseconds() - begin};
}

// As many blocks as run at once.
template <typename Work>
int blocks_of() {
  int per_multiprocessor = 0;
  const cudaError_t error = cudaOccupancyMaxActiveBlocksPerMultiprocessor(
      &per_multiprocessor, compute<Work>, kThreads, 0);
  if (error != cudaSuccess || per_multiprocessor < 1) per_multiprocessor = 1;
  return per_multiprocessor * cuda::device_limits().multiprocessors;
}

template <typename Work>
double flops_of() {
  return Work::kFlops * kThreads * blocks_of<Work>();
}

template <typename Work>
void start(const ArithmeticLaunch& launch, Stream stream) {
  compute<Work><<<static_cast<unsigned>(blocks_of<Work>()), kThreads, 0, stream>>>(
      launch.rounds, launch.sink, launch.elapsed);
  cuda::check_launch("compute");
}

template <StreamPath path, int turn>
__global__ void __launch_bounds__(kThreads)
    stream_packs(uint4* __restrict__ a, const uint4* __restrict__ b, const uint4* __restrict__ c,
                 std::int64_t packs, int passes) {
  constexpr std::int64_t kChunk = std::int64_t{kThreads} * turn;
  uint4 seen = {0, 0, 0, 0};
  for (int pass = 0; pass < passes; ++pass) {
    for (std::int64_t chunk = blockIdx.x * kChunk; chunk < packs; chunk += gridDim.x * kChunk) {
      const std::int64_t first = chunk + threadIdx.x;
      uint4 x[turn], y[turn];
      // Past the first-level cache: the second level or memory is what is measured.
#pragma unroll
      for (int i = 0; i < turn; ++i) {
        if constexpr (path != StreamPath::write) x[i] = __ldcg(b + first + i * kThreads);
        if constexpr (path == StreamPath::triad) y[i] = __ldcg(c + first + i * kThreads);
      }
#pragma unroll
      for (int i = 0; i < turn; ++i) {
        if constexpr (path == StreamPath::read) {
          seen.x ^= x[i].x;
          seen.y ^= x[i].y;
          seen.z ^= x[i].z;
          seen.w ^= x[i].w;
        } else if constexpr (path == StreamPath::write) {
          a[first + i * kThreads] = {0x3F812345U, 0x3FABCDEFU, 0x3F9A7B31U, 0x3FC0FFEEU};
        } else if constexpr (path == StreamPath::copy) {
          a[first + i * kThreads] = x[i];
        } else {
          const auto add = [](unsigned term, unsigned factor) {
            return __float_as_uint(fmaf(0.5F, __uint_as_float(factor), __uint_as_float(term)));
          };
          a[first + i * kThreads] = {add(x[i].x, y[i].x), add(x[i].y, y[i].y), add(x[i].z, y[i].z),
                                     add(x[i].w, y[i].w)};
        }
      }
    }
    asm volatile("" ::: "memory");  // passes are not joined
  }
  if constexpr (path == StreamPath::read) {
    // Numbers from 1 to 2 never give this.
    if ((seen.x & seen.y & seen.z & seen.w) == 0xFFFFFFFFU) a[0] = seen;
  }
}

template <StreamPath path, int turn>
void start_stream(const StreamLaunch& launch, Stream stream) {
  const std::int64_t all = launch.packs / (std::int64_t{kThreads} * turn);
  const auto blocks = static_cast<unsigned>(launch.blocks > 0 ? launch.blocks : all);
  stream_packs<path, turn><<<blocks, kThreads, 0, stream>>>(
      reinterpret_cast<uint4*>(launch.a), reinterpret_cast<const uint4*>(launch.b),
      reinterpret_cast<const uint4*>(launch.c), launch.packs, launch.passes);
  cuda::check_launch("stream_packs");
}

template <StreamPath path>
void start_turns(const StreamLaunch& launch, Stream stream) {
  if (launch.packs_per_turn >= 8) {
    start_stream<path, 8>(launch, stream);
  } else {
    start_stream<path, 4>(launch, stream);
  }
}

__global__ void fill_packs(uint4* data, std::int64_t packs) {
  const std::int64_t i = std::int64_t{blockIdx.x} * kThreads + threadIdx.x;
  if (i >= packs) return;
  const auto seed = static_cast<unsigned>(i) * 4U;
  const auto number = [](unsigned bits) { return 0x3F800000U | (mixed(bits) & 0x007FFFFFU); };
  data[i] = {number(seed), number(seed + 1U), number(seed + 2U), number(seed + 3U)};
}

__global__ void nothing() {}

}  // namespace

double flops_per_round(Arithmetic arithmetic) {
  switch (arithmetic) {
    case Arithmetic::fp32:
      return flops_of<PlainArithmetic<float>>();
    case Arithmetic::fp64:
      return flops_of<PlainArithmetic<double>>();
    case Arithmetic::tf32_tensor:
      return flops_of<TensorArithmetic<float>>();
    case Arithmetic::bf16_tensor:
      return flops_of<TensorArithmetic<bf16>>();
    case Arithmetic::fp16_tensor:
      return flops_of<TensorArithmetic<f16>>();
  }
  return 0.0;
}

void launch_arithmetic(const ArithmeticLaunch& launch, Stream stream) {
  switch (launch.arithmetic) {
    case Arithmetic::fp32:
      return start<PlainArithmetic<float>>(launch, stream);
    case Arithmetic::fp64:
      return start<PlainArithmetic<double>>(launch, stream);
    case Arithmetic::tf32_tensor:
      return start<TensorArithmetic<float>>(launch, stream);
    case Arithmetic::bf16_tensor:
      return start<TensorArithmetic<bf16>>(launch, stream);
    case Arithmetic::fp16_tensor:
      return start<TensorArithmetic<f16>>(launch, stream);
  }
}

void launch_stream(const StreamLaunch& launch, Stream stream) {
  switch (launch.path) {
    case StreamPath::read:
      return start_turns<StreamPath::read>(launch, stream);
    case StreamPath::write:
      return start_turns<StreamPath::write>(launch, stream);
    case StreamPath::copy:
      return start_turns<StreamPath::copy>(launch, stream);
    case StreamPath::triad:
      return start_turns<StreamPath::triad>(launch, stream);
  }
}

void launch_fill(float* data, std::int64_t packs, Stream stream) {
  fill_packs<<<static_cast<unsigned>((packs + kThreads - 1) / kThreads), kThreads, 0, stream>>>(
      reinterpret_cast<uint4*>(data), packs);
  cuda::check_launch("fill_packs");
}

void launch_nothing(Stream stream) {
  nothing<<<1, 1, 0, stream>>>();
  cuda::check_launch("nothing");
}

}  // namespace ridgeline::ceilings
