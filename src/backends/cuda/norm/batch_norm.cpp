// Batch normalisation, forward: statistics, alone and with the update of the running ones, which
// also stands alone; and apply, alone and as bn_apply [+ add] [+ activation].

#include "backends/cuda/conv/image_rows.h"
#include "backends/cuda/norm/batch_norm_kernels.h"
#include "backends/cuda/rows.h"
#include "backends/cuda/sums/counters.h"
#include "plan/patterns.h"

namespace ridgeline::cuda {
namespace {

const BatchNormAttributes& norm_of(const Node& node) {
  return std::get<BatchNormAttributes>(node.attributes);
}

// What makes a variance unbiased.
double unbias_of(const BatchNormAttributes& attributes) {
  const auto count = static_cast<double>(attributes.count);
  return count / (count - 1);
}

// A bn_statistics and the bn_update_running that uses both its results.
std::vector<NodeId> match_statistics_update(const Graph& graph, NodeId first) {
  const Node& statistics = graph.node(first);
  if (statistics.kind != OpKind::bn_statistics) return {};
  for (const NodeId user : graph.value(statistics.outputs[0]).users) {
    const Node& update = graph.node(user);
    if (update.kind == OpKind::bn_update_running && update.inputs[2] == statistics.outputs[0] &&
        update.inputs[3] == statistics.outputs[1]) {
      return {first, user};
    }
  }
  return {};
}

// Where the operands of the statistics stand; all but src may be absent.
struct StatisticsOperands {
  Index mean, variance, new_mean, new_variance;  // outputs
  Index running_mean, running_variance;          // inputs
};

class Statistics final : public Kernel {
 public:
  Statistics(const StatisticsOperands& operands, const TensorSpec& src,
             const BatchNormAttributes* update)
      : operands_(operands) {
    if (update != nullptr) momentum_ = update->momentum, unbias_ = unbias_of(*update);
    const SumScratch scratch =
        statistics_scratch(src.dtype, src.shape.elements() / src.shape[1], src.shape[1]);
    workspace_bytes = scratch.bytes;
    counters_ = take_counters(scratch.counters);
    traits = {.slices = true};
  }

  void run(const KernelArgs& args) const override {
    NormStatistics task;
    task.dtype = args.inputs[0].spec.dtype;
    task.src = rows_of(args.inputs[0]);
    task.mean = floats_at(args.outputs, operands_.mean);
    task.variance = floats_at(args.outputs, operands_.variance);
    task.running_mean = floats_at(args.inputs, operands_.running_mean);
    task.running_variance = floats_at(args.inputs, operands_.running_variance);
    task.new_mean = floats_at(args.outputs, operands_.new_mean);
    task.new_variance = floats_at(args.outputs, operands_.new_variance);
    task.momentum = momentum_;
    task.unbias = unbias_;
    task.state = args.state;
    task.workspace = args.workspace;
    task.counters = counters_;
    launch_statistics(task, stream_of(args));
  }

 private:
  StatisticsOperands operands_;
  double momentum_ = 0.0, unbias_ = 1.0;
  unsigned* counters_;
};

std::unique_ptr<Kernel> make_statistics(const Problem& problem, std::span<const Layout>) {
  const Node& statistics = problem.node();
  StatisticsOperands operands;
  operands.mean = problem.find_output(statistics.outputs[0]);
  operands.variance = problem.find_output(statistics.outputs[1]);
  const BatchNormAttributes* attributes = nullptr;
  if (problem.nodes.size() > 1) {
    const Node& update = problem.node(1);
    attributes = &norm_of(update);
    operands.running_mean = problem.input_index(update.inputs[0]);
    operands.running_variance = problem.input_index(update.inputs[1]);
    operands.new_mean = problem.output_index(update.outputs[0]);
    operands.new_variance = problem.output_index(update.outputs[1]);
  }
  auto kernel = std::make_unique<Statistics>(operands, problem.input(0), attributes);
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
