// Passes over arrays, with whole vectors and nothing in between that could hold the loads and
// stores up. Bytes are counted as STREAM does: what the program reads and writes, not the lines
// that a cache fetches because a store is going to overwrite them.

#include <cstring>

#include "base/arch.h"
#include "base/simd_targets.h"
#include "measure/ceilings/cpu_loops.h"

#undef HWY_TARGET_INCLUDE
#define HWY_TARGET_INCLUDE "measure/ceilings/cpu_streams.cpp"
#include <hwy/cache_control.h>
#include <hwy/foreach_target.h>
#include <hwy/highway.h>

HWY_BEFORE_NAMESPACE();
namespace ridgeline::ceilings::HWY_NAMESPACE {
namespace {
namespace hn = hwy::HWY_NAMESPACE;

using FloatTag = hn::ScalableTag<float>;
using FloatVec = hn::Vec<FloatTag>;
constexpr std::int64_t kLanes = static_cast<std::int64_t>(hn::MaxLanes(FloatTag()));
constexpr std::int64_t kVectors = 8;  // in one turn of a loop
static_assert(kStreamStep % (kVectors * kLanes) == 0);

// The value counts as used: its load stays, and no loop turns into a call of memcpy.
HWY_INLINE void use(FloatVec& v) {
#if HWY_TARGET == HWY_SCALAR || HWY_TARGET == HWY_EMU128
  asm volatile("" : "+m"(v));
#else
  asm volatile("" : "+" RIDGELINE_VECTOR_REGISTER(v.raw));
#endif
}

// Stores may not be joined over passes.
HWY_INLINE void end_pass() { asm volatile("" ::: "memory"); }

void read_pass(const StreamArrays& arrays, std::int64_t passes) {
  for (std::int64_t pass = 0; pass < passes; ++pass) {
    for (std::int64_t i = 0; i < arrays.count; i += kVectors * kLanes) {
#pragma GCC unroll 8
      for (std::int64_t v = 0; v < kVectors; ++v) {
        FloatVec value = hn::Load(FloatTag(), arrays.b + i + v * kLanes);
        use(value);
      }
    }
  }
}

template <bool past_caches>
HWY_INLINE void put(FloatVec value, float* address) {
  if constexpr (past_caches) {
    hn::Stream(value, FloatTag(), address);
  } else {
    hn::Store(value, FloatTag(), address);
  }
}

template <bool past_caches>
void write_pass(const StreamArrays& arrays, std::int64_t passes) {
  float* a = arrays.a;
  FloatVec value = hn::Set(FloatTag(), 1.5F);
  use(value);
  for (std::int64_t pass = 0; pass < passes; ++pass) {
    for (std::int64_t i = 0; i < arrays.count; i += kVectors * kLanes) {
#pragma GCC unroll 8
      for (std::int64_t v = 0; v < kVectors; ++v) put<past_caches>(value, a + i + v * kLanes);
    }
    if constexpr (past_caches) hwy::FlushStream();
    end_pass();
  }
}

template <bool past_caches>
void copy_pass(const StreamArrays& arrays, std::int64_t passes) {
  float* a = arrays.a;
  const float* b = arrays.b;
  for (std::int64_t pass = 0; pass < passes; ++pass) {
    for (std::int64_t i = 0; i < arrays.count; i += kVectors * kLanes) {
#pragma GCC unroll 8
      for (std::int64_t v = 0; v < kVectors; ++v) {
        FloatVec value = hn::Load(FloatTag(), b + i + v * kLanes);
        use(value);
        put<past_caches>(value, a + i + v * kLanes);
      }
    }
    if constexpr (past_caches) hwy::FlushStream();
    end_pass();
  }
}

template <bool past_caches>
void triad_pass(const StreamArrays& arrays, std::int64_t passes) {
  float* a = arrays.a;
  const float *b = arrays.b, *c = arrays.c;
  FloatVec scale = hn::Set(FloatTag(), 0.5F);
  use(scale);
  for (std::int64_t pass = 0; pass < passes; ++pass) {
    for (std::int64_t i = 0; i < arrays.count; i += kVectors * kLanes) {
#pragma GCC unroll 8
      for (std::int64_t v = 0; v < kVectors; ++v) {
        const FloatVec term = hn::Load(FloatTag(), b + i + v * kLanes);
        const FloatVec factor = hn::Load(FloatTag(), c + i + v * kLanes);
        put<past_caches>(hn::MulAdd(scale, factor, term), a + i + v * kLanes);
      }
    }
    if constexpr (past_caches) hwy::FlushStream();
    end_pass();
  }
}

void add_loops(std::vector<StreamLoop>& loops) {
  loops.push_back({"read", false, 1, read_pass});
  loops.push_back({"write", false, 1, write_pass<false>});
  loops.push_back({"write", true, 1, write_pass<true>});
  loops.push_back({"copy", false, 2, copy_pass<false>});
  loops.push_back({"copy", true, 2, copy_pass<true>});
  loops.push_back({"triad", false, 3, triad_pass<false>});
  loops.push_back({"triad", true, 3, triad_pass<true>});
}

}  // namespace
}  // namespace ridgeline::ceilings::HWY_NAMESPACE
HWY_AFTER_NAMESPACE();

#if HWY_ONCE
namespace ridgeline::ceilings {
namespace {

HWY_EXPORT(add_loops);

std::size_t bytes_of(const StreamArrays& arrays) {
  return static_cast<std::size_t>(arrays.count) * sizeof(float);
}

// The C library knows tricks of the hardware: string instructions, stores past the caches.
void library_write(const StreamArrays& arrays, std::int64_t passes) {
  for (std::int64_t pass = 0; pass < passes; ++pass) {
    std::memset(arrays.a, 0x3F, bytes_of(arrays));
    asm volatile("" ::: "memory");
  }
}

void library_copy(const StreamArrays& arrays, std::int64_t passes) {
  for (std::int64_t pass = 0; pass < passes; ++pass) {
    std::memcpy(arrays.a, arrays.b, bytes_of(arrays));
    asm volatile("" ::: "memory");
  }
}

}  // namespace

std::vector<StreamLoop> stream_loops() {
  std::vector<StreamLoop> loops;
  HWY_DYNAMIC_DISPATCH(add_loops)(loops);
  loops.push_back({"write", true, 1, library_write});
  loops.push_back({"copy", true, 2, library_copy});
  return loops;
}

}  // namespace ridgeline::ceilings
#endif
