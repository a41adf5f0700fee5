#include <algorithm>
#include <cmath>

#include "backends/native/row_space.h"
#include "backends/native/rows.h"
#include "base/simd_targets.h"

#undef HWY_TARGET_INCLUDE
#define HWY_TARGET_INCLUDE "backends/native/group_norm.cpp"
#include <hwy/foreach_target.h>
#include <hwy/highway.h>

#include "backends/native/lanes-inl.h"
#include "backends/native/reduce-inl.h"

#ifndef RIDGELINE_NATIVE_GROUP_NORM_TYPES
#define RIDGELINE_NATIVE_GROUP_NORM_TYPES
namespace ridgeline::native {
namespace {

// The pixels of one sample; numbers per channel stand in rows of `space.width`.
struct SampleTask {
  RowSpace space;
  RowOperand src, diff_dst, dst;
  const float *origin = nullptr, *factor = nullptr, *slope = nullptr, *offset = nullptr;
};

}  // namespace
}  // namespace ridgeline::native
#endif

HWY_BEFORE_NAMESPACE();
namespace ridgeline::native {
namespace HWY_NAMESPACE {
namespace {

using FloatTag = hn::ScalableTag<float>;

template <typename T, class Lanes>
HWY_INLINE hn::Vec<FloatTag> load_at(Lanes lanes, const RowOperand& operand, std::int64_t row,
                                     std::int64_t i) {
  return lanes.load(operand.row<const T>(row) + i);
}

// Sums of src - origin and of its square for each channel.
template <typename T>
HWY_INLINE void sums_of(const SampleTask& task, double* sums) {
  reduce_rows<2>(FloatTag(), task.space, {0, task.space.rows}, sums,
                 [&](auto lanes, std::int64_t row, std::int64_t i, auto* sum) HWY_ATTR {
                   const auto x =
                       hn::Sub(load_at<T>(lanes, task.src, row, i), lanes.load(task.origin + i));
                   sum[0] = hn::Add(sum[0], x);
                   sum[1] = hn::MulAdd(x, x, sum[1]);
                 });
}

// Sums of diff_dst and of diff_dst * (src - origin).
template <typename T>
HWY_INLINE void gradient_sums_of(const SampleTask& task, double* sums) {
  reduce_rows<2>(FloatTag(), task.space, {0, task.space.rows}, sums,
                 [&](auto lanes, std::int64_t row, std::int64_t i, auto* sum) HWY_ATTR {
                   const auto x =
                       hn::Sub(load_at<T>(lanes, task.src, row, i), lanes.load(task.origin + i));
                   const auto diff = load_at<T>(lanes, task.diff_dst, row, i);
                   sum[0] = hn::Add(sum[0], diff);
                   sum[1] = hn::MulAdd(diff, x, sum[1]);
                 });
}

// dst = (src - origin) * slope + offset [+ diff_dst * factor].
template <typename T>
HWY_INLINE void apply_of(const SampleTask& task) {
  const bool backward = task.diff_dst.data != nullptr;
  for (std::int64_t row = 0; row < task.space.rows; ++row) {
    for_lanes(FloatTag(), task.space.width_of(row), [&](auto lanes, std::int64_t i) HWY_ATTR {
      const auto x = hn::Sub(load_at<T>(lanes, task.src, row, i), lanes.load(task.origin + i));
      auto result = hn::MulAdd(x, lanes.load(task.slope + i), lanes.load(task.offset + i));
      if (backward) {
        const auto diff = load_at<T>(lanes, task.diff_dst, row, i);
        result = hn::MulAdd(diff, lanes.load(task.factor + i), result);
      }
      lanes.store(result, task.dst.row<T>(row) + i);
    });
  }
}

void sample_sums(const SampleTask& task, double* sums) {
  with_element(task.space.dtype,
               [&](auto element) HWY_ATTR { sums_of<decltype(element)>(task, sums); });
}
void gradient_sums(const SampleTask& task, double* sums) {
  with_element(task.space.dtype,
               [&](auto element) HWY_ATTR { gradient_sums_of<decltype(element)>(task, sums); });
}
void sample_apply(const SampleTask& task) {
  with_element(task.space.dtype, [&](auto element) HWY_ATTR { apply_of<decltype(element)>(task); });
}

}  // namespace
}  // namespace HWY_NAMESPACE
}  // namespace ridgeline::native
HWY_AFTER_NAMESPACE();

