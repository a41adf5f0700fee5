// Softmax cross-entropy, its gradient and the metrics.

#include "backends/opencl/rows.h"
#include "backends/opencl/sums.h"

namespace ridgeline::opencl {
namespace {

class Loss final : public Kernel {
 public:
  explicit Loss(const Problem& problem)
      : attributes_(std::get<LossAttributes>(problem.node().attributes)) {
    workspace_bytes = float_bytes(problem.input(0).shape[0]);
  }

  void run(const KernelArgs& args) const override {
    const Rows logits = rows_of(args.inputs[0]);
    Launch(args, {"kernels/loss.cl", "loss_rows"})
        .rows(logits)
        .rows(rows_at(args.outputs, 1))
        .buffer(args.inputs[1].data)
        .buffer(args.state)
        .buffer(args.workspace)
        .value(logits.rows)
        .value(logits.width)
        .value(static_cast<float>(attributes_.label_smoothing))
        .run({logits.rows}, {16});
    if (args.outputs[0].data == nullptr) return;
    Launch(args, {"kernels/loss.cl", "loss_mean"})
        .buffer(args.workspace)
        .buffer(args.state)
        .buffer(args.outputs[0].data)
        .value(logits.rows)
        .value(static_cast<float>(attributes_.weight))
        .run({1}, {1});
  }

 private:
  LossAttributes attributes_;
};

class LossBackward final : public Kernel {
 public:
  explicit LossBackward(const Problem& problem)
      : attributes_(std::get<LossAttributes>(problem.node().attributes)) {}

  void run(const KernelArgs& args) const override {
    if (args.outputs[0].data == nullptr) return;
    const Rows probabilities = rows_of(args.inputs[0]);
    Launch(args, {"kernels/loss.cl", "loss_backward"})
        .rows(probabilities)
        .rows(rows_of(args.outputs[0]))
        .buffer(args.inputs[1].data)
        .buffer(args.state)
        .value(probabilities.rows)
        .value(probabilities.width)
        .value(static_cast<float>(attributes_.label_smoothing))
        .value(static_cast<float>(attributes_.weight))
        .run({probabilities.width, probabilities.rows}, {8, 8});
  }

 private:
  LossAttributes attributes_;
};

class Metrics final : public Kernel {
 public:
  explicit Metrics(const Problem& problem) {
    workspace_bytes = float_bytes(problem.input(2).shape[0]);
  }

  void run(const KernelArgs& args) const override {
    const Rows logits = rows_of(args.inputs[2]);
    Launch(args, {"kernels/loss.cl", "label_ranks"})
        .rows(logits)
        .buffer(args.inputs[3].data)
        .buffer(args.workspace)
        .value(logits.rows)
        .value(logits.width)
        .run({logits.rows}, {16});
    Launch(args, {"kernels/loss.cl", "metrics"})
        .buffer(args.inputs[0].data)
        .buffer(args.inputs[1].data)
        .buffer(args.workspace)
        .buffer(args.state)
        .buffer(args.outputs[0].data)
        .value(logits.rows)
        .run({1}, {1});
  }
};

// The totals are f64, which the kernels keep as bits.
std::string check_loss(const Problem& problem) {
  for (const ValueId id : problem.inputs) {
    const TensorSpec& spec = problem.graph->value(id).spec;
    if (is_float(spec.dtype) && spec.dtype != DType::f32 && spec.shape != Shape{4}) {
      return "the kernels of OpenCL devices compute in f32";
    }
  }
  return {};
}

template <typename LossKernel>
std::unique_ptr<Kernel> make_loss(const Problem& problem, std::span<const Layout>) {
  auto kernel = std::make_unique<LossKernel>(problem);
  set_layouts(*kernel, problem, Layout::plain());
  kernel->traits = {.slices = true, .in_place = !std::is_same_v<LossKernel, Loss>};
  return kernel;
}

constexpr KernelRow kRows[] = {
    {"softmax_cross_entropy", match_one<OpKind::softmax_cross_entropy>, check_loss,
     make_loss<Loss>},
    {"softmax_cross_entropy_backward", match_one<OpKind::softmax_cross_entropy_backward>,
     check_loss, make_loss<LossBackward>},
    {"metrics", match_one<OpKind::metrics>, check_loss, make_loss<Metrics>},
};

}  // namespace

std::span<const KernelRow> loss_rows() { return kRows; }

}  // namespace ridgeline::opencl
