// Convolutions. Images are given to the library in nhwc and weights in whatever format it likes.
// Measured on AVX2 and AVX-512, its generated code for nhwc is on a par with its own blocked
// formats (and much better where those would pad the channels), and the kernels between
// convolutions need no reorder. Only where nhwc ends in a slow path does the library choose the
// format of images as well.

#include "backends/onednn/eltwise.h"
#include "backends/onednn/patterns.h"
#include "backends/onednn/rows.h"
#include "ops/conv2d_touched.h"

namespace ridgeline::onednn {
namespace {

using dnnl::convolution_backward_data;
using dnnl::convolution_backward_weights;
using dnnl::convolution_forward;
constexpr auto kDirect = dnnl::algorithm::convolution_direct;
constexpr auto kFloat = memory::data_type::f32;

struct Geometry {
  Dims src, weights, dst, stride, dilation, pad_begin, pad_end;

  [[nodiscard]] std::int64_t src_channels() const { return src[1]; }
  [[nodiscard]] std::int64_t dst_channels() const { return dst[1]; }
  [[nodiscard]] bool grouped() const { return weights.size() == 5; }
};

Geometry geometry_of(const Node& conv, const Shape& src, const Shape& weights, const Shape& dst) {
  const auto& a = std::get<Conv2dAttributes>(conv.attributes);
  Geometry g{.src = dims_of(src),
             .weights = dims_of(weights),
             .dst = dims_of(dst),
             .stride = {a.stride_h, a.stride_w},
             .dilation = {a.dilation_h - 1, a.dilation_w - 1},
             .pad_begin = {a.pad_top, a.pad_left},
             .pad_end = {a.pad_bottom, a.pad_right}};
  if (a.groups > 1) {
    g.weights = {a.groups, weights[0] / a.groups, weights[1], weights[2], weights[3]};
  }
  return g;
}

memory::desc in(const Dims& dims, Tag tag) { return memory::desc(dims, kFloat, tag); }

// Which of the library's implementations to take where its first choice is known to be slower:
// with few channels to spread over the lanes of a vector, the 8-lane code beats the 16-lane code,
// and direct code beats the batched matrix products.
struct Preference {
  bool eight_lanes = false;
  bool no_matrix_products = false;

