#include "backends/cuda/elementwise/dropout_kernels.h"
#include "backends/cuda/elementwise/dropout_mask.cuh"
#include "backends/cuda/elementwise/elementwise.cuh"
#include "backends/cuda/work_split.cuh"

namespace ridgeline::cuda {
namespace {

constexpr int kBlocks = 6;  // on a multiprocessor at a time

// Elements in logical order without gaps: one block of random numbers serves four of them.
template <typename T, int kPack>
__global__ void __launch_bounds__(kRowThreads)
    dropout_quads_kernel(const __grid_constant__ Dropout task, std::int64_t elements) {
  const DropoutMask mask(*task.state, task.layer, task.probability);
  const auto* src = static_cast<const T*>(task.src.data);
  auto* dst = static_cast<T*>(task.dst.data);
  const std::int64_t stride = static_cast<std::int64_t>(gridDim.x) * kRowThreads;
  const std::int64_t first = static_cast<std::int64_t>(blockIdx.x) * kRowThreads + threadIdx.x;
  for (std::int64_t quad = first; quad < (elements + 3) / 4; quad += stride) {
    const unsigned bits = mask.stay(static_cast<std::uint64_t>(quad));
#pragma unroll
    for (int i = 0; i < 4; i += kPack) {
      if (4 * quad + i >= elements) break;
      Pack<T, kPack> pack = load<T, kPack>(src + 4 * quad + i);
#pragma unroll
      for (int j = 0; j < kPack; ++j) {
        pack.set(j, pack.get(j) * mask.factor((bits >> (i + j) & 1U) != 0));
      }
      store(dst + 4 * quad + i, pack);
    }
  }
}

// A tile of an image: kTile pixels by kTile channels. Neighbours in logical order are pixels of one
// channel, neighbours in memory are channels of one pixel, so the mask is turned around in shared
// memory.
constexpr int kTile = 64, kTileStride = kTile + 4;

struct DropoutTiles {
  std::int64_t channels, pixels, images;
  int pixel_tiles, channel_tiles;
};

template <typename T, int kPack>
__global__ void __launch_bounds__(kRowThreads)
    dropout_tiles_kernel(const __grid_constant__ Dropout task,
                         const __grid_constant__ DropoutTiles tiles) {
  __shared__ alignas(8) unsigned char stays[kTile * kTileStride];
  const DropoutMask mask(*task.state, task.layer, task.probability);
  const std::int64_t block = blockIdx.x, thread = threadIdx.x;
  const std::int64_t first_channel = block % tiles.channel_tiles * kTile;
  const std::int64_t first_pixel = block / tiles.channel_tiles % tiles.pixel_tiles * kTile;
  const std::int64_t image = block / tiles.channel_tiles / tiles.pixel_tiles;
  const auto channels =
      static_cast<int>(min(static_cast<std::int64_t>(kTile), tiles.channels - first_channel));
  const auto pixels =
      static_cast<int>(min(static_cast<std::int64_t>(kTile), tiles.pixels - first_pixel));

  // The quads that touch the pixels of a channel: one more than fit when they begin in the middle.
  const int quads = pixels / 4 + 2;
  for (int i = static_cast<int>(thread); i < channels * quads; i += kRowThreads) {
    const int channel = i / quads;
    const std::int64_t begin =
        (image * tiles.channels + first_channel + channel) * tiles.pixels + first_pixel;
    const std::int64_t quad = begin / 4 + i % quads;
    if (4 * quad >= begin + pixels) continue;
    const unsigned bits = mask.stay(static_cast<std::uint64_t>(quad));
#pragma unroll
    for (int j = 0; j < 4; ++j) {
      const auto pixel = static_cast<int>(4 * quad + j - begin);
      if (pixel >= 0 && pixel < pixels) {
        stays[pixel * kTileStride + channel] = static_cast<unsigned char>(bits >> j & 1U);
      }
    }
  }
  __syncthreads();
  const int packs = channels / kPack;
  for (int i = static_cast<int>(thread); i < pixels * packs; i += kRowThreads) {
    const int pixel = i / packs, channel = i % packs * kPack;
    const std::int64_t row = image * tiles.pixels + first_pixel + pixel;
    const T* from =
        static_cast<const T*>(task.src.data) + row * task.src.stride + first_channel + channel;
    T* to = static_cast<T*>(task.dst.data) + row * task.dst.stride + first_channel + channel;
    const auto pack = Packed<T, kPack>::load(from);
    float values[kPack];
#pragma unroll
    for (int j = 0; j < kPack; ++j) {
      values[j] = pack.get(j) * mask.factor(stays[pixel * kTileStride + channel + j] != 0);
    }
    Packed<T, kPack>::of(values).store(to);
  }
}

// One draw for an image, whose rows a few blocks share.
struct DropoutSamples {
  ChannelBlock block;
  int parts;
};

template <typename T, int kPack, bool kOther>
__global__ void __launch_bounds__(kRowThreads)
    dropout_samples_kernel(const __grid_constant__ Dropout task,
                           const __grid_constant__ DropoutSamples samples) {
  const DropoutMask mask(*task.state, task.layer, task.probability);
  const ChannelBlock& block = samples.block;
  const int lane = static_cast<int>(threadIdx.x) / block.packs;
  const int own_pack = static_cast<int>(threadIdx.x) % block.packs;
  const int part = static_cast<int>(blockIdx.x) % samples.parts;
  const int rest = static_cast<int>(blockIdx.x) / samples.parts;
  const std::int64_t channel =
      static_cast<std::int64_t>(rest % block.groups * block.packs + own_pack) * kPack;
  const std::int64_t sample = rest / block.groups;
  if (lane >= block.lanes || channel >= task.src.width) return;
  const unsigned bits = mask.stay(static_cast<std::uint64_t>(sample / 4));
  float factors[kPack];
#pragma unroll
  for (int i = 0; i < kPack; ++i) {
    factors[i] = mask.factor((bits >> (sample % 4) & 1U) != 0);
    if (task.factor != nullptr) factors[i] *= task.factor[channel + i];
  }
  const T* src = static_cast<const T*>(task.src.data) + channel;
  const T* other = static_cast<const T*>(task.other.data) + channel;
  T* dst = static_cast<T*>(task.dst.data) + channel;
#pragma unroll 4
  for (std::int64_t pixel = part * block.lanes + lane; pixel < task.pixels;
       pixel += samples.parts * block.lanes) {
    const std::int64_t row = sample * task.pixels + pixel;
    const auto pack = Packed<T, kPack>::load(src + row * task.src.stride);
    Packed<T, kPack> added;
    if constexpr (kOther) added = Packed<T, kPack>::load(other + row * task.other.stride);
    float values[kPack];
#pragma unroll
    for (int i = 0; i < kPack; ++i) {
      values[i] = pack.get(i) * factors[i];
      if constexpr (kOther) values[i] += added.get(i);
    }
    Packed<T, kPack>::of(values).store(dst + row * task.dst.stride);
  }
}

template <typename T, int kPack>
void start_samples(const Dropout& task, Stream stream) {
  const std::int64_t images = task.src.rows / task.pixels;
  DropoutSamples samples{channel_block(task.src.width / kPack, kRowThreads, 32), 1};
  const std::int64_t wanted = std::int64_t{kBlocks} * device_limits().multiprocessors;
  samples.parts = static_cast<int>(std::clamp<std::int64_t>(
      wanted / (images * samples.block.groups), 1, ceil_div(task.pixels, samples.block.lanes)));
  const auto blocks = static_cast<unsigned>(images * samples.block.groups * samples.parts);
  if (task.other.data != nullptr) {
    dropout_samples_kernel<T, kPack, true><<<blocks, kRowThreads, 0, stream>>>(task, samples);
  } else {
    dropout_samples_kernel<T, kPack, false><<<blocks, kRowThreads, 0, stream>>>(task, samples);
  }
}

template <typename T>
void start_samples(const Dropout& task, Stream stream) {
  if (pack_for(task.dtype, {task.src, task.dst, task.other}) == 1) {
    start_samples<T, 1>(task, stream);
  } else {
    start_samples<T, kFullPack<T>>(task, stream);
  }
}

template <typename T>
void start_quads(const Dropout& task, Stream stream) {
  const std::int64_t elements = task.src.rows * task.src.width;
  const std::int64_t wanted = ((elements + 3) / 4 + kRowThreads - 1) / kRowThreads;
  const std::int64_t most = std::int64_t{kBlocks} * device_limits().multiprocessors;
  const auto blocks = static_cast<unsigned>(std::min(wanted, most));
  const auto begins_at_pack = [](const Rows& rows) {
    return reinterpret_cast<std::uintptr_t>(rows.data) % (4 * sizeof(T)) == 0;
  };
  if (elements % 4 == 0 && begins_at_pack(task.src) && begins_at_pack(task.dst)) {
    dropout_quads_kernel<T, 4><<<blocks, kRowThreads, 0, stream>>>(task, elements);
  } else {
    dropout_quads_kernel<T, 1><<<blocks, kRowThreads, 0, stream>>>(task, elements);
  }
}

template <typename T>
void start_tiles(const Dropout& task, Stream stream) {
  DropoutTiles tiles{task.src.width, task.pixels, task.src.rows / task.pixels, 0, 0};
  tiles.pixel_tiles = static_cast<int>((tiles.pixels + kTile - 1) / kTile);
  tiles.channel_tiles = static_cast<int>((tiles.channels + kTile - 1) / kTile);
  const auto blocks = static_cast<unsigned>(tiles.images * tiles.pixel_tiles * tiles.channel_tiles);
  if (pack_for(task.dtype, {task.src, task.dst}) == 1) {
    dropout_tiles_kernel<T, 1><<<blocks, kRowThreads, 0, stream>>>(task, tiles);
  } else {
    dropout_tiles_kernel<T, kFullPack<T>><<<blocks, kRowThreads, 0, stream>>>(task, tiles);
  }
}

}  // namespace

void launch_dropout(const Dropout& task, Stream stream) {
  if (task.src.rows == 0 || task.src.width == 0) return;
  with_element_type(task.dtype, [&](auto type) {
    if (task.per_sample) {
      start_samples<decltype(type)>(task, stream);
    } else if (task.pixels == 1 && is_dense(task.src) && is_dense(task.dst)) {
      start_quads<decltype(type)>(task, stream);
    } else {
      start_tiles<decltype(type)>(task, stream);
    }
  });
  check_launch("dropout");
}

}  // namespace ridgeline::cuda
