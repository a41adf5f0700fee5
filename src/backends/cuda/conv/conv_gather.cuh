#pragma once

// Forward and backward data. Rows of the product are dst pixels, columns dst channels, the depth is
// taps x src channels: operand a is gathered from src, one pixel of it for each dst pixel and tap,
// zeros where a tap falls on padding. Operand b are the weights: in forward the depth is contiguous
// in them, in backward data the columns are.

#include "backends/cuda/conv/conv_gemm.cuh"

namespace ridgeline::cuda::conv {

// What a block computes.
struct GatherBlock {
  const Gather& p;
  const Axis& rows;
  const Axis& columns;
  int pixels;  // of the class
  int group;
  int m, n;  // first row and column of the tile, within the group

  // Before the group's own channels.
  [[nodiscard]] __device__ __forceinline__ int depth_before() const { return group * p.depth; }
  [[nodiscard]] __device__ __forceinline__ int width_before() const { return group * p.width; }
};

// A position of the depth.
struct Position {
  int tap, tap_h, tap_w, channel;
  bool inside;  // before the end of the depth
};

// Element `offset` of a slice.
template <class C>
__device__ __forceinline__ Position position_of(const GatherBlock& block, int slice, int offset) {
  const Gather& p = block.p;
  Position position;
  if (p.taps_inner) {
    const int rest = divide(block.columns.by_taps, slice);
    position.tap_w = slice - rest * block.columns.taps;
    position.tap_h = divide(p.by_depth_slices, rest);
    const int channels = rest - position.tap_h * static_cast<int>(p.by_depth_slices.divisor);
    position.channel = channels * C::kDepth + offset;
    position.tap = position.tap_h * block.columns.taps + position.tap_w;
  } else {
    const int k = slice * C::kDepth + offset;
    position.tap = divide(p.by_depth, k);
    position.channel = k - position.tap * p.depth;
    position.tap_h = divide(block.columns.by_taps, position.tap);
    position.tap_w = position.tap - position.tap_h * block.columns.taps;
  }
  position.inside = position.tap_h < block.rows.taps;
  return position;
}

// From the src pixel of tap 0 and channel 0, in elements.
__device__ __forceinline__ int src_offset(const Gather& p, const Position& position) {
  return (position.tap_h * p.tap_step_h * p.src_w + position.tap_w * p.tap_step_w) *
             static_cast<int>(p.src_stride) +
         position.channel;
}

__device__ __forceinline__ int weights_offset(const GatherBlock& block, const Position& position) {
  const Gather& p = block.p;
  const int h = block.rows.first_tap + position.tap_h * p.kernel_step_h;
  const int w = block.columns.first_tap + position.tap_w * p.kernel_step_w;
  return position.channel * static_cast<int>(p.weights_pitch) + (h * p.kernel_w + w) * p.width;
}

// A pixel of the class.
struct Pixel {
  int image, i, j;
};

__device__ __forceinline__ Pixel pixel_of(const GatherBlock& block, int m) {
  const int line = divide(block.columns.by_count, m);
  const int image = divide(block.rows.by_count, line);
  return {image, line - image * block.rows.count, m - line * block.columns.count};
}

// The src pixel that tap 0 of a dst pixel reads; its offset counts from the image of the block's
// first pixel, so that 32 bits are enough.
struct SrcPixel {
  int offset, h, w;
};

__device__ __forceinline__ SrcPixel src_pixel(const GatherBlock& block, int m, int first_image) {
  const Gather& p = block.p;
  const Pixel pixel = pixel_of(block, m);
  SrcPixel src;
  src.h = block.rows.origin + pixel.i * p.src_step_h;
  src.w = block.columns.origin + pixel.j * p.src_step_w;
  src.offset = (((pixel.image - first_image) * p.src_h + src.h) * p.src_w + src.w) *
               static_cast<int>(p.src_stride);
  return src;
}

// Operand a by 16 bytes: a thread has one chunk of several rows. Which taps of a row lie inside the
// image is found out once and kept as a mask.
template <class C>
class PixelPacks {
 public:
  using T = typename C::Element;
  using Layout = SliceLayout<T, C::kM, true>;
  static constexpr int kRowStep = C::kThreads / 8, kRows = C::kM / kRowStep;

