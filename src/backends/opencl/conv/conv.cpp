#include <variant>

#include "backends/opencl/common.h"
#include "backends/opencl/conv/conv_choice.h"
#include "backends/opencl/conv/conv_rows.h"
#include "backends/opencl/conv/conv_run.h"
#include "plan/patterns.h"

namespace ridgeline::opencl {
namespace {

bool is_linear(const Problem& problem) {
  const OpKind kind = problem.node().kind;
  return kind == OpKind::linear || kind == OpKind::linear_backward_data ||
         kind == OpKind::linear_backward_weights;
}

// A matrix product is a convolution of images of one pixel.
Conv2dAttributes attributes_of(const Problem& problem) {
  if (is_linear(problem)) return {};
  return std::get<Conv2dAttributes>(problem.node().attributes);
}

const Shape& shape_of(const Problem& problem, ValueId value) {
  return problem.graph->value(value).spec.shape;
}

conv::Geometry shapes_of(const Problem& problem) {
  const Node& node = problem.node();
  const OpKind kind = node.kind;
  const Shape& first = shape_of(problem, node.inputs[0]);
  if (kind == OpKind::conv2d_backward_data || kind == OpKind::linear_backward_data) {
    return conv::geometry_of(attributes_of(problem), shape_of(problem, node.outputs[0]), first);
  }
  if (kind == OpKind::conv2d_backward_weights || kind == OpKind::linear_backward_weights) {
    return conv::geometry_of(attributes_of(problem), first, shape_of(problem, node.inputs[1]));
  }
  return conv::geometry_of(attributes_of(problem), first, shape_of(problem, node.outputs[0]));
}

conv::Geometry geometry_of(const Problem& problem) {
  conv::Geometry geometry = shapes_of(problem);
  geometry.half = problem.input(0).dtype == DType::f16;
  return geometry;
}

// Groups of one channel; a single one is a dense convolution.
bool is_depthwise(const conv::Geometry& geometry) {
  return geometry.attributes.groups > 1 && geometry.group_src() == 1;
}

using conv::Tiles;

// Depthwise kernels have no tiles.
template <std::string (*refuse_tiles)(Tiles, bool), Tiles tiles>
std::string refuse(const Problem& problem) {
  std::string reason = check_channels(problem);
  if (!reason.empty()) return reason;
  const conv::Geometry geometry = geometry_of(problem);
  reason = conv::refuse_size(geometry);
  return reason.empty() && !is_depthwise(geometry) ? refuse_tiles(tiles, geometry.half) : reason;
}

// Where a node's inputs stand among the kernel's.
std::size_t place_of(const Problem& problem, std::size_t input) {
  return problem.input_index(problem.node().inputs[input]);
}

// Forward with what the pattern's other nodes add.
class ConvForward final : public Kernel {
 public:
  ConvForward(const Problem& problem, Tiles tiles)
      : src_(place_of(problem, 0)), weights_(place_of(problem, 1)) {
    const patterns::Chain chain = patterns::chain_of(problem);
    if (chain.bias != nullptr) bias_ = problem.input_index(chain.bias->inputs[1]);
    if (chain.activation != nullptr) {
      activation_ = code_of(&std::get<ActivationAttributes>(chain.activation->attributes));
    }
    const conv::Geometry geometry = geometry_of(problem);
    if (is_depthwise(geometry)) {
      const conv::DepthwisePlan& plan =
          plan_.emplace<conv::DepthwisePlan>(plan_depthwise(geometry));
      workspace_bytes = plan.workspace_bytes;
      implementation = "depthwise";
    } else if (conv::takes_few(geometry, tiles)) {
      const conv::FewPlan& plan = plan_.emplace<conv::FewPlan>(conv::plan_few(geometry));
      workspace_bytes = few_forward_bytes(plan);
      implementation = "few pixels";
      flop_factor = static_cast<double>(plan.pitch) / plan.pixels;
    } else {
      const conv::GatherPlan& plan =
          plan_.emplace<conv::GatherPlan>(conv::choose_forward(geometry, tiles, problem.measure));
      workspace_bytes = plan.workspace_bytes;
      implementation = plan.tile.text();
      flop_factor = plan.flop_factor;
    }
  }

