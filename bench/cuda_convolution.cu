// Where the speed of the cuda backend's convolutions comes from: layers of ResNet-50 computed by
// kernels from naive to fast, each checked against the naive one, as one table in markdown.
// docs/kernels/cuda-convolution.md tells the story.
// usage: build/bench/cuda_convolution [images]

#include <cuda_bf16.h>
#include <cuda_runtime.h>

#include <algorithm>
#include <cmath>
#include <cstdio>
#include <cstdlib>
#include <functional>
#include <random>
#include <string>
#include <vector>

#include "backends/cuda/conv/conv_plan.h"

namespace ridgeline::cuda::conv {
namespace {

using bf16 = __nv_bfloat16;

struct Layer {
  const char* name;
  int channels, size, outputs, kernel, stride, pad;
};

constexpr Layer kLayers[] = {
    {"3 -> 64, 7x7 stride 2, 224", 3, 224, 64, 7, 2, 3},
    {"64 -> 64, 3x3, 56", 64, 56, 64, 3, 1, 1},
    {"64 -> 256, 1x1, 56", 64, 56, 256, 1, 1, 0},
    {"256 -> 256, 3x3, 14", 256, 14, 256, 3, 1, 1},
    {"512 -> 512, 3x3, 7", 512, 7, 512, 3, 1, 1},
};

void check(cudaError_t error, const char* what) {
  if (error == cudaSuccess) return;
  std::fprintf(stderr, "%s: %s\n", what, cudaGetErrorString(error));
  std::exit(1);
}

// What the didactic kernels know of a layer. Images are nhwc, weights [outputs][kernel][channels].
struct Sizes {
  int images, channels, size, outputs, dst_size, kernel, stride, pad;
};

__host__ __device__ int pixels_of(const Sizes& s) { return s.images * s.dst_size * s.dst_size; }
__host__ __device__ int depth_of(const Sizes& s) { return s.kernel * s.kernel * s.channels; }

// Step 1: one thread, one dst number, one multiply-add after the other. Neighbouring threads have
// neighbouring channels of one pixel: src is the same for the whole warp, weights are far apart.
__global__ void naive(Sizes s, const float* src, const float* weights, float* dst) {
  const int o = static_cast<int>(blockIdx.x * blockDim.x + threadIdx.x);
  const int pixel = static_cast<int>(blockIdx.y + blockIdx.z * gridDim.y);
  if (o >= s.outputs || pixel >= pixels_of(s)) return;
  const int image = pixel / (s.dst_size * s.dst_size);
  const int top = pixel / s.dst_size % s.dst_size * s.stride - s.pad;
  const int left = pixel % s.dst_size * s.stride - s.pad;
  float sum = 0.0F;
  for (int r = 0; r < s.kernel; ++r) {
    for (int q = 0; q < s.kernel; ++q) {
      const int h = top + r, w = left + q;
      if (h < 0 || h >= s.size || w < 0 || w >= s.size) continue;
      const float* a = src + (static_cast<long>(image * s.size + h) * s.size + w) * s.channels;
      const float* b = weights + ((o * s.kernel + r) * s.kernel + q) * s.channels;
      for (int c = 0; c < s.channels; ++c) sum += a[c] * b[c];
    }
  }
  dst[static_cast<long>(pixel) * s.outputs + o] = sum;
}

// Element (pixel, k) of the matrix that the convolution would multiply the weights with, if anyone
// wrote it down.
__device__ float gathered(const Sizes& s, const float* src, int pixel, int k) {
  if (pixel >= pixels_of(s) || k >= depth_of(s)) return 0.0F;
  const int tap = k / s.channels, c = k % s.channels;
  const int image = pixel / (s.dst_size * s.dst_size);
  const int h = pixel / s.dst_size % s.dst_size * s.stride - s.pad + tap / s.kernel;
  const int w = pixel % s.dst_size * s.stride - s.pad + tap % s.kernel;
  if (h < 0 || h >= s.size || w < 0 || w >= s.size) return 0.0F;
  return src[(static_cast<long>(image * s.size + h) * s.size + w) * s.channels + c];
}

__device__ float weight(const Sizes& s, const float* weights, int o, int k) {
  return o < s.outputs && k < depth_of(s) ? weights[static_cast<long>(o) * depth_of(s) + k] : 0.0F;
}

// Step 2: a block computes 32 pixels x 32 channels. Every number that it loads is used 32 times
// from shared memory; a thread still loads two numbers for each multiply-add.
__global__ void __launch_bounds__(1024)
    shared_tile(Sizes s, const float* src, const float* weights, float* dst) {
  constexpr int kTile = 32;
  __shared__ float a[kTile][kTile + 1], b[kTile][kTile + 1];
  const int x = static_cast<int>(threadIdx.x) % kTile, y = static_cast<int>(threadIdx.x) / kTile;
  const int m = static_cast<int>(blockIdx.x) * kTile, n = static_cast<int>(blockIdx.y) * kTile;
  float sum = 0.0F;
  for (int k = 0; k < depth_of(s); k += kTile) {
    a[y][x] = gathered(s, src, m + y, k + x);
    b[y][x] = weight(s, weights, n + y, k + x);
    __syncthreads();
#pragma unroll
    for (int i = 0; i < kTile; ++i) sum += a[y][i] * b[x][i];
    __syncthreads();
  }
  if (m + y < pixels_of(s) && n + x < s.outputs) {
    dst[static_cast<long>(m + y) * s.outputs + n + x] = sum;
  }
}

// Step 3: 64 pixels x 64 channels by 256 threads of 4 x 4 sums each, in registers: eight loads from
// shared memory for 16 multiply-adds.
__global__ void __launch_bounds__(256)
    register_tile(Sizes s, const float* src, const float* weights, float* dst) {
  constexpr int kTile = 64, kDepth = 16;
  __shared__ float a[kDepth][kTile + 4], b[kDepth][kTile + 4];
  const int thread = static_cast<int>(threadIdx.x), x = thread % 16, y = thread / 16;
  const int m = static_cast<int>(blockIdx.x) * kTile, n = static_cast<int>(blockIdx.y) * kTile;
  float sums[4][4] = {};
  for (int k = 0; k < depth_of(s); k += kDepth) {
#pragma unroll
    for (int i = 0; i < kTile; i += 16) {
      a[x][y + i] = gathered(s, src, m + y + i, k + x);
      b[x][y + i] = weight(s, weights, n + y + i, k + x);
    }
    __syncthreads();
#pragma unroll
    for (int i = 0; i < kDepth; ++i) {
      const float4 of_a = *reinterpret_cast<const float4*>(&a[i][4 * y]);
      const float4 of_b = *reinterpret_cast<const float4*>(&b[i][4 * x]);
      const float as[4] = {of_a.x, of_a.y, of_a.z, of_a.w};
      const float bs[4] = {of_b.x, of_b.y, of_b.z, of_b.w};
#pragma unroll
      for (int p = 0; p < 4; ++p) {
#pragma unroll
        for (int q = 0; q < 4; ++q) sums[p][q] += as[p] * bs[q];
      }
    }
    __syncthreads();
  }
#pragma unroll
  for (int p = 0; p < 4; ++p) {
#pragma unroll
    for (int q = 0; q < 4; ++q) {
      if (m + 4 * y + p >= pixels_of(s) || n + 4 * x + q >= s.outputs) continue;
      dst[static_cast<long>(m + 4 * y + p) * s.outputs + n + 4 * x + q] = sums[p][q];
    }
  }
}

__global__ void round_all(const float* src, bf16* dst, long count) {
  const long i = static_cast<long>(blockIdx.x) * blockDim.x + threadIdx.x;
  if (i < count) dst[i] = __float2bfloat16_rn(src[i]);
}

__global__ void widen_all(const bf16* src, float* dst, long count) {
  const long i = static_cast<long>(blockIdx.x) * blockDim.x + threadIdx.x;
  if (i < count) dst[i] = __bfloat162float(src[i]);
}

template <typename T>
class DeviceArray {
 public:
  explicit DeviceArray(long count) : count_(count) {
    check(cudaMalloc(&data_, static_cast<std::size_t>(std::max(count, 1L)) * sizeof(T)),
          "memory of the device");
  }
  ~DeviceArray() { (void)cudaFree(data_); }
  DeviceArray(const DeviceArray&) = delete;
  DeviceArray& operator=(const DeviceArray&) = delete;

