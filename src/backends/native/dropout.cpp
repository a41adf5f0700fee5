#include "backends/native/row_space.h"
#include "backends/native/rows.h"
#include "base/philox.h"
#include "base/simd_targets.h"

#undef HWY_TARGET_INCLUDE
#define HWY_TARGET_INCLUDE "backends/native/dropout.cpp"
#include <hwy/foreach_target.h>
#include <hwy/highway.h>

#include "backends/native/lanes-inl.h"

#ifndef RIDGELINE_NATIVE_DROPOUT_TYPES
#define RIDGELINE_NATIVE_DROPOUT_TYPES
namespace ridgeline::native {
namespace {

struct DropoutTask {
  DropoutAttributes attributes;
  std::uint64_t seed = 0;
  std::int64_t step = 0;
  std::int64_t first = 0;  // the logical index of the first element
  RowSpace space;
  RowOperand src, dst;
  std::int64_t pixels = 0, channels = 0;  // nhwc: one row is one pixel
};

}  // namespace
}  // namespace ridgeline::native
#endif

HWY_BEFORE_NAMESPACE();
namespace ridgeline::native {
namespace HWY_NAMESPACE {
namespace {

template <typename T>
HWY_INLINE void drop_one(const DropoutTask& task, const T* src, T* dst, std::int64_t index) {
  const float factor = dropout_factor(task.attributes, task.seed, task.step, index);
  *dst = ridgeline::narrowed<T>(ridgeline::widened(*src) * static_cast<double>(factor));
}

#if HWY_TARGET == HWY_SCALAR

template <typename T>
void drop_rows_of(const DropoutTask& task, Range range) {
  for (std::int64_t row = range.begin; row < range.end; ++row) {
    const T* src = task.src.row<const T>(row);
    T* dst = task.dst.row<T>(row);
    for (std::int64_t i = 0; i < task.space.width_of(row); ++i) {
      const std::int64_t index =
          task.pixels > 0
              ? (row / task.pixels * task.channels + i) * task.pixels + row % task.pixels
              : row * task.space.width + i;
      drop_one(task, src + i, dst + i, task.first + index);
    }
  }
}

#else

using FloatTag = hn::ScalableTag<float>;
using WordTag = hn::ScalableTag<std::uint32_t>;
using Words = hn::Vec<WordTag>;

struct Product {
  Words high, low;
};

// 64-bit products of the even and of the odd lanes, put together again.
HWY_INLINE Product multiply(Words a, std::uint32_t b) {
  const WordTag d;
  const hn::Repartition<std::uint64_t, WordTag> d64;
  const Words factor = hn::Set(d, b);
  const auto even = hn::MulEven(a, factor);
  const auto odd = hn::MulEven(hn::BitCast(d, hn::ShiftRight<32>(hn::BitCast(d64, a))), factor);
  return {hn::OddEven(hn::BitCast(d, odd), hn::BitCast(d, hn::ShiftRight<32>(even))),
          hn::OddEven(hn::BitCast(d, hn::ShiftLeft<32>(odd)), hn::BitCast(d, even))};
}

struct Block {
  Words words[4];
};

// base/philox.h's function for a vector of counters.
HWY_INLINE Block philox_blocks(std::uint64_t key, Words counter, std::uint64_t counter_high) {
  const WordTag d;
  auto k0 = static_cast<std::uint32_t>(key), k1 = static_cast<std::uint32_t>(key >> 32);
  Words c0 = counter, c1 = hn::Zero(d);
  Words c2 = hn::Set(d, static_cast<std::uint32_t>(counter_high));
  Words c3 = hn::Set(d, static_cast<std::uint32_t>(counter_high >> 32));
  for (int round = 0; round < 10; ++round) {
    const Product p0 = multiply(c0, 0xD2511F53U), p1 = multiply(c2, 0xCD9E8D57U);
    c0 = hn::Xor(hn::Xor(p1.high, c1), hn::Set(d, k0));
    c2 = hn::Xor(hn::Xor(p0.high, c3), hn::Set(d, k1));
    c1 = p1.low;
    c3 = p0.low;
    k0 += 0x9E3779B9U;
    k1 += 0xBB67AE85U;
  }
  return {{c0, c1, c2, c3}};
}

struct Mask {
  std::uint64_t key, counter_high;
  float probability, scale;

  explicit Mask(const DropoutTask& task)
      : key(stream_key(task.seed, RandomStream::dropout)),
        counter_high((static_cast<std::uint64_t>(task.step) << 32) | task.attributes.layer),
        probability(static_cast<float>(task.attributes.probability)),
        scale(1.0F / (1.0F - probability)) {}

