#include "backends/native/mlp_block.h"

#include <algorithm>
#include <cmath>
#include <limits>

#include "backends/native/row_space.h"
#include "base/parallel.h"
#include "base/simd_targets.h"

#undef HWY_TARGET_INCLUDE
#define HWY_TARGET_INCLUDE "backends/native/mlp_block.cpp"
#include <hwy/foreach_target.h>
#include <hwy/highway.h>

#include "backends/native/activation-inl.h"
#include "backends/native/dot-inl.h"
#include "backends/native/lanes-inl.h"

#ifndef RIDGELINE_NATIVE_MLP_TYPES
#define RIDGELINE_NATIVE_MLP_TYPES
namespace ridgeline::native {
namespace {

// Rows of a block. Values between layers are held transposed, kBlockRows of each unit side by side.
constexpr std::int64_t kBlockRows = 64;
constexpr std::int64_t kMaxLanes = 16;

// The memory of one slot.
struct MlpSlot {
  std::array<float*, kMaxMlpLayers> dst{};           // [unit][row]
  std::array<float*, 2> diff{};                      // [unit][row]
  std::array<float*, kMaxMlpLayers> diff_weights{};  // layer 0: [unit][input]; others with lanes
  std::array<float*, kMaxMlpLayers> diff_bias{};     // [unit][lane]
  MlpSums* sums = nullptr;
};

struct MlpCall {
  const MlpNetwork& network;
  const MlpInput& input;
  const MlpLoss& loss;
  const float* packed;      // layer 0's weights as dot_tile wants them
  const float* first_bias;  // layer 0's bias, with what the input's shift adds to its sums
  std::int64_t padded;      // layer 0's inputs, rounded up to full vectors
};

// Fewer rows when they are long, so that a block stays in the second-level cache.
std::int64_t rows_of_block(std::int64_t inputs) {
  return inputs <= 1024 ? kBlockRows : inputs <= 2048 ? kBlockRows / 2 : kBlockRows / 4;
}

}  // namespace
}  // namespace ridgeline::native
#endif

HWY_BEFORE_NAMESPACE();
namespace ridgeline::native {
namespace HWY_NAMESPACE {
namespace {

// Pixels become floats in registers, every time they are used: storing them costs more.
template <class Lanes>
HWY_INLINE FloatVec load_floats(Lanes lanes, const std::uint8_t* from) {
  const hn::RebindToSigned<FloatTag> integers;
  return hn::ConvertTo(FloatTag(), hn::PromoteTo(integers, lanes.load(from)));
}
template <class Lanes>
HWY_INLINE FloatVec load_floats(Lanes lanes, const float* from) {
  return lanes.load(from);
}

// The rows of a block, of pixels or floats.
template <typename T>
struct BlockRows {
  const T* data = nullptr;
  std::int64_t stride = 0, count = 0;
};

// Those of one tile; a row beyond the last stands for the last.
template <typename T>
struct TileRows {
  const T* rows[kDotRows];

  TileRows(const BlockRows<T>& block, std::int64_t begin) {
    for (int i = 0; i < kDotRows; ++i) {
      rows[i] = block.data + std::min(begin + i, block.count - 1) * block.stride;
    }
  }
  template <class Lanes>
  HWY_INLINE FloatVec load(Lanes lanes, int row, std::int64_t k) const {
    return load_floats(lanes, rows[row] + k);
  }
};

// Asks for the next block's rows, a few cache lines at a time between tiles, so that they are in
// the second-level cache when their turn comes: memory's latency hides behind arithmetic.
struct NextRows {
  const std::byte* at = nullptr;
  const std::byte* end = nullptr;
  std::int64_t lines = 0;  // for each tile

