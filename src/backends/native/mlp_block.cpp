#include "backends/native/mlp_block.h"

#include <algorithm>
#include <cmath>
#include <limits>

#include "backends/native/row_space.h"
#include "backends/native/targets.h"
#include "base/parallel.h"

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
  float* rows = nullptr;                             // the block's converted pixels
  std::array<float*, kMaxMlpLayers> dst{};           // [unit][row]
  std::array<float*, 2> diff{};                      // [unit][row]
  std::array<float*, kMaxMlpLayers> diff_weights{};  // layer 0: [unit][input]; others with lanes
  std::array<float*, kMaxMlpLayers> diff_bias{};     // [unit][lane]
  MlpSums* sums = nullptr;
};

// A call, and the block in work.
struct MlpCall {
  const MlpNetwork& network;
  const MlpInput& input;
  const MlpLoss& loss;
  const float* packed;  // layer 0's weights as dot_tile wants them
  std::int64_t padded;  // layer 0's inputs, rounded up to full vectors
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

// u8 rows; what is loaded is also left as floats for the pass backward.
struct PixelRows {
  const std::uint8_t* rows[kDotRows];
  float* floats[kDotRows];
  std::int64_t depth;
  float scale, shift;

  template <class Lanes>
  HWY_INLINE FloatVec convert(Lanes lanes, int row, std::int64_t k) const {
    const FloatTag d;
    const hn::RebindToSigned<FloatTag> integers;
    const FloatVec pixels = hn::ConvertTo(d, hn::PromoteTo(integers, lanes.load(rows[row] + k)));
    const FloatVec v = hn::MulAdd(pixels, hn::Set(d, scale), hn::Set(d, shift));
    hn::StoreU(v, d, floats[row] + k);
    return v;
  }
  HWY_INLINE FloatVec full(int row, std::int64_t k) const {
    return convert(FullLanes<FloatTag>(), row, k);
  }
  HWY_INLINE FloatVec tail(int row, std::int64_t k) const {
    return convert(FirstLanes<FloatTag>{depth - k}, row, k);
  }
};

// Asks for the next block's rows, a few cache lines at a time between tiles, so that they are in
// the second-level cache when their turn comes: memory's latency hides behind arithmetic.
struct NextRows {
  const std::byte* at = nullptr;
  const std::byte* end = nullptr;
  std::int64_t lines = 0;  // for each tile

