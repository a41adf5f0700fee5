#pragma once

// Instruction sets the native kernels are compiled for: AVX-512, AVX2 with FMA, and the compiler's
// baseline. The others would only make the build longer. Include before hwy/highway.h.

#define HWY_DISABLED_TARGETS (HWY_SSSE3 | HWY_SSE4 | HWY_AVX3_DL)
