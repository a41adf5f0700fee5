// Ops that join several values into one: sum of two, with the activation behind it, concatenation
// along the channels.

#include "backends/onednn/eltwise.h"
#include "backends/onednn/patterns.h"
#include "backends/onednn/rows.h"

namespace ridgeline::onednn {
namespace {

dnnl::binary::primitive_desc add_desc(const Problem& problem, const Layout& layout) {
  const memory::desc data = describe(problem.output(0), layout);
  dnnl::primitive_attr attr = user_scratchpad();
  append_activation(attr, chain_of(problem).activation);
  return forward_maker<dnnl::binary>(attr, dnnl::algorithm::binary_add, data, data, data)();
}

std::string check_add(const Problem& problem) {
  return refuse(problem, [&] { return add_desc(problem, Layout::plain()); });
}

std::unique_ptr<Kernel> make_add(const Problem& problem, std::span<const Layout> layouts) {
  return checked("add", [&] {
    const Layout layout = common_layout(layouts);
    const std::vector<ValueId>& inputs = problem.node().inputs;
    const auto desc = add_desc(problem, layout);
    auto kernel = std::make_unique<PrimitiveKernel>(problem, desc);
    kernel->bind_input(DNNL_ARG_SRC_0, problem.input_index(inputs[0]), desc.src_desc(0), layout);
    kernel->bind_input(DNNL_ARG_SRC_1, problem.input_index(inputs[1]), desc.src_desc(1), layout);
    kernel->bind_output(DNNL_ARG_DST, 0, desc.dst_desc(), layout);
    kernel->traits.in_place = true;
    return kernel;
  });
}

dnnl::concat::primitive_desc concat_desc(const Problem& problem) {
  const auto describe_value = [&](const TensorSpec& spec) {
    return describe(spec, spec.shape.rank() == 4 ? Layout::nhwc() : Layout::plain());
  };
  std::vector<memory::desc> srcs;
  for (const ValueId id : problem.node().inputs) {
    srcs.push_back(describe_value(problem.graph->value(id).spec));
  }
  return describe_concat(describe_value(problem.output(0)), 1, srcs, user_scratchpad());
}

// The library's block copies for concatenation carry the name that stands for slow loops elsewhere.
std::string check_concat(const Problem& problem) {
  if (std::string reason = refuse_types(problem); !reason.empty()) return reason;
  try {
    const auto desc = concat_desc(problem);
    const std::string_view name = desc.impl_info_str();
    return name.starts_with("simple") ? std::string() : refuse_implementation(desc);
  } catch (const dnnl::error& error) {
    return fmt::format("oneDNN refuses it: {}", error.message);
  }
}

std::unique_ptr<Kernel> make_concat(const Problem& problem, std::span<const Layout> layouts) {
  return checked("concat", [&] {
    const std::vector<ValueId>& inputs = problem.node().inputs;
    const auto desc = concat_desc(problem);
    auto kernel = std::make_unique<PrimitiveKernel>(problem, desc);
    for (std::size_t i = 0; i < inputs.size(); ++i) {
      const std::size_t index = problem.input_index(inputs[i]);
      kernel->bind_input(DNNL_ARG_MULTIPLE_SRC + static_cast<int>(i), index,
                         desc.src_desc(static_cast<int>(i)), layouts[index]);
    }
    kernel->bind_output(DNNL_ARG_DST, 0, desc.dst_desc(), Layout::nhwc());
    return kernel;
  });
}

}  // namespace

std::span<const KernelRow> join_rows() {
  static constexpr KernelRow kRows[] = {
      {"add_act", patterns::add_act, check_add, make_add},
      {"add", match_one<OpKind::add>, check_add, make_add},
      {"concat", match_one<OpKind::concat>, check_concat, make_concat},
  };
  return kRows;
}

}  // namespace ridgeline::onednn