  void run(const KernelArgs& args) const override {
    if (args.outputs[0].data == nullptr) return;
    const Rows src = rows_of(args.inputs[src_]), dst = rows_of(args.outputs[0]);
    const void* weights = args.inputs[weights_].data;
    const conv::Epilogue epilogue = {data_at(args.inputs, bias_), activation_.kind,
                                     activation_.slope};
    if (const auto* plan = std::get_if<conv::DepthwisePlan>(&plan_)) {
      run_depthwise(*plan, src, weights, dst, epilogue, args.workspace, queue_of(args));
    } else if (const auto* few = std::get_if<conv::FewPlan>(&plan_)) {
      run_few_forward(*few, src, weights, dst, epilogue, args.workspace, queue_of(args));
    } else {
      run_gather(std::get<conv::GatherPlan>(plan_), src, weights, dst, epilogue, args.workspace,
                 queue_of(args));
    }
  }

 private:
  std::size_t src_, weights_;
  Index bias_;
  ActivationCode activation_;
  std::variant<conv::GatherPlan, conv::DepthwisePlan, conv::FewPlan> plan_;
};

class ConvBackwardData final : public Kernel {
 public:
  ConvBackwardData(const Problem& problem, Tiles tiles)
      : diff_dst_(place_of(problem, 0)), weights_(place_of(problem, 1)) {
    const conv::Geometry geometry = geometry_of(problem);
    if (is_depthwise(geometry)) {
      const conv::DepthwisePlan& plan =
          plan_.emplace<conv::DepthwisePlan>(plan_depthwise_data(geometry));
      workspace_bytes = plan.workspace_bytes;
      implementation = "depthwise";
    } else if (conv::takes_few(geometry, tiles)) {
      workspace_bytes = few_data_bytes(plan_.emplace<conv::FewPlan>(conv::plan_few(geometry)));
      implementation = "few pixels";
    } else {
      const conv::GatherPlan& plan = plan_.emplace<conv::GatherPlan>(
          conv::choose_backward_data(geometry, tiles, problem.measure));
      workspace_bytes = plan.workspace_bytes;
      implementation = plan.tile.text();
      flop_factor = plan.flop_factor;
    }
  }

  void run(const KernelArgs& args) const override {
    if (args.outputs[0].data == nullptr) return;
    const Rows diff_dst = rows_of(args.inputs[diff_dst_]), diff_src = rows_of(args.outputs[0]);
    const void* weights = args.inputs[weights_].data;
    if (const auto* plan = std::get_if<conv::DepthwisePlan>(&plan_)) {
      run_depthwise_data(*plan, diff_dst, weights, diff_src, args.workspace, queue_of(args));
    } else if (const auto* few = std::get_if<conv::FewPlan>(&plan_)) {
      run_few_data(*few, diff_dst, weights, diff_src, args.workspace, queue_of(args));
    } else {
      run_gather(std::get<conv::GatherPlan>(plan_), diff_dst, weights, diff_src, {}, args.workspace,
                 queue_of(args));
    }
  }

 private:
  std::size_t diff_dst_, weights_;
  std::variant<conv::GatherPlan, conv::DepthwisePlan, conv::FewPlan> plan_;
};

class ConvBackwardWeights final : public Kernel {
 public:
  ConvBackwardWeights(const Problem& problem, Tiles tiles)
      : src_(place_of(problem, 0)), diff_dst_(place_of(problem, 1)) {
    const conv::Geometry geometry = geometry_of(problem);
    if (is_depthwise(geometry)) {
      const conv::DepthwisePlan& plan = plan_.emplace<conv::DepthwisePlan>(
          plan_depthwise_weights(geometry, current().properties().compute_units));
      workspace_bytes = plan.workspace_bytes;
      implementation = "depthwise";
    } else if (conv::takes_few(geometry, tiles)) {
      workspace_bytes = few_weights_bytes(plan_.emplace<conv::FewPlan>(conv::plan_few(geometry)));
      implementation = "few pixels";
    } else {
      const conv::WeightsPlan& plan = plan_.emplace<conv::WeightsPlan>(
          conv::choose_backward_weights(geometry, tiles, problem.measure));
      workspace_bytes = plan.workspace_bytes;
      implementation = plan.tile.text();
      flop_factor = plan.flop_factor;
    }
  }

