#include "graph/divide.h"

#include <algorithm>
#include <map>
#include <utility>

#include "base/error.h"

namespace ridgeline {
namespace {

class Divider {
 public:
  Divider(const Graph& graph, const DivideOptions& options)
      : from_(graph), options_(options), part_(options.part) {
    made_.value_of.assign(graph.values().size(), kNoValue);
    summed_.assign(graph.values().size(), kNoValue);
    made_.graph.allow_tf32(graph.allows_tf32());
  }

  DividedGraph run() {
    for (std::size_t id = 0; id < from_.values().size(); ++id) {
      const Value& value = from_.values()[id];
      if (value.producer != kNoNode) continue;
      made_.value_of[id] = made_.graph.add_value(value.name, value.spec, value.role);
    }
    fill_buckets();
    for (NodeId id = 0; id < static_cast<NodeId>(from_.nodes().size()); ++id) {
      const Node& node = from_.node(id);
      if (node.phase == Phase::optimizer) {
        end_backward();
        update(node);
      } else if (node.kind == OpKind::bn_update_running) {
        // No later op of the step reads running statistics: they wait until the exchange is over.
        if (ended_) {
          copy_update(node);
        } else {
          norm_updates_.push_back(&node);
        }
      } else {
        copy(node);
        after(node);
      }
    }
    end_backward();
    for (const ValueId output : from_.outputs()) {
      const ValueId sum = summed_[at(output)];
      const ValueId kept = sum != kNoValue ? sum : made_.value_of[at(output)];
      if (kept != kNoValue) made_.graph.mark_output(kept);
    }
    return std::move(made_);
  }

 private:
  static std::size_t at(ValueId id) { return static_cast<std::size_t>(id); }
  [[nodiscard]] ValueId mapped(ValueId id) const { return made_.value_of[at(id)]; }
  // What updates are made from: the sum of all parts.
  [[nodiscard]] ValueId summed(ValueId id) const {
    return summed_[at(id)] != kNoValue ? summed_[at(id)] : mapped(id);
  }
  [[nodiscard]] bool is_gradient(ValueId id) const {
    const Value& value = from_.value(id);
    return value.role == Role::gradient && value.version_of == kNoValue;
  }
  [[nodiscard]] double share_of_pass() const {
    return static_cast<double>(part_.rows) / static_cast<double>(part_.pass_rows);
  }

  // In the order in which they are made.
  void fill_buckets() {
    std::vector<ValueId> gradients;
    for (const Node& node : from_.nodes()) {
      for (const ValueId output : node.outputs) {
        if (is_gradient(output)) gradients.push_back(output);
      }
      if (node.kind == OpKind::bn_statistics) last_statistics_ = made_from(node);
    }
    std::int64_t bytes = 0;
    for (const ValueId id : gradients) {
      if (buckets_.empty() || bytes >= options_.bucket_bytes) {
        buckets_.emplace_back();
        bytes = 0;
      }
      buckets_.back().push_back(id);
      bytes += from_.value(id).spec.bytes();
    }
    for (const auto& bucket : buckets_) full_after_[from_.value(bucket.back()).producer] = &bucket;
  }

  std::vector<ValueId> copy(const Node& node, std::vector<ValueId> inputs) {
    std::vector<ValueId> outputs =
        made_.graph.add_node(node.kind, divided(node), std::move(inputs), node.layer, node.phase);
    for (std::size_t i = 0; i < outputs.size(); ++i) {
      made_.value_of[at(node.outputs[i])] = outputs[i];
    }
    return outputs;
  }

  void copy(const Node& node) {
    std::vector<ValueId> inputs;
    for (const ValueId input : node.inputs) inputs.push_back(mapped(input));
    if (node.kind == OpKind::bn_backward_apply) synchronise_sums(node, inputs);
    const std::vector<ValueId> outputs = copy(node, std::move(inputs));
    if (options_.several_passes) return;
    for (std::size_t i = 0; i < outputs.size(); ++i) {
      if (is_gradient(node.outputs[i])) {
        made_.graph.name_gradient(outputs[i], from_.value(node.outputs[i]).name);
      }
    }
  }

  [[nodiscard]] Attributes divided(const Node& node) const {
    Attributes attributes = node.attributes;
    if (node.kind == OpKind::softmax_cross_entropy_backward) {
      // The op divides by the rows of this part.
      std::get<LossAttributes>(attributes).weight *=
          static_cast<double>(part_.rows) / static_cast<double>(part_.batch_rows);
    } else if (node.kind == OpKind::bn_update_running && options_.synchronise_norms) {
      auto& norm = std::get<BatchNormAttributes>(attributes);
      norm.count = norm.count / std::max<std::int64_t>(part_.rows, 1) * part_.pass_rows;
    }
    return attributes;
  }

  void after(const Node& node) {
    if (node.kind == OpKind::bn_statistics && options_.ranks > 1) {
      if (options_.synchronise_norms) {
        merge_statistics(node);
      } else if (made_from(node) == last_statistics_) {
        average_statistics();
      }
    }
    const auto full = full_after_.find(made_from(node));
    if (full != full_after_.end()) sum(*full->second);
  }
  [[nodiscard]] NodeId made_from(const Node& node) const {
    return static_cast<NodeId>(&node - from_.nodes().data());
  }

