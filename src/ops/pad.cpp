#include "ops/pad.h"

#include "base/error.h"
#include "ops/op.h"
#include "ops/reference.h"
#include "ops/work.h"

namespace ridgeline {
namespace {

const PadAttributes& pad_of(const Attributes& attributes) {
  return std::get<PadAttributes>(attributes);
}

bool pads_images(const PadAttributes& a) {
  return a.top != 0 || a.left != 0 || a.bottom != 0 || a.right != 0;
}

std::vector<OutputSpec> outputs(const Attributes& attributes, std::span<const TensorSpec> inputs) {
  const PadAttributes& a = pad_of(attributes);
  const Shape& src = inputs[0].shape;
  if (src.rank() != 4 && (src.rank() != 2 || pads_images(a))) {
    bad_input("pad: src {} must be (N, C, H, W)", src.text());
  }
  const std::int64_t channels = src[1] + a.channels_before + a.channels_behind;
  const std::int64_t height = src.height() + a.top + a.bottom;
  const std::int64_t width = src.width() + a.left + a.right;
  if (channels < 1 || height < 1 || width < 1) {
    bad_input("pad: nothing is left of src {} after padding by {}", src.text(),
              text_of(OpKind::pad, attributes));
  }
  const Shape dst =
      src.rank() == 2 ? Shape{src[0], channels} : Shape{src[0], channels, height, width};
  return {{{dst, inputs[0].dtype}}};
}

void gradient(GradientContext& context) {
  if (!context.wanted(0)) return;
  const PadAttributes& a = pad_of(context.attributes());
  const PadAttributes back{.top = -a.top,
                           .left = -a.left,
                           .bottom = -a.bottom,
                           .right = -a.right,
                           .channels_before = -a.channels_before,
                           .channels_behind = -a.channels_behind};
  context.give(0,
               context.emit(OpKind::pad, back, {context.diff_output(0)}, Phase::backward_data)[0]);
}

template <typename T>
void pad(const PadAttributes& a, const Tensor& src_tensor, const Tensor& dst_tensor) {
  const Elements<T> src(src_tensor), dst(dst_tensor);
  const Shape& shape = src_tensor.shape();
  const auto inside = [](std::int64_t at, std::int64_t size) { return at >= 0 && at < size; };
  for_each_index(dst_tensor.shape(), [&](auto n, auto c, auto h, auto w) {
    const std::int64_t channel = c - a.channels_before, y = h - a.top, x = w - a.left;
    const bool on_image =
        inside(channel, shape[1]) && inside(y, shape.height()) && inside(x, shape.width());
    dst(n, c, h, w) = on_image ? src(n, channel, y, x) : T{0};
  });
}

void reference(const OpCall& call) {
  with_float_type(call.outputs[0].spec.dtype, [&](auto type) {
    pad<decltype(type)>(pad_of(call.attributes), call.inputs[0], call.outputs[0]);
  });
}

std::string text(const Attributes& attributes) {
  const PadAttributes& a = pad_of(attributes);
  std::string text = fmt::format("p{},{},{},{}", a.top, a.left, a.bottom, a.right);
  if (a.channels_before != 0 || a.channels_behind != 0) {
    text += fmt::format(" c{},{}", a.channels_before, a.channels_behind);
  }
  return text;
}

}  // namespace

const OpDef pad_op = {.name = "pad",
                      .outputs = outputs,
                      .work = no_work,
                      .gradient = gradient,
                      .reference = reference,
                      .text = text};

}  // namespace ridgeline
