#include <variant>

#include "backends/native/conv_bf16.h"
#include "backends/native/conv_dense.h"
#include "backends/native/conv_depthwise.h"
#include "backends/native/conv_grouped.h"
#include "backends/native/conv_weights.h"
#include "backends/native/row_space.h"
#include "backends/native/rows.h"
#include "backends/native/winograd.h"
#include "base/parallel.h"
#include "plan/patterns.h"

namespace ridgeline::native {
namespace {

const Conv2dAttributes& attributes_of(const Problem& problem) {
  return std::get<Conv2dAttributes>(problem.node().attributes);
}

// What an op counts: every tap of every pixel of dst, for one image and one pair of channels.
double counted_products(const Problem& problem, const Shape& dst) {
  const Conv2dAttributes& a = attributes_of(problem);
  return static_cast<double>(dst[2] * dst[3] * a.kernel_h * a.kernel_w);
}

// Forward with an epilogue, or backward data: the geometry makes the difference. `dst` is the shape
// of dst or diff_dst.
class ConvGather final : public Kernel {
 public:
  ConvGather(conv::Geometry geometry, const conv::NhwcWeights& weights, const Problem& problem,
             const Shape& dst) {
    const bool narrow = problem.input(0).dtype == DType::bf16;
    if (conv::is_depthwise(geometry)) {
      flop_factor =
          static_cast<double>(conv::products_inside(geometry)) / counted_products(problem, dst);
      plan_ = conv::make_depthwise_plan(std::move(geometry), thread_count());
      implementation = "depthwise";
    } else if (narrow) {
      unit = name_of(bf16_unit());
      flop_factor =
          static_cast<double>(conv::products_of(geometry)) / counted_products(problem, dst);
      plan_ = conv::make_bf16_plan(std::move(geometry), weights, bf16_unit(), thread_count());
    } else if (conv::is_narrow(geometry)) {
      conv::GroupedPlan plan = conv::make_grouped_plan(std::move(geometry), thread_count());
      flop_factor =
          static_cast<double>(conv::products_of(plan.geometry)) / counted_products(problem, dst);
      plan_ = std::move(plan);
      implementation = "grouped";
    } else {
      conv::DensePlan plan = conv::make_dense_plan(std::move(geometry), thread_count());
      flop_factor =
          static_cast<double>(conv::products_of(plan.geometry)) / counted_products(problem, dst);
      plan_ = std::move(plan);
    }
    workspace_bytes = std::visit([](const auto& plan) { return plan.workspace_bytes; }, plan_);
    for (const NodeId id : problem.nodes) {
      const Node& node = problem.graph->node(id);
      if (node.kind == OpKind::bias) biased_ = true;
      if (node.kind == OpKind::activation) {
        const auto& attributes = std::get<ActivationAttributes>(node.attributes);
        epilogue_.activate = true;
        epilogue_.activation = attributes.kind;
        epilogue_.slope = static_cast<float>(attributes.slope);
      }
    }
    // Narrow weights come out of a cast, which can as well put their channels innermost.
    input_layouts = {Layout::nhwc(), narrow ? Layout::nhwc() : Layout::plain()};
    if (biased_) input_layouts.push_back(Layout::plain());
    output_layouts = {Layout::nhwc()};
    traits.slices = true;
  }

  void run(const KernelArgs& args) const override {
    const Tensor& src = args.inputs[0];
    const Tensor& dst = args.outputs[0];
    if (dst.data == nullptr) return;
    const Tensor& weights = args.inputs[1];
    Epilogue epilogue = epilogue_;
    if (biased_) epilogue.bias = args.inputs[2].as<float>();
    if (const auto* depthwise = std::get_if<conv::DepthwisePlan>(&plan_)) {
      conv::run_depthwise(*depthwise, src, weights, dst, epilogue, args.workspace);
    } else if (const auto* grouped = std::get_if<conv::GroupedPlan>(&plan_)) {
      conv::run_grouped(*grouped, src, weights.as<float>(), dst, epilogue, args.workspace);
    } else if (const auto* narrow = std::get_if<conv::Bf16Plan>(&plan_)) {
      conv::run_bf16(*narrow, src, weights.as<BFloat16>(), dst, epilogue, args.workspace);
    } else {
      conv::run_dense(std::get<conv::DensePlan>(plan_), src, weights.as<float>(), dst, epilogue,
                      args.workspace);
    }
  }

