#include <algorithm>
#include <cmath>
#include <optional>

#include "backends/native/row_space.h"
#include "backends/native/rows.h"
#include "base/simd_targets.h"

#undef HWY_TARGET_INCLUDE
#define HWY_TARGET_INCLUDE "backends/native/batch_norm_backward.cpp"
#include <hwy/foreach_target.h>
#include <hwy/highway.h>

#include "backends/native/activation-inl.h"
#include "backends/native/lanes-inl.h"
#include "backends/native/reduce-inl.h"
#include "plan/patterns.h"

#ifndef RIDGELINE_NATIVE_BATCH_NORM_BACKWARD_TYPES
#define RIDGELINE_NATIVE_BATCH_NORM_BACKWARD_TYPES
namespace ridgeline::native {
namespace {

// The gradient before the normalisation is g = backward(diff [+ other], kept), where kept may be
// computed again as (src - mean) * factor + shift. Reducing sums g and g * (src - mean), and stores
// g where it is wanted; applying computes diff_src = g * factor + (src - mean) * slope + offset.
// mean, factor, shift, slope, offset are rows.
struct BackwardTask {
  RowSpace space;
  RowOperand diff, other, kept, src, stored, diff_src;
  const float* mean = nullptr;
  const float* factor = nullptr;
  const float* shift = nullptr;  // null: kept is given
  const float* slope = nullptr;
  const float* offset = nullptr;
  const ActivationAttributes* activation = nullptr;  // none: null
};

}  // namespace
}  // namespace ridgeline::native
#endif

HWY_BEFORE_NAMESPACE();
namespace ridgeline::native {
namespace HWY_NAMESPACE {
namespace {

using FloatTag = hn::ScalableTag<float>;

template <typename T, typename Lanes>
HWY_INLINE hn::Vec<FloatTag> load_at(Lanes lanes, const RowOperand& operand, std::int64_t row,
                                     std::int64_t i) {
  return lanes.load(operand.row<const T>(row) + i);
}

// `centred` is src - mean there.
template <typename T, class Activation, typename Lanes>
HWY_INLINE hn::Vec<FloatTag> gradient_at(const BackwardTask& task, Activation activation,
                                         Lanes lanes, std::int64_t row, std::int64_t i,
                                         hn::Vec<FloatTag> centred) {
  auto diff = load_at<T>(lanes, task.diff, row, i);
  if (task.other.data != nullptr) diff = hn::Add(diff, load_at<T>(lanes, task.other, row, i));
  if constexpr (Activation::kActive) {
    const auto kept = task.shift == nullptr ? load_at<T>(lanes, task.kept, row, i)
                                            : hn::MulAdd(centred, lanes.load(task.factor + i),
                                                         lanes.load(task.shift + i));
    diff = activation.backward(FloatTag(), diff, kept);
  }
  return diff;
}

// Whether there is another gradient and whether the sum is stored is asked of every vector: a copy
// of the loop for each case gains nothing. The task is a copy, which stays in registers: a
// reference would be read again after each vector that is stored.
template <typename T, class Activation>
HWY_INLINE void reduce_with(const BackwardTask task, Range range, double* sums,
                            Activation activation) {
  reduce_rows<2>(FloatTag(), task.space, range, sums,
                 [=](auto lanes, std::int64_t row, std::int64_t i, auto* sum) HWY_ATTR {
                   const auto centred =
                       hn::Sub(load_at<T>(lanes, task.src, row, i), lanes.load(task.mean + i));
                   const auto diff = gradient_at<T>(task, activation, lanes, row, i, centred);
                   if (task.stored.data != nullptr) {
                     lanes.store(diff, task.stored.row<T>(row) + i);
                   }
                   sum[0] = hn::Add(sum[0], diff);
                   sum[1] = hn::MulAdd(diff, centred, sum[1]);
                 });
}

template <typename T, class Activation>
HWY_INLINE void apply_with(const BackwardTask task, Range range, Activation activation) {
  for (std::int64_t row = range.begin; row < range.end; ++row) {
    for_lanes(FloatTag(), task.space.width_of(row), [=](auto lanes, std::int64_t i) HWY_ATTR {
      const auto centred = hn::Sub(load_at<T>(lanes, task.src, row, i), lanes.load(task.mean + i));
      const auto diff = gradient_at<T>(task, activation, lanes, row, i, centred);
      const auto x = hn::MulAdd(centred, lanes.load(task.slope + i), lanes.load(task.offset + i));
      lanes.store(hn::MulAdd(diff, lanes.load(task.factor + i), x), task.diff_src.row<T>(row) + i);
    });
  }
}

void reduce_gradient(const BackwardTask& task, Range range, double* sums) {
  with_element(task.space.dtype, [&](auto element) HWY_ATTR {
    with_norm_activation(task.activation, [&](auto activation) HWY_ATTR {
      reduce_with<decltype(element)>(task, range, sums, activation);
    });
  });
}

template <typename T>
HWY_INLINE void apply_as(const BackwardTask& task, Range range) {
  // A stored gradient is read back instead of being computed again.
  if (task.stored.data != nullptr) {
    BackwardTask again = task;
    again.diff = task.stored;
    again.other = {};
    return apply_with<T>(again, range, NoActivation());
  }
  with_norm_activation(task.activation,
                       [&](auto activation) HWY_ATTR { apply_with<T>(task, range, activation); });
}

void apply_gradient(const BackwardTask& task, Range range) {
  with_element(task.space.dtype,
               [&](auto element) HWY_ATTR { apply_as<decltype(element)>(task, range); });
}

}  // namespace
}  // namespace HWY_NAMESPACE
}  // namespace ridgeline::native
HWY_AFTER_NAMESPACE();

