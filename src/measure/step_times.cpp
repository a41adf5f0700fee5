#include "measure/step_times.h"

#include <algorithm>
#include <chrono>
#include <cmath>
#include <map>
#include <numeric>
#include <set>

#include "analysis/roofline/roofs.h"
#include "base/clock.h"
#include "base/error.h"
#include "base/text.h"
#include "devices/opencl_step_clock.h"
#include "devices/step_clock.h"
#include "ops/conv2d_touched.h"

namespace ridgeline {
namespace {

enum class Part { forward, backward, optimizer };

Part part_of(Phase phase) {
  if (phase == Phase::input || phase == Phase::forward) return Part::forward;
  return phase == Phase::optimizer ? Part::optimizer : Part::backward;
}

const Conv2dAttributes* convolution(const Node& node) {
  return std::get_if<Conv2dAttributes>(&node.attributes);
}

bool is_linear(OpKind kind) {
  return kind == OpKind::linear || kind == OpKind::linear_backward_data ||
         kind == OpKind::linear_backward_weights;
}

// One channel to a group: sums over the window alone, no matrix product.
bool is_depthwise(const Graph& graph, const Node& node, const Conv2dAttributes& attributes) {
  const ValueId src = node.kind == OpKind::conv2d_backward_data ? node.outputs[0] : node.inputs[0];
  return attributes.groups > 1 && graph.value(src).spec.shape[1] == attributes.groups;
}

// The type of the operands of a step's products; nothing when it has none.
std::optional<DType> product_type(const Plan& plan, const Step& step) {
  for (const NodeId id : step.nodes) {
    const Node& node = plan.graph->node(id);
    const Conv2dAttributes* attributes = convolution(node);
    const bool dense = attributes != nullptr && !is_depthwise(*plan.graph, node, *attributes);
    if (dense || is_linear(node.kind)) return plan.graph->value(node.inputs[0]).spec.dtype;
  }
  return std::nullopt;
}

// By the largest of its tensors: totals are kept in f64 whatever a step computes in.
bool computes_in_doubles(const Plan& plan, const Step& step) {
  const Form* largest = nullptr;
  for (const auto* forms : {&step.inputs, &step.outputs}) {
    for (const FormId id : *forms) {
      if (id == kNoForm) continue;
      if (largest == nullptr || plan.form(id).bytes > largest->bytes) largest = &plan.form(id);
    }
  }
  return largest != nullptr && plan.graph->value(largest->value).spec.dtype == DType::f64;
}

// Turns of the clock over one whole step, the sum of which is the step.
std::vector<double> stepwise_pass(Session& session, Session::PlanId plan) {
  std::vector<double> seconds;
  seconds.reserve(session.plan(plan).steps.size());
  Clock::time_point before = Clock::now();
  session.run_stepwise(plan, [&](std::size_t) {
    const Clock::time_point now = Clock::now();
    seconds.push_back(std::chrono::duration<double>(now - before).count());
    before = now;
  });
  return seconds;
}

double sum_of(std::span<const double> seconds) {
  return std::accumulate(seconds.begin(), seconds.end(), 0.0);
}

// Of each step, over the quarter of the passes around the median by their totals.
std::vector<double> mean_of_the_middle(std::vector<std::vector<double>> passes) {
  std::sort(passes.begin(), passes.end(),
            [](const auto& a, const auto& b) { return sum_of(a) < sum_of(b); });
  const std::size_t outer = 3 * passes.size() / 8;
  const auto middle = std::span(passes).subspan(outer, passes.size() - 2 * outer);
  std::vector<double> mean(middle.front().size());
  for (const std::vector<double>& pass : middle) {
    for (std::size_t s = 0; s < pass.size(); ++s) {
      mean[s] += pass[s] / static_cast<double>(middle.size());
    }
  }
  return mean;
}

// Puts the learning rate back, whatever happens in between.
class NoLearning {
 public:
  explicit NoLearning(StepState& state) : state_(state), rate_(state.learning_rate) {
    state_.learning_rate = 0.0;
  }
  NoLearning(const NoLearning&) = delete;
  NoLearning& operator=(const NoLearning&) = delete;
  ~NoLearning() { state_.learning_rate = rate_; }

