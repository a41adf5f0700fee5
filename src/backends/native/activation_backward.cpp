#include <algorithm>
#include <optional>

#include "backends/native/row_space.h"
#include "backends/native/rows.h"
#include "base/simd_targets.h"

#undef HWY_TARGET_INCLUDE
#define HWY_TARGET_INCLUDE "backends/native/activation_backward.cpp"
#include <hwy/foreach_target.h>
#include <hwy/highway.h>

#include "backends/native/activation-inl.h"
#include "backends/native/lanes-inl.h"
#include "backends/native/reduce-inl.h"
#include "plan/patterns.h"

#ifndef RIDGELINE_NATIVE_ACTIVATION_BACKWARD_TYPES
#define RIDGELINE_NATIVE_ACTIVATION_BACKWARD_TYPES
namespace ridgeline::native {
namespace {

// diff_src = backward(diff_dst [+ other], kept), and its sums over the rows where they are wanted.
struct GradientTask {
  RowSpace space;
  RowOperand diff_dst, other, kept, diff_src;
  ActivationAttributes activation;
};

}  // namespace
}  // namespace ridgeline::native
#endif

HWY_BEFORE_NAMESPACE();
namespace ridgeline::native {
namespace HWY_NAMESPACE {
namespace {

using FloatTag = hn::ScalableTag<float>;

template <typename T, bool kAdd, class Activation, class Lanes>
HWY_INLINE hn::Vec<FloatTag> gradient_at(const GradientTask& task, Activation activation,
                                         Lanes lanes, std::int64_t row, std::int64_t i) {
  auto diff = lanes.load(task.diff_dst.row<const T>(row) + i);
  if constexpr (kAdd) {
    diff = hn::Add(diff, lanes.load(task.other.row<const T>(row) + i));
  }
  const auto kept = lanes.load(task.kept.row<const T>(row) + i);
  const auto result = activation.backward(FloatTag(), diff, kept);
  lanes.store(result, task.diff_src.row<T>(row) + i);
  return result;
}

template <typename T, bool kAdd, class Activation>
HWY_INLINE void gradient_rows(const GradientTask& task, Range range, Activation activation) {
  for (std::int64_t row = range.begin; row < range.end; ++row) {
    for_lanes(FloatTag(), task.space.width_of(row), [&](auto lanes, std::int64_t i) HWY_ATTR {
      gradient_at<T, kAdd>(task, activation, lanes, row, i);
    });
  }
}

template <typename T, bool kAdd, class Activation>
HWY_INLINE void gradient_sums(const GradientTask& task, Range range, double* sums,
                              Activation activation) {
  reduce_rows<1>(FloatTag(), task.space, range, sums,
                 [&](auto lanes, std::int64_t row, std::int64_t i, auto* sum) HWY_ATTR {
                   sum[0] = hn::Add(sum[0], gradient_at<T, kAdd>(task, activation, lanes, row, i));
                 });
}

void activation_gradient_rows(const GradientTask& task, Range range) {
  with_element(task.space.dtype, [&](auto element) HWY_ATTR {
    using T = decltype(element);
    const ActivationAttributes& a = task.activation;
    if (task.other.data != nullptr) {
      with_common_activation(
          &a, [&](auto activation) HWY_ATTR { gradient_rows<T, true>(task, range, activation); });
    } else {
      with_activation(a.kind, static_cast<float>(a.slope), [&](auto activation) HWY_ATTR {
        gradient_rows<T, false>(task, range, activation);
      });
    }
  });
}

void activation_gradient_sums(const GradientTask& task, Range range, double* sums) {
  with_element(task.space.dtype, [&](auto element) HWY_ATTR {
    using T = decltype(element);
    with_common_activation(&task.activation, [&](auto activation) HWY_ATTR {
      if (task.other.data != nullptr) {
        gradient_sums<T, true>(task, range, sums, activation);
      } else {
        gradient_sums<T, false>(task, range, sums, activation);
      }
    });
  });
}

void plain_sums(const RowSpace& space, RowOperand diff_dst, Range range, double* sums) {
  with_element(space.dtype, [&](auto element) HWY_ATTR {
    using T = decltype(element);
    reduce_rows<1>(FloatTag(), space, range, sums,
                   [&](auto lanes, std::int64_t row, std::int64_t i, auto* sum) HWY_ATTR {
                     sum[0] = hn::Add(sum[0], lanes.load(diff_dst.row<const T>(row) + i));
                   });
  });
}

}  // namespace
}  // namespace HWY_NAMESPACE
}  // namespace ridgeline::native
HWY_AFTER_NAMESPACE();

#if HWY_ONCE
namespace ridgeline::native {
namespace {

HWY_EXPORT(activation_gradient_rows);
HWY_EXPORT(activation_gradient_sums);
HWY_EXPORT(plain_sums);

// Where the operands stand among the kernel's arguments.
struct GradientOperands {
  std::size_t diff_dst = 0, kept = 0;
  std::optional<std::size_t> other;      // added to diff_dst before
  std::optional<std::size_t> diff_bias;  // among the outputs; diff_src is output 0
};

void store_totals(const PartialSums& sums, const Tensor& diff_bias) {
  if (diff_bias.data == nullptr) return;
  const std::int64_t channels = diff_bias.shape()[0];
  for (std::int64_t c = 0; c < channels; ++c) {
    diff_bias.as<float>()[c] = static_cast<float>(sums.total(0, c, channels));
  }
}

class ActivationBackward final : public Kernel {
 public:
  ActivationBackward(const GradientOperands& operands, const ActivationAttributes& activation,
                     int parts)
      : operands_(operands), activation_(activation), parts_(parts) {}

