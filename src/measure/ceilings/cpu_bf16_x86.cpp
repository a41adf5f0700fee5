// How fast the CPU's units for bf16 multiply and add when nothing else is in the way.

#include <immintrin.h>

#include <algorithm>

#include "base/bf16_unit.h"
#include "measure/ceilings/cpu_loops.h"

// GCC 12 finds fault with its own header.
#pragma GCC diagnostic ignored "-Wuninitialized"
#pragma GCC diagnostic ignored "-Wmaybe-uninitialized"

namespace ridgeline::ceilings {

namespace {

// As many chains as hide the latency of two units.
constexpr int kChains = 12;

__attribute__((target("avx512f,avx512bf16"))) double avx512_products(std::int64_t rounds) {
  volatile std::int32_t source = 0x3F003F00;  // halves, read at run time
  const auto halves = (__m512bh)_mm512_set1_epi32(source);
  __m512 sums[kChains];
#pragma GCC unroll 12
  for (int chain = 0; chain < kChains; ++chain) sums[chain] = _mm512_setzero_ps();
  for (std::int64_t round = 0; round < rounds; ++round) {
#pragma GCC unroll 12
    for (int chain = 0; chain < kChains; ++chain) {
      sums[chain] = _mm512_dpbf16_ps(sums[chain], halves, halves);
    }
  }
  __m512 total = sums[0];
#pragma GCC unroll 12
  for (int chain = 1; chain < kChains; ++chain) total = _mm512_add_ps(total, sums[chain]);
  return static_cast<double>(_mm512_cvtss_f32(total));
}

// Four tiles of sums hide the latency of the one unit; operands stay in their tiles.
constexpr int kTiles = 4;

__attribute__((target("amx-tile,amx-bf16"))) double amx_products(std::int64_t rounds) {
  struct alignas(64) Shapes {
    std::uint8_t palette = 1, start = 0, reserved[14] = {};
    std::uint16_t row_bytes[16] = {};
    std::uint8_t rows[16] = {};
  };
  Shapes shapes;
  std::fill_n(shapes.row_bytes, 8, std::uint16_t{64});
  std::fill_n(shapes.rows, 8, std::uint8_t{16});
  alignas(64) std::uint16_t halves[512];
  alignas(64) float sums[256];
  std::fill_n(halves, 512, std::uint16_t{0x3F00});
  // GCC 12 does not know what the instructions of tiles read and may put off the stores.
  __asm__ volatile("" ::: "memory");
  _tile_loadconfig(&shapes);
  _tile_zero(0);
  _tile_zero(1);
  _tile_zero(2);
  _tile_zero(3);
  _tile_loadd(4, halves, 64);
  _tile_loadd(5, halves, 64);
  _tile_loadd(6, halves, 64);
  _tile_loadd(7, halves, 64);
  for (std::int64_t round = 0; round < rounds; ++round) {
    _tile_dpbf16ps(0, 4, 6);
    _tile_dpbf16ps(1, 4, 7);
    _tile_dpbf16ps(2, 5, 6);
    _tile_dpbf16ps(3, 5, 7);
  }
  _tile_stored(0, sums, 64);
  _tile_release();
  return static_cast<double>(sums[0]);
}

}  // namespace

std::vector<FmaLoop> bf16_loops() {
  std::vector<FmaLoop> loops;
  if (bf16_unit() >= Bf16Unit::avx512) {
    loops.push_back({.path = "avx512",
                     .dtype = "bf16",
                     .flops_per_round = 2.0 * 32 * kChains,
                     .run = avx512_products});
  }
  if (bf16_unit() >= Bf16Unit::amx) {
    loops.push_back({.path = "amx",
                     .dtype = "bf16",
                     .flops_per_round = 2.0 * 16 * 16 * 32 * kTiles,
                     .run = amx_products});
  }
  return loops;
}

}  // namespace ridgeline::ceilings
