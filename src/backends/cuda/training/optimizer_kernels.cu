#include <cmath>

#include "backends/cuda/training/optimizer_kernels.h"
#include "backends/cuda/work_split.cuh"

namespace ridgeline::cuda {
namespace {

constexpr int kThreads = 256;
constexpr int kWarps = kThreads / 32;
constexpr int kResidentBlocks = 4;  // on a multiprocessor; all of a grid run at once
constexpr int kLaneElements = 4;    // 16 bytes of f32
constexpr int kWarpElements = 32 * kLaneElements;

// Tensors are cut into pieces for one warp each, so that a bias costs no more than a warp.
constexpr std::uint32_t kPiece = 1024;

struct TensorEntry {
  float *parameter, *first, *second;
  const void* gradient;
  std::uint32_t elements, first_piece;
  Divider channels, pixels;  // of a gradient in nhwc
  std::int32_t channel_count, pixel_count;
  bool transposed, packed;
  DType gradient_type;
};

struct TensorTable {
  TensorEntry list[kUpdatedTensors];
  int count;
  std::uint32_t pieces;
};
static_assert(sizeof(TensorTable) <= 3900);

// The last entry that begins at or before a piece.
template <typename Table>
__device__ __forceinline__ int entry_of(const Table& table, std::uint32_t piece) {
  int low = 0, high = table.count - 1;
  while (low < high) {
    const int middle = (low + high + 1) / 2;
    if (table.list[middle].first_piece <= piece) {
      low = middle;
    } else {
      high = middle - 1;
    }
  }
  return low;
}

template <typename T>
__device__ __forceinline__ void load_four(const void* from, std::uint32_t at, float* values) {
  const auto pack = load<T, kLaneElements>(static_cast<const T*>(from) + at);
#pragma unroll
  for (int i = 0; i < kLaneElements; ++i) values[i] = pack.get(i);
}

__device__ __forceinline__ float load_one(const void* from, DType type, std::uint32_t at) {
  switch (type) {
    case DType::bf16:
      return to_float(static_cast<const bf16*>(from)[at]);
    case DType::f16:
      return to_float(static_cast<const f16*>(from)[at]);
    default:
      return static_cast<const float*>(from)[at];
  }
}

// Parameters lie as (output, channel, pixel), this gradient as (output, pixel, channel). One
// division finds the first element; its neighbours are found by counting.
__device__ __forceinline__ void load_transposed(const TensorEntry& entry, std::uint32_t at,
                                                int count, float* values) {
  const Divider::Parts of_plane = entry.pixels.split(at);
  const Divider::Parts of_output = entry.channels.split(of_plane.quotient);
  auto pixel = static_cast<int>(of_plane.remainder);
  auto channel = static_cast<int>(of_output.remainder);
  std::uint32_t output = of_output.quotient * (entry.channel_count * entry.pixel_count);
#pragma unroll
  for (int i = 0; i < kLaneElements; ++i) {
    if (i < count) {
      values[i] = load_one(entry.gradient, entry.gradient_type,
                           output + pixel * entry.channel_count + channel);
    }
    if (++pixel < entry.pixel_count) continue;
    pixel = 0;
    if (++channel < entry.channel_count) continue;
    channel = 0;
    output += entry.channel_count * entry.pixel_count;
  }
}

__device__ __forceinline__ void load_gradient(const TensorEntry& entry, std::uint32_t at, int count,
                                              float* values) {
  if (entry.transposed) return load_transposed(entry, at, count, values);
  if (count == kLaneElements && entry.packed) {
    switch (entry.gradient_type) {
      case DType::bf16:
        return load_four<bf16>(entry.gradient, at, values);
      case DType::f16:
        return load_four<f16>(entry.gradient, at, values);
      default:
        return load_four<float>(entry.gradient, at, values);
    }
  }
#pragma unroll
  for (int i = 0; i < kLaneElements; ++i) {
    if (i < count) values[i] = load_one(entry.gradient, entry.gradient_type, at + i);
  }
}

__device__ __forceinline__ void load_state(const TensorEntry& entry, const float* from,
                                           std::uint32_t at, int count, float* values) {
  if (count == kLaneElements && entry.packed) return load_four<float>(from, at, values);
#pragma unroll
  for (int i = 0; i < kLaneElements; ++i) {
    if (i < count) values[i] = from[at + i];
  }
}

__device__ __forceinline__ void store_state(const TensorEntry& entry, float* to, std::uint32_t at,
                                            int count, const float* values) {
  if (count == kLaneElements && entry.packed) {
    Pack<float, kLaneElements> pack;
#pragma unroll
    for (int i = 0; i < kLaneElements; ++i) pack.elements[i] = values[i];
    store<float, kLaneElements>(to + at, pack);
    return;
  }
#pragma unroll
  for (int i = 0; i < kLaneElements; ++i) {
    if (i < count) to[at + i] = values[i];
  }
}

// What an update makes of one element.
struct Element {
  float parameter, gradient, first, second;
};

// parameter -= rate * (gradient + momentum's and weight decay's shares).
struct SgdStep {
  SgdSettings settings;
  float rate, gradient_scale;

