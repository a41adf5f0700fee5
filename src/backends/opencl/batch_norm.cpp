// Batch normalisation: statistics, alone and with the update of the running ones; apply, alone and
// as bn_apply [+ add] [+ activation]; and the gradients, alone and in one step together with what
// makes them: [add +] [activation_backward +] bn_backward_reduce + bn_backward_apply.

#include "backends/opencl/norm_apply.h"
#include "backends/opencl/rows.h"
#include "backends/opencl/sums.h"
#include "plan/patterns.h"

namespace ridgeline::opencl {
namespace {

const BatchNormAttributes& norm_of(const Node& node) {
  return std::get<BatchNormAttributes>(node.attributes);
}

class Statistics final : public Kernel {
 public:
  explicit Statistics(const Problem& problem)
      : mean_(problem.find_output(problem.node().outputs[0])),
        variance_(problem.find_output(problem.node().outputs[1])) {
    const Shape& shape = problem.input(0).shape;
    workspace_bytes = sums_bytes(shape.elements() / shape[1], shape[1]) + float_bytes(shape[1]);
    traits = {.slices = true};
  }

  void run(const KernelArgs& args) const override {
    const Rows src = rows_of(args.inputs[0]);
    const Parts parts = parts_of(src.rows);
    const float share = 1.0F / static_cast<float>(src.rows);
    // Both sums need the parts one after the other; the mean stands behind them.
    const std::byte* mean = args.workspace + sums_bytes(src.rows, src.width);
    Launch(args, {"kernels/sums.cl", "partial_sums", number_option(src)})
        .rows(src)
        .rows({})
        .rows({})
        .rows({})
        .rows({})
        .buffer(nullptr)
        .buffer(nullptr)
        .buffer(args.workspace)
        .buffer(nullptr)
        .value(src.width)
        .value(src.rows)
        .value(parts.rows)
        .value(std::int32_t{-1})
        .value(0.0F)
        .value(0.0F)
        .run({src.width, parts.count}, {16, 1});
    launch_finish(args, args.workspace, mean, data_at(args.outputs, mean_), src.width, parts.count,
                  share);
    const void* variance = data_at(args.outputs, variance_);
    if (variance == nullptr) return;
    Launch(args, {"kernels/sums.cl", "partial_squares", number_option(src)})
        .rows(src)
        .buffer(mean)
        .buffer(args.workspace)
        .value(src.width)
        .value(src.rows)
        .value(parts.rows)
        .run({src.width, parts.count}, {16, 1});
    launch_finish(args, args.workspace, variance, nullptr, src.width, parts.count, share);
  }

 private:
  Index mean_, variance_;
};

std::unique_ptr<Kernel> make_statistics(const Problem& problem, std::span<const Layout>) {
  auto kernel = std::make_unique<Statistics>(problem);
  set_layouts(*kernel, problem, Layout::nhwc());
  return kernel;
}

class UpdateRunning final : public Kernel {
 public:
  explicit UpdateRunning(const BatchNormAttributes& attributes) : attributes_(attributes) {}

  void run(const KernelArgs& args) const override {
    const std::int64_t channels = args.inputs[0].shape()[0];
    const auto count = static_cast<double>(attributes_.count);
    Launch launch(args, {"kernels/batch_norm.cl", "update_running", "-DLANES=1"});
    for (const Tensor& input : args.inputs) launch.buffer(input.data);
    for (const Tensor& output : args.outputs) launch.buffer(output.data);
    launch.buffer(args.state)
        .value(channels)
        .value(static_cast<float>(attributes_.momentum))
        .value(static_cast<float>(count / (count - 1)))
        .run({channels}, {64});
  }

 private:
  BatchNormAttributes attributes_;
};

std::unique_ptr<Kernel> make_update(const Problem& problem, std::span<const Layout>) {
  auto kernel = std::make_unique<UpdateRunning>(norm_of(problem.node()));
  set_layouts(*kernel, problem, Layout::nhwc());
  kernel->traits.in_place = true;
  return kernel;
}

class Apply final : public Kernel {
 public:
  explicit Apply(const patterns::NormApplyOperands& operands) : operands_(operands) {
    traits = {.slices = true, .in_place = true};
  }

  void run(const KernelArgs& args) const override {
    launch_norm_apply(
        args, {.src = rows_of(args.inputs[operands_.src]),
               .other = rows_at(args.inputs, operands_.other),
               .dst = rows_of(args.outputs[0]),
               .mean = args.inputs[operands_.mean].data,
               .variance = args.inputs[operands_.variance].data,
               .scale = args.inputs[operands_.scale].data,
               .shift = args.inputs[operands_.shift].data,
               .epsilon = static_cast<float>(operands_.attributes.epsilon),
               .activation = code_of(operands_.activation ? &*operands_.activation : nullptr)});
  }

