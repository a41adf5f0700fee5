#include <algorithm>

#include "backends/native/row_space.h"
#include "backends/native/rows.h"
#include "base/simd_targets.h"

#undef HWY_TARGET_INCLUDE
#define HWY_TARGET_INCLUDE "backends/native/multiply_backward.cpp"
#include <hwy/foreach_target.h>
#include <hwy/highway.h>

#include "backends/native/lanes-inl.h"
#include "backends/native/reduce-inl.h"

HWY_BEFORE_NAMESPACE();
namespace ridgeline::native {
namespace HWY_NAMESPACE {
namespace {

// Adds the products of the rows in `range` to sums of which there is one for each column.
void product_sums(const RowSpace& space, RowOperand a, RowOperand b, Range range, double* sums) {
  with_element(space.dtype, [&](auto element) HWY_ATTR {
    using T = decltype(element);
    reduce_rows<1>(hn::ScalableTag<float>(), space, range, sums,
                   [&](auto lanes, std::int64_t row, std::int64_t i, auto* sum) HWY_ATTR {
                     sum[0] = hn::MulAdd(lanes.load(a.row<const T>(row) + i),
                                         lanes.load(b.row<const T>(row) + i), sum[0]);
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

HWY_EXPORT(product_sums);

class MultiplyBackward final : public Kernel {
 public:
  MultiplyBackward(const Problem& problem, Broadcast broadcast)
      : second_(problem.input_index(problem.node().inputs[1])),
        channels_(problem.input(0).shape[1]),
        per_sample_(broadcast == Broadcast::image),
        parts_(reduction_parts(problem.input(0).shape.elements())) {
    Carver carver(nullptr);
    carver.take<double>(parts_ * channel_period(channels_));
    workspace_bytes = carver.bytes();
    traits = {.slices = true};
  }

  void run(const KernelArgs& args) const override {
    const Tensor &diff_dst = args.inputs[0], &a = args.inputs[second_];
    const RowSpace space = channel_space({&diff_dst, &a});
    const PartialSums sums{reinterpret_cast<double*>(args.workspace), parts_, 1, space.width};
    const Operands operands{space, space.operand(diff_dst), space.operand(a)};
    if (per_sample_) {
      sum_samples(operands, diff_dst.shape(), sums, args.outputs[0]);
    } else {
      sum_all(operands, sums, args.outputs[0]);
    }
  }

 private:
  struct Operands {
    RowSpace space;
    RowOperand diff_dst, a;
  };

  void sum_all(const Operands& operands, const PartialSums& sums, const Tensor& diff_b) const {
    for_each_part(parts_, operands.space.rows, [&](int part, Range range) {
      sums.clear(part);
      HWY_DYNAMIC_DISPATCH(product_sums)
      (operands.space, operands.diff_dst, operands.a, range, sums.part(part));
    });
    for (std::int64_t c = 0; c < channels_; ++c) {
      diff_b.as<float>()[c] = static_cast<float>(sums.total(0, c, channels_));
    }
  }

  // Each sample's sums are one thread's work.
  void sum_samples(const Operands& operands, const Shape& shape, const PartialSums& sums,
                   const Tensor& diff_b) const {
    const std::int64_t pixels = shape[2] * shape[3], elements = pixels * channels_;
    RowSpace sample = operands.space;
    sample.rows = (elements + sample.width - 1) / sample.width;
    sample.last_width = elements - (sample.rows - 1) * sample.width;
    const auto at = [&](const RowOperand& operand, std::int64_t n) {
      const std::int64_t begin = sample.flat ? n * elements : n * pixels * operand.stride;
      const auto element = static_cast<std::int64_t>(size_of(sample.dtype));
      return RowOperand{operand.data + begin * element, operand.stride};
    };
    for_each_part(parts_, shape[0], [&](int part, Range range) {
      const PartialSums own{sums.part(part), 1, 1, sums.width};
      for (std::int64_t n = range.begin; n < range.end; ++n) {
        own.clear(0);
        HWY_DYNAMIC_DISPATCH(product_sums)
        (sample, at(operands.diff_dst, n), at(operands.a, n), {0, sample.rows}, own.part(0));
        const std::int64_t row = n * rows_of(diff_b).stride;
        for (std::int64_t c = 0; c < channels_; ++c) {
          const double total = own.total(0, c, channels_);
          if (diff_b.spec.dtype == DType::bf16) {
            diff_b.as<BFloat16>()[row + c] = bf16_of(static_cast<float>(total));
          } else {
            diff_b.as<float>()[row + c] = static_cast<float>(total);
          }
        }
      }
    });
  }

  std::size_t second_;
  std::int64_t channels_;
  bool per_sample_;
  int parts_;
};

std::string check_backward(const Problem& problem) {
  const int rank = problem.input(0).shape.rank();
  if (rank != 2 && rank != 4) return "sums per channel are taken over rank 2 and 4";
  return refuse_other_than_floats(problem);
}

std::unique_ptr<Kernel> make_backward(const Problem& problem, std::span<const Layout>) {
  auto kernel = std::make_unique<MultiplyBackward>(
      problem, std::get<MultiplyAttributes>(problem.node().attributes).b);
  set_layouts(*kernel, problem, Layout::nhwc());
  return kernel;
}

constexpr KernelRow kRows[] = {
    {"multiply_backward", match_one<OpKind::multiply_backward>, check_backward, make_backward},
};

}  // namespace

std::span<const KernelRow> multiply_backward_rows() { return kRows; }

}  // namespace ridgeline::native
#endif
