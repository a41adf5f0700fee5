// Checks and times the convolutions on Hopper's own instructions, tile by tile: each against sums
// in double of some elements of its result, on odd shapes and on the layers of real networks.
// usage: build/bench/hopper_convolution ROLE [TILE] [--odd] [--images N]
// ROLE: forward, statistics (forward with them), data, weights, gated or added (data with a ReLU's
// and a normalisation's gradient, with and without another gradient that is added); TILE: wide,
// narrow, high, large, tall, or the one that is chosen. Prints a line of values for each layer:
// role, tile, layer, count, ms, TFLOP/s, error.

#include <cuda_bf16.h>
#include <cuda_runtime.h>

#include <algorithm>
#include <cmath>
#include <cstdio>
#include <cstdlib>
#include <cstring>
#include <functional>
#include <string>
#include <vector>

#include "backends/cuda/hopper/hopper_plan.h"
#include "backends/cuda/norm/batch_norm_kernels.h"

namespace ridgeline::cuda::hopper {
namespace {

using conv::Geometry;

struct Layer {
  int channels, height, width, outputs, kernel, stride, pad, dilation;
  int gap;    // channels between two pixels that belong to others
  int count;  // in ResNet-50, or 0
};

constexpr Layer square(int channels, int size, int outputs, int kernel, int stride, int count) {
  return {channels, size, size, outputs, kernel, stride, kernel / 2, 1, 0, count};
}

constexpr Layer kLayers[] = {
    square(64, 56, 64, 1, 1, 1),    square(64, 56, 64, 3, 1, 3),     square(64, 56, 256, 1, 1, 4),
    square(256, 56, 64, 1, 1, 2),   square(256, 56, 128, 1, 1, 1),   square(128, 56, 128, 3, 2, 1),
    square(128, 28, 512, 1, 1, 4),  square(256, 56, 512, 1, 2, 1),   square(512, 28, 128, 1, 1, 3),
    square(128, 28, 128, 3, 1, 3),  square(512, 28, 256, 1, 1, 1),   square(256, 28, 256, 3, 2, 1),
    square(256, 14, 1024, 1, 1, 6), square(512, 28, 1024, 1, 2, 1),  square(1024, 14, 256, 1, 1, 5),
    square(256, 14, 256, 3, 1, 5),  square(1024, 14, 512, 1, 1, 1),  square(512, 14, 512, 3, 2, 1),
    square(512, 7, 2048, 1, 1, 3),  square(1024, 14, 2048, 1, 2, 1), square(2048, 7, 512, 1, 1, 2),
    square(512, 7, 512, 3, 1, 2),   square(128, 56, 32, 3, 1, 0),    square(256, 28, 128, 1, 1, 0),
    square(512, 14, 128, 1, 1, 0),  square(128, 14, 32, 3, 1, 0),    square(16, 112, 96, 1, 1, 0),
    square(96, 56, 24, 1, 1, 0),    square(24, 56, 144, 1, 1, 0),    square(576, 14, 96, 1, 1, 0),
    square(320, 7, 1280, 1, 1, 0)};
constexpr Layer kOddLayers[] = {
    {8, 5, 7, 8, 1, 1, 0, 1, 0, 0},      {24, 13, 9, 40, 3, 1, 1, 1, 8, 0},
    {72, 17, 11, 136, 3, 2, 1, 1, 0, 0}, {64, 9, 9, 264, 5, 1, 2, 1, 24, 0},
    {200, 12, 10, 72, 3, 1, 2, 2, 0, 0}, {16, 23, 19, 24, 7, 2, 3, 1, 16, 0},
    {328, 6, 5, 168, 1, 3, 0, 1, 0, 0},  {40, 8, 8, 48, 3, 1, 0, 1, 0, 0}};

void check(cudaError_t error, const char* what) {
  if (error == cudaSuccess) return;
  std::printf("%s: %s\n", what, cudaGetErrorString(error));
  std::exit(1);
}

template <typename T>
class Array {
 public:
  explicit Array(std::int64_t count) : count_(count) {
    check(cudaMalloc(&data_, bytes()), "memory of the device");
  }
  ~Array() { (void)cudaFree(data_); }
  Array(const Array&) = delete;
  Array& operator=(const Array&) = delete;