  __device__ __forceinline__ explicit PixelPacks(const GatherBlock& block)
      : chunk_(static_cast<int>(threadIdx.x) % 8), row_(static_cast<int>(threadIdx.x) / 8) {
    const Gather& p = block.p;
    src_ = static_cast<const T*>(p.src) + block.depth_before();
    if (p.src_in_order) {
      src_ += block.m * p.src_stride;
#pragma unroll
      for (int i = 0; i < kRows; ++i) {
        const int row = row_ + i * kRowStep;
        offsets_[i] = row * static_cast<int>(p.src_stride);
        masks_[i] = block.m + row < block.pixels ? 1U : 0U;
      }
      return;
    }
    // A thread finds out about one row, for all. The table's place is needed for slices afterwards.
    auto* table = reinterpret_cast<int2*>(dynamic_shared_memory());
    const int image = pixel_of(block, block.m).image;
    src_ += static_cast<std::int64_t>(image) * p.src_h * p.src_w * p.src_stride;
    for (int row = static_cast<int>(threadIdx.x); row < C::kM; row += C::kThreads) {
      int2 found = {0, 0};
      if (block.m + row < block.pixels) {
        const SrcPixel pixel = src_pixel(block, block.m + row, image);
        found = {pixel.offset, static_cast<int>(mask_of(block, pixel))};
      }
      table[row] = found;
    }
    __syncthreads();
#pragma unroll
    for (int i = 0; i < kRows; ++i) {
      const int2 found = table[row_ + i * kRowStep];
      offsets_[i] = found.x;
      masks_[i] = static_cast<unsigned>(found.y);
    }
    __syncthreads();
  }

  __device__ __forceinline__ void seek(const GatherBlock& block, int slice) {
    const Position position = position_of<C>(block, slice, chunk_ * C::kPack);
    offset_ = src_offset(block.p, position);
    tap_ = position.inside ? 1U << position.tap : 0U;
  }

  __device__ __forceinline__ void load(int part, unsigned char* slice) const {
#pragma unroll
    for (int i = 0; i < kRows; ++i) {
      if (i * kParts / kRows != part) continue;
      const int row = row_ + i * kRowStep;
      copy_pack<true>(slice + Layout::chunk(row, chunk_), src_ + (offsets_[i] + offset_),
                      (masks_[i] & tap_) != 0);
    }
  }

 private:
  static __device__ __forceinline__ unsigned mask_of(const GatherBlock& block,
                                                     const SrcPixel& pixel) {
    const Gather& p = block.p;
    unsigned line = 0, mask = 0;
#pragma unroll 1
    for (int t = 0; t < block.columns.taps; ++t) {
      const auto w = static_cast<unsigned>(pixel.w + t * p.tap_step_w);
      if (w < static_cast<unsigned>(p.src_w)) line |= 1U << t;
    }
#pragma unroll 1
    for (int t = 0; t < block.rows.taps; ++t) {
      const auto h = static_cast<unsigned>(pixel.h + t * p.tap_step_h);
      if (h < static_cast<unsigned>(p.src_h)) mask |= line << (t * block.columns.taps);
    }
    return mask;
  }

  const T* src_;
  const int chunk_, row_;
  int offsets_[kRows], offset_ = 0;
  unsigned masks_[kRows], tap_ = 0;
};

// Operand a element by element: a thread has one position of the depth in every slice, for many
// rows, whose pixels lie in a table.
template <class C>
class PixelElements {
 public:
  using T = typename C::Element;
  using Layout = SliceLayout<T, C::kM, true>;
  static constexpr int kRowStep = C::kThreads / C::kDepth, kRows = C::kM / kRowStep;

  __device__ __forceinline__ explicit PixelElements(const GatherBlock& block)
      : p_(block.p),
        column_(static_cast<int>(threadIdx.x) % C::kDepth),
        row_(static_cast<int>(threadIdx.x) / C::kDepth) {
    __shared__ int4 table[C::kM];
    table_ = table;
    const int image = pixel_of(block, block.m).image;
    src_ = static_cast<const T*>(p_.src) + block.depth_before() +
           static_cast<std::int64_t>(image) * p_.src_h * p_.src_w * p_.src_stride;
    for (int row = static_cast<int>(threadIdx.x); row < C::kM; row += C::kThreads) {
      // A pixel that is not there lies far outside the image.
      SrcPixel pixel = {0, -(1 << 30), 0};
      if (block.m + row < block.pixels) pixel = src_pixel(block, block.m + row, image);
      table[row] = {pixel.offset, pixel.h, pixel.w, 0};
    }
    __syncthreads();
  }

