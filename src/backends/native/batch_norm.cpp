#include <algorithm>
#include <cmath>
#include <optional>

#include "backends/native/row_space.h"
#include "backends/native/rows.h"
#include "base/simd_targets.h"

#undef HWY_TARGET_INCLUDE
#define HWY_TARGET_INCLUDE "backends/native/batch_norm.cpp"
#include <hwy/foreach_target.h>
#include <hwy/highway.h>

#include "backends/native/activation-inl.h"
#include "backends/native/lanes-inl.h"
#include "backends/native/reduce-inl.h"
#include "plan/patterns.h"

#ifndef RIDGELINE_NATIVE_BATCH_NORM_TYPES
#define RIDGELINE_NATIVE_BATCH_NORM_TYPES
namespace ridgeline::native {
namespace {

// dst = activation((src - mean) * factor + shift [+ other]); mean, factor and shift are rows.
struct ApplyTask {
  RowSpace space;
  RowOperand src, other, dst;
  const float* mean = nullptr;
  const float* factor = nullptr;
  const float* shift = nullptr;
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

// Sums of src - origin and of its square.
void statistics_sums(const RowSpace& space, RowOperand src, const float* origin, Range range,
                     double* sums) {
  with_element(space.dtype, [&](auto element) HWY_ATTR {
    using T = decltype(element);
    reduce_rows<2>(FloatTag(), space, range, sums,
                   [&](auto lanes, std::int64_t row, std::int64_t i, auto* sum) HWY_ATTR {
                     const auto x =
                         hn::Sub(lanes.load(src.row<const T>(row) + i), lanes.load(origin + i));
                     sum[0] = hn::Add(sum[0], x);
                     sum[1] = hn::MulAdd(x, x, sum[1]);
                   });
  });
}

template <typename T, bool kAdd, class Activation>
HWY_INLINE void apply_to_rows(const ApplyTask& task, Range range, Activation activation) {
  const FloatTag d;
  for (std::int64_t row = range.begin; row < range.end; ++row) {
    const T* src = task.src.row<const T>(row);
    const T* other = task.other.row<const T>(row);
    T* dst = task.dst.row<T>(row);
    for_lanes(d, task.space.width_of(row), [&](auto lanes, std::int64_t i) HWY_ATTR {
      const auto centred = hn::Sub(lanes.load(src + i), lanes.load(task.mean + i));
      auto x = hn::MulAdd(centred, lanes.load(task.factor + i), lanes.load(task.shift + i));
      if constexpr (kAdd) x = hn::Add(x, lanes.load(other + i));
      lanes.store(activation.forward(d, x), dst + i);
    });
  }
}

void apply_rows(const ApplyTask& task, Range range) {
  with_element(task.space.dtype, [&](auto element) HWY_ATTR {
    using T = decltype(element);
    with_norm_activation(task.activation, [&](auto activation) HWY_ATTR {
      if (task.other.data != nullptr) {
        apply_to_rows<T, true>(task, range, activation);
      } else {
        apply_to_rows<T, false>(task, range, activation);
      }
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

HWY_EXPORT(statistics_sums);
HWY_EXPORT(apply_rows);

// About the middle of each channel, from a few rows all over src. Sums taken around it lose no
// digits however far the values lie from zero.
template <typename T>
void estimate_means(const Tensor& src, float* means) {
  constexpr std::int64_t kSamples = 32;
  const RowView view = rows_of(src);
  const auto* data = reinterpret_cast<const T*>(view.data);
  const std::int64_t samples = std::min(kSamples, view.rows);
  std::fill_n(means, view.width, 0.0F);
  for (std::int64_t s = 0; s < samples; ++s) {
    const T* row = data + s * view.rows / samples * view.stride;
    for (std::int64_t c = 0; c < view.width; ++c) means[c] += float_of(row[c]);
  }
  for (std::int64_t c = 0; c < view.width; ++c) means[c] /= static_cast<float>(samples);
}

class Statistics final : public Kernel {
 public:
  explicit Statistics(const Shape& src)
      : channels_(src[1]), parts_(reduction_parts(src.elements())) {
    workspace_bytes = carve(nullptr, channel_period(channels_)).bytes;
    traits = {.slices = true};
  }

  void run(const KernelArgs& args) const override {
    const Tensor& src = args.inputs[0];
    const RowSpace space = channel_space({&src});
    const Scratch scratch = carve(args.workspace, space.width);
    const PartialSums& sums = scratch.sums;
    if (src.spec.dtype == DType::bf16) {
      estimate_means<BFloat16>(src, scratch.origin);
    } else {
      estimate_means<float>(src, scratch.origin);
    }
    repeat_channels({scratch.origin, static_cast<std::size_t>(channels_)}, space.width,
                    scratch.origins);
    for_each_part(parts_, space.rows, [&](int part, Range range) {
      sums.clear(part);
      HWY_DYNAMIC_DISPATCH(statistics_sums)
      (space, space.operand(src), scratch.origins, range, sums.part(part));
    });
    const auto count = static_cast<double>(src.shape().elements() / channels_);
    for (std::int64_t c = 0; c < channels_; ++c) {
      const double offset = sums.total(0, c, channels_) / count;
      const double square = sums.total(1, c, channels_) / count;
      if (args.outputs[0].data != nullptr) {
        args.outputs[0].as<float>()[c] = static_cast<float>(scratch.origin[c] + offset);
      }
      if (args.outputs[1].data != nullptr) {
        args.outputs[1].as<float>()[c] =
            static_cast<float>(std::max(0.0, square - offset * offset));
      }
    }
  }

 private:
  struct Scratch {
    float *origin, *origins;  // per channel; repeated over a row
    PartialSums sums;
    std::size_t bytes;
  };
  [[nodiscard]] Scratch carve(std::byte* workspace, std::int64_t width) const {
    Carver carver(workspace);
    Scratch scratch{};
    scratch.origin = carver.take<float>(channels_);
    scratch.origins = carver.take<float>(width);
    scratch.sums = {carver.take<double>(parts_ * 2 * width), parts_, 2, width};
    scratch.bytes = carver.bytes();
    return scratch;
  }

  std::int64_t channels_;
  int parts_;
};

class UpdateRunning final : public Kernel {
 public:
  UpdateRunning(const BatchNormAttributes& attributes, std::int64_t channels)
      : momentum_(attributes.momentum),
        count_(static_cast<double>(attributes.count)),
        channels_(channels) {}

  void run(const KernelArgs& args) const override {
    const double momentum = args.state->overflow != 0 ? 0.0 : momentum_;
    blend(momentum, args.inputs[0], args.inputs[2], 1.0, args.outputs[0]);
    blend(momentum, args.inputs[1], args.inputs[3], count_ / (count_ - 1), args.outputs[1]);
  }

 private:
  void blend(double momentum, const Tensor& running, const Tensor& batch, double factor,
             const Tensor& updated) const {
    for (std::int64_t c = 0; c < channels_; ++c) {
      const double old = running.as<float>()[c];
      const double value = factor * batch.as<float>()[c];
      updated.as<float>()[c] =
          static_cast<float>(momentum == 0.0 ? old : (1 - momentum) * old + momentum * value);
    }
  }

  double momentum_, count_;
  std::int64_t channels_;
};

class Apply final : public Kernel {
 public:
  explicit Apply(const patterns::NormApplyOperands& operands)
      : operands_(operands),
        epsilon_(operands.attributes.epsilon),
        activation_(operands.activation) {}

  void run(const KernelArgs& args) const override {
    const Tensor& src = args.inputs[operands_.src];
    const Tensor& other = args.inputs[operands_.other.value_or(operands_.src)];
    const Tensor& dst = args.outputs[0];
    ApplyTask task;
    task.space = channel_space({&src, &other, &dst});
    task.src = task.space.operand(src);
    task.dst = task.space.operand(dst);
    if (operands_.other) task.other = task.space.operand(other);
    if (activation_) task.activation = &*activation_;
    set_parameters(args, task);
    parallel_for(task.space.rows, task.space.grain(), [&](std::int64_t begin, std::int64_t end) {
      HWY_DYNAMIC_DISPATCH(apply_rows)(task, {begin, end});
    });
  }

 private:
  void set_parameters(const KernelArgs& args, ApplyTask& task) const {
    const std::int64_t width = task.space.width;
    const auto channels = static_cast<std::size_t>(args.inputs[operands_.src].shape()[1]);
    const float* variance = args.inputs[operands_.variance].as<float>();
    const float* scale = args.inputs[operands_.scale].as<float>();
    Carver carver(args.workspace);
    auto* mean = carver.take<float>(width);
    auto* factor = carver.take<float>(width);
    auto* shift = carver.take<float>(width);
    for (std::size_t c = 0; c < channels; ++c) {
      factor[c] = static_cast<float>(scale[c] / std::sqrt(variance[c] + epsilon_));
    }
    repeat_first_channels(static_cast<std::int64_t>(channels), width, factor);
    repeat_channels({args.inputs[operands_.mean].as<float>(), channels}, width, mean);
    repeat_channels({args.inputs[operands_.shift].as<float>(), channels}, width, shift);
    task.mean = mean;
    task.factor = factor;
    task.shift = shift;
  }

  patterns::NormApplyOperands operands_;
  double epsilon_;
  std::optional<ActivationAttributes> activation_;
};

std::string check_source(const Problem& problem) {
  const int rank = problem.graph->value(problem.node().inputs[0]).spec.shape.rank();
  if (rank != 2 && rank != 4) return "the batch norm kernels work on rank 2 and 4";
  return refuse_other_than_floats(problem);
}

std::unique_ptr<Kernel> make_statistics(const Problem& problem, std::span<const Layout>) {
  auto kernel = std::make_unique<Statistics>(problem.input(0).shape);
  set_layouts(*kernel, problem, Layout::nhwc());
  return kernel;
}

std::unique_ptr<Kernel> make_update_running(const Problem& problem, std::span<const Layout>) {
  auto kernel = std::make_unique<UpdateRunning>(
      std::get<BatchNormAttributes>(problem.node().attributes), problem.output(0).shape[0]);
  set_layouts(*kernel, problem, Layout::nhwc());
  return kernel;
}

std::unique_ptr<Kernel> make_apply(const Problem& problem, std::span<const Layout>) {
  auto kernel = std::make_unique<Apply>(patterns::norm_apply_operands(problem));
  set_layouts(*kernel, problem, Layout::nhwc());
  Carver carver(nullptr);
  for (int i = 0; i < 3; ++i) carver.take<float>(channel_period(problem.output(0).shape[1]));
  kernel->workspace_bytes = carver.bytes();
  kernel->traits = {.slices = true, .in_place = true};
  return kernel;
}

constexpr KernelRow kRows[] = {
    {"bn_apply_add_act", patterns::bn_apply_add_act, check_source, make_apply},
    {"bn_apply_add", patterns::bn_apply_add, check_source, make_apply},
    {"bn_apply_act", patterns::bn_apply_act, check_source, make_apply},
    {"bn_statistics", match_one<OpKind::bn_statistics>, check_source, make_statistics},
    {"bn_update_running", match_one<OpKind::bn_update_running>, refuse_other_than_floats,
     make_update_running},
    {"bn_apply", match_one<OpKind::bn_apply>, check_source, make_apply},
};

}  // namespace

std::span<const KernelRow> batch_norm_rows() { return kRows; }

}  // namespace ridgeline::native
#endif