#if HWY_ONCE
namespace ridgeline::native {
namespace {

HWY_EXPORT(sample_sums);
HWY_EXPORT(gradient_sums);
HWY_EXPORT(sample_apply);

// What both directions share: samples are the threads' work, each with scratch of its own.
class GroupNormKernel : public Kernel {
 protected:
  GroupNormKernel(const Problem& problem, const Shape& src)
      : places_(places_of(problem)),
        attributes_(std::get<LayerNormAttributes>(problem.node().attributes)),
        shape_(src),
        parts_(reduction_parts(src.elements())),
        of_group_(src[1] / attributes_.groups) {
    traits = {.slices = true, .in_place = true};
  }

  // Rows of numbers per channel, and two sums for each column.
  struct Scratch {
    float *origin, *factor, *slope, *offset;
    PartialSums sums;
  };

  [[nodiscard]] Scratch carve(Carver& carver, std::int64_t width) const {
    return {carver.take<float>(width),
            carver.take<float>(width),
            carver.take<float>(width),
            carver.take<float>(width),
            {carver.take<double>(2 * width), 1, 2, width}};
  }
  [[nodiscard]] std::size_t scratch_bytes() const {
    Carver carver(nullptr);
    (void)carve(carver, channel_period(shape_[1]));
    return carver.bytes();
  }
  [[nodiscard]] Scratch scratch_of(std::byte* workspace, int part, std::int64_t width) const {
    Carver carver(workspace + static_cast<std::size_t>(part) * scratch_bytes());
    return carve(carver, width);
  }

  [[nodiscard]] std::int64_t pixels() const { return shape_.height() * shape_.width(); }

  // The rows of one sample, and an operand's place in it.
  [[nodiscard]] RowSpace sample_space(const RowSpace& all) const {
    const std::int64_t elements = pixels() * shape_[1];
    RowSpace space = all;
    space.rows = (elements + all.width - 1) / all.width;
    space.last_width = elements - (space.rows - 1) * all.width;
    return space;
  }
  [[nodiscard]] RowOperand at_sample(const RowSpace& all, const Tensor& tensor,
                                     std::int64_t n) const {
    RowOperand operand = all.operand(tensor);
    operand.data += n * pixels() * (all.flat ? shape_[1] : operand.stride) *
                    static_cast<std::int64_t>(size_of(all.dtype));
    return operand;
  }

  void repeat(float* row, std::int64_t width) const {
    repeat_first_channels(shape_[1], width, row);
  }

  std::vector<std::size_t> places_;
  LayerNormAttributes attributes_;
  Shape shape_;
  int parts_;
  std::int64_t of_group_;
};

class GroupNorm final : public GroupNormKernel {
 public:
  explicit GroupNorm(const Problem& problem) : GroupNormKernel(problem, problem.input(0).shape) {
    workspace_bytes = static_cast<std::size_t>(parts_) * scratch_bytes();
  }

