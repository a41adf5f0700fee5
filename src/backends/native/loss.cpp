#include <algorithm>
#include <cmath>
#include <limits>

#include "backends/native/row_space.h"
#include "backends/native/rows.h"
#include "base/error.h"
#include "base/parallel.h"
#include "base/simd_targets.h"

#undef HWY_TARGET_INCLUDE
#define HWY_TARGET_INCLUDE "backends/native/loss.cpp"
#include <hwy/foreach_target.h>
#include <hwy/highway.h>

#include "backends/native/activation-inl.h"
#include "backends/native/lanes-inl.h"

#ifndef RIDGELINE_NATIVE_LOSS_TYPES
#define RIDGELINE_NATIVE_LOSS_TYPES
namespace ridgeline::native {
namespace {

struct LossRows {
  float* data = nullptr;
  std::int64_t stride = 0;

  [[nodiscard]] float* row(std::int64_t n) const { return data + n * stride; }
};

// What is asked of each row; what has no data is left out.
struct LossTask {
  LossRows logits, probabilities, diff_logits;
  const std::int32_t* labels = nullptr;
  std::int64_t classes = 0, valid = 0;
  float smoothing = 0.0F;
  float diff_scale = 0.0F;  // loss scale × weight ÷ valid rows
};

struct alignas(64) LossSums {
  double loss = 0.0, top1 = 0.0, top5 = 0.0;
};

}  // namespace
}  // namespace ridgeline::native
#endif

HWY_BEFORE_NAMESPACE();
namespace ridgeline::native {
namespace HWY_NAMESPACE {
namespace {

using FloatTag = hn::ScalableTag<float>;

// How many logits come before the label's: greater ones, and equal ones of a lower index.
std::int64_t rank_of_label(const float* logits, std::int64_t label, std::int64_t classes) {
  const float own = logits[label];
  std::int64_t rank = 0;
  for (std::int64_t k = 0; k < label; ++k) rank += own > logits[k] ? 0 : 1;
  for (std::int64_t k = label + 1; k < classes; ++k) rank += own >= logits[k] ? 0 : 1;
  return rank;
}

// diff_logits of a row = (probabilities - targets) * scale; the label's target is added at the end.
template <class Lanes, class V>
HWY_INLINE void store_diff(Lanes lanes, V probabilities, V share, V scale, float* to) {
  lanes.store(hn::Mul(hn::Sub(probabilities, share), scale), to);
}

float share_of_all(const LossTask& task) {
  return task.smoothing / static_cast<float>(task.classes);
}

void loss_row(const LossTask& task, std::int64_t n, LossSums& sums) {
  const FloatTag d;
  const float* const logits = task.logits.row(n);
  const auto lowest = hn::Set(d, -std::numeric_limits<float>::infinity());
  auto largest_lanes = lowest;
  auto logit_lanes = hn::Zero(d);
  for_lanes(d, task.classes, [&](auto lanes, std::int64_t k) HWY_ATTR {
    const auto x = lanes.load(logits + k);
    logit_lanes = hn::Add(logit_lanes, x);
    const auto present = hn::FirstN(d, static_cast<std::size_t>(task.classes - k));
    largest_lanes = hn::Max(largest_lanes, hn::IfThenElse(present, x, lowest));
  });
  const auto largest = hn::MaxOfLanes(d, largest_lanes);

  // The powers wait where probabilities go; without those only their sum is needed.
  float* const powers = task.probabilities.data != nullptr ? task.probabilities.row(n) : nullptr;
  auto sum_lanes = hn::Zero(d);
  for_lanes(d, task.classes, [&](auto lanes, std::int64_t k) HWY_ATTR {
    const auto power = exp_of_negative(d, hn::Sub(lanes.load(logits + k), largest));
    const auto present = hn::FirstN(d, static_cast<std::size_t>(task.classes - k));
    sum_lanes = hn::Add(sum_lanes, hn::IfThenElseZero(present, power));
    if (powers != nullptr) lanes.store(power, powers + k);
  });
  const auto sum = hn::SumOfLanes(d, sum_lanes);

  if (n < task.valid) {
    const std::int64_t label = task.labels[n];
    const double log_sum =
        static_cast<double>(hn::GetLane(largest)) + std::log(static_cast<double>(hn::GetLane(sum)));
    const double smoothing = static_cast<double>(task.smoothing);
    sums.loss += (1.0 - smoothing) * (log_sum - static_cast<double>(logits[label]));
    if (smoothing > 0.0) {
      const double mean = static_cast<double>(hn::GetLane(hn::SumOfLanes(d, logit_lanes))) /
                          static_cast<double>(task.classes);
      sums.loss += smoothing * (log_sum - mean);
    }
  }
  if (powers == nullptr) return;

  const auto inverse = hn::Div(hn::Set(d, 1.0F), sum);
  for_lanes(d, task.classes, [&](auto lanes, std::int64_t k) HWY_ATTR {
    lanes.store(hn::Mul(lanes.load(powers + k), inverse), powers + k);
  });
}

void loss_part(const LossTask& task, std::int64_t begin, std::int64_t end, LossSums& sums) {
  LossSums own;
  for (std::int64_t n = begin; n < end; ++n) loss_row(task, n, own);
  sums = own;
}

void diff_part(const LossTask& task, std::int64_t begin, std::int64_t end) {
  const FloatTag d;
  const auto share = hn::Set(d, share_of_all(task)), scale = hn::Set(d, task.diff_scale);
  for (std::int64_t n = begin; n < end; ++n) {
    float* const diff = task.diff_logits.row(n);
    if (n >= task.valid) {
      std::fill_n(diff, task.classes, 0.0F);
      continue;
    }
    for_lanes(d, task.classes, [&](auto lanes, std::int64_t k) HWY_ATTR {
      store_diff(lanes, lanes.load(task.probabilities.row(n) + k), share, scale, diff + k);
    });
    diff[task.labels[n]] -= (1.0F - task.smoothing) * task.diff_scale;
  }
}

void rank_part(const LossTask& task, std::int64_t begin, std::int64_t end, LossSums& sums) {
  LossSums own;
  for (std::int64_t n = begin; n < std::min(end, task.valid); ++n) {
    const std::int64_t rank = rank_of_label(task.logits.row(n), task.labels[n], task.classes);
    own.top1 += rank < 1 ? 1.0 : 0.0;
    own.top5 += rank < 5 ? 1.0 : 0.0;
  }
  sums = own;
}

}  // namespace
}  // namespace HWY_NAMESPACE
}  // namespace ridgeline::native
HWY_AFTER_NAMESPACE();

