#pragma once

// What differs between the architectures and fits a line or two. Larger parts are files whose names
// end in _x86.cpp or _arm64.cpp; the build takes those of its architecture.

#if defined(__x86_64__)
#include "base/arch_x86.h"
#elif defined(__aarch64__)
#include "base/arch_arm64.h"
#else
#error "Ridgeline runs on x86-64 and ARM64"
#endif