  void run(const KernelArgs& args) const override {
    const Tensor &src = args.inputs[places_[0]], &dst = args.outputs[0];
    const RowSpace all = channel_space({&src, &dst});
    for_each_part(parts_, shape_[0], [&](int part, Range range) {
      const Scratch scratch = scratch_of(args.workspace, part, all.width);
      for (std::int64_t n = range.begin; n < range.end; ++n) {
        SampleTask task;
        task.space = sample_space(all);
        task.src = at_sample(all, src, n);
        task.dst = at_sample(all, dst, n);
        task.origin = scratch.origin;
        task.slope = scratch.slope;
        task.offset = scratch.offset;
        // The first pixel: sums taken around it lose no digits however far src lies from zero.
        if (all.dtype == DType::bf16) {
          std::transform(task.src.row<BFloat16>(0), task.src.row<BFloat16>(0) + shape_[1],
                         scratch.origin, [](BFloat16 x) { return float_of(x); });
        } else {
          std::copy_n(task.src.row<float>(0), shape_[1], scratch.origin);
        }
        repeat(scratch.origin, all.width);
        scratch.sums.clear(0);
        HWY_DYNAMIC_DISPATCH(sample_sums)(task, scratch.sums.part(0));
        for (std::int64_t g = 0; g < attributes_.groups; ++g) set_group(args, scratch, n, g);
        repeat(scratch.slope, all.width);
        repeat(scratch.offset, all.width);
        HWY_DYNAMIC_DISPATCH(sample_apply)(task);
      }
    });
  }

 private:
  // A group's statistics out of its channels' sums, and what they make of each channel.
  void set_group(const KernelArgs& args, const Scratch& scratch, std::int64_t n,
                 std::int64_t group) const {
    const std::int64_t begin = group * of_group_, end = begin + of_group_;
    const auto count = static_cast<double>(pixels());
    const auto sum = [&](int index, std::int64_t c) {
      return scratch.sums.total(index, c, shape_[1]);
    };
    double mean = 0.0, variance = 0.0;
    for (std::int64_t c = begin; c < end; ++c) {
      mean += (scratch.origin[c] + sum(0, c) / count) / static_cast<double>(of_group_);
    }
    for (std::int64_t c = begin; c < end; ++c) {
      const double shift = scratch.origin[c] - mean;
      variance += sum(1, c) + 2.0 * shift * sum(0, c) + count * shift * shift;
    }
    variance = std::max(0.0, variance / (count * static_cast<double>(of_group_)));
    const double inverse = 1.0 / std::sqrt(variance + attributes_.epsilon);
    const float* scale = args.inputs[places_[1]].as<float>();
    const float* shift = args.inputs[places_[2]].as<float>();
    for (std::int64_t c = begin; c < end; ++c) {
      const double slope = scale[c] * inverse;
      scratch.slope[c] = static_cast<float>(slope);
      scratch.offset[c] = static_cast<float>((scratch.origin[c] - mean) * slope + shift[c]);
    }
    store(args.outputs[1], n, group, mean);
    store(args.outputs[2], n, group, inverse);
  }

  static void store(const Tensor& statistics, std::int64_t n, std::int64_t group, double value) {
    if (statistics.data == nullptr) return;
    statistics.as<float>()[n * statistics.shape()[1] + group] = static_cast<float>(value);
  }
};

class GroupNormBackward final : public GroupNormKernel {
 public:
  explicit GroupNormBackward(const Problem& problem)
      : GroupNormKernel(problem, problem.output(0).shape) {
    Carver carver(nullptr);
    carver.take<double>(parts_ * 2 * shape_[1]);
    workspace_bytes = carver.bytes() + static_cast<std::size_t>(parts_) * scratch_bytes();
  }

  void run(const KernelArgs& args) const override {
    const Tensor &diff_dst = args.inputs[places_[0]], &src = args.inputs[places_[1]];
    const Tensor& diff_src = args.outputs[0].data != nullptr ? args.outputs[0] : diff_dst;
    const RowSpace all = channel_space({&diff_dst, &src, &diff_src});
    Carver carver(args.workspace);
    const PartialSums sums{carver.take<double>(parts_ * 2 * shape_[1]), parts_, 2, shape_[1]};
    std::byte* const scratches = args.workspace + carver.bytes();
    for_each_part(parts_, shape_[0], [&](int part, Range range) {
      sums.clear(part);
      const Scratch scratch = scratch_of(scratches, part, all.width);
      for (std::int64_t n = range.begin; n < range.end; ++n) {
        SampleTask task;
        task.space = sample_space(all);
        task.src = at_sample(all, src, n);
        task.diff_dst = at_sample(all, diff_dst, n);
        task.dst = at_sample(all, diff_src, n);
        sample(args, task, scratch, n, sums.part(part));
      }
    });
    for (const int index : {0, 1}) {
      float* const to = args.outputs[static_cast<std::size_t>(index) + 1].as<float>();
      for (std::int64_t c = 0; to != nullptr && c < shape_[1]; ++c) {
        to[c] = static_cast<float>(sums.total(index, c, shape_[1]));
      }
    }
  }

