#include "ops/concat.h"

#include "base/error.h"
#include "ops/op.h"
#include "ops/reference.h"
#include "ops/work.h"

namespace ridgeline {
namespace {

Shape with_channels(const Shape& shape, std::int64_t channels) {
  Shape result = {shape[0], channels};
  for (int axis = 2; axis < shape.rank(); ++axis) result.append(shape[axis]);
  return result;
}

std::vector<OutputSpec> concat_outputs(const Attributes&, std::span<const TensorSpec> inputs) {
  if (inputs.empty()) bad_input("concat: needs at least one input");
  const TensorSpec& first = inputs[0];
  std::int64_t channels = 0;
  for (const TensorSpec& input : inputs) {
    if (input.shape.rank() < 2 || input.dtype != first.dtype ||
        input.shape != with_channels(first.shape, input.shape[1])) {
      bad_input("concat: {} {} and {} {} may differ in the channels only", first.shape.text(),
                name_of(first.dtype), input.shape.text(), name_of(input.dtype));
    }
    channels += input.shape[1];
  }
  return {{{with_channels(first.shape, channels), first.dtype}}};
}

std::vector<OutputSpec> slice_outputs(const Attributes& attributes,
                                      std::span<const TensorSpec> inputs) {
  const auto& a = std::get<SliceAttributes>(attributes);
  const Shape& src = inputs[0].shape;
  if (src.rank() < 2 || a.begin < 0 || a.channels < 1 || a.begin + a.channels > src[1]) {
    bad_input("slice: src {} has no channels [{}, {})", src.text(), a.begin, a.begin + a.channels);
  }
  return {{{with_channels(src, a.channels), inputs[0].dtype}}};
}

void concat_gradient(GradientContext& context) {
  std::int64_t begin = 0;
  for (std::size_t input = 0; input < context.input_count(); ++input) {
    const std::int64_t channels = context.spec(context.input(input)).shape[1];
    if (context.wanted(input)) {
      context.give(input, context.emit(OpKind::slice, SliceAttributes{begin, channels},
                                       {context.diff_output(0)}, Phase::backward_data)[0]);
    }
    begin += channels;
  }
}

// Copies channels [src_begin, src_begin + channels) to those from dst_begin on.
template <typename T>
void copy_channels(const Tensor& src_tensor, std::int64_t src_begin, const Tensor& dst_tensor,
                   std::int64_t dst_begin, std::int64_t channels) {
  const Elements<T> src(src_tensor), dst(dst_tensor);
  for_each_index(with_channels(src_tensor.shape(), channels), [&](auto n, auto c, auto h, auto w) {
    dst(n, dst_begin + c, h, w) = src(n, src_begin + c, h, w);
  });
}

void concat_reference(const OpCall& call) {
  with_float_type(call.outputs[0].spec.dtype, [&](auto type) {
    std::int64_t begin = 0;
    for (const Tensor& src : call.inputs) {
      copy_channels<decltype(type)>(src, 0, call.outputs[0], begin, src.shape()[1]);
      begin += src.shape()[1];
    }
  });
}

void slice_reference(const OpCall& call) {
  const auto& a = std::get<SliceAttributes>(call.attributes);
  with_float_type(call.outputs[0].spec.dtype, [&](auto type) {
    copy_channels<decltype(type)>(call.inputs[0], a.begin, call.outputs[0], 0, a.channels);
  });
}

std::string slice_text(const Attributes& attributes) {
  const auto& a = std::get<SliceAttributes>(attributes);
  return fmt::format("c{}+{}", a.begin, a.channels);
}

}  // namespace

const OpDef concat_op = {.name = "concat",
                         .outputs = concat_outputs,
                         .work = no_work,
                         .gradient = concat_gradient,
                         .reference = concat_reference,
                         .text = nullptr};

const OpDef slice_op = {.name = "slice",
                        .outputs = slice_outputs,
                        .work = no_work,
                        .gradient = nullptr,
                        .reference = slice_reference,
                        .text = slice_text};

}  // namespace ridgeline