  __device__ __forceinline__ void seek(const GatherBlock& block, int slice) {
    const Position position = position_of<C>(block, slice, column_);
    offset_ = src_offset(p_, position);
    h_ = position.inside ? position.tap_h * p_.tap_step_h : -(1 << 30);
    w_ = position.tap_w * p_.tap_step_w;
  }

  __device__ __forceinline__ void load(int part, unsigned char* slice) const {
#pragma unroll
    for (int batch = 0; batch < kRows / kBatch; ++batch) {
      if (batch * kParts / (kRows / kBatch) != part) continue;
      const int first = row_ + batch * kBatch * kRowStep;
      copy_elements<T>(
          [&](int i) {
            const int4 pixel = table_[first + i * kRowStep];
            const bool inside =
                static_cast<unsigned>(pixel.y + h_) < static_cast<unsigned>(p_.src_h) &&
                static_cast<unsigned>(pixel.z + w_) < static_cast<unsigned>(p_.src_w);
            return Source<T>{src_ + (pixel.x + offset_), inside};
          },
          [&](int i) { return slice + Layout::element(first + i * kRowStep, column_); });
    }
  }

 private:
  const Gather& p_;
  const T* src_;
  const int4* table_;
  const int column_, row_;
  int offset_ = 0, h_ = 0, w_ = 0;
};

// Operand b of forward: rows of weights along the depth.
template <class C>
class WeightRows {
 public:
  using T = typename C::Element;
  using Layout = SliceLayout<T, C::kN, true>;
  static constexpr int kRowStep = C::kThreads / 8, kRows = C::kN / kRowStep;
  static_assert(C::kN % kRowStep == 0);

  __device__ __forceinline__ explicit WeightRows(const GatherBlock& block)
      : weights_(static_cast<const T*>(block.p.weights)),
        chunk_(static_cast<int>(threadIdx.x) % 8),
        row_(static_cast<int>(threadIdx.x) / 8),
        pitch_(static_cast<int>(block.p.weights_pitch)),
        rows_(block.p.width - block.n) {
    weights_ += static_cast<std::int64_t>(block.width_before() + block.n + row_) * pitch_;
  }

  __device__ __forceinline__ void seek(const GatherBlock& block, int slice) {
    const Position position = position_of<C>(block, slice, chunk_ * C::kPack);
    offset_ = position.tap * block.p.depth + position.channel;
    inside_ = position.inside;
  }

  __device__ __forceinline__ void load(int part, unsigned char* slice) const {
#pragma unroll
    for (int i = 0; i < kRows; ++i) {
      if (i * kParts / kRows != part) continue;
      const int row = row_ + i * kRowStep;
      copy_pack<false>(slice + Layout::chunk(row, chunk_),
                       weights_ + (i * kRowStep * pitch_ + offset_), row < rows_ && inside_);
    }
  }

 private:
  const T* weights_;
  const int chunk_, row_, pitch_, rows_;
  int offset_ = 0;
  bool inside_ = false;
};

// Operand b of backward data: a line of weights for each tap and channel of diff_dst. A thread has
// one chunk of neighbouring lines; as many lines as a pack has elements belong to one tap.
template <class C>
class WeightPacks {
 public:
  using T = typename C::Element;
  using Layout = SliceLayout<T, C::kN, false>;
  static constexpr int kLines = C::kDepth * Layout::kChunks / C::kThreads;  // of a thread
  static constexpr int kTaps = kLines > C::kPack ? kLines / C::kPack : 1;
  static_assert(kLines <= C::kPack || kLines % C::kPack == 0);

  __device__ __forceinline__ explicit WeightPacks(const GatherBlock& block)
      : chunk_(static_cast<int>(threadIdx.x) % Layout::kChunks),
        line_(static_cast<int>(threadIdx.x) / Layout::kChunks * kLines),
        pitch_(static_cast<int>(block.p.weights_pitch)),
        inside_(block.n + chunk_ * C::kPack < block.p.width) {
    weights_ = static_cast<const T*>(block.p.weights) +
               static_cast<std::int64_t>(block.depth_before()) * pitch_ + block.n +
               chunk_ * C::kPack;
  }

  __device__ __forceinline__ void seek(const GatherBlock& block, int slice) {
#pragma unroll
    for (int t = 0; t < kTaps; ++t) {
      const Position position = position_of<C>(block, slice, line_ + t * C::kPack);
      offsets_[t] = weights_offset(block, position);
      taps_inside_[t] = inside_ && position.inside;
    }
  }

