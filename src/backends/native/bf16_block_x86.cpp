#include <immintrin.h>

#include <algorithm>
#include <cstring>

#include "backends/native/bf16_block.h"
#include "backends/native/bf16_epilogue.h"

// GCC 12 finds fault with its own header.
#pragma GCC diagnostic ignored "-Wuninitialized"
#pragma GCC diagnostic ignored "-Wmaybe-uninitialized"

#define RIDGELINE_AVX512_BF16 \
  __attribute__((target("avx512f,avx512bw,avx512vl,avx512dq,avx512bf16")))
#define RIDGELINE_AMX_BF16 __attribute__((target("amx-tile,amx-bf16")))

namespace ridgeline::native::bf16 {

namespace {

struct alignas(64) TileShapes {
  std::uint8_t palette = 1, start = 0, reserved[14] = {};
  std::uint16_t row_bytes[16] = {};
  std::uint8_t rows[16] = {};
};

// GCC 12 does not know what the instructions of tiles read: without this it may leave out or put
// off the stores before them.
inline void finish_stores() { __asm__ volatile("" ::: "memory"); }

RIDGELINE_AMX_BF16 void load_tile_shapes() {
  TileShapes shapes;
  std::fill_n(shapes.row_bytes, 8, std::uint16_t{64});
  std::fill_n(shapes.rows, 8, std::uint8_t{16});
  finish_stores();
  _tile_loadconfig(&shapes);
}

RIDGELINE_AMX_BF16 void release_tiles() { _tile_release(); }

// Tiles 0 to 3 hold the sums, 4 and 5 the rows, 6 and 7 the columns: every tile that is loaded is
// used twice.
template <bool kSecondRows, bool kSecondColumns>
RIDGELINE_AMX_BF16 void amx_block(const BlockCall& call) {
  constexpr std::size_t kSumBytes = kBlock * sizeof(float);
  const auto row_bytes = static_cast<std::size_t>(call.row_stride) * sizeof(BFloat16);
  float* const second_rows = call.sums + kTile * kBlock;
  finish_stores();
  if (call.add) {
    _tile_loadd(0, call.sums, kSumBytes);
    if (kSecondColumns) _tile_loadd(1, call.sums + kTile, kSumBytes);
    if (kSecondRows) _tile_loadd(2, second_rows, kSumBytes);
    if (kSecondRows && kSecondColumns) _tile_loadd(3, second_rows + kTile, kSumBytes);
  } else {
    _tile_zero(0);
    if (kSecondColumns) _tile_zero(1);
    if (kSecondRows) _tile_zero(2);
    if (kSecondRows && kSecondColumns) _tile_zero(3);
  }
  const BFloat16* packed = call.packed;
  for (std::int64_t c = 0; c < call.chunk_count; ++c) {
    const BFloat16* const rows = call.rows + call.chunks[c];
    _tile_loadd(6, packed, 64);
    _tile_loadd(4, rows, row_bytes);
    _tile_dpbf16ps(0, 4, 6);
    if (kSecondColumns) {
      _tile_loadd(7, packed + kTileElements, 64);
      _tile_dpbf16ps(1, 4, 7);
    }
    if (kSecondRows) {
      _tile_loadd(5, rows + call.second, row_bytes);
      _tile_dpbf16ps(2, 5, 6);
      if (kSecondColumns) _tile_dpbf16ps(3, 5, 7);
    }
    packed += kSecondColumns ? 2 * kTileElements : kTileElements;
  }
  _tile_stored(0, call.sums, kSumBytes);
  if (kSecondColumns) _tile_stored(1, call.sums + kTile, kSumBytes);
  if (kSecondRows) _tile_stored(2, second_rows, kSumBytes);
  if (kSecondRows && kSecondColumns) _tile_stored(3, second_rows + kTile, kSumBytes);
}

RIDGELINE_AVX512_BF16 inline __m512bh pair_at(const BFloat16* at) {
  std::int32_t pair = 0;
  std::memcpy(&pair, at, sizeof(pair));
  return (__m512bh)_mm512_set1_epi32(pair);
}

// Eight rows of one tile at a time: with two vectors of columns each, all sums stay in registers.
template <int kColumnTiles>
RIDGELINE_AVX512_BF16 void avx512_rows(const BlockCall& call, const BFloat16* rows, float* sums) {
  constexpr int kRows = 8;
  __m512 sum[kRows][kColumnTiles];
#pragma GCC unroll 8
  for (int r = 0; r < kRows; ++r) {
#pragma GCC unroll 2
    for (int t = 0; t < kColumnTiles; ++t) {
      sum[r][t] = call.add ? _mm512_loadu_ps(sums + r * kBlock + t * kTile) : _mm512_setzero_ps();
    }
  }
  const BFloat16* packed = call.packed;
  for (std::int64_t c = 0; c < call.chunk_count; ++c) {
    const BFloat16* at = rows + call.chunks[c];
    for (std::int64_t k = 0; k < kTile; ++k, at += 2, packed += kChunk) {
      __m512bh column[kColumnTiles];
#pragma GCC unroll 2
      for (int t = 0; t < kColumnTiles; ++t) {
        column[t] = (__m512bh)_mm512_loadu_si512(packed + t * kTileElements);
      }
#pragma GCC unroll 8
      for (int r = 0; r < kRows; ++r) {
        const __m512bh row = pair_at(at + r * call.row_stride);
#pragma GCC unroll 2
        for (int t = 0; t < kColumnTiles; ++t) {
          sum[r][t] = _mm512_dpbf16_ps(sum[r][t], row, column[t]);
        }
      }
    }
    packed += (kColumnTiles - 1) * kTileElements;
  }
#pragma GCC unroll 8
  for (int r = 0; r < kRows; ++r) {
#pragma GCC unroll 2
    for (int t = 0; t < kColumnTiles; ++t) {
      _mm512_storeu_ps(sums + r * kBlock + t * kTile, sum[r][t]);
    }
  }
}

void avx512_block(const BlockCall& call) {
  for (std::int64_t row = 0; row < call.row_tiles * kTile; row += 8) {
    const BFloat16* rows = call.rows + row / kTile * call.second + row % kTile * call.row_stride;
    if (call.column_tiles == 2) {
      avx512_rows<2>(call, rows, call.sums + row * kBlock);
    } else {
      avx512_rows<1>(call, rows, call.sums + row * kBlock);
    }
  }
}

constexpr std::uint32_t first_bits(std::int64_t count) {
  return count >= 32 ? ~0U : (1U << count) - 1U;
}

RIDGELINE_AVX512_BF16 inline __m512i pair_of_rows(const BFloat16* even, const BFloat16* odd,
                                                  std::int64_t first, __mmask16 columns) {
  const __m256i zero = _mm256_setzero_si256();
  const __m256i low = even == nullptr ? zero : _mm256_maskz_loadu_epi16(columns, even + first);
  const __m256i high = odd == nullptr ? zero : _mm256_maskz_loadu_epi16(columns, odd + first);
  return _mm512_or_si512(_mm512_cvtepu16_epi32(low),
                         _mm512_slli_epi32(_mm512_cvtepu16_epi32(high), 16));
}

// 16 by 16 words.
RIDGELINE_AVX512_BF16 inline void transpose(__m512i (&r)[16]) {
  __m512i t[16];
#pragma GCC unroll 8
  for (int i = 0; i < 8; ++i) {
    t[2 * i] = _mm512_unpacklo_epi32(r[2 * i], r[2 * i + 1]);
    t[2 * i + 1] = _mm512_unpackhi_epi32(r[2 * i], r[2 * i + 1]);
  }
#pragma GCC unroll 4
  for (int i = 0; i < 4; ++i) {
    r[4 * i] = _mm512_unpacklo_epi64(t[4 * i], t[4 * i + 2]);
    r[4 * i + 1] = _mm512_unpackhi_epi64(t[4 * i], t[4 * i + 2]);
    r[4 * i + 2] = _mm512_unpacklo_epi64(t[4 * i + 1], t[4 * i + 3]);
    r[4 * i + 3] = _mm512_unpackhi_epi64(t[4 * i + 1], t[4 * i + 3]);
  }
#pragma GCC unroll 4
  for (int i = 0; i < 4; ++i) {
    const __m512i even_low = _mm512_shuffle_i32x4(r[i], r[4 + i], 0x88);
    const __m512i odd_low = _mm512_shuffle_i32x4(r[i], r[4 + i], 0xDD);
    const __m512i even_high = _mm512_shuffle_i32x4(r[8 + i], r[12 + i], 0x88);
    const __m512i odd_high = _mm512_shuffle_i32x4(r[8 + i], r[12 + i], 0xDD);
    t[i] = _mm512_shuffle_i32x4(even_low, even_high, 0x88);
    t[4 + i] = _mm512_shuffle_i32x4(odd_low, odd_high, 0x88);
    t[8 + i] = _mm512_shuffle_i32x4(even_low, even_high, 0xDD);
    t[12 + i] = _mm512_shuffle_i32x4(odd_low, odd_high, 0xDD);
  }
#pragma GCC unroll 16
  for (int i = 0; i < 16; ++i) r[i] = t[i];
}

}  // namespace

UnitScope::UnitScope(Bf16Unit unit) : unit_(unit) {
  if (unit_ == Bf16Unit::amx) load_tile_shapes();
}

UnitScope::~UnitScope() {
  if (unit_ == Bf16Unit::amx) release_tiles();
}

void multiply_block(Bf16Unit unit, const BlockCall& call) {
  if (unit != Bf16Unit::amx) return avx512_block(call);
  if (call.row_tiles == 2) {
    return call.column_tiles == 2 ? amx_block<true, true>(call) : amx_block<true, false>(call);
  }
  return call.column_tiles == 2 ? amx_block<false, true>(call) : amx_block<false, false>(call);
}

RIDGELINE_AVX512_BF16 void store_block(const StoreCall& call) {
  const Epilogue& epilogue = *call.epilogue;
  if (epilogue.bias != nullptr || epilogue.activate) {
    finish_sums(call.sums, call.rows, call.columns, epilogue);
  }
  const __mmask16 first = static_cast<__mmask16>(first_bits(std::min(call.columns, kTile)));
  const __mmask16 second =
      static_cast<__mmask16>(first_bits(std::max<std::int64_t>(call.columns - kTile, 0)));
  for (std::int64_t r = 0; r < call.rows; ++r) {
    if (call.places[r] < 0) continue;
    const float* sums = call.sums + r * kBlock;
    BFloat16* to = call.dst + call.places[r];
    _mm256_mask_storeu_epi16(to, first, (__m256i)_mm512_cvtneps_pbh(_mm512_loadu_ps(sums)));
    if (second == 0) continue;
    _mm256_mask_storeu_epi16(to + kTile, second,
                             (__m256i)_mm512_cvtneps_pbh(_mm512_loadu_ps(sums + kTile)));
  }
}

RIDGELINE_AVX512_BF16 void pack_rows(const BFloat16* const* rows, std::int64_t first,
                                     std::int64_t columns, BFloat16* tile) {
  const auto mask = static_cast<__mmask16>(first_bits(columns));
  for (int pair = 0; pair < kTile; ++pair) {
    _mm512_storeu_si512(tile + pair * kChunk,
                        pair_of_rows(rows[2 * pair], rows[2 * pair + 1], first, mask));
  }
}

RIDGELINE_AVX512_BF16 void pack_columns(const BFloat16* const* columns, std::int64_t depth,
                                        BFloat16* tile) {
  const __mmask32 mask = first_bits(depth);
  __m512i words[16];
#pragma GCC unroll 16
  for (int c = 0; c < kTile; ++c) {
    words[c] =
        columns[c] == nullptr ? _mm512_setzero_si512() : _mm512_maskz_loadu_epi16(mask, columns[c]);
  }
  transpose(words);
#pragma GCC unroll 16
  for (int pair = 0; pair < kTile; ++pair) {
    _mm512_storeu_si512(tile + pair * kChunk, words[pair]);
  }
}

RIDGELINE_AVX512_BF16 void transpose_rows(const BFloat16* const* rows, std::int64_t first,
                                          std::int64_t columns, BFloat16* to, std::int64_t stride) {
  const auto mask = static_cast<__mmask16>(first_bits(columns));
  __m512i words[16];
#pragma GCC unroll 16
  for (int pair = 0; pair < kTile; ++pair) {
    words[pair] = pair_of_rows(rows[2 * pair], rows[2 * pair + 1], first, mask);
  }
  transpose(words);
#pragma GCC unroll 16
  for (int c = 0; c < kTile; ++c) _mm512_storeu_si512(to + c * stride, words[c]);
}

RIDGELINE_AVX512_BF16 void transpose_sums(const float* sums, int parts, std::int64_t part_stride,
                                          BFloat16* to, std::int64_t stride) {
  __m512i words[16];
#pragma GCC unroll 16
  for (int r = 0; r < kTile; ++r) {
    __m512 sum = _mm512_loadu_ps(sums + r * kBlock);
    for (int part = 1; part < parts; ++part) {
      sum = _mm512_add_ps(sum, _mm512_loadu_ps(sums + part * part_stride + r * kBlock));
    }
    words[r] = _mm512_castps_si512(sum);
  }
  transpose(words);
#pragma GCC unroll 16
  for (int c = 0; c < kTile; ++c) {
    _mm256_storeu_si256(reinterpret_cast<__m256i*>(to + c * stride),
                        (__m256i)_mm512_cvtneps_pbh(_mm512_castsi512_ps(words[c])));
  }
}

RIDGELINE_AVX512_BF16 void copy_elements(const BFloat16* from, std::int64_t count, BFloat16* to) {
  for (; count >= kChunk; count -= kChunk, from += kChunk, to += kChunk) {
    _mm512_storeu_si512(to, _mm512_loadu_si512(from));
  }
  const __mmask32 mask = first_bits(count);
  _mm512_mask_storeu_epi16(to, mask, _mm512_maskz_loadu_epi16(mask, from));
}

RIDGELINE_AVX512_BF16 void clear_elements(BFloat16* to, std::int64_t count) {
  const __m512i zero = _mm512_setzero_si512();
  for (; count >= kChunk; count -= kChunk, to += kChunk) _mm512_storeu_si512(to, zero);
  _mm512_mask_storeu_epi16(to, first_bits(count), zero);
}

}  // namespace ridgeline::native::bf16
