#include <cpuid.h>
#include <immintrin.h>
#include <sys/syscall.h>
#include <unistd.h>

#include <cstdint>

#include "base/bf16_unit.h"
#include "base/try_instruction.h"

namespace ridgeline {
namespace {

struct Registers {
  unsigned a = 0, b = 0, c = 0, d = 0;
};

Registers leaf7(unsigned part) {
  Registers r;
  if (__get_cpuid_count(7, part, &r.a, &r.b, &r.c, &r.d) == 0) return {};
  return r;
}

// Registers that the system saves: without that, a unit must not be used.
bool system_saves(std::uint64_t states) {
  Registers r;
  constexpr unsigned kHasXgetbv = 1U << 27;
  if (__get_cpuid(1, &r.a, &r.b, &r.c, &r.d) == 0 || (r.c & kHasXgetbv) == 0) return false;
  std::uint32_t low = 0, high = 0;
  __asm__ volatile("xgetbv" : "=a"(low), "=d"(high) : "c"(0));
  return ((std::uint64_t{high} << 32 | low) & states) == states;
}

bool says_avx512() {
  constexpr std::uint64_t kVectorStates = 0b11100110;
  constexpr unsigned kF = 1U << 16, kDq = 1U << 17, kBw = 1U << 30, kVl = 1U << 31, kBf16 = 1U << 5;
  constexpr unsigned kBase = kF | kDq | kBw | kVl;
  return (leaf7(0).b & kBase) == kBase && (leaf7(1).a & kBf16) != 0 && system_saves(kVectorStates);
}

// Linux hands out the registers of tiles on request only.
bool says_amx() {
  constexpr std::uint64_t kTileStates = 0b11ULL << 17;
  constexpr unsigned kBf16 = 1U << 22, kTile = 1U << 24;
  if ((leaf7(0).d & (kBf16 | kTile)) != (kBf16 | kTile) || !system_saves(kTileStates)) return false;
  constexpr long kRequestPermission = 0x1023, kTileData = 18;
  return syscall(SYS_arch_prctl, kRequestPermission, kTileData) == 0;
}

constexpr std::uint32_t kOnes = 0x3F803F80;  // two ones in bf16

__attribute__((target("avx512f,avx512bf16"))) float avx512_product() {
  const __m512bh ones = (__m512bh)_mm512_set1_epi32(kOnes);
  return _mm512_cvtss_f32(_mm512_dpbf16_ps(_mm512_set1_ps(1.0F), ones, ones));
}

__attribute__((target("amx-tile,amx-bf16"))) float amx_product() {
  struct alignas(64) Shape {
    std::uint8_t palette = 1, start = 0, reserved[14] = {};
    std::uint16_t row_bytes[16] = {4, 4, 4};
    std::uint8_t rows[16] = {1, 1, 1};
  };
  const Shape shape;
  std::uint32_t ones = kOnes;
  float sum = 1.0F;
  // GCC 12 does not know what the instructions of tiles read and may put off the stores.
  __asm__ volatile("" ::: "memory");
  _tile_loadconfig(&shape);
  _tile_loadd(0, &sum, 4);
  _tile_loadd(1, &ones, 4);
  _tile_loadd(2, &ones, 4);
  _tile_dpbf16ps(0, 1, 2);
  _tile_stored(0, &sum, 4);
  _tile_release();
  return sum;
}

UnitState state_of(bool said, float (*product)()) {
  if (!said) return UnitState::absent;
  switch (try_instruction(product, 3.0F)) {
    case Trial::right:
      return UnitState::works;
    case Trial::wrong:
      return UnitState::wrong;
    case Trial::refused:
      return UnitState::refused;
  }
  return UnitState::absent;
}

}  // namespace

Bf16Units probe_bf16_units() {
  Bf16Units units;
  units.avx512 = state_of(says_avx512(), avx512_product);
  // Its kernels use both.
  if (units.avx512 == UnitState::works) units.amx = state_of(says_amx(), amx_product);
  return units;
}

const char* why_no_bf16_unit() { return "this processor has neither"; }

}  // namespace ridgeline