  [[nodiscard]] T* data() const { return data_; }
  [[nodiscard]] long count() const { return count_; }

 private:
  T* data_ = nullptr;
  long count_;
};

unsigned blocks_for(long count) { return static_cast<unsigned>((count + 255) / 256); }

void fill(const DeviceArray<float>& array, double deviation, unsigned seed) {
  std::mt19937 random(seed);
  std::normal_distribution<float> normal(0.0F, static_cast<float>(deviation));
  // A long period is random enough.
  std::vector<float> period(1 << 20);
  for (float& value : period) value = normal(random);
  for (long at = 0; at < array.count(); at += static_cast<long>(period.size())) {
    const long count = std::min(static_cast<long>(period.size()), array.count() - at);
    check(cudaMemcpy(array.data() + at, period.data(),
                     static_cast<std::size_t>(count) * sizeof(float), cudaMemcpyHostToDevice),
          "copy to the device");
  }
}

std::vector<float> download(const DeviceArray<float>& array) {
  std::vector<float> values(static_cast<std::size_t>(array.count()));
  check(cudaMemcpy(values.data(), array.data(), values.size() * sizeof(float),
                   cudaMemcpyDeviceToHost),
        "copy from the device");
  return values;
}

// |got - expected| / |expected|, over all elements.
double error_of(const std::vector<float>& got, const std::vector<float>& expected) {
  double difference = 0, norm = 0;
  for (std::size_t i = 0; i < got.size(); ++i) {
    const double d = static_cast<double>(got[i]) - expected[i];
    difference += d * d;
    norm += static_cast<double>(expected[i]) * expected[i];
  }
  return std::sqrt(difference / norm);
}

// Median of several batches of runs, in milliseconds.
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
  const double first = batch(1);
  const int runs = std::clamp(static_cast<int>(20.0 / std::max(first, 1e-3)), 1, 50);
  std::vector<double> samples;
  for (int i = 0; i < 7; ++i) samples.push_back(batch(runs));
  std::sort(samples.begin(), samples.end());
  (void)cudaEventDestroy(begin);
  (void)cudaEventDestroy(end);
  return samples[samples.size() / 2];
}

// One layer: its tensors and the rows of the table.
class LayerBench {
 public:
  LayerBench(const Layer& layer, int images)
      : layer_(layer),
        sizes_{images,
               layer.channels,
               layer.size,
               layer.outputs,
               (layer.size + 2 * layer.pad - layer.kernel) / layer.stride + 1,
               layer.kernel,
               layer.stride,
               layer.pad},
        src_(static_cast<long>(images) * layer.size * layer.size * layer.channels),
        weights_(static_cast<long>(layer.outputs) * depth_of(sizes_)),
        dst_(static_cast<long>(pixels_of(sizes_)) * layer.outputs),
        narrow_src_(src_.count()),
        narrow_weights_(weights_.count()),
        narrow_dst_(dst_.count()) {
    fill(src_, 1.0, 1);
    fill(weights_, 1.0 / std::sqrt(depth_of(sizes_)), 2);
    round_all<<<blocks_for(src_.count()), 256>>>(src_.data(), narrow_src_.data(), src_.count());
    round_all<<<blocks_for(weights_.count()), 256>>>(weights_.data(), narrow_weights_.data(),
                                                     weights_.count());
  }