  [[nodiscard]] T* data() const { return data_; }
  [[nodiscard]] std::int64_t count() const { return count_; }
  [[nodiscard]] std::size_t bytes() const {
    return static_cast<std::size_t>(std::max<std::int64_t>(count_, 1)) * sizeof(T);
  }
  void poison() const { check(cudaMemset(data_, 0xFF, bytes()), "memset"); }
  [[nodiscard]] std::vector<T> download() const {
    std::vector<T> values(static_cast<std::size_t>(count_));
    check(cudaMemcpy(values.data(), data_, values.size() * sizeof(T), cudaMemcpyDeviceToHost),
          "copy from the device");
    return values;
  }

 private:
  T* data_ = nullptr;
  std::int64_t count_;
};

using Elements = Array<__nv_bfloat16>;

__device__ unsigned mixed(unsigned x) {
  x ^= x >> 16, x *= 0x7FEB352DU;
  x ^= x >> 15, x *= 0x846CA68BU;
  return x ^ x >> 16;
}

// About normal: the sum of four uniform numbers.
__global__ void fill_kernel(__nv_bfloat16* data, std::int64_t count, float mean, float deviation,
                            unsigned seed) {
  const std::int64_t i = static_cast<std::int64_t>(blockIdx.x) * blockDim.x + threadIdx.x;
  if (i >= count) return;
  const unsigned bits = mixed(mixed(static_cast<unsigned>(i) + seed) ^ seed);
  float sum = 0.0F;
  for (int k = 0; k < 4; ++k) sum += static_cast<float>(bits >> (8 * k) & 255U) / 255.0F - 0.5F;
  data[i] = __float2bfloat16_rn(mean + sum * deviation * 1.732F);
}

void fill(const Elements& array, float mean, float deviation, unsigned seed) {
  fill_kernel<<<static_cast<unsigned>((array.count() + 255) / 256), 256>>>(
      array.data(), array.count(), mean, deviation, seed);
}

struct Sizes {
  int images, channels, height, width, outputs, dst_h, dst_w, kernel, stride, pad, dilation;
  int src_pitch, dst_pitch;
};

__device__ std::int64_t src_at(const Sizes& s, int image, int h, int w) {
  return (static_cast<std::int64_t>(image * s.height + h) * s.width + w) * s.src_pitch;
}
__device__ std::int64_t dst_at(const Sizes& s, int image, int h, int w) {
  return (static_cast<std::int64_t>(image * s.dst_h + h) * s.dst_w + w) * s.dst_pitch;
}

// One thread block for each sampled element of the result; element: a place in the unpadded one.
__global__ void exact_kernel(Sizes s, Role role, const __nv_bfloat16* src,
                             const __nv_bfloat16* weights, const __nv_bfloat16* diff,
                             const std::int64_t* elements, double* results) {
  const std::int64_t element = elements[blockIdx.x];
  double sum = 0.0;
  const int taps = s.kernel * s.kernel;
  if (role == Role::weights) {
    const int c = static_cast<int>(element % s.channels);
    const int tap = static_cast<int>(element / s.channels % taps);
    const auto o = static_cast<int>(element / s.channels / taps);
    const int pixels = s.images * s.dst_h * s.dst_w;
    for (int i = static_cast<int>(threadIdx.x); i < pixels; i += static_cast<int>(blockDim.x)) {
      const int q = i % s.dst_w, p = i / s.dst_w % s.dst_h, n = i / s.dst_w / s.dst_h;
      const int h = p * s.stride - s.pad + tap / s.kernel * s.dilation;
      const int w = q * s.stride - s.pad + tap % s.kernel * s.dilation;
      if (h < 0 || h >= s.height || w < 0 || w >= s.width) continue;
      sum += static_cast<double>(__bfloat162float(src[src_at(s, n, h, w) + c])) *
             static_cast<double>(__bfloat162float(diff[dst_at(s, n, p, q) + o]));
    }
  } else {
    const bool forward = role == Role::forward;
    const int columns = forward ? s.outputs : s.channels, depth = forward ? s.channels : s.outputs;
    const int to_h = forward ? s.dst_h : s.height, to_w = forward ? s.dst_w : s.width;
    const int column = static_cast<int>(element % columns);
    const int x = static_cast<int>(element / columns % to_w);
    const int y = static_cast<int>(element / columns / to_w % to_h);
    const int n = static_cast<int>(element / columns / to_w / to_h);
    for (int i = static_cast<int>(threadIdx.x); i < depth * taps;
         i += static_cast<int>(blockDim.x)) {
      const int k = i % depth, tap = i / depth;
      const int r = tap / s.kernel * s.dilation, t = tap % s.kernel * s.dilation;
      std::int64_t from = 0, at = 0;
      if (forward) {
        const int h = y * s.stride - s.pad + r, w = x * s.stride - s.pad + t;
        if (h < 0 || h >= s.height || w < 0 || w >= s.width) continue;
        from = src_at(s, n, h, w) + k;
        at = (static_cast<std::int64_t>(column) * taps + tap) * s.channels + k;
      } else {
        const int p = y + s.pad - r, q = x + s.pad - t;
        if (p < 0 || q < 0 || p % s.stride != 0 || q % s.stride != 0) continue;
        if (p / s.stride >= s.dst_h || q / s.stride >= s.dst_w) continue;
        from = dst_at(s, n, p / s.stride, q / s.stride) + k;
        at = (static_cast<std::int64_t>(k) * taps + tap) * s.channels + column;
      }
      sum += static_cast<double>(__bfloat162float(forward ? src[from] : diff[from])) *
             static_cast<double>(__bfloat162float(weights[at]));
    }
  }
  __shared__ double sums[256];
  sums[threadIdx.x] = sum;
  __syncthreads();
  if (threadIdx.x != 0) return;
  for (unsigned i = 1; i < blockDim.x; ++i) sum += sums[i];
  results[blockIdx.x] = sum;
}

// What a gate with the bounds 0 and 1 makes of an exact gradient, as the kernels round it.
__global__ void gate_kernel(const __nv_bfloat16* kept, const __nv_bfloat16* other,
                            const std::int64_t* elements, int pitch, int width, double* results) {
  const std::int64_t element = elements[blockIdx.x];
  const std::int64_t at = element / width * pitch + element % width;
  const float bound = __bfloat162float(kept[at]);
  double& result = results[blockIdx.x];
  if (other != nullptr) result += static_cast<double>(__bfloat162float(other[at]));
  if (bound <= 0.0F || bound >= 1.0F) result = 0.0;
}

// Of each channel the sum of g, that of g (src - mean), and those of their magnitudes.
__global__ void sums_kernel(const __nv_bfloat16* g, const __nv_bfloat16* src, std::int64_t rows,
                            int pitch, const float* mean, double* results) {
  const int channel = static_cast<int>(blockIdx.x);
  __shared__ double sums[4][256];
  double own[4] = {};
  for (std::int64_t row = threadIdx.x; row < rows; row += blockDim.x) {
    const auto value = static_cast<double>(__bfloat162float(g[row * pitch + channel]));
    const double distance = static_cast<double>(__bfloat162float(src[row * pitch + channel])) -
                            static_cast<double>(mean[channel]);
    own[0] += value, own[1] += value * distance;
    own[2] += fabs(value), own[3] += fabs(value * distance);
  }
  for (int i = 0; i < 4; ++i) sums[i][threadIdx.x] = own[i];
  __syncthreads();
  if (threadIdx.x >= 4) return;
  double sum = 0.0;
  for (int i = 0; i < 256; ++i) sum += sums[threadIdx.x][i];
  results[4 * channel + static_cast<int>(threadIdx.x)] = sum;
}

// Counts elements that are no numbers, gaps that were touched, and what differs from `other`.
__global__ void judge_kernel(const __nv_bfloat16* got, const __nv_bfloat16* other,
                             std::int64_t count, int pitch, int width, unsigned* counts) {
  const std::int64_t i = static_cast<std::int64_t>(blockIdx.x) * blockDim.x + threadIdx.x;
  if (i >= count) return;
  const unsigned short bits = __bfloat16_as_ushort(got[i]);
  const bool written = static_cast<int>(i % pitch) < width;
  const bool bad = written ? (bits & 0x7F80) == 0x7F80 : bits != 0xFFFF;
  if (bad) atomicAdd(&counts[0], 1U);
  if (bits != __bfloat16_as_ushort(other[i])) atomicAdd(&counts[1], 1U);
}

__global__ void pick_kernel(const __nv_bfloat16* got, const std::int64_t* elements, int pitch,
                            int width, double* picked) {
  const std::int64_t element = elements[blockIdx.x];
  picked[blockIdx.x] =
      static_cast<double>(__bfloat162float(got[element / width * pitch + element % width]));
}

// Mean and variance in double of each channel of rows of pitched elements.
__global__ void moments_kernel(const __nv_bfloat16* data, std::int64_t rows, int pitch,
                               double* results) {
  const int channel = static_cast<int>(blockIdx.x);
  __shared__ double sums[256];
  double mean = 0.0;
  for (int pass = 0; pass < 2; ++pass) {
    double sum = 0.0;
    for (std::int64_t row = threadIdx.x; row < rows; row += blockDim.x) {
      const auto x = static_cast<double>(__bfloat162float(data[row * pitch + channel]));
      sum += pass == 0 ? x : (x - mean) * (x - mean);
    }
    __syncthreads();
    sums[threadIdx.x] = sum;
    __syncthreads();
    sum = 0.0;
    for (unsigned i = 0; i < blockDim.x; ++i) sum += sums[i];
    if (pass == 0) mean = sum / static_cast<double>(rows);
    if (pass == 0) continue;
    if (threadIdx.x == 0) {
      results[2 * channel] = mean;
      results[2 * channel + 1] = sum / static_cast<double>(rows);
    }
  }
}

double milliseconds(const std::function<void()>& run) {
  cudaEvent_t begin = nullptr, end = nullptr;
  check(cudaEventCreate(&begin), "event");
  check(cudaEventCreate(&end), "event");
  const auto batch = [&](int runs) {
    check(cudaEventRecord(begin), "event");
    for (int i = 0; i < runs; ++i) run();
    check(cudaEventRecord(end), "event");
    check(cudaEventSynchronize(end), "a kernel");
    float elapsed = 0.0F;
    check(cudaEventElapsedTime(&elapsed, begin, end), "event");
    return static_cast<double>(elapsed) / runs;
  };
  const double first = batch(3);
  const int runs = std::clamp(static_cast<int>(2.0 / std::max(first, 1e-3)), 3, 50);
  std::vector<double> samples;
  for (int i = 0; i < 5; ++i) samples.push_back(batch(runs));
  std::sort(samples.begin(), samples.end());
  (void)cudaEventDestroy(begin);
  (void)cudaEventDestroy(end);
  return samples[samples.size() / 2];
}

struct Wish {
  std::string role = "forward";
  std::vector<Tile> tiles = {Tile::wide, Tile::narrow, Tile::high, Tile::large, Tile::tall};
  bool odd = false, moments = false, chosen = false;
  int images = 128;
};

const char* name_of(Tile tile) {
  constexpr const char* kNames[] = {"wide", "narrow", "high", "large", "tall"};
  return kNames[static_cast<int>(tile)];
}

class LayerCheck {
 public:
  LayerCheck(const Layer& layer, const Wish& wish)
      : layer_(layer),
        wish_(wish),
        role_(wish.role == "data"                            ? Role::data
              : wish.role == "gated" || wish.role == "added" ? Role::gated
              : wish.role == "weights"                       ? Role::weights
                                                             : Role::forward),
        s_(sizes_of(layer, wish.images)),
        src_(std::int64_t{s_.images} * s_.height * s_.width * s_.src_pitch),
        weights_(std::int64_t{s_.outputs} * s_.kernel * s_.kernel * s_.channels),
        dst_(std::int64_t{s_.images} * s_.dst_h * s_.dst_w * s_.dst_pitch),
        result_(role_ == Role::forward ? dst_.count()
                : is_data()            ? src_.count()
                                       : weights_.count()),
        first_(result_.count()),
        kept_(role_ == Role::gated ? src_.count() : 0),
        other_(role_ == Role::gated ? src_.count() : 0),
        mean_(s_.channels) {
    const float deviation = 1.0F / std::sqrt(static_cast<float>(depth()));
    // Far from zero, where statistics are wanted: their variance must not drown.
    fill(src_, wish.moments ? 3.0F : 0.0F, 1.0F, 1);
    fill(weights_, wish.moments ? 4.0F * deviation : 0.0F, deviation, 2);
    fill(dst_, 0.0F, 1.0F, 3);
    if (role_ == Role::gated) {
      fill(kept_, 0.0F, 1.0F, 4);
      fill(other_, 0.0F, 1.0F, 5);
    }
    const std::vector<float> mean(static_cast<std::size_t>(s_.channels), 0.25F);
    check(cudaMemcpy(mean_.data(), mean.data(), mean_.bytes(), cudaMemcpyHostToDevice), "copy");
  }

