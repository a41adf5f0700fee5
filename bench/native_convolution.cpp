// Where the speed of the native convolutions comes from. `steps/...` is one convolution computed by
// kernels from naive to fast; `peak/...` what the machine could do; `forward/...`,
// `backward_data/...`, `backward_weights/...` are the native kernels on layers of known networks,
// `winograd/...` the same by Winograd's algorithm where it could compute them.
// docs/kernels/native-convolution.md tells the story.

#include <benchmark/benchmark.h>
#include <hwy/aligned_allocator.h>
#include <hwy/targets.h>
#include <time.h>

#include <algorithm>
#include <cstdlib>
#include <functional>
#include <limits>
#include <memory>
#include <string>
#include <vector>

#include "backends/native/conv_dense.h"
#include "backends/native/conv_depthwise.h"
#include "backends/native/conv_weights.h"
#include "backends/native/conv_winograd.h"
#include "base/parallel.h"
#include "base/philox.h"
#include "ops/op.h"

namespace ridgeline {
namespace {

using namespace native::conv;

struct Layer {
  const char* name;
  std::int64_t images, src_channels, size, dst_channels, kernel, stride, pad;
  bool depthwise = false;
};

constexpr Layer kLayers[] = {
    {"mnist_conv1_1_8_3x3_28_b512", 512, 1, 28, 8, 3, 1, 0},
    {"mnist_conv2_8_16_3x3_13_b512", 512, 8, 13, 16, 3, 1, 0},
    {"resnet_3_64_7x7_s2_224_b16", 16, 3, 224, 64, 7, 2, 3},
    {"resnet_64_64_3x3_56_b16", 16, 64, 56, 64, 3, 1, 1},
    {"resnet_64_256_1x1_56_b16", 16, 64, 56, 256, 1, 1, 0},
    {"resnet_256_64_1x1_56_b16", 16, 256, 56, 64, 1, 1, 0},
    {"resnet_128_128_3x3_s2_56_b16", 16, 128, 56, 128, 3, 2, 1},
    {"resnet_256_512_1x1_s2_56_b16", 16, 256, 56, 512, 1, 2, 0},
    {"resnet_128_128_3x3_28_b16", 16, 128, 28, 128, 3, 1, 1},
    {"resnet_256_256_3x3_14_b16", 16, 256, 14, 256, 3, 1, 1},
    {"resnet_512_512_3x3_7_b16", 16, 512, 7, 512, 3, 1, 1},
    {"resnet_512_512_3x3_2_b32", 32, 512, 2, 512, 3, 1, 1},
    {"densenet_128_32_3x3_28_b16", 16, 128, 28, 32, 3, 1, 1},
    {"densenet_512_128_1x1_14_b16", 16, 512, 14, 128, 1, 1, 0},
    {"squeezenet_128_16_1x1_55_b16", 16, 128, 55, 16, 1, 1, 0},
    {"squeezenet_16_64_3x3_55_b16", 16, 16, 55, 64, 3, 1, 1},
    {"mobilenet_3_32_3x3_s2_224_b16", 16, 3, 224, 32, 3, 2, 1},
    {"mobilenet_24_144_1x1_56_b16", 16, 24, 56, 144, 1, 1, 0},
    {"mobilenet_144_24_1x1_56_b16", 16, 144, 56, 24, 1, 1, 0},
    {"mobilenet_144_depthwise_3x3_56_b16", 16, 144, 56, 144, 3, 1, 1, true},
    {"mobilenet_96_depthwise_3x3_s2_112_b16", 16, 96, 112, 96, 3, 2, 1, true},
    {"mobilenet_384_depthwise_3x3_14_b16", 16, 384, 14, 384, 3, 1, 1, true},
};

// An aligned tensor of random numbers.
class Data {
 public:
  Data(const Shape& shape, const Layout& layout, std::uint64_t seed)
      : floats_(hwy::AllocateAligned<float>(static_cast<std::size_t>(shape.elements()))) {
    PhiloxSequence random(seed, RandomStream::synthetic, 0);
    for (std::int64_t i = 0; i < shape.elements(); ++i) floats_[i] = random.uniform() - 0.5F;
    tensor_ = {reinterpret_cast<std::byte*>(floats_.get()),
               {shape, DType::f32},
               layout,
               dense_strides(shape, layout.kind())};
  }
  [[nodiscard]] const Tensor& tensor() const { return tensor_; }
  [[nodiscard]] float* floats() const { return floats_.get(); }