  void run() {
    const unsigned rows = static_cast<unsigned>(pixels_of(sizes_));
    const unsigned outputs = static_cast<unsigned>(sizes_.outputs);
    step("1 naive", 1e-5, [&] {
      naive<<<dim3((outputs + 63) / 64, 4096, (rows + 4095) / 4096), 64>>>(
          sizes_, src_.data(), weights_.data(), dst_.data());
    });
    step("2 tile in shared memory", 1e-5, [&] {
      shared_tile<<<dim3((rows + 31) / 32, (outputs + 31) / 32), 1024>>>(
          sizes_, src_.data(), weights_.data(), dst_.data());
    });
    step("3 tile in registers", 1e-5, [&] {
      register_tile<<<dim3((rows + 63) / 64, (outputs + 63) / 64), 256>>>(
          sizes_, src_.data(), weights_.data(), dst_.data());
    });
    own("4 backend, f32", DType::f32, false, 1e-5);
    own("5 backend, tf32", DType::f32, true, 2e-3);
    own("6 backend, bf16", DType::bf16, false, 2e-2);
    if (sizes_.channels > 3) backward("7 backend, bf16, backward data");
    backward_weights("8 backend, bf16, backward weights");
  }

 private:
  [[nodiscard]] Geometry geometry() const {
    Conv2dAttributes a;
    a.kernel_h = a.kernel_w = layer_.kernel;
    a.stride_h = a.stride_w = layer_.stride;
    a.pad_top = a.pad_left = a.pad_bottom = a.pad_right = layer_.pad;
    return {a,
            sizes_.images,
            sizes_.size,
            sizes_.size,
            sizes_.channels,
            sizes_.dst_size,
            sizes_.dst_size,
            sizes_.outputs};
  }

  // A negative error: not compared, neither with the naive kernel nor with the step before.
  void print(const std::string& name, double time, double error) {
    const double flops = 2.0 * pixels_of(sizes_) * sizes_.outputs * depth_of(sizes_);
    std::printf("| %s | %s | %.4f | %.1f | ", layer_.name, name.c_str(), time, flops / time * 1e-9);
    if (error >= 0 && before_ > 0) std::printf("%.2fx", before_ / time);
    std::printf(" | ");
    if (error >= 0) std::printf("%.1e", error);
    std::printf(" |\n");
    before_ = time;
  }

