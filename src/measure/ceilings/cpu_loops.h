#pragma once

// The loops behind the ceilings of the CPU: multiply-adds in registers for each instruction set
// that this CPU has, passes over arrays with its widest, and the clock they ran at.

#include <cstddef>
#include <cstdint>
#include <optional>
#include <string>
#include <vector>

namespace ridgeline::ceilings {

// Multiply-adds without memory: only the arithmetic units can hold them up.
struct FmaLoop {
  std::string path;   // "scalar", "sse4", "avx2", "avx512", "amx"; "neon", "sve"
  std::string dtype;  // "fp32", "fp64", "bf16"
  int bits = 0;       // of one vector of this path; 0: data sheets do not tell
  bool fused = true;  // false: a multiplication and an addition, each an instruction
  double flops_per_round = 0.0;
  double (*run)(std::int64_t rounds) = nullptr;  // the result must be used
};
// Narrow paths first; those only that this CPU has.
[[nodiscard]] std::vector<FmaLoop> fma_loops();
// Products of bf16 added in f32, on the units that work here.
[[nodiscard]] std::vector<FmaLoop> bf16_loops();

// Passes over three arrays of `count` floats each, 64-byte aligned; `count` is a multiple of
// kStreamStep. read uses b, write a, copy a = b, triad a = b + s * c.
struct StreamArrays {
  float* a = nullptr;
  const float* b = nullptr;
  const float* c = nullptr;
  std::int64_t count = 0;
};
inline constexpr std::int64_t kStreamStep = 128;

struct StreamLoop {
  std::string path;  // "read", "write", "copy", "triad"
  // Written past the caches, or by the C library in its own way: for memory and the last cache.
  bool for_memory = false;
  int arrays = 1;  // touched: what is read and what is written, as STREAM counts
  void (*run)(const StreamArrays& arrays, std::int64_t passes) = nullptr;
};
[[nodiscard]] std::vector<StreamLoop> stream_loops();

// The clock that the calling thread's core runs at now, from a chain of additions that each wait
// for the one before: one cycle each. Takes a fraction of a millisecond.
[[nodiscard]] double effective_mhz();

}  // namespace ridgeline::ceilings
