#pragma once

#include <cstdint>

// The letter of inline assembly for a vector register.
#define RIDGELINE_VECTOR_REGISTER "v"

namespace ridgeline {

// A hundred additions that each wait for the one before. Registers are added: some cores fold the
// addition of a constant into a rename.
inline void add_hundred_times(std::uint64_t& sum, std::uint64_t term) {
  asm volatile(".rept 100\n\tadd %1, %0\n\t.endr" : "+r"(sum) : "r"(term) : "cc");
}

}  // namespace ridgeline
