#include "inspect/verify.h"

#include <algorithm>
#include <cmath>
#include <limits>
#include <map>
#include <numeric>
#include <set>

#include "backends/registry.h"
#include "base/error.h"

namespace ridgeline {
namespace {

struct Computed {
  std::vector<double> elements;
  std::size_t step = 0;  // of the plan
};
using Expected = std::map<std::string, Computed>;

// In fp16: what training begins with overflows in fresh networks; it would be lowered there.
constexpr double kLossScale = 1024.0;
constexpr double kLargestScaled = 0x1p14;  // of gradients; fp16 ends at 2^16

Size size_of(std::span<const double> elements) {
  Size size;
  double squares = 0.0;
  for (const double element : elements) {
    size.largest = std::max(size.largest, std::abs(element));
    squares += element * element;
  }
  if (!elements.empty()) size.rms = std::sqrt(squares / static_cast<double>(elements.size()));
  return std::isfinite(squares) ? size : Size{};
}

// Terms that a sum in f32 may have before its rounding errors, √n units of Σ|terms| as they add up
// at random, reach the usual tolerance (1e-4) of a sum whose terms do not cancel.
constexpr double kTermsWithinTolerance = 1e-4 / 0x1p-24;

class Side {
 public:
  Side(const VerifyConfig& config, const PlanRequest& request, Precision precision,
       const Dataset& data, Device& device)
      : config_(config), data_(data), runner_(device, request), precision_(precision) {
    StepSpec step = config.step;
    step.precision = precision;
    plan_ = runner_.add_training(step);
    runner_.prepare(config.seed);
  }

  [[nodiscard]] const Plan& plan() const { return runner_.session().plan(plan_); }

  // In fp16, as large as the gradients that are expected allow.
  void set_loss_scale(const Sizes& expected) {
    if (precision_ != Precision::fp16) return;
    double largest = 0.0;
    for (const Value& value : plan().graph->values()) {
      const auto found = expected.find(value.name);
      if (found == expected.end() || value.spec.dtype != DType::f16 || !is_scaled(value)) continue;
      largest = std::max(largest, found->second.largest);
    }
    double scale = kLossScale;
    while (scale > 1.0 && scale * largest > kLargestScaled) scale /= 2.0;
    runner_.session().step_state().loss_scale = scale;
    runner_.session().write_step_state();
  }

  // Runs a step and hands over every value, by name, right after the plan's step that computes it.
  // What `take` leaves in the elements takes the value's place when it says so. A version that
  // nothing was written to is none of its own.
  template <typename Take>
  void run(std::int64_t number, Take&& take) {
    write_batch(number);
    Session& session = runner_.session();
    session.step_state() = {.learning_rate = config_.learning_rate,
                            .optimizer_step = number + 1,
                            .seed = config_.seed,
                            .random_step = number,
                            .valid_rows = config_.step.batch};
    scale_ = session.read_step_state().loss_scale;
    std::set<ValueId> seen;
    session.run_stepwise(plan_, [&](std::size_t s) {
      const Step& step = plan().steps[s];
      if (step.is_reorder()) return;
      for (const FormId form : step.outputs) {
        if (form == kNoForm) continue;
        const ValueId value = plan().form(form).value;
        const Value& about = plan().graph->value(value);
        const bool looked_at = plan().graph->node(about.producer).kind == OpKind::overflow_guard;
        if (looked_at || !seen.insert(value).second) continue;
        std::vector<double> elements = session.read_form(plan_, form);
        if (is_scaled(about)) {
          for (double& element : elements) element /= scale_;
        }
        if (!take(about.name, s, elements)) continue;
        if (is_scaled(about)) {
          for (double& element : elements) element *= scale_;
        }
        session.write_form(plan_, form, elements);
      }
    });
  }