  void merge_statistics(const Node& node) {
    const std::vector<ValueId> merged = made_.graph.add_node(
        OpKind::merge_statistics,
        MergeStatisticsAttributes{.ranks = options_.ranks, .weight = share_of_pass()},
        {mapped(node.outputs[0]), mapped(node.outputs[1])}, node.layer, node.phase);
    for (std::size_t i = 0; i < merged.size(); ++i) made_.value_of[at(node.outputs[i])] = merged[i];
  }

  // The gradient through common statistics takes the sums of all ranks. The op divides by the rows
  // of its own input.
  void synchronise_sums(const Node& node, std::vector<ValueId>& inputs) {
    constexpr std::size_t kFirstSum = 5;
    const bool frozen = std::get<BatchNormAttributes>(node.attributes).frozen;
    if (!options_.synchronise_norms || options_.ranks == 1 || frozen) return;
    const double scale = static_cast<double>(std::max<std::int64_t>(part_.rows, 1)) /
                         static_cast<double>(part_.pass_rows);
    const std::vector<ValueId> sums = made_.graph.add_node(
        OpKind::all_reduce, AllReduceAttributes{.ranks = options_.ranks, .scale = scale},
        {inputs[kFirstSum], inputs[kFirstSum + 1]}, node.layer, node.phase);
    inputs[kFirstSum] = sums[0];
    inputs[kFirstSum + 1] = sums[1];
  }

  // A bucket whose gradients are all there.
  void sum(const std::vector<ValueId>& bucket) {
    std::vector<ValueId> values;
    for (const ValueId id : bucket) values.push_back(mapped(id));
    const std::string layer = fmt::format("gradients.{}", summed_buckets_++);
    if (options_.several_passes) values = accumulate(bucket, values, layer);
    if (options_.ranks > 1 && options_.last_pass) {
      values = made_.graph.add_node(
          OpKind::all_reduce,
          AllReduceAttributes{.ranks = options_.ranks, .in_place = true, .wire = options_.wire},
          values, layer, Phase::backward_weights);
    }
    for (std::size_t i = 0; i < bucket.size(); ++i) summed_[at(bucket[i])] = values[i];
  }

  std::vector<ValueId> accumulate(const std::vector<ValueId>& bucket,
                                  const std::vector<ValueId>& values, const std::string& layer) {
    std::vector<ValueId> inputs;
    for (const ValueId id : bucket) {
      const Value& gradient = from_.value(id);
      const TensorSpec spec = {gradient.spec.shape, wide_type(gradient.spec.dtype)};
      inputs.push_back(made_.graph.add_value(gradient.name + "_sum", spec, Role::gradient));
    }
    inputs.insert(inputs.end(), values.begin(), values.end());
    return made_.graph.add_node(OpKind::accumulate, AccumulateAttributes{options_.first_pass},
                                std::move(inputs), layer, Phase::backward_weights);
  }

  void end_backward() {
    if (std::exchange(ended_, true)) return;
    for (const Node* node : norm_updates_) copy_update(*node);
  }

  void copy_update(const Node& node) {
    std::vector<ValueId> inputs;
    for (const ValueId input : node.inputs) inputs.push_back(summed(input));
    (void)copy(node, std::move(inputs));
  }

  // The mean of all ranks' batch statistics, for running ones.
  void average_statistics() {
    std::vector<ValueId> statistics, values;
    for (const Node& node : from_.nodes()) {
      if (node.kind != OpKind::bn_statistics) continue;
      for (const ValueId output : node.outputs) statistics.push_back(output);
    }
    for (const ValueId id : statistics) values.push_back(mapped(id));
    const std::vector<ValueId> means = made_.graph.add_node(
        OpKind::all_reduce, AllReduceAttributes{.ranks = options_.ranks, .weight = share_of_pass()},
        values, "running statistics", Phase::forward);
    for (std::size_t i = 0; i < means.size(); ++i) summed_[at(statistics[i])] = means[i];
  }

  // Updates are made from the sums, once all passes are done.
  void update(const Node& node) {
    if (!options_.last_pass) {
      for (std::size_t i = 0; i < node.outputs.size(); ++i) {
        const auto updates = static_cast<std::size_t>(
            std::max(0, op_def(node.kind)
                            .outputs(node.attributes, from_.input_specs(made_from(node)))[i]
                            .updates));
        made_.value_of[at(node.outputs[i])] = summed(node.inputs[updates]);
      }
      return;
    }
    copy_update(node);
  }

  const Graph& from_;
  const DivideOptions& options_;
  BatchPart part_;
  DividedGraph made_;
  std::vector<std::vector<ValueId>> buckets_;  // of gradients
  std::map<NodeId, const std::vector<ValueId>*> full_after_;
  std::vector<ValueId> summed_;  // what stands for a gradient or statistic of all parts
  std::vector<const Node*> norm_updates_;
  std::int64_t summed_buckets_ = 1;
  NodeId last_statistics_ = kNoNode;  // of the nodes that make batch statistics
  bool ended_ = false;
};

}  // namespace

DividedGraph divide_step(const Graph& graph, const DivideOptions& options) {
  return Divider(graph, options).run();
}

}  // namespace ridgeline
