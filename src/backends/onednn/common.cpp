#include "backends/onednn/common.h"

#include <dnnl_debug.h>

#include <algorithm>
#include <array>
#include <numeric>

#include "base/bf16_unit.h"

namespace ridgeline::onednn {
namespace {

class OnednnLayout final : public OwnLayout {
 public:
  explicit OnednnLayout(const memory::desc& desc) : desc_(desc) {}

  [[nodiscard]] std::string name() const override;
  [[nodiscard]] std::size_t bytes() const override { return desc_.get_size(); }
  [[nodiscard]] bool equals(const OwnLayout& other) const override {
    const auto* layout = dynamic_cast<const OnednnLayout*>(&other);
    return layout != nullptr && layout->desc_ == desc_;
  }
  [[nodiscard]] const memory::desc& desc() const { return desc_; }

 private:
  memory::desc desc_;
};

// The library's own way to write a format: the axes from outermost to innermost, capital where an
// axis is also split into inner blocks, then the blocks: "aBcd16b".
std::string OnednnLayout::name() const {
  const Blocking blocking = blocking_of(desc_);
  if (!blocking.known) return "onednn:opaque";
  std::vector<std::size_t> axes(blocking.strides.size());
  std::iota(axes.begin(), axes.end(), 0);
  std::stable_sort(axes.begin(), axes.end(), [&](std::size_t a, std::size_t b) {
    return blocking.strides[a] > blocking.strides[b];
  });
  std::string blocks;
  std::vector<bool> split(axes.size(), false);
  for (std::size_t block = 0; block < blocking.blocks.size(); ++block) {
    const auto axis = static_cast<std::size_t>(blocking.block_axes[block]);
    split[axis] = true;
    blocks += fmt::format("{}{}", blocking.blocks[block], static_cast<char>('a' + axis));
  }
  std::string order;
  for (const std::size_t axis : axes) order += static_cast<char>((split[axis] ? 'A' : 'a') + axis);
  return "onednn:" + order + blocks;
}

std::string describe_problem(const Problem& problem) {
  return fmt::format("{} at '{}'", problem.text(), problem.node().layer);
}

void check_status(std::string_view what, dnnl_status_t status) {
  if (status != dnnl_success) fail("oneDNN failed in {}: {}", what, dnnl_status2str(status));
}

}  // namespace

const dnnl::engine& cpu_engine() {
  static const dnnl::engine engine = checked("starting its engine", [] {
    // The library believes the processor; a unit that refuses its instructions would end the
    // program.
    if (!bf16_trouble().empty()) dnnl::set_max_cpu_isa(dnnl::cpu_isa::avx512_core_vnni);
    return dnnl::engine(dnnl::engine::kind::cpu, 0);
  });
  return engine;
}

const dnnl::stream& cpu_stream() {
  static const dnnl::stream stream =
      checked("starting its stream", [] { return dnnl::stream(cpu_engine()); });
  return stream;
}

void rethrow(std::string_view what, const dnnl::error& error) {
  fail("oneDNN failed in {}: {} ({})", what, error.message, dnnl_status2str(error.status));
}

Dims dims_of(const Shape& shape) {
  if (shape.rank() == 0) return {1};
  Dims dims;
  for (int axis = 0; axis < shape.rank(); ++axis) dims.push_back(shape[axis]);
  return dims;
}

memory::data_type type_of(DType dtype) {
  switch (dtype) {
    case DType::f32:
      return memory::data_type::f32;
    case DType::bf16:
      return memory::data_type::bf16;
    case DType::f16:
      return memory::data_type::f16;
    case DType::u8:
      return memory::data_type::u8;
    case DType::i32:
      return memory::data_type::s32;
    case DType::f64:
      break;
  }
  return memory::data_type::undef;
}

Tag plain_tag(std::size_t rank) {
  constexpr std::array tags = {Tag::a, Tag::ab, Tag::abc, Tag::abcd, Tag::abcde};
  ensure(rank >= 1 && rank <= tags.size(), "oneDNN: no plain format of rank {}", rank);
  return tags[rank - 1];
}

memory::desc describe(const TensorSpec& spec, Tag tag) {
  return memory::desc(dims_of(spec.shape), type_of(spec.dtype), tag);
}

memory::desc describe(const TensorSpec& spec, const Layout& layout) {
  if (const memory::desc* own = own_desc(layout)) return *own;
  ensure(layout.kind() != LayoutKind::own, "oneDNN cannot read the layout {}", layout.text());
  const Dims dims = dims_of(spec.shape);
  return describe(spec, layout.kind() == LayoutKind::nhwc ? Tag::nhwc : plain_tag(dims.size()));
}

Layout layout_of(const memory::desc& desc, const Layout& present) {
  const Dims dims = dims_of(desc);
  const auto is = [&](Tag tag) { return desc == memory::desc(dims, type_of(desc), tag); };
  const bool image = dims.size() == 4;
  if (present.kind() == LayoutKind::nhwc && image && is(Tag::nhwc)) return present;
  if (is(plain_tag(dims.size()))) return Layout::plain();
  if (image && is(Tag::nhwc)) return Layout::nhwc();
  return Layout::own(std::make_shared<OnednnLayout>(desc));
}

const memory::desc* own_desc(const Layout& layout) {
  const auto* own = dynamic_cast<const OnednnLayout*>(layout.provider());
  return own == nullptr ? nullptr : &own->desc();
}

Layout common_layout(std::span<const Layout> layouts) {
  for (const Layout& layout : layouts) {
    if (layout.kind() == LayoutKind::nhwc || own_desc(layout) != nullptr) return layout;
  }
  return Layout::plain();
}

std::vector<Layout> all_plain(const Problem& problem) {
  return std::vector<Layout>(problem.inputs.size());
}

std::string refuse_types(const Problem& problem) {
  const auto refuse_value = [&](ValueId id) -> std::string {
    const DType dtype = problem.graph->value(id).spec.dtype;
    if (dtype == DType::f32 || dtype == DType::u8 || dtype == DType::i32) return {};
    return fmt::format("onednn computes in f32, not {}", name_of(dtype));
  };
  for (const NodeId node : problem.nodes) {
    for (const ValueId id : problem.graph->node(node).inputs) {
      if (std::string reason = refuse_value(id); !reason.empty()) return reason;
    }
  }
  return {};
}

std::string refuse_activations(const Problem& problem) {
  for (const NodeId node : problem.nodes) {
    const auto* a = std::get_if<ActivationAttributes>(&problem.graph->node(node).attributes);
    if (a != nullptr && a->kind == ActivationKind::hard_sigmoid) {
      return fmt::format("oneDNN has no {}", name_of(a->kind));
    }
  }
  return {};
}

bool is_reference(std::string_view implementation) {
  return implementation.starts_with("ref") || implementation.starts_with("simple") ||
         implementation.ends_with("gemm:ref");
}

std::string refuse_implementation(const dnnl::primitive_desc_base& desc) {
  if (desc.get(true) == nullptr) return "oneDNN has no implementation";
  const std::string_view name = desc.impl_info_str();
  if (!is_reference(name)) return {};
  return fmt::format("oneDNN offers only its reference path ({})", name);
}

dnnl::primitive_attr user_scratchpad() {
  dnnl::primitive_attr attr;
  attr.set_scratchpad_mode(dnnl::scratchpad_mode::user);
  return attr;
}

bool is_read(const Problem& problem, ValueId value) {
  const Value& v = problem.graph->value(value);
  return !v.users.empty() || problem.graph->is_output(value) || is_persistent(v.role);
}

PrimitiveKernel::PrimitiveKernel(const Problem& problem, const dnnl::primitive_desc_base& desc)
    : PrimitiveKernel(describe_problem(problem), problem.inputs.size(), problem.outputs.size(),
                      desc) {}

PrimitiveKernel::PrimitiveKernel(std::string what, std::size_t inputs, std::size_t outputs,
                                 const dnnl::primitive_desc_base& desc)
    : what_(std::move(what)) {
  ensure(desc.get(true) != nullptr, "oneDNN has no implementation for {}", what_);
  primitive_ = checked(what_, [&] { return dnnl::primitive(desc.get()); });
  input_layouts.resize(inputs);
  output_layouts.resize(outputs);
  implementation = desc.impl_info_str();
  bind_scratch(DNNL_ARG_SCRATCHPAD, desc.scratchpad_desc());
}

void PrimitiveKernel::bind_input(int argument, std::size_t index, const memory::desc& desc,
                                 const Layout& present) {
  input_layouts[index] = layout_of(desc, present);
  bind(argument, Place::input, index, desc);
}

void PrimitiveKernel::bind_output(int argument, std::size_t index, const memory::desc& desc,
                                  const Layout& wanted) {
  output_layouts[index] = layout_of(desc, wanted);
  bind(argument, Place::output, index, desc);
}

void PrimitiveKernel::bind_result(int argument, const Problem& problem, ValueId value,
                                  const memory::desc& desc, const Layout& wanted) {
  const auto found = std::find(problem.outputs.begin(), problem.outputs.end(), value);
  if (found == problem.outputs.end()) return bind_scratch(argument, desc);
  const auto index = static_cast<std::size_t>(found - problem.outputs.begin());
  if (is_read(problem, value)) return bind_output(argument, index, desc, wanted);
  output_layouts[index] = layout_of(desc, wanted);
  bind_scratch(argument, desc);
}

void PrimitiveKernel::bind_scratch(int argument, const memory::desc& desc) {
  constexpr std::size_t kAlignment = 64;
  const std::size_t bytes = desc.get_size();
  if (bytes == 0) return;
  bind(argument, Place::scratch, workspace_bytes, desc);
  workspace_bytes += (bytes + kAlignment - 1) / kAlignment * kAlignment;
}

void PrimitiveKernel::bind(int argument, Place place, std::size_t at, const memory::desc& desc) {
  memory object = checked(what_, [&] { return memory(desc, cpu_engine(), DNNL_MEMORY_NONE); });
  arguments_.push_back({argument, object.get()});
  bindings_.push_back({place, at, std::move(object)});
}

void PrimitiveKernel::run(const KernelArgs& args) const {
  for (Binding& binding : bindings_) {
    void* data = nullptr;
    switch (binding.place) {
      case Place::input:
        data = args.inputs[binding.at].data;
        break;
      case Place::output:
        data = args.outputs[binding.at].data;
        break;
      case Place::scratch:
        data = args.workspace + binding.at;
        break;
    }
    // Setting a handle also clears the padding lanes behind it, which costs time, so an address
    // that is set already is left alone; primitives keep the lanes of what they write at zero.
    if (data == binding.data) continue;
    check_status(what_, set_data(binding.object, data));
    binding.data = data;
  }
  check_status(what_,
               dnnl_primitive_execute(primitive_.get(), cpu_stream().get(),
                                      static_cast<int>(arguments_.size()), arguments_.data()));
  check_status(what_, dnnl_stream_wait(cpu_stream().get()));
}

}  // namespace ridgeline::onednn
