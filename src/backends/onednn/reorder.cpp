#include "backends/onednn/common.h"
#include "backends/onednn/rows.h"

namespace ridgeline::onednn {
namespace {

// How a value lies, in the dimensions that the other side uses: grouped weights have five.
memory::desc describe_beside(const TensorSpec& spec, const Layout& layout, const Layout& other) {
  const memory::desc* counterpart = own_desc(other);
  if (layout.kind() != LayoutKind::plain || counterpart == nullptr) return describe(spec, layout);
  const Dims dims = dims_of(*counterpart);
  return memory::desc(dims, type_of(spec.dtype), plain_tag(dims.size()));
}

bool readable(const Layout& layout) {
  return layout.kind() != LayoutKind::own || own_desc(layout) != nullptr;
}

}  // namespace

std::unique_ptr<Kernel> make_reorder(const TensorSpec& spec, const Layout& from, const Layout& to) {
  if (!readable(from) || !readable(to) || type_of(spec.dtype) == memory::data_type::undef) {
    return nullptr;
  }
  const std::string what =
      fmt::format("reorder of {} from {} to {}", spec.shape.text(), from.text(), to.text());
  return checked(what, [&]() -> std::unique_ptr<Kernel> {
    const memory::desc src = describe_beside(spec, from, to);
    const memory::desc dst = describe_beside(spec, to, from);
    const dnnl::reorder::primitive_desc desc(cpu_engine(), src, cpu_engine(), dst,
                                             user_scratchpad(), true);
    if (desc.get(true) == nullptr) return nullptr;
    auto kernel = std::make_unique<PrimitiveKernel>(what, 1, 1, desc);
    kernel->bind_input(DNNL_ARG_FROM, 0, src, from);
    kernel->bind_output(DNNL_ARG_TO, 0, dst, to);
    return kernel;
  });
}

}  // namespace ridgeline::onednn