 private:
  patterns::NormApplyOperands operands_;
};

std::unique_ptr<Kernel> make_apply(const Problem& problem, std::span<const Layout>) {
  auto kernel = std::make_unique<Apply>(patterns::norm_apply_operands(problem));
  set_layouts(*kernel, problem, Layout::nhwc());
  return kernel;
}

class Backward final : public Kernel {
 public:
  Backward(const patterns::NormBackwardOperands& operands, const Shape& src)
      : operands_(operands),
        activation_(code_of(operands.activation ? &*operands.activation : nullptr)) {
    traits = {.slices = true, .in_place = true};
    if (!operands.reduce) return;
    const std::int64_t channels = src[1];
    sums_at_ = sums_bytes(src.elements() / channels, channels);
    workspace_bytes = sums_at_ + 2 * float_bytes(channels);
  }

  void run(const KernelArgs& args) const override {
    if (operands_.reduce) reduce(args);
    if (operands_.apply && data_at(args.outputs, operands_.diff_src) != nullptr) apply(args);
  }

 private:
  // The sums of a pattern stand in the workspace, for the apply behind them.
  [[nodiscard]] const std::byte* own_shift(const KernelArgs& args) const {
    return args.workspace + sums_at_;
  }
  [[nodiscard]] const std::byte* own_scale(const KernelArgs& args) const {
    return own_shift(args) + float_bytes(args.inputs[operands_.mean].shape()[0]);
  }

  void reduce(const KernelArgs& args) const {
    launch_sums(args,
                {.diff = rows_of(args.inputs[operands_.diff]),
                 .other = rows_at(args.inputs, operands_.other),
                 .kept = rows_at(args.inputs, operands_.kept),
                 .stored = rows_at(args.outputs, operands_.stored),
                 .src = rows_of(args.inputs[operands_.src]),
                 .mean = args.inputs[operands_.mean].data,
                 .variance = args.inputs[operands_.variance].data,
                 .activation = activation_,
                 .epsilon = static_cast<float>(operands_.attributes.epsilon),
                 .sums = own_shift(args),
                 .sums_copy = data_at(args.outputs, operands_.diff_shift),
                 .products = own_scale(args),
                 .products_copy = data_at(args.outputs, operands_.diff_scale)},
                args.workspace);
  }

  void apply(const KernelArgs& args) const {
    Rows diff = rows_of(args.inputs[operands_.diff]);
    Rows other = rows_at(args.inputs, operands_.other);
    Rows kept = rows_at(args.inputs, operands_.kept);
    const Rows stored = rows_at(args.outputs, operands_.stored);
    // What the sums stored has passed the add and the activation.
    if (stored.data != nullptr) diff = stored, other = {}, kept = {};
    const Rows src = rows_of(args.inputs[operands_.src]);
    const Rows dst = rows_at(args.outputs, operands_.diff_src);
    const StretchRange range = stretch_range(args, src);
    const float share = operands_.attributes.frozen ? 0.0F : 1.0F / static_cast<float>(src.rows);
    Launch(args, {"kernels/batch_norm.cl", "norm_backward", range.options})
        .rows(diff)
        .rows(other)
        .rows(kept)
        .rows(src)
        .rows(dst)
        .buffer(args.inputs[operands_.mean].data)
        .buffer(args.inputs[operands_.variance].data)
        .buffer(data_at(args.inputs, operands_.scale))
        .buffer(operands_.reduce ? own_scale(args) : data_at(args.inputs, operands_.given_scale))
        .buffer(operands_.reduce ? own_shift(args) : data_at(args.inputs, operands_.given_shift))
        .value(src.width)
        .value(src.rows)
        .value(range.stretch)
        .value(static_cast<float>(operands_.attributes.epsilon))
        .value(share)
        .value(activation_.kind)
        .value(activation_.slope)
        .run(range.items, range.group);
  }

  patterns::NormBackwardOperands operands_;
  ActivationCode activation_;
  std::size_t sums_at_ = 0;
};

std::unique_ptr<Kernel> make_backward(const Problem& problem, std::span<const Layout>) {
  const patterns::NormBackwardOperands operands = patterns::norm_backward_operands(problem);
  auto kernel = std::make_unique<Backward>(operands, problem.input(operands.src).shape);
  set_layouts(*kernel, problem, Layout::nhwc());
  return kernel;
}

constexpr KernelRow kRows[] = {
    {"add_act_bn_backward", patterns::add_act_bn_backward, check_channels, make_backward},
    {"act_bn_backward", patterns::act_bn_backward, check_channels, make_backward},
    {"add_bn_backward", patterns::add_bn_backward, check_channels, make_backward},
    {"bn_backward", patterns::bn_backward, check_channels, make_backward},
    {"bn_backward_reduce", match_one<OpKind::bn_backward_reduce>, check_channels, make_backward},
    {"bn_backward_apply", match_one<OpKind::bn_backward_apply>, check_channels, make_backward},
    {"bn_apply_add_act", patterns::bn_apply_add_act, check_channels, make_apply},
    {"bn_apply_add", patterns::bn_apply_add, check_channels, make_apply},
    {"bn_apply_act", patterns::bn_apply_act, check_channels, make_apply},
    {"bn_statistics", match_one<OpKind::bn_statistics>, check_channels, make_statistics},
    {"bn_update_running", match_one<OpKind::bn_update_running>, check_elements, make_update},
    {"bn_apply", match_one<OpKind::bn_apply>, check_channels, make_apply},
};

}  // namespace

std::span<const KernelRow> batch_norm_rows() { return kRows; }

}  // namespace ridgeline::opencl