 private:
  hwy::AlignedFreeUniquePtr<float[]> floats_;
  Tensor tensor_;
};

struct Problem {
  explicit Problem(const Layer& layer)
      : src_shape{layer.images, layer.src_channels, layer.size, layer.size},
        groups(layer.depthwise ? layer.src_channels : 1) {
    attributes.kernel_h = attributes.kernel_w = layer.kernel;
    attributes.stride_h = attributes.stride_w = layer.stride;
    attributes.pad_top = attributes.pad_left = layer.pad;
    attributes.pad_bottom = attributes.pad_right = layer.pad;
    attributes.groups = groups;
    const std::int64_t size = (layer.size + 2 * layer.pad - layer.kernel) / layer.stride + 1;
    dst_shape = {layer.images, layer.dst_channels, size, size};
    weights_shape = {layer.dst_channels, layer.src_channels / groups, layer.kernel, layer.kernel};
  }
  [[nodiscard]] double flops() const {
    return 2.0 *
           static_cast<double>(dst_shape.elements() * weights_shape.elements() / weights_shape[0]);
  }

  Shape src_shape, dst_shape, weights_shape;
  std::int64_t groups;
  Conv2dAttributes attributes;
};

// The clock of this thread, which stands still while others have the core; with several threads,
// the one on the wall.
double seconds() {
  timespec time{};
  clock_gettime(thread_count() == 1 ? CLOCK_THREAD_CPUTIME_ID : CLOCK_MONOTONIC, &time);
  return static_cast<double>(time.tv_sec) + 1e-9 * static_cast<double>(time.tv_nsec);
}

// Times every iteration and reports the best: on a shared machine the others tell of the
// neighbours.
template <typename Body>
void measure(benchmark::State& state, double flops, const Body& body) {
  double best = std::numeric_limits<double>::infinity();
  body();
  for (auto _ : state) {
    const double start = seconds();
    body();
    best = std::min(best, seconds() - start);
  }
  state.counters["best_ms"] = best * 1e3;
  state.counters["GFLOP/s"] = flops / best * 1e-9;
}

using Workspace = hwy::AlignedFreeUniquePtr<std::byte[]>;
Workspace workspace_of(std::size_t bytes) { return hwy::AllocateAligned<std::byte>(bytes + 64); }

enum class Algorithm { direct, winograd };

void gather(benchmark::State& state, Algorithm algorithm, const Problem& problem, Geometry geometry,
            const Tensor& src, const Tensor& weights, const Tensor& dst,
            const native::Epilogue& epilogue) {
  if (algorithm == Algorithm::winograd) {
    const WinogradPlan plan = make_winograd_plan(std::move(geometry), thread_count());
    const Workspace workspace = workspace_of(plan.workspace_bytes);
    measure(state, problem.flops(),
            [&] { run_winograd(plan, src, weights.as<float>(), dst, epilogue, workspace.get()); });
  } else if (is_depthwise(geometry)) {
    const DepthwisePlan plan = make_depthwise_plan(std::move(geometry), thread_count());
    const Workspace workspace = workspace_of(plan.workspace_bytes);
    measure(state, problem.flops(),
            [&] { run_depthwise(plan, src, weights, dst, epilogue, workspace.get()); });
  } else {
    const DensePlan plan = make_dense_plan(std::move(geometry), thread_count());
    const Workspace workspace = workspace_of(plan.workspace_bytes);
    measure(state, problem.flops(),
            [&] { run_dense(plan, src, weights.as<float>(), dst, epilogue, workspace.get()); });
  }
}

// With bias and ReLU, as the networks have it.
void forward(benchmark::State& state, Algorithm algorithm, const Layer& layer) {
  const Problem p(layer);
  const Data src(p.src_shape, Layout::nhwc(), 1), weights(p.weights_shape, Layout::plain(), 2);
  const Data bias({layer.dst_channels}, Layout::plain(), 3), dst(p.dst_shape, Layout::nhwc(), 4);
  gather(state, algorithm, p, forward_geometry(p.attributes, p.src_shape, p.dst_shape),
         src.tensor(), weights.tensor(), dst.tensor(), {.bias = bias.floats(), .activate = true});
}

void backward_data(benchmark::State& state, Algorithm algorithm, const Layer& layer) {
  const Problem p(layer);
  const Data diff_dst(p.dst_shape, Layout::nhwc(), 1), weights(p.weights_shape, Layout::plain(), 2);
  const Data diff_src(p.src_shape, Layout::nhwc(), 3);
  gather(state, algorithm, p, backward_data_geometry(p.attributes, p.dst_shape, p.src_shape),
         diff_dst.tensor(), weights.tensor(), diff_src.tensor(), {});
}

void backward_weights(benchmark::State& state, Algorithm algorithm, const Layer& layer) {
  const Problem p(layer);
  const Data src(p.src_shape, Layout::nhwc(), 1), diff_dst(p.dst_shape, Layout::nhwc(), 2);
  const Data diff_weights(p.weights_shape, Layout::plain(), 3);
  Geometry geometry = forward_geometry(p.attributes, p.src_shape, p.dst_shape);
  if (algorithm == Algorithm::winograd) {
    const WinogradWeightsPlan plan =
        make_winograd_weights_plan(std::move(geometry), thread_count());
    const Workspace workspace = workspace_of(plan.workspace_bytes);
    measure(state, p.flops(), [&] {
      run_winograd_weights(plan, src.tensor(), diff_dst.tensor(), diff_weights.floats(),
                           workspace.get());
    });
  } else if (is_depthwise(geometry)) {
    const DepthwiseWeightsPlan plan =
        make_depthwise_weights_plan(std::move(geometry), thread_count());
    const Workspace workspace = workspace_of(plan.workspace_bytes);
    measure(state, p.flops(), [&] {
      run_depthwise_weights(plan, src.tensor(), diff_dst.tensor(), diff_weights.tensor(),
                            workspace.get());
    });
  } else {
    const WeightsPlan plan = make_weights_plan(std::move(geometry), thread_count());
    const Workspace workspace = workspace_of(plan.workspace_bytes);
    measure(state, p.flops(), [&] {
      run_weights(plan, src.tensor(), diff_dst.tensor(), diff_weights.floats(), workspace.get());
    });
  }
}

// The steps: ResNet's 64 -> 64 channels, 3 x 3, on two images of 58 x 58 without padding, by hand
// for AVX2 up to step 4. Src is nhwc, weights are packed as [kernel position][src channel][dst
// channel] from step 2 on.
constexpr Layer kStepLayer = {"steps", 2, 64, 58, 64, 3, 1, 0};
constexpr std::int64_t kChannels = 64, kSrcRow = 58 * 64, kSize = 56, kPixels = 2 * 56 * 56;
using Vec = float __attribute__((vector_size(32)));
constexpr int kLanes = 8;

const float* pixel_of(const float* src, std::int64_t pixel) {
  const std::int64_t n = pixel / (kSize * kSize), y = pixel / kSize % kSize, x = pixel % kSize;
  return src + ((n * 58 + y) * 58 + x) * kChannels;
}

// Step 2: the innermost loop runs over dst channels, which the compiler makes vectors of; every
// product costs a load and a store of a sum.
__attribute__((target("avx2,fma"))) void step2_channels_innermost(const float* src,
                                                                  const float* weights,
                                                                  float* dst) {
  std::fill_n(dst, kPixels * kChannels, 0.0F);
  for (std::int64_t pixel = 0; pixel < kPixels; ++pixel) {
    const float* at = pixel_of(src, pixel);
    float* to = dst + pixel * kChannels;
    for (std::int64_t k = 0; k < 9; ++k) {
      for (std::int64_t c = 0; c < kChannels; ++c) {
        const float value = at[k / 3 * kSrcRow + k % 3 * kChannels + c];
        const float* w = weights + (k * kChannels + c) * kChannels;
        for (std::int64_t o = 0; o < kChannels; ++o) to[o] += value * w[o];
      }
    }
  }
}

// Steps 3 and 4: a tile of kRows pixels x kVectors vectors of sums stays in registers. One pixel
// and eight vectors need nine loads for eight multiply-adds; six pixels and two vectors need eight
// for twelve, and twelve sums are enough to hide the latency of two multiply-add units.
template <int kRows, int kVectors>
__attribute__((target("avx2,fma"))) void tiles(const float* src, const float* weights, float* dst) {
  for (std::int64_t pixel = 0; pixel < kPixels; pixel += kRows) {
    const float* row[kRows];
    for (int r = 0; r < kRows; ++r) {
      row[r] = pixel_of(src, std::min<std::int64_t>(pixel + r, kPixels - 1));
    }
    for (std::int64_t o = 0; o < kChannels; o += kVectors * kLanes) {
      Vec sums[kRows][kVectors] = {};
      for (std::int64_t k = 0; k < 9; ++k) {
        const float* w = weights + k * kChannels * kChannels + o;
        std::int64_t offset = k / 3 * kSrcRow + k % 3 * kChannels;
        for (std::int64_t c = 0; c < kChannels; ++c, ++offset, w += kChannels) {
#pragma GCC unroll 8
          for (int r = 0; r < kRows; ++r) {
#pragma GCC unroll 8
            for (int v = 0; v < kVectors; ++v) {
              Vec weight;
              __builtin_memcpy(&weight, w + v * kLanes, sizeof(weight));
              sums[r][v] += row[r][offset] * weight;
            }
          }
        }
      }
      for (int r = 0; r < kRows && pixel + r < kPixels; ++r) {
        __builtin_memcpy(dst + (pixel + r) * kChannels + o, sums[r], sizeof(sums[r]));
      }
    }
  }
}

// The roof: independent multiply-adds on registers, nothing else.
constexpr int kPeakSums = 12, kPeakRounds = 1 << 20;

__attribute__((target("avx2,fma"))) void peak_avx2() {
  Vec sums[kPeakSums] = {}, x = {}, y = {};
  for (int i = 0; i < kPeakRounds; ++i) {
#pragma GCC unroll 12
    for (int s = 0; s < kPeakSums; ++s) {
      sums[s] += x * y;
      __asm__ volatile("" : "+x"(sums[s]));
    }
  }
}

__attribute__((target("avx512f"))) void peak_avx512() {
  using Wide = float __attribute__((vector_size(64)));
  Wide sums[kPeakSums] = {}, x = {}, y = {};
  for (int i = 0; i < kPeakRounds; ++i) {
#pragma GCC unroll 12
    for (int s = 0; s < kPeakSums; ++s) {
      sums[s] += x * y;
      __asm__ volatile("" : "+v"(sums[s]));
    }
  }
}

void peak(benchmark::State& state, void (*kernel)(), int lanes) {
  measure(state, 2.0 * lanes * kPeakSums * kPeakRounds, kernel);
}

void step1_reference(benchmark::State& state) {
  const Problem p(kStepLayer);
  const Data src(p.src_shape, Layout::plain(), 1), weights(p.weights_shape, Layout::plain(), 2);
  const Data dst(p.dst_shape, Layout::plain(), 3);
  const Attributes attributes = p.attributes;
  const Tensor inputs[] = {src.tensor(), weights.tensor()};
  StepState step_state{};
  measure(state, p.flops(), [&] {
    op_def(OpKind::conv2d).reference({attributes, inputs, {&dst.tensor(), 1}, step_state});
  });
}

void step(benchmark::State& state, void (*kernel)(const float*, const float*, float*)) {
  const Problem p(kStepLayer);
  const Data src(p.src_shape, Layout::nhwc(), 1), weights(p.weights_shape, Layout::plain(), 2);
  const Data dst(p.dst_shape, Layout::nhwc(), 3);
  measure(state, p.flops(), [&] { kernel(src.floats(), weights.floats(), dst.floats()); });
}

// What Winograd's kernels can compute, whether their rows would take it or not.
bool fits_winograd(const Layer& layer) {
  return layer.kernel == 3 && layer.stride == 1 && !layer.depthwise;
}

void add(const std::string& name, const std::function<void(benchmark::State&)>& body) {
  benchmark::RegisterBenchmark(name.c_str(), body)->Unit(benchmark::kMillisecond)->UseRealTime();
}

}  // namespace
}  // namespace ridgeline