  void run(const KernelArgs& args) const override {
    const Tensor& diff_dst = args.inputs[operands_.diff_dst];
    const Tensor& kept = args.inputs[operands_.kept];
    const Tensor& other = args.inputs[operands_.other.value_or(operands_.diff_dst)];
    const Tensor& diff_src = args.outputs[0];
    GradientTask task;
    task.space = operands_.diff_bias ? channel_space({&diff_dst, &kept, &other, &diff_src})
                                     : element_space({&diff_dst, &kept, &other, &diff_src});
    task.diff_dst = task.space.operand(diff_dst);
    task.kept = task.space.operand(kept);
    if (operands_.other) task.other = task.space.operand(other);
    task.diff_src = task.space.operand(diff_src);
    task.activation = activation_;
    if (!operands_.diff_bias) {
      parallel_for(task.space.rows, task.space.grain(), [&](std::int64_t begin, std::int64_t end) {
        HWY_DYNAMIC_DISPATCH(activation_gradient_rows)(task, {begin, end});
      });
      return;
    }
    const PartialSums sums{reinterpret_cast<double*>(args.workspace), parts_, 1, task.space.width};
    for_each_part(parts_, task.space.rows, [&](int part, Range range) {
      sums.clear(part);
      HWY_DYNAMIC_DISPATCH(activation_gradient_sums)(task, range, sums.part(part));
    });
    store_totals(sums, args.outputs[*operands_.diff_bias]);
  }

 private:
  GradientOperands operands_;
  ActivationAttributes activation_;
  int parts_;
};

class BiasBackward final : public Kernel {
 public:
  explicit BiasBackward(int parts) : parts_(parts) {}

  void run(const KernelArgs& args) const override {
    const Tensor& diff_dst = args.inputs[0];
    const RowSpace space = channel_space({&diff_dst});
    const PartialSums sums{reinterpret_cast<double*>(args.workspace), parts_, 1, space.width};
    for_each_part(parts_, space.rows, [&](int part, Range range) {
      sums.clear(part);
      HWY_DYNAMIC_DISPATCH(plain_sums)(space, space.operand(diff_dst), range, sums.part(part));
    });
    store_totals(sums, args.outputs[0]);
  }

 private:
  int parts_;
};

std::size_t sums_bytes(const Shape& diff_dst, int parts) {
  Carver carver(nullptr);
  carver.take<double>(parts * channel_period(diff_dst[1]));
  return carver.bytes();
}

std::unique_ptr<Kernel> make_gradient(const Problem& problem, std::span<const Layout> layouts) {
  std::size_t at = problem.node().kind == OpKind::add ? 1 : 0;
  const Node& activation = problem.node(at);
  GradientOperands operands;
  operands.kept = problem.input_index(activation.inputs[1]);
  if (at == 1) {
    operands.diff_dst = problem.input_index(problem.node().inputs[0]);
    operands.other = problem.input_index(problem.node().inputs[1]);
  } else {
    operands.diff_dst = problem.input_index(activation.inputs[0]);
  }
  const bool with_bias = at + 1 < problem.nodes.size();
  if (with_bias) operands.diff_bias = problem.output_index(problem.node(at + 1).outputs[0]);

  const Shape& shape = problem.input(operands.diff_dst).shape;
  const int parts = reduction_parts(shape.elements());
  auto kernel = std::make_unique<ActivationBackward>(
      operands, std::get<ActivationAttributes>(activation.attributes), parts);
  set_layouts(*kernel, problem, with_bias ? Layout::nhwc() : common_layout(problem, layouts));
  kernel->workspace_bytes = with_bias ? sums_bytes(shape, parts) : 0;
  kernel->traits = {.slices = true, .in_place = true};
  return kernel;
}

std::unique_ptr<Kernel> make_bias_backward(const Problem& problem, std::span<const Layout>) {
  const int parts = reduction_parts(problem.input(0).shape.elements());
  auto kernel = std::make_unique<BiasBackward>(parts);
  set_layouts(*kernel, problem, Layout::nhwc());
  kernel->workspace_bytes = sums_bytes(problem.input(0).shape, parts);
  kernel->traits = {.slices = true};
  return kernel;
}

std::string check_channels(const Problem& problem) {
  const int rank = problem.input(0).shape.rank();
  if (rank != 2 && rank != 4) return "sums per channel are taken over rank 2 and 4";
  return refuse_other_than_floats(problem);
}

constexpr KernelRow kRows[] = {
    {"add_act_backward_bias", patterns::add_act_backward_bias, check_channels, make_gradient},
    {"act_backward_bias", patterns::act_backward_bias, check_channels, make_gradient},
    {"add_act_backward", patterns::add_act_backward, refuse_other_than_floats, make_gradient},
    {"activation_backward", match_one<OpKind::activation_backward>, refuse_other_than_floats,
     make_gradient},
    {"bias_backward", match_one<OpKind::bias_backward>, check_channels, make_bias_backward},
};

}  // namespace

std::span<const KernelRow> activation_backward_rows() { return kRows; }

}  // namespace ridgeline::native
#endif