 private:
  StepState& state_;
  decltype(StepState::learning_rate) rate_;
};

}  // namespace

std::string ops_of(const Plan& plan, const Step& step) {
  if (step.is_reorder()) return "reorder";
  std::vector<std::string_view> names;
  for (const NodeId node : step.nodes) {
    const std::string_view name = name_of(plan.graph->node(node).kind);
    if (names.empty() || names.back() != name) names.push_back(name);
  }
  return joined(names, "+");
}

std::string covers_of(const Plan& plan, const Step& step) {
  std::vector<std::string> ops;
  for (const NodeId id : step.nodes) {
    const Node& node = plan.graph->node(id);
    ops.push_back(fmt::format("{} {} {}", name_of(node.phase), name_of(node.kind), node.layer));
  }
  return joined(ops, "; ");
}

std::string phase_of(const Plan& plan, const Step& step) {
  std::set<Part> parts = {part_of(step.phase)};
  std::set<Phase> phases = {step.phase};
  for (const NodeId id : step.nodes) {
    const Node& node = plan.graph->node(id);
    if (node.kind == OpKind::softmax_cross_entropy_backward) continue;
    parts.insert(part_of(node.phase));
    phases.insert(node.phase);
  }
  if (parts.size() == 1) return std::string(name_of(step.phase));
  std::vector<std::string_view> names;
  for (const Phase phase : phases) names.push_back(name_of(phase));
  return joined(names, "+");
}

std::int64_t working_set_of(const Plan& plan, const Step& step) {
  // By the memory that they finally lie in: its views, each place once.
  std::map<FormId, std::map<std::int64_t, std::int64_t>> touched;
  for (const auto* forms : {&step.inputs, &step.outputs}) {
    for (const FormId id : *forms) {
      if (id == kNoForm) continue;
      const Plan::Root root = plan.root(id);
      std::int64_t& bytes = touched[root.form][root.offset];
      bytes = std::max(bytes, plan.graph->value(plan.form(id).value).spec.bytes());
    }
  }
  auto total = static_cast<std::int64_t>(step.kernel->workspace_bytes);
  for (const auto& [root, views] : touched) {
    std::int64_t bytes = 0;
    for (const auto& [offset, size] : views) bytes += size;
    total += std::min(bytes, plan.form(root).bytes);
  }
  return total;
}

std::int64_t bytes_read_by(const Plan& plan, const Step& step) {
  std::int64_t bytes = step.boundary.bytes_read;
  for (const NodeId id : step.nodes) {
    const Node& node = plan.graph->node(id);
    if (node.kind != OpKind::conv2d && node.kind != OpKind::conv2d_backward_weights) continue;
    const ValueId src = node.inputs[0];
    const ValueId dst = node.kind == OpKind::conv2d ? node.outputs[0] : node.inputs[1];
    const double share = src_pixels_read(*convolution(node), plan.graph->value(src).spec.shape,
                                         plan.graph->value(dst).spec.shape);
    for (const FormId form : step.inputs) {
      if (form == kNoForm || plan.form(form).value != src) continue;
      bytes -=
          std::llround((1.0 - share) * static_cast<double>(plan.graph->value(src).spec.bytes()));
    }
  }
  return bytes;
}

std::string unit_of(const Plan& plan, const Step& step, const Device& device) {
  if (!step.kernel->unit.empty()) return std::string(step.kernel->unit);
  if (!step.nodes.empty() && plan.graph->node(step.nodes[0]).kind == OpKind::all_reduce) {
    const auto& reduce = std::get<AllReduceAttributes>(plan.graph->node(step.nodes[0]).attributes);
    return link_unit(reduce.ranks, device.kind());
  }
  const std::string plain = computes_in_doubles(plan, step) ? "fp64" : "fp32";
  if (device.kind() != "cuda") return plain;
  const std::optional<DType> type = product_type(plan, step);
  if (!type) return plain;
  if (*type == DType::bf16) return "tensor bf16";
  if (*type == DType::f16) return "tensor fp16";
  if (*type == DType::f32 && plan.graph->allows_tf32()) return "tensor tf32";
  return plain;
}

std::vector<StepTime> step_times(const Plan& plan, const Device& device,
                                 std::span<const double> seconds) {
  ensure(seconds.size() == plan.steps.size(), "{} times for {} steps", seconds.size(),
         plan.steps.size());
  std::vector<StepTime> times;
  times.reserve(plan.steps.size());
  for (std::size_t s = 0; s < plan.steps.size(); ++s) {
    const Step& step = plan.steps[s];
    times.push_back({.index = static_cast<std::int64_t>(s),
                     .layer = step.layer,
                     .ops = ops_of(plan, step),
                     .phase = phase_of(plan, step),
                     .provider = step.provider,
                     .kernel = step.kernel_name(),
                     .seconds = seconds[s],
                     .flops = step.boundary.flops,
                     .work_flops = step.work.flops,
                     .bytes_read = bytes_read_by(plan, step),
                     .bytes_written = step.boundary.bytes_written,
                     .working_set_bytes = working_set_of(plan, step),
                     .unit = unit_of(plan, step, device),
                     .flop_factor = step.kernel->flop_factor,
                     .counted_bytes = std::nullopt,
                     .covers = covers_of(plan, step)});
  }
  return times;
}

double StepMeasurement::sum() const { return sum_of(seconds); }

StepMeasurement measure_steps(Session& session, Session::PlanId plan,
                              const StepMeasuring& measuring) {
  const NoLearning none(session.step_state());
  Device& device = session.device();
  const std::vector<Step>& steps = session.plan(plan).steps;
  // The second run is where a device records the plan.
  for (int i = 0; i < 2; ++i) session.run(plan);
  device.synchronize();
  std::unique_ptr<StepClock> events;
  if (device.kind() == "cuda") {
    const bool capturable = std::all_of(steps.begin(), steps.end(), [](const Step& step) {
      return step.kernel->traits.capturable;
    });
    events = std::make_unique<StepClock>(
        device, steps.size(), [&](std::size_t s) { session.launch_step(plan, s); }, capturable);
  }
  const bool opencl = device.kind() == "opencl";
  const auto one_pass = [&] {
    if (events != nullptr) return events->pass();
    if (!opencl) return stepwise_pass(session, plan);
    return opencl_step_times(device, steps.size(),
                             [&](std::size_t s) { session.launch_step(plan, s); });
  };
  // Where steps are queued, the way to the device is shared by some.
  const int queued = events == nullptr && !opencl ? 1 : 4;

  std::vector<std::vector<double>> passes;
  std::vector<std::vector<double>> log_shares;  // as passes of one step
  const Clock::time_point begin = Clock::now();
  StepMeasurement measurement;
  while (
      measurement.passes < measuring.fewest ||
      (measurement.passes < measuring.most && seconds_since(begin) < measuring.patience_seconds)) {
    const double seconds = device.time([&] {
      for (int i = 0; i < queued; ++i) session.run(plan);
    });
    passes.push_back(one_pass());
    log_shares.push_back({std::log(sum_of(passes.back()) * queued / seconds)});
    ++measurement.passes;
  }
  measurement.share_of_whole = std::exp(mean_of_the_middle(std::move(log_shares)).front());
  measurement.seconds = mean_of_the_middle(std::move(passes));
  return measurement;
}

PhaseSeconds split_of(std::span<const StepTime> steps) {
  PhaseSeconds split;
  for (const StepTime& step : steps) {
    if (step.phase == "input" || step.phase == "forward") {
      split.forward += step.seconds;
    } else if (step.phase == "optimizer") {
      split.optimizer += step.seconds;
    } else if (step.phase.find('+') != std::string::npos) {
      split.joint += step.seconds;
    } else {
      split.backward += step.seconds;
    }
  }
  return split;
}

}  // namespace ridgeline
