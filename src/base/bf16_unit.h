#pragma once

// The unit of this processor that multiplies matrices of bf16 and adds in f32.

#include <cstdint>
#include <string>
#include <string_view>

namespace ridgeline {

enum class Bf16Unit : std::uint8_t { none, avx512, amx };  // ascending

// What became of one product in a unit: not reported by the processor or not granted by the system;
// right; refused, as some virtual machines do with units that they report; or of a wrong result.
enum class UnitState : std::uint8_t { absent, works, refused, wrong };
struct Bf16Units {
  UnitState avx512 = UnitState::absent, amx = UnitState::absent;
};

// The best unit that works here. The environment variable RIDGELINE_CPU_UNITS names the units that
// may be used: "avx512_bf16", "amx_bf16", both with a comma between them, or "none".
[[nodiscard]] Bf16Unit bf16_unit();

// What each architecture answers (bf16_unit_x86.cpp, bf16_unit_arm64.cpp): its units, tried out
// whatever the environment allows, and the end of the sentence that tells why there are none.
[[nodiscard]] Bf16Units probe_bf16_units();
[[nodiscard]] const char* why_no_bf16_unit();

[[nodiscard]] Bf16Unit best_of(const Bf16Units& units);
// Of a unit that the processor reports and that fails: which, and how. Empty when there is none.
[[nodiscard]] std::string trouble_of(const Bf16Units& units);
[[nodiscard]] std::string bf16_trouble();  // of this processor

// Nothing better than `most` from now on; for tests of every path on one machine.
void limit_bf16_unit(Bf16Unit most);

// "amx bf16", as ceilings and profiles name it.
[[nodiscard]] std::string_view name_of(Bf16Unit unit);

// Why there is none; empty when there is one.
[[nodiscard]] std::string refuse_bf16();

}  // namespace ridgeline