  template <typename T>
  NextRows(const BlockRows<T>& block, std::int64_t rows_behind, std::int64_t tiles) {
    const std::int64_t rows = std::min(block.count, rows_behind);
    at = reinterpret_cast<const std::byte*>(block.data + block.count * block.stride);
    end = at + rows * block.stride * static_cast<std::int64_t>(sizeof(T));
    lines = (end - at) / 64 / tiles + 1;
  }
  HWY_INLINE void fetch() {
    for (std::int64_t i = 0; i < lines && at < end; ++i, at += 64) __builtin_prefetch(at, 0, 2);
  }
};

// Sums of the first layer for a block. What lies behind the last row is zero, or stands for the
// last row; the gradient there will be zero.
template <typename T>
void first_layer(const MlpCall& call, const MlpSlot& slot, const BlockRows<T>& rows,
                 NextRows& next) {
  HWY_ALIGN float sums[kDotRows * (kMaxDotOutputs + 1)];
  const MlpLayer& layer = call.network.layers[0];
  const std::int64_t step = outputs_of_tile(layer.outputs);
  for (std::int64_t o = 0; o < layer.outputs; o += step) {
    const std::int64_t outputs = std::min(step, layer.outputs - o);
    float* const dst = slot.dst[0] + o * kBlockRows;
    for (std::int64_t r = 0; r < rows.count; r += kDotRows) {
      dot_outputs(outputs, TileRows<T>(rows, r), layer.inputs, call.packed + o * call.padded, sums);
      for (std::int64_t i = 0; i < outputs; ++i) {
        std::copy_n(sums + i * kDotRows, kDotRows, dst + i * kBlockRows + r);
      }
      next.fetch();
    }
    const std::int64_t filled = round_up(rows.count, kDotRows);
    for (std::int64_t i = 0; i < outputs; ++i) {
      std::fill(dst + i * kBlockRows + filled, dst + (i + 1) * kBlockRows, 0.0F);
    }
  }
}

// Calls body(unit, row) for every vector of a [unit][row] block.
template <typename Body>
HWY_INLINE void for_block(std::int64_t units, const Body& body) {
  for (std::int64_t u = 0; u < units; ++u) {
    for (std::int64_t r = 0; r < kBlockRows; r += kLanes) body(u, u * kBlockRows + r);
  }
}

// dst[unit][row] = sum over k of weights(unit, k) * src[k][row].
void multiply_block(const float* weights, std::int64_t unit_stride, std::int64_t depth_stride,
                    std::int64_t units, std::int64_t depth, const float* HWY_RESTRICT src,
                    float* HWY_RESTRICT dst) {
  const FloatTag d;
  constexpr int kVectors = static_cast<int>(std::min<std::int64_t>(4, kBlockRows / kLanes));
  for (std::int64_t u = 0; u < units; ++u) {
    for (std::int64_t r = 0; r < kBlockRows; r += kVectors * kLanes) {
      FloatVec acc[kVectors];
#pragma GCC unroll 4
      for (int v = 0; v < kVectors; ++v) acc[v] = hn::Zero(d);
      for (std::int64_t k = 0; k < depth; ++k) {
        const FloatVec w = hn::Set(d, weights[u * unit_stride + k * depth_stride]);
#pragma GCC unroll 4
        for (int v = 0; v < kVectors; ++v) {
          acc[v] = hn::MulAdd(w, hn::LoadU(d, src + k * kBlockRows + r + v * kLanes), acc[v]);
        }
      }
#pragma GCC unroll 4
      for (int v = 0; v < kVectors; ++v)
        hn::StoreU(acc[v], d, dst + u * kBlockRows + r + v * kLanes);
    }
  }
}

void finish_layer(const MlpLayer& layer, const float* bias, float* dst) {
  const FloatTag d;
  if (bias != nullptr) {
    for_block(layer.outputs, [&](std::int64_t unit, std::int64_t at) HWY_ATTR {
      hn::StoreU(hn::Add(hn::LoadU(d, dst + at), hn::Set(d, bias[unit])), d, dst + at);
    });
  }
  if (!layer.activate) return;
  with_activation(layer.activation, layer.slope, [&](auto activation) HWY_ATTR {
    for_block(layer.outputs, [&](std::int64_t, std::int64_t at) HWY_ATTR {
      hn::StoreU(activation.forward(d, hn::LoadU(d, dst + at)), d, dst + at);
    });
  });
}

// Loss, metrics and diff_logits of a block; the lanes are rows.
void block_loss(const MlpCall& call, std::int64_t begin, std::int64_t rows,
                const float* HWY_RESTRICT logits, float* HWY_RESTRICT diff, MlpSums& sums) {
  const FloatTag d;
  const std::int64_t classes = call.network.layers[call.network.depth - 1].outputs;
  const std::int64_t valid = std::clamp<std::int64_t>(call.input.valid - begin, 0, rows);
  const std::int32_t* const labels = call.input.labels + begin;
  const float smoothing = call.loss.smoothing;
  HWY_ALIGN float own[kBlockRows] = {}, label[kBlockRows] = {}, row_number[kBlockRows];
  HWY_ALIGN float totals[kBlockRows], fixed[kBlockRows];
  for (std::int64_t r = 0; r < kBlockRows; ++r) row_number[r] = static_cast<float>(r);
  for (std::int64_t r = 0; r < valid; ++r) {
    own[r] = logits[labels[r] * kBlockRows + r];
    label[r] = static_cast<float>(labels[r]);
  }

  FloatVec top1 = hn::Zero(d), top5 = hn::Zero(d);
  const FloatVec one = hn::Set(d, 1.0F), zero = hn::Zero(d);
  const FloatVec scale = hn::Set(d, call.loss.diff_scale);
  const FloatVec share = hn::Set(d, smoothing / static_cast<float>(classes));
  for (std::int64_t r = 0; r < kBlockRows; r += kLanes) {
    FloatVec largest = hn::LoadU(d, logits + r), mean = largest;
    for (std::int64_t k = 1; k < classes; ++k) {
      const FloatVec x = hn::LoadU(d, logits + k * kBlockRows + r);
      largest = hn::Max(largest, x);
      mean = hn::Add(mean, x);
    }
    mean = hn::Mul(mean, hn::Set(d, 1.0F / static_cast<float>(classes)));
    const FloatVec own_lanes = hn::LoadU(d, own + r), label_lanes = hn::LoadU(d, label + r);
    const auto counts = hn::Lt(hn::LoadU(d, row_number + r), hn::Set(d, static_cast<float>(valid)));
    FloatVec total = zero, rank = zero;
    for (std::int64_t k = 0; k < classes; ++k) {
      const FloatVec x = hn::LoadU(d, logits + k * kBlockRows + r);
      const FloatVec power = exp_of_negative(d, hn::Sub(x, largest));
      hn::StoreU(power, d, diff + k * kBlockRows + r);
      total = hn::Add(total, power);
      if (call.loss.rank) {
        // Equal logits of a higher index are beaten; the label's own one counts once.
        const auto later = hn::Gt(hn::Set(d, static_cast<float>(k)), label_lanes);
        const auto beaten = hn::Or(hn::Gt(own_lanes, x), hn::And(later, hn::Eq(own_lanes, x)));
        rank = hn::Add(rank, hn::IfThenElse(beaten, zero, one));
      }
    }
    top1 = hn::Add(top1, hn::IfThenElseZero(hn::And(counts, hn::Le(rank, one)), one));
    top5 = hn::Add(top5, hn::IfThenElseZero(hn::And(counts, hn::Le(rank, hn::Set(d, 5.0F))), one));
    hn::Store(total, d, totals + r);
    const FloatVec target = hn::MulAdd(hn::Set(d, smoothing), hn::Sub(mean, own_lanes), own_lanes);
    hn::Store(hn::Sub(largest, target), d, fixed + r);
    const FloatVec inverse = hn::Div(one, total);
    for (std::int64_t k = 0; k < classes; ++k) {
      float* const at = diff + k * kBlockRows + r;
      const FloatVec probability = hn::Mul(hn::LoadU(d, at), inverse);
      hn::StoreU(hn::IfThenElseZero(counts, hn::Mul(hn::Sub(probability, share), scale)), d, at);
    }
  }

  // A row's loss is fixed + log(total). One logarithm serves the block: kMaxMlpWidth to the power
  // of kBlockRows is far inside a double's range.
  double product = 1.0, sum = 0.0;
  for (std::int64_t r = 0; r < valid; ++r) {
    diff[labels[r] * kBlockRows + r] -= (1.0F - smoothing) * call.loss.diff_scale;
    product *= static_cast<double>(totals[r]);
    sum += static_cast<double>(fixed[r]);
  }
  sums.loss += sum + std::log(product);
  if (call.loss.rank) {
    sums.top1 += static_cast<double>(hn::GetLane(hn::SumOfLanes(d, top1)));
    sums.top5 += static_cast<double>(hn::GetLane(hn::SumOfLanes(d, top5)));
  }
}

// Adds a block's diff · srcᵀ to sums kept per lane.
void add_small_weights(const MlpLayer& layer, const float* HWY_RESTRICT diff,
                       const float* HWY_RESTRICT src, float* HWY_RESTRICT sums) {
  const FloatTag d;
  for (std::int64_t m = 0; m < layer.outputs; ++m) {
    for (std::int64_t k = 0; k < layer.inputs; ++k) {
      float* const at = sums + (m * layer.inputs + k) * kLanes;
      FloatVec sum = hn::LoadU(d, at);
      for (std::int64_t r = 0; r < kBlockRows; r += kLanes) {
        sum = hn::MulAdd(hn::LoadU(d, diff + m * kBlockRows + r),
                         hn::LoadU(d, src + k * kBlockRows + r), sum);
      }
      hn::StoreU(sum, d, at);
    }
  }
}

// Adds a block's diff · rows to [output][input] sums: a tile of kOutputs x kVectors sums stays in
// registers over all rows.
template <int kOutputs, int kVectors, class Lanes, typename T>
HWY_NOINLINE void add_tile(Lanes lanes, const float* HWY_RESTRICT diff, const BlockRows<T>& rows,
                           std::int64_t column, float* HWY_RESTRICT sums,
                           std::int64_t sums_stride) {
  const FloatTag d;
  FloatVec acc[kOutputs][kVectors];
#pragma GCC unroll 16
  for (int o = 0; o < kOutputs; ++o) {
#pragma GCC unroll 2
    for (int v = 0; v < kVectors; ++v) {
      acc[o][v] = hn::LoadU(d, sums + o * sums_stride + column + v * kLanes);
    }
  }
  const T* HWY_RESTRICT src = rows.data + column;
  for (std::int64_t r = 0; r < rows.count; ++r, src += rows.stride) {
    FloatVec x[kVectors];
#pragma GCC unroll 2
    for (int v = 0; v < kVectors; ++v) x[v] = load_floats(lanes, src + v * kLanes);
#pragma GCC unroll 16
    for (int o = 0; o < kOutputs; ++o) {
      const FloatVec g = hn::Set(d, diff[o * kBlockRows + r]);
#pragma GCC unroll 2
      for (int v = 0; v < kVectors; ++v) acc[o][v] = hn::MulAdd(g, x[v], acc[o][v]);
    }
  }
#pragma GCC unroll 16
  for (int o = 0; o < kOutputs; ++o) {
#pragma GCC unroll 2
    for (int v = 0; v < kVectors; ++v) {
      hn::StoreU(acc[o][v], d, sums + o * sums_stride + column + v * kLanes);
    }
  }
}

// The same for any number of outputs; takes two vectors of columns where there are two.
template <int kOutputs = kMaxDotOutputs, typename T>
HWY_INLINE void add_outputs(std::int64_t outputs, const float* diff, const BlockRows<T>& rows,
                            std::int64_t inputs, std::int64_t column, float* sums,
                            std::int64_t sums_stride) {
  if constexpr (kOutputs > 1) {
    if (outputs < kOutputs) {
      add_outputs<kOutputs - 1>(outputs, diff, rows, inputs, column, sums, sums_stride);
      return;
    }
  }
  const FullLanes<FloatTag> full;
  if (column + 2 * kLanes <= inputs) {
    add_tile<kOutputs, 2>(full, diff, rows, column, sums, sums_stride);
    return;
  }
  if (column + kLanes <= inputs) {
    add_tile<kOutputs, 1>(full, diff, rows, column, sums, sums_stride);
    column += kLanes;
  }
  if (column < inputs) {
    const FirstLanes<FloatTag> first{inputs - column};
    add_tile<kOutputs, 1>(first, diff, rows, column, sums, sums_stride);
  }
}

template <typename T>
void add_first_weights(const MlpCall& call, const float* diff, const BlockRows<T>& rows,
                       float* sums, NextRows& next) {
  const MlpLayer& layer = call.network.layers[0];
  const std::int64_t step = outputs_of_tile(layer.outputs);
  for (std::int64_t k = 0; k < layer.inputs; k += 2 * kLanes) {
    for (std::int64_t o = 0; o < layer.outputs; o += step) {
      add_outputs(std::min(step, layer.outputs - o), diff + o * kBlockRows, rows, layer.inputs, k,
                  sums + o * call.padded, call.padded);
    }
    next.fetch();
  }
}

void add_bias(const MlpLayer& layer, const float* diff, float* sums) {
  const FloatTag d;
  for_block(layer.outputs, [&](std::int64_t unit, std::int64_t at) HWY_ATTR {
    float* const sum = sums + unit * kLanes;
    hn::StoreU(hn::Add(hn::LoadU(d, sum), hn::LoadU(d, diff + at)), d, sum);
  });
}

void activation_backward(const MlpLayer& layer, const float* dst, float* diff) {
  if (!layer.activate) return;
  const FloatTag d;
  with_activation(layer.activation, layer.slope, [&](auto activation) HWY_ATTR {
    for_block(layer.outputs, [&](std::int64_t, std::int64_t at) HWY_ATTR {
      hn::StoreU(activation.backward(d, hn::LoadU(d, diff + at), hn::LoadU(d, dst + at)), d,
                 diff + at);
    });
  });
}

template <typename T>
void run_block(const MlpCall& call, const MlpSlot& slot, const BlockRows<T>& rows,
               std::int64_t begin) {
  const MlpNetwork& network = call.network;
  // About as many tiles as a block has in both directions.
  const std::int64_t tiles = 1 + rows.count / kDotRows + call.padded / (2 * kLanes);
  NextRows next_rows(rows, call.input.rows - begin - rows.count, tiles);
  first_layer(call, slot, rows, next_rows);
  finish_layer(network.layers[0], call.first_bias, slot.dst[0]);
  for (std::size_t i = 1; i < network.depth; ++i) {
    const MlpLayer& layer = network.layers[i];
    multiply_block(layer.weights, layer.inputs, 1, layer.outputs, layer.inputs, slot.dst[i - 1],
                   slot.dst[i]);
    finish_layer(layer, layer.bias, slot.dst[i]);
  }
  float* diff = slot.diff[0];
  float* next = slot.diff[1];
  block_loss(call, begin, rows.count, slot.dst[network.depth - 1], diff, *slot.sums);
  for (std::size_t i = network.depth; i-- > 0;) {
    const MlpLayer& layer = network.layers[i];
    activation_backward(layer, slot.dst[i], diff);
    add_bias(layer, diff, slot.diff_bias[i]);
    if (i == 0) {
      add_first_weights(call, diff, rows, slot.diff_weights[0], next_rows);
    } else {
      add_small_weights(layer, diff, slot.dst[i - 1], slot.diff_weights[i]);
      multiply_block(layer.weights, 1, layer.inputs, layer.inputs, layer.outputs, diff, next);
      std::swap(diff, next);
    }
  }
}

void clear_slot(const MlpCall& call, const MlpSlot& slot) {
  const MlpNetwork& network = call.network;
  *slot.sums = {};
  std::fill_n(slot.diff_weights[0], network.layers[0].outputs * call.padded, 0.0F);
  for (std::size_t i = 0; i < network.depth; ++i) {
    const MlpLayer& layer = network.layers[i];
    std::fill_n(slot.diff_bias[i], layer.outputs * kLanes, 0.0F);
    if (i > 0) std::fill_n(slot.diff_weights[i], layer.outputs * layer.inputs * kLanes, 0.0F);
  }
}

void run_slot(const MlpCall& call, const MlpSlot& slot, std::int64_t begin, std::int64_t end) {
  clear_slot(call, slot);
  const MlpInput& input = call.input;
  const std::int64_t step = rows_of_block(call.network.layers[0].inputs);
  for (std::int64_t r = begin; r < end; r += step) {
    const std::int64_t count = std::min(step, end - r), offset = r * input.row_stride;
    if (input.pixels != nullptr) {
      run_block(call, slot, BlockRows<std::uint8_t>{input.pixels + offset, input.row_stride, count},
                r);
    } else {
      run_block(call, slot, BlockRows<float>{input.floats + offset, input.row_stride, count}, r);
    }
  }
}

// Layer 0's weights times the input's scale, and its bias plus what the shift adds.
void pack_weights(const MlpLayer& layer, const MlpInput& input, float* packed, float* bias) {
  pack_all_dot_weights(layer.weights, layer.inputs, layer.outputs, layer.inputs, packed);
  const std::int64_t count = layer.outputs * round_up(layer.inputs, kLanes);
  for (std::int64_t i = 0; i < count; ++i) packed[i] *= input.scale;
  for (std::int64_t o = 0; o < layer.outputs; ++o) {
    double sum = layer.bias == nullptr ? 0.0 : static_cast<double>(layer.bias[o]);
    if (input.shift != 0.0F) {
      double weights = 0.0;
      for (std::int64_t k = 0; k < layer.inputs; ++k) {
        weights += static_cast<double>(layer.weights[o * layer.inputs + k]);
      }
      sum += static_cast<double>(input.shift) * weights;
    }
    bias[o] = static_cast<float>(sum);
  }
}

std::int64_t lanes() { return kLanes; }

}  // namespace
}  // namespace HWY_NAMESPACE
}  // namespace ridgeline::native
HWY_AFTER_NAMESPACE();

