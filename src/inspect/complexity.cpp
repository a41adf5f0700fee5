#include "inspect/complexity.h"

#include <algorithm>
#include <cmath>
#include <limits>
#include <map>
#include <numeric>

#include "base/error.h"
#include "base/text.h"
#include "plan/memory.h"

namespace ridgeline {
namespace {

constexpr std::int64_t kMostSamples = std::numeric_limits<std::int32_t>::max();
// After that many guesses on the line, halving is certain to end.
constexpr int kPlansOnTheLine = 8;

bool is_forward(Phase phase) { return phase == Phase::input || phase == Phase::forward; }

std::int64_t moved_by(const Step& step) {
  return step.boundary.bytes_read + step.boundary.bytes_written;
}

// The nodes that a step of the plan computes; the others are views.
std::vector<char> computed_nodes(const Plan& plan) {
  std::vector<char> computed(plan.graph->nodes().size());
  for (const Step& step : plan.steps) {
    for (const NodeId node : step.nodes) computed[static_cast<std::size_t>(node)] = 1;
  }
  return computed;
}

constexpr std::int64_t kStepStateBytes = aligned(sizeof(StepState));

// What a session with this plan alone allocates.
std::int64_t session_bytes(const Plan& plan) {
  std::int64_t bytes = plan.scratch_bytes + kStepStateBytes;
  for (std::size_t id = 0; id < plan.forms.size(); ++id) {
    if (plan.in_state(static_cast<FormId>(id))) bytes += aligned(plan.forms[id].bytes);
  }
  return bytes;
}

// Adds what a forward op is called in the table of layers, once; batch norm's parts are one.
void append_op(std::vector<std::string>& ops, OpKind kind, bool view) {
  std::string name(name_of(kind));
  if (name.starts_with("bn_")) name = "batch_norm";
  if (view) name += " (view)";
  if (std::find(ops.begin(), ops.end(), name) == ops.end()) ops.push_back(std::move(name));
}

}  // namespace

StepWork work_of(const Plan& plan) {
  StepWork work;
  std::int64_t forward_bytes = 0;
  bool divisible = true;
  for (const Step& step : plan.steps) {
    std::int64_t forward_macs = 0;
    bool backward = false;
    for (const NodeId node : step.nodes) {
      const Phase phase = plan.graph->node(node).phase;
      const Cost cost = plan.graph->cost(node);
      work.by_phase[static_cast<std::size_t>(phase)] += cost;
      if (is_forward(phase)) forward_macs += cost.macs;
      backward = backward || !is_forward(phase);
    }
    work.moved_bytes += moved_by(step);
    if (is_forward(step.phase)) forward_bytes += moved_by(step);
    divisible = divisible && !(backward && forward_macs > 0);
  }
  for (const Cost& cost : work.by_phase) work.total += cost;
  if (divisible) work.forward_moved_bytes = forward_bytes;
  return work;
}

std::map<std::string, double> complexity_numbers(const Plan& plan, bool training) {
  const StepWork work = work_of(plan);
  std::map<std::string, double> numbers;
  const auto set = [&](const char* name, std::int64_t value) {
    numbers[name] = static_cast<double>(value);
  };
  std::int64_t executed = 0, read = 0, written = 0;
  for (const Step& step : plan.steps) {
    executed += step.boundary.flops;
    read += step.boundary.bytes_read;
    written += step.boundary.bytes_written;
  }
  set("executed_flops", executed);
  set("plan_bytes_read", read);
  set("plan_bytes_written", written);
  set("plan_steps", static_cast<std::int64_t>(plan.steps.size()));
  set("forward_macs", work.forward().macs);
  set("forward_flops", work.forward().flops);
  if (training) set("training_flops", work.total.flops);
  if (work.moved_bytes > 0) numbers["intensity"] = training_intensity(work);
  return numbers;
}

Cost StepWork::forward() const {
  Cost cost = of(Phase::input);
  cost += of(Phase::forward);
  return cost;
}

Cost LayerComplexity::total() const {
  Cost cost = forward;
  cost += backward;
  cost += optimizer;
  return cost;
}

std::optional<double> forward_intensity(const StepWork& work) {
  if (!work.forward_moved_bytes) return std::nullopt;
  return static_cast<double>(work.forward().flops) / static_cast<double>(*work.forward_moved_bytes);
}

std::optional<double> intensity(const Cost& cost) {
  const std::int64_t bytes = cost.bytes_read + cost.bytes_written;
  if (bytes == 0) return std::nullopt;
  return static_cast<double>(cost.flops) / static_cast<double>(bytes);
}

double training_intensity(const StepWork& work) {
  return static_cast<double>(work.total.flops) / static_cast<double>(work.moved_bytes);
}

BatchComplexity batch_complexity(const Plan& plan, std::int64_t batch) {
  BatchComplexity complexity{.batch = batch, .work = work_of(plan)};
  complexity.memory = plan.memory().by_role;
  complexity.memory[static_cast<std::size_t>(Role::metric)] += kStepStateBytes;
  complexity.peak = session_bytes(plan);
  complexity.gaps = complexity.peak - std::accumulate(complexity.memory.begin(),
                                                      complexity.memory.end(), std::int64_t{0});
  return complexity;
}

std::vector<LayerComplexity> layers_of(const Plan& plan) {
  const Graph& graph = *plan.graph;
  const std::vector<char> computed = computed_nodes(plan);
  std::vector<LayerComplexity> layers;
  std::vector<std::vector<std::string>> ops;
  std::map<std::string, std::size_t> position;
  for (std::size_t id = 0; id < graph.nodes().size(); ++id) {
    const Node& node = graph.nodes()[id];
    const auto [found, is_new] = position.emplace(node.layer, layers.size());
    if (is_new) {
      layers.emplace_back().layer = node.layer;
      ops.emplace_back();
    }
    LayerComplexity& layer = layers[found->second];
    const Cost cost = computed[id] != 0 ? graph.cost(static_cast<NodeId>(id)) : Cost{};
    if (node.phase == Phase::optimizer) {
      layer.optimizer += cost;
      layer.parameters += graph.value(node.inputs[0]).spec.shape.elements();
    } else if (is_forward(node.phase)) {
      layer.forward += cost;
      append_op(ops[found->second], node.kind, computed[id] == 0);
      const Value& output = graph.value(node.outputs[0]);
      if (output.version_of == kNoValue && output.spec.shape.rank() > 0) {
        layer.output = output.spec.shape;
      }
    } else {
      layer.backward += cost;
    }
  }
  for (std::size_t i = 0; i < layers.size(); ++i) layers[i].ops = joined(ops[i], "+");
  return layers;
}

Plan dry_plan(const StepSpec& spec, const PlanRequest& request, Device& device) {
  PlanRequest dry = without_search(request, device);
  dry.measure = false;
  return plan_for(training_graph(spec).graph, dry, device);
}

LargestBatch largest_batch(const StepSpec& spec, const PlanRequest& request, Device& device,
                           std::int64_t bytes, const BatchComplexity& known) {
  const auto plan_of = [&](std::int64_t batch) {
    StepSpec sized = spec;
    sized.batch = batch;
    return dry_plan(sized, request, device);
  };
  return largest_batch(plan_of, bytes, {known.batch, known.peak});
}

LargestBatch largest_batch(const PlanOfBatch& plan_of, std::int64_t bytes,
                           const LargestBatch& known) {
  // The answer lies from `fits` to below `beyond`; the line through the last two plans says where.
  LargestBatch fits{0, 0}, beyond{kMostSamples + 1, 0}, before, last = known;
  bool planned_all = true;
  const auto learn = [&](LargestBatch point) {
    before = last;
    last = point;
    LargestBatch& bound = point.bytes <= bytes ? fits : beyond;
    if (point.bytes <= bytes ? point.batch > bound.batch : point.batch < bound.batch) bound = point;
  };
  const auto plan = [&](std::int64_t batch) {
    try {
      learn({batch, session_bytes(plan_of(batch))});
    } catch (const Error&) {
      // Kernels have limits too, such as the number of elements.
      beyond = {batch, 0};
      planned_all = false;
    }
  };
  learn(last);
  plan(known.batch > 1 ? known.batch / 2 : 8);
  for (int plans = 1; beyond.batch - fits.batch > 1; ++plans) {
    std::int64_t guess = fits.batch + (beyond.batch - fits.batch) / 2;
    if (planned_all && plans < kPlansOnTheLine && last.bytes != before.bytes) {
      const double each = static_cast<double>(last.bytes - before.bytes) /
                          static_cast<double>(last.batch - before.batch);
      const double room = static_cast<double>(bytes - last.bytes) / each;
      guess = last.batch + static_cast<std::int64_t>(std::floor(std::clamp(room, -1e9, 1e9)));
    }
    plan(std::clamp(guess, fits.batch + 1, beyond.batch - 1));
  }
  return fits;
}

}  // namespace ridgeline
