// Convolutions of any shape, one element a thread, and the small kernels around the fast ones:
// adding partial sums, copying rows.

#include <algorithm>

#include "backends/cuda/conv/conv_gemm.cuh"

namespace ridgeline::cuda::conv {
namespace {

constexpr int kThreads = 256;

// Enough blocks for `count` threads; more elements than that are walked through.
dim3 grid_for(std::int64_t count) {
  constexpr std::int64_t kMostBlocks = 1 << 20;
  return {static_cast<unsigned>(
      std::clamp<std::int64_t>((count + kThreads - 1) / kThreads, 1, kMostBlocks))};
}

__device__ __forceinline__ std::int64_t first_index() {
  return static_cast<std::int64_t>(blockIdx.x) * kThreads + threadIdx.x;
}

__device__ __forceinline__ std::int64_t index_step() {
  return static_cast<std::int64_t>(gridDim.x) * kThreads;
}

__device__ __forceinline__ bool inside(std::int64_t position, std::int64_t size) {
  return position >= 0 && position < size;
}

template <typename T>
__global__ void __launch_bounds__(kThreads) direct_forward(const __grid_constant__ Direct p) {
  const auto* src = static_cast<const T*>(p.src);
  const auto* weights = static_cast<const T*>(p.weights);
  const std::int64_t channels = p.groups * p.group_dst;
  const std::int64_t count = p.images * p.dst_h * p.dst_w * channels;
  for (std::int64_t e = first_index(); e < count; e += index_step()) {
    const std::int64_t pixel = e / channels, o = e - pixel * channels;
    const std::int64_t line = pixel / p.dst_w, image = line / p.dst_h;
    const std::int64_t top = (line - image * p.dst_h) * p.stride_h - p.pad_top;
    const std::int64_t left = (pixel - line * p.dst_w) * p.stride_w - p.pad_left;
    const std::int64_t first_channel = o / p.group_dst * p.group_src;
    float sum = 0.0F;
    for (int r = 0; r < p.kernel_h; ++r) {
      const std::int64_t h = top + r * p.dilation_h;
      if (!inside(h, p.src_h)) continue;
      for (int s = 0; s < p.kernel_w; ++s) {
        const std::int64_t w = left + s * p.dilation_w;
        if (!inside(w, p.src_w)) continue;
        const T* a = src + ((image * p.src_h + h) * p.src_w + w) * p.src_stride + first_channel;
        const T* b = weights + ((o * p.kernel_h + r) * p.kernel_w + s) * p.group_src;
#pragma unroll 8
        for (std::int64_t c = 0; c < p.group_src; ++c) {
          sum = fmaf(to_float(a[c]), to_float(b[c]), sum);
        }
      }
    }
    if (p.epilogue.bias != nullptr) sum += p.epilogue.bias[o];
    static_cast<T*>(p.dst)[pixel * p.dst_stride + o] = from_float<T>(finish(p.epilogue, sum));
  }
}

// The dst position whose tap `k` reads src position `position`; -1 when no window does.
__device__ __forceinline__ std::int64_t reader(std::int64_t position, int k, int pad, int dilation,
                                               int stride, std::int64_t size) {
  const std::int64_t start = position + pad - static_cast<std::int64_t>(k) * dilation;
  if (start < 0 || start % stride != 0 || start / stride >= size) return -1;
  return start / stride;
}

template <typename T>
__global__ void __launch_bounds__(kThreads) direct_backward_data(const __grid_constant__ Direct p) {
  const auto* diff_dst = static_cast<const T*>(p.src);
  const auto* weights = static_cast<const T*>(p.weights);
  const std::int64_t channels = p.groups * p.group_src;
  const std::int64_t count = p.images * p.src_h * p.src_w * channels;
  const std::int64_t output_pitch = p.group_src * p.kernel_h * p.kernel_w;
  for (std::int64_t e = first_index(); e < count; e += index_step()) {
    const std::int64_t pixel = e / channels, c = e - pixel * channels;
    const std::int64_t line = pixel / p.src_w, image = line / p.src_h;
    const std::int64_t h = line - image * p.src_h, w = pixel - line * p.src_w;
    const std::int64_t group = c / p.group_src, first_output = group * p.group_dst;
    float sum = 0.0F;
    for (int r = 0; r < p.kernel_h; ++r) {
      const std::int64_t oh = reader(h, r, p.pad_top, p.dilation_h, p.stride_h, p.dst_h);
      if (oh < 0) continue;
      for (int s = 0; s < p.kernel_w; ++s) {
        const std::int64_t ow = reader(w, s, p.pad_left, p.dilation_w, p.stride_w, p.dst_w);
        if (ow < 0) continue;
        const T* a =
            diff_dst + ((image * p.dst_h + oh) * p.dst_w + ow) * p.src_stride + first_output;
        const T* b = weights + first_output * output_pitch + (r * p.kernel_w + s) * p.group_src +
                     (c - group * p.group_src);
#pragma unroll 8
        for (std::int64_t o = 0; o < p.group_dst; ++o) {
          sum = fmaf(to_float(a[o]), to_float(b[o * output_pitch]), sum);
        }
      }
    }
    static_cast<T*>(p.dst)[pixel * p.dst_stride + c] = from_float<T>(sum);
  }
}

// dst[row][n] = sum over k of src[row][k] * weights[n * column_pitch + k * depth_pitch].
struct DeepProduct {
  const void *src, *weights;
  void* dst;
  std::int64_t src_stride, dst_stride, count, width, depth, column_pitch, depth_pitch;
  Epilogue epilogue;
};

// A warp for each result: few of them with a long depth would leave most of the device waiting.
template <typename T>
__global__ void __launch_bounds__(kThreads) direct_deep(const __grid_constant__ DeepProduct p) {
  const auto* src = static_cast<const T*>(p.src);
  const auto* weights = static_cast<const T*>(p.weights);
  const int lane = static_cast<int>(threadIdx.x) % 32;
  for (std::int64_t e = first_index() / 32; e < p.count; e += index_step() / 32) {
    const std::int64_t row = e / p.width, n = e - row * p.width;
    const T* const a = src + row * p.src_stride;
    const T* const b = weights + n * p.column_pitch;
    float sum = 0.0F;
#pragma unroll 4
    for (std::int64_t k = lane; k < p.depth; k += 32) {
      sum = fmaf(to_float(a[k]), to_float(b[k * p.depth_pitch]), sum);
    }
    sum = warp_sum(sum);
    if (lane != 0) continue;
    if (p.epilogue.bias != nullptr) sum += p.epilogue.bias[n];
    static_cast<T*>(p.dst)[row * p.dst_stride + n] = from_float<T>(finish(p.epilogue, sum));
  }
}

// A block for each weight, its threads for the pixels.
template <typename T>
__global__ void __launch_bounds__(kThreads)
    direct_backward_weights(const __grid_constant__ Direct p) {
  __shared__ float sums[32];
  const auto* src = static_cast<const T*>(p.src);
  const auto* diff_dst = static_cast<const T*>(p.diff_dst);
  const std::int64_t tap = blockIdx.x / p.group_src, c = blockIdx.x - tap * p.group_src;
  const std::int64_t row = tap / p.kernel_w, s = tap - row * p.kernel_w;
  const std::int64_t o = row / p.kernel_h, r = row - o * p.kernel_h;
  const std::int64_t channel = o / p.group_dst * p.group_src + c;
  const std::int64_t pixels = p.images * p.dst_h * p.dst_w;
  float sum = 0.0F;
  for (std::int64_t pixel = threadIdx.x; pixel < pixels; pixel += kThreads) {
    const std::int64_t line = pixel / p.dst_w, image = line / p.dst_h;
    const std::int64_t h = (line - image * p.dst_h) * p.stride_h - p.pad_top + r * p.dilation_h;
    const std::int64_t w = (pixel - line * p.dst_w) * p.stride_w - p.pad_left + s * p.dilation_w;
    if (!inside(h, p.src_h) || !inside(w, p.src_w)) continue;
    sum = fmaf(to_float(src[((image * p.src_h + h) * p.src_w + w) * p.src_stride + channel]),
               to_float(diff_dst[pixel * p.diff_dst_stride + o]), sum);
  }
  sum = block_sum(sum, sums);
  if (threadIdx.x == 0) static_cast<T*>(p.dst)[blockIdx.x] = from_float<T>(sum);
}

struct AddPartialSums {
  const float* partial;
  int splits, count, width;
  void* dst;
  std::int64_t stride;
  Divide by_width;
  bool whole_packs;
  int lanes;  // threads that share the splits of one element
  Epilogue epilogue;
  Unspread unspread;
};

// Where an element of dst stands among the sums of a split.
__device__ __forceinline__ int place_of(const AddPartialSums& p, int e) {
  const Unspread& u = p.unspread;
  if (u.joined == 1) return e;
  const int row = divide(p.by_width, e), column = e - row * p.width;
  const int tap = divide(u.by_channels, column), group = divide(u.by_group_rows, row);
  const int place = group - divide(u.by_joined, group) * u.joined;
  return (row * p.width + tap * u.channels) * u.joined + place * u.channels + column -
         tap * u.channels;
}

// A block is kThreads / lanes packs wide; lane l adds the splits l, l + lanes, ..., then the sums
// of the lanes are added in order.
template <typename T, int pack>
__global__ void __launch_bounds__(kThreads)
    add_partial_sums(const __grid_constant__ AddPartialSums p) {
  __shared__ float shared[kThreads][pack];
  const int thread = static_cast<int>(threadIdx.x), width = kThreads / p.lanes;
  const int lane = thread / width;
  const int e = (static_cast<int>(blockIdx.x) * width + thread % width) * pack;
  float sums[pack] = {};
  if (e < p.count) {
    const float* partial = p.partial + place_of(p, e);
    const std::int64_t of_split = static_cast<std::int64_t>(p.count) * p.unspread.joined;
#pragma unroll 4
    for (int split = lane; split < p.splits; split += p.lanes) {
      const auto more = load<float, pack>(partial + split * of_split);
#pragma unroll
      for (int i = 0; i < pack; ++i) sums[i] += more.elements[i];
    }
  }
#pragma unroll
  for (int i = 0; i < pack; ++i) shared[thread][i] = sums[i];
  __syncthreads();
  if (lane > 0 || e >= p.count) return;
  for (int other = 1; other < p.lanes; ++other) {
#pragma unroll
    for (int i = 0; i < pack; ++i) sums[i] += shared[other * width + thread][i];
  }
  const int row = divide(p.by_width, e), column = e - row * p.width;
  Pack<T, pack> finished;
#pragma unroll
  for (int i = 0; i < pack; ++i) {
    const float bias = p.epilogue.bias != nullptr ? p.epilogue.bias[column + i] : 0.0F;
    finished.set(i, finish(p.epilogue, sums[i] + bias));
  }
  T* out = static_cast<T*>(p.dst) + row * p.stride + column;
  if (p.whole_packs) {
    store(out, finished);
  } else {
#pragma unroll
    for (int i = 0; i < pack; ++i) out[i] = finished.elements[i];
  }
}

struct CopyRows {
  const void* src;
  void* dst;
  std::int64_t count, width, src_stride, dst_stride;
};

template <typename From, typename To>
__global__ void __launch_bounds__(kThreads) copy_rows(const __grid_constant__ CopyRows p) {
  for (std::int64_t e = first_index(); e < p.count; e += index_step()) {
    const std::int64_t row = e / p.dst_stride, column = e - row * p.dst_stride;
    float value = 0.0F;
    if (column < p.width) {
      value = to_float(static_cast<const From*>(p.src)[row * p.src_stride + column]);
    }
    static_cast<To*>(p.dst)[e] = from_float<To>(value);
  }
}

template <typename From, typename To>
__global__ void __launch_bounds__(kThreads)
    spread_weights(const __grid_constant__ SpreadWeights p) {
  const std::int64_t depth = p.joined * p.channels, count = p.outputs * p.pitch;
  for (std::int64_t e = first_index(); e < count; e += index_step()) {
    const std::int64_t row = e / p.pitch, column = e - row * p.pitch;
    const std::int64_t tap = column / depth, place = row / p.group_outputs % p.joined;
    const std::int64_t channel = column - tap * depth - place * p.channels;
    float value = 0.0F;
    if (tap < p.taps && inside(channel, p.channels)) {
      value =
          to_float(static_cast<const From*>(p.src)[(row * p.taps + tap) * p.channels + channel]);
    }
    static_cast<To*>(p.dst)[e] = from_float<To>(value);
  }
}

// Calls body with a value of the element type.
template <typename Body>
void with_type(DType dtype, Body&& body) {
  switch (dtype) {
    case DType::bf16:
      return body(bf16());
    case DType::f16:
      return body(f16());
    default:
      return body(float());
  }
}

template <typename T>
void start_add(AddPartialSums p, bool packs, Stream stream) {
  const int width = kThreads / p.lanes * (packs ? 4 : 1);
  const dim3 grid(static_cast<unsigned>((p.count + width - 1) / width));
  const auto kernel = packs ? add_partial_sums<T, 4> : add_partial_sums<T, 1>;
  start<AddPartialSums>(kernel, grid, kThreads, 0, p, stream, "the sum of partial sums");
}

}  // namespace

namespace {

// A product of pixels, of whose results there are few and each is long.
bool is_deep(const Direct& p, std::int64_t count, std::int64_t depth) {
  constexpr std::int64_t kLeastDepth = 64, kMostResults = 1 << 16;
  return p.kernel_h * p.kernel_w * p.stride_h * p.stride_w == 1 && p.groups == 1 &&
         p.src_h == p.dst_h && p.src_w == p.dst_w && p.pad_top == 0 && p.pad_left == 0 &&
         depth >= kLeastDepth && count <= kMostResults;
}

void launch_deep(DType dtype, const DeepProduct& p, Stream stream) {
  with_type(dtype, [&](auto type) {
    start<DeepProduct>(direct_deep<decltype(type)>, grid_for(32 * p.count), kThreads, 0, p, stream,
                       "the direct convolution of a long depth");
  });
}

}  // namespace

void launch_direct_forward(DType dtype, const Direct& p, Stream stream) {
  const std::int64_t count = p.images * p.dst_h * p.dst_w * p.groups * p.group_dst;
  if (is_deep(p, count, p.group_src)) {
    return launch_deep(dtype,
                       {p.src, p.weights, p.dst, p.src_stride, p.dst_stride, count, p.group_dst,
                        p.group_src, p.group_src, 1, p.epilogue},
                       stream);
  }
  with_type(dtype, [&](auto type) {
    start<Direct>(direct_forward<decltype(type)>, grid_for(count), kThreads, 0, p, stream,
                  "the direct convolution");
  });
}

void launch_direct_backward_data(DType dtype, const Direct& p, Stream stream) {
  const std::int64_t count = p.images * p.src_h * p.src_w * p.groups * p.group_src;
  if (is_deep(p, count, p.group_dst)) {
    return launch_deep(dtype,
                       {p.src, p.weights, p.dst, p.src_stride, p.dst_stride, count, p.group_src,
                        p.group_dst, 1, p.group_src, Epilogue{}},
                       stream);
  }
  with_type(dtype, [&](auto type) {
    start<Direct>(direct_backward_data<decltype(type)>, grid_for(count), kThreads, 0, p, stream,
                  "the direct convolution's data gradient");
  });
}

void launch_direct_backward_weights(DType dtype, const Direct& p, Stream stream) {
  const std::int64_t count = p.groups * p.group_dst * p.kernel_h * p.kernel_w * p.group_src;
  with_type(dtype, [&](auto type) {
    start<Direct>(direct_backward_weights<decltype(type)>, dim3(static_cast<unsigned>(count)),
                  kThreads, 0, p, stream, "the direct convolution's weights gradient");
  });
}

void launch_add_partial_sums(DType dtype, const PartialSums& sums, Stream stream) {
  const Rows& dst = sums.dst;
  const std::int64_t bytes = 4 * static_cast<std::int64_t>(size_of(dtype));
  AddPartialSums p{sums.partial,
                   sums.splits,
                   static_cast<int>(dst.rows * dst.width),
                   static_cast<int>(dst.width),
                   dst.data,
                   dst.stride,
                   sums.by_width,
                   dst.stride % 4 == 0 && reinterpret_cast<std::uintptr_t>(dst.data) % bytes == 0,
                   1,
                   sums.epilogue,
                   sums.unspread};
  const bool packs = dst.width % 4 == 0 && (p.unspread.joined == 1 || p.unspread.channels % 4 == 0);
  while (p.lanes < 32 && p.lanes * 4 < p.splits) p.lanes *= 2;
  with_type(dtype, [&](auto type) { start_add<decltype(type)>(p, packs, stream); });
}

void launch_copy_rows(DType src_type, const Rows& src, DType dst_type, const Rows& dst,
                      Stream stream) {
  const CopyRows p{src.data, dst.data, src.rows * dst.stride, src.width, src.stride, dst.stride};
  with_type(src_type, [&](auto type) {
    using From = decltype(type);
    const auto kernel = dst_type == DType::f32 ? copy_rows<From, float> : copy_rows<From, From>;
    start<CopyRows>(kernel, grid_for(p.count), kThreads, 0, p, stream, "the copy of rows");
  });
}

void launch_spread_weights(const SpreadWeights& p, Stream stream) {
  with_type(p.src_type, [&](auto type) {
    using From = decltype(type);
    const auto kernel =
        p.dst_type == DType::f32 ? spread_weights<From, float> : spread_weights<From, From>;
    start<SpreadWeights>(kernel, grid_for(p.outputs * p.pitch), kThreads, 0, p, stream,
                         "the spread of weights");
  });
}

}  // namespace ridgeline::cuda::conv