#if HWY_ONCE
namespace ridgeline::native {
namespace {

HWY_EXPORT(reduce_gradient);
HWY_EXPORT(apply_gradient);

// Numbers per channel, each repeated over a row, and the sums.
struct Scratch {
  float *mean, *factor, *slope, *offset, *shift;
  double *channel_scale, *channel_shift;  // the reduced gradients, before rounding
  PartialSums sums;
  std::size_t bytes;
};

class Backward final : public Kernel {
 public:
  Backward(const patterns::NormBackwardOperands& operands, const Shape& src)
      : operands_(operands),
        attributes_(operands.attributes),
        activation_(operands.activation),
        channels_(src[1]),
        parts_(reduction_parts(src.elements())) {
    workspace_bytes = carve(nullptr, channel_period(channels_)).bytes;
    // Where src comes first, it is read again after what others read of the gradient was written.
    traits = {.slices = true, .in_place = operands.diff == 0 || !operands.stored};
  }

  void run(const KernelArgs& args) const override {
    BackwardTask task = make_task(args);
    const Scratch scratch = carve(args.workspace, task.space.width);
    const float* mean = args.inputs[operands_.mean].as<float>();
    repeat_channels({mean, static_cast<std::size_t>(channels_)}, task.space.width, scratch.mean);
    task.mean = scratch.mean;
    if (operands_.scale) set_factor(args, task, scratch);
    if (operands_.shift) {
      const float* shift = args.inputs[*operands_.shift].as<float>();
      repeat_channels({shift, static_cast<std::size_t>(channels_)}, task.space.width,
                      scratch.shift);
      task.shift = scratch.shift;
    }
    if (operands_.reduce) {
      reduce(args, task, scratch);
    } else {
      take_given(args, scratch);
    }
    if (operands_.apply) apply(args, task, scratch);
  }

 private:
  [[nodiscard]] Scratch carve(std::byte* workspace, std::int64_t width) const {
    Carver carver(workspace);
    Scratch scratch{};
    scratch.mean = carver.take<float>(width);
    scratch.factor = carver.take<float>(width);
    scratch.slope = carver.take<float>(width);
    scratch.offset = carver.take<float>(width);
    scratch.shift = carver.take<float>(width);
    scratch.channel_scale = carver.take<double>(channels_);
    scratch.channel_shift = carver.take<double>(channels_);
    scratch.sums = {carver.take<double>(parts_ * 2 * width), parts_, 2, width};
    scratch.bytes = carver.bytes();
    return scratch;
  }

  [[nodiscard]] BackwardTask make_task(const KernelArgs& args) const {
    const Tensor& diff = args.inputs[operands_.diff];
    const auto input = [&](std::optional<std::size_t> index) -> const Tensor& {
      return index ? args.inputs[*index] : diff;
    };
    const auto output = [&](std::optional<std::size_t> index) -> const Tensor& {
      return index && args.outputs[*index].data != nullptr ? args.outputs[*index] : diff;
    };
    BackwardTask task;
    task.space = channel_space({&diff, &args.inputs[operands_.src], &input(operands_.other),
                                &input(operands_.kept), &output(operands_.stored),
                                &output(operands_.diff_src)});
    task.diff = task.space.operand(diff);
    task.src = task.space.operand(args.inputs[operands_.src]);
    if (operands_.other) task.other = task.space.operand(input(operands_.other));
    if (operands_.kept) task.kept = task.space.operand(input(operands_.kept));
    if (operands_.stored) task.stored = task.space.operand(args.outputs[*operands_.stored]);
    if (operands_.diff_src) task.diff_src = task.space.operand(args.outputs[*operands_.diff_src]);
    if (activation_) task.activation = &*activation_;
    return task;
  }