  void run() {
    const std::string refused = refuse(role_, geometry(), DType::bf16, device_limits());
    if (!refused.empty()) {
      std::printf("refused,,%s,,,,%s\n", name().c_str(), refused.c_str());
      return;
    }
    if (wish_.chosen) {
      return time(make_plan(role_, geometry(), DType::bf16, device_limits()));
    }
    for (const Tile tile : wish_.tiles) {
      if (role_ != Role::weights) {
        time(make_plan(role_, geometry(), DType::bf16, tile, {}, device_limits()));
        continue;
      }
      const TileShape shape = shape_of(tile);
      const Plan once = make_plan(role_, geometry(), DType::bf16, tile, 1, device_limits());
      const int slots = device_limits().multiprocessors * shape.blocks;
      for (const int waves : {1, 2}) {
        const int splits = std::max(1, waves * slots / once.base.tiles);
        const Plan plan = make_plan(role_, geometry(), DType::bf16, tile, splits, device_limits());
        if (waves == 1 || plan.splits > 1) time(plan);
      }
    }
  }

 private:
  static Sizes sizes_of(const Layer& l, int images) {
    const auto size = [&](int src) {
      return (src + 2 * l.pad - l.dilation * (l.kernel - 1) - 1) / l.stride + 1;
    };
    return {images,         l.channels,         l.height,         l.width,  l.outputs,
            size(l.height), size(l.width),      l.kernel,         l.stride, l.pad,
            l.dilation,     l.channels + l.gap, l.outputs + l.gap};
  }

