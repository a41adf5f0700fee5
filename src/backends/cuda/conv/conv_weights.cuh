#pragma once

// Gradients of weights. Rows of the product are channels of diff_dst, columns are taps x channels
// of src, the depth are pixels: both operands are contiguous across the depth, and are transposed
// on the way from shared memory to registers. The few tiles leave most of the device idle, so the
// pixels are split as well.

#include "backends/cuda/conv/conv_gemm.cuh"

namespace ridgeline::cuda::conv {

struct WeightsBlock {
  const Weights& p;
  int group;
  int m, n;        // within the group
  int begin, end;  // pixels
};

// Operand a: lines of diff_dst. Packs or elements, as `packs` has it; a thread has one of them of
// several lines.
template <class C, bool packs>
class DiffLines {
 public:
  using T = typename C::Element;
  using Layout = SliceLayout<T, C::kM, false>;
  static constexpr int kUnit = packs ? C::kPack : 1;
  static constexpr int kUnits = C::kM / kUnit;
  static constexpr int kLineStep = C::kThreads / kUnits, kLines = C::kDepth / kLineStep;
  static_assert(C::kThreads % kUnits == 0 && C::kDepth % kLineStep == 0);

  __device__ __forceinline__ explicit DiffLines(const WeightsBlock& block)
      : p_(block.p),
        unit_(static_cast<int>(threadIdx.x) % kUnits),
        line_(static_cast<int>(threadIdx.x) / kUnits),
        pixels_(block.m + unit_ * kUnit < block.p.outputs ? block.end - block.begin : 0) {
    diff_ = static_cast<const T*>(p_.diff_dst) + block.group * p_.outputs + block.m +
            unit_ * kUnit + (block.begin + line_) * p_.dst_stride;
  }

  __device__ __forceinline__ void seek(int slice) {
    from_ = diff_ + static_cast<std::int64_t>(slice) * C::kDepth * p_.dst_stride;
    left_ = pixels_ - slice * C::kDepth - line_;
  }

  __device__ __forceinline__ void load(int part, unsigned char* slice) const {
    const int stride = static_cast<int>(p_.dst_stride) * kLineStep;
    if constexpr (packs) {
#pragma unroll
      for (int i = 0; i < kLines; ++i) {
        if (i * kParts / kLines != part) continue;
        copy_pack<false>(slice + Layout::chunk(line_ + i * kLineStep, unit_), from_ + i * stride,
                         i * kLineStep < left_);
      }
    } else {
#pragma unroll
      for (int batch = 0; batch < kLines / kBatch; ++batch) {
        if (batch * kParts / (kLines / kBatch) != part) continue;
        copy_elements<T>(
            [&](int i) {
              const int line = batch * kBatch + i;
              return Source<T>{from_ + line * stride, line * kLineStep < left_};
            },
            [&](int i) {
              return slice + Layout::element(line_ + (batch * kBatch + i) * kLineStep, unit_);
            });
      }
    }
  }

 private:
  const Weights& p_;
  const T* diff_;
  const T* from_ = nullptr;
  const int unit_, line_, pixels_;
  int left_ = 0;
};

// The src pixel that tap (0, 0) of a dst pixel reads.
struct alignas(16) TapPixel {
  std::int64_t offset;
  int h, w;
};

// Operand b: src pixels under one tap. A thread has one pack (element) of a tap's channels, for
// several pixels of each slice; where those lie stands in a table that the block makes one slice
// ahead.
template <class C, bool packs>
class TapLines {
 public:
  using T = typename C::Element;
  using Layout = SliceLayout<T, C::kN, false>;
  static constexpr int kUnit = packs ? C::kPack : 1;
  static constexpr int kUnits = C::kN / kUnit;
  static constexpr int kLineStep = C::kThreads / kUnits, kLines = C::kDepth / kLineStep;
  static_assert(C::kThreads % kUnits == 0 && C::kDepth % kLineStep == 0);

  __device__ __forceinline__ explicit TapLines(const WeightsBlock& block)
      : block_(block),
        src_(static_cast<const T*>(block.p.src)),
        unit_(static_cast<int>(threadIdx.x) % kUnits),
        line_(static_cast<int>(threadIdx.x) / kUnits) {
    __shared__ TapPixel tables[2][C::kDepth];
    tables_ = tables;
    const Weights& p = block.p;
    const int column = block.n + unit_ * kUnit;
    const int tap = divide(p.by_channels, column);
    const int tap_h = divide(p.by_kernel_w, tap), tap_w = tap - tap_h * p.kernel_w;
    h_ = tap_h * p.dilation_h;
    w_ = tap_w * p.dilation_w;
    src_ += (static_cast<std::int64_t>(h_) * p.src_w + w_) * p.src_stride +
            block.group * p.channels + column - tap * p.channels;
    if (column >= p.width) h_ = 1 << 29;  // outside every image
  }