  NextRows(const MlpInput& input, std::int64_t begin, std::int64_t rows, std::int64_t tiles) {
    const std::int64_t last = HWY_MIN(begin + rows, input.rows);
    if (begin >= last) return;
    if (input.pixels != nullptr) {
      at = reinterpret_cast<const std::byte*>(input.pixels + begin * input.row_stride);
      end = at + (last - begin) * input.row_stride;
    } else {
      at = reinterpret_cast<const std::byte*>(input.floats + begin * input.row_stride);
      end = at + (last - begin) * input.row_stride * std::int64_t{sizeof(float)};
    }
    lines = (end - at) / 64 / tiles + 1;
  }
  HWY_INLINE void fetch() {
    for (std::int64_t i = 0; i < lines && at < end; ++i, at += 64) __builtin_prefetch(at, 0, 2);
  }
};

// Where the rows of a block lie as floats.
struct BlockRows {
  const float* data = nullptr;
  std::int64_t stride = 0;
  std::int64_t count = 0;  // rows that exist
};

// Some rows of a block with some outputs of the first layer, over the whole depth. A row beyond the
// last stands for the last; its gradient will be zero.
void first_layer_tile(const MlpCall& call, const MlpSlot& slot, std::int64_t begin,
                      const BlockRows& rows, std::int64_t row, Range outputs) {
  HWY_ALIGN float sums[kDotRows * (kMaxDotOutputs + 1)];
  const std::int64_t depth = call.network.layers[0].inputs;
  const float* const packed = call.packed + outputs.begin * call.padded;
  const std::int64_t count = outputs.end - outputs.begin;
  if (outputs.begin == 0 && call.input.pixels != nullptr) {
    PixelRows load{{}, {}, depth, call.input.scale, call.input.shift};
    for (int i = 0; i < kDotRows; ++i) {
      const std::int64_t r = std::min(row + i, rows.count - 1);
      load.rows[i] = call.input.pixels + (begin + r) * call.input.row_stride;
      load.floats[i] = slot.rows + r * call.padded;
    }
    dot_outputs(count, load, depth, packed, sums);
  } else {
    FloatRows load{{}, depth};
    for (int i = 0; i < kDotRows; ++i) {
      load.rows[i] = rows.data + std::min(row + i, rows.count - 1) * rows.stride;
    }
    dot_outputs(count, load, depth, packed, sums);
  }
  for (std::int64_t o = 0; o < count; ++o) {
    std::copy_n(sums + o * kDotRows, kDotRows,
                slot.dst[0] + (outputs.begin + o) * kBlockRows + row);
  }
}

void first_layer(const MlpCall& call, const MlpSlot& slot, std::int64_t begin,
                 const BlockRows& rows, NextRows& next) {
  const std::int64_t outputs = call.network.layers[0].outputs;
  const std::int64_t step = outputs_of_tile(outputs);
  for (std::int64_t o = 0; o < outputs; o += step) {
    for (std::int64_t r = 0; r < rows.count; r += kDotRows) {
      first_layer_tile(call, slot, begin, rows, r, {o, std::min(o + step, outputs)});
      next.fetch();
    }
  }
  const std::int64_t filled = round_up(rows.count, kDotRows);
  for (std::int64_t o = 0; o < outputs; ++o) {
    float* const dst = slot.dst[0] + o * kBlockRows;
    std::fill(dst + filled, dst + kBlockRows, 0.0F);
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

void finish_layer(const MlpLayer& layer, float* dst) {
  const FloatTag d;
  if (layer.bias != nullptr) {
    for_block(layer.outputs, [&](std::int64_t unit, std::int64_t at) HWY_ATTR {
      hn::StoreU(hn::Add(hn::LoadU(d, dst + at), hn::Set(d, layer.bias[unit])), d, dst + at);
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
template <int kOutputs, int kVectors>
void add_tile(const float* HWY_RESTRICT diff, const BlockRows& rows, std::int64_t column,
              float* HWY_RESTRICT sums, std::int64_t sums_stride) {
  const FloatTag d;
  FloatVec acc[kOutputs][kVectors];
#pragma GCC unroll 16
  for (int o = 0; o < kOutputs; ++o) {
#pragma GCC unroll 2
    for (int v = 0; v < kVectors; ++v) {
      acc[o][v] = hn::LoadU(d, sums + o * sums_stride + column + v * kLanes);
    }
  }
  const float* HWY_RESTRICT src = rows.data + column;
  for (std::int64_t r = 0; r < rows.count; ++r, src += rows.stride) {
    FloatVec x[kVectors];
#pragma GCC unroll 2
    for (int v = 0; v < kVectors; ++v) x[v] = hn::LoadU(d, src + v * kLanes);
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

// Outputs of one tile of the first layer's gradient: registers allow two vectors of each.
constexpr std::int64_t kMaxSumOutputs = kManyRegisters ? 12 : 6;

template <int kOutputs = kMaxSumOutputs>
HWY_INLINE void add_outputs(std::int64_t outputs, const float* diff, const BlockRows& rows,
                            std::int64_t inputs, std::int64_t column, float* sums,
                            std::int64_t sums_stride) {
  if constexpr (kOutputs > 1) {
    if (outputs < kOutputs) {
      add_outputs<kOutputs - 1>(outputs, diff, rows, inputs, column, sums, sums_stride);
      return;
    }
  }
  if (column + 2 * kLanes <= inputs) {
    add_tile<kOutputs, 2>(diff, rows, column, sums, sums_stride);
  } else {
    add_tile<kOutputs, 1>(diff, rows, column, sums, sums_stride);
  }
}

// Rows that lie as floats elsewhere may end in the middle of a vector.
void add_last_columns(const MlpLayer& layer, const float* diff, const BlockRows& rows,
                      std::int64_t column, float* sums, std::int64_t sums_stride) {
  for (std::int64_t o = 0; o < layer.outputs; ++o) {
    for (std::int64_t k = column; k < layer.inputs; ++k) {
      float sum = sums[o * sums_stride + k];
      for (std::int64_t r = 0; r < rows.count; ++r) {
        sum += diff[o * kBlockRows + r] * rows.data[r * rows.stride + k];
      }
      sums[o * sums_stride + k] = sum;
    }
  }
}

void add_first_weights(const MlpCall& call, const float* diff, const BlockRows& rows, float* sums,
                       NextRows& next) {
  const MlpLayer& layer = call.network.layers[0];
  // Converted rows are padded to full vectors.
  const std::int64_t inputs =
      call.input.pixels != nullptr ? call.padded : layer.inputs / kLanes * kLanes;
  const std::int64_t tiles = (layer.outputs + kMaxSumOutputs - 1) / kMaxSumOutputs;
  const std::int64_t step = (layer.outputs + tiles - 1) / tiles;
  for (std::int64_t k = 0; k < inputs; k += 2 * kLanes) {
    for (std::int64_t o = 0; o < layer.outputs; o += step) {
      add_outputs(std::min(step, layer.outputs - o), diff + o * kBlockRows, rows, inputs, k,
                  sums + o * call.padded, call.padded);
    }
    next.fetch();
  }
  if (inputs < layer.inputs) add_last_columns(layer, diff, rows, inputs, sums, call.padded);
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

void run_block(const MlpCall& call, const MlpSlot& slot, std::int64_t begin, std::int64_t end) {
  const MlpNetwork& network = call.network;
  BlockRows rows{slot.rows, call.padded, end - begin};
  if (call.input.pixels == nullptr) {
    rows.data = call.input.floats + begin * call.input.row_stride;
    rows.stride = call.input.row_stride;
  }
  // About as many tiles as a block has in both directions.
  const std::int64_t tiles = rows.count / kDotRows + call.padded / (2 * kLanes);
  NextRows next_rows(call.input, end, rows.count, tiles);
  first_layer(call, slot, begin, rows, next_rows);
  finish_layer(network.layers[0], slot.dst[0]);
  for (std::size_t i = 1; i < network.depth; ++i) {
    const MlpLayer& layer = network.layers[i];
    multiply_block(layer.weights, layer.inputs, 1, layer.outputs, layer.inputs, slot.dst[i - 1],
                   slot.dst[i]);
    finish_layer(layer, slot.dst[i]);
  }
  float* diff = slot.diff[0];
  float* next = slot.diff[1];
  block_loss(call, begin, rows.count, slot.dst[network.depth - 1], diff, *slot.sums);
  for (std::size_t i = network.depth; i-- > 0;) {
    const MlpLayer& layer = network.layers[i];
    activation_backward(layer, slot.dst[i], diff);
    if (layer.bias != nullptr) add_bias(layer, diff, slot.diff_bias[i]);
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
  const std::int64_t step = rows_of_block(call.network.layers[0].inputs);
  for (std::int64_t r = begin; r < end; r += step) {
    run_block(call, slot, r, std::min(r + step, end));
  }
}

void pack_weights(const MlpLayer& layer, float* packed) {
  pack_all_dot_weights(layer.weights, layer.inputs, layer.outputs, layer.inputs, packed);
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

MlpSlot take_slot(Carver& carver, const MlpNetwork& network, bool pixels) {
  const std::int64_t padded = padded_inputs(network);
  MlpSlot slot;
  if (pixels) slot.rows = carver.take<float>(rows_of_block(network.layers[0].inputs) * padded);
  for (float*& diff : slot.diff) diff = carver.take<float>(kMaxMlpWidth * kBlockRows);
  for (std::size_t i = 0; i < network.depth; ++i) {
    const MlpLayer& layer = network.layers[i];
    slot.dst[i] = carver.take<float>(layer.outputs * kBlockRows);
    slot.diff_bias[i] = carver.take<float>(layer.outputs * kMaxLanes);
    slot.diff_weights[i] =
        carver.take<float>(layer.outputs * (i == 0 ? padded : layer.inputs * kMaxLanes));
  }
  slot.sums = carver.take<MlpSums>(1);
  return slot;
}

// The whole workspace: layer 0's packed weights, then the slots one after the other.
struct MlpMemory {
  float* packed = nullptr;
  std::byte* slots = nullptr;
  std::size_t slot_bytes = 0;

  MlpMemory(const MlpNetwork& network, bool pixels, std::byte* workspace) {
    Carver carver(workspace);
    packed = carver.take<float>(network.layers[0].outputs * padded_inputs(network));
    slots = workspace == nullptr ? nullptr : workspace + carver.bytes();
    head_bytes = carver.bytes();
    Carver measure(nullptr);
    take_slot(measure, network, pixels);
    slot_bytes = measure.bytes();
  }
  [[nodiscard]] MlpSlot slot(const MlpNetwork& network, bool pixels, int index) const {
    Carver carver(slots + static_cast<std::size_t>(index) * slot_bytes);
    return take_slot(carver, network, pixels);
  }
  std::size_t head_bytes = 0;
};

float sum_of_lanes(const float* values, std::int64_t lanes) {
  float sum = 0.0F;
  for (std::int64_t i = 0; i < lanes; ++i) sum += values[i];
  return sum;
}

}  // namespace

std::size_t mlp_workspace_bytes(const MlpNetwork& network, bool pixels, int slots) {
  const MlpMemory memory(network, pixels, nullptr);
  return memory.head_bytes + static_cast<std::size_t>(slots) * memory.slot_bytes;
}

MlpSums run_mlp_step(const MlpNetwork& network, const MlpInput& input, const MlpLoss& loss,
                     int slots, std::byte* workspace) {
  const bool pixels = input.pixels != nullptr;
  const MlpMemory memory(network, pixels, workspace);
  const std::int64_t vector = HWY_DYNAMIC_DISPATCH(lanes)();
  const MlpLayer& first = network.layers[0];
  const std::int64_t padded = (first.inputs + vector - 1) / vector * vector;
  HWY_DYNAMIC_DISPATCH(pack_weights)(first, memory.packed);
  const MlpCall call{network, input, loss, memory.packed, padded};
  const std::int64_t step = rows_of_block(first.inputs);
  const std::int64_t blocks = (input.rows + step - 1) / step;
  parallel([&](int thread, int threads) {
    for (int index = thread; index < slots; index += threads) {
      const Range share = share_of(blocks, index, slots);
      HWY_DYNAMIC_DISPATCH(run_slot)
      (call, memory.slot(network, pixels, index), share.begin * step,
       std::min(share.end * step, input.rows));
    }
  });

  // The slots' sums, in order.
  MlpSums total;
  for (std::size_t i = 0; i < network.depth; ++i) {
    const MlpLayer& layer = network.layers[i];
    std::fill_n(layer.diff_weights, layer.outputs * layer.inputs, 0.0F);
    if (layer.bias != nullptr) std::fill_n(layer.diff_bias, layer.outputs, 0.0F);
  }
  for (int index = 0; index < slots; ++index) {
    const MlpSlot slot = memory.slot(network, pixels, index);
    total.loss += slot.sums->loss;
    total.top1 += slot.sums->top1;
    total.top5 += slot.sums->top5;
    for (std::size_t i = 0; i < network.depth; ++i) {
      const MlpLayer& layer = network.layers[i];
      for (std::int64_t m = 0; m < layer.outputs; ++m) {
        if (layer.bias != nullptr) {
          layer.diff_bias[m] += sum_of_lanes(slot.diff_bias[i] + m * vector, vector);
        }
        for (std::int64_t k = 0; k < layer.inputs; ++k) {
          layer.diff_weights[m * layer.inputs + k] +=
              i == 0 ? slot.diff_weights[0][m * padded + k]
                     : sum_of_lanes(slot.diff_weights[i] + (m * layer.inputs + k) * vector, vector);
        }
      }
    }
  }
  return total;
}

}  // namespace ridgeline::native
#endif
