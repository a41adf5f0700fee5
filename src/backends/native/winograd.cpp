#include "backends/native/winograd.h"

#include <utility>
#include <variant>

#include "backends/native/conv_winograd.h"
#include "backends/native/row_space.h"
#include "base/parallel.h"
#include "plan/patterns.h"

namespace ridgeline::native {
namespace {

conv::Geometry geometry_of(const Problem& problem) {
  const Node& node = problem.node();
  const auto& attributes = std::get<Conv2dAttributes>(node.attributes);
  const Shape& src = problem.input(0).shape;
  const Shape& dst = problem.output(0).shape;
  if (node.kind == OpKind::conv2d_backward_weights) {
    return conv::forward_geometry(attributes, src, problem.input(1).shape);
  }
  return node.kind == OpKind::conv2d ? conv::forward_geometry(attributes, src, dst)
                                     : conv::backward_data_geometry(attributes, src, dst);
}

class Winograd final : public Kernel {
 public:
  explicit Winograd(const Problem& problem) {
    conv::Geometry geometry = geometry_of(problem);
    flop_factor = conv::winograd_flop_factor(geometry);
    plan_ = conv::make_winograd_plan(std::move(geometry), thread_count());
    workspace_bytes = plan_.workspace_bytes;
    const patterns::Chain chain = patterns::chain_of(problem);
    biased_ = chain.bias != nullptr;
    if (chain.activation != nullptr) {
      const auto& activation = std::get<ActivationAttributes>(chain.activation->attributes);
      epilogue_.activate = true;
      epilogue_.activation = activation.kind;
      epilogue_.slope = static_cast<float>(activation.slope);
    }
    implementation = "f4x4";
    input_layouts = {Layout::nhwc(), Layout::plain()};
    if (biased_) input_layouts.push_back(Layout::plain());
    output_layouts = {Layout::nhwc()};
    traits.slices = true;
  }

  void run(const KernelArgs& args) const override {
    if (args.outputs[0].data == nullptr) return;
    Epilogue epilogue = epilogue_;
    if (biased_) epilogue.bias = args.inputs[2].as<float>();
    conv::run_winograd(plan_, args.inputs[0], args.inputs[1].as<float>(), args.outputs[0], epilogue,
                       args.workspace);
  }

 private:
  conv::WinogradPlan plan_;
  Epilogue epilogue_;
  bool biased_ = false;
};

class WinogradWeights final : public Kernel {
 public:
  explicit WinogradWeights(const Problem& problem) {
    conv::Geometry geometry = geometry_of(problem);
    flop_factor = conv::winograd_weights_flop_factor(geometry);
    plan_ = conv::make_winograd_weights_plan(std::move(geometry), thread_count());
    workspace_bytes = plan_.workspace_bytes;
    implementation = "f4x4";
    input_layouts = {Layout::nhwc(), Layout::nhwc()};
    output_layouts = {Layout::plain()};
    traits.slices = true;
  }

  void run(const KernelArgs& args) const override {
    if (args.outputs[0].data == nullptr) return;
    conv::run_winograd_weights(plan_, args.inputs[0], args.inputs[1], args.outputs[0].as<float>(),
                               args.workspace);
  }

 private:
  conv::WinogradWeightsPlan plan_;
};

}  // namespace

std::string refuse_winograd(const Problem& problem) {
  if (problem.input(0).dtype != DType::f32) return "computes in f32 only";
  const conv::Geometry geometry = geometry_of(problem);
  return problem.node().kind == OpKind::conv2d_backward_weights
             ? conv::refuse_winograd_weights(geometry)
             : conv::refuse_winograd(geometry);
}

std::unique_ptr<Kernel> make_winograd(const Problem& problem, std::span<const Layout>) {
  if (problem.node().kind == OpKind::conv2d_backward_weights) {
    return std::make_unique<WinogradWeights>(problem);
  }
  return std::make_unique<Winograd>(problem);
}

}  // namespace ridgeline::native