int main(int argc, char** argv) {
  using namespace ridgeline;
  benchmark::Initialize(&argc, argv);
  if (const char* threads = std::getenv("RIDGELINE_THREADS")) set_thread_count(std::atoi(threads));
  // The native kernels as a machine without AVX-512 runs them.
  if (std::getenv("RIDGELINE_AVX2") != nullptr) hwy::SetSupportedTargetsForTest(HWY_AVX2);
  add("peak/avx2", [](auto& s) { peak(s, peak_avx2, 8); });
  if (__builtin_cpu_supports("avx512f")) {
    add("peak/avx512", [](auto& s) { peak(s, peak_avx512, 16); });
  }
  const auto native = [](benchmark::State& state) {
    forward(state, Algorithm::direct, kStepLayer);
  };
  add("steps/1_reference", step1_reference);
  add("steps/2_channels_innermost", [](auto& s) { step(s, step2_channels_innermost); });
  add("steps/3_sums_in_registers", [](auto& s) { step(s, tiles<1, 8>); });
  add("steps/4_tile_of_6_pixels", [](auto& s) { step(s, tiles<6, 2>); });
  add("steps/5_native_avx2", [=](auto& s) {
    hwy::SetSupportedTargetsForTest(HWY_AVX2);
    native(s);
    hwy::SetSupportedTargetsForTest(0);
  });
  add("steps/6_native", native);
  for (const Layer& layer : kLayers) {
    for (const Algorithm algorithm : {Algorithm::direct, Algorithm::winograd}) {
      if (algorithm == Algorithm::winograd && !fits_winograd(layer)) continue;
      const std::string begin = algorithm == Algorithm::winograd ? "winograd/" : "";
      add(begin + "forward/" + layer.name,
          [&, algorithm](auto& s) { forward(s, algorithm, layer); });
      add(begin + "backward_data/" + layer.name,
          [&, algorithm](auto& s) { backward_data(s, algorithm, layer); });
      add(begin + "backward_weights/" + layer.name,
          [&, algorithm](auto& s) { backward_weights(s, algorithm, layer); });
    }
  }
  benchmark::RunSpecifiedBenchmarks();
  benchmark::Shutdown();
  return 0;
}