#if HWY_ONCE
namespace ridgeline::native {
namespace {

HWY_EXPORT(loss_part);
HWY_EXPORT(diff_part);
HWY_EXPORT(rank_part);

LossRows rows_at(const Tensor& tensor) { return {tensor.as<float>(), tensor.strides[0]}; }

// The parts of a task that every kernel here has.
LossTask task_for(const Tensor& labels, const Shape& shape, const StepState& state,
                  const LossAttributes& attributes) {
  LossTask task;
  task.labels = labels.as<std::int32_t>();
  task.classes = shape[1];
  task.valid = std::min(state.valid_rows, shape[0]);
  task.smoothing = static_cast<float>(attributes.label_smoothing);
  if (task.valid > 0) {
    const double scale = state.loss_scale * attributes.weight;
    task.diff_scale = static_cast<float>(scale / static_cast<double>(task.valid));
  }
  return task;
}

LossSums total_of(const LossSums* sums, int parts) {
  LossSums total;
  for (int p = 0; p < parts; ++p) {
    total.loss += sums[p].loss;
    total.top1 += sums[p].top1;
    total.top5 += sums[p].top5;
  }
  return total;
}

void add_to_totals(const Tensor& totals, const Tensor& updated, float loss, const LossSums& sums,
                   std::int64_t rows) {
  const auto* const from = totals.as<const double>();
  auto* const to = updated.as<double>();
  to[0] = from[0] + static_cast<double>(loss) * static_cast<double>(rows);
  to[1] = from[1] + sums.top1;
  to[2] = from[2] + sums.top5;
  to[3] = from[3] + static_cast<double>(rows);
}

class Loss final : public Kernel {
 public:
  explicit Loss(const Problem& problem)
      : shape_(problem.input(0).shape),
        parts_(reduction_parts(shape_.elements())),
        attributes_(std::get<LossAttributes>(problem.node().attributes)) {
    workspace_bytes = static_cast<std::size_t>(parts_) * sizeof(LossSums);
  }

