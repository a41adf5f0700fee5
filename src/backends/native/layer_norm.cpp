#include <cmath>

#include "backends/native/row_space.h"
#include "backends/native/rows.h"
#include "base/simd_targets.h"

#undef HWY_TARGET_INCLUDE
#define HWY_TARGET_INCLUDE "backends/native/layer_norm.cpp"
#include <hwy/foreach_target.h>
#include <hwy/highway.h>

#include "backends/native/lanes-inl.h"

#ifndef RIDGELINE_NATIVE_LAYER_NORM_TYPES
#define RIDGELINE_NATIVE_LAYER_NORM_TYPES
namespace ridgeline::native {
namespace {

// Norms over the channels of each row.
struct LayerNormTask {
  DType dtype = DType::f32;
  std::int64_t channels = 0;
  RowOperand src, dst;
  const float *scale = nullptr, *shift = nullptr;
  float epsilon = 0.0F;
  float *mean = nullptr, *inverse = nullptr;  // one for each row; null: not wanted
};

struct LayerNormBackwardTask {
  DType dtype = DType::f32;
  std::int64_t channels = 0;
  RowOperand diff_dst, src, diff_src;  // diff_src: no data where it is not wanted
  const float *mean = nullptr, *inverse = nullptr, *scale = nullptr;
};

}  // namespace
}  // namespace ridgeline::native
#endif

HWY_BEFORE_NAMESPACE();
namespace ridgeline::native {
namespace HWY_NAMESPACE {
namespace {

using FloatTag = hn::ScalableTag<float>;

HWY_INLINE float sum_of_lanes(hn::Vec<FloatTag> v) {
  return hn::GetLane(hn::SumOfLanes(FloatTag(), v));
}

// A row stays in the first cache for its three passes.
template <typename T>
HWY_INLINE void norm_rows_of(const LayerNormTask& task, Range range) {
  const FloatTag d;
  const float share = 1.0F / static_cast<float>(task.channels);
  for (std::int64_t row = range.begin; row < range.end; ++row) {
    const T* const src = task.src.row<const T>(row);
    T* const dst = task.dst.row<T>(row);
    auto sums = hn::Zero(d);
    for_lanes(d, task.channels, [&](auto lanes, std::int64_t c) HWY_ATTR {
      sums = hn::Add(sums, lanes.load(src + c));
    });
    const float mean = sum_of_lanes(sums) * share;
    const auto centre = hn::Set(d, mean);
    auto squares = hn::Zero(d);
    for_lanes(d, task.channels, [&](auto lanes, std::int64_t c) HWY_ATTR {
      // Lanes beyond the row must not count.
      const auto present = hn::FirstN(d, static_cast<std::size_t>(task.channels - c));
      const auto x = hn::IfThenElseZero(present, hn::Sub(lanes.load(src + c), centre));
      squares = hn::MulAdd(x, x, squares);
    });
    const float inverse = 1.0F / std::sqrt(sum_of_lanes(squares) * share + task.epsilon);
    const auto factor = hn::Set(d, inverse);
    for_lanes(d, task.channels, [&](auto lanes, std::int64_t c) HWY_ATTR {
      const auto x = hn::Mul(hn::Sub(lanes.load(src + c), centre), factor);
      lanes.store(hn::MulAdd(x, lanes.load(task.scale + c), lanes.load(task.shift + c)), dst + c);
    });
    if (task.mean != nullptr) task.mean[row] = mean;
    if (task.inverse != nullptr) task.inverse[row] = inverse;
  }
}

// Adds a block of rows to diff_scale and diff_shift, in floats.
template <typename T>
HWY_INLINE void norm_backward_rows_of(const LayerNormBackwardTask& task, Range range,
                                      float* diff_scale, float* diff_shift) {
  const FloatTag d;
  const float share = 1.0F / static_cast<float>(task.channels);
  for (std::int64_t row = range.begin; row < range.end; ++row) {
    const T* const diff = task.diff_dst.row<const T>(row);
    const T* const src = task.src.row<const T>(row);
    const auto centre = hn::Set(d, task.mean[row]), inverse = hn::Set(d, task.inverse[row]);
    auto sums = hn::Zero(d), products = hn::Zero(d);
    for_lanes(d, task.channels, [&](auto lanes, std::int64_t c) HWY_ATTR {
      const auto normal = hn::Mul(hn::Sub(lanes.load(src + c), centre), inverse);
      const auto g = lanes.load(diff + c);
      lanes.store(hn::MulAdd(g, normal, lanes.load(diff_scale + c)), diff_scale + c);
      lanes.store(hn::Add(g, lanes.load(diff_shift + c)), diff_shift + c);
      const auto scaled = hn::Mul(g, lanes.load(task.scale + c));
      sums = hn::Add(sums, scaled);
      products = hn::MulAdd(scaled, normal, products);
    });
    if (task.diff_src.data == nullptr) continue;
    // diff_src = scaled * inverse + normal * slope + offset.
    const float own = task.inverse[row];
    const auto offset = hn::Set(d, -own * share * sum_of_lanes(sums));
    const auto slope = hn::Set(d, -own * own * share * sum_of_lanes(products));
    T* const to = task.diff_src.row<T>(row);
    for_lanes(d, task.channels, [&](auto lanes, std::int64_t c) HWY_ATTR {
      const auto centred = hn::Sub(lanes.load(src + c), centre);
      const auto scaled = hn::Mul(lanes.load(diff + c), lanes.load(task.scale + c));
      lanes.store(hn::MulAdd(scaled, inverse, hn::MulAdd(centred, slope, offset)), to + c);
    });
  }
}

void norm_rows(const LayerNormTask& task, Range range) {
  with_element(task.dtype,
               [&](auto element) HWY_ATTR { norm_rows_of<decltype(element)>(task, range); });
}

void norm_backward_rows(const LayerNormBackwardTask& task, Range range, float* diff_scale,
                        float* diff_shift) {
  with_element(task.dtype, [&](auto element) HWY_ATTR {
    norm_backward_rows_of<decltype(element)>(task, range, diff_scale, diff_shift);
  });
}

}  // namespace
}  // namespace HWY_NAMESPACE
}  // namespace ridgeline::native
HWY_AFTER_NAMESPACE();

