#pragma once

// Some virtual machines report a unit of the processor and refuse its instructions, which would end
// the program with SIGILL. So a unit is tried once before it is used.

#include <cstdint>

namespace ridgeline {

enum class Trial : std::uint8_t { right, wrong, refused };

// Runs `compute` and compares what it returns. An illegal instruction in it is caught. One thread
// calls it at a time, before others may meet illegal instructions of their own.
[[nodiscard]] Trial try_instruction(float (*compute)(), float expected);

}  // namespace ridgeline
