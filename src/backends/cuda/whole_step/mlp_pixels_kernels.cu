// A small perceptron's step in one pass over u8 pixels, on tensor cores and yet in f32.
//
// A pixel is a whole number up to 255. As the lower byte of an f16 number it stands for pixel /
// 2^24 exactly, a subnormal number, so that pixels need no conversion. A weight w of f32 is cut
// into two f16 numbers: w rounded to 11 bits, and what is left rounded to 11 bits. That is as near
// as 24 bits: the sum of both is w but for one part in 2^24, the error of an f32 product. Tensor
// cores multiply the pieces exactly and add in f32. So that the second piece keeps its bits in
// f16's small range, the weights of a unit are multiplied by a power of two that brings the largest
// near f16's largest number; the sums are divided by it, and by 2^-24.
//
// The pieces stand side by side as columns of one product:
//   columns 0 to 7:   the first piece of units 0 to 7     columns 8 to 15: the second
//   columns 16 to 19: the first piece of units 8 and 9, the second of units 8 and 9
// A thread's columns 2 four and 2 four + 1 of the first two groups are then pieces of the same
// units, and adding the pieces up needs no exchange. The gradient of the hidden units is cut
// likewise for the product that gives the gradient of the weights.
//
// A block takes tiles of 64 rows: the pixels come into shared memory while earlier tiles are
// computed, go through the first product, wait until the rows' gradients are there, and go through
// the second, whose sums stay in registers until the block has seen its last tile.

#include "backends/cuda/whole_step/mlp_rows.cuh"
#include "backends/cuda/whole_step/step_primitives.cuh"

namespace ridgeline::cuda {
namespace {

constexpr int kThreads = 256, kWarps = kThreads / 32;
constexpr int kRows = kThreads / kRowLanes;  // of a tile
constexpr int kRowSteps = kRows / 16;        // the second product's depth, in steps of a product
constexpr int kParts = 4;                    // warps that share 32 rows in the first product
constexpr int kColumnTiles = 3;
constexpr int kPieces = 2;
constexpr int kTilesOfWarp = kMaxPixelInputs / 16 / kWarps;  // of 16 inputs, in the second product
constexpr int kUnitStride = kMaxPixelHidden + 1;
constexpr int kFragment = 32 * 2 * kColumnTiles;  // words of the right operand of one step
constexpr int kMaxStages = 3;
constexpr int kUnitNumbers = 5;  // of UnitNumbers, for each unit

static_assert(kRows == 2 * 32 && kWarps == 2 * kParts);

// Rows lie an odd number of 16 bytes apart: the accesses of a warp then meet no bank twice.
__host__ __device__ constexpr int pitch_of(int inputs) {
  return inputs / 16 % 2 == 1 ? inputs : inputs + 16;
}

// Where things lie in shared memory, in bytes.
struct Places {
  int weights = 0;  // right operand of the first product
  int diffs = 0;    // right operand of the second
  int sums = 0;     // [part][row][kUnitStride]
  int hidden = 0, diff_hidden = 0, diff_logits = 0, weights2 = 0, bias2 = 0, gradients = 0;
  int units = 0, reduction = 0;
  int stages = 0, stage_bytes = 0;

  __host__ __device__ constexpr explicit Places(const MlpStep& step) {
    int end = 0;
    const auto take = [&](int& place, int floats) {
      place = end;
      end += (floats * 4 + 15) / 16 * 16;
    };
    take(weights, step.inputs / 16 * kFragment);
    take(diffs, kRowSteps * kFragment);
    take(sums, kParts * kRows * kUnitStride);
    take(hidden, kRows * kUnitStride);
    take(diff_hidden, kRows * kUnitStride);
    take(diff_logits, kRows * (step.classes | 1));
    take(weights2, step.classes * kUnitStride);
    take(bias2, step.classes);
    take(gradients, small_gradients(step));
    take(units, kUnitNumbers * kMaxPixelHidden);
    take(reduction, 32);
    stages = end;
    stage_bytes = kRows * pitch_of(step.inputs);
  }
};

// A power of two that brings numbers up to `largest` below 2^15, and the factor by which sums over
// numbers so raised, times pixels / 2^24, become sums over the numbers times pixels.
struct Range {
  float up, down;

