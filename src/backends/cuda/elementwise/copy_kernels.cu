#include <cstddef>

#include "backends/cuda/elementwise/copy_kernels.h"
#include "backends/cuda/work_split.cuh"

namespace ridgeline::cuda {
namespace {

constexpr int kThreads = 256;
constexpr int kUnitsPerThread = 4;

// A piece in units of 1 to 16 bytes.
struct UnitPiece {
  const void* src;
  void* dst;
  std::int64_t src_stride, dst_stride;
  std::uint32_t units;
  Divider width;
};

struct UnitPieces {
  UnitPiece list[kCopyPieces];
};

template <typename Unit>
__global__ __launch_bounds__(kThreads) void copy_pieces(UnitPieces pieces) {
  const UnitPiece& piece = pieces.list[blockIdx.y];
  const Unit* const src = static_cast<const Unit*>(piece.src);
  Unit* const dst = static_cast<Unit*>(piece.dst);
  constexpr std::uint32_t kUnits = kThreads * kUnitsPerThread;
  for (std::uint32_t first = blockIdx.x * kUnits + threadIdx.x; first < piece.units;
       first += gridDim.x * kUnits) {
    Unit values[kUnitsPerThread];
    std::int64_t to[kUnitsPerThread];
#pragma unroll
    for (int i = 0; i < kUnitsPerThread; ++i) {
      const std::uint32_t unit = first + i * kThreads;
      if (unit >= piece.units) continue;
      const Divider::Parts at = piece.width.split(unit);
      values[i] = src[at.quotient * piece.src_stride + at.remainder];
      to[i] = at.quotient * piece.dst_stride + at.remainder;
    }
#pragma unroll
    for (int i = 0; i < kUnitsPerThread; ++i) {
      if (first + i * kThreads < piece.units) dst[to[i]] = values[i];
    }
  }
}

// Units are counted in 32 bits: larger pieces are cut between rows.
constexpr std::int64_t kMostBytes = std::int64_t{1} << 30;

// Rows without gaps on both sides are one long row.
CopyPiece joined(const CopyPiece& piece, int element_bytes) {
  const std::int64_t elements = piece.rows * piece.width;
  const bool gaps = piece.src_stride != piece.width || piece.dst_stride != piece.width;
  if ((piece.rows > 1 && gaps) || elements * element_bytes > kMostBytes) return piece;
  return {piece.src, piece.dst, 1, elements, elements, elements};
}

bool unit_fits(const CopyPiece& piece, int element_bytes, int unit) {
  const auto whole = [&](std::int64_t bytes) { return bytes % unit == 0; };
  const bool strides = piece.rows == 1 || (whole(piece.src_stride * element_bytes) &&
                                           whole(piece.dst_stride * element_bytes));
  return strides && whole(piece.width * element_bytes) &&
         whole(static_cast<std::int64_t>(reinterpret_cast<std::uintptr_t>(piece.src))) &&
         whole(static_cast<std::int64_t>(reinterpret_cast<std::uintptr_t>(piece.dst)));
}

template <typename Unit>
void launch_units(const CopyPiece* pieces, int count, int element_bytes, Stream stream) {
  constexpr auto kUnit = static_cast<std::int64_t>(sizeof(Unit));
  UnitPieces units{};
  std::int64_t most = 0;
  for (int i = 0; i < count; ++i) {
    const CopyPiece& piece = pieces[i];
    const std::int64_t width = piece.width * element_bytes / kUnit;
    units.list[i] = {piece.src,
                     piece.dst,
                     piece.src_stride * element_bytes / kUnit,
                     piece.dst_stride * element_bytes / kUnit,
                     static_cast<std::uint32_t>(piece.rows * width),
                     Divider(width)};
    most = std::max(most, piece.rows * width);
  }
  const std::int64_t blocks = ceil_div(most, kThreads * kUnitsPerThread);
  const dim3 grid(static_cast<unsigned>(std::min<std::int64_t>(blocks, 65536)),
                  static_cast<unsigned>(count));
  copy_pieces<Unit><<<grid, kThreads, 0, stream>>>(units);
  check_launch("copy_pieces");
}

void launch_some(const CopyPiece* pieces, int count, int element_bytes, Stream stream) {
  const auto fits = [&](int unit) {
    return std::all_of(pieces, pieces + count, [&](const CopyPiece& piece) {
      return unit_fits(piece, element_bytes, unit);
    });
  };
  if (fits(16)) return launch_units<uint4>(pieces, count, element_bytes, stream);
  if (fits(8)) return launch_units<uint2>(pieces, count, element_bytes, stream);
  if (fits(4)) return launch_units<std::uint32_t>(pieces, count, element_bytes, stream);
  if (fits(2)) return launch_units<std::uint16_t>(pieces, count, element_bytes, stream);
  launch_units<std::uint8_t>(pieces, count, element_bytes, stream);
}

// Elements of a tile; with the padding between its rows it must stay below 48 KiB.
template <typename T>
inline constexpr int kTile = sizeof(T) == 8 ? 2048 : 4096;

struct Tiles {
  std::int64_t channels, pixels, plain_sample_stride, nhwc_pixel_stride;
  int tile_channels, tile_pixels, pitch;
  int channel_tiles, pixel_tiles;
  Divider by_channels, by_pixels;  // of a full tile
};

// A tile goes through shared memory, so that both sides see neighbours side by side. Its rows are
// an odd number of banks apart: a column then touches every bank once.
template <typename T, bool to_nhwc>
__global__ __launch_bounds__(kThreads) void transpose(Tiles tiles, const T* src, T* dst) {
  __shared__ T tile[kTile<T> * 3 / 2];
  const auto pixel_tiles = static_cast<unsigned>(tiles.pixel_tiles);
  const auto channel_tiles = static_cast<unsigned>(tiles.channel_tiles);
  const unsigned pixel_tile = blockIdx.x % pixel_tiles;
  const unsigned channel_tile = blockIdx.x / pixel_tiles % channel_tiles;
  const std::int64_t sample = blockIdx.x / pixel_tiles / channel_tiles;
  const std::int64_t first_channel = std::int64_t{channel_tile} * tiles.tile_channels;
  const std::int64_t first_pixel = std::int64_t{pixel_tile} * tiles.tile_pixels;
  const auto plain = [&](std::uint32_t c, std::uint32_t p) {
    return sample * tiles.plain_sample_stride + (first_channel + c) * tiles.pixels + first_pixel +
           p;
  };
  const auto nhwc = [&](std::uint32_t c, std::uint32_t p) {
    return (sample * tiles.pixels + first_pixel + p) * tiles.nhwc_pixel_stride + first_channel + c;
  };
  const auto inside = [&](std::uint32_t c, std::uint32_t p) {
    return first_channel + c < tiles.channels && first_pixel + p < tiles.pixels;
  };
  const int elements = tiles.tile_channels * tiles.tile_pixels;
  for (int i = static_cast<int>(threadIdx.x); i < elements; i += kThreads) {
    const Divider::Parts at = (to_nhwc ? tiles.by_pixels : tiles.by_channels).split(i);
    const std::uint32_t c = to_nhwc ? at.quotient : at.remainder;
    const std::uint32_t p = to_nhwc ? at.remainder : at.quotient;
    if (inside(c, p)) tile[c * tiles.pitch + p] = src[to_nhwc ? plain(c, p) : nhwc(c, p)];
  }
  __syncthreads();
  for (int i = static_cast<int>(threadIdx.x); i < elements; i += kThreads) {
    const Divider::Parts at = (to_nhwc ? tiles.by_channels : tiles.by_pixels).split(i);
    const std::uint32_t c = to_nhwc ? at.remainder : at.quotient;
    const std::uint32_t p = to_nhwc ? at.quotient : at.remainder;
    if (inside(c, p)) dst[to_nhwc ? nhwc(c, p) : plain(c, p)] = tile[c * tiles.pitch + p];
  }
}

// Elements between rows of a tile: an odd number of 4-byte banks.
int pitch_for(std::int64_t row, int element_bytes) {
  if (element_bytes == 8) return static_cast<int>(row | 1);
  const std::int64_t words = ceil_div(row * element_bytes, 4) | 1;
  return static_cast<int>(words * 4 / element_bytes);
}

// Square for large images; few channels or few pixels are taken whole.
template <typename T>
Tiles tiles_for(const TransposeTask& task) {
  constexpr std::int64_t kSide = 64;
  std::int64_t pixels = std::min<std::int64_t>(task.pixels, kSide);
  std::int64_t channels = std::min<std::int64_t>(task.channels, kSide);
  if (pixels < kSide) channels = std::min<std::int64_t>(task.channels, kTile<T> / pixels);
  pixels = std::min<std::int64_t>(task.pixels, kTile<T> / channels);
  // The padded rows must fit.
  constexpr std::int64_t kRoom = kTile<T> * 3 / 2;
  const auto element = static_cast<int>(sizeof(T));
  while (channels * pitch_for(pixels, element) > kRoom) channels = (channels + 1) / 2;
  Tiles tiles{};
  tiles.channels = task.channels;
  tiles.pixels = task.pixels;
  tiles.plain_sample_stride = task.plain_sample_stride;
  tiles.nhwc_pixel_stride = task.nhwc_pixel_stride;
  tiles.tile_channels = static_cast<int>(channels);
  tiles.tile_pixels = static_cast<int>(pixels);
  tiles.pitch = pitch_for(pixels, element);
  tiles.channel_tiles = static_cast<int>(ceil_div(task.channels, channels));
  tiles.pixel_tiles = static_cast<int>(ceil_div(task.pixels, pixels));
  tiles.by_channels = Divider(channels);
  tiles.by_pixels = Divider(pixels);
  return tiles;
}

template <typename T>
void launch_tiles(const TransposeTask& task, Stream stream) {
  const Tiles tiles = tiles_for<T>(task);
  const std::int64_t blocks = task.samples * tiles.channel_tiles * tiles.pixel_tiles;
  const auto grid = static_cast<unsigned>(blocks);
  const auto* const src = static_cast<const T*>(task.src);
  auto* const dst = static_cast<T*>(task.dst);
  if (task.to_nhwc) {
    transpose<T, true><<<grid, kThreads, 0, stream>>>(tiles, src, dst);
  } else {
    transpose<T, false><<<grid, kThreads, 0, stream>>>(tiles, src, dst);
  }
  check_launch("transpose");
}

}  // namespace

void launch_copy(const CopyPiece* pieces, int count, int element_bytes, Stream stream) {
  CopyPiece list[kCopyPieces];
  int listed = 0;
  const auto flush = [&] {
    if (listed > 0) launch_some(list, listed, element_bytes, stream);
    listed = 0;
  };
  for (int i = 0; i < count; ++i) {
    const CopyPiece piece = joined(pieces[i], element_bytes);
    if (piece.rows == 0 || piece.width == 0) continue;
    const std::int64_t rows = std::max<std::int64_t>(1, kMostBytes / (piece.width * element_bytes));
    for (std::int64_t row = 0; row < piece.rows; row += rows) {
      if (listed == kCopyPieces) flush();
      CopyPiece& part = list[listed++];
      part = piece;
      part.src = static_cast<const std::byte*>(piece.src) + row * piece.src_stride * element_bytes;
      part.dst = static_cast<std::byte*>(piece.dst) + row * piece.dst_stride * element_bytes;
      part.rows = std::min(rows, piece.rows - row);
    }
  }
  flush();
}

void launch_transpose(const TransposeTask& task, Stream stream) {
  if (task.samples * task.channels * task.pixels == 0) return;
  switch (task.element_bytes) {
    case 1:
      return launch_tiles<std::uint8_t>(task, stream);
    case 2:
      return launch_tiles<std::uint16_t>(task, stream);
    case 4:
      return launch_tiles<std::uint32_t>(task, stream);
    default:
      return launch_tiles<std::uint64_t>(task, stream);
  }
}

}  // namespace ridgeline::cuda
