#include "train/step_graph.h"

#include <fnmatch.h>

#include <algorithm>
#include <cmath>

#include "base/error.h"
#include "base/hash.h"
#include "base/parallel.h"
#include "base/philox.h"
#include "graph/autodiff.h"
#include "graph/leave_out.h"
#include "plan/precision.h"

namespace ridgeline {
namespace {

// Blocks of random numbers below which more threads gain nothing.
constexpr std::int64_t kLeastBlocks = 4096;

// Pixels, normalised; or a tensor that is so already.
ValueId network_input(Graph& graph, const StepSpec& spec, bool training) {
  const ModelConfig& model = spec.model;
  const Shape shape{spec.batch, model.channels, model.height, model.width};
  if (spec.tensor_input) return graph.add_value(kImages, {shape, spec.dtype}, Role::input);
  const auto channels = static_cast<std::size_t>(model.channels);
  NormalizeAttributes normalize{
      .mean = spec.mean.empty() ? std::vector<double>(channels, 0.0) : spec.mean,
      .deviation = spec.deviation.empty() ? std::vector<double>(channels, 1.0) : spec.deviation,
      .flip = spec.flip && training};
  normalize.dtype = spec.dtype;
  std::vector<ValueId> inputs = {graph.add_value(kImages, {shape, DType::u8}, Role::input)};
  if (normalize.flip) {
    inputs.push_back(graph.add_value(kSamples, {Shape{spec.batch}, DType::i32}, Role::input));
  }
  return graph.add_node(OpKind::normalize, std::move(normalize), inputs, "input", Phase::input)[0];
}

// A step as far as its logits or its loss.
struct ForwardGraph {
  StepGraph step;
  std::vector<AuxiliaryHead> heads;  // in training
  std::vector<ValueId> losses;       // whose sum step.loss is
};

// What all steps share: the input to logits.
ForwardGraph network_graph(const StepSpec& spec, const BuildNetwork& build, bool training) {
  const ModelConfig& model = spec.model;
  ForwardGraph made;
  StepGraph& step = made.step;
  const ValueId image = network_input(step.graph, spec, training);
  NetworkBuilder builder(step.graph, training, model.init, spec.dtype,
                         training ? spec.freeze : std::vector<std::string>());
  step.logits = build(builder, image);
  step.parameters = builder.parameters();
  if (training) {
    made.heads = builder.auxiliary_heads();
  } else if (!builder.auxiliary_heads().empty()) {
    SmallerGraph smaller = keep_what_leads_to(step.graph, {&step.logits, 1});
    step.logits = smaller.value_of[static_cast<std::size_t>(step.logits)];
    step.graph = std::move(smaller.graph);
  }
  return made;
}

// What training and evaluation share: pixels to loss and totals.
ForwardGraph forward_graph(const StepSpec& spec, const BuildNetwork& build, bool training) {
  ForwardGraph made = network_graph(spec, build, training);
  StepGraph& step = made.step;
  Graph& graph = step.graph;
  const ValueId labels = graph.add_value(kLabels, {Shape{spec.batch}, DType::i32}, Role::input);
  const ValueId totals = graph.add_value(kMetrics, {Shape{4}, DType::f64}, Role::metric);
  const auto add_loss = [&](ValueId logits, double weight, const std::string& layer) {
    const LossAttributes attributes{spec.label_smoothing, weight};
    made.losses.push_back(graph.add_node(OpKind::softmax_cross_entropy, attributes,
                                         {logits, labels}, layer, Phase::forward)[0]);
    return made.losses.back();
  };
  step.loss = add_loss(step.logits, 1.0, "loss");
  for (const AuxiliaryHead& head : made.heads) {
    const ValueId other = add_loss(head.logits, head.loss_weight, "auxiliary_loss");
    step.loss = graph.add_node(OpKind::add, {}, {step.loss, other}, "loss", Phase::forward)[0];
  }
  graph.add_node(OpKind::metrics, {}, {totals, step.loss, step.logits, labels}, "loss",
                 Phase::forward);
  graph.mark_output(step.loss);
  return made;
}

ValueId state_like(Graph& graph, const Parameter& parameter, DType dtype, const char* suffix) {
  return graph.add_value(parameter.name + suffix, {parameter.shape, dtype}, Role::optimizer_state);
}

void add_update(Graph& graph, const Parameter& parameter, ValueId gradient, const StepSpec& spec) {
  const ValueId value = graph.find(parameter.name);
  const std::string layer = parameter.name.substr(0, parameter.name.rfind('.'));
  if (const auto* sgd = std::get_if<SgdAttributes>(&spec.optimizer)) {
    std::vector<ValueId> inputs = {value, gradient};
    if (sgd->momentum != 0.0) {
      inputs.push_back(state_like(graph, parameter, spec.dtype, ".velocity"));
    }
    graph.add_node(OpKind::sgd, *sgd, std::move(inputs), layer, Phase::optimizer);
    return;
  }
  const ValueId m = state_like(graph, parameter, spec.dtype, ".m");
  const ValueId v = state_like(graph, parameter, spec.dtype, ".v");
  graph.add_node(OpKind::adam, std::get<AdamAttributes>(spec.optimizer), {value, gradient, m, v},
                 layer, Phase::optimizer);
}

BuildNetwork network_builder(const StepSpec& spec) {
  check_config(spec.model);
  return [&spec](NetworkBuilder& builder, ValueId image) {
    return build_network(builder, image, spec.model);
  };
}

StepGraph in_precision(StepGraph step, Precision precision) {
  if (precision == Precision::fp32) return step;
  PrecisionResult made = with_precision(step.graph, precision);
  step.logits = made.value_of[static_cast<std::size_t>(step.logits)];
  step.loss = made.value_of[static_cast<std::size_t>(step.loss)];
  step.graph = std::move(made.graph);
  return step;
}

StepGraph divided(StepGraph step, const DivideOptions& options) {
  if (!options.divides()) return step;
  DividedGraph made = divide_step(step.graph, options);
  step.logits = made.value_of[static_cast<std::size_t>(step.logits)];
  step.loss = made.value_of[static_cast<std::size_t>(step.loss)];
  step.graph = std::move(made.graph);
  return step;
}

// A pattern without a match is a slip of the pen.
void check_freeze(const StepSpec& spec, std::span<const Parameter> parameters) {
  for (const std::string& pattern : spec.freeze) {
    const bool used =
        std::any_of(parameters.begin(), parameters.end(), [&](const Parameter& parameter) {
          return parameter.role == Role::parameter &&
                 fnmatch(pattern.c_str(), parameter.name.c_str(), 0) == 0;
        });
    if (used) continue;
    bad_input("freeze '{}': no parameter of {} matches; names are like {} and {}", pattern,
              spec.model.name, parameters.front().name, parameters.back().name);
  }
}

}  // namespace

StepGraph training_graph(const StepSpec& spec, const BuildNetwork& build) {
  ForwardGraph forward = forward_graph(spec, build, true);
  StepGraph& step = forward.step;
  check_freeze(spec, step.parameters);
  std::vector<Parameter> trained;
  std::vector<ValueId> wanted;
  for (const Parameter& parameter : step.parameters) {
    if (parameter.role != Role::parameter || parameter.frozen) continue;
    trained.push_back(parameter);
    wanted.push_back(step.graph.find(parameter.name));
  }
  if (trained.empty()) bad_input("all parameters are frozen: nothing is left to train");
  std::vector<Seed> seeds;
  for (const ValueId loss : forward.losses) seeds.push_back({loss, kNoValue});
  std::vector<ValueId> gradients = differentiate(step.graph, seeds, wanted, spec.recompute);
  for (std::size_t i = 0; i < trained.size(); ++i) {
    ensure(gradients[i] != kNoValue, "{} has no influence on the loss", trained[i].name);
    step.graph.name_gradient(gradients[i], gradient_name(trained[i].name));
    if (spec.keep_gradients) step.graph.mark_output(gradients[i]);
  }
  if (spec.clip_norm > 0.0) {
    gradients = step.graph.add_node(OpKind::clip_norm, ClipNormAttributes{spec.clip_norm},
                                    gradients, "clip_norm", Phase::optimizer);
  }
  for (std::size_t i = 0; i < trained.size(); ++i) {
    add_update(step.graph, trained[i], gradients[i], spec);
  }
  return divided(in_precision(std::move(step), spec.precision), spec.divide);
}

StepGraph evaluation_graph(const StepSpec& spec, const BuildNetwork& build) {
  StepGraph step = forward_graph(spec, build, false).step;
  step.graph.mark_output(step.logits);
  return in_precision(std::move(step), spec.precision);
}

InferenceGraph inference_graph(const StepSpec& spec, const BuildNetwork& build) {
  StepGraph step = network_graph(spec, build, false).step;
  step.graph.mark_output(step.logits);
  InferenceGraph made{
      .graph = {}, .parameters = std::move(step.parameters), .folds = {}, .logits = step.logits};
  if (spec.fold_norms) {
    FoldResult folded = fold_norms(step.graph);
    made.logits = folded.value_of[static_cast<std::size_t>(made.logits)];
    made.folds = std::move(folded.folds);
    made.graph = std::move(folded.graph);
  } else {
    made.graph = std::move(step.graph);
  }
  if (spec.precision != Precision::fp32) {
    PrecisionResult narrow = with_precision(made.graph, spec.precision);
    made.logits = narrow.value_of[static_cast<std::size_t>(made.logits)];
    made.graph = std::move(narrow.graph);
  }
  return made;
}

StepGraph training_graph(const StepSpec& spec) {
  return training_graph(spec, network_builder(spec));
}

StepGraph evaluation_graph(const StepSpec& spec) {
  return evaluation_graph(spec, network_builder(spec));
}

InferenceGraph inference_graph(const StepSpec& spec) {
  return inference_graph(spec, network_builder(spec));
}

namespace {

constexpr double kCut = 2.0;  // of truncated normals, as torch.nn.init.trunc_normal_ has it
// Numbers that are drawn anew come from blocks far behind those of all first draws.
constexpr int kRedrawShift = 40;

double truncated_normal(PhiloxSequence& random, std::uint64_t block, double deviation) {
  double value = deviation * random.normal();
  for (std::uint64_t draw = 1; std::abs(value) > kCut; ++draw) {
    random.seek(block + (draw << kRedrawShift));
    value = deviation * random.normal();
    random.seek(block + 1);
  }
  return value;
}

}  // namespace

std::vector<double> initial_values(const Parameter& parameter, std::uint64_t seed) {
  const auto count = static_cast<std::size_t>(parameter.shape.elements());
  const double amount = parameter.init.amount;
  const Init::Kind kind = parameter.init.kind;
  if (kind == Init::Kind::given) {
    std::vector<double> values = parameter.init.values();
    ensure(values.size() == count, "{}: {} elements given, {} wanted", parameter.name,
           values.size(), count);
    return values;
  }
  std::vector<double> values(count, amount);
  if (kind == Init::Kind::constant) return values;
  // Values that a block of random numbers is good for.
  const std::size_t of_block = kind == Init::Kind::uniform ? 2 : 1;
  const std::uint64_t stream = hash_of(parameter.name);
  const auto blocks = static_cast<std::int64_t>((count + of_block - 1) / of_block);
  parallel_for(blocks, kLeastBlocks, [&](std::int64_t first, std::int64_t last) {
    PhiloxSequence random(seed, RandomStream::weights, stream);
    random.seek(static_cast<std::uint64_t>(first));
    const std::size_t end = std::min(count, static_cast<std::size_t>(last) * of_block);
    for (std::size_t i = static_cast<std::size_t>(first) * of_block; i < end; ++i) {
      values[i] = kind == Init::Kind::truncated_normal ? truncated_normal(random, i, amount)
                  : kind == Init::Kind::normal         ? amount * random.normal()
                                               : amount * (2.0 * random.uniform_double() - 1.0);
    }
  });
  return values;
}

}  // namespace ridgeline