  __device__ __forceinline__ explicit Range(float largest) {
    const int exponent = largest > 0.0F ? ilogbf(largest) : 0;
    const int raised = 14 - (exponent < -100 ? -100 : exponent > 100 ? 100 : exponent);
    up = ldexpf(1.0F, raised);
    down = ldexpf(1.0F, 24 - raised);
  }
};

// The f16 numbers whose sum is `value` as nearly as f32 numbers tell.
struct Pieces {
  std::uint32_t bits[kPieces];

  __device__ __forceinline__ explicit Pieces(float value) {
#pragma unroll
    for (std::uint32_t& piece : bits) {
      const f16 rounded = __float2half_rn(value);
      piece = __half_as_ushort(rounded);
      value -= __half2float(rounded);
    }
  }
  // 0 where there is no such piece.
  [[nodiscard]] __device__ __forceinline__ std::uint32_t at(int piece) const {
    return piece == 0 ? bits[0] : piece == 1 ? bits[1] : 0U;
  }
};

// Two neighbouring bytes of a word, the lower or the upper two, as f16 numbers.
template <int kFirst>
__device__ __forceinline__ std::uint32_t spread_bytes(std::uint32_t word) {
  return __byte_perm(word, 0, kFirst == 0 ? 0x4140 : 0x4342);
}

// A byte of each of two words that hold two bytes, as f16 numbers.
template <int kByte>
__device__ __forceinline__ std::uint32_t pair_bytes(std::uint32_t low, std::uint32_t high) {
  return __byte_perm(low, high, kByte == 0 ? 0x2420 : 0x2521);
}

// The column of a unit's piece.
__device__ __forceinline__ int column_of(int unit, int piece) {
  return unit < 8 ? piece * 8 + unit : 16 + 2 * piece + unit - 8;
}

// The word of a right operand that holds rows 2 four (+ 8 with `upper`) and the next of a column:
// the words that a thread reads together lie together, four of column tiles 0 and 1 and two of 2.
__device__ __forceinline__ int fragment_word(int step, int column, int four, int upper) {
  const int tile = column / 8, lane = column % 8 * 4 + four;
  return step * kFragment + (tile < 2 ? lane * 4 + tile * 2 : 128 + lane * 2) + upper;
}

struct RightOperand {
  uint4 first;   // of column tiles 0 and 1
  uint2 second;  // of 2