  [[nodiscard]] bool is_data() const { return role_ == Role::data || role_ == Role::gated; }

  [[nodiscard]] std::int64_t depth() const {
    const std::int64_t taps = s_.kernel * s_.kernel;
    if (role_ == Role::forward) return taps * s_.channels;
    if (is_data()) return taps * s_.outputs;
    return std::int64_t{s_.images} * s_.dst_h * s_.dst_w;
  }

  [[nodiscard]] std::string name() const {
    char text[128];
    std::snprintf(text, sizeof text, "%d -> %d %dx%d/%d %dx%d", s_.channels, s_.outputs, s_.kernel,
                  s_.kernel, s_.stride, s_.height, s_.width);
    return text;
  }

  [[nodiscard]] Geometry geometry() const {
    Conv2dAttributes a;
    a.kernel_h = a.kernel_w = s_.kernel;
    a.stride_h = a.stride_w = s_.stride;
    a.dilation_h = a.dilation_w = s_.dilation;
    a.pad_top = a.pad_left = a.pad_bottom = a.pad_right = s_.pad;
    return {a, s_.images, s_.height, s_.width, s_.channels, s_.dst_h, s_.dst_w, s_.outputs};
  }

  void time(const Plan& plan) {
    const Array<std::byte> workspace(static_cast<std::int64_t>(plan.workspace_bytes));
    const int parts = role_ == Role::forward ? channel_parts(plan) : 0;
    const Array<float> statistics(wish_.moments ? std::int64_t{parts} * kMomentPlanes * s_.outputs
                                                : 0);
    const int sum_parts = role_ == Role::gated ? channel_parts(plan) : 0;
    const Array<float> sums(std::int64_t{sum_parts} * 2 * s_.channels);
    sums.poison();
    result_.poison();
    workspace.poison();
    statistics.poison();
    const auto run = [&] {
      const bool forward = role_ == Role::forward;
      const Rows src = {is_data() ? result_.data() : src_.data(),
                        std::int64_t{s_.images} * s_.height * s_.width, s_.channels, s_.src_pitch};
      const Rows dst = {forward ? result_.data() : dst_.data(),
                        std::int64_t{s_.images} * s_.dst_h * s_.dst_w, s_.outputs, s_.dst_pitch};
      const auto pixels_like = [&](const Elements& array) {
        return Rows{array.data(), src.rows, src.width, src.stride};
      };
      float* moments = wish_.moments ? statistics.data() : nullptr;
      switch (role_) {
        case Role::forward:
          return run_forward(plan, src, weights_.data(), dst, {}, moments, nullptr);
        case Role::data:
          return run_data(plan, dst, weights_.data(), src, nullptr);
        case Role::gated:
          return run_gated(plan, dst, weights_.data(), src,
                           {pixels_like(src_), pixels_like(kept_),
                            wish_.role == "added" ? pixels_like(other_) : Rows{}, 1.0F,
                            mean_.data(), sums.data()},
                           nullptr);
        case Role::weights:
          return run_weights(plan, src, dst, result_.data(), workspace.data(), nullptr);
      }
    };
    run();
    check(cudaGetLastError(), "a launch");
    check(cudaDeviceSynchronize(), name().c_str());
    std::string error = error_of();
    check(cudaMemcpy(first_.data(), result_.data(), first_.bytes(), cudaMemcpyDeviceToDevice),
          "copy");
    if (wish_.moments) error += " " + moments_error(statistics.download(), parts);
    if (role_ == Role::gated) error += " " + sums_error(sums.download(), sum_parts);
    const double ms = milliseconds(run);
    if (judge()[1] != 0) error += " NOT REPEATABLE";
    const double flops = 2.0 * s_.images * s_.dst_h * s_.dst_w * s_.outputs *
                         static_cast<double>(s_.kernel * s_.kernel * s_.channels);
    std::printf("%s,%s,%s,%d,%.4f,%.0f,%s%s\n", wish_.role.c_str(), name_of(plan.tile),
                name().c_str(), layer_.count, ms, flops / ms * 1e-9, error.c_str(),
                role_ == Role::weights ? (" parts " + std::to_string(plan.splits)).c_str() : "");
    std::fflush(stdout);
  }

