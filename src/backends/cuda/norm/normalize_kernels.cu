#include "backends/cuda/norm/normalize_kernels.h"
#include "backends/cuda/work_split.cuh"
#include "base/philox.h"

namespace ridgeline::cuda {
namespace {

constexpr int kThreads = 256;
constexpr int kRun = 8;  // pixels that a thread takes at once where rows allow it

template <typename T>
__device__ __forceinline__ T nearest(double value);
template <>
__device__ __forceinline__ float nearest<float>(double value) {
  return static_cast<float>(value);
}
template <>
__device__ __forceinline__ bf16 nearest<bf16>(double value) {
  return __double2bfloat16(value);
}
template <>
__device__ __forceinline__ f16 nearest<f16>(double value) {
  return __double2half(value);
}

// Whether a sample is mirrored; the same bits as on the host.
__device__ bool flips(const StepState& state, std::int32_t sample) {
  const std::uint64_t key = stream_key(state.seed, RandomStream::augmentation);
  const auto number = static_cast<std::uint64_t>(std::int64_t{sample});
  return philox(key, number, static_cast<std::uint64_t>(state.epoch))[0] % 2 == 1;
}

struct Normalize {
  NormalizeTask task;
  std::uint32_t runs;             // of all samples
  std::uint32_t runs_of_a_block;  // neighbours, so that a block sees few samples
  std::uint32_t runs_of_a_row;
  Divider by_sample, by_row;
};

// A pixel has 256 values: a table gives each exactly rounded.
template <typename T>
__device__ __forceinline__ void fill_tables(const NormalizeTask& task, T (*tables)[256]) {
  for (int i = static_cast<int>(threadIdx.x); i < task.channels * 256; i += kThreads) {
    const int channel = i / 256, pixel = i % 256;
    const double share = static_cast<double>(pixel) / 255.0;
    tables[channel][pixel] = nearest<T>((share - task.mean[channel]) / task.deviation[channel]);
  }
}

// The pixels of a run with their channels side by side.
template <typename T, int run, int channels>
struct Pixels {
  alignas(16) T elements[run * channels];
};

// Without gaps and in whole packs, or one by one.
template <typename T, int run, int channels, bool packed>
__device__ __forceinline__ void store_pixels(const Pixels<T, run, channels>& pixels,
                                             const NormalizeTask& task, T* dst) {
  if constexpr (packed) {
    constexpr int kPack = kFullPack<T>;
#pragma unroll
    for (int i = 0; i < run * channels; i += kPack) {
      store<T, kPack>(dst + i, load<T, kPack>(pixels.elements + i));
    }
  } else {
#pragma unroll
    for (int p = 0; p < run; ++p) {
#pragma unroll
      for (int c = 0; c < channels; ++c) {
        if (c < task.channels) {
          dst[p * task.dst_pixel_stride + c] = pixels.elements[p * channels + c];
        }
      }
    }
  }
}

// `channels` is the number of channels where stores are packed, else the most there may be.
template <typename T, int run, int channels, bool packed>
__global__ __launch_bounds__(kThreads) void normalize(Normalize work, const StepState* state) {
  __shared__ T tables[channels][256];
  const NormalizeTask& task = work.task;
  fill_tables(task, tables);
  __syncthreads();

  const std::int64_t pixels = task.height * task.width;
  const std::uint32_t begin = blockIdx.x * work.runs_of_a_block;
  const std::uint32_t end = min(begin + work.runs_of_a_block, work.runs);
  std::int64_t known = -1;
  bool mirrored = false;
  for (std::uint32_t i = begin + threadIdx.x; i < end; i += kThreads) {
    const Divider::Parts of_sample = work.by_sample.split(i);
    const std::int64_t sample = of_sample.quotient;
    if (task.samples != nullptr && sample != known) {
      mirrored = flips(*state, task.samples[sample]);
      known = sample;
    }
    std::int64_t from = of_sample.remainder;
    T* const dst =
        static_cast<T*>(task.dst) + (sample * pixels + from * run) * task.dst_pixel_stride;
    if (mirrored) {
      // The runs of a row change places.
      const Divider::Parts of_row = work.by_row.split(of_sample.remainder);
      from += std::int64_t{work.runs_of_a_row} - 1 - 2 * std::int64_t{of_row.remainder};
    }
    const std::uint8_t* const src = task.src + sample * task.src_sample_stride + from * run;
    Pixels<T, run, channels> values;
#pragma unroll
    for (int c = 0; c < channels; ++c) {
      if (c >= task.channels) continue;
      const auto bytes = load<std::uint8_t, run>(src + c * pixels);
#pragma unroll
      for (int p = 0; p < run; ++p) {
        const std::uint8_t byte = mirrored ? bytes.elements[run - 1 - p] : bytes.elements[p];
        values.elements[p * channels + c] = tables[c][byte];
      }
    }
    store_pixels<T, run, channels, packed>(values, task, dst);
  }
}

// Whether rows are whole runs on both sides and dst has no gaps.
template <typename T>
bool whole_runs(const NormalizeTask& task) {
  const auto aligned = [](const void* address, std::uintptr_t to) {
    return reinterpret_cast<std::uintptr_t>(address) % to == 0;
  };
  const std::int64_t row = task.samples != nullptr ? task.width : task.height * task.width;
  return row % kRun == 0 && task.height * task.width % kRun == 0 &&
         task.src_sample_stride % kRun == 0 && aligned(task.src, kRun) && aligned(task.dst, 16) &&
         task.dst_pixel_stride == task.channels;
}

template <typename T, int run, int channels, bool packed>
void launch_runs(const NormalizeTask& task, const StepState* state, Stream stream) {
  Normalize work{};
  work.task = task;
  const std::int64_t runs_of_a_sample = task.height * task.width / run;
  const std::int64_t runs = task.batch * runs_of_a_sample;
  work.runs = static_cast<std::uint32_t>(runs);
  work.runs_of_a_row = static_cast<std::uint32_t>(std::max<std::int64_t>(1, task.width / run));
  work.by_sample = Divider(runs_of_a_sample);
  work.by_row = Divider(work.runs_of_a_row);
  // Tables cost as much as some hundred pixels: no more blocks than run at once.
  const std::int64_t most = std::int64_t{device_limits().multiprocessors} * 8;
  const std::int64_t share = ceil_div(ceil_div(runs, kThreads), most) * kThreads;
  work.runs_of_a_block = static_cast<std::uint32_t>(share);
  const auto blocks = static_cast<unsigned>(ceil_div(runs, share));
  normalize<T, run, channels, packed><<<blocks, kThreads, 0, stream>>>(work, state);
  check_launch("normalize");
}

template <typename T>
void launch_type(const NormalizeTask& task, const StepState* state, Stream stream) {
  if (task.channels == 3 && whole_runs<T>(task)) {
    return launch_runs<T, kRun, 3, true>(task, state, stream);
  }
  if (task.channels == 1 && whole_runs<T>(task)) {
    return launch_runs<T, kRun, 1, true>(task, state, stream);
  }
  launch_runs<T, 1, kNormalizeChannels, false>(task, state, stream);
}

}  // namespace

void launch_normalize(const NormalizeTask& task, const StepState* state, Stream stream) {
  if (task.batch * task.height * task.width == 0) return;
  switch (task.dtype) {
    case DType::bf16:
      return launch_type<bf16>(task, state, stream);
    case DType::f16:
      return launch_type<f16>(task, state, stream);
    default:
      return launch_type<float>(task, state, stream);
  }
}

}  // namespace ridgeline::cuda