  __device__ __forceinline__ void make_table(int slice) {
    const int line = static_cast<int>(threadIdx.x);
    if (line >= C::kDepth) return;
    const Weights& p = block_.p;
    const int pixel = block_.begin + slice * C::kDepth + line;
    TapPixel found = {0, -(1 << 30), 0};
    if (pixel < block_.end) {
      const int row = divide(p.by_dst_w, pixel), image = divide(p.by_dst_h, row);
      found.h = (row - image * p.dst_h) * p.stride_h - p.pad_top;
      found.w = (pixel - row * p.dst_w) * p.stride_w - p.pad_left;
      found.offset = ((static_cast<std::int64_t>(image) * p.src_h + found.h) * p.src_w + found.w) *
                     p.src_stride;
    }
    tables_[slice % 2][line] = found;
  }

  __device__ __forceinline__ void seek(int slice) { table_ = tables_[slice % 2]; }

  __device__ __forceinline__ void load(int part, unsigned char* slice) const {
    if constexpr (packs) {
#pragma unroll
      for (int i = 0; i < kLines; ++i) {
        if (i * kParts / kLines != part) continue;
        const int line = line_ + i * kLineStep;
        const Source<T> from = source(line);
        copy_pack<true>(slice + Layout::chunk(line, unit_), from.address, from.inside);
      }
    } else {
#pragma unroll
      for (int batch = 0; batch < kLines / kBatch; ++batch) {
        if (batch * kParts / (kLines / kBatch) != part) continue;
        const int first = line_ + batch * kBatch * kLineStep;
        copy_elements<T>(
            [&](int i) { return source(first + i * kLineStep); },
            [&](int i) { return slice + Layout::element(first + i * kLineStep, unit_); });
      }
    }
  }

 private:
  __device__ __forceinline__ Source<T> source(int line) const {
    const TapPixel pixel = table_[line];
    const bool inside =
        static_cast<unsigned>(pixel.h + h_) < static_cast<unsigned>(block_.p.src_h) &&
        static_cast<unsigned>(pixel.w + w_) < static_cast<unsigned>(block_.p.src_w);
    return {src_ + pixel.offset, inside};
  }

  const WeightsBlock& block_;
  const T* src_;
  TapPixel (*tables_)[C::kDepth];
  const TapPixel* table_ = nullptr;
  const int unit_, line_;
  int h_, w_;
};

template <class C>
class WeightsLoader {
 public:
  __device__ __forceinline__ explicit WeightsLoader(const WeightsBlock& block)
      : a_(block), b_(block) {}

  // The barrier also keeps a table from being written while it is read: two slices lie between.
  __device__ __forceinline__ void prepare(int slice) {
    b_.make_table(slice);
    __syncthreads();
  }
  __device__ __forceinline__ void prepare_next(int slice) { b_.make_table(slice); }
  __device__ __forceinline__ void seek(int slice) {
    a_.seek(slice);
    b_.seek(slice);
  }
  __device__ __forceinline__ void load(int part, unsigned char* stage) const {
    a_.load(part, stage);
    b_.load(part, stage + C::kBytesA);
  }

 private:
  DiffLines<C, C::kPacksA> a_;
  TapLines<C, C::kPacksB> b_;
};

template <class C>
__global__ void __launch_bounds__(C::kThreads, C::kBlocks)
    weights_kernel(const __grid_constant__ Weights p) {
  using Product = std::conditional_t<C::kTensor, TensorProduct<C, false, false>,
                                     SingleProduct<C, false, false>>;
  using T = typename C::Element;

  const int group = p.groups == 1 ? 0 : divide(p.by_group_tiles, static_cast<int>(blockIdx.x));
  const int tile =
      static_cast<int>(blockIdx.x) - group * static_cast<int>(p.by_group_tiles.divisor);
  const int m_tile = divide(p.by_width_tiles, tile);
  const int n_tile = tile - m_tile * static_cast<int>(p.by_width_tiles.divisor);
  const int split = static_cast<int>(blockIdx.y);
  const int begin = split * p.pixels_per_split;
  const WeightsBlock block = {
      p, group, m_tile * C::kM, n_tile * C::kN, begin, min(p.pixels, begin + p.pixels_per_split)};
  const int slices = (block.end - block.begin + C::kDepth - 1) / C::kDepth;
  unsigned char* shared = dynamic_shared_memory();
  Product product;
  {
    WeightsLoader<C> loader(block);
    add_slices<C>(loader, product, shared, 0, slices);
  }

  const auto place = [](int m) -> std::int64_t { return m; };
  if (p.partial != nullptr) {
    float* sums =
        p.partial + (static_cast<std::int64_t>(split) * p.groups + group) * p.outputs * p.width;
    const Target<float> target = {
        sums, p.width, p.outputs, p.width, block.m, block.n, p.width % kFullPack<float> == 0};
    store_sums<C>(product, shared, target, Epilogue{}, place);
  } else {
    const std::int64_t before = static_cast<std::int64_t>(group) * p.outputs * p.width;
    const Target<T> target = {static_cast<T*>(p.diff_weights) + before,
                              p.width,
                              p.outputs,
                              p.width,
                              block.m,
                              block.n,
                              p.whole_packs};
    store_sums<C>(product, shared, target, Epilogue{}, place);
  }
}

template <class C>
void start_weights(const Weights& p, Grid grid, Stream stream) {
  start<Weights>(weights_kernel<C>, {grid.x, grid.y, grid.z}, C::kThreads,
                 C::shared_bytes(p.asynchronous), p, stream, "the convolution's weights gradient");
}

}  // namespace ridgeline::cuda::conv
