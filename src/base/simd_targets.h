#pragma once

// Instruction sets the native kernels are compiled for: on x86 AVX-512, AVX2 with FMA, and the
// compiler's baseline; on ARM64 NEON. The others of x86 would only make the build longer; so would
// AVX-512 in the sanitizers' builds. SVE is left out because its vectors have no size that the
// compiler knows, and our kernels keep arrays of vectors in registers. Most processors with SVE
// compute as much in a cycle with NEON: their units are 128 bits wide, or NEON has more of them.
// Include before hwy/highway.h.

#define RIDGELINE_NOT_NATIVE \
  (HWY_SSSE3 | HWY_SSE4 | HWY_AVX3_DL | HWY_SVE | HWY_SVE2 | HWY_SVE_256 | HWY_SVE2_128)
#ifdef RIDGELINE_FEW_TARGETS
#define HWY_DISABLED_TARGETS (RIDGELINE_NOT_NATIVE | HWY_AVX3)
#else
#define HWY_DISABLED_TARGETS RIDGELINE_NOT_NATIVE
#endif