  __device__ __forceinline__ void load(int part, unsigned char* slice) const {
#pragma unroll
    for (int i = 0; i < kLines; ++i) {
      if (i * kParts / kLines != part) continue;
      const int t = i / C::kPack;
      copy_pack<false>(slice + Layout::chunk(line_ + i, chunk_),
                       weights_ + (offsets_[t] + i % C::kPack * pitch_), taps_inside_[t]);
    }
  }

 private:
  const T* weights_;
  const int chunk_, line_, pitch_;
  const bool inside_;
  int offsets_[kTaps] = {};
  bool taps_inside_[kTaps] = {};
};

// The same element by element.
template <class C>
class WeightElements {
 public:
  using T = typename C::Element;
  using Layout = SliceLayout<T, C::kN, false>;
  static constexpr int kLineStep = C::kThreads / C::kN, kLines = C::kDepth / kLineStep;

  __device__ __forceinline__ explicit WeightElements(const GatherBlock& block)
      : block_(block),
        column_(static_cast<int>(threadIdx.x) % C::kN),
        line_(static_cast<int>(threadIdx.x) / C::kN) {}

  __device__ __forceinline__ void seek(const GatherBlock&, int slice) { slice_ = slice; }

  __device__ __forceinline__ void load(int part, unsigned char* slice) const {
    const T* weights = static_cast<const T*>(block_.p.weights) +
                       block_.depth_before() * block_.p.weights_pitch + block_.n + column_;
    const bool inside = block_.n + column_ < block_.p.width;
#pragma unroll
    for (int batch = 0; batch < kLines / kBatch; ++batch) {
      if (batch * kParts / (kLines / kBatch) != part) continue;
      const int first = line_ + batch * kBatch * kLineStep;
      copy_elements<T>(
          [&](int i) {
            const Position position = position_of<C>(block_, slice_, first + i * kLineStep);
            return Source<T>{weights + weights_offset(block_, position), inside && position.inside};
          },
          [&](int i) { return slice + Layout::element(first + i * kLineStep, column_); });
    }
  }

 private:
  const GatherBlock& block_;
  const int column_, line_;
  int slice_ = 0;
};

// Both operands.
template <class C, class A, class B>
class GatherLoader {
 public:
  __device__ __forceinline__ explicit GatherLoader(const GatherBlock& block)
      : block_(block), a_(block), b_(block) {}

  __device__ __forceinline__ void prepare(int) {}
  __device__ __forceinline__ void prepare_next(int) {}
  __device__ __forceinline__ void seek(int slice) {
    a_.seek(block_, slice);
    b_.seek(block_, slice);
  }
  __device__ __forceinline__ void load(int part, unsigned char* stage) const {
    a_.load(part, stage);
    b_.load(part, stage + C::kBytesA);
  }

