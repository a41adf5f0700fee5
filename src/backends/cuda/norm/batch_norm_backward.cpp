// Batch normalisation, backward: the two ops alone, and both in one step together with what makes
// their gradient: [add +] [activation_backward +] bn_backward_reduce + bn_backward_apply. Where the
// activation's gradient needs its src, that is computed again on the way: [add +] [bn_apply +] ...

#include "backends/cuda/conv/image_rows.h"
#include "backends/cuda/norm/batch_norm_backward_kernels.h"
#include "backends/cuda/rows.h"
#include "backends/cuda/sums/counters.h"
#include "backends/cuda/sums/gradient_sums_kernels.h"
#include "plan/patterns.h"

namespace ridgeline::cuda {
namespace {

// The pieces of the workspace.
struct Scratch {
  std::size_t coefficients = 0, mask = 0;  // where they begin; partial sums come first
  std::size_t bytes = 0;

  void take(std::size_t count) { bytes += (count + 63) / 64 * 64; }
};

class Backward final : public Kernel {
 public:
  Backward(const patterns::NormBackwardOperands& operands, const TensorSpec& src)
      : operands_(operands),
        attributes_(operands.attributes),
        activation_(code_of(operands.activation ? &*operands.activation : nullptr)) {
    // Where src comes first, it is read again after what others read of g was written.
    traits = {.slices = true, .in_place = operands.diff == 0 || !operands.stored};
    if (!operands.reduce) return;
    const std::int64_t channels = src.shape[1], rows = src.shape.elements() / channels;
    const SumScratch sums = gradient_sums_scratch(src.dtype, rows, channels, true);
    counters_ = take_counters(sums.counters);
    scratch_.take(sums.bytes);
    scratch_.coefficients = scratch_.bytes;
    scratch_.take(static_cast<std::size_t>(3 * channels) * sizeof(float));
    scratch_.mask = scratch_.bytes;
    const int full = 16 / static_cast<int>(size_of(src.dtype));
    const int pack = channels % full == 0 ? full : channels % 2 == 0 && full == 8 ? 2 : 1;
    if (operands.apply && !operands.stored && has_mask(activation_.kind, pack)) mask_pack_ = pack;
    if (mask_pack_ > 0) scratch_.take(static_cast<std::size_t>(rows * channels / pack));
    workspace_bytes = scratch_.bytes;
  }

  void run(const KernelArgs& args) const override {
    const Gradient gradient = gradient_of(args);
    const bool wanted = gradient.stored.data != nullptr ||
                        floats_at(args.outputs, operands_.diff_scale) != nullptr ||
                        floats_at(args.outputs, operands_.diff_shift) != nullptr;
    // A frozen normalisation's diff_src needs no sums.
    const bool sums = operands_.reduce && (wanted || !attributes_.frozen);
    if (sums) reduce(args, gradient);
    if (operands_.apply) apply(args, gradient, sums);
  }

 private:
  // What both kernels read, and how.
  struct Gradient {
    Rows diff, other, kept, src, stored, diff_src;
    int pack = 1;
    unsigned char* mask = nullptr;
  };

  [[nodiscard]] Gradient gradient_of(const KernelArgs& args) const {
    Gradient g;
    g.diff = rows_of(args.inputs[operands_.diff]);
    g.other = rows_at(args.inputs, operands_.other);
    g.kept = rows_at(args.inputs, operands_.kept);
    g.src = rows_of(args.inputs[operands_.src]);
    g.stored = rows_at(args.outputs, operands_.stored);
    g.diff_src = rows_at(args.outputs, operands_.diff_src);
    g.pack = word_pack_for(dtype(args), {g.diff, g.other, g.kept, g.src, g.stored, g.diff_src});
    if (g.pack == mask_pack_) {
      g.mask = reinterpret_cast<unsigned char*>(args.workspace) + scratch_.mask;
    }
    return g;
  }

  [[nodiscard]] DType dtype(const KernelArgs& args) const {
    return args.inputs[operands_.src].spec.dtype;
  }