  HWY_INLINE hn::Vec<FloatTag> factors(Words bits) const {
    const FloatTag d;
    const hn::RebindToSigned<FloatTag> di;
    const auto number = hn::ConvertTo(d, hn::BitCast(di, hn::ShiftRight<8>(bits)));
    const auto uniform = hn::Mul(number, hn::Set(d, 1.0F / 16777216.0F));
    return hn::IfThenZeroElse(hn::Lt(uniform, hn::Set(d, probability)), hn::Set(d, scale));
  }
};

// Elements that follow each other in logical order: each block of four numbers is used whole.
template <typename T>
HWY_INLINE void drop_run(const DropoutTask& task, const Mask& mask, const T* src, T* dst,
                         std::int64_t index, std::int64_t count) {
  const FloatTag d;
  const WordTag dw;
  const std::int64_t step = lanes_of(d);
  const FullLanes<FloatTag> lanes;
  std::int64_t i = 0;
  for (; i < count && (index + i) % 4 != 0; ++i) drop_one(task, src + i, dst + i, index + i);
  HWY_ALIGN float factors[4 * hn::MaxLanes(FloatTag())];
  for (; i + 4 * step <= count; i += 4 * step) {
    const Words counter = hn::Iota(dw, static_cast<std::uint32_t>((index + i) / 4));
    const Block block = philox_blocks(mask.key, counter, mask.counter_high);
    hn::StoreInterleaved4(mask.factors(block.words[0]), mask.factors(block.words[1]),
                          mask.factors(block.words[2]), mask.factors(block.words[3]), d, factors);
    for (std::int64_t v = 0; v < 4; ++v) {
      const auto x = lanes.load(src + i + v * step);
      lanes.store(hn::Mul(x, hn::Load(d, factors + v * step)), dst + i + v * step);
    }
  }
  for (; i < count; ++i) drop_one(task, src + i, dst + i, index + i);
}

// The channels of one pixel: their logical indices lie an image plane apart, so each lane takes the
// one number it needs from a block of its own.
template <typename T>
HWY_INLINE void drop_pixel(const DropoutTask& task, const Mask& mask, const T* src, T* dst,
                           std::int64_t row) {
  const FloatTag d;
  const WordTag dw;
  const std::int64_t first =
      task.first + row / task.pixels * task.channels * task.pixels + row % task.pixels;
  const Words plane = hn::Set(dw, static_cast<std::uint32_t>(task.pixels));
  for_lanes(d, task.channels, [&](auto lanes, std::int64_t c) HWY_ATTR {
    const Words channel = hn::Iota(dw, static_cast<std::uint32_t>(c));
    const Words index =
        hn::Add(hn::Mul(channel, plane), hn::Set(dw, static_cast<std::uint32_t>(first)));
    const Block block = philox_blocks(mask.key, hn::ShiftRight<2>(index), mask.counter_high);
    const Words place = hn::And(index, hn::Set(dw, 3U));
    Words bits = block.words[3];
    for (std::uint32_t w = 0; w < 3; ++w) {
      bits = hn::IfThenElse(hn::Eq(place, hn::Set(dw, w)), block.words[w], bits);
    }
    lanes.store(hn::Mul(lanes.load(src + c), mask.factors(bits)), dst + c);
  });
}

template <typename T>
void drop_rows_of(const DropoutTask& task, Range range) {
  const Mask mask(task);
  for (std::int64_t row = range.begin; row < range.end; ++row) {
    const T* src = task.src.row<const T>(row);
    T* dst = task.dst.row<T>(row);
    if (task.pixels > 0) {
      drop_pixel(task, mask, src, dst, row);
    } else {
      drop_run(task, mask, src, dst, task.first + row * task.space.width, task.space.width_of(row));
    }
  }
}

#endif

void drop_rows(const DropoutTask& task, Range range) {
  with_element(task.space.dtype,
               [&](auto element) HWY_ATTR { drop_rows_of<decltype(element)>(task, range); });
}

}  // namespace
}  // namespace HWY_NAMESPACE
}  // namespace ridgeline::native
HWY_AFTER_NAMESPACE();

#if HWY_ONCE
namespace ridgeline::native {
namespace {

HWY_EXPORT(drop_rows);

class Dropout final : public Kernel {
 public:
  explicit Dropout(const DropoutAttributes& attributes) : attributes_(attributes) {}

  void run(const KernelArgs& args) const override {
    const Tensor &src = args.inputs[0], &dst = args.outputs[0];
    DropoutTask task;
    task.attributes = attributes_;
    task.seed = args.state->seed;
    task.step = args.state->random_step;
    task.first = args.state->first_row * (src.shape().elements() / src.shape()[0]);
    if (src.layout.kind() == LayoutKind::nhwc) {
      const RowView view = rows_of(src);
      task.space = {view.rows, view.width, view.width, false, src.spec.dtype};
      task.channels = src.shape()[1];
      task.pixels = src.shape()[2] * src.shape()[3];
    } else {
      task.space = element_space({&src, &dst});
    }
    task.src = task.space.operand(src);
    task.dst = task.space.operand(dst);
    parallel_for(task.space.rows, task.space.grain(), [&](std::int64_t begin, std::int64_t end) {
      HWY_DYNAMIC_DISPATCH(drop_rows)(task, {begin, end});
    });
  }

 private:
  DropoutAttributes attributes_;
};

std::unique_ptr<Kernel> make_dropout(const Problem& problem, std::span<const Layout> layouts) {
  auto kernel = std::make_unique<Dropout>(std::get<DropoutAttributes>(problem.node().attributes));
  set_layouts(*kernel, problem, common_layout(problem, layouts));
  kernel->traits = {.slices = true, .in_place = true};
  return kernel;
}

// Counters are computed in 32 bits.
std::string check_dropout(const Problem& problem) {
  if (std::get<DropoutAttributes>(problem.node().attributes).per_sample) {
    return "this kernel draws for each element";
  }
  if (problem.input(0).shape.elements() >= std::int64_t{1} << 32) {
    return "dropout works on fewer than 2^32 elements";
  }
  return refuse_other_than_floats(problem);
}

constexpr KernelRow kRows[] = {
    {"dropout", match_one<OpKind::dropout>, check_dropout, make_dropout},
};

}  // namespace

std::span<const KernelRow> dropout_rows() { return kRows; }

}  // namespace ridgeline::native
#endif