  __device__ __forceinline__ RightOperand(const std::uint32_t* fragments, int step, int lane) {
    const std::uint32_t* const from = fragments + step * kFragment;
    first = reinterpret_cast<const uint4*>(from)[lane];
    second = reinterpret_cast<const uint2*>(from + 128)[lane];
  }
  __device__ __forceinline__ void multiply(const std::uint32_t (&left)[4],
                                           float (&sums)[kColumnTiles][4]) const {
    multiply_f16(sums[0], left, first.x, first.y);
    multiply_f16(sums[1], left, first.z, first.w);
    multiply_f16(sums[2], left, second.x, second.y);
  }
};

// The sums of the pieces: of units 2 four and 2 four + 1 in own, of units 8 and 9 in others, for
// threads whose `four` is 0 or 1.
__device__ __forceinline__ void add_pieces(const float (&sums)[kColumnTiles][4], float (&own)[4],
                                           float (&others)[4]) {
#pragma unroll
  for (int i = 0; i < 4; ++i) {
    own[i] = sums[1][i] + sums[0][i];
    others[i] = sums[2][i] + __shfl_xor_sync(0xFFFFFFFFU, sums[2][i], 1);
  }
}

__device__ __forceinline__ float4 load_four(const float* from, bool aligned) {
  if (aligned) return __ldg(reinterpret_cast<const float4*>(from));
  return {__ldg(from), __ldg(from + 1), __ldg(from + 2), __ldg(from + 3)};
}

// What belongs to each unit, in shared memory.
struct UnitNumbers {
  float weight_up[kMaxPixelHidden];  // weights are multiplied by this when they are cut
  float weight_down[kMaxPixelHidden];
  float bias[kMaxPixelHidden];  // with what the pixels' shift adds to the sums
  float diff_up[kMaxPixelHidden], diff_down[kMaxPixelHidden];  // of the gradient
};
static_assert(sizeof(UnitNumbers) == sizeof(float) * kUnitNumbers * kMaxPixelHidden);

// A warp to a unit. The gradient's range: softmax minus target adds up to 2 at most, and no slope
// of an activation is above 1 but leaky_relu's.
__device__ void find_units(const MlpStep& step, const LossOptions& options, UnitNumbers& units) {
  const int lane = static_cast<int>(threadIdx.x) % 32;
  for (int unit = static_cast<int>(threadIdx.x) / 32; unit < step.hidden; unit += kWarps) {
    float sum = 0.0F, largest = 0.0F;
#pragma unroll
    for (int i = 0; i < kMaxPixelInputs / 32; ++i) {
      const int k = i * 32 + lane;
      const float weight = k < step.inputs ? __ldg(step.weights1 + unit * step.inputs + k) : 0.0F;
      sum += weight;
      largest = fmaxf(largest, fabsf(weight));
    }
    float out = lane < step.classes ? fabsf(step.weights2[lane * step.hidden + unit]) : 0.0F;
    sum = warp_sum(sum);
    largest = lanes_max<32>(largest);
    out = lanes_max<32>(out);
    if (lane != 0) continue;
    const Range weights(largest);
    const Range diffs(2.0F * out * fmaxf(1.0F, step.slope) * options.diff_scale);
    units.weight_up[unit] = weights.up;
    units.weight_down[unit] = step.scale * weights.down;
    units.bias[unit] = fmaf(step.shift, sum, step.bias1[unit]);
    units.diff_up[unit] = diffs.up;
    units.diff_down[unit] = step.scale * diffs.down;
  }
}

// Cuts weights1 into pieces. The inputs of a step are permuted so that a thread's four are
// neighbours: rows 2 four, 2 four + 1, 2 four + 8, 2 four + 9 are inputs 4 four to 4 four + 3.
__device__ void cut_weights(const MlpStep& step, const UnitNumbers& units,
                            std::uint32_t* fragments) {
  const bool aligned = reinterpret_cast<std::uintptr_t>(step.weights1) % 16 == 0;
  const int lane = static_cast<int>(threadIdx.x) % 32, group = lane / 4, four = lane % 4;
  const int other = 8 + group % 2;  // the unit and piece of column 16 + group
  const int other_piece = group / 2;
  const float up = group < step.hidden ? units.weight_up[group] : 0.0F;
  const float other_up = other < step.hidden ? units.weight_up[other] : 0.0F;
  const auto write = [&](int k, int tile, std::uint32_t a, std::uint32_t b, std::uint32_t c,
                         std::uint32_t d) {
    const int word = fragment_word(k, tile * 8 + group, four, 0);
    fragments[word] = a | b << 16;
    fragments[word + 1] = c | d << 16;
  };
#pragma unroll
  for (int i = 0; i < kTilesOfWarp; ++i) {
    const int k = i * kWarps + static_cast<int>(threadIdx.x) / 32;
    if (k >= step.inputs / 16) break;
    const float* const column = step.weights1 + k * 16 + four * 4;
    float4 own = {}, far = {};
    if (group < step.hidden) own = load_four(column + group * step.inputs, aligned);
    if (other < step.hidden) far = load_four(column + other * step.inputs, aligned);
    const Pieces x(own.x * up), y(own.y * up), z(own.z * up), w(own.w * up);
#pragma unroll
    for (int piece = 0; piece < kPieces; ++piece) {
      write(k, piece, x.bits[piece], y.bits[piece], z.bits[piece], w.bits[piece]);
    }
    write(k, 2, Pieces(far.x * other_up).at(other_piece), Pieces(far.y * other_up).at(other_piece),
          Pieces(far.z * other_up).at(other_piece), Pieces(far.w * other_up).at(other_piece));
  }
}

// Starts copying a tile's pixels; what lies behind the last row is zero.
__device__ void fetch_tile(const MlpStep& step, std::int64_t first, std::byte* stage) {
  const int packs = step.inputs / 16, pitch = pitch_of(step.inputs);
  const bool aligned = reinterpret_cast<std::uintptr_t>(step.pixels) % 16 == 0;
  for (int i = static_cast<int>(threadIdx.x); i < kRows * packs; i += kThreads) {
    const int row = i / packs, pack = i % packs;
    const std::uint8_t* const from = step.pixels + (first + row) * step.inputs + pack * 16;
    std::byte* const to = stage + row * pitch + pack * 16;
    if (first + row >= step.rows) {
      *reinterpret_cast<uint4*>(to) = make_uint4(0, 0, 0, 0);
    } else if (aligned) {
      copy_async(to, from);
    } else {
      for (int j = 0; j < 16; ++j) to[j] = static_cast<std::byte>(from[j]);
    }
  }
}

// weights1 · pixels of a tile. A warp takes 32 rows and every fourth step of the depth.
__device__ __forceinline__ void first_product(const MlpStep& step, const std::byte* stage,
                                              const std::uint32_t* fragments, float* sums) {
  const int lane = static_cast<int>(threadIdx.x) % 32, warp = static_cast<int>(threadIdx.x) / 32;
  const int group = lane / 4, four = lane % 4, part = warp / 2;
  const int pitch = pitch_of(step.inputs);
  const std::byte* const rows = stage + (warp % 2 * 32 + group) * pitch + four * 4;
  float acc[2][kColumnTiles][4] = {};
#pragma unroll 2
  for (int k = part; k < step.inputs / 16; k += kParts) {
    const RightOperand right(fragments, k, lane);
#pragma unroll
    for (int half = 0; half < 2; ++half) {
      const std::byte* const at = rows + half * 16 * pitch + k * 16;
      const std::uint32_t upper = *reinterpret_cast<const std::uint32_t*>(at);
      const std::uint32_t lower = *reinterpret_cast<const std::uint32_t*>(at + 8 * pitch);
      const std::uint32_t left[4] = {spread_bytes<0>(upper), spread_bytes<0>(lower),
                                     spread_bytes<2>(upper), spread_bytes<2>(lower)};
      right.multiply(left, acc[half]);
    }
  }
#pragma unroll
  for (int half = 0; half < 2; ++half) {
    float own[4], others[4];
    add_pieces(acc[half], own, others);
#pragma unroll
    for (int i = 0; i < 4; ++i) {
      const int row = warp % 2 * 32 + half * 16 + i / 2 * 8 + group;
      float* const out = sums + (part * kRows + row) * kUnitStride;
      out[2 * four + i % 2] = own[i];
      if (four == 0) out[8 + i % 2] = others[i];
    }
  }
}

// A row from the sums of the first product to the gradient of the hidden layer, which is cut into
// pieces for the second.
template <int kClasses>
__device__ __forceinline__ void middle_of_row(const MlpStep& step, const MlpTile& tile,
                                              const float* sums, const UnitNumbers& units,
                                              std::uint32_t* diffs, std::int64_t first,
                                              std::int64_t valid, const LossOptions& options,
                                              LossSums& loss) {
  const int row = static_cast<int>(threadIdx.x) / kRowLanes;
  const int lane = static_cast<int>(threadIdx.x) % kRowLanes;
  for (int unit = lane; unit < step.hidden; unit += kRowLanes) {
    float sum = 0.0F;
#pragma unroll
    for (int part = 0; part < kParts; ++part) {
      sum += sums[(part * kRows + row) * kUnitStride + unit];
    }
    tile.hidden[row * kUnitStride + unit] = fmaf(units.weight_down[unit], sum, units.bias[unit]);
  }
  const bool counts = first + row < valid;
  const LossLabel label = {counts ? step.labels[first + row] : 0, counts};
  finish_row<(kMaxPixelHidden + kRowLanes - 1) / kRowLanes, kClasses>(step, tile, row, options,
                                                                      label, loss);
  auto* const halves = reinterpret_cast<std::uint16_t*>(diffs);
  const int of_step = row % 16;
  for (int unit = lane; unit < step.hidden; unit += kRowLanes) {
    const Pieces pieces(tile.diff_hidden[row * kUnitStride + unit] * units.diff_up[unit]);
#pragma unroll
    for (int piece = 0; piece < kPieces; ++piece) {
      const int word =
          fragment_word(row / 16, column_of(unit, piece), of_step % 8 / 2, of_step / 8);
      halves[word * 2 + of_step % 2] = static_cast<std::uint16_t>(pieces.bits[piece]);
    }
  }
}

// Adds pixelsᵀ · diffs of a tile to the sums of a warp's inputs: a warp takes every eighth group of
// 16. Rows `group` and `group` + 8 of a product are inputs 2 group and 2 group + 1, which lie
// together. In the place of groups behind the last the last is computed again, so that no branch
// stands between the loads; those sums are not read.
__device__ __forceinline__ void second_product(const MlpStep& step, const std::byte* stage,
                                               const std::uint32_t* fragments,
                                               float (&sums)[kTilesOfWarp][kColumnTiles][4]) {
  const int lane = static_cast<int>(threadIdx.x) % 32, warp = static_cast<int>(threadIdx.x) / 32;
  const int group = lane / 4, four = lane % 4, pitch = pitch_of(step.inputs);
  const int last = step.inputs - (warp + 1) * 16;
  for (int k = 0; k < kRowSteps; ++k) {
    const RightOperand right(fragments, k, lane);
    const std::byte* const rows = stage + (k * 16 + 2 * four) * pitch + warp * 16 + 2 * group;
#pragma unroll
    for (int i = 0; i < kTilesOfWarp; ++i) {
      const std::byte* const inputs = rows + min(i * kWarps * 16, last);
      const auto pair = [&](int row) -> std::uint32_t {
        return *reinterpret_cast<const std::uint16_t*>(inputs + row * pitch);
      };
      const std::uint32_t a = pair(0), b = pair(1), c = pair(8), d = pair(9);
      const std::uint32_t left[4] = {pair_bytes<0>(a, b), pair_bytes<1>(a, b), pair_bytes<0>(c, d),
                                     pair_bytes<1>(c, d)};
      right.multiply(left, sums[i]);
    }
  }
}

// The block's gradient of weights1. The pixels were scale * pixel + shift.
__device__ __forceinline__ void write_weights(const MlpStep& step, const float* diff_bias1,
                                              const UnitNumbers& units,
                                              const float (&sums)[kTilesOfWarp][kColumnTiles][4]) {
  const int lane = static_cast<int>(threadIdx.x) % 32, warp = static_cast<int>(threadIdx.x) / 32;
  const int group = lane / 4, four = lane % 4;
  float* const out =
      step.weight_partials + static_cast<std::int64_t>(blockIdx.x) * step.hidden * step.inputs;
  const auto write = [&](int unit, int input, float first, float second) {
    if (unit >= step.hidden) return;
    const float shift = step.shift * diff_bias1[unit], down = units.diff_down[unit];
    const float2 both = {fmaf(down, first, shift), fmaf(down, second, shift)};
    *reinterpret_cast<float2*>(out + unit * step.inputs + input) = both;
  };
#pragma unroll
  for (int i = 0; i < kTilesOfWarp; ++i) {
    const int input = (i * kWarps + warp) * 16 + 2 * group;
    if (input >= step.inputs) break;
    float own[4], others[4];
    add_pieces(sums[i], own, others);
    write(2 * four, input, own[0], own[2]);
    write(2 * four + 1, input, own[1], own[3]);
    if (four == 0) write(8, input, others[0], others[2]);
    if (four == 1) write(9, input, others[1], others[3]);
  }
}

// `kClasses`: of each of the threads that share a row.
template <int kClasses>
__global__ void __launch_bounds__(kThreads, 1) mlp_pixels(MlpStep step, MlpPixelPlan plan) {
  extern __shared__ __align__(16) std::byte shared[];
  const Places places(step);
  const auto floats = [&](int place) { return reinterpret_cast<float*>(shared + place); };
  auto* const weights = reinterpret_cast<std::uint32_t*>(shared + places.weights);
  auto* const diffs = reinterpret_cast<std::uint32_t*>(shared + places.diffs);
  const MlpTile tile = {floats(places.hidden),
                        floats(places.diff_hidden),
                        floats(places.diff_logits),
                        floats(places.weights2),
                        floats(places.bias2),
                        floats(places.gradients),
                        kUnitStride,
                        step.classes | 1};
  auto& units = *reinterpret_cast<UnitNumbers*>(shared + places.units);
  const auto stage = [&](int index) { return shared + places.stages + index * places.stage_bytes; };
  const std::int64_t stride = static_cast<std::int64_t>(gridDim.x) * kRows;
  const std::int64_t begin = static_cast<std::int64_t>(blockIdx.x) * kRows;
  for (int i = 0; i < plan.stages; ++i) {
    if (begin + i * stride < step.rows) fetch_tile(step, begin + i * stride, stage(i));
    copy_commit();
  }
  const std::int64_t valid = valid_rows(step.state, step.rows);
  const LossOptions options = loss_options(step, valid);
  find_units(step, options, units);
  begin_tile(step, tile);
  for (int i = static_cast<int>(threadIdx.x); i < kRowSteps * kFragment; i += kThreads) {
    diffs[i] = 0;
  }
  __syncthreads();
  cut_weights(step, units, weights);

  LossSums loss;
  float sums[kTilesOfWarp][kColumnTiles][4] = {};
  int current = 0;
  for (std::int64_t first = begin; first < step.rows; first += stride) {
    // As many groups are under way as there are stages; the oldest is this tile's.
    if (plan.stages == kMaxStages) {
      copy_wait<kMaxStages - 1>();
    } else {
      copy_wait<kMaxStages - 2>();
    }
    __syncthreads();
    first_product(step, stage(current), weights, floats(places.sums));
    __syncthreads();
    middle_of_row<kClasses>(step, tile, floats(places.sums), units, diffs, first, valid, options,
                            loss);
    __syncthreads();
    add_small_gradients(step, tile, kRows);
    second_product(step, stage(current), diffs, sums);
    __syncthreads();
    const std::int64_t next = first + plan.stages * stride;
    if (next < step.rows) fetch_tile(step, next, stage(current));
    copy_commit();
    current = current + 1 < plan.stages ? current + 1 : 0;
  }
  write_weights(step, tile.gradients + step.classes * step.hidden + step.classes, units, sums);
  end_tile(step, tile, loss, floats(places.reduction));
}

}  // namespace

MlpPixelPlan plan_mlp_pixels(const MlpStep& step, const DeviceLimits& device) {
  if (device.capability < 80 || step.inputs % 16 != 0 || step.inputs > kMaxPixelInputs ||
      step.hidden > kMaxPixelHidden) {
    return {};
  }
  const Places places(step);
  const std::int64_t left = device.shared_bytes_per_block - places.stages;
  const std::int64_t fit = left / places.stage_bytes;
  if (fit < 2) return {};
  const std::int64_t tiles = (step.rows + kRows - 1) / kRows;
  MlpPixelPlan plan;
  plan.stages = static_cast<int>(fit < kMaxStages ? fit : kMaxStages);
  plan.blocks = static_cast<int>(tiles < device.multiprocessors ? tiles : device.multiprocessors);
  plan.shared_bytes = places.stages + plan.stages * places.stage_bytes;
  return plan;
}

void launch_mlp_pixels(const MlpStep& step, const MlpPixelPlan& plan, Stream stream) {
  constexpr int kFew = 3, kMany = kMaxMlpClasses / kRowLanes;
  const auto kernel = step.classes <= kFew * kRowLanes ? mlp_pixels<kFew> : mlp_pixels<kMany>;
  cudaFuncSetAttribute(kernel, cudaFuncAttributeMaxDynamicSharedMemorySize, plan.shared_bytes);
  kernel<<<static_cast<unsigned>(plan.blocks), kThreads,
           static_cast<std::size_t>(plan.shared_bytes), stream>>>(step, plan);
  check_launch("mlp_pixels");
}

}  // namespace ridgeline::cuda