#if HWY_ONCE
namespace ridgeline::native {
namespace {

HWY_EXPORT(run_slot);
HWY_EXPORT(pack_weights);
HWY_EXPORT(lanes);

std::int64_t padded_inputs(const MlpNetwork& network) {
  return (network.layers[0].inputs + kMaxLanes - 1) / kMaxLanes * kMaxLanes;
}

MlpSlot take_slot(Carver& carver, const MlpNetwork& network) {
  MlpSlot slot;
  for (float*& diff : slot.diff) diff = carver.take<float>(kMaxMlpWidth * kBlockRows);
  for (std::size_t i = 0; i < network.depth; ++i) {
    const MlpLayer& layer = network.layers[i];
    slot.dst[i] = carver.take<float>(layer.outputs * kBlockRows);
    slot.diff_bias[i] = carver.take<float>(layer.outputs * kMaxLanes);
    slot.diff_weights[i] = carver.take<float>(
        layer.outputs * (i == 0 ? padded_inputs(network) : layer.inputs * kMaxLanes));
  }
  slot.sums = carver.take<MlpSums>(1);
  return slot;
}

// The whole workspace: what the first layer needs in all slots, then the slots.
struct MlpMemory {
  float* packed = nullptr;
  float* first_bias = nullptr;
  std::byte* slots = nullptr;
  std::size_t head_bytes = 0, slot_bytes = 0;