 private:
  [[nodiscard]] double statistic(const KernelArgs& args, std::size_t input, std::int64_t n,
                                 std::int64_t channel) const {
    const Tensor& tensor = args.inputs[places_[input]];
    return tensor.as<float>()[n * attributes_.groups + channel / of_group_];
  }

  void sample(const KernelArgs& args, SampleTask& task, const Scratch& scratch, std::int64_t n,
              double* totals) const {
    const std::int64_t channels = shape_[1], width = task.space.width;
    task.origin = scratch.origin;
    for (std::int64_t c = 0; c < channels; ++c) {
      scratch.origin[c] = static_cast<float>(statistic(args, 2, n, c));
    }
    repeat(scratch.origin, width);
    scratch.sums.clear(0);
    HWY_DYNAMIC_DISPATCH(gradient_sums)(task, scratch.sums.part(0));
    for (std::int64_t c = 0; c < channels; ++c) {
      totals[c] += scratch.sums.total(1, c, channels) * statistic(args, 3, n, c);
      totals[channels + c] += scratch.sums.total(0, c, channels);
    }
    if (args.outputs[0].data == nullptr) return;
    for (std::int64_t g = 0; g < attributes_.groups; ++g) set_group(args, scratch, n, g);
    for (float* row : {scratch.factor, scratch.slope, scratch.offset}) repeat(row, width);
    task.factor = scratch.factor;
    task.slope = scratch.slope;
    task.offset = scratch.offset;
    HWY_DYNAMIC_DISPATCH(sample_apply)(task);
  }

  void set_group(const KernelArgs& args, const Scratch& scratch, std::int64_t n,
                 std::int64_t group) const {
    const std::int64_t begin = group * of_group_, end = begin + of_group_;
    const double inverse = statistic(args, 3, n, begin);
    const float* scale = args.inputs[places_[4]].as<float>();
    double sum = 0.0, products = 0.0;
    for (std::int64_t c = begin; c < end; ++c) {
      sum += scale[c] * scratch.sums.total(0, c, shape_[1]);
      products += scale[c] * scratch.sums.total(1, c, shape_[1]) * inverse;
    }
    const double share = inverse / static_cast<double>(of_group_ * pixels());
    for (std::int64_t c = begin; c < end; ++c) {
      scratch.factor[c] = static_cast<float>(scale[c] * inverse);
      scratch.slope[c] = static_cast<float>(-share * inverse * products);
      scratch.offset[c] = static_cast<float>(-share * sum);
    }
  }
};

std::string check_norm(const Problem& problem) {
  if (std::get<LayerNormAttributes>(problem.node().attributes).groups == 0) {
    return "layer norms have kernels of their own";
  }
  return refuse_other_than_floats(problem);
}

template <typename NormKernel>
std::unique_ptr<Kernel> make(const Problem& problem, std::span<const Layout>) {
  auto kernel = std::make_unique<NormKernel>(problem);
  set_layouts(*kernel, problem, Layout::nhwc());
  return kernel;
}

constexpr KernelRow kRows[] = {
    {"group_norm", match_one<OpKind::layer_norm>, check_norm, make<GroupNorm>},
    {"group_norm_backward", match_one<OpKind::layer_norm_backward>, check_norm,
     make<GroupNormBackward>},
};

}  // namespace

std::span<const KernelRow> group_norm_rows() { return kRows; }

}  // namespace ridgeline::native
#endif