#if HWY_ONCE
namespace ridgeline::native {
namespace {

HWY_EXPORT(norm_rows);
HWY_EXPORT(norm_backward_rows);

class LayerNorm final : public Kernel {
 public:
  explicit LayerNorm(const Problem& problem)
      : places_(places_of(problem)),
        attributes_(std::get<LayerNormAttributes>(problem.node().attributes)) {}

  void run(const KernelArgs& args) const override {
    const auto input = [&](std::size_t i) -> const Tensor& { return args.inputs[places_[i]]; };
    const Tensor& src = input(0);
    LayerNormTask task;
    task.dtype = src.spec.dtype;
    task.channels = src.shape()[1];
    task.src = operand_of(src);
    task.dst = operand_of(args.outputs[0]);
    task.scale = input(1).as<float>();
    task.shift = input(2).as<float>();
    task.epsilon = static_cast<float>(attributes_.epsilon);
    task.mean = args.outputs[1].as<float>();
    task.inverse = args.outputs[2].as<float>();
    const std::int64_t grain = std::max<std::int64_t>(1, 16384 / task.channels);
    parallel_for(rows_of(src).rows, grain, [&](std::int64_t begin, std::int64_t end) {
      HWY_DYNAMIC_DISPATCH(norm_rows)(task, {begin, end});
    });
  }

 private:
  std::vector<std::size_t> places_;
  LayerNormAttributes attributes_;
};

class LayerNormBackward final : public Kernel {
 public:
  explicit LayerNormBackward(const Problem& problem)
      : places_(places_of(problem)),
        channels_(problem.output(0).shape[1]),
        parts_(reduction_parts(problem.output(0).shape.elements())) {
    Carver carver(nullptr);
    (void)carve(carver);
    workspace_bytes = carver.bytes();
  }

  void run(const KernelArgs& args) const override {
    const auto input = [&](std::size_t i) -> const Tensor& { return args.inputs[places_[i]]; };
    const Tensor& src = input(1);
    LayerNormBackwardTask task;
    task.dtype = src.spec.dtype;
    task.channels = channels_;
    task.diff_dst = operand_of(input(0));
    task.src = operand_of(src);
    if (args.outputs[0].data != nullptr) task.diff_src = operand_of(args.outputs[0]);
    task.mean = input(2).as<float>();
    task.inverse = input(3).as<float>();
    task.scale = input(4).as<float>();
    Carver carver(args.workspace);
    const Scratch scratch = carve(carver);
    for_each_part(parts_, rows_of(src).rows,
                  [&](int part, Range range) { sum_part(task, scratch, part, range); });
    for (const int index : {0, 1}) {
      float* const to = args.outputs[static_cast<std::size_t>(index) + 1].as<float>();
      for (std::int64_t c = 0; to != nullptr && c < channels_; ++c) {
        to[c] = static_cast<float>(scratch.sums.total(index, c, channels_));
      }
    }
  }

 private:
  struct Scratch {
    PartialSums sums;        // of diff_scale and diff_shift
    float* block = nullptr;  // the same over a block of rows, for each part
  };

  [[nodiscard]] Scratch carve(Carver& carver) const {
    Scratch scratch;
    scratch.sums = {carver.take<double>(parts_ * 2 * channels_), parts_, 2, channels_};
    scratch.block = carver.take<float>(parts_ * 2 * channels_);
    return scratch;
  }

  void sum_part(const LayerNormBackwardTask& task, const Scratch& scratch, int part,
                Range range) const {
    constexpr std::int64_t kBlockRows = 128;  // that floats may add up
    const std::int64_t both = 2 * channels_;
    float* const block = scratch.block + part * both;
    double* const sums = scratch.sums.part(part);
    scratch.sums.clear(part);
    for (std::int64_t begin = range.begin; begin < range.end; begin += kBlockRows) {
      std::fill_n(block, both, 0.0F);
      const Range rows = {begin, std::min(begin + kBlockRows, range.end)};
      HWY_DYNAMIC_DISPATCH(norm_backward_rows)(task, rows, block, block + channels_);
      for (std::int64_t i = 0; i < both; ++i) sums[i] += static_cast<double>(block[i]);
    }
  }

  std::vector<std::size_t> places_;
  std::int64_t channels_;
  int parts_;
};

std::string check_norm(const Problem& problem) {
  const auto& attributes = std::get<LayerNormAttributes>(problem.node().attributes);
  if (attributes.groups != 0) return "group norms have kernels of their own";
  return refuse_other_than_floats(problem);
}

template <typename NormKernel>
std::unique_ptr<Kernel> make(const Problem& problem, std::span<const Layout>) {
  auto kernel = std::make_unique<NormKernel>(problem);
  set_layouts(*kernel, problem, Layout::nhwc());
  kernel->traits = {.slices = true, .in_place = true};
  return kernel;
}

constexpr KernelRow kRows[] = {
    {"layer_norm", match_one<OpKind::layer_norm>, check_norm, make<LayerNorm>},
    {"layer_norm_backward", match_one<OpKind::layer_norm_backward>, check_norm,
     make<LayerNormBackward>},
};

}  // namespace

std::span<const KernelRow> layer_norm_rows() { return kRows; }

}  // namespace ridgeline::native
#endif
