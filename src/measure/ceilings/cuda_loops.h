#pragma once

// The kernels behind the ceilings of graphics processors. Each function queues one launch.

#include <cstdint>

#include "devices/cuda_launch.h"

namespace ridgeline::ceilings {

using cuda::Stream;

// Arithmetic in registers on every multiprocessor; all blocks run at once from begin to end.
enum class Arithmetic : std::uint8_t { fp32, fp64, tf32_tensor, bf16_tensor, fp16_tensor };
// What one thread saw pass. It may end long before the others: only the quotient, the clock, tells
// something.
struct ElapsedOnDevice {
  std::int64_t cycles = 0, nanoseconds = 0;
};

struct ArithmeticLaunch {
  Arithmetic arithmetic = Arithmetic::fp32;
  std::int64_t rounds = 1;
  float* sink = nullptr;               // one float on the device
  ElapsedOnDevice* elapsed = nullptr;  // on the device: of the first thread
};
// The FLOPs of one round of all threads.
[[nodiscard]] double flops_per_round(Arithmetic arithmetic);
void launch_arithmetic(const ArithmeticLaunch& launch, Stream stream);

// Passes over arrays of `packs` of 16 bytes; read uses b, write a, copy a = b, triad a = b + s * c.
enum class StreamPath : std::uint8_t { read, write, copy, triad };
struct StreamLaunch {
  StreamPath path = StreamPath::read;
  float *a = nullptr, *b = nullptr, *c = nullptr;
  std::int64_t packs = 0;  // a multiple of kPackStep
  int passes = 1;
  int packs_per_turn = 4;  // of a thread: 4 or 8
  int blocks = 0;          // 0: enough that every thread takes one turn
};
inline constexpr std::int64_t kPackStep = 256 * 8;
void launch_stream(const StreamLaunch& launch, Stream stream);

// Numbers of random digits from 1 to 2: others might be moved with less energy.
void launch_fill(float* data, std::int64_t packs, Stream stream);

void launch_nothing(Stream stream);

}  // namespace ridgeline::ceilings
