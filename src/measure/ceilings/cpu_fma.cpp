// How fast the CPU multiplies and adds when nothing but the arithmetic units is in the way.

#include "measure/ceilings/cpu_loops.h"

// Every path is wanted here, not only the best; in the sanitizers' builds one is enough.
// SVE2 multiplies and adds as SVE does.
#ifdef RIDGELINE_FEW_TARGETS
#include "base/simd_targets.h"
#else
#define HWY_DISABLED_TARGETS (HWY_SSSE3 | HWY_AVX3_DL | HWY_SVE2 | HWY_SVE_256 | HWY_SVE2_128)
#endif

#undef HWY_TARGET_INCLUDE
#define HWY_TARGET_INCLUDE "measure/ceilings/cpu_fma.cpp"
#include <hwy/foreach_target.h>
#include <hwy/highway.h>

HWY_BEFORE_NAMESPACE();
namespace ridgeline::ceilings::HWY_NAMESPACE {
namespace {
namespace hn = hwy::HWY_NAMESPACE;

// Two units with a latency of four or five cycles want at least ten chains; twelve with their
// operands still fit sixteen registers.
constexpr int kChains = 12;
constexpr int kUnrolled = 8;

// Every chain is a variable of its own: vectors of SVE cannot stand in an array.
template <typename V, typename... Chains>
HWY_INLINE void multiply_add_all(V factor, V term, Chains&... sums) {
  ((sums = hn::MulAdd(sums, factor, term)), ...);
}

template <typename Tag>
HWY_NOINLINE double multiply_adds(std::int64_t rounds) {
  using T = hn::TFromD<Tag>;
  const Tag tag;
  // Read at run time, so that nothing can be computed beforehand. Every chain tends to 2: no
  // overflow, no denormal numbers.
  volatile T factor_source = T(0.75), term_source = T(0.5);
  const auto factor = hn::Set(tag, factor_source), term = hn::Set(tag, term_source);
  auto a = hn::Set(tag, T(1)), b = hn::Set(tag, T(2)), c = hn::Set(tag, T(3));
  auto d = hn::Set(tag, T(4)), e = hn::Set(tag, T(5)), f = hn::Set(tag, T(6));
  auto g = hn::Set(tag, T(7)), h = hn::Set(tag, T(8)), i = hn::Set(tag, T(9));
  auto j = hn::Set(tag, T(10)), k = hn::Set(tag, T(11)), l = hn::Set(tag, T(12));
  for (std::int64_t round = 0; round < rounds; ++round) {
#pragma GCC unroll 8
    for (int step = 0; step < kUnrolled; ++step) {
      multiply_add_all(factor, term, a, b, c, d, e, f, g, h, i, j, k, l);
    }
  }
  const auto some = hn::Add(hn::Add(hn::Add(a, b), hn::Add(c, d)), hn::Add(e, f));
  const auto others = hn::Add(hn::Add(hn::Add(g, h), hn::Add(i, j)), hn::Add(k, l));
  return static_cast<double>(hn::GetLane(hn::Add(some, others)));
}

template <typename Tag>
FmaLoop loop_of(const char* path) {
  using T = hn::TFromD<Tag>;
  const auto lanes = static_cast<int>(hn::Lanes(Tag()));
  return {.path = path,
          .dtype = sizeof(T) == 4 ? "fp32" : "fp64",
          .bits = lanes * static_cast<int>(sizeof(T)) * 8,
          .fused = HWY_NATIVE_FMA != 0,
          .flops_per_round = 2.0 * lanes * kChains * kUnrolled,
          .run = multiply_adds<Tag>};
}

void add_loops(const char* path, std::vector<FmaLoop>& loops) {
  loops.push_back(loop_of<hn::ScalableTag<float>>(path));
  loops.push_back(loop_of<hn::ScalableTag<double>>(path));
}

void add_scalar_loops(std::vector<FmaLoop>& loops) {
  loops.push_back(loop_of<hn::CappedTag<float, 1>>("scalar"));
  loops.push_back(loop_of<hn::CappedTag<double, 1>>("scalar"));
}

}  // namespace
}  // namespace ridgeline::ceilings::HWY_NAMESPACE
HWY_AFTER_NAMESPACE();

#if HWY_ONCE
namespace ridgeline::ceilings {
std::vector<FmaLoop> fma_loops() {
  std::vector<FmaLoop> loops;
  const std::int64_t supported = hwy::SupportedTargets();
#if HWY_TARGETS & HWY_AVX2
  if ((supported & HWY_AVX2) != 0) N_AVX2::add_scalar_loops(loops);
#endif
  if (loops.empty()) HWY_STATIC_DISPATCH(add_scalar_loops)(loops);
#if HWY_TARGETS & HWY_SSE4
  if ((supported & HWY_SSE4) != 0) N_SSE4::add_loops("sse4", loops);
#endif
#if HWY_TARGETS & HWY_AVX2
  if ((supported & HWY_AVX2) != 0) N_AVX2::add_loops("avx2", loops);
#endif
#if HWY_TARGETS & HWY_AVX3
  if ((supported & HWY_AVX3) != 0) N_AVX3::add_loops("avx512", loops);
#endif
#if HWY_TARGETS & HWY_NEON
  if ((supported & HWY_NEON) != 0) N_NEON::add_loops("neon", loops);
#endif
#if HWY_TARGETS & HWY_SVE
  if ((supported & HWY_SVE) != 0) N_SVE::add_loops("sve", loops);
#endif
  // A CPU without any of these has the compiler's baseline.
  constexpr std::size_t kScalarLoops = 2;
  if (loops.size() == kScalarLoops) HWY_STATIC_DISPATCH(add_loops)("baseline", loops);
  return loops;
}

}  // namespace ridgeline::ceilings
#endif
