#pragma once

// What the files of this backend share: the engine and its stream, layouts as memory descriptors,
// the choice of an implementation, and a kernel around one primitive.

#include <memory>
#include <string>
#include <string_view>
#include <vector>

#include "backends/onednn/api.h"
#include "base/error.h"
#include "plan/kernel.h"

namespace ridgeline::onednn {

using Tag = memory::format_tag;

[[noreturn]] void rethrow(std::string_view what, const dnnl::error& error);

// Runs body; an error of the library becomes ours, with what was being done and the status.
template <typename Body>
auto checked(std::string_view what, Body&& body) {
  try {
    return body();
  } catch (const dnnl::error& error) {
    rethrow(what, error);
  }
}

[[nodiscard]] Dims dims_of(const Shape& shape);
[[nodiscard]] memory::data_type type_of(DType dtype);
// A value of this spec in a format; `any` leaves the choice to the library.
[[nodiscard]] memory::desc describe(const TensorSpec& spec, Tag tag);
// REQUIRES: the layout is plain, nhwc or one of this backend's.
[[nodiscard]] memory::desc describe(const TensorSpec& spec, const Layout& layout);
[[nodiscard]] Tag plain_tag(std::size_t rank);
// The layout that a descriptor stands for; `present` where both are the same bytes.
[[nodiscard]] Layout layout_of(const memory::desc& desc, const Layout& present = Layout::plain());
// The descriptor inside one of this backend's own layouts; null for every other layout.
[[nodiscard]] const memory::desc* own_desc(const Layout& layout);

// The layout in which a kernel that takes every layout works: the first of the given ones that is
// not plain, so that images stay as the convolutions around want them.
[[nodiscard]] Layout common_layout(std::span<const Layout> layouts);
[[nodiscard]] std::vector<Layout> all_plain(const Problem& problem);

// A reason to refuse values that are not f32; empty when there is none. Positions are integers.
[[nodiscard]] std::string refuse_types(const Problem& problem);

// A reason to refuse an activation that the library does not have.
[[nodiscard]] std::string refuse_activations(const Problem& problem);

// Plain loops of the library, many times slower than its generated code.
[[nodiscard]] bool is_reference(std::string_view implementation);
[[nodiscard]] std::string refuse_implementation(const dnnl::primitive_desc_base& desc);

// The reason why a problem cannot be computed, given the function that describes its primitive.
template <typename Describe>
std::string refuse(const Problem& problem, Describe&& describe_primitive) {
  if (std::string reason = refuse_types(problem); !reason.empty()) return reason;
  if (std::string reason = refuse_activations(problem); !reason.empty()) return reason;
  try {
    return refuse_implementation(describe_primitive());
  } catch (const dnnl::error& error) {
    return fmt::format("oneDNN refuses it: {}", error.message);
  }
}

// Describes a primitive that works on images in nhwc, as the convolutions do, or in plain order
// where the library has only its reference path for that. Values of other ranks are plain.
template <typename Create>
auto in_image_format(const Shape& shape, Create&& create) {
  if (shape.rank() != 4) return create(plain_tag(dims_of(shape).size()));
  auto desc = create(Tag::nhwc);
  if (refuse_implementation(desc).empty()) return desc;
  return create(Tag::nchw);
}

// Scratch memory comes from the plan, not from the library.
[[nodiscard]] dnnl::primitive_attr user_scratchpad();

// True where someone reads a value after the step.
[[nodiscard]] bool is_read(const Problem& problem, ValueId value);

// One primitive with its memory objects, made once. Running sets the data handles that changed and
// executes.
class PrimitiveKernel final : public Kernel {
 public:
  PrimitiveKernel(const Problem& problem, const dnnl::primitive_desc_base& desc);
  PrimitiveKernel(std::string what, std::size_t inputs, std::size_t outputs,
                  const dnnl::primitive_desc_base& desc);

  // Tells which value is which argument of the primitive. `present`: how an input lies now.
  void bind_input(int argument, std::size_t index, const memory::desc& desc,
                  const Layout& present = Layout::plain());
  void bind_output(int argument, std::size_t index, const memory::desc& desc,
                   const Layout& wanted = Layout::plain());
  // An output of the primitive that is an output of the problem, or else goes to scratch memory.
  void bind_result(int argument, const Problem& problem, ValueId value, const memory::desc& desc,
                   const Layout& wanted = Layout::plain());
  void bind_scratch(int argument, const memory::desc& desc);

  void run(const KernelArgs& args) const override;

 private:
  enum class Place : std::uint8_t { input, output, scratch };
  struct Binding {
    Place place;
    std::size_t at;  // index of the input or output, byte offset in the workspace
    memory object;
    void* data = nullptr;  // the handle set last
  };
  void bind(int argument, Place place, std::size_t at, const memory::desc& desc);

  std::string what_;
  dnnl::primitive primitive_;
  std::vector<dnnl_exec_arg_t> arguments_;
  mutable std::vector<Binding> bindings_;
};

}  // namespace ridgeline::onednn