 private:
  std::variant<conv::DensePlan, conv::DepthwisePlan, conv::GroupedPlan, conv::Bf16Plan> plan_;
  Epilogue epilogue_;
  bool biased_ = false;
};

class ConvWeights final : public Kernel {
 public:
  ConvWeights(conv::Geometry geometry, const Problem& problem) {
    if (conv::is_depthwise(geometry)) {
      flop_factor = static_cast<double>(conv::products_inside(geometry)) /
                    counted_products(problem, problem.input(1).shape);
      plan_ = conv::make_depthwise_weights_plan(std::move(geometry), thread_count());
      implementation = "depthwise";
    } else if (problem.input(0).dtype == DType::bf16) {
      unit = name_of(bf16_unit());
      plan_ = conv::make_bf16_weights_plan(std::move(geometry), bf16_unit(), thread_count());
    } else if (conv::is_narrow(geometry)) {
      plan_ = conv::make_grouped_weights_plan(std::move(geometry), thread_count());
      implementation = "grouped";
    } else {
      plan_ = conv::make_weights_plan(std::move(geometry), thread_count());
    }
    workspace_bytes = std::visit([](const auto& plan) { return plan.workspace_bytes; }, plan_);
    input_layouts = {Layout::nhwc(), Layout::nhwc()};
    output_layouts = {Layout::plain()};
    traits.slices = true;
  }

  void run(const KernelArgs& args) const override {
    const Tensor& src = args.inputs[0];
    const Tensor& diff_dst = args.inputs[1];
    const Tensor& diff_weights = args.outputs[0];
    if (diff_weights.data == nullptr) return;
    if (const auto* depthwise = std::get_if<conv::DepthwiseWeightsPlan>(&plan_)) {
      conv::run_depthwise_weights(*depthwise, src, diff_dst, diff_weights, args.workspace);
    } else if (const auto* grouped = std::get_if<conv::GroupedWeightsPlan>(&plan_)) {
      conv::run_grouped_weights(*grouped, src, diff_dst, diff_weights.as<float>(), args.workspace);
    } else if (const auto* narrow = std::get_if<conv::Bf16WeightsPlan>(&plan_)) {
      conv::run_bf16_weights(*narrow, src, diff_dst, diff_weights.as<BFloat16>(), args.workspace);
    } else {
      conv::run_weights(std::get<conv::WeightsPlan>(plan_), src, diff_dst, diff_weights.as<float>(),
                        args.workspace);
    }
  }

 private:
  std::variant<conv::WeightsPlan, conv::DepthwiseWeightsPlan, conv::GroupedWeightsPlan,
               conv::Bf16WeightsPlan>
      plan_;
};

std::unique_ptr<Kernel> make_forward(const Problem& problem, std::span<const Layout>) {
  conv::Geometry geometry = conv::forward_geometry(attributes_of(problem), problem.input(0).shape,
                                                   problem.output(0).shape);
  const conv::NhwcWeights weights = conv::forward_weights(geometry);
  return std::make_unique<ConvGather>(std::move(geometry), weights, problem,
                                      problem.output(0).shape);
}

std::unique_ptr<Kernel> make_backward_data(const Problem& problem, std::span<const Layout>) {
  conv::Geometry geometry = conv::backward_data_geometry(
      attributes_of(problem), problem.input(0).shape, problem.output(0).shape);
  const conv::NhwcWeights weights = conv::backward_data_weights(geometry);
  return std::make_unique<ConvGather>(std::move(geometry), weights, problem,
                                      problem.input(0).shape);
}

std::unique_ptr<Kernel> make_backward_weights(const Problem& problem, std::span<const Layout>) {
  return std::make_unique<ConvWeights>(
      conv::forward_geometry(attributes_of(problem), problem.input(0).shape,
                             problem.input(1).shape),
      problem);
}

// Winograd's algorithm stands first: it takes only what it computes faster.
constexpr KernelRow kRows[] = {
    {"winograd_epilogue", patterns::conv2d_epilogue, refuse_winograd, make_winograd},
    {"winograd", match_one<OpKind::conv2d>, refuse_winograd, make_winograd},
    {"winograd_backward_data", match_one<OpKind::conv2d_backward_data>, refuse_winograd,
     make_winograd},
    {"winograd_backward_weights", match_one<OpKind::conv2d_backward_weights>, refuse_winograd,
     make_winograd},
    {"conv2d_epilogue", patterns::conv2d_epilogue, refuse_product, make_forward},
    {"conv2d", match_one<OpKind::conv2d>, refuse_product, make_forward},
    {"conv2d_backward_data", match_one<OpKind::conv2d_backward_data>, refuse_product,
     make_backward_data},
    {"conv2d_backward_weights", match_one<OpKind::conv2d_backward_weights>, refuse_product,
     make_backward_weights},
};

}  // namespace

std::span<const KernelRow> conv_rows() { return kRows; }

}  // namespace ridgeline::native
