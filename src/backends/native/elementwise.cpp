#include <optional>

#include "backends/native/row_space.h"
#include "backends/native/rows.h"
#include "base/simd_targets.h"

#undef HWY_TARGET_INCLUDE
#define HWY_TARGET_INCLUDE "backends/native/elementwise.cpp"
#include <hwy/foreach_target.h>
#include <hwy/highway.h>

#include "backends/native/activation-inl.h"
#include "backends/native/lanes-inl.h"
#include "plan/patterns.h"

#ifndef RIDGELINE_NATIVE_ELEMENTWISE_TYPES
#define RIDGELINE_NATIVE_ELEMENTWISE_TYPES
namespace ridgeline::native {
namespace {

// dst = activation(src [+ other, or a number per channel]); one of the two may be absent.
struct ElementwiseTask {
  RowSpace space;
  RowOperand src, other, dst;
  const float* bias = nullptr;                       // a row, in the place of `other`
  const ActivationAttributes* activation = nullptr;  // none: null
};

}  // namespace
}  // namespace ridgeline::native
#endif

HWY_BEFORE_NAMESPACE();
namespace ridgeline::native {
namespace HWY_NAMESPACE {
namespace {

template <typename T, class Add, class Activation>
HWY_INLINE void compute_rows(const ElementwiseTask& task, Range range, Add add,
                             Activation activation) {
  const hn::ScalableTag<float> d;
  for (std::int64_t row = range.begin; row < range.end; ++row) {
    const T* src = task.src.row<const T>(row);
    T* dst = task.dst.row<T>(row);
    for_lanes(d, task.space.width_of(row), [&](auto lanes, std::int64_t i) HWY_ATTR {
      const auto x = add(lanes, lanes.load(src + i), row, i);
      lanes.store(activation.forward(d, x), dst + i);
    });
  }
}

void elementwise_rows_of(const ElementwiseTask& task, Range range) {
  with_element(task.space.dtype, [&](auto element) HWY_ATTR {
    using T = decltype(element);
    const auto add_other = [&](auto lanes, auto x, std::int64_t row, std::int64_t i) HWY_ATTR {
      return hn::Add(x, lanes.load(task.other.row<const T>(row) + i));
    };
    const auto add_bias = [&](auto lanes, auto x, std::int64_t, std::int64_t i)
                              HWY_ATTR { return hn::Add(x, lanes.load(task.bias + i)); };
    const auto add_none = [](auto, auto x, std::int64_t, std::int64_t) HWY_ATTR { return x; };
    if (task.bias != nullptr) {
      compute_rows<T>(task, range, add_bias, NoActivation());
    } else if (task.other.data != nullptr) {
      with_common_activation(task.activation, [&](auto activation) HWY_ATTR {
        compute_rows<T>(task, range, add_other, activation);
      });
    } else {
      with_activation(task.activation->kind, static_cast<float>(task.activation->slope),
                      [&](auto activation)
                          HWY_ATTR { compute_rows<T>(task, range, add_none, activation); });
    }
  });
}

}  // namespace
}  // namespace HWY_NAMESPACE
}  // namespace ridgeline::native
HWY_AFTER_NAMESPACE();

#if HWY_ONCE
namespace ridgeline::native {
namespace {

HWY_EXPORT(elementwise_rows_of);

void run_task(const ElementwiseTask& task) {
  parallel_for(task.space.rows, task.space.grain(), [&](std::int64_t begin, std::int64_t end) {
    HWY_DYNAMIC_DISPATCH(elementwise_rows_of)(task, {begin, end});
  });
}

class Elementwise final : public Kernel {
 public:
  // Whether the second input is added, and what follows.
  Elementwise(bool add, const ActivationAttributes* activation) : add_(add) {
    if (activation != nullptr) activation_ = *activation;
  }

  void run(const KernelArgs& args) const override {
    const Tensor& src = args.inputs[0];
    const Tensor& other = args.inputs[add_ && args.inputs.size() > 1 ? 1 : 0];
    const Tensor& dst = args.outputs[0];
    ElementwiseTask task;
    task.space = element_space({&src, &other, &dst});
    task.src = task.space.operand(src);
    task.dst = task.space.operand(dst);
    if (add_) task.other = task.space.operand(other);
    if (activation_) task.activation = &*activation_;
    run_task(task);
  }

 private:
  bool add_;
  std::optional<ActivationAttributes> activation_;
};

class Bias final : public Kernel {
 public:
  void run(const KernelArgs& args) const override {
    const Tensor &src = args.inputs[0], &bias = args.inputs[1], &dst = args.outputs[0];
    ElementwiseTask task;
    task.space = channel_space({&src, &dst});
    task.src = task.space.operand(src);
    task.dst = task.space.operand(dst);
    auto* const row = Carver(args.workspace).take<float>(task.space.width);
    const auto channels = static_cast<std::size_t>(bias.shape()[0]);
    repeat_channels({bias.as<float>(), channels}, task.space.width, row);
    task.bias = row;
    run_task(task);
  }
};

constexpr Traits kElementwiseTraits = {.slices = true, .in_place = true};

std::unique_ptr<Kernel> make_elementwise(const Problem& problem, std::span<const Layout> layouts) {
  const Node& first = problem.node();
  const Node& last = problem.node(problem.nodes.size() - 1);
  auto kernel = std::make_unique<Elementwise>(first.kind == OpKind::add,
                                              std::get_if<ActivationAttributes>(&last.attributes));
  set_layouts(*kernel, problem, common_layout(problem, layouts));
  kernel->traits = kElementwiseTraits;
  return kernel;
}

std::unique_ptr<Kernel> make_bias(const Problem& problem, std::span<const Layout>) {
  auto kernel = std::make_unique<Bias>();
  set_layouts(*kernel, problem, Layout::nhwc());
  kernel->traits = kElementwiseTraits;
  Carver carver(nullptr);
  carver.take<float>(channel_period(problem.input(0).shape[1]));
  kernel->workspace_bytes = carver.bytes();
  return kernel;
}

std::string check_bias(const Problem& problem) {
  const int rank = problem.input(0).shape.rank();
  if (rank != 2 && rank != 4) return "the bias kernel works on rank 2 and 4";
  return refuse_other_than_floats(problem);
}

constexpr KernelRow kRows[] = {
    {"add_act", patterns::add_act, refuse_other_than_floats, make_elementwise},
    {"bias", match_one<OpKind::bias>, check_bias, make_bias},
    {"activation", match_one<OpKind::activation>, refuse_other_than_floats, make_elementwise},
    {"add", match_one<OpKind::add>, refuse_other_than_floats, make_elementwise},
};

}  // namespace

std::span<const KernelRow> elementwise_rows() { return kRows; }

}  // namespace ridgeline::native
#endif