  [[nodiscard]] int width() const {
    return role_ == Role::forward ? s_.outputs : is_data() ? s_.channels : 1;
  }
  [[nodiscard]] int pitch() const { return role_ == Role::weights ? 1 : width() + layer_.gap; }

  [[nodiscard]] std::vector<unsigned> judge() const {
    const Array<unsigned> counts(2);
    check(cudaMemset(counts.data(), 0, counts.bytes()), "memset");
    judge_kernel<<<static_cast<unsigned>((result_.count() + 255) / 256), 256>>>(
        result_.data(), first_.data(), result_.count(), pitch(), width(), counts.data());
    return counts.download();
  }

  // Of some elements; and all elements between must be numbers, and no gap touched.
  [[nodiscard]] std::string error_of() const {
    const unsigned bad = judge()[0];
    if (bad > 0) return std::to_string(bad) + " WRONGLY WRITTEN";
    const std::int64_t total = result_.count() / pitch() * width();
    constexpr int kSamples = 2048;
    std::vector<std::int64_t> elements(kSamples);
    std::uint64_t state = 12345;
    for (std::int64_t& element : elements) {
      state = state * 6364136223846793005ULL + 1442695040888963407ULL;
      element = static_cast<std::int64_t>((state >> 11) % static_cast<std::uint64_t>(total));
    }
    elements[0] = total - 1, elements[1] = 0;
    const Array<std::int64_t> on_device(kSamples);
    check(cudaMemcpy(on_device.data(), elements.data(), on_device.bytes(), cudaMemcpyHostToDevice),
          "copy");
    const Array<double> results(kSamples), picked(kSamples);
    exact_kernel<<<kSamples, 256>>>(s_, is_data() ? Role::data : role_, src_.data(),
                                    weights_.data(), dst_.data(), on_device.data(), results.data());
    if (role_ == Role::gated) {
      gate_kernel<<<kSamples, 1>>>(kept_.data(), wish_.role == "added" ? other_.data() : nullptr,
                                   on_device.data(), pitch(), width(), results.data());
    }
    pick_kernel<<<kSamples, 1>>>(result_.data(), on_device.data(), pitch(), width(), picked.data());
    const std::vector<double> expected = results.download(), got = picked.download();
    double difference = 0.0, norm = 0.0, worst = 0.0;
    for (std::size_t i = 0; i < kSamples; ++i) {
      const double d = got[i] - expected[i];
      difference += d * d, norm += expected[i] * expected[i];
      worst = std::max(worst, std::abs(d));
    }
    char text[64];
    const double error = std::sqrt(difference / norm);
    std::snprintf(text, sizeof text, "%.1e (worst %.1e)%s", error, worst,
                  error < 4e-3 ? "" : " WRONG");
    return text;
  }

