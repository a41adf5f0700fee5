#include "backends/cuda/norm/statistics_operands.h"

namespace ridgeline::cuda {

std::vector<NodeId> statistics_with_update(const Graph& graph, NodeId statistics) {
  const Node& node = graph.node(statistics);
  if (node.kind != OpKind::bn_statistics) return {};
  for (const NodeId user : graph.value(node.outputs[0]).users) {
    const Node& update = graph.node(user);
    if (update.kind == OpKind::bn_update_running && update.inputs[2] == node.outputs[0] &&
        update.inputs[3] == node.outputs[1]) {
      return {statistics, user};
    }
  }
  return {statistics};
}

double unbias_of(const BatchNormAttributes& attributes) {
  const auto count = static_cast<double>(attributes.count);
  return count / (count - 1);
}

StatisticsOperands::StatisticsOperands(const Problem& problem, std::size_t first) {
  const Node& statistics = problem.node(first);
  mean_ = problem.find_output(statistics.outputs[0]);
  variance_ = problem.find_output(statistics.outputs[1]);
  if (first + 1 == problem.nodes.size()) return;
  const Node& update = problem.node(first + 1);
  const auto& attributes = std::get<BatchNormAttributes>(update.attributes);
  momentum_ = attributes.momentum;
  unbias_ = unbias_of(attributes);
  running_mean_ = problem.input_index(update.inputs[0]);
  running_variance_ = problem.input_index(update.inputs[1]);
  new_mean_ = problem.output_index(update.outputs[0]);
  new_variance_ = problem.output_index(update.outputs[1]);
}

NormStatistics StatisticsOperands::task(const KernelArgs& args) const {
  NormStatistics task;
  task.mean = floats_at(args.outputs, mean_);
  task.variance = floats_at(args.outputs, variance_);
  task.running_mean = floats_at(args.inputs, running_mean_);
  task.running_variance = floats_at(args.inputs, running_variance_);
  task.new_mean = floats_at(args.outputs, new_mean_);
  task.new_variance = floats_at(args.outputs, new_variance_);
  task.momentum = momentum_;
  task.unbias = unbias_;
  task.state = args.state;
  return task;
}

}  // namespace ridgeline::cuda