 private:
  const GatherBlock& block_;
  A a_;
  B b_;
};

template <class C, bool forward>
__global__ void __launch_bounds__(C::kThreads, C::kBlocks)
    gather_kernel(const __grid_constant__ Gather p) {
  using A = std::conditional_t<C::kPacksA, PixelPacks<C>, PixelElements<C>>;
  using BackwardB = std::conditional_t<C::kPacksB, WeightPacks<C>, WeightElements<C>>;
  using B = std::conditional_t<forward, WeightRows<C>, BackwardB>;
  using Product = std::conditional_t<C::kTensor, TensorProduct<C, true, forward>,
                                     SingleProduct<C, true, forward>>;
  using T = typename C::Element;

  const int row_class = static_cast<int>(blockIdx.y) / p.column_classes;
  const Axis rows = p.rows[row_class];
  const Axis columns = p.columns[static_cast<int>(blockIdx.y) - row_class * p.column_classes];
  const int m_tile = divide(p.by_width_tiles, static_cast<int>(blockIdx.x));
  const int tile =
      static_cast<int>(blockIdx.x) - m_tile * static_cast<int>(p.by_width_tiles.divisor);
  const int group = p.groups == 1 ? 0 : divide(p.by_group_tiles, tile);
  const int n_tile = tile - group * static_cast<int>(p.by_group_tiles.divisor);
  const GatherBlock block = {
      p,     rows,           columns,       p.images * rows.count * columns.count,
      group, m_tile * C::kM, n_tile * C::kN};
  if (block.m >= block.pixels) return;

  int first = 0;
  int slices = (rows.taps * columns.taps * p.depth + C::kDepth - 1) / C::kDepth;
  if (p.splits > 1) {
    const int share = (slices + p.splits - 1) / p.splits;
    first = min(static_cast<int>(blockIdx.z) * share, slices);
    slices = min(share, slices - first);
  }
  unsigned char* shared = dynamic_shared_memory();
  Product product;
  {
    GatherLoader<C, A, B> loader(block);
    add_slices<C>(loader, product, shared, first, slices);
  }

  const auto place = [&](int m) -> std::int64_t {
    if (p.dst_in_order) return m;
    const Pixel pixel = pixel_of(block, m);
    const int h = rows.first + pixel.i * p.dst_step_h, w = columns.first + pixel.j * p.dst_step_w;
    return (static_cast<std::int64_t>(pixel.image) * p.dst_h + h) * p.dst_w + w;
  };
  const int before = block.width_before();
  if (p.partial != nullptr) {
    const std::int64_t stride = p.groups * p.width;
    const std::int64_t split =
        static_cast<std::int64_t>(p.images) * p.dst_h * p.dst_w * stride * blockIdx.z;
    const Target<float> target = {.data = p.partial + split + before,
                                  .stride = stride,
                                  .rows = block.pixels,
                                  .width = p.width,
                                  .m = block.m,
                                  .n = block.n,
                                  .whole_packs = p.width % kFullPack<float> == 0};
    store_sums<C>(product, shared, target, Epilogue{}, place);
  } else {
    const float* bias = p.epilogue.bias == nullptr ? nullptr : p.epilogue.bias + before;
    const Target<T> target = {.data = static_cast<T*>(p.dst) + before,
                              .stride = p.dst_stride,
                              .rows = block.pixels,
                              .width = p.width,
                              .m = block.m,
                              .n = block.n,
                              .whole_packs = p.whole_packs,
                              .bias = bias};
    store_sums<C>(product, shared, target, p.epilogue, place);
  }
}

template <class C, bool forward>
void start_gather(const Gather& p, Grid grid, Stream stream) {
  start<Gather>(gather_kernel<C, forward>, {grid.x, grid.y, grid.z}, C::kThreads,
                C::shared_bytes(p.asynchronous), p, stream,
                forward ? "the convolution" : "the convolution's data gradient");
}

// The tiles of one type. Forward loads weights by 16 bytes even where src comes by elements.
template <typename T, Unit unit, bool forward>
void start_tile(GatherTile tile, const Gather& p, Grid grid, Stream stream) {
  constexpr Load kPacks = Load::packs, kElements = Load::elements;
  switch (tile) {
    case GatherTile::wide:
      return start_gather<Config<T, WideTile, unit, kPacks, kPacks>, forward>(p, grid, stream);
    case GatherTile::high:
      if constexpr (sizeof(T) == 2) {
        return start_gather<Config<T, HighTile, unit, kPacks, kPacks>, forward>(p, grid, stream);
      }
      break;
    case GatherTile::tall:
      return start_gather<Config<T, TallTile, unit, kPacks, kPacks>, forward>(p, grid, stream);
    case GatherTile::narrow:
      if constexpr (unit == Unit::tensor) {
        return start_gather<Config<T, NarrowTile, unit, kPacks, kPacks>, forward>(p, grid, stream);
      }
      break;
    case GatherTile::small:
      return start_gather<Config<T, SmallTile, unit, kPacks, kPacks>, forward>(p, grid, stream);
    case GatherTile::elements:
      return start_gather<Config<T, TallTile, unit, kElements, forward ? kPacks : kElements>,
                          forward>(p, grid, stream);
  }
}

template <bool forward>
void start_any(Arithmetic arithmetic, GatherTile tile, const Gather& p, Grid grid, Stream stream) {
  switch (arithmetic) {
    case Arithmetic::f32:
      return start_tile<float, Unit::single, forward>(tile, p, grid, stream);
    case Arithmetic::tf32:
      return start_tile<float, Unit::tensor, forward>(tile, p, grid, stream);
    case Arithmetic::bf16:
      return start_tile<bf16, Unit::tensor, forward>(tile, p, grid, stream);
    case Arithmetic::f16:
      return start_tile<f16, Unit::tensor, forward>(tile, p, grid, stream);
  }
}

}  // namespace ridgeline::cuda::conv
