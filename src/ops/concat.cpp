#include "ops/concat.h"

#include <algorithm>
#include <numeric>

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

const std::vector<std::int64_t>& parts_of(const Attributes& attributes) {
  return std::get<SplitAttributes>(attributes).channels;
}

std::vector<OutputSpec> split_outputs(const Attributes& attributes,
                                      std::span<const TensorSpec> inputs) {
  const std::vector<std::int64_t>& parts = parts_of(attributes);
  const Shape& src = inputs[0].shape;
  const bool positive = std::all_of(parts.begin(), parts.end(), [](auto part) { return part > 0; });
  if (src.rank() < 2 || parts.empty() || !positive ||
      std::accumulate(parts.begin(), parts.end(), std::int64_t{0}) != src[1]) {
    bad_input("split: the channels of src {} are not {} together", src.text(),
              text_of(OpKind::split, attributes));
  }
  std::vector<OutputSpec> outputs;
  for (const std::int64_t channels : parts) {
    outputs.push_back({{with_channels(src, channels), inputs[0].dtype}});
  }
  return outputs;
}

// Zeros around channels [begin, begin + channels) of `all`, which `diff` is the gradient of.
ValueId spread(GradientContext& context, ValueId diff, std::int64_t begin, std::int64_t all) {
  const std::int64_t behind = all - begin - context.spec(diff).shape[1];
  return context.emit(OpKind::pad,
                      PadAttributes{.channels_before = begin, .channels_behind = behind}, {diff},
                      Phase::backward_data)[0];
}

void slice_gradient(GradientContext& context) {
  if (!context.wanted(0)) return;
  const std::int64_t begin = std::get<SliceAttributes>(context.attributes()).begin;
  const std::int64_t all = context.spec(context.input(0)).shape[1];
  context.give(0, spread(context, context.diff_output(0), begin, all));
}

// A part that does not lead to the loss has no gradient: the others are then spread out and added.
void split_gradient(GradientContext& context) {
  if (!context.wanted(0)) return;
  const std::vector<std::int64_t> parts = parts_of(context.attributes());
  std::vector<ValueId> gradients;
  for (std::size_t i = 0; i < parts.size(); ++i) gradients.push_back(context.diff_output(i));
  if (std::find(gradients.begin(), gradients.end(), kNoValue) == gradients.end()) {
    context.give(0, context.emit(OpKind::concat, {}, gradients, Phase::backward_data)[0]);
    return;
  }
  const std::int64_t all = std::accumulate(parts.begin(), parts.end(), std::int64_t{0});
  std::int64_t begin = 0;
  for (std::size_t i = 0; i < parts.size(); ++i) {
    if (gradients[i] != kNoValue) context.give(0, spread(context, gradients[i], begin, all));
    begin += parts[i];
  }
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

void split_reference(const OpCall& call) {
  with_float_type(call.inputs[0].spec.dtype, [&](auto type) {
    std::int64_t begin = 0;
    for (const Tensor& part : call.outputs) {
      const std::int64_t channels = part.shape()[1];
      if (part.data != nullptr) {
        copy_channels<decltype(type)>(call.inputs[0], begin, part, 0, channels);
      }
      begin += channels;
    }
  });
}

std::string split_text(const Attributes& attributes) {
  std::string text;
  for (const std::int64_t channels : parts_of(attributes)) {
    text += fmt::format("{}{}", text.empty() ? "c" : "+", channels);
  }
  return text;
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
                        .gradient = slice_gradient,
                        .reference = slice_reference,
                        .text = slice_text};

const OpDef split_op = {.name = "split",
                        .outputs = split_outputs,
                        .work = no_work,
                        .gradient = split_gradient,
                        .reference = split_reference,
                        .text = split_text};

}  // namespace ridgeline