  // The first step is what the others are compared with.
  void compare(const std::string& name, double time, double allowed) {
    const std::vector<float> got = download(dst_);
    if (expected_.empty()) expected_ = got;
    const double error = error_of(got, expected_);
    print(name, time, error);
    if (!(error <= allowed)) {
      std::fprintf(stderr, "%s, %s: error %g, allowed %g\n", layer_.name, name.c_str(), error,
                   allowed);
      std::exit(1);
    }
  }

  void step(const std::string& name, double allowed, const std::function<void()>& run) {
    check(cudaMemset(dst_.data(), 0xFF, static_cast<std::size_t>(dst_.count()) * sizeof(float)),
          "memset");
    run();
    check(cudaGetLastError(), name.c_str());
    check(cudaDeviceSynchronize(), name.c_str());
    compare(name, milliseconds(run), allowed);
  }

  void own(const std::string& name, DType dtype, bool allow_tf32, double allowed) {
    const bool narrow = dtype == DType::bf16;
    const GatherPlan plan = plan_forward(geometry(), dtype, allow_tf32, device_limits());
    const DeviceArray<std::byte> workspace(static_cast<long>(plan.workspace_bytes));
    const Rows src = {narrow ? static_cast<void*>(narrow_src_.data()) : src_.data(),
                      src_.count() / sizes_.channels, sizes_.channels, sizes_.channels};
    const Rows dst = {narrow ? static_cast<void*>(narrow_dst_.data()) : dst_.data(),
                      pixels_of(sizes_), sizes_.outputs, sizes_.outputs};
    const void* weights = narrow ? static_cast<void*>(narrow_weights_.data()) : weights_.data();
    const auto run = [&] { run_gather(plan, src, weights, dst, {}, workspace.data(), nullptr); };
    check(cudaMemset(dst.data, 0xFF,
                     static_cast<std::size_t>(dst_.count()) * (narrow ? 2 : sizeof(float))),
          "memset");
    const double time = milliseconds(run);
    if (narrow) {
      widen_all<<<blocks_for(dst_.count()), 256>>>(narrow_dst_.data(), dst_.data(), dst_.count());
    }
    compare(name + ", " + plan.text(), time, allowed);
  }

  // Gradients are timed only, on the images as diff_dst: the op tests check them.
  void backward(const std::string& name) {
    const GatherPlan plan = plan_backward_data(geometry(), DType::bf16, false, device_limits());
    const DeviceArray<std::byte> workspace(static_cast<long>(plan.workspace_bytes));
    const DeviceArray<bf16> diff_src(src_.count());
    const Rows diff_dst = {narrow_dst_.data(), pixels_of(sizes_), sizes_.outputs, sizes_.outputs};
    const Rows dst = {diff_src.data(), src_.count() / sizes_.channels, sizes_.channels,
                      sizes_.channels};
    print(name + ", " + plan.text(), milliseconds([&] {
            run_gather(plan, diff_dst, narrow_weights_.data(), dst, {}, workspace.data(), nullptr);
          }),
          -1.0);
  }

  void backward_weights(const std::string& name) {
    const WeightsPlan plan = plan_backward_weights(geometry(), DType::bf16, false, device_limits());
    const DeviceArray<std::byte> workspace(static_cast<long>(plan.workspace_bytes));
    const DeviceArray<bf16> diff_weights(weights_.count());
    const Rows diff_dst = {narrow_dst_.data(), pixels_of(sizes_), sizes_.outputs, sizes_.outputs};
    const Rows src = {narrow_src_.data(), src_.count() / sizes_.channels, sizes_.channels,
                      sizes_.channels};
    print(name + ", " + plan.text(), milliseconds([&] {
            run_weights(plan, src, diff_dst, diff_weights.data(), workspace.data(), nullptr);
          }),
          -1.0);
  }

  Layer layer_;
  Sizes sizes_;
  DeviceArray<float> src_, weights_, dst_;
  DeviceArray<bf16> narrow_src_, narrow_weights_, narrow_dst_;
  std::vector<float> expected_;
  double before_ = 0;
};

}  // namespace

void bench(int images) {
  std::printf("| layer, %d images | step | ms | TFLOP/s | gain on the step before | error |\n",
              images);
  std::printf("|---|---|---|---|---|---|\n");
  for (const Layer& layer : kLayers) LayerBench(layer, images).run();
}

}  // namespace ridgeline::cuda::conv

int main(int count, char** arguments) {
  const int images = count > 1 ? std::atoi(arguments[1]) : 64;
  if (images < 1) {
    std::fprintf(stderr, "usage: cuda_convolution [images]\n");
    return 2;
  }
  ridgeline::cuda::conv::bench(images);
  return 0;
}
