#include "backends/onednn/eltwise.h"

#include "backends/onednn/rows.h"

namespace ridgeline::onednn {

EltwiseAlgorithm eltwise_of(const ActivationAttributes& attributes) {
  using Algorithm = dnnl::algorithm;
  switch (attributes.kind) {
    case ActivationKind::relu:
      return {Algorithm::eltwise_relu, Algorithm::eltwise_relu_use_dst_for_bwd};
    case ActivationKind::relu6:
      return {Algorithm::eltwise_clip_v2, Algorithm::eltwise_clip_v2_use_dst_for_bwd, 0, 6};
    case ActivationKind::leaky_relu:
      return {Algorithm::eltwise_relu, Algorithm::eltwise_relu_use_dst_for_bwd,
              static_cast<float>(attributes.slope)};
    case ActivationKind::sigmoid:
      return {Algorithm::eltwise_logistic, Algorithm::eltwise_logistic_use_dst_for_bwd};
    case ActivationKind::tanh:
      return {Algorithm::eltwise_tanh, Algorithm::eltwise_tanh_use_dst_for_bwd};
    case ActivationKind::silu:
      return {Algorithm::eltwise_swish, Algorithm::eltwise_swish, 1};
    case ActivationKind::hard_swish:
      // x * min(max(alpha * x + beta, 0), 1); 2.x does not ask for the two.
      return {Algorithm::eltwise_hardswish, Algorithm::eltwise_hardswish, 1.0F / 6.0F, 0.5F};
    case ActivationKind::gelu:
      return {Algorithm::eltwise_gelu_erf, Algorithm::eltwise_gelu_erf};
    case ActivationKind::gelu_tanh:
      return {Algorithm::eltwise_gelu_tanh, Algorithm::eltwise_gelu_tanh};
    case ActivationKind::hard_sigmoid:
      break;
  }
  fail("oneDNN: unknown activation {}", static_cast<int>(attributes.kind));
}

void append_activation(dnnl::primitive_attr& attr, const Node* activation) {
  if (activation == nullptr) return;
  const auto eltwise = eltwise_of(std::get<ActivationAttributes>(activation->attributes));
  dnnl::post_ops post_ops;
  append_eltwise(post_ops, eltwise.forward, eltwise.alpha, eltwise.beta);
  attr.set_post_ops(post_ops);
}

namespace {

const ActivationAttributes& activation_of(const Problem& problem) {
  return std::get<ActivationAttributes>(problem.node().attributes);
}

dnnl::eltwise_forward::primitive_desc forward_desc(const Problem& problem,
                                                   dnnl::algorithm algorithm,
                                                   const memory::desc& data) {
  const EltwiseAlgorithm eltwise = eltwise_of(activation_of(problem));
  return forward_maker<dnnl::eltwise_forward>(user_scratchpad(), dnnl::prop_kind::forward_training,
                                              algorithm, src_and_dst(data), eltwise.alpha,
                                              eltwise.beta)();
}

dnnl::eltwise_forward::primitive_desc forward_desc(const Problem& problem,
                                                   std::span<const Layout> layouts) {
  return forward_desc(problem, eltwise_of(activation_of(problem)).forward,
                      describe(problem.input(0), common_layout(layouts)));
}

dnnl::eltwise_backward::primitive_desc backward_desc(const Problem& problem,
                                                     std::span<const Layout> layouts) {
  const EltwiseAlgorithm eltwise = eltwise_of(activation_of(problem));
  const memory::desc data = describe(problem.input(0), common_layout(layouts));
  return backward_maker<dnnl::eltwise_backward>(
      user_scratchpad(), forward_desc(problem, eltwise.backward, data), eltwise.backward,
      src_and_dst(data), data, eltwise.alpha, eltwise.beta)();
}

std::string check_forward(const Problem& problem) {
  return refuse(problem, [&] { return forward_desc(problem, all_plain(problem)); });
}

std::string check_backward(const Problem& problem) {
  return refuse(problem, [&] { return backward_desc(problem, all_plain(problem)); });
}

std::unique_ptr<Kernel> make_forward(const Problem& problem, std::span<const Layout> layouts) {
  return checked("activation", [&] {
    const auto desc = forward_desc(problem, layouts);
    const Layout layout = common_layout(layouts);
    auto kernel = std::make_unique<PrimitiveKernel>(problem, desc);
    kernel->bind_input(DNNL_ARG_SRC, 0, desc.src_desc(), layout);
    kernel->bind_output(DNNL_ARG_DST, 0, desc.dst_desc(), layout);
    kernel->traits.in_place = true;
    return kernel;
  });
}

std::unique_ptr<Kernel> make_backward(const Problem& problem, std::span<const Layout> layouts) {
  return checked("activation_backward", [&] {
    const auto desc = backward_desc(problem, layouts);
    const Layout layout = common_layout(layouts);
    const memory::desc data = describe(problem.input(0), layout);
    const Node& node = problem.node();
    const bool from_src = backward_uses_src(activation_of(problem).kind);
    auto kernel = std::make_unique<PrimitiveKernel>(problem, desc);
    kernel->bind_input(DNNL_ARG_DIFF_DST, problem.input_index(node.inputs[0]), data, layout);
    kernel->bind_input(from_src ? DNNL_ARG_SRC : DNNL_ARG_DST, problem.input_index(node.inputs[1]),
                       data, layout);
    kernel->bind_output(DNNL_ARG_DIFF_SRC, 0, data, layout);
    kernel->traits.in_place = true;
    return kernel;
  });
}

}  // namespace

std::span<const KernelRow> eltwise_rows() {
  static constexpr KernelRow kRows[] = {
      {"activation", match_one<OpKind::activation>, check_forward, make_forward},
      {"activation_backward", match_one<OpKind::activation_backward>, check_backward,
       make_backward},
  };
  return kRows;
}

}  // namespace ridgeline::onednn