  [[nodiscard]] double inverse_deviation(const KernelArgs& args, std::int64_t c) const {
    const double variance = args.inputs[operands_.variance].as<float>()[c];
    return 1.0 / std::sqrt(variance + attributes_.epsilon);
  }

  void set_factor(const KernelArgs& args, BackwardTask& task, const Scratch& scratch) const {
    const float* scale = args.inputs[*operands_.scale].as<float>();
    for (std::int64_t c = 0; c < channels_; ++c) {
      scratch.factor[c] = static_cast<float>(scale[c] * inverse_deviation(args, c));
    }
    repeat_first_channels(channels_, task.space.width, scratch.factor);
    task.factor = scratch.factor;
  }

  void reduce(const KernelArgs& args, const BackwardTask& task, const Scratch& scratch) const {
    for_each_part(parts_, task.space.rows, [&](int part, Range range) {
      scratch.sums.clear(part);
      HWY_DYNAMIC_DISPATCH(reduce_gradient)(task, range, scratch.sums.part(part));
    });
    const auto store = [&](std::optional<std::size_t> output, std::int64_t c, double value) {
      if (output && args.outputs[*output].data != nullptr) {
        args.outputs[*output].as<float>()[c] = static_cast<float>(value);
      }
    };
    for (std::int64_t c = 0; c < channels_; ++c) {
      scratch.channel_shift[c] = scratch.sums.total(0, c, channels_);
      scratch.channel_scale[c] = scratch.sums.total(1, c, channels_) * inverse_deviation(args, c);
      store(operands_.diff_scale, c, scratch.channel_scale[c]);
      store(operands_.diff_shift, c, scratch.channel_shift[c]);
    }
  }

  void take_given(const KernelArgs& args, const Scratch& scratch) const {
    for (std::int64_t c = 0; c < channels_; ++c) {
      scratch.channel_scale[c] = args.inputs[*operands_.given_scale].as<float>()[c];
      scratch.channel_shift[c] = args.inputs[*operands_.given_shift].as<float>()[c];
    }
  }

  void apply(const KernelArgs& args, BackwardTask& task, const Scratch& scratch) const {
    const std::int64_t width = task.space.width;
    const auto count = static_cast<double>(args.inputs[operands_.src].shape().elements()) /
                       static_cast<double>(channels_);
    for (std::int64_t c = 0; c < channels_; ++c) {
      const double inverse = inverse_deviation(args, c);
      const double factor = args.inputs[*operands_.scale].as<float>()[c] * inverse;
      const double through = attributes_.frozen ? 0.0 : factor / count;
      scratch.slope[c] = static_cast<float>(-through * inverse * scratch.channel_scale[c]);
      scratch.offset[c] = static_cast<float>(-through * scratch.channel_shift[c]);
    }
    for (float* row : {scratch.slope, scratch.offset}) {
      repeat_first_channels(channels_, width, row);
    }
    task.slope = scratch.slope;
    task.offset = scratch.offset;
    parallel_for(task.space.rows, task.space.grain(), [&](std::int64_t begin, std::int64_t end) {
      HWY_DYNAMIC_DISPATCH(apply_gradient)(task, {begin, end});
    });
  }

  patterns::NormBackwardOperands operands_;
  BatchNormAttributes attributes_;
  std::optional<ActivationAttributes> activation_;
  std::int64_t channels_;
  int parts_;
};

std::unique_ptr<Kernel> make_backward(const Problem& problem, std::span<const Layout>) {
  const patterns::NormBackwardOperands operands = patterns::norm_backward_operands(problem);
  auto kernel = std::make_unique<Backward>(operands, problem.input(operands.src).shape);
  set_layouts(*kernel, problem, Layout::nhwc());
  return kernel;
}

std::string check_backward(const Problem& problem) {
  const int rank = problem.input(0).shape.rank();
  if (rank != 2 && rank != 4) return "the batch norm kernels work on rank 2 and 4";
  return refuse_other_than_floats(problem);
}

constexpr KernelRow kRows[] = {
    {"add_again_act_bn_backward", patterns::add_again_act_bn_backward, check_backward,
     make_backward},
    {"again_act_bn_backward", patterns::again_act_bn_backward, check_backward, make_backward},
    {"add_act_bn_backward", patterns::add_act_bn_backward, check_backward, make_backward},
    {"act_bn_backward", patterns::act_bn_backward, check_backward, make_backward},
    {"add_bn_backward", patterns::add_bn_backward, check_backward, make_backward},
    {"bn_backward_reduce", match_one<OpKind::bn_backward_reduce>, check_backward, make_backward},
    {"bn_backward_apply", match_one<OpKind::bn_backward_apply>, check_backward, make_backward},
};

}  // namespace

std::span<const KernelRow> batch_norm_backward_rows() { return kRows; }

}  // namespace ridgeline::native
#endif