  void run(const KernelArgs& args) const override {
    const void* diff_weights = args.outputs[0].data;
    if (diff_weights == nullptr) return;
    const Rows src = rows_of(args.inputs[src_]), diff_dst = rows_of(args.inputs[diff_dst_]);
    if (const auto* plan = std::get_if<conv::DepthwisePlan>(&plan_)) {
      run_depthwise_weights(*plan, src, diff_dst, diff_weights, args.workspace, queue_of(args));
    } else if (const auto* few = std::get_if<conv::FewPlan>(&plan_)) {
      run_few_weights(*few, src, diff_dst, diff_weights, args.workspace, queue_of(args));
    } else {
      run_weights(std::get<conv::WeightsPlan>(plan_), src, diff_dst, diff_weights, args.workspace,
                  queue_of(args));
    }
  }

 private:
  std::size_t src_, diff_dst_;
  std::variant<conv::WeightsPlan, conv::DepthwisePlan, conv::FewPlan> plan_;
};

// Images lie nhwc. Weights and their gradients lie plain: the kernels bring them into the order of
// their tiles anyway.
template <typename Made, Tiles tiles>
std::unique_ptr<Kernel> make(const Problem& problem, std::span<const Layout>) {
  auto kernel = std::make_unique<Made>(problem, tiles);
  set_layouts(*kernel, problem, Layout::nhwc());
  if (std::is_same_v<Made, ConvBackwardWeights>) {
    kernel->output_layouts[0] = Layout::plain();
  } else {
    kernel->input_layouts[place_of(problem, 1)] = Layout::plain();
  }
  kernel->traits.slices = true;
  return kernel;
}

constexpr auto refuse_gather = refuse<conv::refuse_gather, Tiles::all>;
constexpr auto refuse_weights = refuse<conv::refuse_weights, Tiles::all>;
constexpr auto refuse_plain_gather = refuse<conv::refuse_gather, Tiles::plain>;
constexpr auto refuse_plain_weights = refuse<conv::refuse_weights, Tiles::plain>;

// The plain rows stand in where a device can run none of the tiles.
constexpr KernelRow kRows[] = {
    {"conv2d_epilogue", patterns::conv2d_epilogue, refuse_gather, make<ConvForward, Tiles::all>},
    {"conv2d_epilogue_plain", patterns::conv2d_epilogue, refuse_plain_gather,
     make<ConvForward, Tiles::plain>},
    {"conv2d", match_one<OpKind::conv2d>, refuse_gather, make<ConvForward, Tiles::all>},
    {"conv2d_plain", match_one<OpKind::conv2d>, refuse_plain_gather,
     make<ConvForward, Tiles::plain>},
    {"conv2d_backward_data", match_one<OpKind::conv2d_backward_data>, refuse_gather,
     make<ConvBackwardData, Tiles::all>},
    {"conv2d_backward_data_plain", match_one<OpKind::conv2d_backward_data>, refuse_plain_gather,
     make<ConvBackwardData, Tiles::plain>},
    {"conv2d_backward_weights", match_one<OpKind::conv2d_backward_weights>, refuse_weights,
     make<ConvBackwardWeights, Tiles::all>},
    {"conv2d_backward_weights_plain", match_one<OpKind::conv2d_backward_weights>,
     refuse_plain_weights, make<ConvBackwardWeights, Tiles::plain>},
    {"linear_epilogue", patterns::linear_epilogue, refuse_gather, make<ConvForward, Tiles::all>},
    {"linear_epilogue_plain", patterns::linear_epilogue, refuse_plain_gather,
     make<ConvForward, Tiles::plain>},
    {"linear", match_one<OpKind::linear>, refuse_gather, make<ConvForward, Tiles::all>},
    {"linear_plain", match_one<OpKind::linear>, refuse_plain_gather,
     make<ConvForward, Tiles::plain>},
    {"linear_backward_data", match_one<OpKind::linear_backward_data>, refuse_gather,
     make<ConvBackwardData, Tiles::all>},
    {"linear_backward_data_plain", match_one<OpKind::linear_backward_data>, refuse_plain_gather,
     make<ConvBackwardData, Tiles::plain>},
    {"linear_backward_weights", match_one<OpKind::linear_backward_weights>, refuse_weights,
     make<ConvBackwardWeights, Tiles::all>},
    {"linear_backward_weights_plain", match_one<OpKind::linear_backward_weights>,
     refuse_plain_weights, make<ConvBackwardWeights, Tiles::plain>},
};

}  // namespace

std::span<const KernelRow> conv_rows() { return kRows; }

}  // namespace ridgeline::opencl