 private:
  // Each step takes the next samples, from the beginning again when they run out.
  void write_batch(std::int64_t number) {
    const std::int64_t rows = config_.step.batch;
    const std::int64_t batches = data_.count() / rows;
    const auto first = static_cast<std::size_t>(number % batches * rows);
    const auto count = static_cast<std::size_t>(rows);
    std::vector<std::int32_t> numbers(count);
    std::iota(numbers.begin(), numbers.end(), static_cast<std::int32_t>(first));
    Batch batch;
    batch.pixels =
        std::span(data_.pixels).subspan(first * data_.sample_bytes(), count * data_.sample_bytes());
    batch.labels = std::span(data_.labels).subspan(first, count);
    batch.samples = numbers;
    batch.rows = rows;
    runner_.write_batch(batch);
    runner_.session().device().synchronize();
  }

  // Gradients come multiplied by the loss scale.
  [[nodiscard]] bool is_scaled(const Value& value) const {
    if (value.version_of != kNoValue) return false;
    const Phase phase = plan().graph->node(value.producer).phase;
    return phase == Phase::backward_data || phase == Phase::backward_weights;
  }

  const VerifyConfig& config_;
  const Dataset& data_;
  StepRunner runner_;
  Precision precision_;
  Session::PlanId plan_ = 0;
  double scale_ = 1.0;
};

bool within(const Deviation& deviation, double tolerance) {
  return deviation.max_relative <= tolerance;  // false for NaN
}

}  // namespace

double least_yardstick(const Graph& graph, ValueId id, const Sizes& sizes) {
  const Value& value = graph.value(id);
  if (value.producer == kNoNode) return 0.0;
  const Node* producer = &graph.node(value.producer);
  // Running statistics take their share of the batch's.
  if (producer->kind == OpKind::bn_update_running) {
    const NodeId statistics = graph.value(producer->inputs[2]).producer;
    if (statistics != kNoNode) producer = &graph.node(statistics);
  }
  const Node& node = *producer;
  const auto size = [&](std::size_t input) {
    const auto found = sizes.find(graph.value(node.inputs[input]).name);
    return found == sizes.end() ? Size{} : found->second;
  };
  // Of a sum over all but the channels.
  const auto root_of_terms = [&](std::size_t input) {
    const Shape& shape = graph.value(node.inputs[input]).spec.shape;
    const std::int64_t terms = shape.elements() / std::max<std::int64_t>(shape[1], 1);
    return std::sqrt(static_cast<double>(terms));
  };
  // Narrower types have tolerances that leave room for it.
  const bool narrow = graph.value(node.inputs[0]).spec.dtype != DType::f32;
  const auto of_terms = [&](double term, std::size_t input) {
    const double root = root_of_terms(input);
    return term * root * (narrow ? 1.0 : std::max(1.0, root * root / kTermsWithinTolerance));
  };
  switch (node.kind) {
    case OpKind::bn_statistics:
      return size(0).largest;
    case OpKind::bn_backward_reduce:
      return size(0).largest * root_of_terms(0);
    case OpKind::bias_backward:
      return of_terms(size(0).rms, 0);
    case OpKind::conv2d_backward_weights:
    case OpKind::linear_backward_weights:
      return of_terms(size(0).rms * size(1).rms, 1);
    case OpKind::sgd:  // the velocity begins as the gradient
      return value.role == Role::optimizer_state ? least_yardstick(graph, node.inputs[1], sizes)
                                                 : 0.0;
    default:
      return 0.0;
  }
}

Deviation deviation(std::span<const double> tested, std::span<const double> other,
                    double yardstick) {
  ensure(tested.size() == other.size(), "two values of different sizes are compared");
  double largest = 0.0, worst = 0.0, squares = 0.0, difference_squares = 0.0;
  for (std::size_t i = 0; i < other.size(); ++i) {
    const double difference = std::abs(tested[i] - other[i]);
    // A NaN must win over every number, which std::max does not promise.
    if (!(difference <= worst)) worst = difference;
    largest = std::max(largest, std::abs(other[i]));
    squares += other[i] * other[i];
    difference_squares += difference * difference;
    if (std::isnan(worst)) break;
  }
  const auto relative = [](double difference, double size) {
    if (difference == 0.0) return 0.0;
    return size > 0.0 ? difference / size : std::numeric_limits<double>::infinity();
  };
  const double size = std::max(largest, yardstick);
  squares = std::max(squares, yardstick * yardstick * static_cast<double>(other.size()));
  return {worst, relative(worst, size), std::sqrt(relative(difference_squares, squares))};
}

Deviation differing_share(std::span<const double> tested, std::span<const double> other) {
  ensure(tested.size() == other.size(), "two values of different sizes are compared");
  double worst = 0.0, differing = 0.0;
  for (std::size_t i = 0; i < other.size(); ++i) {
    worst = std::max(worst, std::abs(tested[i] - other[i]));
    if (tested[i] != other[i]) differing += 1.0;
  }
  const double share = other.empty() ? 0.0 : differing / static_cast<double>(other.size());
  return {worst, share, share};
}

std::optional<PlanRequest> unfused(const PlanRequest& request, Device& device) {
  PlanRequest made = without_search(request, device);
  auto& off = made.disabled_passes;
  if (find_backend(made.backend)->plain ||
      std::find(off.begin(), off.end(), "fusion") != off.end()) {
    return std::nullopt;
  }
  off.emplace_back("fusion");
  return made;
}

VerifyResult verify_steps(const VerifyConfig& config, const Dataset& data, Device& device,
                          Device& against_device) {
  if (config.steps < 1) bad_input("steps {}: must be at least 1", config.steps);
  if (!(config.tolerance > 0.0)) bad_input("tolerance {}: must be above 0", config.tolerance);
  ensure(data.count() >= config.step.batch, "fewer samples than the batch");
  Side tested(config, config.tested, config.step.precision, data, device);
  Side other(config, config.against, config.against_precision, data, against_device);
  const Graph &graph = *tested.plan().graph, &other_graph = *other.plan().graph;

  // Fused kernels keep to themselves what their sums are made of.
  std::optional<Side> sizing;
  if (const auto request = unfused(config.against, against_device)) {
    sizing.emplace(config, *request, config.against_precision, data, against_device);
  }

  VerifyResult result;
  std::map<std::string, std::size_t> index;  // of the rows, by the value's name
  for (std::int64_t number = 0; number < config.steps; ++number) {
    Expected expected;
    Sizes sizes;
    other.run(number, [&](const std::string& name, std::size_t s, std::vector<double>& elements) {
      sizes[name] = size_of(elements);
      expected[name] = {std::move(elements), s};
      return false;
    });
    tested.set_loss_scale(sizes);
    if (sizing) {
      sizing->set_loss_scale(sizes);
      sizing->run(number, [&](const std::string& name, std::size_t, std::vector<double>& elements) {
        sizes.try_emplace(name, size_of(elements));
        return false;
      });
    }
    tested.run(number, [&](const std::string& name, std::size_t s, std::vector<double>& elements) {
      const auto found = expected.find(name);
      if (found == expected.end()) {
        if (number == 0) result.only_tested.push_back(name);
        return false;
      }
      const auto [entry, is_new] = index.try_emplace(name, result.values.size());
      if (is_new) {
        const Step& step = tested.plan().steps[s];
        const Value& value = graph.value(graph.find(name));
        const Node& node = graph.node(value.producer);
        result.values.push_back({name,
                                 node.layer,
                                 node.phase,
                                 value.spec.shape,
                                 step.kernel_name(),
                                 other.plan().steps[found->second.step].kernel_name(),
                                 step.kernel->flop_factor,
                                 {},
                                 1});
      }
      VerifiedValue& row = result.values[entry->second];
      const DType dtype = graph.value(graph.find(name)).spec.dtype;
      const bool whole = dtype == DType::u8 || dtype == DType::i32;
      const Deviation now =
          whole ? differing_share(elements, found->second.elements)
                : deviation(elements, found->second.elements,
                            least_yardstick(other_graph, other_graph.find(name), sizes));
      if (!(now.max_relative <= row.worst.max_relative)) {
        row.worst = now;
        row.worst_step = number + 1;
      }
      if (!result.first_divergence && !within(now, config.tolerance)) {
        result.first_divergence = entry->second;
        result.divergence_step = number + 1;
      }
      elements = std::move(found->second.elements);
      return !config.accumulate;
    });
    if (number == 0) {
      for (const auto& [name, computed] : expected) {
        if (!index.contains(name)) result.only_other.push_back(name);
      }
    }
  }
  return result;
}

}  // namespace ridgeline
