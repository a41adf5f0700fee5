#include <algorithm>
#include <optional>

#include "backends/native/row_space.h"
#include "backends/native/rows.h"
#include "base/simd_targets.h"
#include "plan/patterns.h"

#undef HWY_TARGET_INCLUDE
#define HWY_TARGET_INCLUDE "backends/native/scale.cpp"
#include <hwy/foreach_target.h>
#include <hwy/highway.h>

#include "backends/native/lanes-inl.h"

#ifndef RIDGELINE_NATIVE_SCALE_TYPES
#define RIDGELINE_NATIVE_SCALE_TYPES
namespace ridgeline::native {
namespace {

// dst = src * factor [+ other]. A factor serves `rows_of_factor` rows of src; 1: each row has its
// own, as long as the row.
struct ScaleTask {
  RowOperand src, factor, other, dst;
  DType dtype = DType::f32;  // of src, other and dst
  DType factor_dtype = DType::f32;
  std::int64_t rows_of_factor = 1;
  std::int64_t width = 0;
  // Of the last row that a factor serves, where rows are cut out of dense samples.
  std::int64_t last_width = 0;
};

}  // namespace
}  // namespace ridgeline::native
#endif

HWY_BEFORE_NAMESPACE();
namespace ridgeline::native {
namespace HWY_NAMESPACE {
namespace {

template <typename T, typename Factor, bool kAdd>
HWY_INLINE void scale_with(const ScaleTask& task, Range range) {
  const hn::ScalableTag<float> d;
  for (std::int64_t row = range.begin; row < range.end; ++row) {
    const std::int64_t group = row / task.rows_of_factor;
    const bool last = row % task.rows_of_factor + 1 == task.rows_of_factor;
    // Cut rows lie close together: those of the next sample begin where this one's last ends.
    const std::int64_t missing = group * (task.width - task.last_width);
    const T* src = task.src.row<const T>(row) - missing;
    const Factor* factor = task.factor.row<const Factor>(group);
    const T* other = kAdd ? task.other.row<const T>(row) - missing : nullptr;
    T* dst = task.dst.row<T>(row) - missing;
    for_lanes(d, last ? task.last_width : task.width, [&](auto lanes, std::int64_t i) HWY_ATTR {
      auto x = hn::Mul(lanes.load(src + i), lanes.load(factor + i));
      if constexpr (kAdd) x = hn::Add(x, lanes.load(other + i));
      lanes.store(x, dst + i);
    });
  }
}

void scale_rows_of(const ScaleTask& task, Range range) {
  with_element(task.dtype, [&](auto element) HWY_ATTR {
    using T = decltype(element);
    if (task.other.data != nullptr) {
      scale_with<T, float, true>(task, range);
    } else if (task.factor_dtype == DType::f32) {
      scale_with<T, float, false>(task, range);
    } else {
      scale_with<T, T, false>(task, range);
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

HWY_EXPORT(scale_rows_of);

void run_task(const ScaleTask& task, std::int64_t rows) {
  const std::int64_t grain =
      std::max<std::int64_t>(1, 16384 / std::max<std::int64_t>(1, task.width));
  parallel_for(rows, grain, [&](std::int64_t begin, std::int64_t end) {
    HWY_DYNAMIC_DISPATCH(scale_rows_of)(task, {begin, end});
  });
}

// multiply of two values of one shape.
class Product final : public Kernel {
 public:
  void run(const KernelArgs& args) const override {
    const Tensor &a = args.inputs[0], &b = args.inputs[args.inputs.size() - 1];
    const Tensor& dst = args.outputs[0];
    const RowSpace space = element_space({&a, &b, &dst});
    ScaleTask task{space.operand(a),   space.operand(b), {},
                   space.operand(dst), a.spec.dtype,     b.spec.dtype};
    task.width = task.last_width = space.width;
    const std::int64_t whole = space.last_width == space.width ? space.rows : space.rows - 1;
    run_task(task, whole);
    if (whole == space.rows) return;
    const auto moved = [&](RowOperand operand) {
      operand.data += whole * operand.stride * static_cast<std::int64_t>(size_of(task.dtype));
      return operand;
    };
    ScaleTask rest = task;
    rest.src = moved(task.src);
    rest.factor = moved(task.factor);
    rest.dst = moved(task.dst);
    rest.width = rest.last_width = space.last_width;
    run_task(rest, 1);
  }
};

// dst = src [* factor] [* the sample's dropout factor] [+ other].
class Scale final : public Kernel {
 public:
  Scale(const patterns::ScaleOperands& operands, const Problem& problem) : operands_(operands) {
    const Shape& src = problem.input(operands.src).shape;
    const bool of_samples = operands.dropout || problem.input(*operands.factor).shape.rank() == 4;
    factors_ = of_samples ? src[0] : 1;
    Carver carver(nullptr);
    carver.take<float>(factors_ * channel_period(src[1]));
    workspace_bytes = carver.bytes();
    traits = {.slices = true, .in_place = true};
  }

  void run(const KernelArgs& args) const override {
    const Tensor& src = args.inputs[operands_.src];
    const Tensor& other = args.inputs[operands_.other.value_or(operands_.src)];
    const Tensor& dst = args.outputs[0];
    const RowSpace space = channel_space({&src, &other, &dst});
    ScaleTask task;
    std::int64_t rows = 0;
    cut(src, space, task, rows);
    task.dtype = src.spec.dtype;
    task.src = space.operand(src);
    task.dst = space.operand(dst);
    if (operands_.other) task.other = space.operand(other);
    task.factor = factors(args, task.width);
    run_task(task, rows);
  }

 private:
  // Rows of all that one factor serves: whole pixels, or pieces of dense samples.
  void cut(const Tensor& src, const RowSpace& space, ScaleTask& task, std::int64_t& rows) const {
    const std::int64_t elements = src.shape().elements() / factors_;
    task.width = space.width;
    task.rows_of_factor = (elements + space.width - 1) / space.width;
    task.last_width = elements - (task.rows_of_factor - 1) * space.width;
    rows = task.rows_of_factor * factors_;
  }

  // One row of factors for each sample, or for all.
  [[nodiscard]] RowOperand factors(const KernelArgs& args, std::int64_t width) const {
    const std::int64_t channels = args.inputs[operands_.src].shape()[1];
    auto* const made = Carver(args.workspace).take<float>(factors_ * width);
    for (std::int64_t n = 0; n < factors_; ++n) {
      float* row = made + n * width;
      const float whole = operands_.dropout
                              ? dropout_factor(*operands_.dropout, args.state->seed,
                                               args.state->random_step, args.state->first_row + n)
                              : 1.0F;
      if (operands_.factor) {
        const Tensor& given = args.inputs[*operands_.factor];
        const std::int64_t from = given.shape().rank() == 4 ? n * rows_of(given).stride : 0;
        if (given.spec.dtype == DType::bf16) {
          const BFloat16* factor = given.as<BFloat16>() + from;
          for (std::int64_t c = 0; c < channels; ++c) {
            row[c] = float_of(factor[c]) * whole;
          }
        } else {
          const float* factor = given.as<float>() + from;
          for (std::int64_t c = 0; c < channels; ++c) row[c] = factor[c] * whole;
        }
      } else {
        std::fill_n(row, channels, whole);
      }
      repeat_first_channels(channels, width, row);
    }
    return {reinterpret_cast<std::byte*>(made), width};
  }

  patterns::ScaleOperands operands_;
  std::int64_t factors_ = 1;
};

std::unique_ptr<Kernel> make_scale(const Problem& problem, std::span<const Layout> layouts) {
  const patterns::ScaleOperands operands = patterns::scale_operands(problem);
  std::unique_ptr<Kernel> kernel;
  const bool product =
      operands.factor && problem.input(*operands.factor).shape == problem.output(0).shape;
  if (product) {
    kernel = std::make_unique<Product>();
    kernel->traits = {.slices = true, .in_place = true};
    set_layouts(*kernel, problem, common_layout(problem, layouts));
  } else {
    kernel = std::make_unique<Scale>(operands, problem);
    set_layouts(*kernel, problem, Layout::nhwc());
  }
  return kernel;
}

std::string check_scale(const Problem& problem) {
  const int rank = problem.output(0).shape.rank();
  if (rank != 2 && rank != 4) return "factors go with values of rank 2 and 4";
  return refuse_other_than_floats(problem);
}

constexpr KernelRow kRows[] = {
    {"scale_chain", patterns::scale_chain, check_scale, make_scale},
    {"multiply", match_one<OpKind::multiply>, check_scale, make_scale},
    {"sample_dropout", patterns::sample_dropout, check_scale, make_scale},
};

}  // namespace

std::span<const KernelRow> scale_rows() { return kRows; }

}  // namespace ridgeline::native
#endif
