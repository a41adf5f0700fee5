#pragma once

// Instruction sets the native kernels are compiled for: AVX-512, AVX2 with FMA, and the compiler's
// baseline. The others would only make the build longer; so would AVX-512 in the sanitizers'
// builds. Include before hwy/highway.h.

#ifdef RIDGELINE_FEW_TARGETS
#define HWY_DISABLED_TARGETS (HWY_SSSE3 | HWY_SSE4 | HWY_AVX3 | HWY_AVX3_DL)
#else
#define HWY_DISABLED_TARGETS (HWY_SSSE3 | HWY_SSE4 | HWY_AVX3_DL)
#endif