  MlpMemory(const MlpNetwork& network, std::byte* workspace) {
    Carver head(workspace), slot(nullptr);
    packed = head.take<float>(network.layers[0].outputs * padded_inputs(network));
    first_bias = head.take<float>(network.layers[0].outputs);
    take_slot(slot, network);
    head_bytes = head.bytes();
    slot_bytes = slot.bytes();
    if (workspace != nullptr) slots = workspace + head_bytes;
  }
  [[nodiscard]] MlpSlot slot(const MlpNetwork& network, int index) const {
    Carver carver(slots + static_cast<std::size_t>(index) * slot_bytes);
    return take_slot(carver, network);
  }
};

float sum_of_lanes(const float* values, std::int64_t lanes) {
  float sum = 0.0F;
  for (std::int64_t i = 0; i < lanes; ++i) sum += values[i];
  return sum;
}

// Adds a slot's gradients of one layer to the layer's.
void add_gradients(const MlpLayer& layer, const MlpInput& input, const MlpSlot& slot,
                   std::size_t index, std::int64_t vector) {
  const std::int64_t padded = (layer.inputs + vector - 1) / vector * vector;
  for (std::int64_t m = 0; m < layer.outputs; ++m) {
    const float bias = sum_of_lanes(slot.diff_bias[index] + m * vector, vector);
    if (layer.bias != nullptr) layer.diff_bias[m] += bias;
    float* const diff_weights = layer.diff_weights + m * layer.inputs;
    if (index == 0) {
      // The rows were scale * src + shift.
      const float shift = input.shift * bias;
      const float* const sums = slot.diff_weights[0] + m * padded;
      for (std::int64_t k = 0; k < layer.inputs; ++k) {
        diff_weights[k] += input.scale * sums[k] + shift;
      }
    } else {
      const float* const sums = slot.diff_weights[index] + m * layer.inputs * vector;
      for (std::int64_t k = 0; k < layer.inputs; ++k) {
        diff_weights[k] += sum_of_lanes(sums + k * vector, vector);
      }
    }
  }
}

// The slots' sums, in order.
MlpSums add_slots(const MlpNetwork& network, const MlpInput& input, const MlpMemory& memory,
                  int slots, std::int64_t vector) {
  MlpSums total;
  for (std::size_t i = 0; i < network.depth; ++i) {
    const MlpLayer& layer = network.layers[i];
    std::fill_n(layer.diff_weights, layer.outputs * layer.inputs, 0.0F);
    if (layer.bias != nullptr) std::fill_n(layer.diff_bias, layer.outputs, 0.0F);
  }
  for (int index = 0; index < slots; ++index) {
    const MlpSlot slot = memory.slot(network, index);
    total.loss += slot.sums->loss;
    total.top1 += slot.sums->top1;
    total.top5 += slot.sums->top5;
    for (std::size_t i = 0; i < network.depth; ++i) {
      add_gradients(network.layers[i], input, slot, i, vector);
    }
  }
  return total;
}

}  // namespace

std::size_t mlp_workspace_bytes(const MlpNetwork& network, int slots) {
  const MlpMemory memory(network, nullptr);
  return memory.head_bytes + static_cast<std::size_t>(slots) * memory.slot_bytes;
}

MlpSums run_mlp_step(const MlpNetwork& network, const MlpInput& input, const MlpLoss& loss,
                     int slots, std::byte* workspace) {
  const MlpMemory memory(network, workspace);
  const std::int64_t vector = HWY_DYNAMIC_DISPATCH(lanes)();
  const MlpLayer& first = network.layers[0];
  const std::int64_t padded = (first.inputs + vector - 1) / vector * vector;
  HWY_DYNAMIC_DISPATCH(pack_weights)(first, input, memory.packed, memory.first_bias);
  const MlpCall call{network, input, loss, memory.packed, memory.first_bias, padded};
  const std::int64_t step = rows_of_block(first.inputs);
  const std::int64_t blocks = (input.rows + step - 1) / step;
  parallel([&](int thread, int threads) {
    for (int index = thread; index < slots; index += threads) {
      const Range share = share_of(blocks, index, slots);
      HWY_DYNAMIC_DISPATCH(run_slot)
      (call, memory.slot(network, index), share.begin * step,
       std::min(share.end * step, input.rows));
    }
  });
  return add_slots(network, input, memory, slots, vector);
}

}  // namespace ridgeline::native
#endif