  __device__ __forceinline__ void update(Element& x, bool has_velocity) const {
    float change = x.gradient * gradient_scale + settings.weight_decay * x.parameter;
    if (has_velocity) {
      x.first = settings.momentum * x.first + change;
      change = settings.nesterov ? change + settings.momentum * x.first : x.first;
    }
    x.parameter -= rate * change;
  }
};

__device__ __forceinline__ SgdStep step_of(const SgdSettings& settings, const StepState& state) {
  return {settings, static_cast<float>(state.learning_rate),
          static_cast<float>(1.0 / state.gradient_scale)};
}

struct AdamStep {
  float gradient_scale;
  float shrink, weight_decay;  // AdamW's and Adam's weight decay; one is in force
  float beta1, rest1, beta2, rest2;
  float rate, root_scale, epsilon;  // with the corrections for step t

  __device__ __forceinline__ void update(Element& x, bool) const {
    const float diff = x.gradient * gradient_scale + weight_decay * x.parameter;
    x.first = beta1 * x.first + rest1 * diff;
    x.second = beta2 * x.second + rest2 * diff * diff;
    const float denominator = sqrtf(x.second) * root_scale + epsilon;
    x.parameter = shrink * x.parameter - rate * x.first / denominator;
  }
};

__device__ AdamStep step_of(const AdamSettings& settings, const StepState& state) {
  const auto t = static_cast<double>(state.optimizer_step - state.overflows);  // the updates so far
  const double correction1 = 1.0 - pow(settings.beta1, t);
  const double correction2 = 1.0 - pow(settings.beta2, t);
  AdamStep step{};
  step.gradient_scale = static_cast<float>(1.0 / state.gradient_scale);
  step.shrink = settings.decoupled
                    ? static_cast<float>(1.0 - state.learning_rate * settings.weight_decay)
                    : 1.0F;
  step.weight_decay = settings.decoupled ? 0.0F : static_cast<float>(settings.weight_decay);
  step.beta1 = static_cast<float>(settings.beta1);
  step.rest1 = static_cast<float>(1.0 - settings.beta1);
  step.beta2 = static_cast<float>(settings.beta2);
  step.rest2 = static_cast<float>(1.0 - settings.beta2);
  step.rate = static_cast<float>(state.learning_rate / correction1);
  step.root_scale = static_cast<float>(1.0 / sqrt(correction2));
  step.epsilon = static_cast<float>(settings.epsilon);
  return step;
}

template <typename Step>
__device__ __forceinline__ void update_lane(const Step& step, const TensorEntry& entry,
                                            std::uint32_t at, int count) {
  float parameter[kLaneElements], gradient[kLaneElements];
  float first[kLaneElements] = {}, second[kLaneElements] = {};
  load_state(entry, entry.parameter, at, count, parameter);
  load_gradient(entry, at, count, gradient);
  if (entry.first != nullptr) load_state(entry, entry.first, at, count, first);
  if (entry.second != nullptr) load_state(entry, entry.second, at, count, second);
#pragma unroll
  for (int i = 0; i < kLaneElements; ++i) {
    if (i >= count) continue;
    Element element{parameter[i], gradient[i], first[i], second[i]};
    step.update(element, entry.first != nullptr);
    parameter[i] = element.parameter;
    first[i] = element.first;
    second[i] = element.second;
  }
  store_state(entry, entry.parameter, at, count, parameter);
  if (entry.first != nullptr) store_state(entry, entry.first, at, count, first);
  if (entry.second != nullptr) store_state(entry, entry.second, at, count, second);
}

// A warp to a piece. One thread computes what holds for all elements: Adam's powers are slow.
template <typename Settings, typename Step>
__global__ __launch_bounds__(kThreads,
                             kResidentBlocks) void update_tensors(TensorTable table,
                                                                  Settings settings,
                                                                  const StepState* state) {
  if (state->overflow != 0) return;
  __shared__ Step step;
  if (threadIdx.x == 0) step = step_of(settings, *state);
  __syncthreads();
  const Step own = step;
  const std::uint32_t lane = threadIdx.x % 32;
  for (std::uint32_t piece = blockIdx.x * kWarps + threadIdx.x / 32; piece < table.pieces;
       piece += gridDim.x * kWarps) {
    const TensorEntry& entry = table.list[entry_of(table, piece)];
    const std::uint32_t begin = (piece - entry.first_piece) * kPiece;
    const std::uint32_t end = min(begin + kPiece, entry.elements);
#pragma unroll 2
    for (std::uint32_t at = begin + lane * kLaneElements; at < end; at += kWarpElements) {
      update_lane(own, entry, at, static_cast<int>(min(end - at, 4U)));
    }
  }
}

bool is_aligned(const void* address, std::uintptr_t bytes) {
  return reinterpret_cast<std::uintptr_t>(address) % bytes == 0;
}

TensorEntry entry_for(const UpdatedTensor& tensor, std::uint32_t first_piece) {
  TensorEntry entry{};
  entry.parameter = tensor.parameter;
  entry.gradient = tensor.gradient;
  entry.first = tensor.first;
  entry.second = tensor.second;
  entry.gradient_type = tensor.gradient_type;
  entry.elements = static_cast<std::uint32_t>(tensor.elements);
  entry.first_piece = first_piece;
  entry.transposed = tensor.channels > 1 && tensor.pixels > 1;
  entry.channels = Divider(tensor.channels);
  entry.pixels = Divider(tensor.pixels);
  entry.channel_count = static_cast<std::int32_t>(tensor.channels);
  entry.pixel_count = static_cast<std::int32_t>(tensor.pixels);
  const std::uintptr_t gradient_bytes = kLaneElements * size_of(tensor.gradient_type);
  entry.packed = is_aligned(tensor.parameter, 16) && is_aligned(tensor.first, 16) &&
                 is_aligned(tensor.second, 16) && is_aligned(tensor.gradient, gradient_bytes);
  return entry;
}

unsigned blocks_for(std::uint32_t pieces) {
  const std::int64_t most = std::int64_t{device_limits().multiprocessors} * kResidentBlocks;
  return static_cast<unsigned>(std::min(ceil_div(pieces, kWarps), most));
}

template <typename Settings, typename Step>
void launch_updates(const UpdatedTensor* tensors, int count, const Settings& settings,
                    const StepState* state, Stream stream) {
  TensorTable table{};
  table.count = count;
  for (int i = 0; i < count; ++i) {
    table.list[i] = entry_for(tensors[i], table.pieces);
    table.pieces += static_cast<std::uint32_t>(ceil_div(tensors[i].elements, kPiece));
  }
  if (table.pieces == 0) return;
  const unsigned blocks = blocks_for(table.pieces);
  update_tensors<Settings, Step><<<blocks, kThreads, 0, stream>>>(table, settings, state);
  check_launch("update_tensors");
}

// The look for overflows: 16 bytes to a lane, 8 of those to a piece.
constexpr std::uint32_t kGuardPiece = 32 * 8;

struct GuardEntry {
  const void* data;
  std::int64_t elements;
  std::uint32_t packs, first_piece;  // packs: whole ones
  DType dtype;
};

struct GuardTable {
  GuardEntry list[kGuardedValues];
  int count;
  std::uint32_t pieces;
};
static_assert(sizeof(GuardTable) <= 4000);

// A number is finite unless its exponent is all ones.
__device__ __forceinline__ bool wrong(std::uint32_t word, DType dtype) {
  if (dtype == DType::f32) return (word & 0x7F800000U) == 0x7F800000U;
  const std::uint32_t exponent = dtype == DType::bf16 ? 0x7F80U : 0x7C00U;
  return (word & exponent) == exponent || (word >> 16 & exponent) == exponent;
}

// The elements behind the last whole pack.
__device__ bool wrong_tail(const GuardEntry& entry) {
  bool found = false;
  const std::int64_t pack = entry.dtype == DType::f32 ? 4 : 8;
  for (std::int64_t i = entry.packs * pack; i < entry.elements; ++i) {
    const std::uint32_t word = entry.dtype == DType::f32
                                   ? static_cast<const std::uint32_t*>(entry.data)[i]
                                   : static_cast<const std::uint16_t*>(entry.data)[i];
    found = found || wrong(word, entry.dtype);
  }
  return found;
}

// Each block says what it found, in a place of its own.
__global__ __launch_bounds__(kThreads) void find_overflow(GuardTable table, std::int32_t* flags) {
  const std::uint32_t lane = threadIdx.x % 32;
  bool any = false;
  for (std::uint32_t piece = blockIdx.x * kWarps + threadIdx.x / 32; piece < table.pieces;
       piece += gridDim.x * kWarps) {
    const GuardEntry& entry = table.list[entry_of(table, piece)];
    const std::uint32_t number = piece - entry.first_piece;
    const auto* const packs = static_cast<const uint4*>(entry.data);
#pragma unroll
    for (int i = 0; i < 8; ++i) {
      const std::uint32_t at = number * kGuardPiece + i * 32 + lane;
      if (at >= entry.packs) continue;
      const uint4 pack = packs[at];
      any = any || wrong(pack.x, entry.dtype) || wrong(pack.y, entry.dtype) ||
            wrong(pack.z, entry.dtype) || wrong(pack.w, entry.dtype);
    }
    if (number == 0 && lane == 0) any = any || wrong_tail(entry);
  }
  const int answer = __syncthreads_or(any ? 1 : 0);
  if (threadIdx.x == 0) flags[blockIdx.x] = answer != 0 ? 1 : 0;
}

// The rule of note_overflow in ops/overflow_guard.cpp.
__global__ __launch_bounds__(kThreads) void note_overflow(const std::int32_t* flags, int count,
                                                          GuardSettings settings,
                                                          StepState* state) {
  int any = 0;
  for (int i = static_cast<int>(threadIdx.x); i < count; i += kThreads) any |= flags[i];
  any = __syncthreads_or(any);
  if (threadIdx.x != 0) return;
  state->gradient_scale = state->loss_scale;
  state->overflow = any != 0 ? 1 : 0;
  if (any != 0) {
    ++state->overflows;
    state->loss_scale *= settings.backoff;
    state->steps_in_range = 0;
  } else if (++state->steps_in_range >= settings.interval) {
    state->loss_scale *= settings.growth;
    state->steps_in_range = 0;
  }
}

// Values that do not begin at 16 bytes are looked at one by one.
GuardEntry entry_for(const GuardedValue& value, std::uint32_t first_piece) {
  const std::int64_t pack = 16 / static_cast<std::int64_t>(size_of(value.dtype));
  const std::int64_t packs = is_aligned(value.data, 16) ? value.elements / pack : 0;
  return {value.data, value.elements, static_cast<std::uint32_t>(packs), first_piece, value.dtype};
}

}  // namespace

void launch_sgd(const UpdatedTensor* tensors, int count, const SgdSettings& settings,
                const StepState* state, Stream stream) {
  launch_updates<SgdSettings, SgdStep>(tensors, count, settings, state, stream);
}

void launch_adam(const UpdatedTensor* tensors, int count, const AdamSettings& settings,
                 const StepState* state, Stream stream) {
  launch_updates<AdamSettings, AdamStep>(tensors, count, settings, state, stream);
}

int launch_find_overflow(const GuardedValue* values, int count, std::int32_t* flags,
                         Stream stream) {
  GuardTable table{};
  table.count = count;
  for (int i = 0; i < count; ++i) {
    table.list[i] = entry_for(values[i], table.pieces);
    // At least one piece, which also looks at what is behind the last pack.
    const std::int64_t pieces = ceil_div(table.list[i].packs, kGuardPiece);
    table.pieces += static_cast<std::uint32_t>(std::max<std::int64_t>(1, pieces));
  }
  const auto blocks =
      static_cast<int>(std::min<std::int64_t>(ceil_div(table.pieces, kWarps), kGuardFlags));
  find_overflow<<<blocks, kThreads, 0, stream>>>(table, flags);
  check_launch("find_overflow");
  return blocks;
}

void launch_note_overflow(const std::int32_t* flags, int count, const GuardSettings& settings,
                          StepState* state, Stream stream) {
  note_overflow<<<1, kThreads, 0, stream>>>(flags, count, settings, state);
  check_launch("note_overflow");
}

}  // namespace ridgeline::cuda