  void run(const KernelArgs& args) const override {
    LossTask task = task_for(args.inputs[1], shape_, *args.state, attributes_);
    check_labels({task.labels, static_cast<std::size_t>(task.valid)}, task.classes);
    task.logits = rows_at(args.inputs[0]);
    if (args.outputs[1].data != nullptr) task.probabilities = rows_at(args.outputs[1]);
    auto* const sums = reinterpret_cast<LossSums*>(args.workspace);
    for_each_part(parts_, shape_[0], [&](int part, Range range) {
      HWY_DYNAMIC_DISPATCH(loss_part)(task, range.begin, range.end, sums[part]);
    });
    if (args.outputs[0].data == nullptr) return;
    const double total = total_of(sums, parts_).loss * attributes_.weight;
    *args.outputs[0].as<float>() =
        static_cast<float>(task.valid == 0 ? 0.0 : total / static_cast<double>(task.valid));
  }

 private:
  Shape shape_;
  int parts_;
  LossAttributes attributes_;
};

class LossBackward final : public Kernel {
 public:
  explicit LossBackward(const Problem& problem)
      : attributes_(std::get<LossAttributes>(problem.node().attributes)) {}

  void run(const KernelArgs& args) const override {
    const Tensor &probabilities = args.inputs[0], &diff_logits = args.outputs[0];
    if (diff_logits.data == nullptr) return;
    const Shape& shape = probabilities.shape();
    LossTask task = task_for(args.inputs[1], shape, *args.state, attributes_);
    check_labels({task.labels, static_cast<std::size_t>(task.valid)}, task.classes);
    task.probabilities = rows_at(probabilities);
    task.diff_logits = rows_at(diff_logits);
    parallel_for(shape[0], 1 + 16384 / shape[1], [&](std::int64_t begin, std::int64_t end) {
      HWY_DYNAMIC_DISPATCH(diff_part)(task, begin, end);
    });
  }

 private:
  LossAttributes attributes_;
};

class Metrics final : public Kernel {
 public:
  explicit Metrics(const Problem& problem)
      : shape_(problem.input(2).shape), parts_(reduction_parts(shape_.elements())) {
    workspace_bytes = static_cast<std::size_t>(parts_) * sizeof(LossSums);
  }

  void run(const KernelArgs& args) const override {
    LossTask task = task_for(args.inputs[3], shape_, *args.state, {});
    check_labels({task.labels, static_cast<std::size_t>(task.valid)}, task.classes);
    task.logits = rows_at(args.inputs[2]);
    auto* const sums = reinterpret_cast<LossSums*>(args.workspace);
    for_each_part(parts_, shape_[0], [&](int part, Range range) {
      HWY_DYNAMIC_DISPATCH(rank_part)(task, range.begin, range.end, sums[part]);
    });
    add_to_totals(args.inputs[0], args.outputs[0], *args.inputs[1].as<const float>(),
                  total_of(sums, parts_), task.valid);
  }

 private:
  Shape shape_;
  int parts_;
};

std::string check_loss(const Problem& problem) {
  for (const ValueId id : problem.inputs) {
    const TensorSpec& spec = problem.graph->value(id).spec;
    if (spec.shape.rank() == 2 && spec.dtype != DType::f32) {
      return fmt::format("native computes in f32, not {}", name_of(spec.dtype));
    }
  }
  return {};
}

template <typename LossKernel>
std::unique_ptr<Kernel> make(const Problem& problem, std::span<const Layout>) {
  auto kernel = std::make_unique<LossKernel>(problem);
  set_layouts(*kernel, problem, Layout::plain());
  kernel->traits.slices = true;
  kernel->traits.in_place = !std::is_same_v<LossKernel, Loss>;
  return kernel;
}

constexpr KernelRow kRows[] = {
    {"softmax_cross_entropy", match_one<OpKind::softmax_cross_entropy>, check_loss, make<Loss>},
    {"softmax_cross_entropy_backward", match_one<OpKind::softmax_cross_entropy_backward>,
     check_loss, make<LossBackward>},
    {"metrics", match_one<OpKind::metrics>, check_loss, make<Metrics>},
};

}  // namespace

void check_labels(std::span<const std::int32_t> labels, std::int64_t classes) {
  bool wrong = false;
  for (const std::int32_t label : labels) wrong |= label < 0 || label >= classes;
  if (!wrong) return;
  for (std::size_t row = 0; row < labels.size(); ++row) {
    ensure(labels[row] >= 0 && labels[row] < classes, "label {} of row {} is not one of {} classes",
           labels[row], row, classes);
  }
}

std::span<const KernelRow> loss_rows() { return kRows; }

}  // namespace ridgeline::native
#endif