  [[nodiscard]] bool accepts(std::string_view name) const {
    if (eight_lanes && name.find("avx2") == std::string_view::npos) return false;
    return !(no_matrix_products && name.starts_with("brg"));
  }
};

Preference prefer_for(const Geometry& g, std::int64_t channels_over_lanes) {
  return {.eight_lanes = !g.grouped() && channels_over_lanes <= 8,
          .no_matrix_products = !g.grouped() && channels_over_lanes <= 32};
}

bool is_direct(const dnnl::primitive_desc_base& desc) {
  if (desc.get(true) == nullptr) return false;
  const std::string_view name = desc.impl_info_str();
  return !is_reference(name) && name.find("gemm:") == std::string_view::npos;
}

// Walks through the implementations for one format; the first one where none is preferred.
// `create` makes a descriptor at the library's first choice; what it refers to must stay alive, for
// walking on reads the op descriptor and the attributes again.
template <typename Create>
auto choose(const Preference& preference, Create&& create) {
  auto desc = create();
  if (!is_direct(desc)) return desc;
  while (is_direct(desc)) {
    if (preference.accepts(desc.impl_info_str())) return desc;
    if (!desc.next_impl()) break;
  }
  return create();
}

// nhwc where that has direct code, else whatever format the library chooses.
template <typename Create>
auto with_best_format(Create&& create) {
  auto desc = create(Tag::nhwc);
  if (is_direct(desc)) return desc;
  auto free_choice = create(Tag::any);
  if (is_direct(free_choice) || !refuse_implementation(desc).empty()) return free_choice;
  return desc;
}

convolution_forward::primitive_desc forward_desc(const Geometry& g, const Chain& chain) {
  dnnl::primitive_attr attr = user_scratchpad();
  append_activation(attr, chain.activation);
  const memory::desc bias = chain.bias == nullptr ? memory::desc() : in({g.dst[1]}, Tag::a);
  return with_best_format([&](Tag tag) {
    return choose(prefer_for(g, g.dst_channels()),
                  forward_maker<convolution_forward>(attr, dnnl::prop_kind::forward_training,
                                                     kDirect, in(g.src, tag),
                                                     in(g.weights, Tag::any), bias, in(g.dst, tag),
                                                     g.stride, g.dilation, g.pad_begin, g.pad_end));
  });
}

// What the backward descriptors take as a hint.
convolution_forward::primitive_desc plain_forward(const Geometry& g, Tag tag) {
  return forward_maker<convolution_forward>({}, dnnl::prop_kind::forward_training, kDirect,
                                            in(g.src, tag), in(g.weights, Tag::any), in(g.dst, tag),
                                            g.stride, g.dilation, g.pad_begin, g.pad_end)();
}

convolution_backward_data::primitive_desc backward_data_desc(const Geometry& g) {
  const dnnl::primitive_attr attr = user_scratchpad();
  return with_best_format([&](Tag tag) {
    return choose(prefer_for(g, g.src_channels()),
                  backward_maker<convolution_backward_data>(
                      attr, plain_forward(g, tag), kDirect, in(g.src, tag), in(g.weights, Tag::any),
                      in(g.dst, tag), g.stride, g.dilation, g.pad_begin, g.pad_end));
  });
}

convolution_backward_weights::primitive_desc backward_weights_desc(const Geometry& g,
                                                                   bool with_bias) {
  const dnnl::primitive_attr attr = user_scratchpad();
  const memory::desc bias = with_bias ? in({g.dst[1]}, Tag::a) : memory::desc();
  return with_best_format([&](Tag tag) {
    return choose(prefer_for(g, g.dst_channels()),
                  backward_maker<convolution_backward_weights>(
                      attr, plain_forward(g, tag), kDirect, in(g.src, tag), in(g.weights, Tag::any),
                      bias, in(g.dst, tag), g.stride, g.dilation, g.pad_begin, g.pad_end));
  });
}

// Direct code leaves out the taps on padding; matrix products over gathered pixels do not.
double executed_share(const dnnl::primitive_desc_base& desc, const Node& conv, const Shape& src,
                      const Shape& dst) {
  if (!is_direct(desc)) return 1.0;
  return taps_inside(std::get<Conv2dAttributes>(conv.attributes), src, dst);
}

const Shape& shape_of(const Problem& problem, ValueId value) {
  return problem.graph->value(value).spec.shape;
}

Geometry forward_geometry(const Problem& problem) {
  const Node& conv = *chain_of(problem).root;
  return geometry_of(conv, shape_of(problem, conv.inputs[0]), shape_of(problem, conv.inputs[1]),
                     shape_of(problem, conv.outputs[0]));
}

Geometry backward_data_geometry(const Problem& problem) {
  const Node& node = problem.node();
  return geometry_of(node, shape_of(problem, node.outputs[0]), shape_of(problem, node.inputs[1]),
                     shape_of(problem, node.inputs[0]));
}

Geometry backward_weights_geometry(const Problem& problem) {
  const Node& node = *parameter_gradients_of(problem).weights;
  return geometry_of(node, shape_of(problem, node.inputs[0]), shape_of(problem, node.outputs[0]),
                     shape_of(problem, node.inputs[1]));
}

std::string check_forward(const Problem& problem) {
  return refuse(problem,
                [&] { return forward_desc(forward_geometry(problem), chain_of(problem)); });
}

std::string check_backward_data(const Problem& problem) {
  return refuse(problem, [&] { return backward_data_desc(backward_data_geometry(problem)); });
}

std::string check_backward_weights(const Problem& problem) {
  return refuse(problem, [&] {
    return backward_weights_desc(backward_weights_geometry(problem), problem.nodes.size() > 1);
  });
}

std::unique_ptr<Kernel> make_forward(const Problem& problem, std::span<const Layout> layouts) {
  return checked("conv2d", [&] {
    const Chain chain = chain_of(problem);
    const auto desc = forward_desc(forward_geometry(problem), chain);
    const std::size_t src = problem.input_index(chain.root->inputs[0]);
    const std::size_t weights = problem.input_index(chain.root->inputs[1]);
    auto kernel = std::make_unique<PrimitiveKernel>(problem, desc);
    kernel->bind_input(DNNL_ARG_SRC, src, desc.src_desc(), layouts[src]);
    kernel->bind_input(DNNL_ARG_WEIGHTS, weights, desc.weights_desc(), layouts[weights]);
    if (chain.bias != nullptr) {
      kernel->bind_input(DNNL_ARG_BIAS, problem.input_index(chain.bias->inputs[1]),
                         desc.bias_desc());
    }
    kernel->bind_output(DNNL_ARG_DST, problem.output_index(chain.dst()), desc.dst_desc(),
                        Layout::nhwc());
    kernel->flop_factor =
        executed_share(desc, *chain.root, shape_of(problem, chain.root->inputs[0]),
                       shape_of(problem, chain.root->outputs[0]));
    return kernel;
  });
}

std::unique_ptr<Kernel> make_backward_data(const Problem& problem,
                                           std::span<const Layout> layouts) {
  return checked("conv2d_backward_data", [&] {
    const Node& node = problem.node();
    const auto desc = backward_data_desc(backward_data_geometry(problem));
    const std::size_t diff_dst = problem.input_index(node.inputs[0]);
    const std::size_t weights = problem.input_index(node.inputs[1]);
    auto kernel = std::make_unique<PrimitiveKernel>(problem, desc);
    kernel->bind_input(DNNL_ARG_DIFF_DST, diff_dst, desc.diff_dst_desc(), layouts[diff_dst]);
    kernel->bind_input(DNNL_ARG_WEIGHTS, weights, desc.weights_desc(), layouts[weights]);
    kernel->bind_output(DNNL_ARG_DIFF_SRC, 0, desc.diff_src_desc(), Layout::nhwc());
    kernel->flop_factor = executed_share(desc, node, shape_of(problem, node.outputs[0]),
                                         shape_of(problem, node.inputs[0]));
    return kernel;
  });
}

std::unique_ptr<Kernel> make_backward_weights(const Problem& problem,
                                              std::span<const Layout> layouts) {
  return checked("conv2d_backward_weights", [&] {
    const ParameterGradients gradients = parameter_gradients_of(problem);
    const auto desc =
        backward_weights_desc(backward_weights_geometry(problem), gradients.bias != nullptr);
    const std::size_t src = problem.input_index(gradients.weights->inputs[0]);
    const std::size_t diff_dst = problem.input_index(gradients.weights->inputs[1]);
    auto kernel = std::make_unique<PrimitiveKernel>(problem, desc);
    kernel->bind_input(DNNL_ARG_SRC, src, desc.src_desc(), layouts[src]);
    kernel->bind_input(DNNL_ARG_DIFF_DST, diff_dst, desc.diff_dst_desc(), layouts[diff_dst]);
    kernel->bind_result(DNNL_ARG_DIFF_WEIGHTS, problem, gradients.weights->outputs[0],
                        desc.diff_weights_desc());
    if (gradients.bias != nullptr) {
      kernel->bind_result(DNNL_ARG_DIFF_BIAS, problem, gradients.bias->outputs[0],
                          desc.diff_bias_desc());
    }
    const Node& node = *gradients.weights;
    kernel->flop_factor = executed_share(desc, node, shape_of(problem, node.inputs[0]),
                                         shape_of(problem, node.inputs[1]));
    return kernel;
  });
}

}  // namespace

std::span<const KernelRow> conv_rows() {
  constexpr OpKind kConv = OpKind::conv2d;
  constexpr OpKind kWeights = OpKind::conv2d_backward_weights;
  static constexpr KernelRow kRows[] = {
      {"conv2d_bias_act", match_chain<kConv, true, true>, check_forward, make_forward},
      {"conv2d_bias", match_chain<kConv, true, false>, check_forward, make_forward},
      {"conv2d_act", match_chain<kConv, false, true>, check_forward, make_forward},
      {"conv2d", match_one<kConv>, check_forward, make_forward},
      {"conv2d_backward_data", match_one<OpKind::conv2d_backward_data>, check_backward_data,
       make_backward_data},
      {"conv2d_backward_weights_bias", match_with_bias_gradient<kWeights>, check_backward_weights,
       make_backward_weights},
      {"conv2d_backward_weights", match_one<kWeights>, check_backward_weights,
       make_backward_weights},
  };
  return kRows;
}

}  // namespace ridgeline::onednn
