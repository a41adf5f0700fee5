// Matrix products. Forward, the library may choose the format of the weights: packing them is cheap
// beside the product. Backward its matrix product on plain weights is as fast or faster.

#include "backends/onednn/eltwise.h"
#include "backends/onednn/patterns.h"
#include "backends/onednn/rows.h"

namespace ridgeline::onednn {
namespace {

using dnnl::inner_product_backward_data;
using dnnl::inner_product_backward_weights;
using dnnl::inner_product_forward;

memory::desc value_in(const Problem& problem, ValueId value, Tag tag) {
  return describe(problem.graph->value(value).spec, tag);
}

inner_product_forward::primitive_desc forward_desc(const Problem& problem) {
  const Chain chain = chain_of(problem);
  dnnl::primitive_attr attr = user_scratchpad();
  append_activation(attr, chain.activation);
  const memory::desc bias =
      chain.bias == nullptr ? memory::desc() : value_in(problem, chain.bias->inputs[1], Tag::a);
  return forward_maker<inner_product_forward>(
      attr, dnnl::prop_kind::forward_training, value_in(problem, chain.root->inputs[0], Tag::ab),
      value_in(problem, chain.root->inputs[1], Tag::any), bias,
      value_in(problem, chain.root->outputs[0], Tag::ab))();
}

// What the backward descriptors take as a hint.
inner_product_forward::primitive_desc plain_forward(const memory::desc& src,
                                                    const memory::desc& weights,
                                                    const memory::desc& dst) {
  return forward_maker<inner_product_forward>({}, dnnl::prop_kind::forward_training, src, weights,
                                              dst)();
}

inner_product_backward_data::primitive_desc backward_data_desc(const Problem& problem) {
  const Node& node = problem.node();
  const memory::desc diff_dst = value_in(problem, node.inputs[0], Tag::ab);
  const memory::desc weights = value_in(problem, node.inputs[1], Tag::ab);
  const memory::desc diff_src = value_in(problem, node.outputs[0], Tag::ab);
  return backward_maker<inner_product_backward_data>(
      user_scratchpad(), plain_forward(diff_src, weights, diff_dst), diff_src, weights, diff_dst)();
}

inner_product_backward_weights::primitive_desc backward_weights_desc(const Problem& problem) {
  const ParameterGradients gradients = parameter_gradients_of(problem);
  const memory::desc src = value_in(problem, gradients.weights->inputs[0], Tag::ab);
  const memory::desc diff_dst = value_in(problem, gradients.weights->inputs[1], Tag::ab);
  const memory::desc diff_weights = value_in(problem, gradients.weights->outputs[0], Tag::ab);
  const memory::desc diff_bias = gradients.bias == nullptr
                                     ? memory::desc()
                                     : value_in(problem, gradients.bias->outputs[0], Tag::a);
  return backward_maker<inner_product_backward_weights>(user_scratchpad(),
                                                        plain_forward(src, diff_weights, diff_dst),
                                                        src, diff_weights, diff_bias, diff_dst)();
}

std::string check_forward(const Problem& problem) {
  return refuse(problem, [&] { return forward_desc(problem); });
}

std::string check_backward_data(const Problem& problem) {
  return refuse(problem, [&] { return backward_data_desc(problem); });
}

std::string check_backward_weights(const Problem& problem) {
  return refuse(problem, [&] { return backward_weights_desc(problem); });
}

std::unique_ptr<Kernel> make_forward(const Problem& problem, std::span<const Layout>) {
  return checked("linear", [&] {
    const Chain chain = chain_of(problem);
    const auto desc = forward_desc(problem);
    auto kernel = std::make_unique<PrimitiveKernel>(problem, desc);
    kernel->bind_input(DNNL_ARG_SRC, problem.input_index(chain.root->inputs[0]), desc.src_desc());
    kernel->bind_input(DNNL_ARG_WEIGHTS, problem.input_index(chain.root->inputs[1]),
                       desc.weights_desc());
    if (chain.bias != nullptr) {
      kernel->bind_input(DNNL_ARG_BIAS, problem.input_index(chain.bias->inputs[1]),
                         desc.bias_desc());
    }
    kernel->bind_output(DNNL_ARG_DST, problem.output_index(chain.dst()), desc.dst_desc());
    return kernel;
  });
}

std::unique_ptr<Kernel> make_backward_data(const Problem& problem, std::span<const Layout>) {
  return checked("linear_backward_data", [&] {
    const Node& node = problem.node();
    const auto desc = backward_data_desc(problem);
    auto kernel = std::make_unique<PrimitiveKernel>(problem, desc);
    kernel->bind_input(DNNL_ARG_DIFF_DST, problem.input_index(node.inputs[0]),
                       desc.diff_dst_desc());
    kernel->bind_input(DNNL_ARG_WEIGHTS, problem.input_index(node.inputs[1]), desc.weights_desc());
    kernel->bind_output(DNNL_ARG_DIFF_SRC, 0, desc.diff_src_desc());
    return kernel;
  });
}

std::unique_ptr<Kernel> make_backward_weights(const Problem& problem, std::span<const Layout>) {
  return checked("linear_backward_weights", [&] {
    const ParameterGradients gradients = parameter_gradients_of(problem);
    const auto desc = backward_weights_desc(problem);
    auto kernel = std::make_unique<PrimitiveKernel>(problem, desc);
    kernel->bind_input(DNNL_ARG_SRC, problem.input_index(gradients.weights->inputs[0]),
                       desc.src_desc());
    kernel->bind_input(DNNL_ARG_DIFF_DST, problem.input_index(gradients.weights->inputs[1]),
                       desc.diff_dst_desc());
    kernel->bind_result(DNNL_ARG_DIFF_WEIGHTS, problem, gradients.weights->outputs[0],
                        desc.diff_weights_desc());
    if (gradients.bias != nullptr) {
      kernel->bind_result(DNNL_ARG_DIFF_BIAS, problem, gradients.bias->outputs[0],
                          desc.diff_bias_desc());
    }
    return kernel;
  });
}

}  // namespace

std::span<const KernelRow> linear_rows() {
  constexpr OpKind kLinear = OpKind::linear;
  constexpr OpKind kWeights = OpKind::linear_backward_weights;
  static constexpr KernelRow kRows[] = {
      {"linear_bias_act", match_chain<kLinear, true, true>, check_forward, make_forward},
      {"linear_bias", match_chain<kLinear, true, false>, check_forward, make_forward},
      {"linear_act", match_chain<kLinear, false, true>, check_forward, make_forward},
      {"linear", match_one<kLinear>, check_forward, make_forward},
      {"linear_backward_data", match_one<OpKind::linear_backward_data>, check_backward_data,
       make_backward_data},
      {"linear_backward_weights_bias", match_with_bias_gradient<kWeights>, check_backward_weights,
       make_backward_weights},
      {"linear_backward_weights", match_one<kWeights>, check_backward_weights,
       make_backward_weights},
  };
  return kRows;
}

}  // namespace ridgeline::onednn
