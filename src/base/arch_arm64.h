#pragma once

// See arch_x86.h.

#include <cstdint>

#define RIDGELINE_VECTOR_REGISTER "w"

namespace ridgeline {

inline void add_hundred_times(std::uint64_t& sum, std::uint64_t term) {
  asm volatile(".rept 100\n\tadd %0, %0, %1\n\t.endr" : "+r"(sum) : "r"(term));
}

}  // namespace ridgeline
