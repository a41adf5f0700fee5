#include "backends/cuda/elementwise/halves_kernels.h"
#include "backends/cuda/work_split.cuh"

namespace ridgeline::cuda {
namespace {

constexpr int kThreads = 256;

struct HalvesWork {
  HalvesTask task;
  std::uint32_t items;
  Divider packs;  // of a half's row
};

template <typename T, int pack>
__device__ __forceinline__ Pack<T, pack>& pack_at(const Rows& rows, std::uint32_t row,
                                                  std::uint32_t channel) {
  T* const first = static_cast<T*>(rows.data) + row * rows.stride;
  return *reinterpret_cast<Pack<T, pack>*>(first + channel);
}

// A pack of both halves in a thread. Of both, the first pack has the halves' first elements.
template <typename T, int pack, bool interleave>
__global__ __launch_bounds__(kThreads) void halves(const __grid_constant__ HalvesWork work) {
  const std::uint32_t item = blockIdx.x * kThreads + threadIdx.x;
  if (item >= work.items) return;
  const HalvesTask& task = work.task;
  const Divider::Parts place = work.packs.split(item);
  const std::uint32_t row = place.quotient, channel = place.remainder * pack;
  auto& first = pack_at<T, pack>(task.first, row, channel);
  auto& second = pack_at<T, pack>(task.second, row, channel);
  auto& low = pack_at<T, pack>(task.both, row, 2 * channel);
  auto& high = pack_at<T, pack>(task.both, row, 2 * channel + pack);
  Pack<T, pack> from[2] = {interleave ? first : low, interleave ? second : high}, to[2];
#pragma unroll
  for (int i = 0; i < 2 * pack; ++i) {
    const int half = i % 2, place_of_half = i / 2;
    if constexpr (interleave) {
      to[i / pack].elements[i % pack] = from[half].elements[place_of_half];
    } else {
      to[half].elements[place_of_half] = from[i / pack].elements[i % pack];
    }
  }
  (interleave ? low : first) = to[0];
  (interleave ? high : second) = to[1];
}

template <typename T, int pack>
void start(const HalvesTask& task, bool interleave, Stream stream) {
  HalvesWork work{};
  work.task = task;
  const std::int64_t packs = task.first.width / pack, items = task.first.rows * packs;
  work.items = static_cast<std::uint32_t>(items);
  work.packs = Divider(packs);
  const auto blocks = static_cast<unsigned>(ceil_div(items, kThreads));
  if (interleave) {
    halves<T, pack, true><<<blocks, kThreads, 0, stream>>>(work);
  } else {
    halves<T, pack, false><<<blocks, kThreads, 0, stream>>>(work);
  }
  check_launch("halves");
}

template <typename T>
void start(const HalvesTask& task, bool interleave, Stream stream) {
  const auto fits = [&](int pack) {
    return packs_fit(pack, {{task.first, task.element_bytes},
                            {task.second, task.element_bytes},
                            {task.both, task.element_bytes}});
  };
  if (fits(kFullPack<T>)) return start<T, kFullPack<T>>(task, interleave, stream);
  if (fits(2)) return start<T, 2>(task, interleave, stream);
  start<T, 1>(task, interleave, stream);
}

void launch(const HalvesTask& task, bool interleave, Stream stream) {
  if (task.first.rows == 0 || task.first.width == 0) return;
  if (task.element_bytes == 2) return start<std::uint16_t>(task, interleave, stream);
  start<std::uint32_t>(task, interleave, stream);
}

}  // namespace

void launch_interleave(const HalvesTask& task, Stream stream) { launch(task, true, stream); }
void launch_separate(const HalvesTask& task, Stream stream) { launch(task, false, stream); }

}  // namespace ridgeline::cuda