  void reduce(const KernelArgs& args, const Gradient& gradient) const {
    GradientSums task;
    task.dtype = dtype(args);
    task.pack = gradient.pack;
    task.diff = gradient.diff;
    task.other = gradient.other;
    task.kept = gradient.kept;
    task.stored = gradient.stored;
    task.src = gradient.src;
    task.mask = gradient.mask;
    task.activation = activation_.kind;
    task.slope = activation_.slope;
    task.mean = args.inputs[operands_.mean].as<float>();
    task.variance = args.inputs[operands_.variance].as<float>();
    task.scale = floats_at(args.inputs, operands_.scale);
    task.shift = floats_at(args.inputs, operands_.shift);
    task.epsilon = attributes_.epsilon;
    task.frozen = attributes_.frozen;
    task.sums = floats_at(args.outputs, operands_.diff_shift);
    task.products = floats_at(args.outputs, operands_.diff_scale);
    if (operands_.apply) task.coefficients = coefficients(args);
    task.workspace = args.workspace;
    task.counters = counters_;
    launch_gradient_sums(task, stream_of(args));
  }

  void apply(const KernelArgs& args, const Gradient& gradient, bool after_sums) const {
    NormBackward task;
    task.dtype = dtype(args);
    task.pack = gradient.pack;
    task.diff_src = gradient.diff_src;
    if (!attributes_.frozen || operands_.shift) task.src = gradient.src;
    if (gradient.stored.data != nullptr) {
      task.diff = gradient.stored;
    } else {
      task.diff = gradient.diff;
      task.other = gradient.other;
      task.kept = gradient.kept;
      task.mask = after_sums ? gradient.mask : nullptr;
      task.shift = floats_at(args.inputs, operands_.shift);
      task.activation = activation_.kind;
      task.slope = activation_.slope;
    }
    if (after_sums) task.coefficients = coefficients(args);
    task.mean = args.inputs[operands_.mean].as<float>();
    task.variance = args.inputs[operands_.variance].as<float>();
    task.scale = floats_at(args.inputs, operands_.scale);
    task.diff_scale = floats_at(args.inputs, operands_.given_scale);
    task.diff_shift = floats_at(args.inputs, operands_.given_shift);
    task.epsilon = attributes_.epsilon;
    task.frozen = attributes_.frozen;
    launch_norm_backward(task, stream_of(args));
  }

  [[nodiscard]] float* coefficients(const KernelArgs& args) const {
    return reinterpret_cast<float*>(args.workspace + scratch_.coefficients);
  }

  patterns::NormBackwardOperands operands_;
  BatchNormAttributes attributes_;
  ActivationCode activation_;
  Scratch scratch_;
  unsigned* counters_ = nullptr;
  int mask_pack_ = 0;  // the packs for which the workspace has room for a mask; 0: for none
};

std::unique_ptr<Kernel> make_backward(const Problem& problem, std::span<const Layout>) {
  const patterns::NormBackwardOperands operands = patterns::norm_backward_operands(problem);
  auto kernel = std::make_unique<Backward>(operands, problem.input(operands.src));
  set_layouts(*kernel, problem, Layout::nhwc());
  return kernel;
}

constexpr KernelRow kRows[] = {
    {"add_again_act_bn_backward", patterns::add_again_act_bn_backward, check_channels,
     make_backward},
    {"again_act_bn_backward", patterns::again_act_bn_backward, check_channels, make_backward},
    {"add_act_bn_backward", patterns::add_act_bn_backward, check_channels, make_backward},
    {"act_bn_backward", patterns::act_bn_backward, check_channels, make_backward},
    {"add_bn_backward", patterns::add_bn_backward, check_channels, make_backward},
    {"bn_backward", patterns::bn_backward, check_channels, make_backward},
    {"bn_backward_reduce", match_one<OpKind::bn_backward_reduce>, check_channels, make_backward},
    {"bn_backward_apply", match_one<OpKind::bn_backward_apply>, check_channels, make_backward},
};

}  // namespace

std::span<const KernelRow> batch_norm_backward_rows() { return kRows; }

}  // namespace ridgeline::cuda
