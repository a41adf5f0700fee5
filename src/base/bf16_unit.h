#pragma once

// The unit of this processor that multiplies matrices of bf16 and adds in f32.

#include <cstdint>
#include <string>
#include <string_view>

namespace ridgeline {

enum class Bf16Unit : std::uint8_t { none, avx512, amx };  // ascending

// The best unit that works here: the processor says it has it, the system lets it be used, and one
// product in it came out right. A unit whose instruction is refused is passed over without a word.
// The environment variable RIDGELINE_CPU_UNITS names the units that may be used: "avx512_bf16",
// "amx_bf16", both with a comma between them, or "none".
[[nodiscard]] Bf16Unit bf16_unit();

// What each architecture answers (bf16_unit_x86.cpp, bf16_unit_arm64.cpp): the best unit that
// works, whatever the environment allows, and the end of the sentence that tells why there is none.
[[nodiscard]] Bf16Unit find_bf16_unit();
[[nodiscard]] const char* why_no_bf16_unit();

// Nothing better than `most` from now on; for tests of every path on one machine.
void limit_bf16_unit(Bf16Unit most);

// "amx bf16", as ceilings and profiles name it.
[[nodiscard]] std::string_view name_of(Bf16Unit unit);

// Why there is none; empty when there is one.
[[nodiscard]] std::string refuse_bf16();

}  // namespace ridgeline
