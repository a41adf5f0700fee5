// Batch normalisation, forward: statistics, alone and with the update of the running ones, which
// also stands alone; and apply, alone and as bn_apply [+ add] [+ activation].

#include "backends/cuda/norm/statistics_operands.h"
#include "backends/cuda/rows.h"
#include "backends/cuda/sums/counters.h"
#include "plan/patterns.h"

namespace ridgeline::cuda {
namespace {

const BatchNormAttributes& norm_of(const Node& node) {
  return std::get<BatchNormAttributes>(node.attributes);
}

std::vector<NodeId> match_statistics_update(const Graph& graph, NodeId first) {
  const std::vector<NodeId> nodes = statistics_with_update(graph, first);
  return nodes.size() == 2 ? nodes : std::vector<NodeId>();
}

class Statistics final : public Kernel {
 public:
  explicit Statistics(const Problem& problem) : operands_(problem, 0) {
    const TensorSpec& src = problem.input(0);
    const SumScratch scratch =
        statistics_scratch(src.dtype, src.shape.elements() / src.shape[1], src.shape[1]);
    workspace_bytes = scratch.bytes;
    counters_ = take_counters(scratch.counters);
    traits = {.slices = true};
  }

  void run(const KernelArgs& args) const override {
    NormStatistics task = operands_.task(args);
    task.dtype = args.inputs[0].spec.dtype;
    task.src = rows_of(args.inputs[0]);
    task.workspace = args.workspace;
    task.counters = counters_;
    launch_statistics(task, stream_of(args));
  }

 private:
  StatisticsOperands operands_;
  unsigned* counters_;
};

std::unique_ptr<Kernel> make_statistics(const Problem& problem, std::span<const Layout>) {
  auto kernel = std::make_unique<Statistics>(problem);
  set_layouts(*kernel, problem, Layout::nhwc());
  return kernel;
}

class UpdateRunning final : public Kernel {
 public:
  // The operands of one layer among the kernel's arguments.
  struct Layer {
    std::size_t running_mean, running_variance, mean, variance;  // inputs
    std::size_t new_mean, new_variance;                          // outputs
    double momentum, unbias;
  };

  explicit UpdateRunning(std::vector<Layer> layers) : layers_(std::move(layers)) {}

  void run(const KernelArgs& args) const override {
    RunningUpdate updates[kMostUpdates];
    int count = 0;
    for (std::size_t i = 0; i < layers_.size(); ++i) {
      updates[count++] = update_of(layers_[i], args);
      if (count == kMostUpdates || i + 1 == layers_.size()) {
        launch_running_updates(updates, count, args.state, stream_of(args));
        count = 0;
      }
    }
  }

 private:
  static RunningUpdate update_of(const Layer& layer, const KernelArgs& args) {
    RunningUpdate update;
    update.running_mean = args.inputs[layer.running_mean].as<float>();
    update.running_variance = args.inputs[layer.running_variance].as<float>();
    update.mean = args.inputs[layer.mean].as<float>();
    update.variance = args.inputs[layer.variance].as<float>();
    update.new_mean = args.outputs[layer.new_mean].as<float>();
    update.new_variance = args.outputs[layer.new_variance].as<float>();
    update.momentum = layer.momentum;
    update.unbias = layer.unbias;
    update.channels = args.inputs[layer.mean].shape()[0];
    return update;
  }

  std::vector<Layer> layers_;
};

std::unique_ptr<Kernel> make_update_running(const Problem& problem, std::span<const Layout>) {
  std::vector<UpdateRunning::Layer> layers;
  for (std::size_t i = 0; i < problem.nodes.size(); ++i) {
    const Node& node = problem.node(i);
    layers.push_back({problem.input_index(node.inputs[0]), problem.input_index(node.inputs[1]),
                      problem.input_index(node.inputs[2]), problem.input_index(node.inputs[3]),
                      problem.output_index(node.outputs[0]), problem.output_index(node.outputs[1]),
                      norm_of(node).momentum, unbias_of(norm_of(node))});
  }
  auto kernel = std::make_unique<UpdateRunning>(std::move(layers));
  set_layouts(*kernel, problem, Layout::nhwc());
  return kernel;
}

// One layer updated twice in a run would be read before it is written.
std::string check_updates(const Problem& problem) {
  for (const ValueId output : problem.outputs) {
    const ValueId former = problem.graph->value(output).version_of;
    if (problem.graph->value(former).producer == kNoNode) continue;
    return "the running statistics are versions made by another op";
  }
  return refuse_doubles(problem);
}

class Apply final : public Kernel {
 public:
  explicit Apply(const patterns::NormApplyOperands& operands)
      : operands_(operands),
        epsilon_(static_cast<float>(operands.attributes.epsilon)),
        activation_(code_of(operands.activation ? &*operands.activation : nullptr)) {
    traits = {.slices = true, .in_place = true};
  }

  void run(const KernelArgs& args) const override {
    NormApply task;
    task.dtype = args.inputs[operands_.src].spec.dtype;
    task.src = rows_of(args.inputs[operands_.src]);
    task.other = rows_at(args.inputs, operands_.other);
    task.dst = rows_of(args.outputs[0]);
    task.mean = args.inputs[operands_.mean].as<float>();
    task.variance = args.inputs[operands_.variance].as<float>();
    task.scale = args.inputs[operands_.scale].as<float>();
    task.shift = args.inputs[operands_.shift].as<float>();
    task.epsilon = epsilon_;
    task.activation = activation_.kind;
    task.slope = activation_.slope;
    launch_norm_apply(task, stream_of(args));
  }

 private:
  patterns::NormApplyOperands operands_;
  float epsilon_;
  ActivationCode activation_;
};

std::unique_ptr<Kernel> make_apply(const Problem& problem, std::span<const Layout>) {
  auto kernel = std::make_unique<Apply>(patterns::norm_apply_operands(problem));
  set_layouts(*kernel, problem, Layout::nhwc());
  return kernel;
}

constexpr KernelRow kRows[] = {
    {"bn_statistics_update", match_statistics_update, check_channels, make_statistics},
    {"bn_apply_add_act", patterns::bn_apply_add_act, check_channels, make_apply},
    {"bn_apply_add", patterns::bn_apply_add, check_channels, make_apply},
    {"bn_apply_act", patterns::bn_apply_act, check_channels, make_apply},
    {"bn_update_running_all", patterns::run_of_any<OpKind::bn_update_running>, check_updates,
     make_update_running},
    {"bn_statistics", match_one<OpKind::bn_statistics>, check_channels, make_statistics},
    {"bn_update_running", match_one<OpKind::bn_update_running>, refuse_doubles,
     make_update_running},
    {"bn_apply", match_one<OpKind::bn_apply>, check_channels, make_apply},
};

}  // namespace

std::span<const KernelRow> batch_norm_rows() { return kRows; }

}  // namespace ridgeline::cuda