  [[nodiscard]] std::string sums_error(const std::vector<float>& got, int parts) const {
    const Array<double> results(4 * std::int64_t{s_.channels});
    sums_kernel<<<static_cast<unsigned>(s_.channels), 256>>>(
        result_.data(), src_.data(), std::int64_t{s_.images} * s_.height * s_.width, s_.src_pitch,
        mean_.data(), results.data());
    const std::vector<double> expected = results.download();
    double worst = 0.0;
    for (int i = 0; i < 2; ++i) {
      for (int channel = 0; channel < s_.channels; ++channel) {
        double sum = 0.0;
        for (int part = 0; part < parts; ++part) {
          sum += static_cast<double>(
              got[static_cast<std::size_t>((std::int64_t{part} * 2 + i) * s_.channels + channel)]);
        }
        const auto at = static_cast<std::size_t>(4 * channel + i);
        const double error = std::abs(sum - expected[at]) / (expected[at + 2] + 1e-30);
        worst = error < 1e3 ? std::max(worst, error) : 1e3;
      }
    }
    char text[64];
    std::snprintf(text, sizeof text, "sums %.1e%s", worst, worst < 1e-5 ? "" : " WRONG");
    return text;
  }

  [[nodiscard]] std::string moments_error(const std::vector<float>& got, int parts) const {
    const Array<double> results(2 * s_.outputs);
    moments_kernel<<<static_cast<unsigned>(s_.outputs), 256>>>(
        result_.data(), std::int64_t{s_.images} * s_.dst_h * s_.dst_w, s_.dst_pitch,
        results.data());
    const std::vector<double> expected = results.download();
    double worst = 0.0;
    for (int channel = 0; channel < s_.outputs; ++channel) {
      double rows = 0.0, mean = 0.0, squares = 0.0;
      for (int part = 0; part < parts; ++part) {
        const auto at = [&](int plane) {
          return static_cast<double>(got[static_cast<std::size_t>(
              (std::int64_t{part} * kMomentPlanes + plane) * s_.outputs + channel)]);
        };
        if (at(0) == 0.0) continue;
        const double all = rows + at(0), distance = at(1) - mean;
        squares += at(2) + distance * distance * rows * at(0) / all;
        mean += distance * at(0) / all;
        rows = all;
      }
      const double variance = expected[static_cast<std::size_t>(2 * channel + 1)];
      worst = std::max(worst, std::abs(mean - expected[static_cast<std::size_t>(2 * channel)]) /
                                  std::sqrt(variance));
      worst = std::max(worst, std::abs(squares / rows - variance) / variance);
      if (!(worst < 1e3)) worst = 1e3;
    }
    char text[64];
    std::snprintf(text, sizeof text, "moments %.1e%s", worst, worst < 1e-4 ? "" : " WRONG");
    return text;
  }

  Layer layer_;
  Wish wish_;
  Role role_;
  Sizes s_;
  Elements src_, weights_, dst_, result_, first_, kept_, other_;
  Array<float> mean_;
};

}  // namespace
}  // namespace ridgeline::cuda::hopper

int main(int argc, char** argv) {
  using namespace ridgeline::cuda::hopper;
  Wish wish;
  for (int i = 1; i < argc; ++i) {
    const std::string word = argv[i];
    if (word == "--odd") {
      wish.odd = true, wish.images = 5;
    } else if (word == "--images" && i + 1 < argc) {
      wish.images = std::atoi(argv[++i]);
    } else if (word == "chosen") {
      wish.chosen = true;
    } else if (i == 1) {
      wish.role = word;
    } else {
      const std::vector<Tile> all = wish.tiles;
      for (const Tile tile : all) {
        if (word == name_of(tile)) wish.tiles = {tile};
      }
    }
  }
  wish.moments = wish.role == "statistics";
  if (wish.odd) {
    for (const Layer& layer : kOddLayers) LayerCheck(layer, wish).run();
  } else {
    for (const Layer& layer : kLayers) LayerCheck(layer, wish).run();
  }
  return 0;
}
